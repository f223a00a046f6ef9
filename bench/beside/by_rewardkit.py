"""Harbor's rewardkit: a directory of criteria, run over a workspace as its command does it."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from asked import ASKED, Case, answer, cases, each, lay, left
from rewardkit.runner import run

_ALL = '[scoring.checks]\naggregation = "all-pass"\n'


def _criteria(case: Case, tests: Path) -> list[str]:
    expected: Any = case["expected"]
    if case["kind"] == "code":
        hidden = tests.parent / "hidden" / "test_cart.py"  # it imports all that is in `tests`
        command = f"{ASKED['python']} -m pytest -q {hidden}"
        return [f"command_succeeds({command!r})"]
    if case["kind"] == "json":
        return [f"json_key_equals('answer', {key!r}, {value!r})" for key, value in expected.items()]
    if case["kind"] == "tools":
        path = str(tests / "trajectory.json")
        used = [f"trajectory_tool_used({call['name']!r}, path={path!r})" for call in expected]
        return [*used, f"trajectory_tool_not_used('delete_customer', path={path!r})"]
    if case["kind"] == "choice":
        return [f"file_contains('answer', {f'ANSWER: {expected}'!r})"]
    return [f"file_matches('answer', {str(expected)!r})"]


def _graded(case: Case) -> bool:
    with (
        left(case) as workspace,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as verifier,
    ):
        tests, output = Path(verifier, "tests"), Path(verifier, "reward.json")
        lay(workspace, {"answer": case["answer"]})
        criteria = "\n".join(f"criteria.{one}" for one in _criteria(case, tests))
        steps = [{"source": "agent", "tool_calls": [_called(call)]} for call in case["calls"]]
        files = {
            "checks.py": f"from rewardkit import criteria\n\n{criteria}\n",
            "reward.toml": _ALL,
            "trajectory.json": json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}),
        }
        lay(tests, files)
        lay(tests.parent, {"hidden/test_cart.py": ASKED["hidden"]})
        run(tests, workspace=workspace, output=output)
        if case["kind"] == "code":
            time.sleep(1)  # Harbor reads the file when the command has ended
        return json.loads(output.read_text("utf-8"))["reward"] == 1.0


def _called(call: dict[str, Any]) -> dict[str, Any]:
    return {"tool_call_id": "1", "function_name": call["name"], "arguments": call["arguments"]}


answer(each(cases("code", "number", "text", "choice", "json", "tools"), _graded))
