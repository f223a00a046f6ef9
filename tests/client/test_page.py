"""What people do with stored work in Python: the same on a store as on a server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from assay import Client
from assay.errors import InputError, NotFoundError
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge
from tests.client_modes import MODES, client_of
from tests.command_line import assay
from tests.full_case import write_repair

pytestmark = pytest.mark.sandbox

FIX = ("kit", "replay", "fix", 1)
CHEAT = ("kit", "replay", "cheat", 1)
MATCH: list[Mapping[str, Json]] = [{"type": "exact_match"}]
NEVER: list[Mapping[str, Json]] = [{"type": "exact_match", "expected": "5"}]
ROWS: list[dict[str, Json]] = [
    {"id": f"r{n}", "question": f"{n} + 2?", "answer": "4" if n % 3 else "5", "expected": "4"}
    for n in range(6)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A store with a run, graders, a dataset, two jobs and labels."""
    root = tmp_path_factory.mktemp("made")
    with FakeJudge() as fake:
        write_repair(root, model=fake.model)
        done = assay("run", "evals", "--name", "kit", cwd=root)
        assert done.returncode == 1, done.stderr
        with Client(store=str(root / ".assay")) as client:
            client.graders.create.declared(key="match", graders=MATCH)
            client.graders.create.declared(key="never", graders=NEVER)
            client.datasets.create("rows", ROWS)
            for grader in ("match", "never"):
                client.jobs.create(grader, "rows")
            for item in client.labels.queue(dataset="rows", limit=50).items:
                answer = next(part.text for part in item.parts if part.name == "answer")
                says = "PASS" if answer == "4" else "FAIL"
                client.labels.add(item, says, dataset="rows", note="read", criterion="Is it 4?")
            client.calibrations.create("match")
            client.calibrations.create("match", repeats=2)
        yield root


@pytest.fixture
def location(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of it that is changed as one likes."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / ".assay")


@pytest.fixture(params=MODES)
def client(request: pytest.FixtureRequest, location: str) -> Generator[Client]:
    with client_of(str(request.param), location) as given:
        yield given


def _job(client: Client, grader: str) -> str:
    return client.jobs.list(grader=grader)[0].id


def test_labels_are_given_taken_back_and_exported(client: Client) -> None:
    queue = client.labels.queue(run="kit", field="good", classes="YES,NO", limit=2)
    assert (queue.total, queue.done, len(queue.items)) == (3, 0, 2)
    first, second = queue.items
    said = client.labels.add(first, "YES", run="kit", field="good", note="it works")
    assert (said.label, said.rater, said.note) == ("YES", queue.rater, "it works")
    client.labels.add(second, "NO", run="kit", field="good")
    (told,) = [one for one in client.labels.list() if one.field == "good"]
    assert (told.items, dict(told.labels)) == (2, {"YES": 1, "NO": 1})
    assert client.labels.take_back(second, run="kit", field="good").label == ""
    (kept,) = client.labels.items(field="good").items
    assert [one.note for one in kept.said] == ["it works"]
    (row,) = client.labels.export(field="good")
    assert row["good"] is True
    again = client.labels.queue(run="kit", field="good", limit=50)
    assert (again.done, second.item in {one.item for one in again.items}) == (1, True)
    with pytest.raises(InputError, match=r"take_back"):
        client.labels.add(first, " ", run="kit", field="good")
    with pytest.raises(InputError, match="dataset or from a run"):
        client.labels.queue()
    with pytest.raises(NotFoundError):
        client.labels.queue(dataset="none")


def test_a_grader_is_measured_to_its_card(client: Client) -> None:
    plan = client.calibrations.plan("never")
    assert (plan.rows, plan.judgements, plan.done, plan.models) == (6, 6, 0, ())
    *_, last = client.calibrations.follow("never")
    assert (last.done, last.errors) == (6, 0)
    card = client.calibrations.get(last.card)
    assert (card.summary.grader, card.summary.n, card.coverage.compared) == ("never", 6, 6)
    assert client.calibrations.list()[0].id == last.card
    again = client.calibrations.create("never")
    assert [one.figure for one in again.measures] == [one.figure for one in card.measures]
    with pytest.raises(NotFoundError):
        client.calibrations.create("none")
    with pytest.raises(NotFoundError):
        client.calibrations.get("none")


def test_a_cell_is_named_by_what_lists_it_and_graded_again(client: Client) -> None:
    (row,) = client.cells.list("kit", model="fix", search="kit", limit=1)
    assert client.cells.open("kit", row).place.model == "fix"
    with pytest.raises(InputError, match="is no cell"):
        client.cells.open("kit", "kit")  # pyright: ignore[reportArgumentType]
    state = client.runs.regrade("kit", FIX)
    while state.status == "running":
        time.sleep(0.02)  # a server in this process would answer rather than grade
        state = client.runs.regrading("kit")
    assert (state.status, state.done, state.run) == ("finished", 1, client.runs.get("kit").id)


def test_a_job_is_followed_by_a_client_that_did_nothing_before(client: Client) -> None:
    with client_of("store", ".assay") as other:
        job = _job(other, "match")
    assert [step.status for step in client.jobs.follow(job)] == ["finished"]


def test_keys_are_made_for_the_own_project_and_changes_told_of_it_or_of_all(
    client: Client,
) -> None:
    made = client.keys.create("ci", "viewer", days=1)
    assert (made.project, made.token.startswith(made.prefix)) == ("default", True)
    client.keys.revoke(made.id)
    assert client.projects.changes(what="revoke_key").items[0].what["id"] == made.id
    assert [one.operation for one in client.projects.changes("default", limit=1)]
    with pytest.raises(NotFoundError):
        client.keys.revoke("none")
