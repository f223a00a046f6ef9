"""Scores come with the calibration card of their grader, also when it is out of date."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service import graders, jobs, scores, site
from assay.service.graders import Calibration
from assay.service.local import ask
from assay.service.operation import LOCAL, Desk
from assay.store import Datasets, Jobs, ScoreRecord
from assay.store.cards import CardRecord, Cards
from tests.calibrated_graders import LINE, SAYS_NO, SAYS_YES, calibrated, says_yes
from tests.judge_models import model

ROWS: list[dict[str, Json]] = [{"id": "a", "answer": "yes"}, {"id": "b", "answer": "no"}]


async def _measured(location: str, key: str = "says", project: str = "default") -> CardRecord:
    return await asyncio.to_thread(calibrated, location, key, project)


async def _says(desk: Desk, definition: dict[str, Json], kind: str = "declared") -> None:
    await ask(graders.create_grader, desk, "says", kind, definition)


async def _graded(desk: Desk, version: int | None = None) -> Calibration | None:
    """The card beside grades; that of the grader itself is the same."""
    graded = await ask(graders.grade, desk, "says", ROWS, version, record=False)
    card = graded.calibration
    assert (await ask(graders.show_grader, desk, "says", version)).calibration == card
    return card


async def _job(desk: Desk, *digests: str) -> str:
    """A job whose rows were graded by graders of these digests."""
    made = await ask(jobs.create_job, desk, "says", "rows")
    for row, digest in enumerate(digests, 1):
        one = Graded(id=f"r{row}", status="scored", score=1.0).by(f"says@{made.version}", digest)
        Jobs(desk.database).add_scores(made.id, [(row, ScoreRecord(item=one.id, graded=one))])
    return made.id


async def _of_job(desk: Desk, job: str, limit: int = 50) -> Calibration | None:
    return (await ask(jobs.list_results, desk, job, limit=limit)).calibration


async def test_scores_come_with_the_card_of_their_judge_which_a_change_makes_stale(
    desk: Desk, location: str
) -> None:
    with model(says_yes) as (name, _):
        judge: dict[str, Json] = {"criteria": "The answer says yes.", "judge_model": name}
        await _says(desk, judge, "binary_judge")
        assert await _graded(desk) is None
        record = await _measured(location)
        card = await _graded(desk)
        assert card is not None
        assert card.line.startswith(LINE)
        assert (card.grader, card.card, card.digest) == ("says", record.id, record.digest)
        assert (card.n, card.errors, card.stale, card.changed) == (20, 0, False, ())
        assert card.kappa == pytest.approx(0.8)
        low, high = card.kappa_interval or (0.0, 0.0)
        assert low < 0.8 < high

        other = judge | {"criteria": "The answer says no."}
        await ask(graders.update_grader, desk, "says", "binary_judge", other, expected=1)
        stale = await _graded(desk)
        assert stale is not None
        assert (stale.stale, stale.card) == (True, record.id)
        assert stale.changed == ("criteria The answer says yes. → The answer says no.",)
        assert stale.line.endswith(f"STALE, measured before a change: {stale.changed[0]}")
        assert await _graded(desk, version=1) == card


async def test_a_job_s_card_is_of_what_gave_the_scores_not_of_what_would_give_them_now(
    desk: Desk, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assay's own code, which a digest covers, may change between two scores of one version."""

    def newer(_: object) -> str:
        return "what a newer assay grades by"

    Datasets(desk.database).create("default", "rows", "", ROWS)
    await _says(desk, SAYS_YES)
    digest = (await _measured(location)).digest
    first, mixed = await _job(desk, digest, digest), await _job(desk, digest, "0" * 64)
    card = await _of_job(desk, first)
    assert card is not None
    assert (card.digest, card.stale) == (digest, False)
    assert await _of_job(desk, await _job(desk)) == card, "no score yet: as it is now"
    assert await _of_job(desk, first, limit=1) == await _of_job(desk, mixed, limit=1) == card
    both = await _of_job(desk, mixed)
    assert both is not None
    assert (both.stale, both.changed) == (True, ("its files, or assay's own code",))
    with monkeypatch.context() as patch:
        patch.setattr("assay.graders.digest._code", newer)
        now = await _graded(desk)
        assert now is not None
        assert (now.stale, now.changed) == (True, ("its files, or assay's own code",))
        assert await _of_job(desk, first) == card

    await ask(graders.update_grader, desk, "says", "declared", SAYS_NO, expected=1)
    stale = await _of_job(desk, await _job(desk, "1" * 64))
    assert stale is not None
    assert (stale.stale, stale.changed) == (True, ("graders changed",))
    assert await _of_job(desk, first) == card
    await ask(graders.delete_grader, desk, "says", force=True)
    assert await _of_job(desk, first) == card, "scores outlive graders"


async def test_a_list_of_scores_has_the_cards_of_all_that_gave_them_in_this_project(
    desk: Desk, location: str
) -> None:
    await ask(site.create_project, desk, "qa")
    qa = Desk(desk.database, "qa", LOCAL, Permissions())
    for here, key, says in (
        (desk, "says", SAYS_YES),
        (desk, "other", SAYS_NO),
        (qa, "says", SAYS_YES),
    ):
        await ask(graders.create_grader, here, key, "declared", says)
        await ask(graders.grade, here, key, ROWS)

    async def cards(here: Desk) -> list[str]:
        found = await ask(scores.list_scores, here)
        assert len(found.items) == (4 if here is desk else 2)
        return [card.grader for card in found.calibrations]

    await _measured(location, project="qa")
    assert (await cards(qa), await cards(desk), await _graded(desk)) == (["says"], [], None)
    await _measured(location, "other")
    assert await cards(desk) == ["other"]
    await _measured(location)
    assert await cards(desk) == ["says", "other"]
    await ask(graders.delete_grader, desk, "says", force=True)
    assert "other" in await cards(desk), "scores outlive what gave them"


async def test_cards_are_looked_up_once_for_a_request_not_for_a_row(
    desk: Desk, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _says(desk, SAYS_YES)
    await _measured(location)
    looked, about = list[str](), Cards.about

    def counted(self: Cards, project: str, grader: str, digests: Sequence[str]) -> list[CardRecord]:
        looked.append(grader)
        return about(self, project, grader, digests)

    monkeypatch.setattr(Cards, "about", counted)
    answer = await ask(graders.grade, desk, "says", [{"answer": "yes"} for _ in range(50)])
    assert (len(answer.results), answer.calibration is not None) == (50, True)
    assert looked == ["says"]
