"""A job that is carried out here and killed in the middle: what was stored counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.client import Client
from assay.models import Request, register_model
from assay.store import Database, Jobs
from tests.judge_models import answer_in

MODEL = "counting-judge"
KILLED = """
import os, signal, sys
from assay.client import Client
from assay.models import register_model
from assay.store.jobs import Jobs
from tests.client.test_killed_jobs import said
from tests.judge_models import answer_in

async def judge(request):
    return said(answer_in(request))

def add(jobs, job, scores, real=Jobs.add_scores):
    done = real(jobs, job, scores)
    if done.done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return done

register_model(sys.argv[2], judge)
Jobs.add_scores = add
Client(store=sys.argv[1]).jobs.create("g", "rows")
"""


def said(answer: str) -> str:
    """What the judge says of it."""
    return json.dumps({"evidence": [answer], "reasoning": "as it says", "score": "PASS"})


@pytest.fixture
def asked() -> Generator[Counter[str]]:
    """How often a model was asked about each answer."""
    found = Counter[str]()

    async def judge(request: Request) -> str:
        found[answer := answer_in(request)] += 1
        return said(answer)

    register_model(MODEL, judge)
    yield found
    register_model(MODEL, None)


@pytest.mark.parametrize(
    ("kind", "rows", "stored"),
    [("judge", 8, 3), ("comparison", 150, 64)],
    ids=["what was paid for is stored row by row", "what was compared is stored batch by batch"],
)
def test_a_job_that_was_killed_goes_on_with_the_rows_that_have_no_score(
    tmp_path: Path, asked: Counter[str], kind: str, rows: int, stored: int
) -> None:
    store = str(tmp_path / "store")
    with Client(store=store) as client:
        if kind == "judge":
            client.graders.create.binary_judge(key="g", criteria="Is it so?", judge_model=MODEL)
        else:
            client.graders.create.declared(key="g", graders=[{"type": "exact_match"}])
        sent = [{"id": f"r{n}", "answer": f"word {n}", "expected": "word 1"} for n in range(rows)]
        client.datasets.create("rows", sent)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, store, MODEL, str(stored)],
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert killed.returncode == -signal.SIGKILL
    with Database.open(store) as database:
        jobs = Jobs(database)
        later = datetime.now(UTC) + timedelta(hours=1)  # the lease of who died is over
        left = jobs.claim("somebody", 1.0, later)
        assert left is not None
        assert len(jobs.graded_rows(left.id)) == stored
        jobs.release(left.id, "somebody")
    with Client(store=store) as client:
        again = client.jobs.create("g", "rows")
        ended = client.jobs.get(left.id)
    assert (ended.status, ended.done, ended.errors) == ("finished", rows, 0)
    assert (again.status, again.done) == ("finished", rows), "the new job is carried out, too"
    if kind == "judge":
        assert asked.total() == (rows - stored) + rows, "what was stored was asked once"
