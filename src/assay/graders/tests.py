"""The kinds ``tests`` and ``pytest``: the fraction of hidden tests that pass."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from assay.errors import GraderError, InputError
from assay.graders.base import Grader
from assay.graders.paths import CasePath
from assay.graders.testing.hidden import Injected
from assay.graders.testing.outcomes import (
    Fresh,
    Isolation,
    is_separable,
    mode_of,
)
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import Assurance, SubScore
from assay.types.codec import Seconds, Share
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.graders.testing.commands import Report
    from assay.graders.testing.outcomes import TestRun

_MOST_TESTS = 200
_MOST_NAMES = 50
_LONGEST_MESSAGE = 1_000
_TAIL = 2_000


@dataclass(frozen=True, kw_only=True)
class TestsGrader(Grader):
    """Fraction of hidden tests that pass.

    The value is the number of tests that passed, divided by the number expected: every test that
    the hidden sources hold or the runner found. A test that is skipped, deselected, expected to
    fail or never heard of has not passed. A test's variants weigh together as much as they did
    when the reference was proven, or as many as its source lists.

    pytest, unittest and ``node --test`` report over a channel that the submission cannot write to,
    also from below ``make`` or ``npm test``. ``cargo test``, ``go test``, Jest, Vitest, Mocha,
    Maven and Gradle say by their names how they are read; for other runners the case must declare
    ``junit_xml`` or ``format``.

    Scored 0, with the reason: a run that ended early, ran over its time or shows signs of tampering
    (``flags``). An error: a runner that is not installed, a sandbox that does not work.

    Attributes:
        cmd: Shell line that runs the tests.
        inject: Hidden files: a path goes to the workspace root, ``{src, dest}`` elsewhere.
        junit_xml: Globs of the JUnit reports that ``cmd`` writes; known of Maven and Gradle.
        format: The console format that ``cmd`` prints; known of ``cargo test``, ``go test``, Jest,
            Vitest and Mocha.
        expected_ids: Exactly the tests that must be heard of; by default they are found.
        pass_threshold: The value from which the grader calls itself passed. A gate needs 1.
        timeout_s: Seconds for everything together.
        shuffle: Whether the tests of a file may run in any order.
        allow_equality: Classes of the submission, as ``module.Class``, whose instances may equal,
            or contain, as much as they like.
        isolation: ``process`` judges the tests apart from the submission, ``shared`` in one
            process with it. ``auto`` is decided by the case's reference; without one, shared.
        fresh: With ``process``, whether the submission is loaded anew for each test module or for
            each test.
        contract: With ``process``, what the reference needs, and always, how many variants its
            tests had; see `Contract`. Of a case it stands in the lock file.
    """

    __test__ = False
    name: ClassVar[str] = "tests"
    assurance = "reported"
    """Of a run that does not say how its outcomes were learnt."""
    has_command: ClassVar[bool] = False
    """Whether it knows itself what to run."""

    cmd: str | None = None
    inject: list[CasePath | Injected] | None = None
    junit_xml: str | list[str] | None = None
    format: str | None = None
    expected_ids: list[str] | None = None
    pass_threshold: Share = 1.0
    timeout_s: Seconds = 300.0
    shuffle: bool = True
    allow_equality: list[str] | None = None
    isolation: Isolation = "auto"
    fresh: Fresh = "module"
    contract: dict[str, Json] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        from assay.errors import nearest
        from assay.graders.testing.commands import read_command
        from assay.graders.testing.console import FORMATS
        from assay.graders.testing.hidden import hidden_files, read_inject
        from assay.graders.testing.prerequisites import require_ids
        from assay.graders.testing.reports import check_globs

        inject = read_inject(self.inject)
        check_globs(self._globs)
        with suppress(GraderError):  # a file that cannot be read: the run will say so
            require_ids(self.expected_ids or (), hidden_files(inject) if self.expected_ids else {})
        if self.format is not None and self.format not in FORMATS:
            hint = nearest(self.format, list(FORMATS))
            raise InputError(f"unknown console format {self.format!r}", hint=hint)
        if self.cmd is None:
            if not self.has_command:
                raise InputError("tests needs 'cmd'", hint="for example: python3 -m pytest")
            return
        mode_of(self.isolation, self.cmd)
        invocation = read_command(self.cmd)
        declared = invocation.runner or self._globs or self.format
        if not declared and self.implied(vars(self)) is None:
            raise InputError(
                f"nothing declares how to read the outcomes of "
                f"{invocation.program or 'the command'!r}",
                hint="declare junit_xml, or format: one of " + ", ".join(sorted(FORMATS)),
            )

    @property
    def _globs(self) -> list[str]:
        return [self.junit_xml] if isinstance(self.junit_xml, str) else self.junit_xml or []

    @classmethod
    def implied(cls, options: Mapping[str, object]) -> Report | None:
        """How outcomes are read where no option says so, and the command's runner does."""
        from assay.graders.testing.commands import implied_report

        cmd = options.get("cmd")
        if not isinstance(cmd, str) or options.get("junit_xml") or options.get("format"):
            return None
        return implied_report(cmd)

    @classmethod
    def separable(cls, options: Mapping[str, Json], tree: str | None = None) -> bool | None:
        """Whether the command's tests can be judged in a process of their own."""
        cmd = options.get("cmd")
        return cls.has_command if cmd is None else is_separable(str(cmd), tree)

    @classmethod
    def best_assurance(cls, options: Mapping[str, Json]) -> Assurance | None:
        """What the runner and the options allow: a foreign runner only ever reports."""
        from assay.graders.testing.commands import read_command

        cmd = options.get("cmd")
        if isinstance(cmd, str) and read_command(cmd).runner is None:
            return "reported"
        return "shared" if options.get("isolation") == "shared" else "separate"

    async def score(self, workspace: Workspace) -> SubScore:
        """Run the tests over the workspace, which is not changed, in a sandbox without network."""
        from assay.graders.testing.contract import contract_of, values_label
        from assay.graders.testing.hidden import hidden_files, read_inject
        from assay.graders.testing.prerequisites import require_ids
        from assay.graders.testing.run import TestCommand, run_tests

        hidden = hidden_files(read_inject(self.inject))
        require_ids(self.expected_ids or (), hidden)
        cmd = self._command(hidden)
        globs, format, before = self._globs, self.format, ""  # noqa: A001 - as the option
        if implied := self.implied({**vars(self), "cmd": cmd}):
            globs, format, before = implied.junit_xml, implied.format, implied.before  # noqa: A001
        mode = mode_of(self.isolation, cmd, workspace.source)
        command = TestCommand(
            cmd=before + cmd,
            inject=self.inject or (),
            junit_xml=globs,
            format=format,
            timeout_s=self.timeout_s,
            shuffle=self.shuffle,
            ids=self.expected_ids or (),
            loose=self.allow_equality or (),
            isolation=mode,
            fresh=self.fresh,
            contract=contract_of(self.contract, mode),
        )
        run = await run_tests(command, workspace)
        value = run.value
        return SubScore(
            name=self.name,
            value=value,
            passed=value >= self.pass_threshold and bool(run.expected),
            reason=reason_of(run),
            flags=run.flags,
            metadata={
                **test_evidence(run, cmd=cmd, hidden=hidden),
                **values_label(command.contract, run),
            },
            assurance=run.assurance,
        )

    def _command(self, hidden: Mapping[str, str]) -> str:
        """What is run."""
        del hidden
        return self.cmd or ""


class PytestGrader(TestsGrader):
    """Fraction of hidden pytest tests that pass.

    As ``tests``; without ``cmd`` it runs the injected test files, or the whole suite if no file is
    injected.
    """

    name: ClassVar[str] = "pytest"
    has_command: ClassVar[bool] = True

    def _command(self, hidden: Mapping[str, str]) -> str:
        if self.cmd:
            return self.cmd
        sources = [dest for dest in hidden if dest.endswith(".py")]
        tests = [dest for dest in sources if _is_test(dest)] or [
            dest for dest in sources if PurePosixPath(dest).name not in _NEVER_TESTS
        ]
        return shlex.join(["python3", "-m", "pytest", *tests])


_NEVER_TESTS = frozenset({"conftest.py", "__init__.py", "setup.py"})


def _is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return fnmatch(name, "test_*.py") or fnmatch(name, "*_test.py")


def reason_of(run: TestRun) -> str:
    """What a run came to, in a few words."""
    if not run.complete:
        return run.why
    if not run.expected:
        return "no tests were found"
    said = f"{len(run.passed)} of {len(run.expected)} tests passed"
    if math.isclose(run.value, len(run.passed) / len(run.expected)) or not run.passed:
        return said
    weighed = f"{run.weight(run.passed):.4g} of {run.weight(run.expected):.4g}"
    return f"{said}, which weigh {weighed}: a test weighs the same with any number of variants"


def test_evidence(run: TestRun, *, cmd: str, hidden: Mapping[str, str]) -> dict[str, Json]:
    """What a report shows of a run: the failing tests first, everything bounded."""
    names = sorted(
        {*run.expected, *run.outcomes}, key=lambda name: (run.says(name) == "passed", name)
    )
    tests: list[Json] = [_entry(run, name) for name in names[:_MOST_TESTS]]
    counts: dict[str, Json] = {"expected": len(run.expected)}
    for name in run.expected:
        word = run.says(name) or "missing"
        before = counts.get(word)
        counts[word] = (before if isinstance(before, int) else 0) + 1
    result = run.result
    return {
        "cmd": cmd,
        "counts": counts,
        "tests": tests,
        "isolation": run.isolation,
        "channel": run.channel,
        "exit_code": result.exit_code,
        "seconds": round(result.seconds, 3),
        "sandbox": result.tier,
        **run.learned,
        "stdout": _with_lines(_tail(result.stdout), hidden),
        "stderr": _tail(result.stderr),
        **noted(
            tests_left_out=max(0, len(names) - _MOST_TESTS),
            missing=[name[:500] for name in run.missing[:_MOST_NAMES]],
            undecided=list(run.undecided),
            notes=list(run.notes),
            why=run.why,
            timed_out=result.status == "timed_out",
            output_limit=result.status == "output_limit",
        ),
    }


def _entry(run: TestRun, name: str) -> dict[str, Json]:
    heard = run.outcomes.get(name)
    entry: dict[str, Json] = {"id": name[:500], "outcome": heard.outcome if heard else "missing"}
    if heard and heard.seconds is not None:
        entry["seconds"] = round(heard.seconds, 3)
    if heard and heard.message:
        entry["message"] = heard.message[:_LONGEST_MESSAGE]
    if name not in run.expected:
        entry["counted"] = False
    elif name in run.weights:
        entry["weight"] = round(run.weights[name], 4)
    return entry


_LONGEST_LINE = 200
"""Characters of a line: the output may ask for the same one again and again."""
_LOST = re.compile(r"^(> +)\?\?\?$", re.MULTILINE)
_PLACE = re.compile(r"^(?:\./)?([^\s:][^\n:]*):(\d+): ", re.MULTILINE)


def _with_lines(output: str, hidden: Mapping[str, str]) -> str:
    """Put in the lines that pytest could not show, for their files were taken away before they ran.

    The output names the place behind each; whoever prints such a place himself shows the author a
    line of the author's own test.
    """

    def line(lost: re.Match[str]) -> str:
        place = _PLACE.search(output, lost.end())
        path = None if place is None else hidden.get(place[1])
        if place is None or path is None:
            return lost[0]
        lines = _lines_of(path)
        number = int(place[2]) if len(place[2]) < 9 else 0
        if not 0 < number <= len(lines):
            return lost[0]
        return lost[1] + lines[number - 1].strip()[:_LONGEST_LINE]

    return _LOST.sub(line, output)


def _lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _tail(text: str) -> str:
    return text if len(text) <= _TAIL else f"... {text[-_TAIL:]}"
