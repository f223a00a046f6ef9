"""Lay out what an agent starts from: source, environment, set-up."""

from __future__ import annotations

import ast
import asyncio
import os
from pathlib import Path

from assay.errors import InputError, ProvisionError, SkippedError, SourceError
from assay.eval.provision import provision
from assay.sandbox import open_inside
from assay.tasks.case import Case
from assay.types.submission import Workspace

__all__ = ["lay_out"]


async def lay_out(case: Case, directory: Path, cache: str) -> Workspace:
    """Fill a directory with what the agent starts from.

    Args:
        case: The case.
        directory: Where; it does not exist yet.
        cache: Directory for fetched sources and built environments.

    Raises:
        SkippedError: If the source of an optional case cannot be had.
        SourceError: If that of a required one cannot.
        ProvisionError: If the environment or the set-up fails.
    """
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
