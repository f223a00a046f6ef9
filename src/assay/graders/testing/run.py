"""Run hidden tests over a grading tree and learn, where it can be, from a channel of our own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

from assay.errors import InputError
from assay.graders.testing.attempt import Plan, TestCommand
from assay.graders.testing.commands import Invocation, read_command
from assay.graders.testing.hidden import hidden_files, lay_out, read_inject, source_text
from assay.graders.testing.outcomes import TestRun
from assay.graders.testing.private import run_until_whole
from assay.types.submission import Workspace

__all__ = ["TestCommand", "run_tests"]

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

    Args:
        command: What to run.
        workspace: The grading tree. It is not changed.

    Raises:
        InputError: For a command whose outcomes could only be guessed.
        GraderError: Something that the submission cannot cause is missing, e.g. pytest.
        SandboxError: The sandbox failed.
    """
    if not command.timeout_s > 0:
        raise InputError("timeout_s must be more than 0")
    files = hidden_files(read_inject(command.inject))
    invocation = read_command(command.cmd, workspace.source or workspace.path)
    if invocation.runner is None and not command.declares:
        raise InputError(
            f"nothing says how to learn the outcomes of {invocation.program!r}",
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
    )
    if invocation.runner not in (None, "unknown") or not command.declares:
        with lay_out(files, told=told) as layer:
            return await run_until_whole(plan(layer=layer))
    from assay.graders.testing.foreign import foresee
    from assay.graders.testing.reported import run_reported

    # A command that may turn out to read its tests from disk must find them there.
    foreknown = foresee(command, invocation, files, workspace.source)
    with lay_out(files, planted=foreknown.planted) as layer:
        return await run_reported(plan(layer=layer), foreknown)


def loaded_sources(files: Mapping[str, str], invocation: Invocation) -> list[str]:
    """The hidden files that the runner loads from its brief; a script that is run stays a file."""
    suffixes = _LOADED.get(invocation.runner or "", ())
    scripts = {PurePosixPath(name).name for name in invocation.scripts}
    return [
        dest
        for dest in files
        if dest.endswith(suffixes) and PurePosixPath(dest).name not in scripts
    ]
