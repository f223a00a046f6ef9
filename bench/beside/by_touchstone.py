"""Touchstone: its command over a suite, and its grader of a trace; it compares no answers."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from asked import ASKED, Case, answer, cases, each, lay
from touchstone.config import GraderSpec
from touchstone.grader.tool_correctness import ToolCorrectnessGrader

_LEAVE = """\
import json, pathlib, sys

for name, text in json.load(open("LEFT"))[sys.argv[1]].items():
    path = pathlib.Path(sys.argv[2], name)
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
"""
_HOME = Path.cwd()


def _code() -> dict[str, bool | str]:
    asked = cases("code")
    argv = [ASKED["python"], str(_HOME / "leave.py"), "{model}", "{sandbox}"]
    case = {
        "id": "cart",
        "task": {"prompt": "Write cart.py."},
        "source": {"path": "source"},
        "matrix": {"harnesses": ["leaves"], "models": [one["id"] for one in asked], "trials": 1},
        "graders": [{"type": "pytest", "inject": ["./hidden/test_cart.py"], "timeout_s": 60}],
    }
    files = {
        "evals/cart/case.yaml": json.dumps(case),
        "evals/cart/source/cart.py": ASKED["given"],
        "evals/cart/hidden/test_cart.py": ASKED["hidden"],
        "harnesses.yaml": json.dumps({"leaves": {"argv": argv}}),
        "leave.py": _LEAVE.replace("LEFT", str(_HOME / "left.json")),
        "left.json": json.dumps({one["id"]: one["files"] for one in asked}),
    }
    lay(_HOME, dict(files))
    path = f"{Path(ASKED['python']).parent}:{os.environ['PATH']}"
    command = [str(Path(sys.executable).with_name("touchstone")), "run"]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path}, timeout=600)
    told: dict[str, bool | str] = {}
    for file in _HOME.glob("runs/*/cells/*/result.json"):
        cell = json.loads(file.read_text("utf-8"))
        told[cell["model"]] = bool(cell["overall_passed"])
    return told


def _tools(case: Case) -> bool:
    trace = _HOME / "trace.jsonl"
    events = [
        {"seq": n, "id": str(n), "ts": 0.0, "type": "tool_call", "payload": _payload(call)}
        for n, call in enumerate(case["calls"])
    ]
    trace.write_text("\n".join(map(json.dumps, events)), "utf-8")
    expected = [{"name": one["name"]} for one in case["expected"]]
    spec = GraderSpec.model_validate({"type": "tool_correctness", "expected": expected})
    grader = ToolCorrectnessGrader(spec, cast("Any", None))
    result = SimpleNamespace(trace_path=trace, trace_summary={})
    return grader.grade(cast("Any", result)).passed


def _payload(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": call["name"],
        "raw_name": call["name"],
        "kind": "other",
        "input": call["arguments"],
    }


told = _code() if cases("code") else {}
answer(told | each(cases("tools"), _tools))
