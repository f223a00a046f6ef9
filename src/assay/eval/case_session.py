"""Begin a case: lay out its workspace, and grade what the agent leaves there."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from assay.errors import InputError, ProvisionError, SkippedError, SourceError
from assay.eval.provision import provision
from assay.graders.apply import grade_submission
from assay.sandbox import open_inside, remove_tree
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.case import Case
from assay.tasks.task import Session
from assay.types.run import Prompt
from assay.types.submission import Submission, Workspace

__all__ = ["CaseSession", "case_session", "prompt_of"]

T = TypeVar("T")
_SMALL = 16


@asynccontextmanager
async def case_session(
    case: Case, *, cache: str | None = None, home: str | None = None
) -> AsyncGenerator[Session]:
    """A case in a directory of its own, which goes when the session ends.

    Args:
        case: The case.
        cache: Directory for fetched sources and built environments, shared by all cells; a
            private one by default.
        home: The store's directory, to keep a snapshot of what the agent leaves; None keeps none.

    Raises:
        SourceError: If the source cannot be had.
        ProvisionError: If the environment or the set-up fails.
    """
    scratch = tempfile.mkdtemp(prefix="assay-cell-")
    try:
        workspace = await _lay_out(case, Path(scratch), cache or str(Path(scratch, "cache")))
        yield CaseSession(case, workspace, home)
    finally:
        await _remove(scratch)


class CaseSession:
    """A case whose workspace is ready."""

    def __init__(self, case: Case, workspace: Workspace, home: str | None) -> None:
        self.prompt: Prompt = prompt_of(case)
        self.workspace: Workspace | None = workspace
        self.notes: dict[str, Json] = {}
        self._case = case
        self._home = home

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Keep a snapshot of the workspace, then run the case's graders."""
        if self.workspace is not None:
            _let_us_in(self.workspace.path)
        if self._home is not None and self.workspace is not None:
            from assay.store.snapshots import take_snapshot

            path, home = self.workspace.path, self._home
            kept = await _blocking(path, lambda: take_snapshot(home, path))
            self.notes["snapshot"] = kept.digest
            if kept.dropped:
                self.notes["not_kept"] = [f"{d.path}: {d.why}" for d in kept.dropped[:50]]
        complete = replace(
            submission,
            answer=submission.answer or "",
            expected=self._case.expected,
            metadata=self._case.metadata,
        )
        return await grade_submission(self._case.graders, complete)


def _let_us_in(workspace: str) -> None:
    """Undo an agent's `chmod 000 .`, which would make every command our failure to enter it."""
    with suppress(OSError):
        directory = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            mode = os.fstat(directory).st_mode
            os.chmod(f"/proc/self/fd/{directory}", stat.S_IMODE(mode) | 0o700)  # noqa: PTH101
        finally:
            os.close(directory)


def prompt_of(case: Case) -> str:
    """The prompt as one text: system prompt, prompt, and the instruction files."""
    task = case.task
    parts = [task.system_prompt] if task.system_prompt else []
    parts.append(task.prompt)
    for file in case.instruction_files:
        path = Path(file)
        parts.append(f"## {path.name}\n\n{path.read_text(encoding='utf-8')}")
    return "\n\n".join(parts)


async def _lay_out(case: Case, scratch: Path, cache: str) -> Workspace:
    if case.source is None and case.environment is None and case.setup is None:
        return Workspace(path=str(scratch))
    directory = scratch / "workspace"
    if case.source is None:
        directory.mkdir()
    else:
        from assay.tasks.sources import materialise

        try:
            await asyncio.to_thread(materialise, case, str(directory), cache)
        except SourceError as error:
            if case.availability == "optional":
                raise SkippedError(f"the source cannot be had: {error}") from error
            raise
    workspace = Workspace(path=str(directory))
    if case.environment is not None:
        workspace = await provision(case, workspace, cache)
    if case.setup is not None:
        for stub in case.setup.stub:
            _stub(str(directory), stub.file, stub.function)
        for line in case.setup.run:
            await _set_up(line, workspace)
    return workspace


async def _set_up(line: str, workspace: Workspace) -> None:
    from assay.sandbox import Mount, run_command

    result = await run_command(
        ["/bin/sh", "-c", line],
        workspace=workspace.path,
        changes="keep",
        env=workspace.env,
        mounts=[Mount(source=s, target=t) for s, t in workspace.mounts],
    )
    if result.exit_code != 0:
        tail = (result.stderr or result.stdout).strip()[-500:]
        raise ProvisionError(f"set-up command {line!r} ended with {result.exit_code}: {tail}")


def _stub(workspace: str, file: str, function: str) -> None:
    """Take the body of every function of that name away, keeping its docstring."""
    try:
        with os.fdopen(open_inside(workspace, file, os.O_RDWR), "r+", -1, "utf-8") as handle:
            stubbed = _without_body(handle.read(), file, function)
            handle.seek(0)
            handle.truncate()
            handle.write(stubbed)
    except (OSError, SyntaxError) as error:
        raise InputError(f"setup.stub: cannot change {file}: {error}") from error


def _without_body(source: str, file: str, function: str) -> str:
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    if not found:
        raise InputError(f"setup.stub: {file} has no function {function!r}")
    # From the last one up, so that line numbers of the others stay true; comments are kept.
    for node in sorted(found, key=lambda item: item.lineno, reverse=True):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            continue
        if body[0].lineno == node.lineno:  # def f(): return 1
            head = lines[node.lineno - 1][: body[0].col_offset].rstrip()
            indent = " " * (node.col_offset + 4)
            new = [f"{head}\n", f"{indent}raise NotImplementedError()\n"]
            lines[node.lineno - 1 : node.end_lineno] = new
            continue
        indent = lines[body[0].lineno - 1][: body[0].col_offset]
        lines[body[0].lineno - 1 : node.end_lineno] = [f"{indent}raise NotImplementedError()\n"]
    return "".join(lines)


async def _remove(scratch: str) -> None:
    """Remove a cell's directory, also one that an agent made hard to remove."""
    try:
        await _blocking(scratch, lambda: shutil.rmtree(scratch))
    except (OSError, RecursionError):
        await remove_tree(scratch)


async def _blocking(directory: str, work: Callable[[], T]) -> T:
    """Do something to a directory: in a thread, unless it is so small that a thread costs more."""
    try:
        with os.scandir(directory) as entries:
            first = list(islice(entries, _SMALL + 1))
    except OSError:
        first = []
    if len(first) <= _SMALL and all(entry.is_file(follow_symlinks=False) for entry in first):
        return work()
    return await asyncio.to_thread(work)
