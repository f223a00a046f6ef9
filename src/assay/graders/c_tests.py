"""The kind ``c_tests``: the author's tests in C, and the submission in another process.

A kind of its own, beside ``tests``: there is no command to run and no runner to listen to. What it
takes are headers, sources and how pointers are carried. The judge runs in one sandbox, the
submission in another, with a socket between them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from assay.errors import GraderError, SandboxError
from assay.graders.base import Grader
from assay.graders.c.build import BuildJob, CTests, build_judge, build_submission, find_sources
from assay.graders.testing.hidden import hidden_files, lay_out, read_inject
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.scoring.results import SubScore
from assay.scratch import scratch
from assay.types.submission import Workspace

_LOG_BYTES = 64 * 1024
_LONGEST_MESSAGE = 1_000
_OWN_FAILURES = frozenset({2, 3, 4, 5, 6, 7, 126, 127})
"""Exit statuses of the runner, and of the sandbox's shell, that no test decides."""


async def run_c_tests(command: CTests, workspace: Workspace) -> TestRun:
    """Build both sides and run the tests, each against a fresh process of the submission."""
    with ExitStack() as stack:
        root = stack.enter_context(scratch("assay-c-"))
        for name in ("empty", "build", "lib", "link", "out"):
            (root / name).mkdir()
        hidden = hidden_files(read_inject(command.inject))
        pristine = Workspace(path=workspace.source or str(root / "empty"), image=workspace.image)
        sources = find_sources(command, pristine, hidden)
        judge_layer = stack.enter_context(lay_out(hidden))
        header_layer = stack.enter_context(lay_out(sources.headers))
        notes = await build_judge(command, sources, judge_layer, root / "build")
        deadline = time.monotonic() + command.timeout_s
        built = await build_submission(
            command, sources, workspace, header_layer, into=root / "lib", seconds=_left(deadline)
        )
        jobs = sources.jobs
        expected = tuple(sorted(job.id for job in jobs))
        run = partial(TestRun, expected=expected, channel="private", notes=notes)
        if built is None or built.exit_code != 0:
            why, result = _unbuilt(built)
            return run(outcomes={}, why=why, result=result)
        jobs_file = "".join(f"/assay/build/t{job.program}\t{job.function}\n" for job in jobs)
        (root / "out" / "jobs").write_text(jobs_file.replace("\t\n", "\n"))
        judge = asyncio.create_task(
            _judge(command, sources.tree, judge_layer, root, _left(deadline))
        )
        hosts = asyncio.create_task(_hosts(workspace, root, deadline, most=len(jobs) + 2))
        result, is_judge = await _first_of(judge, hosts)
        if is_judge and result.status == "exited" and result.exit_code in _OWN_FAILURES:
            raise SandboxError(f"the runner of C tests failed: exit status {result.exit_code}")
        outcomes, why = _told(jobs, root / "out")
        if why and result.status == "timed_out":
            why = "the tests ran over their time"
        return run(outcomes=outcomes, why=why, result=result)


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.1)


async def _judge(
    command: CTests, tree: Workspace, layer: str, root: Path, seconds: float
) -> CommandResult:
    """Run every test; what came of them stands in ``out``, which no submission sees."""
    runner = ["/assay/build/runner", "/assay/link/socket", "/assay/out"]
    return await run_command(
        [*runner, str(command.test_timeout_s)],
        workspace=tree,
        layers=(layer,),
        mounts=[
            Mount(source=str(root / "build"), target="/assay/build"),
            Mount(source=str(root / "link"), target="/assay/link", writable=True),
            Mount(source=str(root / "out"), target="/assay/out", writable=True),
        ],
        limits=Limits(wall_seconds=seconds),
    )


async def _hosts(workspace: Workspace, root: Path, deadline: float, *, most: int) -> CommandResult:
    """Keep a sandbox up in which the submission answers, also where it ends its own."""
    count = 0
    while True:
        result = await run_command(
            ["/assay/host", "/assay/link/socket", "/assay/lib/library.so"],
            workspace=workspace,
            mounts=[
                Mount(source=str(root / "build" / "host"), target="/assay/host"),
                Mount(source=str(root / "lib"), target="/assay/lib"),
                Mount(source=str(root / "link"), target="/assay/link"),
            ],
            limits=Limits(wall_seconds=_left(deadline)),
        )
        if count == 0 and result.exit_code in (126, 127):
            said = result.stderr.strip()[-500:]
            raise SandboxError(f"the submission's process could not be started: {said}")
        count += 1
        if result.status == "timed_out" or count == most:
            return result


async def _first_of(
    judge: asyncio.Task[CommandResult], hosts: asyncio.Task[CommandResult]
) -> tuple[CommandResult, bool]:
    """What the judge did, or, where it has nobody left to call, what the last host did."""
    try:
        await asyncio.wait({judge, hosts}, return_when=asyncio.FIRST_COMPLETED)
        is_judge = judge.done()
        return await (judge if is_judge else hosts), is_judge
    finally:
        for task in (judge, hosts):
            task.cancel()
        await asyncio.gather(judge, hosts, return_exceptions=True)


def _unbuilt(built: CommandResult | None) -> tuple[str, CommandResult]:
    """A submission that does not compile has passed nothing: why, and what the compiler did."""
    if built is None:
        return "there is no source of the submission to compile", CommandResult(
            status="exited", exit_code=None, stdout="", stderr="", truncated=False, seconds=0.0,
            tier="bwrap",
        )  # fmt: skip
    late = " in the time it has" if built.status == "timed_out" else ""
    return f"the submission does not compile{late}", built


def _told(jobs: Sequence[BuildJob], out: Path) -> tuple[dict[str, TestOutcome], str]:
    """Read the report, and why it has no end; a test that it does not name was never finished."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (out / "report").read_text(encoding="utf-8").splitlines()
    outcomes: dict[str, TestOutcome] = {}
    for line in lines:
        words = line.split()
        if len(words) == 4:
            job = jobs[int(words[0])]
            outcomes[job.id] = _outcome(
                job, words[1], int(words[2]), float(words[3]), out / words[0]
            )
    is_whole = lines[-1:] == ["end"]
    return outcomes, "" if is_whole else "the submission ended every process that it was given"


def _outcome(job: BuildJob, how: str, code: int, seconds: float, log: Path) -> TestOutcome:
    if how == "exit" and code == 0:
        return TestOutcome(id=job.id, outcome="passed", seconds=seconds)
    if how == "exit" and code in (96, 127):
        raise GraderError(f"{job.id} could not be started")
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(log.stat().st_size - _LOG_BYTES, 0))
        said = file.read(_LOG_BYTES).decode("utf-8", "replace").strip()[-_LONGEST_MESSAGE:]
        ending = {"late": "it ran over its time", "signal": f"it ended by signal {code}"}.get(
            how, f"its exit status was {code}"
        )
        return TestOutcome(
            id=job.id, outcome="failed", seconds=seconds, message=f"{said}\n{ending}".strip()
        )
    return TestOutcome(id=job.id, outcome="failed", seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class CTestsGrader(CTests, Grader):
    """Fraction of hidden tests in C that pass, judged in a process apart from the submission.

    The tests are compiled against the author's own headers, in a sandbox that no file of the
    submission ever enters. The functions that the headers declare are stand-ins there: each call is
    carried to the submission's process, in a sandbox of its own, and plain values come back.

    Scored 0: a submission that does not compile. A test during which its process dies, hangs or
    answers nonsense has failed. An error: tests that do not compile, or that call a function which
    cannot be carried.

    Attributes:
        headers: Globs of the author's headers that declare what is tested.
        sources: Globs of the submission's ``.c`` files.
        tests: Globs of the test files; by default the hidden ``.c`` files.
        inject: Hidden files: a path goes to the workspace root, ``{src, dest}`` elsewhere.
        flags: Flags for the compiler, such as ``-lm``.
        buffers: By function and parameter (or ``return``): how many elements a pointer leads to,
            as a number or an expression of C over the parameters, or ``string``.
        handles: Types whose pointers no test looks into.
        pass_threshold: The value from which the grader calls itself passed. A gate needs 1.
        timeout_s: Seconds for everything together.
        test_timeout_s: Seconds for each test.
    """

    name: ClassVar[str] = "c_tests"

    def __post_init__(self) -> None:
        super().__post_init__()
        from assay.graders.stubs.treesitter import require_grammar

        read_inject(self.inject)
        require_grammar("c")

    async def score(self, workspace: Workspace) -> SubScore:
        """Build the tests and the submission apart, and run each test."""
        from assay.graders.tests import reason_of, test_evidence

        run = await run_c_tests(self, workspace)
        said = " ".join(["cc", *(self.flags or ()), *self.sources])
        return SubScore(
            name=self.name,
            value=run.value,
            passed=run.value >= self.pass_threshold,
            reason=reason_of(run),
            metadata=test_evidence(run, cmd=said, hidden={}),
        )
