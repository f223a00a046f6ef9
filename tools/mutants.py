"""How many small mistakes in a part of assay its tests notice: mutmut, for ``make mutants``.

``make mutants OF=scoring`` works in ``build/mutants/scoring``, which it makes anew, and ends with a
table; what no test noticed is in ``survivors.diff`` there. ``AGAIN=1`` keeps what was noticed and
tries the rest once more, after tests were added. ``SAMPLE=400`` tries that many, always the same.

mutmut makes no mistakes in decorated functions (properties), constants of modules and texts with
fields, and sees nothing that runs in another process: the tests of a part are those that call it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_HOME = Path(__file__).parents[1]
_PLACE = _HOME / "build" / "mutants"

PARTS: dict[str, tuple[str, str]] = {
    "scoring": (
        "scoring/*",
        (
            "tests/scoring tests/types/test_notebook.py tests/graders/test_base.py "
            "tests/test_assurance.py::test_a_word_reaches_what_is_no_stronger"
        ),
    ),
    # Without what takes longer than all others, or the longer the busier the machine is.
    "text": (
        "text/*",
        "tests/text -k 'not every_metric and not pick_and_extract and not too_long_is_not_valid'",
    ),
    "verdict": (
        "reports/summary",
        (
            "tests/reports/test_summary.py tests/reports/test_calibration.py::"
            "test_a_summary_has_each_card_once_and_the_first_fifty"
        ),
    ),
    "boundary": (
        "graders/testing/inside/boundary/contract graders/testing/inside/boundary/aliasing",
        "tests/graders/testing/test_boundary_decisions.py",
    ),
    "rows": (
        "eval/rows/grading eval/runner eval/rollout eval/records",
        (
            "tests/eval/test_rollout.py tests/eval/test_row_sinks.py tests/eval/test_recorded.py "
            "tests/eval/test_records.py tests/eval/test_row_grading.py tests/eval/test_jobs.py "
            "tests/eval/test_runner.py"
        ),
    ),
    "store": (
        "store/runs store/scores store/jobs",
        (
            "tests/store/test_jobs.py tests/store/test_runs.py tests/store/test_cells.py "
            "tests/store/test_scores.py -k 'not postgres and not null_character'"
        ),  # a server for each mutant takes long
    ),
    "pace": ("models/pace", "tests/models/test_pace.py"),
    "ledger": ("models/ledger", "tests/models/test_ledger.py"),
    "outcomes": (
        (
            "graders/testing/expected graders/testing/outcomes graders/testing/contract "
            "graders/testing/authors graders/testing/channel graders/testing/static_ids "
            "graders/testing/junit graders/testing/console graders/testing/console_lines "
            "graders/testing/commands graders/testing/python_ids"
        ),
        (
            "tests/graders/testing/test_commands.py tests/graders/testing/test_contract.py "
            "tests/graders/testing/test_authors.py tests/graders/testing/test_static_ids.py "
            "tests/graders/testing/test_junit.py tests/graders/testing/test_console.py "
            "tests/graders/testing/test_weights.py tests/graders/testing/test_channel.py "
            "-k 'not sandbox and not toolchain and not flood and not padding_by'"
        ),
    ),
    "transcripts": (
        (
            "agents/transcripts/claude_code agents/transcripts/atif agents/transcripts/otel "
            "agents/transcripts/spans agents/transcripts/provider agents/transcripts/exchanges "
            "agents/transcripts/transcript agents/transcripts/codex agents/transcripts/opencode "
            "agents/transcripts/gemini_cli agents/transcripts/otlp"
        ),
        (
            "tests/agents/test_transcripts.py tests/agents/test_transcripts_cli.py "
            "tests/agents/test_transcripts_elsewhere.py tests/agents/test_transcripts_otlp.py "
            "tests/agents/test_transcripts_spans.py"
        ),
    ),
}
"""What is changed, below ``src/assay/``, and which tests have to notice."""

_NOTICED: dict[int | None, str] = {
    1: "killed",
    3: "killed",
    24: "time",
    -24: "time",
    152: "time",
    255: "time",
}
"""Exit codes of pytest and of a limit; anything else of a mutant is not noticed."""


def run(part: str, sample: int | None, *, again: bool) -> Path:
    """Try the mutants of a part; where their results are."""
    place = _PLACE / part
    changed, tests = (shlex.split(words) for words in PARTS[part])
    if not again:
        shutil.rmtree(place, ignore_errors=True)
    (place / "mutants").mkdir(parents=True, exist_ok=True)
    copied, seen = ("src", "tests"), ("mutants/examples", "mutants/tools", "mutants/docs")
    for link in (place / name for name in (*copied, *seen)):
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(_HOME / link.name, link.parent))
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/assay/{name}.py" for name in changed],
        "do_not_mutate": ["src/assay/text/comparing.py"],  # of child interpreters alone
        "pytest_add_cli_args_test_selection": [
            *(*tests, "-m", "not slow and not soak and not real"),
        ],
        # One process, the order of the files, and no smaller example of what is wrong anyway.
        "pytest_add_cli_args": [
            *("-o", "addopts=--strict-markers --import-mode=importlib"),
            *("--hypothesis-profile=noticing", "--snapshot-warn-unused"),
        ],
        "timeout_constant": 5.0,  # times 15, in seconds that pass: the machine may be busy
        "use_git_change_detection": False,
        "track_dependencies": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    text = (_HOME / "pyproject.toml").read_text("utf-8")
    (place / "pyproject.toml").write_text("\n".join([text, "[tool.mutmut]", *lines, ""]), "utf-8")
    names: list[str] = []
    if again:
        found = results(place).items()
        names = [name for name, code in found if _NOTICED.get(code) != "killed"]
    elif sample is not None:
        # Of a name that nothing has they are all made, and none is tried.
        _mutmut(place, "nothing", quiet=True)
        names = sorted(results(place, tried=False))
        names = random.Random(part).sample(names, min(sample, len(names)))
    if names or not again:
        _mutmut(place, *names)
    return place


def _mutmut(place: Path, *names: str, quiet: bool = False) -> None:
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", "2", *names]
    told = subprocess.DEVNULL if quiet else None
    # Tests that are ended leave files; the name is short: sockets are made below it.
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "TMPDIR": scratch}
        subprocess.run(command, check=False, cwd=place, env=env, stdout=told, stderr=told)


def results(place: Path, *, tried: bool = True) -> dict[str, int | None]:
    """The exit code of each mutant that was tried, or of all."""
    told = [json.loads(path.read_text("utf-8")) for path in sorted(place.glob("mutants/**/*.meta"))]
    codes = [pair for one in told for pair in one["exit_code_by_key"].items()]
    return {name: code for name, code in codes if not tried or code is not None}


def report(place: Path) -> None:
    """Print how many were noticed, file by file, and write down the others."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    files, late = dict[str, list[int]](), 0
    missed: list[str] = []
    for name, code in results(place).items():
        module = re.split(r"\.x[_ǁ]", name, maxsplit=1)[0].removeprefix("assay.")
        for row in (files.setdefault(module, [0, 0]), files.setdefault("together", [0, 0])):
            row[0] += code in _NOTICED
            row[1] += 1
        missed += [] if code in _NOTICED else [name]
        late += _NOTICED.get(code) == "time"
    with contextlib.chdir(place), Path("survivors.diff").open("w", encoding="utf-8") as file:
        for name in missed:
            file.write(f"# {name}\n{get_diff_for_mutant(name)}\n")
    files["together"] = files.pop("together", [0, 0])
    for module, (noticed, of) in files.items():
        print(f"{module:30} {noticed:5} of {of:5}  {100 * noticed / max(of, 1):5.1f} %")
    print(f"{late} of these ran out of time; AGAIN=1 tries them once more")
    print(f"what no test noticed: {place.relative_to(_HOME)}/survivors.diff")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Change a part of assay; do its tests notice?")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    report(run(asked.part, asked.sample, again=asked.again))
