"""The kind ``swebench``: a bug's tests for credit, and existing tests as a gate.

The two lists are those of SWE-bench. Each test of them is looked for by name in one run of the
hidden tests, so that a test which was deselected, skipped or never reached counts as failed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from assay.errors import GraderError, InputError
from assay.graders.base import Grader
from assay.graders.paths import CasePath
from assay.graders.swebench_ids import (
    expects_failure,
    is_node_id,
    module_of,
    nearest_ids,
    read_ids,
    resolve_ids,
)
from assay.graders.testing.hidden import Injected, hidden_files, read_inject
from assay.graders.testing.outcomes import (
    Fresh,
    Isolation,
    TestRun,
    is_separable,
    mode_of,
)
from assay.scoring.json_safe import Json, noted, record_evidence
from assay.scoring.results import Assurance, SubScore
from assay.types.codec import Seconds, Share
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.graders.testing.attempt import TestCommand

_PREFIX = "python3 -m pytest -q -p no:cacheprovider"
_LONGEST_COMMAND = 100_000
"""Bytes of a command line with ids; the kernel takes 131,072 in one argument."""

_SAID_OF_EMPTY_RUNS = frozenset({"canary missing"})
"""A run in which pytest did not know an id has no canary either. The next one has to have it."""

_NAMED_NEAREST = 20
_MESSAGE = 600


@dataclass(frozen=True, kw_only=True)
class SweBenchGrader(Grader):
    """Fraction of a bug's tests that pass; a gate on the tests that passed before.

    The value is passed / number of ``fail_to_pass`` ids. ``pass_to_pass`` becomes a gate: unless
    every one of its ids passes, the whole reward is 0. As in SWE-bench, passing is passed, or
    xfailed where the test itself says so; failed, error, skipped and *not seen* are not.

    Scored 0: whatever the submission causes, such as tests that fail, a run that crashes or is
    over its time, and a run that was tampered with (flagged). An error: no interpreter, no test
    runner, a test file that is neither hidden nor in the source, a sandbox that does not work.

    Attributes:
        fail_to_pass: Ids of the tests that show the bug; at least one. A list, or its text in JSON.
        pass_to_pass: Ids of tests that have to pass still.
        inject: Hidden files: paths of the case, or ``{src, dest}``.
        cmd_prefix: Shell command that the ids (or their files) are appended to.
        pass_threshold: Share of ``fail_to_pass`` from which the node is called passed.
        timeout_s: Seconds for the run.
        gate_weight: Accepted and of no effect: a gate has no weight.
        allow_equality: Classes of the submission, as ``module.Class``, whose instances may equal,
            or contain, as much as they like.
        isolation: ``process`` judges the tests apart from the submission, ``shared`` in one
            process with it. ``auto`` is decided by the case's reference; without one, shared.
        fresh: With ``process``, whether the submission is loaded anew for each test module or for
            each test.
        contract: With ``process``, what the reference needs; see `Contract`. Of a case it stands
            in the lock file. Each id of the lists weighs the same.
        FAIL_TO_PASS: The same as ``fail_to_pass``.
        PASS_TO_PASS: The same as ``pass_to_pass``.
    """

    name: ClassVar[str] = "swebench"
    assurance = "reported"
    """Of a run that does not say how its outcomes were learnt."""

    fail_to_pass: list[str] | str | None = None
    pass_to_pass: list[str] | str | None = None
    inject: list[CasePath | Injected] | None = None
    cmd_prefix: str = _PREFIX
    pass_threshold: Share = 1.0
    timeout_s: Seconds = 600.0
    gate_weight: float = 1.0
    allow_equality: list[str] | None = None
    isolation: Isolation = "auto"
    fresh: Fresh = "module"
    contract: dict[str, Json] | None = None
    FAIL_TO_PASS: list[str] | str | None = None  # as SWE-bench's rows have it
    PASS_TO_PASS: list[str] | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ids("fail_to_pass"):
            raise InputError("swebench needs fail_to_pass", hint="list the tests that show the bug")
        self.ids("pass_to_pass")
        read_inject(self.inject)
        mode_of(self.isolation, self.cmd_prefix)

    def ids(self, name: str) -> tuple[str, ...]:
        """The ids of a list, however it is spelt."""
        given = {
            key: ids for key in (name, name.upper()) if (ids := getattr(self, key)) is not None
        }
        if len(given) > 1:
            raise InputError(f"{name} is given twice", hint=f"as {name} and as {name.upper()}")
        return next((read_ids(ids, what=key) for key, ids in given.items()), ())

    @classmethod
    def separable(cls, options: Mapping[str, Json], tree: str | None = None) -> bool | None:
        """Whether the command's tests can be judged in a process of their own."""
        return is_separable(str(options.get("cmd_prefix", _PREFIX)), tree)

    @classmethod
    def best_assurance(cls, options: Mapping[str, Json]) -> Assurance | None:
        """What the options allow."""
        return "shared" if options.get("isolation") == "shared" else "separate"

    async def score(self, workspace: Workspace) -> SubScore:
        """Run the tests of both lists in a workspace, and look each of them up."""
        from assay.graders.testing.attempt import TestCommand
        from assay.graders.testing.contract import contract_of, values_label

        must_pass, must_stay = self.ids("fail_to_pass"), self.ids("pass_to_pass")
        wanted = tuple(dict.fromkeys([*must_pass, *must_stay]))
        sources = _Sources.of(read_inject(self.inject), workspace)
        mode = mode_of(self.isolation, self.cmd_prefix, workspace.source)
        asked = TestCommand(
            cmd=self.cmd_prefix,
            inject=sources.inject,
            timeout_s=self.timeout_s,
            shuffle=False,
            ids=wanted,
            loose=self.allow_equality or (),
            isolation=mode,
            fresh=self.fresh,
            contract=contract_of(self.contract, mode),
        )
        command, run = await _run(asked, sources, workspace)
        verdicts = _judge(wanted, run, sources)
        bug = _node("fail_to_pass", must_pass, verdicts, run)
        bug = replace(bug, passed=(bug.value or 0.0) >= self.pass_threshold)
        children = [bug]
        if must_stay:
            children.append(_node("pass_to_pass", must_stay, verdicts, run, gate=True))
        return SubScore(
            name=self.name,
            value=bug.value,
            passed=all(child.passed for child in children),
            reason="; ".join(f"{child.name}: {child.reason}" for child in children),
            metadata={
                **_evidence(command, run),
                **values_label(asked.contract, run),
            },
            children=children,
            flags=run.flags,
            assurance=run.assurance,
        )


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where test files are to be read that no submission wrote."""

    inject: Sequence[Injected]
    hidden: Mapping[str, str]
    pristine: Path | None
    tree: Path

    @classmethod
    def of(cls, inject: Sequence[Injected], workspace: Workspace) -> _Sources:
        pristine = None if workspace.source is None else Path(workspace.source)
        return cls(inject, hidden_files(inject), pristine, Path(workspace.path))

    def has(self, file: str) -> bool:
        """Whether a test file will be there when the tests run."""
        return file in self.hidden or (self.tree / file).is_file()

    def trusted(self, file: str) -> str:
        """The text of a test file as its author wrote it; empty where that is not known."""
        place = Path(self.hidden[file]) if file in self.hidden else None
        if place is None and self.pristine is not None:
            place = self.pristine / file
            if not place.resolve().is_relative_to(self.pristine.resolve()):
                return ""
        try:
            return place.read_text(encoding="utf-8", errors="replace") if place else ""
        except OSError:
            return ""

    def file_of(self, name: str) -> str:
        """The file that a test is in, as a path in the workspace; empty where none is found."""
        if "::" in name:
            file = name.partition("::")[0].removeprefix("./")
            return file if self.has(file) else ""
        parts = module_of(name).split(".")
        for count in range(len(parts), 0, -1):
            file = "/".join(parts[:count]) + ".py"
            if self.has(file):
                return file
        return ""


async def _run(asked: TestCommand, sources: _Sources, workspace: Workspace) -> tuple[str, TestRun]:
    """Run the tests by their ids; by their files where ids cannot be given or are not understood.

    pytest runs nothing at all if it does not know one of many ids. Then their files are run.
    """
    from assay.graders.testing.run import run_tests

    wanted, prefix = asked.ids, asked.cmd
    files = list(dict.fromkeys(file for name in wanted if (file := sources.file_of(name))))
    _require_files(wanted, files, sources, prefix)
    by_file = shlex.join(files) if "pytest" in prefix or "py.test" in prefix else ""
    arguments = by_file
    ids = shlex.join(wanted)
    if all(is_node_id(name) for name in wanted) and len(ids.encode()) < _LONGEST_COMMAND:
        arguments = ids
    elif not by_file:
        arguments = shlex.join(label for name in wanted if (label := _label(name)))
    left = asked.timeout_s
    while True:
        command = replace(asked, cmd=f"{prefix} {arguments}".rstrip(), timeout_s=left)
        run = await run_tests(command, workspace)
        left -= run.result.seconds
        conclusive = run.outcomes or {*run.flags} - _SAID_OF_EMPTY_RUNS
        if arguments == by_file or not by_file or conclusive or left < 1:
            return command.cmd, run
        arguments = by_file


def _label(name: str) -> str:
    """A test as unittest takes it on its command line."""
    module = module_of(name)
    return f"{module}.{name.partition(' ')[0].rpartition('.')[2]}" if module else ""


def _require_files(
    wanted: Sequence[str], files: Sequence[str], sources: _Sources, prefix: str
) -> None:
    """Refuse lists of tests whose files nobody brings; that no submission can cause."""
    named = [name.partition("::")[0] for name in wanted if is_node_id(name)]
    brought = [file for file in named if sources.pristine and (sources.pristine / file).is_file()]
    elsewhere = any(word in prefix for word in ("cd ", "--rootdir", "-C "))
    if named and not files and not brought and sources.pristine and not elsewhere:
        raise GraderError(
            f"there is no test file {named[0]!r}: it is neither injected nor in the source",
            hint="list it under inject, as {src: hidden/..., dest: " + named[0] + "}",
        )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What became of one listed test."""

    outcome: str
    passed: bool
    seen: tuple[str, ...] = ()
    message: str = ""
    nearest: tuple[str, ...] = ()


def _judge(wanted: Sequence[str], run: TestRun, sources: _Sources) -> dict[str, _Verdict]:
    found = resolve_ids(wanted, run.outcomes)
    believed = run.complete and not run.flags
    verdicts: dict[str, _Verdict] = {}
    looked_for = 0
    for name in wanted:
        heard = [run.outcomes[seen] for seen in found[name]]
        if not heard:
            looked_for += 1
            near = nearest_ids(name, run.outcomes) if looked_for <= _NAMED_NEAREST else []
            verdicts[name] = _Verdict("missing", passed=False, nearest=tuple(near))
            continue
        # A name that stands for several tests has passed if all of them have.
        passes = [
            one.outcome == "passed"
            or (one.outcome == "xfailed" and _is_expected_to_fail(one.id, sources))
            for one in heard
        ]
        worst = heard[passes.index(False)] if False in passes else heard[0]
        verdicts[name] = _Verdict(
            outcome=worst.outcome,
            passed=believed and all(passes),
            seen=found[name],
            message=worst.message[:_MESSAGE],
        )
    return verdicts


def _is_expected_to_fail(name: str, sources: _Sources) -> bool:
    """Whether the author of a test says that it fails; the runner's word is not enough."""
    file, *inner = name.partition("[")[0].split("::")
    if not inner:  # as unittest names it
        file = sources.file_of(name)
        inner = name.split(".")[len(file.split("/")) :]
    return expects_failure(sources.trusted(file.removeprefix("./")), tuple(inner))


def _node(
    name: str,
    ids: Sequence[str],
    verdicts: Mapping[str, _Verdict],
    run: TestRun,
    *,
    gate: bool = False,
) -> SubScore:
    passed = sum(1 for one in ids if verdicts[one].passed)
    reason = f"{passed} of {len(ids)} passed"
    if run.flags:
        reason = f"tampering: {', '.join(run.flags)}"
    elif not run.complete:
        reason = f"the run did not end as it should: {run.why}"
    elif unseen := sum(1 for one in ids if verdicts[one].outcome == "missing"):
        reason += f", {unseen} not found"
    ordered = sorted(ids, key=lambda one: verdicts[one].passed)  # what went wrong comes first
    return SubScore(
        name=name,
        value=passed / len(ids),
        gate=gate,
        reason=reason,
        flags=run.flags,
        metadata=record_evidence(
            {
                "passed": f"{passed} of {len(ids)}",
                "tests": [_row(one, verdicts[one]) for one in ordered],
            }
        ),
    )


def _row(name: str, verdict: _Verdict) -> dict[str, object]:
    said = noted(
        found_as=[] if verdict.seen == (name,) else list(verdict.seen),
        nearest=list(verdict.nearest),
        message="" if verdict.passed else verdict.message,
    )
    return {"id": name, "outcome": verdict.outcome, **said}


def _evidence(command: str, run: TestRun) -> dict[str, Json]:
    result = run.result
    evidence: dict[str, Json] = {
        **run.learned,
        "command": command,
        "exit_code": result.exit_code,
        "seconds": round(result.seconds, 3),
        "isolation": run.isolation,
        "channel": run.channel,
        "sandbox": result.tier,
        "stdout": result.stdout,
        "stderr": result.stderr,
        **noted(
            timed_out=result.status == "timed_out",
            why=run.why,
            undecided=list(run.undecided),
            notes=list(run.notes),
        ),
    }
    bounded = record_evidence(evidence)
    if run.needs:
        bounded["needs"] = {test: list[Json](entries) for test, entries in run.needs.items()}
    return bounded
