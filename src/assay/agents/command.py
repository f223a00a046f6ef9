"""The harness ``command``: any program, run in the agent's sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.errors import AgentError, AgentTimeoutError, InputError, nearest
from assay.types.run import Run
from assay.types.steps import AgentStep
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.sandbox import Mount

__all__ = ["CommandAgent", "check_template"]

_PLACES = ("prompt", "model", "workspace", "sandbox", "artifacts_dir", "mcp")
_WORKSPACE = "/workspace"
_FIND = 'command -v -- "$1"'


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAgent:
    """Runs a command in the workspace; what it prints is its answer.

    Attributes:
        argv: The command; ``{prompt}``, ``{model}`` and ``{workspace}`` are filled in, once and
            only in the template, so that nothing in a prompt is taken for a place.
        env: Variables for it.
        timeout_s: Seconds it may work.
        network: Whether it may reach the network.
        mounts: Directories of this machine that it may read.
        name: The harness's name.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 1800.0
    network: bool = False
    mounts: Sequence[str] = ()
    name: str = "command"

    def __post_init__(self) -> None:
        check_template(self.argv)

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If the command cannot be started, or there is no workspace.
            AgentTimeoutError: If it worked longer than it may; its output so far is kept.
        """
        from assay.sandbox import Limits, Mount, run_command

        if run.workspace is None:
            raise AgentError(f"harness {self.name!r} needs a task with a workspace")
        workspace = run.workspace
        values = {"prompt": run.prompt_text, "model": run.model}
        values |= dict.fromkeys(("workspace", "sandbox", "artifacts_dir"), _WORKSPACE)
        argv = [_fill(token, values) for token in self.argv]
        mounts = [Mount(source=s, target=t) for s, t in workspace.mounts]
        mounts += [Mount(source=path, target=path) for path in self.mounts]
        await self._require_program(argv[0], workspace, mounts)
        result = await run_command(
            argv,
            workspace=workspace.path,
            changes="keep",
            env={**workspace.env, **self.env},
            mounts=mounts,
            network=self.network,
            limits=Limits(wall_seconds=self.timeout_s),
        )
        run.record(AgentStep(content=result.stdout, done=True, model=run.model or None))
        run.trace.content = result.stdout.strip()
        run.trace.extra["exit_code"] = result.exit_code
        run.trace.extra["stderr"] = result.stderr[-4000:]
        if result.status == "timed_out":
            raise AgentTimeoutError(
                f"harness {self.name!r} worked longer than {self.timeout_s:g} s"
            )

    async def _require_program(
        self, program: str, workspace: Workspace, mounts: Sequence[Mount]
    ) -> None:
        """Make sure that the program can be started, before the agent may leave any trace.

        Its exit status could not tell: an agent may end with the shell's "not found" itself.
        """
        from assay.sandbox import run_command

        found = await run_command(
            ["/bin/sh", "-c", _FIND, "sh", program],
            workspace=workspace.path,
            env={**workspace.env, **self.env},
            mounts=mounts,
        )
        if found.exit_code != 0:
            raise AgentError(
                f"harness {self.name!r}: no program {program!r} in the sandbox",
                hint="it must be under /usr, in the workspace, or in a directory under `mounts`",
            )


def check_template(argv: Sequence[str]) -> None:
    """Refuse an empty template, or a place in it that is not known.

    Raises:
        InputError: Naming the place.
    """
    import re

    if not argv:
        raise InputError("a command harness needs an argv")
    for token in argv:
        for place in re.findall(r"\{(\w+)\}", token):
            if place not in _PLACES:
                hint = nearest(place, list(_PLACES))
                raise InputError(f"argv has an unknown place {{{place}}}", hint=hint)


def _fill(token: str, values: Mapping[str, str]) -> str:
    import re

    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], ""), token)
