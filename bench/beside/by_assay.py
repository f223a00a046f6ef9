"""assay: kinds of graders as its documentation advises; code by ``assay run`` in a case."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from asked import ASKED, Case, answer, cases, lay

from assay.graders.spec import GraderSpec
from assay.scoring.graded import Graded

_HOW: dict[str, dict[str, Any]] = {
    "number": {"type": "numeric_match", "options": {"pick": "only"}},
    "text": {"type": "exact_match"},
    "choice": {"type": "choice_match"},
    "math": {"type": "math_equal"},
    "json": {"type": "json_match"},
}


def _answers(kind: str) -> dict[str, bool | str]:
    asked = cases(kind)
    rows = [{"answer": case["answer"], "expected": case["expected"]} for case in asked]
    batch = GraderSpec(**_HOW[kind]).grade_batch_now(rows)
    return {case["id"]: _told(one) for case, one in zip(asked, batch.graded, strict=True)}


def _tools(case: Case) -> bool | str:
    steps = [
        {
            "type": "tool",
            "call": {"name": call["name"], "arguments": call["arguments"]},
            "result": {"content": "done", "is_error": call.get("failed", False)},
        }
        for call in case["calls"]
    ]
    expected: Any = [{"name": one["name"], "args": one["arguments"]} for one in case["expected"]]
    spec = GraderSpec(type="tool_correctness", options={"expected": expected})
    row = {"answer": case["answer"], "trace": {"steps": steps}}
    return _told(spec.grade_batch_now([row]).graded[0])


def _told(one: Graded) -> bool | str:
    return (one.error or one.reason) if one.score is None else one.score >= 1.0


def _code() -> dict[str, bool | str]:
    asked = {case["id"]: case for case in cases("code")}
    place = Path("evals", "cart")
    solved = next(case for case in asked.values() if case["earned"])
    lay(place, {"source/cart.py": ASKED["given"], "hidden/test_cart.py": ASKED["hidden"]})
    for name, case in (*asked.items(), ("reference", solved)):
        recording = place / "recordings" / name
        lay(recording / "files", case["files"])
        gone = [path for path, text in case["files"].items() if text is None]
        lay(recording, {"answer.txt": "Done.", "deleted.txt": "\n".join(gone) if gone else None})
    told = {
        "id": "cart",
        "task": {"prompt": "Write the functions of cart.py."},
        "source": {"path": "source"},
        "matrix": {"harnesses": ["replay"], "models": list(asked)},
        "graders": [{"type": "pytest", "inject": ["./hidden/test_cart.py"], "timeout_s": 60}],
    }
    lay(place, {"case.json": json.dumps(told)})
    done = subprocess.run(
        [sys.executable, "-m", "assay", "run", "evals", "--json", "--db", "store"],
        check=False,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return {cell["model"]: cell["reward"] == 1.0 for cell in found["cells"]}


told = _code() if cases("code") else {}
for kind in _HOW:
    told |= _answers(kind)
answer(told | {case["id"]: _tools(case) for case in cases("tools")})
