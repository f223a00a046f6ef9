"""HUD's own tests of its graders, in three versions of HUD, run on the graders here."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from bench.proof.material import Case, Difference, Source

ABOUT = "HUD's tests of its graders, with the names of the modules changed alone"
SOURCE = Source("hud-evals/hud-python", "ce283c1963fa5cdea0c0d9b54051b31032157600", "MIT")
_VERSIONS = {
    "0.6.16.dev2": (SOURCE.commit, ("hud/tests/test_graders.py",)),
    "0.6.8": ("db419b239432bf02d039291d61042d547c2ebd3d", ("hud/tests/test_graders.py",)),
    "0.5.41": (
        "0401b41eae8f8826f21b1eec1b51211941c8f4b9",
        ("hud/tests/test_graders.py", "hud/native/tests/test_graders.py"),
    ),
}
_NAMES = (
    ("hud.native.graders", "assay.graders"),
    ("hud.graders", "assay.graders"),
    ("hud.native", "assay.native"),
    ("hud.tools.types", "assay.graders"),
    ("hud.environment", "assay"),
)
"""What docs/coming-from.md says of the names, the longer ones first."""
_PARTS = "The test replaces a part of HUD's own, which is not here."
AGREE, OF = 175, 198
DIFFERENCES = (
    Difference(
        "*/TestContainsA*::test_empty_list",
        "by design",
        "No texts to look for are a mistake of the task. It would be held against the answer, or "
        "let every answer pass.",
    ),
    Difference(
        "*::test_subscore_accepts_metadata_alias",
        "by design",
        "The test changes a score that is made; here nobody can.",
    ),
    Difference(
        "*::test_evaluation_result_warns_when_subscores_disagree_with_reward",
        "by design",
        "A gate or a bound may make the reward another than the sum, so nothing is warned of.",
    ),
    Difference(
        "*::test_combine_keeps_rubric_children_on_subscores",
        "by design",
        "`children` is a tuple and no list, so that nothing is added to a score.",
    ),
    Difference(
        "*::test_combine_any_dedupes_child_names",
        "by design",
        "`combine_any` says in its `info` what it combines; the test wants nothing there.",
    ),
    Difference(
        "0.[56].*/TestBashGrader::test_compute_score*",
        "by design",
        "`compute_score` returns a `SubScore`, as HUD's does since 0.6.11; before it was a pair.",
        said="*cannot unpack*",
    ),
    Difference(
        "0.6.8/*",
        "by design",
        "Evidence is in each subscore, as in later versions of HUD. `Grade.gather` copies it into "
        "the result as well, `combine` does not.",
        said="KeyError*",
    ),
    Difference("*", "theirs", _PARTS, said="*'hud'*"),
    Difference("*/TestBashGrader::*_keeps_partial_output", "theirs", _PARTS),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each test of each version, run by pytest in a directory of its own."""
    for version, (commit, files) in _VERSIONS.items():
        for file in files:
            shown = ["git", "-C", str(directory), "show", f"{commit}:{file}"]
            done = subprocess.run(shown, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                print(f"{version}: {file}", file=sys.stderr)
                yield from _run(version, done.stdout)
            else:
                print(
                    f"The clone lacks {file} of {version}, commit {commit[:12]}. Where it is a "
                    f"shallow one: git -C {directory} fetch --unshallow",
                    file=sys.stderr,
                )


def _run(version: str, text: str) -> Iterator[Case]:
    for theirs, here in _NAMES:
        text = text.replace(theirs, here)
    with tempfile.TemporaryDirectory(prefix="assay-proof-") as home:
        test, report = Path(home, "test_graders.py"), Path(home, "report.xml")
        test.write_text(text, "utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", home]
        command += ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]
        command += ["-p", "no:randomly", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", str(test)]
        # `BashGrader` starts a login shell, as HUD's does: nobody's profile may change the result.
        env = {**os.environ, "HOME": home}
        subprocess.run(command, cwd=home, env=env, stdout=subprocess.DEVNULL, check=False)
        told = ET.parse(report)
    for case in told.iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        # What was skipped has proven nothing.
        wrong = [
            f"{one.tag}: {one.get('message', '')}"
            if one.tag == "skipped"
            else one.get("message", "")
            for one in case
            if one.tag in ("failure", "error", "skipped")
        ]
        said = " ".join(wrong).partition("\n")[0]
        yield Case(f"{version}/{name}", not wrong, said)
