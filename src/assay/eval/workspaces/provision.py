"""Lay out a case's workspace, and build its environment."""

from __future__ import annotations

import ast
import asyncio
import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from assay.errors import InputError, ProvisionError, SkippedError, SourceError
from assay.sandbox import Limits, Mount, open_inside, run_command, run_on_host
from assay.scratch import to_end
from assay.tasks.blocks import EnvironmentSpec
from assay.tasks.case import Case
from assay.types.submission import Workspace

_LOCK_SECONDS = 0.1


async def provision(case: Case, workspace: Workspace, cache: str) -> Workspace:
    """Have the case's image, and build its environment.

    Returns:
        The workspace with the image, the variables and the mounts that commands in it need.

    Raises:
        ProvisionError: With the command that failed and the end of its output.
    """
    if case.image is not None:
        from assay.eval.workspaces.images import prepare

        image = await to_end(prepare, case.image, cache, case=case.id)
        workspace = replace(workspace, image=image)
    spec = case.environment
    if spec is None:
        return workspace
    venv = None
    if spec.kind in ("pip-venv", "uv") and spec.venv:
        venv = await _virtual_environment(spec, case, Path(cache, "environments"))
        workspace = _use(venv, workspace)
    workspace = replace(workspace, env={**workspace.env, **spec.env})
    if venv is not None and spec.install == "editable":
        # After the variables: a build without a repository is told its version by one.
        workspace = await _install_editable(workspace, venv, spec)
    for line in spec.commands:
        await _run_inside(["/bin/sh", "-c", line], workspace, spec.timeout_s)
    return workspace


async def _virtual_environment(spec: EnvironmentSpec, case: Case, directory: Path) -> Path:
    venv = directory / _digest(spec, case)
    done = venv / ".complete"
    if done.exists():
        return venv
    directory.mkdir(parents=True, exist_ok=True)
    lock = await _lock(directory / f"{venv.name}.lock")
    with lock:
        if not done.exists():
            shutil.rmtree(venv, ignore_errors=True)
            await _build(spec, venv, case)
            done.touch()
    return venv


async def _lock(path: Path) -> TextIO:
    """A lock that other processes respect, until it is closed; no environment is built twice.

    It is tried again and again rather than waited for: another cell of this very process may hold
    it, whose build needs the event loop.
    """
    file = path.open("w")
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_LOCK_SECONDS)
        except BaseException:
            file.close()
            raise
        else:
            return file


async def _build(spec: EnvironmentSpec, venv: Path, case: Case) -> None:
    uv = shutil.which("uv") if spec.kind == "uv" else None
    if spec.kind == "uv" and uv is None:
        raise ProvisionError(
            f"case {case.id!r}: environment.kind is uv, but there is no uv", hint="pip install uv"
        )
    system = ["--system-site-packages"] if spec.system_site_packages else []
    create = [uv, "venv"] if uv else [sys.executable, "-m", "venv", "--copies"]
    await _run_here([*create, *system, str(venv)], spec.timeout_s)
    python = str(venv / "bin" / "python")
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    wanted = [*spec.requirements]
    for file in case.requirement_files:
        wanted += ["-r", file]
    if wanted:
        quiet = ["--quiet"] if uv else ["--quiet", "--disable-pip-version-check"]
        await _run_here([*install, *quiet, *spec.pip_args, *wanted], spec.timeout_s)


def _digest(spec: EnvironmentSpec, case: Case) -> str:
    contents = [Path(file).read_text(encoding="utf-8") for file in case.requirement_files]
    made_of = [
        spec.kind,
        platform.python_implementation(),
        platform.python_version(),
        platform.machine(),
        sys.base_prefix,
        spec.system_site_packages,
        sorted(spec.requirements),
        contents,
        list(spec.pip_args),
    ]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:24]


def _use(venv: Path, workspace: Workspace) -> Workspace:
    path = f"{venv}/bin:/usr/local/bin:/usr/bin:/bin"
    env = {**workspace.env, "PATH": path, "VIRTUAL_ENV": str(venv)}
    mounts = [(str(venv), str(venv))]
    base = os.path.realpath(sys.base_prefix)
    if not Path(base).is_relative_to("/usr"):
        mounts.append((base, base))
        if base != sys.base_prefix:
            mounts.append((base, sys.base_prefix))
    return replace(workspace, env=env, mounts=(*workspace.mounts, *mounts))


async def _install_editable(workspace: Workspace, venv: Path, spec: EnvironmentSpec) -> Workspace:
    """Install the source in place, into a copy of the environment that is this cell's own.

    The build runs the source's own code, so it runs in the sandbox; the copy is shown there under
    the path of the original, which the environment's scripts have in them.
    """
    own = Path(workspace.path).parent / "environment"
    await to_end(shutil.copytree, venv, own, symlinks=True)
    python = f"{venv}/bin/python"
    mounts = [Mount(source=str(own), target=str(venv), writable=True)]
    installer = [python, "-m", "pip", "install", "--quiet"]
    if spec.kind == "uv":
        installer = ["/opt/uv", "pip", "install", "--quiet", "--python", python]
        mounts.append(Mount(source=shutil.which("uv") or "", target="/opt/uv"))
    rest = tuple(pair for pair in workspace.mounts if pair[1] != str(venv))
    argv = [*installer, "--no-deps", *spec.pip_args, "--editable", "/workspace"]
    try:
        await _run_inside(argv, replace(workspace, mounts=rest), spec.timeout_s, mounts)
    except ProvisionError as error:
        hint = (
            "it is built in the sandbox, without this machine's pip settings: name what builds it "
            "in `requirements`, and give `pip_args: [--no-build-isolation]`"
        )
        raise ProvisionError(error.message, hint=hint) from error
    return replace(workspace, mounts=((str(own), str(venv)), *rest))


async def _run_inside(
    argv: Sequence[str], workspace: Workspace, timeout: float, mounts: Sequence[Mount] = ()
) -> None:
    result = await run_command(
        argv,
        workspace=workspace,
        changes="keep",
        mounts=mounts,
        network=True,
        limits=Limits(wall_seconds=timeout),
    )
    _require_success(argv, result.status, result.exit_code, result.stderr or result.stdout)


async def _run_here(argv: Sequence[str], timeout: float) -> None:
    limits = Limits(wall_seconds=timeout)
    result = await run_on_host(argv, cwd="/", env=dict(os.environ), limits=limits)
    _require_success(argv, result.status, result.exit_code, result.stderr or result.stdout)


def _require_success(argv: Sequence[str], status: str, exit_code: int | None, output: str) -> None:
    if exit_code != 0:
        ended = status if exit_code is None else f"exit status {exit_code}"
        command = " ".join(argv)
        raise ProvisionError(f"{command[:200]!r} ended with {ended}: {output.strip()[-800:]}")


async def lay_out(case: Case, directory: Path, cache: str) -> Workspace:
    """Fill a directory with what the agent starts from.

    Raises:
        SkippedError: If the source of an optional case cannot be had.
        SourceError: If that of a required one cannot.
        ProvisionError: If the environment or the set-up fails.
    """
    workspace = Workspace(path=str(directory))
    if case.source is None:
        if case.image is not None and case.image.workdir:
            from assay.eval.workspaces.images import copy_workdir, prepare

            image = await to_end(prepare, case.image, cache, case=case.id)
            await to_end(copy_workdir, image, str(directory))
        else:
            directory.mkdir()
    else:
        from assay.tasks.sources import materialise

        try:
            await to_end(materialise, case, str(directory), cache)
        except SourceError as error:
            if case.availability == "optional":
                raise SkippedError(f"the source cannot be fetched: {error}") from error
            raise
    if case.environment is not None or case.image is not None:
        workspace = await provision(case, workspace, cache)
    if case.setup is not None:
        for stub in case.setup.stub:
            _stub(str(directory), stub.file, stub.function)
        for line in case.setup.run:
            await _set_up(line, workspace)
    return workspace


async def _set_up(line: str, workspace: Workspace) -> None:
    result = await run_command(
        ["/bin/sh", "-c", line],
        workspace=workspace,
        changes="keep",
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
