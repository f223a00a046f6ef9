"""Stored graders, calibrated as `assay calibrate` does it: for tests of what shows the card."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.cli.named_grader import named_grader
from assay.eval.calibration.asking import Options
from assay.eval.calibration.calibrate import calibrate
from assay.eval.calibration.labelled import read_labelled
from assay.models import Request
from assay.scoring.json_safe import Json
from assay.store import Database
from assay.store.cards import CardRecord, Cards
from tests.judge_models import answer_in
from tests.written_files import write_rows

__all__ = ["LINE", "SAYS_NO", "SAYS_YES", "calibrated", "says_yes"]

SAYS_YES: dict[str, Json] = {"graders": [{"type": "contains", "substring": "yes"}]}
SAYS_NO: dict[str, Json] = {"graders": [{"type": "contains", "substring": "no"}]}
LINE = "agreement with people: kappa 0.80 ["
"""How the line of the card begins: of twenty rows two are labelled otherwise."""


def says_yes(request: Request) -> Json:
    """A judge of the criterion that an answer says yes."""
    answer = answer_in(request)
    score = "PASS" if "yes" in answer else "FAIL"
    return {"evidence": [answer], "reasoning": "as it says", "score": score}


def calibrated(location: str, key: str, project: str = "default") -> CardRecord:
    """Calibrate the newest version of a grader that looks for "yes", or for what is expected.

    Blocking: to be called where no event loop runs.
    """
    rows: list[dict[str, Json]] = []
    for number in range(20):
        says = number % 2 == 1
        answer = f"{'yes' if says else 'no'} {number}"
        expected = answer if says else "another"
        label = says != (number < 2)
        rows.append({"id": f"r{number}", "answer": answer, "expected": expected, "label": label})
    with Database.open(location) as database, TemporaryDirectory() as folder:
        file = write_rows(Path(folder, "labels.jsonl"), rows)
        target = named_grader(
            Namespace(grader=key, project=project, db=location, trust_authors=True), database
        )
        found = asyncio.run(calibrate(target, read_labelled(str(file)), Options()))
        record = CardRecord(
            grader=found.grader,
            digest=found.digest,
            alias=found.alias,
            labels=found.labels.digest,
            body=found.to_dict(),
        )
        return Cards(database).add(project, record)
