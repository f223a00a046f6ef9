"""The harness ``command``: any program, run in the agent's sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import AgentError, AgentTimeoutError
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.tasks.harnesses import HarnessSpec
from assay.types.run import Run
from assay.types.steps import AgentStep
from assay.types.submission import Workspace

__all__ = ["CommandAgent"]

_WORKSPACE = "/workspace"
_FIND = 'command -v -- "$1"'


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAgent:
    """Runs a command in the workspace; what it prints is its answer.

    Attributes:
        spec: The command, its variables and its limits.
        network: Whether it may reach the network.
        name: The harness's name.
    """

    spec: HarnessSpec
    network: bool = False
    name: str = "command"

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If the command cannot be started, or there is no workspace.
            AgentTimeoutError: If it worked longer than it may; its output so far is kept.
        """
        if run.workspace is None:
            raise AgentError(f"harness {self.name!r} needs a task with a workspace")
        workspace = run.workspace
        argv = self.spec.command(prompt=run.prompt_text, model=run.model, workspace=_WORKSPACE)
        mounts = [Mount(source=source, target=target) for source, target in workspace.mounts]
        mounts += [Mount(source=path, target=path) for path in self.spec.mounts]
        await self._require_program(argv[0], workspace, mounts)
        result = await run_command(
            argv,
            workspace=workspace.path,
            changes="keep",
            env={**workspace.env, **self.spec.env},
            mounts=mounts,
            network=self.network,
            limits=Limits(wall_seconds=self.spec.timeout_s),
        )
        run.record(
            AgentStep(
                content=result.stdout, done=True, model=run.model or None, error=_ending(result)
            )
        )
        run.trace.content = result.stdout.strip()
        run.trace.extra["exit_code"] = result.exit_code
        run.trace.extra["stderr"] = result.stderr[-4000:]
        if result.status == "timed_out":
            raise AgentTimeoutError(
                f"harness {self.name!r} worked longer than {self.spec.timeout_s:g} s"
            )

    async def _require_program(
        self, program: str, workspace: Workspace, mounts: Sequence[Mount]
    ) -> None:
        """Make sure that the program can be started, before the agent may leave any trace.

        Its exit status could not tell: an agent may end with the shell's "not found" itself.
        """
        found = await run_command(
            ["/bin/sh", "-c", _FIND, "sh", program],
            workspace=workspace.path,
            env={**workspace.env, **self.spec.env},
            mounts=mounts,
        )
        if found.exit_code != 0:
            raise AgentError(
                f"harness {self.name!r}: no program {program!r} in the sandbox",
                hint="it must be under /usr, in the workspace, or in a directory under `mounts`",
            )


def _ending(result: CommandResult) -> str | None:
    """How the command ended, if not well: shown with the cell, and no reason not to grade it."""
    if result.status == "exited" and result.exit_code == 0:
        return None
    ended = {"timed_out": "was out of time", "output_limit": "wrote too much output"}
    how = ended.get(result.status, f"ended with exit status {result.exit_code}")
    said = result.stderr.strip()[-300:]
    return f"the agent {how}: {said}" if said else f"the agent {how}"
