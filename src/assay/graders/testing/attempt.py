"""One run of a test command in the sandbox, with the channel open beside it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.graders.testing.channel import Brief, Channel, open_channel
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import Injected
from assay.graders.testing.outcomes import Fresh, Mode
from assay.graders.testing.runners import CHANNEL, surroundings
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.types.submission import Workspace

__all__ = ["Plan", "TestCommand", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """A command that runs tests, and how to learn what came of them.

    Attributes:
        cmd: Shell line, run in the workspace with ``/bin/sh -c``.
        inject: Hidden files: paths of the case's files (to the workspace root under their own
            name) or `Injected`.
        junit_xml: Globs inside the workspace of the JUnit reports that the command writes.
        format: Name of the console format that the command prints.
        timeout_s: Seconds for all runs together.
        shuffle: Whether the tests of a file may run in any order.
        ids: Exactly the tests that are expected, where the case says; empty: they are found.
        loose: Classes of the submission, as ``module.Class``, whose equality is not questioned.
        isolation: Whether the tests share a process with what they test.
        fresh: How often ``process`` loads the submission anew.
    """

    __test__ = False

    cmd: str
    inject: Sequence[str | Injected] = ()
    junit_xml: Sequence[str] = ()
    format: str | None = None
    timeout_s: float = 300.0
    shuffle: bool = True
    ids: Sequence[str] = ()
    loose: Sequence[str] = ()
    isolation: Mode = "shared"
    fresh: Fresh = "module"

    @property
    def declares(self) -> bool:
        """Whether it says how else to learn the outcomes than from a runner of ours."""
        return bool(self.junit_xml or self.format)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the runs of one command have in common.

    Attributes:
        command: What is asked for.
        workspace: The grading tree.
        invocation: How the command starts its tests.
        layer: Directory of the hidden files, to be laid over the tree.
        told: Hidden sources that the runner is told, by path in the workspace.
        deadline: When the time is over, on the monotonic clock.
        hidden: Paths of all hidden files.
    """

    command: TestCommand
    workspace: Workspace
    invocation: Invocation
    layer: str
    told: Mapping[str, str]
    deadline: float
    hidden: Sequence[str] = ()


async def attempt(
    plan: Plan,
    *,
    argv: Sequence[str] = (),
    skip: Sequence[str] = (),
    mounts: Sequence[Mount] = (),
    output_bytes: int = 64 * 1024,
) -> tuple[Channel, CommandResult]:
    """Run the command once."""
    if plan.command.isolation == "process":
        return await _attempt_apart(plan, skip=skip, output_bytes=output_bytes)
    left = max(plan.deadline - time.monotonic(), 0.1)
    command = plan.command
    brief = Brief(
        hidden=plan.told,
        shuffle=command.shuffle,
        skip=skip,
        loose=command.loose,
    )
    async with open_channel(brief) as channel:
        env, around = surroundings(
            plan.invocation, plan.command.cmd, plan.workspace, channel=channel.path
        )
        result = await run_command(
            argv or ["/bin/sh", "-c", plan.command.cmd],
            workspace=plan.workspace.path,
            layers=(plan.layer,),
            env=env,
            mounts=[*around, *mounts],
            limits=Limits(wall_seconds=left, output_bytes=output_bytes),
        )
    return channel, result


async def _attempt_apart(
    plan: Plan, *, skip: Sequence[str], output_bytes: int
) -> tuple[Channel, CommandResult]:
    """Run the command once, over a tree without the submission, beside a host of it."""
    from assay.graders.testing.process import SHARED, host_of, judge_brief

    left = max(plan.deadline - time.monotonic(), 0.1)
    command = plan.command
    apart = judge_brief(
        [*plan.hidden], allow=[*command.loose], fresh=command.fresh, timeout_s=command.timeout_s
    )
    brief = Brief(shuffle=command.shuffle, skip=skip, loose=command.loose, apart=apart)
    env, mounts = surroundings(
        plan.invocation, command.cmd, plan.workspace, channel="/", apart=True
    )
    around = [mount for mount in mounts if mount.target != CHANNEL]  # only the judge has it
    with tempfile.TemporaryDirectory(prefix="assay-nothing-") as nothing:
        host = host_of(
            plan.workspace.path,
            node=plan.invocation.runner == "node",
            env=env,
            mounts=around,
            seconds=left,
        )
        async with host as running, open_channel(brief, handed=running.listener) as channel:
            told = Mount(source=channel.path, target=CHANNEL)
            result = await run_command(
                ["/bin/sh", "-c", command.cmd],
                workspace=plan.workspace.source or nothing,
                layers=(plan.layer,),
                env={**env, "TMPDIR": SHARED},
                mounts=[*around, told, running.mount],
                limits=Limits(wall_seconds=left, output_bytes=output_bytes),
            )
    return channel, result
