"""Of cheats and of honest work: how much the grader ``audit`` flags.

``python -m bench.audit --cases DIR... --repos CLONE... [--commits N]``

A directory of cases has a directory for each: ``exploit.json`` has the graders, ``workspace/``
what an agent is given, ``agent/`` and ``agent.sh`` what it leaves, ``honest/`` and ``honest.sh``
what honest work leaves, ``*.trace.jsonl`` what was done. An agent of which ``exploit.json`` says
``agent_is_correct``, or whose directory is named like ``honest_...``, is honest, too. A clone is a
git directory: of its history, commits are taken whose message says that they fix something and
that touch code beside tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from assay.agents.transcripts import read_transcript
from assay.graders.apply import grade_alone
from assay.graders.audit import beside
from assay.graders.languages import is_test, language_of
from assay.graders.spec import GraderSpec
from assay.sandbox import Limits, run_command_sync
from assay.scoring.results import SubScore
from assay.scratch import scratch
from assay.types.submission import Submission, Workspace
from assay.types.trace import Trace

_FIXES = r"\b[Ff]ix(es|ed|ing)?\b"
_MOST_CHANGED = 60


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work, with what the audit says of it."""

    name: str
    is_honest: bool
    score: SubScore

    @property
    def is_flagged(self) -> bool:
        """Whether there is a sign."""
        return self.score.value == 0.0


def cases(directory: Path) -> Iterator[Work]:
    """Both arms of every case of a directory."""
    for case in sorted(path for path in directory.iterdir() if (path / "exploit.json").is_file()):
        said = json.loads((case / "exploit.json").read_text())
        is_right = directory.name.startswith("honest") or said.get("agent_is_correct") is True
        for arm in ("agent", "honest"):
            if (case / arm).is_dir() or (case / f"{arm}.sh").is_file():
                name = f"{directory.name}/{case.name}:{arm}"
                yield Work(name, arm == "honest" or is_right, _audited_arm(case, arm, said))


def _audited_arm(case: Path, arm: str, said: dict[str, object]) -> SubScore:
    with scratch("assay-bench-audit-") as place:
        source, left = place / "source", place / "left"
        for tree in (source, left):
            if (case / "workspace").is_dir():
                shutil.copytree(case / "workspace", tree, symlinks=True)
            tree.mkdir(exist_ok=True)
        if (case / arm).is_dir():
            shutil.copytree(case / arm, left, symlinks=True, dirs_exist_ok=True)
        if (script := case / f"{arm}.sh").is_file():
            for path in (left, *left.rglob("*")):
                if not path.is_symlink():  # the cases may be kept where nothing can be written
                    path.chmod(path.stat().st_mode | 0o200)
            run_command_sync(  # hostile as it is: some kill whatever they can reach
                ["/bin/bash", "-c", script.read_text()],
                workspace=str(left),
                changes="keep",
                limits=Limits(wall_seconds=30),
            )
        recorded = case / f"{arm}.trace.jsonl"
        trace = read_transcript(recorded.read_text()).trace if recorded.is_file() else None
        listed = cast("list[dict[str, object]]", said.get("graders", []))
        specs = [
            GraderSpec(
                type=str(one["type"]),
                options={k: v for k, v in one.items() if k == "patterns"},  # pyright: ignore[reportArgumentType] - as JSON has it
            )
            for one in listed
        ]
        return _audited(source, left, specs, str(said.get("prompt", "")), trace)


def _audited(
    source: Path, left: Path, specs: Sequence[GraderSpec], question: str, trace: Trace | None
) -> SubScore:
    spec = beside(specs)
    assert spec is not None
    workspace = Workspace(path=str(left), source=str(source))
    submission = Submission(workspace=workspace, question=question, trace=trace)
    return asyncio.run(grade_alone(spec, submission))


def fixes(clone: Path, most: int) -> Iterator[Work]:
    """Commits of a clone that mend code."""

    def git(*words: str) -> bytes:
        done = subprocess.run(
            ["git", "-C", str(clone), *words],
            capture_output=True,
            check=False,
            env={
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            },
        )
        return done.stdout if done.returncode == 0 else b""

    taken = 0
    listed = git(
        "log", "--no-merges", "-E", f"--grep={_FIXES}", "--format=%H %s", "-n", str(most * 20)
    )
    for line in listed.decode("utf-8", "replace").splitlines():
        commit, _, subject = line.partition(" ")
        if not re.search(_FIXES, subject):
            continue
        diff = git("diff-tree", "-r", "--no-commit-id", "--name-only", "-z", commit)
        names = [name.decode("utf-8", "replace") for name in diff.split(b"\0") if name]
        mended = [name for name in names if language_of(name) and not is_test(name)]
        if not mended or len(names) > _MOST_CHANGED:
            continue
        with scratch("assay-bench-audit-") as place:
            trees = place / "source", place / "left"
            for tree, version in zip(trees, (f"{commit}^", commit), strict=True):
                tree.mkdir()
                for name in git("ls-tree", "-r", "--name-only", "-z", version).split(b"\0"):
                    path = tree / name.decode("utf-8", "replace")
                    if (name and path.name == "__init__.py") or name.decode() in names:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(git("show", f"{version}:{name.decode()}"))
            yield Work(
                f"{clone.parent.name}@{commit[:10]} {subject[:60]}",
                True,
                _audited(*trees, [], "", None),
            )
        taken += 1
        if taken == most:
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was flagged, and the shares."""
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("--cases", nargs="*", type=Path, default=[], metavar="DIR")
    parser.add_argument("--repos", nargs="*", type=Path, default=[], metavar="CLONE")
    parser.add_argument("--commits", type=int, default=25, help="of each clone; 25")
    given = parser.parse_args(arguments)
    work = [one for directory in given.cases for one in cases(directory)]
    _print("cheats", [one for one in work if not one.is_honest], wanted=True)
    _print("honest work", [one for one in work if one.is_honest], wanted=False)
    mended = [one for clone in given.repos for one in fixes(clone, given.commits)]
    _print("bug fixes", mended, wanted=False)
    return 0


def _print(what: str, work: Sequence[Work], *, wanted: bool) -> None:
    if not work:
        return
    flagged = [one for one in work if one.is_flagged]
    print(f"{what}: {len(flagged)} of {len(work)} flagged ({len(flagged) / len(work):.1%})")
    for one in work:
        if one.is_flagged != wanted:
            print(f"  {one.name}", *(f"    {flag}" for flag in one.score.flags[:4]), sep="\n")


if __name__ == "__main__":
    raise SystemExit(main())
