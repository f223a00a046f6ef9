"""Grades over HTTP come with the card of their grader, also when it is out of date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.context import ServerSettings
from assay.store import Database, Jobs, ScoreRecord
from assay.store.cards import CardRecord, Cards
from tests.calibrated import SAYS_NO, SAYS_YES, calibrated
from tests.server_app import Site, body_of, items_of, serving

ITEMS: list[Json] = [{"id": "a", "answer": "yes"}, {"id": "b", "answer": "no"}]
ROWS: list[dict[str, Json]] = [{"id": f"r{n}", "answer": "yes"} for n in range(3)]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path / "home")) as running:
        await running.made("says", SAYS_YES)
        yield running


async def measured(site: Site, key: str = "says", project: str = "default") -> CardRecord:
    """Calibrate a grader of the site, from outside of the server."""
    location = context_of(site.app).settings.location
    return await asyncio.to_thread(calibrated, location, key, project)


async def changed(site: Site, definition: Mapping[str, Json], kind: str = "declared") -> None:
    """Store another version of the grader."""
    body: Json = {"kind": kind, "definition": dict(definition)}
    answer = await site.admin.put(site.at("graders/says"), json=body, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text


async def graded(site: Site, **more: Json) -> dict[str, Json] | None:
    """The card in the reply to a request to grade."""
    answer = await site.post("graders/says/grade", {"items": ITEMS, **more})
    assert answer.status_code == 200, answer.text
    return card_in(body_of(answer))


async def shown(site: Site, path: str = "graders/says", **query: int) -> dict[str, Json] | None:
    """The card in what is shown of something."""
    answer = await site.get(path, **query)
    assert answer.status_code == 200, answer.text
    return card_in(body_of(answer))


def card_in(body: Mapping[str, Json]) -> dict[str, Json] | None:
    card = body["calibration"]
    return cast("dict[str, Json] | None", card)


async def job_of(site: Site, **more: Json) -> str:
    """The place of the results of a job that has ended."""
    made = await site.post("jobs", {"grader": "says", "dataset": "rows", **more})
    assert made.status_code == 202, made.text
    told = await asyncio.wait_for(site.admin.get(f"{made.headers['location']}/events"), 20)
    assert '"status":"finished"' in told.text
    return f"{made.headers['location']}/results"


async def test_a_list_of_scores_has_the_cards_of_all_that_gave_them(site: Site) -> None:
    await site.uploaded("rows", ROWS)
    await site.made("other", SAYS_NO)
    await job_of(site)
    await job_of(site, grader="other")

    async def listed() -> tuple[int, list[object]]:
        answer = await site.get("scores")
        cards = [card["grader"] for card in items_of(answer, "calibrations")]
        return len(items_of(answer)), list(cards)

    many = 2 * len(ROWS)
    assert await listed() == (many, [])
    await measured(site, "other")
    assert await listed() == (many, ["other"])
    await measured(site)
    assert await listed() == (many, ["says", "other"])
    assert items_of(await site.get("scores"), "calibrations")[0] == await graded(site)
    deleted = await site.admin.delete(site.at("graders/says"), params={"force": True})
    assert deleted.status_code == 204, deleted.text
    assert (await listed())[0] == many + len(ITEMS), "scores outlive what gave them"


async def test_a_job_s_card_is_of_what_gave_the_scores_not_of_what_would_give_them_now(
    tmp_path: Path,
) -> None:
    """Assay's own code, which a digest covers, may change between two scores of one version."""
    idle = ServerSettings(location="", job_slots=0)
    async with serving(str(tmp_path / "home"), idle) as site:
        await site.made("says", SAYS_YES)
        await site.uploaded("rows", ROWS[:2])
        made = await site.post("jobs", {"grader": "says", "dataset": "rows"})
        job, path = str(body_of(made)["id"]), f"{made.headers['location']}/results"
        record = await measured(site)
        assert (await shown(site, path) or {})["stale"] is False, "no score yet: as it is now"

        def grade(row: int, digest: str) -> None:
            with Database.open(context_of(site.app).settings.location) as database:
                one = Graded(id=f"r{row}", status="scored", score=1.0).by("says@1", digest)
                score = ScoreRecord(project="default", item=one.id, graded=one)
                Jobs(database).claim("test", 30.0, datetime.now(UTC))
                Jobs(database).add_scores(job, [(row, score)])

        await asyncio.to_thread(grade, 1, record.digest)
        assert (await shown(site, path) or {})["stale"] is False
        await asyncio.to_thread(grade, 2, "0" * 64)
        mixed = await shown(site, path)
        assert mixed is not None
        assert (mixed["stale"], mixed["changed"]) == (True, ["its files, or assay's own code"])
        assert (await shown(site, path, limit=1) or {})["stale"] is False


async def test_a_client_that_knows_the_grader_is_told_of_a_new_card(site: Site) -> None:
    path = site.at("graders/says")
    tag = (await site.admin.get(path)).headers["etag"]
    assert (await site.admin.get(path, headers={"If-None-Match": tag})).status_code == 304
    await measured(site)
    told = await site.admin.get(path, headers={"If-None-Match": tag})
    assert (told.status_code, card_in(body_of(told)) is None) == (200, False)
    named = await site.admin.patch(path, json={"name": "Says yes"})
    again = await site.admin.get(path, headers={"If-None-Match": named.headers["etag"]})
    assert again.status_code == 304


async def test_cards_are_looked_up_once_for_a_request_not_for_a_row(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.made("other", SAYS_NO)
    await measured(site, "other")
    looked: list[str | None] = []
    about = Cards.about

    def counted(self: Cards, project: str, grader: str, digests: Sequence[str]) -> list[CardRecord]:
        looked.append(project)
        return about(self, project, grader, digests)

    monkeypatch.setattr(Cards, "about", counted)
    items: list[Json] = [{"answer": "yes"} for _ in range(50)]
    answer = await site.post("graders/says/grade", {"items": items})
    assert (len(items_of(answer, "results")), card_in(body_of(answer))) == (50, None)
    assert looked == ["default"]
