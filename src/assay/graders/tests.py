"""The kinds ``tests`` and ``pytest``: the fraction of hidden tests that pass."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
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
    check_isolation,
    is_separable,
    mode_of,
)
from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance, SubScore
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.graders.testing.commands import Report
    from assay.graders.testing.outcomes import TestRun

__all__ = ["PytestGrader", "TestsGrader", "reason_of", "test_evidence"]

_MOST_TESTS = 200
_MOST_NAMES = 50
_LONGEST_MESSAGE = 1_000
_TAIL = 2_000


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
    """

    __test__ = False
    name: ClassVar[str] = "tests"
    assurance = "reported"
    """Of a run that does not say how its outcomes were learnt."""

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a command whose outcomes could only be guessed, and impossible options."""
        from assay.graders.testing.commands import read_command
        from assay.graders.testing.hidden import read_inject

        read_inject(options.get("inject"))
        globs = options.get("junit_xml") or []
        if globs:
            from assay.graders.testing.reports import check_globs

            check_globs([str(glob) for glob in globs] if isinstance(globs, list) else [str(globs)])
        _check_numbers(options)
        _check_ids(options)
        cmd, format_ = options.get("cmd"), options.get("format")
        if format_ is not None:
            _check_format(str(format_))
        if cmd is None:
            if not cls._has_default():
                raise InputError("tests needs 'cmd'", hint="for example: python3 -m pytest")
            return
        check_isolation(options, str(cmd))
        invocation = read_command(str(cmd))
        declared = options.get("junit_xml") or format_ is not None
        if invocation.runner is None and not declared and cls.implied(options) is None:
            raise _unreported(invocation.program)

    @classmethod
    def implied(cls, options: Mapping[str, Json]) -> Report | None:
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
        return cls._has_default() if cmd is None else is_separable(str(cmd), tree)

    @classmethod
    def best_assurance(cls, options: Mapping[str, Json]) -> Assurance | None:
        """What the runner and the options allow: a foreign runner only ever reports."""
        from assay.graders.testing.commands import read_command

        cmd = options.get("cmd")
        if isinstance(cmd, str) and read_command(cmd).runner is None:
            return "reported"
        return "shared" if options.get("isolation") == "shared" else "separate"

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        *,
        cmd: str | None = None,
        inject: list[CasePath | Injected] | None = None,
        junit_xml: str | list[str] | None = None,
        format: str | None = None,  # noqa: A002 - the option's name in cases
        expected_ids: list[str] | None = None,
        pass_threshold: float = 1.0,
        timeout_s: float = 300.0,
        shuffle: bool = True,
        allow_equality: list[str] | None = None,
        isolation: Isolation = "auto",
        fresh: Fresh = "module",
        contract: dict[str, Json] | None = None,
    ) -> SubScore:
        """Run the tests over the workspace, in a sandbox without network.

        Args:
            workspace: What is graded. It is not changed.
            cmd: Shell line that runs the tests.
            inject: Hidden files: a path goes to the workspace root, ``{src, dest}`` elsewhere.
            junit_xml: Globs of the JUnit reports that ``cmd`` writes; known of Maven and Gradle.
            format: The console format that ``cmd`` prints; known of ``cargo test``, ``go test``,
                Jest, Vitest and Mocha.
            expected_ids: Exactly the tests that must be heard of; by default they are found.
            pass_threshold: The value from which the grader calls itself passed. A gate needs 1.
            timeout_s: Seconds for everything together.
            shuffle: Whether the tests of a file may run in any order.
            allow_equality: Classes of the submission, as ``module.Class``, whose instances may
                equal, or contain, as much as they like.
            isolation: ``process`` judges the tests apart from the submission, ``shared`` in one
                process with it. ``auto`` is decided by the case's reference; without one, shared.
            fresh: With ``process``, whether the submission is loaded anew for each test module or
                for each test.
            contract: With ``process``, what the reference needs, and always, how many variants its
                tests had; see `Contract`. Of a case it stands in the lock file.

        Raises:
            InputError: For a command whose outcomes could only be guessed, and an expected test
                that its hidden file does not have.
            GraderError: If pytest, or whatever runs the tests, is not installed, or if there is no
                test to run.
            SandboxError: If the sandbox failed.
        """
        from assay.graders.testing.contract import contract_of, values_label
        from assay.graders.testing.hidden import hidden_files, read_inject
        from assay.graders.testing.prerequisites import require_ids
        from assay.graders.testing.run import TestCommand, run_tests

        hidden = hidden_files(read_inject(inject))
        require_ids(expected_ids or (), hidden)
        cmd = cmd or cls._default_command(inject)
        globs = [junit_xml] if isinstance(junit_xml, str) else junit_xml or ()
        before = ""
        if implied := cls.implied({"cmd": cmd, "junit_xml": [*globs], "format": format}):
            globs, format, before = implied.junit_xml, implied.format, implied.before  # noqa: A001
        mode = mode_of(isolation, cmd, workspace.source)
        command = TestCommand(
            cmd=before + cmd,
            inject=inject or (),
            junit_xml=globs,
            format=format,
            timeout_s=timeout_s,
            shuffle=shuffle,
            ids=expected_ids or (),
            loose=allow_equality or (),
            isolation=mode,
            fresh=fresh,
            contract=contract_of(contract, mode),
        )
        run = await run_tests(command, workspace)
        value = run.value
        return SubScore(
            name=cls.name,
            value=value,
            passed=value >= pass_threshold and bool(run.expected),
            reason=reason_of(run),
            flags=run.flags,
            metadata={
                **test_evidence(run, cmd=cmd, hidden=hidden),
                **values_label(command.contract, run),
            },
            assurance=run.assurance,
        )

    @classmethod
    def _has_default(cls) -> bool:
        return False

    @classmethod
    def _default_command(cls, inject: object) -> str:
        del inject
        raise InputError("tests needs 'cmd'", hint="for example: python3 -m pytest")


class PytestGrader(TestsGrader):
    """Fraction of hidden pytest tests that pass.

    As ``tests``; without ``cmd`` it runs the injected test files, or the whole suite if no file is
    injected.
    """

    name: ClassVar[str] = "pytest"

    @classmethod
    def _has_default(cls) -> bool:
        return True

    @classmethod
    def _default_command(cls, inject: object) -> str:
        from assay.graders.testing.hidden import hidden_files, read_inject

        entries = read_inject(inject)
        sources = [dest for dest in hidden_files(entries) if dest.endswith(".py")]
        tests = [dest for dest in sources if _is_test(dest)] or [
            dest for dest in sources if PurePosixPath(dest).name not in _NEVER_TESTS
        ]
        return shlex.join(["python3", "-m", "pytest", *tests])


_NEVER_TESTS = frozenset({"conftest.py", "__init__.py", "setup.py"})


def _is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return fnmatch(name, "test_*.py") or fnmatch(name, "*_test.py")


def _check_numbers(options: Mapping[str, Json]) -> None:
    threshold, timeout = options.get("pass_threshold", 1.0), options.get("timeout_s", 300.0)
    if isinstance(threshold, int | float) and not 0 <= threshold <= 1:
        raise InputError("pass_threshold must be in [0, 1]")
    if isinstance(timeout, int | float) and not timeout > 0:
        raise InputError("timeout_s must be more than 0")


def _check_ids(options: Mapping[str, Json]) -> None:
    """Look the expected tests up in the hidden files, where those can be read already."""
    ids = options.get("expected_ids")
    if not isinstance(ids, list):
        return
    from assay.graders.testing.hidden import hidden_files, read_inject
    from assay.graders.testing.prerequisites import require_ids

    try:
        files = hidden_files(read_inject(options.get("inject")))
    except GraderError:  # the run will say what is wrong with them
        return
    require_ids([name for name in ids if isinstance(name, str)], files)


def _check_format(name: str) -> None:
    from assay.errors import nearest
    from assay.graders.testing.console import FORMATS

    if name not in FORMATS:
        raise InputError(f"unknown console format {name!r}", hint=nearest(name, list(FORMATS)))


def _unreported(program: str) -> InputError:
    from assay.graders.testing.console import FORMATS

    return InputError(
        f"nothing declares how to read the outcomes of {program or 'the command'!r}",
        hint="declare junit_xml, or format: one of " + ", ".join(sorted(FORMATS)),
    )


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
    evidence: dict[str, Json] = {
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
    }
    if len(names) > _MOST_TESTS:
        evidence["tests_left_out"] = len(names) - _MOST_TESTS
    if run.missing:
        evidence["missing"] = [name[:500] for name in run.missing[:_MOST_NAMES]]
    said = {"undecided": run.undecided, "notes": run.notes}
    evidence |= {name: list(lines) for name, lines in said.items() if lines}
    if not run.complete:
        evidence["why"] = run.why
    if result.status == "timed_out":
        evidence["timed_out"] = True
    if result.status == "output_limit":
        evidence["output_limit"] = True
    return evidence


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
