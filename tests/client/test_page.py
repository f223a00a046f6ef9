"""What people do with stored work in Python: the same on a store as on a server."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from assay import Client
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge
from tests.client_modes import MODES, client_of
from tests.full_case import run_repair

pytestmark = pytest.mark.sandbox

NEVER: list[Mapping[str, Json]] = [{"type": "exact_match", "expected": "5"}]
ROWS: list[dict[str, Json]] = [
    {"id": f"r{n}", "question": f"{n} + 2?", "answer": "4" if n % 3 else "5", "expected": "4"}
    for n in range(6)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A store with a run, a grader, a dataset and a job."""
    root = tmp_path_factory.mktemp("made")
    with FakeJudge() as fake:
        run_repair(root, model=fake.model)
        with Client(store=str(root / ".assay")) as client:
            client.graders.create.declared(key="never", graders=NEVER)
            client.datasets.create("rows", ROWS)
            client.jobs.create("never", "rows")
        yield root


@pytest.fixture(params=MODES)
def client(
    request: pytest.FixtureRequest, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Client]:
    """At a copy of it that is changed as one likes."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    with client_of(str(request.param), str(tmp_path / ".assay")) as given:
        yield given


def test_labels_are_given_taken_back_and_measure_a_grader(client: Client) -> None:
    queue = client.labels.queue(dataset="rows", classes="PASS,FAIL", limit=50)
    for item in queue.items:
        answer = next(part.text for part in item.parts if part.name == "answer")
        said = client.labels.add(item, "PASS" if answer == "4" else "FAIL", dataset="rows")
        assert said.rater == queue.rater
    last = queue.items[-1]
    assert client.labels.take_back(last, dataset="rows").label == ""
    assert last.item not in {one.item for one in client.labels.items(field="label").items}
    client.labels.add(last, "PASS", dataset="rows", note="it works", criterion="Is it 4?")
    assert len(client.labels.export()) == client.labels.list()[0].items == 6
    with pytest.raises(InputError, match=r"take_back"):
        client.labels.add(last, " ", dataset="rows")
    *_, step = client.calibrations.follow("never")
    assert (step.done, step.errors) == (6, 0)
    card = client.calibrations.get(step.card)
    assert (card.summary.grader, card.summary.n) == ("never", 6)
    again = client.calibrations.create("never")
    assert [one.figure for one in again.measures] == [one.figure for one in card.measures]


def test_a_cell_is_named_by_what_lists_it(client: Client) -> None:
    (row,) = client.cells.list("kit", model="fix", search="kit", limit=1)
    assert client.cells.open("kit", row).place.model == "fix"
    with pytest.raises(InputError, match="is no cell"):
        client.cells.open("kit", "kit")  # pyright: ignore[reportArgumentType]
    assert client.runs.regrading("kit").status == "none"  # regrading: tests/service, tests/server


def test_a_job_is_followed_by_a_client_that_did_nothing_before(client: Client) -> None:
    with client_of("store", ".assay") as other:
        job = other.jobs.list(grader="never")[0].id
    assert [step.status for step in client.jobs.follow(job)] == ["finished"]


def test_keys_are_made_for_the_own_project_and_changes_told_of_it_or_of_all(client: Client) -> None:
    made = client.keys.create("ci", "viewer", days=1)
    assert (made.project, made.token.startswith(made.prefix)) == ("default", True)
    client.keys.revoke(made.id)
    assert client.projects.changes(what="revoke_key").items[0].what["id"] == made.id
    assert [one.operation for one in client.projects.changes("default", limit=1)]
