"""Stored graders over HTTP: versions, ETags, locks, comparison, files, and what is not allowed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio

from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.context import ServerSettings
from tests.calibrated_graders import calibrated
from tests.server_app import EXACT, Site, body_of, faults_of, serving

LOOSE: dict[str, Json] = {"graders": [{"type": "exact_match", "normalize_text": False}]}
STRICT: Json = {"kind": "declared", "definition": EXACT}
LOOSER: Json = {"kind": "declared", "definition": LOOSE, "note": "letter by letter"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def site(running: Site) -> Site:
    """A project of the test's own, on the server of all of them."""
    return await running.in_new_project()


async def test_a_version_is_replaced_only_by_who_says_which(site: Site) -> None:
    made = await site.post("graders", {"key": "exact", **cast("dict[str, Json]", STRICT)})
    path = site.at("graders/exact")
    assert (made.status_code, made.headers["location"]) == (201, path)
    tag = made.headers["etag"]
    assert tag.startswith('"exact@1-')
    assert latest(await _put(site, STRICT, tag))["number"] == 1, "unchanged"
    changed = await _put(site, LOOSER, tag)
    assert (latest(changed)["number"], latest(changed)["note"]) == (2, "letter by letter")
    for wrong, status in (
        *((tag, 412), (None, 428), ('"other@1"', 412), ('"exact@one"', 412), ("exact", 412)),
    ):
        headers = {} if wrong is None else {"If-Match": wrong}
        answer = await site.admin.put(path, json=STRICT, headers=headers)
        assert (answer.status_code, faults_of(answer)[0]["field"]) == (status, "If-Match")
    assert latest(await _put(site, STRICT, '"exact@2"'))["number"] == 3
    assert latest(await _put(site, LOOSER, "*"))["number"] == 4
    assert latest(await site.admin.put(f"{path}?force=true", json=STRICT))["number"] == 5
    diff = await site.admin.get(f"{path}/diff", params={"from": 1, "to": 2})
    assert "normalize_text" in str(body_of(diff)["diff"])


async def test_what_the_client_has_already_is_not_sent_again(site: Site) -> None:
    await site.made()
    path = site.at("graders/exact")
    tag = (await site.admin.get(path)).headers["etag"]
    same = await site.admin.get(path, headers={"If-None-Match": f'"x", W/{tag}'})
    assert (same.status_code, same.content) == (304, b"")
    await site.admin.patch(path, json={"description": "only the text counts"})
    other = await site.admin.get(path, headers={"If-None-Match": tag})
    assert other.status_code == 200, "what is said of it changed, though no version did"
    assert latest(other)["number"] == 1
    location = context_of(site.app).settings.location
    await asyncio.to_thread(calibrated, location, "exact", site.project)
    told = await site.admin.get(path, headers={"If-None-Match": other.headers["etag"]})
    assert told.status_code == 200, "it has a card now"
    assert cast("dict[str, Json]", body_of(told)["calibration"])["n"] == 20
    same = await site.admin.get(path, headers={"If-None-Match": told.headers["etag"]})
    assert same.status_code == 304


async def test_an_endpoint_may_do_what_the_server_was_told_to_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SECRET_REWARDS", "s3cr3t")
    settings = ServerSettings(
        location="",
        endpoint_secrets={"ASSAY_SECRET_REWARDS": "127.0.0.1"},
        allow_internal_endpoints=True,
    )
    endpoint: Json = {
        "url": "http://127.0.0.1:9/",
        "secret_env": "ASSAY_SECRET_REWARDS",
        "allow_internal": True,
    }
    body: Json = {"key": "x", "kind": "external_endpoint", "definition": endpoint}
    home = str(tmp_path / "home")
    async with serving(home, settings) as site:
        answer = await site.post("graders", body)
        assert answer.status_code == 201, answer.text
    for less in (replace(settings, endpoint_secrets={}), ServerSettings(location="")):
        async with serving(home, less) as site:  # stored when it was allowed, and not any more
            refused = await site.post("graders/x/grade", {"items": [{"answer": "a"}]})
            assert refused.status_code == 403


async def _put(site: Site, body: Json, tag: str) -> httpx.Response:
    path = site.at("graders/exact")
    return await site.admin.put(path, json=body, headers={"If-Match": tag})


def latest(answer: httpx.Response) -> dict[str, Json]:
    assert answer.status_code < 300, answer.text
    return cast("dict[str, Json]", body_of(answer)["latest"])
