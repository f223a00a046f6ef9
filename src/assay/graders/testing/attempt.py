"""One run of a test command in the sandbox, with the channel open beside it.

Judged apart, it runs in two sandboxes. The judge's tree is the pristine source with the hidden
files over it, and holds nothing of the submission. The host's tree is the grading tree, and holds
no hidden file. They meet at one socket: the host can only connect to it, and the judge is handed
the listening end over its channel. Where the reference was seen to need it, one
bounded directory for temporary files is shown to both; in it the judge follows no link.
"""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from assay.errors import GraderError
from assay.frozen import frozen
from assay.graders.testing.channel import Brief, RunnerChannel, open_channel
from assay.graders.testing.commands import Invocation
from assay.graders.testing.contract import FILES, Contract
from assay.graders.testing.hidden import Injected
from assay.graders.testing.outcomes import Fresh, Mode
from assay.graders.testing.runners import CHANNEL, INSIDE, surroundings
from assay.graders.testing.shared_files import SHARED, SharedFiles, shared_files
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.scoring.json_safe import Json
from assay.scratch import scratch_beside
from assay.types.submission import Workspace

_LINK = "/opt/assay/link"
"""Where the host's sandbox shows the socket of the judge."""

_HOST = f"{INSIDE}/boundary/host.py"
_NODE_HOSTS = f"{INSIDE}/boundary/hosts.cjs"
_LONGEST_CALL = 60.0


@frozen(kw_only=True)
class TestCommand:
    """A command that runs tests, and how to learn what came of them."""

    __test__ = False

    cmd: str
    inject: Sequence[str | Injected] = ()
    junit_xml: Sequence[str] = ()
    format: str | None = None
    timeout_s: float = 300.0
    shuffle: bool = True
    # Exactly the tests that are expected, where the case says; empty: they are found.
    ids: Sequence[str] = ()
    loose: Sequence[str] = ()
    isolation: Mode = "shared"
    fresh: Fresh = "module"
    # What ``process`` permits, because the reference needs it.
    contract: Contract | None = None

    @property
    def declares(self) -> bool:
        """Whether it says how else to learn the outcomes than from a runner of ours."""
        return bool(self.junit_xml or self.format)


@frozen(kw_only=True)
class RunnerPlan:
    """Everything that the runs of one command have in common."""

    command: TestCommand
    workspace: Workspace
    invocation: Invocation
    layer: str
    told: Mapping[str, str]
    deadline: float
    hidden: Sequence[str] = ()


async def attempt(
    plan: RunnerPlan,
    *,
    argv: Sequence[str] = (),
    skip: Sequence[str] = (),
    mounts: Sequence[Mount] = (),
    output_bytes: int = 64 * 1024,
) -> tuple[RunnerChannel, CommandResult]:
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
        place = surroundings(plan.invocation, command.cmd, plan.workspace, channel=channel.path)
        result = await run_command(
            argv or ["/bin/sh", "-c", command.cmd],
            workspace=place,
            layers=(plan.layer,),
            mounts=mounts,
            limits=Limits(wall_seconds=left, output_bytes=output_bytes),
        )
    return channel, result


async def _attempt_apart(
    plan: RunnerPlan, *, skip: Sequence[str], output_bytes: int
) -> tuple[RunnerChannel, CommandResult]:
    """Run the command once, over a tree without the submission, beside a host of it."""
    left = max(plan.deadline - time.monotonic(), 0.1)
    command = plan.command
    contract = command.contract or Contract()
    apart: dict[str, Json] = {
        "hidden": [*plan.hidden],
        "allow": [*command.loose],
        "fresh": command.fresh,
        "contract": contract.to_json(),
        "shared": [f"{SHARED}/"] if contract.shares_files else [],
        "seconds": min(_LONGEST_CALL, command.timeout_s / 2),
    }
    brief = Brief(shuffle=command.shuffle, skip=skip, loose=command.loose, apart=apart)
    place = surroundings(plan.invocation, command.cmd, plan.workspace, apart=True)
    is_node = plan.invocation.runner == "node"
    async with (
        scratch_beside("assay-apart-") as home,
        shared_files(home, contract) as files,
        _host_of(place, home, node=is_node, seconds=left, files=files) as listener,
        open_channel(brief, handed=listener) as channel,
    ):
        (nothing := home / "nothing").mkdir()
        told = Mount(source=channel.path, target=CHANNEL)
        judge = run_command(
            ["/bin/sh", "-c", command.cmd],
            workspace=replace(place, path=place.source or str(nothing)),
            layers=(plan.layer,),
            env=files.env,
            mounts=[told, *files.of_the_judge],
            limits=Limits(wall_seconds=left, output_bytes=output_bytes),
        )
        result, grown = await files.bounded(judge)
        if grown:
            channel.heard.tampering.append(grown)
            # Code of the submission ran, and it was no test that ended the run.
            channel.heard.ready, channel.heard.started = True, None
        if contract.learns and files.were_used():
            channel.heard.needs.setdefault("", []).append(FILES)
    return channel, result


@asynccontextmanager
async def _host_of(
    place: Workspace, home: Path, *, node: bool, seconds: float, files: SharedFiles
) -> AsyncGenerator[socket.socket]:
    """Run the host of a submission beside a judge.

    Gives the socket to which it connects. On leaving, every process of it is dead.
    """
    import asyncio

    link = home / "link"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        listener.bind(str(link))
        link.chmod(0o666)
        listener.listen(64)
        python = place.env["ASSAY_PYTHON"]
        running = asyncio.create_task(
            run_command(
                ["node", _NODE_HOSTS] if node else [python, "-s", _HOST],
                workspace=replace(place, env={**_without_ours(place.env), **files.env}),
                mounts=[Mount(source=str(link), target=_LINK), *files.of_the_host],
                limits=Limits(wall_seconds=seconds),
            )
        )
        try:
            yield listener
            if running.done() and running.exception() is not None:
                raise GraderError(f"the submission's host did not start: {running.exception()}")
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await running


def _without_ours(env: Mapping[str, str]) -> dict[str, str]:
    """The variables for the submission: it reports to nobody."""
    path = [part for part in env.get("PATH", "").split(":") if not part.startswith(INSIDE)]
    kept = {name: text for name, text in env.items() if not name.startswith("ASSAY_")}
    python = str(Path(env["ASSAY_PYTHON"]).parent)
    return {**kept, "PATH": ":".join([python, *path]), "ASSAY_LINK": _LINK}
