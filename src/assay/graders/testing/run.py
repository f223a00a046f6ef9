"""Run hidden tests over a grading tree and learn, where it can be, from a channel of our own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from assay.errors import GraderError, InputError
from assay.graders.testing.attempt import Plan, TestCommand
from assay.graders.testing.commands import Invocation, read_command
from assay.graders.testing.hidden import hidden_files, lay_out, read_inject, source_text
from assay.graders.testing.outcomes import TestRun
from assay.graders.testing.prerequisites import require_program
from assay.graders.testing.private import run_until_whole
from assay.types.submission import Workspace

__all__ = ["TestCommand", "run_tests"]

_ENDED_WELL = (0, 5)
"""Exit statuses of runs without a failure; by 5 pytest and unittest say that there was no test."""

_LOADED = {
    "pytest": (".py",),
    "unittest": (".py",),
    "node": (".js", ".cjs", ".mjs"),
    "unknown": (".py", ".js", ".cjs", ".mjs"),
}
"""Suffixes of the sources that a runner loads from its brief."""


async def run_tests(command: TestCommand, workspace: Workspace) -> TestRun:
    """Run the tests.

    A test that ends the process is failed, and the others are run again without it.

    Raises:
        InputError: For a command whose outcomes could only be guessed.
        GraderError: Something that the submission cannot cause is missing, e.g. pytest.
        SandboxError: The sandbox failed.
    """
    run = await _run(command, workspace)
    if not run.expected and (run.channel in ("private", "apart") or run.complete):
        await _require_tests(command, workspace)
    return run


async def _require_tests(command: TestCommand, workspace: Workspace) -> None:
    """Refuse a command that has no tests to run, whatever the submission is."""
    if workspace.source is None and not command.inject:
        return
    with tempfile.TemporaryDirectory(prefix="assay-source-") as nothing:
        pristine = replace(workspace, path=workspace.source or nothing, changes=())
        run = await _run(command, pristine)
    if not run.expected and run.result.exit_code in _ENDED_WELL:
        raise GraderError(
            f"{command.cmd!r} has no test of the author's to run",
            hint="inject a file with tests, or correct the paths and the selection in cmd",
        )


async def _run(command: TestCommand, workspace: Workspace) -> TestRun:
    if not command.timeout_s > 0:
        raise InputError("timeout_s must be more than 0")
    inject = read_inject(command.inject)
    files = hidden_files(inject)
    invocation = read_command(command.cmd, workspace.source or workspace.path)
    if invocation.runner is None and not command.declares:
        raise InputError(
            f"nothing declares how to read the outcomes of {invocation.program!r}",
            hint="declare junit_xml or format",
        )
    told = {dest: source_text(files[dest]) for dest in loaded_sources(files, invocation)}
    deadline = time.monotonic() + command.timeout_s
    plan = partial(
        Plan,
        command=command,
        workspace=workspace,
        invocation=invocation,
        told=told,
        deadline=deadline,
        hidden=tuple(files),
    )
    if invocation.runner not in (None, "unknown") or not command.declares:
        open_files = hidden_files([entry for entry in inject if entry.on_disk])
        unseen = () if command.isolation == "process" else told.keys() - open_files.keys()
        with lay_out(files, told=unseen) as layer:
            whole = plan(layer=layer)
            run = await run_until_whole(whole)
            await require_program(whole, run.result)
            return run
    from assay.graders.testing.foreign import foresee
    from assay.graders.testing.reports import run_reported

    # A command that may turn out to read its tests from disk must find them there.
    foreknown = foresee(command, invocation, files)
    with lay_out(files, planted=foreknown.planted) as layer:
        whole = plan(layer=layer)
        run = await run_reported(whole, foreknown)
        await require_program(whole, run.result)
        return run


def loaded_sources(files: Mapping[str, str], invocation: Invocation) -> list[str]:
    """The hidden files that the runner loads from its brief; a script that is run stays a file."""
    suffixes = _LOADED.get(invocation.runner or "", ())
    scripts = {PurePosixPath(name).name for name in invocation.scripts}
    return [
        dest
        for dest in files
        if dest.endswith(suffixes) and PurePosixPath(dest).name not in scripts
    ]
