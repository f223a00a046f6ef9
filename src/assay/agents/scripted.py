"""An agent that leaves exactly what it was told to: for floors and cheats, which no model plays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from assay.errors import AgentError
from assay.sandbox.host import make_directory_inside, open_inside, remove_inside
from assay.types.run import Run
from assay.types.trace import AgentStep, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeds:
    """What an agent leaves; done in the order of the fields.

    Attributes:
        deleted: Paths of the workspace to remove.
        files: Paths and contents to write; whatever is in the way goes. A file that begins with
            ``#!`` may be executed.
        links: Symbolic links: path to target.
        script: Lines for ``/bin/sh``, run in the agent's sandbox with the workspace as directory.
            Its exit status does not matter.
        steps: The trace that it reports of itself.
        answer: What it says in the end; None says nothing.
    """

    deleted: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    script: str = ""
    steps: Sequence[Step] = ()
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAgent:
    """Does what it was told, then says what it was told.

    Attributes:
        deeds: What to leave.
        timeout_s: Seconds that the script may run; what it has done by then stays.
        name: The harness's name.
    """

    deeds: Deeds
    timeout_s: float = 30.0
    name: str = "scripted"

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If the workspace does not take it.
        """
        deeds = self.deeds
        if run.workspace is not None:
            try:
                _leave(deeds, run.workspace.path)
            except OSError as error:
                raise AgentError(f"cannot write what the script leaves behind: {error}") from error
            if deeds.script:
                await self._run_script(run)
        for step in deeds.steps:
            run.record(step)
        run.trace.content = deeds.answer
        if deeds.answer is not None:
            run.record(AgentStep(content=deeds.answer, done=True))
        run.cost_usd, run.tokens = 0.0, 0

    async def _run_script(self, run: Run) -> None:
        from assay.sandbox import Limits, run_command

        assert run.workspace is not None
        result = await run_command(
            ["/bin/sh", "-c", self.deeds.script],
            workspace=run.workspace,
            changes="keep",
            limits=Limits(wall_seconds=self.timeout_s),
        )
        run.trace.extra["script"] = {
            "status": result.status,
            "exit_code": result.exit_code,
            "stderr": result.stderr[-2000:],
        }


def _leave(deeds: Deeds, root: str) -> None:
    for path in deeds.deleted:
        remove_inside(root, path)
    for path, content in deeds.files.items():
        _clear(root, path)
        mode = 0o755 if content.startswith(b"#!") else 0o644
        opened = open_inside(root, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(opened, "wb") as file:
            file.write(content)
    for path, target in deeds.links.items():
        _clear(root, path)
        os.symlink(target, os.path.join(root, path))  # noqa: PTH118, PTH211 - names need not be UTF-8


def _clear(root: str, path: str) -> None:
    """Make room for a path: directories above it, and nothing where it will be."""
    above = str(PurePosixPath(path).parent)
    if above != ".":
        try:
            make_directory_inside(root, above)
        except NotADirectoryError:
            for parent in reversed(PurePosixPath(path).parents[:-1]):
                full = os.path.join(root, parent)  # noqa: PTH118
                if os.path.islink(full) or os.path.isfile(full):  # noqa: PTH113, PTH114
                    remove_inside(root, str(parent))
            make_directory_inside(root, above)
    remove_inside(root, path)
