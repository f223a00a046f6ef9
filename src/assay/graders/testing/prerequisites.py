"""What a run needs that no submission can take away: if it is missing, nothing is scored."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from assay.errors import GraderError, InputError
from assay.graders.testing.attempt import RunnerPlan, attempt
from assay.graders.testing.channel import RunnerChannel
from assay.graders.testing.commands import first_program
from assay.graders.testing.expected import named_targets, split_id
from assay.graders.testing.hidden import source_text
from assay.graders.testing.python_ids import PythonTests, read_python_tests
from assay.graders.testing.runners import has_editable_pytest
from assay.sandbox import CommandResult

_PYTHON = ("pytest", "unittest")
_SCRIPTS = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
_SHOWN = 5
_SECONDS = 20.0
_NOT_FOUND = 127
_TAIL = 1_000


def require_start(plan: RunnerPlan, channel: RunnerChannel, result: CommandResult) -> None:
    """Refuse a run whose runner broke before any code of the submission could run.

    Only a line that starts the runner at once is judged so: before any other, the submission may
    have had a hand in it.
    """
    invocation, heard = plan.invocation, channel.heard
    is_ours = invocation.runner in _PYTHON and invocation.exact and not invocation.cwd
    if not is_ours or heard.ready or result.status != "exited" or _is_workspace_python(plan):
        return
    if channel.forged or channel.rivals or heard.collected or heard.exit is not None:
        return
    tail = result.stderr.strip()[-_TAIL:]
    raise GraderError(
        f"the test runner of {plan.command.cmd!r} did not start "
        f"(exit status {result.exit_code}): {tail or 'it said nothing'}",
        hint="nothing of the submission had run; check the case's Python and the sandbox",
    )


async def require_program(plan: RunnerPlan, result: CommandResult) -> None:
    """Refuse a command whose program does not exist, whatever the submission is."""
    program = first_program(plan.command.cmd) if result.exit_code == _NOT_FOUND else ""
    if not program:
        return
    # Without a source the hidden files alone: nothing there is the submission's.
    pristine = replace(plan.workspace, path=plan.workspace.source or plan.layer)
    again = replace(plan, workspace=pristine, deadline=time.monotonic() + _SECONDS)
    look = ["/bin/sh", "-c", 'command -v "$1" || exit 127', "sh", program]
    _, found = await attempt(again, argv=look)
    if found.status == "exited" and found.exit_code == _NOT_FOUND:
        raise GraderError(
            f"{plan.command.cmd!r} starts {program!r}, which is not installed",
            hint="install it beside assay or in the case's environment, or correct cmd",
        )


def _is_workspace_python(plan: RunnerPlan) -> bool:
    """Whether the interpreter, or the pytest that it has, may be the submission's."""
    venv = plan.workspace.env.get("VIRTUAL_ENV", "")
    inside = venv == "/workspace" or venv.startswith("/workspace/")
    return inside or (bool(venv) and has_editable_pytest(plan.workspace))


def require_targets(plan: RunnerPlan) -> None:
    """Refuse a command that names a test which neither the case nor its source has."""
    if plan.invocation.runner not in ("pytest", "node"):
        return
    if plan.workspace.source is None:  # whatever is missing, the submission may have removed
        return
    read: dict[str, PythonTests] = {}  # a command may name hundreds of tests of one file
    for path, test in named_targets(plan.invocation):
        if path in ("", ".") or any(sign in path for sign in "*?[$"):
            continue
        if plan.invocation.runner == "node" and not path.endswith(_SCRIPTS):
            continue  # the value of an option
        places = [Path(root, path) for root in (plan.layer, plan.workspace.source)]
        place = next((place for place in places if place.exists()), None)
        if place is None:
            hidden = ", ".join(map(repr, plan.hidden[:_SHOWN])) or "none"
            raise InputError(
                f"the command names {path!r}, which is neither a hidden file ({hidden}) nor in the "
                "source",
                hint="correct cmd, or inject the file",
            )
        if test and place.is_file() and path.endswith(".py"):
            if path not in read:
                text = plan.told[path] if path in plan.told else source_text(str(place))
                read[path] = read_python_tests({**plan.told, path: text})[path]
            tests = read[path]
            name = test.partition("[")[0]
            known = (*tests.required, *tests.possible, *tests.open_names)
            if not any(one.startswith(f"{name}::") for one in known):
                _require_test(tests, path, test, by="the command")


def require_ids(ids: Sequence[str], files: Mapping[str, str]) -> None:
    """Refuse expected tests that a hidden Python file, in which they should be, does not have."""
    sources = {dest: source_text(src) for dest, src in files.items() if dest.endswith(".py")}
    hidden = read_python_tests(sources)
    for name in ids:
        path, test = split_id(name, hidden)
        if path in hidden and test:
            _require_test(hidden[path], path, test, by="expected_ids")


def _require_test(tests: PythonTests, path: str, test: str, *, by: str) -> None:
    if not tests.knows(test.partition("[")[0]):
        raise InputError(
            f"{by} names {path}::{test}, but {path} has no such test",
            hint=f"it has {', '.join(sorted(tests.required)[:5]) or 'none'}",
        )
