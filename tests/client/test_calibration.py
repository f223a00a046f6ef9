"""What the client gives of a grader's calibration card: the same on a server and on a store."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from assay import Client
from assay.errors import NotFoundError
from assay.scoring.json_safe import Json
from tests.calibrated import LINE, SAYS_NO, SAYS_YES, calibrated, says_yes
from tests.client_modes import MODES, client_of
from tests.definitions import definition
from tests.judge_models import model
from tests.postgres import KINDS, new_location

ROWS: list[dict[str, Json]] = [{"id": "a", "answer": "yes"}, {"id": "b", "answer": "no"}]
YES = cast("list[dict[str, Json]]", SAYS_YES["graders"])
NO = cast("list[dict[str, Json]]", SAYS_NO["graders"])


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "store")


_WHERE = dict(zip(MODES, KINDS, strict=True))
"""Cards of a store are read of SQLite, those of a server of PostgreSQL."""


@pytest.fixture(params=MODES)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[tuple[Client, str]]:
    """A client, and where its store is."""
    where = new_location(request, _WHERE[request.param], tmp_path)
    with client_of(str(request.param), where) as made:
        yield made, where


def test_a_calibrated_judge_s_scores_come_with_its_card_which_a_change_makes_stale(
    at: tuple[Client, str],
) -> None:
    client, location = at
    with model(says_yes) as (name, _):
        criteria = "The answer says yes."
        client.graders.create.binary_judge(key="says", criteria=criteria, judge_model=name)
        graded = client.graders.grade("says", ROWS)
        assert [one.score for one in graded] == [1.0, 0.0]
        assert (graded.calibration, client.graders.calibration("says")) == (None, None)

        record = calibrated(location, "says")
        card = client.graders.grade("says", ROWS).calibration
        assert card is not None
        assert card.line.startswith(LINE)
        assert (card.grader, card.card, card.digest) == ("says", record.id, record.digest)
        assert (card.n, card.errors, card.stale, card.changed) == (20, 0, False, ())
        assert card.kappa == pytest.approx(0.8)
        low, high = card.kappa_interval or (0.0, 0.0)
        assert low < 0.8 < high
        assert client.graders.calibration("says") == card

        client.graders.update(
            "says", definition("binary_judge", criteria="The answer says no.", judge_model=name)
        )
        stale = client.graders.grade("says", ROWS).calibration
        assert stale is not None
        assert (stale.stale, stale.card) == (True, record.id)
        assert stale.line.endswith(f"STALE, measured before a change: {stale.changed[0]}")
        assert stale.changed == ("criteria The answer says yes. → The answer says no.",)
        assert client.graders.calibration("says") == stale
        assert client.graders.grade("says", ROWS, version=1).calibration == card
        assert client.graders.calibration("says", version=1) == card


def test_a_job_s_scores_come_with_the_card_of_its_version(at: tuple[Client, str]) -> None:
    client, location = at
    client.graders.create.declared(key="says", graders=YES)
    client.datasets.create("rows", ROWS)
    first = client.jobs.wait(client.jobs.create("says", "rows").id).id
    assert client.jobs.results(first).calibration is None
    record = calibrated(location, "says")
    part = client.jobs.results(first, limit=1)
    assert part.calibration is not None
    assert (part.calibration.card, part.calibration.stale) == (record.id, False)
    rest = client.jobs.results(first, after=part.next)
    assert [score.item for score in (*part.items, *rest.items)] == ["a", "b"]
    assert rest.calibration == part.calibration

    client.graders.update("says", definition("declared", graders=tuple(NO)))
    second = client.jobs.wait(client.jobs.create("says", "rows").id).id
    stale = client.jobs.results(second).calibration
    assert stale is not None
    assert (stale.stale, stale.changed) == (True, ("graders changed",))
    client.graders.update("says", definition("declared", graders=tuple(NO), threshold=0.25))
    assert client.jobs.results(first).calibration == part.calibration
    assert client.jobs.results(second).calibration == stale
    client.graders.delete("says")
    assert client.jobs.results(first).calibration == part.calibration, "scores outlive graders"


def test_scores_keep_their_card_when_assay_itself_changes(
    at: tuple[Client, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, location = at
    client.graders.create.declared(key="says", graders=YES)
    client.datasets.create("rows", ROWS)
    job = client.jobs.wait(client.jobs.create("says", "rows").id).id
    calibrated(location, "says")
    card = client.jobs.results(job).calibration

    def newer(_: object) -> str:
        return "what a newer assay grades by"

    monkeypatch.setattr("assay.graders.digest._code", newer)
    stale = client.graders.grade("says", ROWS).calibration
    assert stale is not None
    assert (stale.stale, stale.changed) == (True, ("its files, or assay's own code",))
    assert client.graders.calibration("says") == stale
    assert card is not None
    assert (client.jobs.results(job).calibration, card.stale) == (card, False)


def test_another_project_s_card_is_never_shown(at: tuple[Client, str]) -> None:
    client, location = at
    client.projects.create("other")
    for project in ("default", "other"):
        client.graders.create.declared(key="says", graders=YES, project=project)
    calibrated(location, "says", "other")
    assert client.graders.calibration("says", project="other") is not None
    assert client.graders.grade("says", ROWS, project="other").calibration is not None
    assert client.graders.calibration("says") is None
    assert client.graders.grade("says", ROWS).calibration is None


def test_what_more_than_one_request_graded_has_one_card(at: tuple[Client, str]) -> None:
    client, location = at
    client.graders.create.declared(key="says", graders=YES)
    record = calibrated(location, "says")
    graded = client.graders.grade("says", [{"answer": "yes"} for _ in range(1_001)])
    assert len(graded) == 1_001
    assert graded.calibration is not None
    assert graded.calibration.card == record.id
    assert client.graders.grade("says", []).calibration is None, "nothing was graded"


def test_there_is_no_card_of_a_grader_that_is_not_there(at: tuple[Client, str]) -> None:
    client, _ = at
    client.graders.create.declared(key="says", graders=YES)
    for key, version in (("none", None), ("says", 2)):
        with pytest.raises(NotFoundError):
            client.graders.calibration(key, version=version)
    client.graders.delete("says")
    with pytest.raises(NotFoundError):
        client.graders.calibration("says")
    assert client.graders.calibration("says", version=1) is None, "its versions can be read"


def test_grades_are_copied_and_sent_with_their_card(location: str) -> None:
    with client_of("store", location) as client:
        client.graders.create.declared(key="says", graders=YES)
        calibrated(location, "says")
        graded = client.graders.grade("says", ROWS)
    assert graded.calibration is not None
    for same in (copy.copy(graded), pickle.loads(pickle.dumps(graded))):
        assert same == graded
        assert same.calibration == graded.calibration
