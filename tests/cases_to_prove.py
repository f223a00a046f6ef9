"""Cases that are proven or attacked, and what came of that."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from pathlib import Path

from assay.eval.proofs.proof import Proof
from assay.eval.proofs.trials import TrialPlan
from assay.eval.runner import OnCell
from assay.store.records import CellRecord
from tests.written_files import write_files

__all__ = ["ANSWER", "CHANCY", "played", "write", "write_set"]

ANSWER = """
    id: sum
    task: {prompt: "What is 19 and 23? Reply with the number only."}
    matrix: {harnesses: [replay], models: [reference]}
    expected: "42"
    graders:
      - {type: exact_match}
"""
CHANCY = """
    from assay.graders import Grader

    class Chancy(Grader):
        name = "chancy"
        calls = 0

        @classmethod
        async def compute_score(cls, answer: str = "") -> float:
            cls.calls += 1
            return 1.0 if cls.calls % 2 else 0.5
"""
_EASY = """
    from assay.graders import Grader

    class Easy(Grader):
        name = "easy"

        @classmethod
        async def compute_score(cls) -> float:
            return 1.0
"""


def write(root: Path, text: str, files: Mapping[str, str] | None = None) -> Path:
    """Write a case and the files beside it."""
    texts = {"case.yaml": text, **(files or {})}
    return write_files(root, {name: textwrap.dedent(one) for name, one in texts.items()})


def write_set(root: Path, *, sound: int = 12) -> Path:
    """Sound cases, and one of every kind that a set may have among them."""

    def one(name: str, answer: str = "42", *, more: str = "", **files: str) -> None:
        text = ANSWER.replace("id: sum", f"id: {name}") + more
        beside = {f"{file}.py": content for file, content in files.items()}
        if answer:
            beside["recordings/reference/answer.txt"] = answer
        write(root / name, text, beside)

    for number in range(sound):
        one(f"sound-{number}")
    one("gold", "41")
    one("easy", more="    expect: {pass_threshold: 0.5}\n", own=_EASY)
    easy = root / "easy/case.yaml"
    easy.write_text(easy.read_text().replace("exact_match", "'python:./own.py:Easy'"), "utf-8")
    one("unsteady", more="      - {type: 'python:./own.py:Chancy', weight: 0.0}\n", own=CHANCY)
    one("unsolved", "")
    one("lost", more="    selftest: {reference: fix}\n")
    one("gone", more="    source: {git: 'file:///nowhere/at/all.git', commit: '%s'}\n" % ("a" * 40))
    one("torn", more="    expcet: {}\n")
    return root


def played(plan: TrialPlan, root: Path) -> tuple[Proof, list[CellRecord]]:
    """What came of a plan, and each cell that was told of: as many as were foretold."""
    seen: list[CellRecord] = []
    totals: list[int] = []

    def begin(total: int) -> OnCell:
        totals.append(total)
        return seen.append

    proof = asyncio.run(plan.go(cache=str(root / "cache"), workers=4, begin=begin))
    assert totals == [len(seen)]
    return proof, seen
