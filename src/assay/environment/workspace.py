"""A workspace that an environment declares: every session of its templates gets one of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from weakref import finalize

from assay.environment.state import scope_of_session
from assay.errors import InputError
from assay.types.submission import Workspace

if TYPE_CHECKING:
    from assay.sandbox import CommandResult
    from assay.tasks.blocks import ContainerSpec
    from assay.tasks.case import Case
    from assay.tasks.origin import Source
    from assay.tasks.permitted import SubmissionSpec

_MOST_BYTES = 16 << 20


def workspace_case(
    name: str,
    source: str | os.PathLike[str] | Source | None,
    container: str | ContainerSpec | None,
    setup: Sequence[str],
    submission: SubmissionSpec | None,
    *,
    network: bool,
) -> Case:
    """A workspace as what is laid out and graded everywhere: a case, which asks nothing itself."""
    from assay.tasks.blocks import CaseTask, CellLimits, ContainerSpec, Setup
    from assay.tasks.case import Case
    from assay.tasks.origin import Source
    from assay.tasks.permitted import SubmissionSpec

    if isinstance(source, str | os.PathLike):
        directory = Path(source).absolute()
        if not directory.is_dir():
            raise InputError(
                f"the workspace of {name!r} is to be a copy of {directory}, which is no directory",
                hint="beside this file it is `Path(__file__).parent / ...`",
            )
        source = Source(path=str(directory))
    return Case(
        id=name,
        task=CaseTask(prompt="as the template says"),
        graders=(),
        source=source,
        container=ContainerSpec(image=container) if isinstance(container, str) else container,
        setup=Setup(run=tuple(setup)) if setup else None,
        limits=CellLimits(network=network),
        submission=submission or SubmissionSpec(),
        file="",
        root=str(Path.cwd()),
    )


class SessionWorkspace:
    """The workspace of the session that is at work: a function that gives it, and what it can do.

    While the agent works, it is the directory that the agent works in. While a template grades, it
    is the grading tree: the source with those changes of the agent that are permitted.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self._cache = ""

    @property
    def cache(self) -> str:
        """Directory for what is fetched, once for all sessions; it goes with the process."""
        if not self._cache:
            self._cache = mkdtemp(prefix="assay-environment-")
            finalize(self, rmtree, self._cache, ignore_errors=True)
        return self._cache

    def __call__(self) -> Workspace:
        """The workspace, as graders take it."""
        scope = scope_of_session()
        if scope is None or scope.workspace is None or scope.declared is not self:
            raise InputError(
                "no session with this workspace is at work here",
                hint="give it to the template: @env.template(workspace=...)",
            )
        return scope.workspace

    async def run(
        self,
        command: str | Sequence[str],
        *,
        hidden: str | os.PathLike[str] | None = None,
        keep: bool = False,
        seconds: float = 300.0,
    ) -> CommandResult:
        """Run a command in it, in the sandbox, without a network."""
        from assay.graders.testing.runners import equipped
        from assay.sandbox import Limits, run_command

        workspace = self()
        if keep and (hidden is not None or workspace.submitted is not None):
            raise InputError(
                "what is graded is not changed, and hidden files stay hidden",
                hint="keep=True is for a set-up, before the prompt",
            )
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else [*command]
        return await run_command(
            argv,
            workspace=equipped(" ".join(argv), workspace),
            changes="keep" if keep else "discard",
            layers=() if hidden is None else (os.fspath(hidden),),
            limits=Limits(wall_seconds=seconds),
        )

    def read(self, path: str) -> str | None:
        """The text of a file in it; None where there is no plain file, or one above 16 MiB.

        Links are not followed: an agent may have left them.
        """
        import stat

        from assay.sandbox import open_inside

        root = self().path
        try:
            opened = open_inside(root, path, os.O_RDONLY)
        except (OSError, ValueError):
            return None
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                return None
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
