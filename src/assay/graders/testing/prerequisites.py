"""What a run needs that no submission can take away: if it is missing, nothing is scored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assay.errors import GraderError, InputError
from assay.graders.testing.attempt import Plan
from assay.graders.testing.channel import Channel
from assay.graders.testing.expected import named_targets
from assay.graders.testing.hidden import source_text
from assay.graders.testing.python_ids import read_python_tests
from assay.sandbox import CommandResult

__all__ = ["require_start", "require_targets"]

_PYTHON = ("pytest", "unittest")
_TAIL = 1_000


def require_start(plan: Plan, channel: Channel, result: CommandResult) -> None:
    """Refuse a run whose runner broke before any code of the submission could run.

    Only a line that starts the runner at once is judged so: before any other, the submission may
    have had a hand in it.

    Raises:
        GraderError: If it broke.
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


def _is_workspace_python(plan: Plan) -> bool:
    """Whether the interpreter itself may be the submission's."""
    venv = plan.workspace.env.get("VIRTUAL_ENV", "")
    return venv == "/workspace" or venv.startswith("/workspace/")


def require_targets(plan: Plan) -> None:
    """Refuse a command that names a test which neither the case nor its source has.

    Raises:
        InputError: For such a name.
    """
    if plan.invocation.runner != "pytest":
        return
    if plan.workspace.source is None:  # whatever is missing, the submission may have removed
        return
    for path, test in named_targets(plan.invocation):
        if path in ("", ".") or any(sign in path for sign in "*?[$"):
            continue
        places = [Path(root, path) for root in (plan.layer, plan.workspace.source)]
        place = next((place for place in places if place.exists()), None)
        if place is None:
            raise InputError(
                f"the command names {path!r}, which is neither a hidden file nor in the source",
                hint="correct cmd, or inject the file",
            )
        if test and place.is_file() and path.endswith(".py"):
            text = plan.told[path] if path in plan.told else source_text(str(place))
            _require_test({**plan.told, path: text}, path, test)


def _require_test(sources: Mapping[str, str], path: str, test: str) -> None:
    tests = read_python_tests(sources)[path]
    name = test.partition("[")[0]
    known = {*tests.required, *tests.possible, *tests.open_names}
    if tests.knows(name) or any(one.startswith(f"{name}::") for one in known):
        return
    raise InputError(
        f"the command names {path}::{test}, but {path} has no such test",
        hint=f"it has {', '.join(sorted(tests.required)[:5]) or 'none'}",
    )
