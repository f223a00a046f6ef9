"""Evaluate the conditions under which an author skips tests, away from any submission.

``skipif(sys.platform == "win32")`` is the author's word, but a solution that runs before it can set
``sys.platform``. So the condition is asked again in a fresh interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from assay.graders.testing.runners import Interpreter
from assay.sandbox import Limits, Mount, run_command
from assay.types.submission import Workspace

__all__ = ["evaluate"]

_SECONDS = 10.0
_SCRIPT = """
import ast, importlib, json, sys
held = []
for condition in json.loads(sys.argv[1]):
    try:
        tree = ast.parse(condition, mode="eval")
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        space = {name: importlib.import_module(name) for name in names}
        if eval(compile(tree, "condition", "eval"), space):
            held.append(condition)
    except Exception:
        pass
print(json.dumps(held))
"""


async def evaluate(
    conditions: Sequence[str], python: Interpreter, workspace: Workspace
) -> set[str]:
    """Find out which of some Python expressions over standard modules are true.

    Args:
        conditions: The expressions; one that fails is not true.
        python: The interpreter that ran the tests.
        workspace: Gives the mounts that the interpreter needs.
    """
    mounts = {target: source for source, target in (*workspace.mounts, *python.mounts)}
    result = await run_command(
        [python.path, "-I", "-c", _SCRIPT, json.dumps(list(conditions))],
        workspace=None,
        mounts=[Mount(source=source, target=target) for target, source in mounts.items()],
        limits=Limits(wall_seconds=_SECONDS),
    )
    try:
        held: object = json.loads(result.stdout)
    except ValueError:
        return set()
    return {one for one in conditions if isinstance(held, list) and one in held}
