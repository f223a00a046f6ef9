"""Stored graders over HTTP: versions, ETags, locks, comparison, files, and what is not allowed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio

from assay.scoring.json_safe import Json
from assay.server.context import ServerSettings
from tests.server_app import EXACT, Site, body_of, faults_of, items_of, serving

LOOSE: dict[str, Json] = {"graders": [{"type": "exact_match", "normalize_text": False}]}
STRICT: Json = {"kind": "declared", "definition": EXACT}
EMPTY = "definition.graders"
LOOSER: Json = {"kind": "declared", "definition": LOOSE, "note": "letter by letter"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def site(running: Site) -> Site:
    """A project of the test's own, on the server of all of them."""
    return await running.in_new_project()


async def test_a_grader_gets_versions_that_never_change(tmp_path: Path) -> None:
    async with serving(str(tmp_path)) as site:
        made = await site.post("graders", {"key": "exact", **cast("dict[str, Json]", STRICT)})
        assert made.status_code == 201
        assert made.headers["location"] == "/api/v1/projects/default/graders/exact"
        tag = made.headers["etag"]
        assert tag.startswith('"exact@1-')

        unchanged = await _put(site, STRICT, tag)
        assert latest(unchanged)["number"] == 1
        changed = await _put(site, LOOSER, tag)
        assert (latest(changed)["number"], latest(changed)["note"]) == (2, "letter by letter")
        late = await _put(site, STRICT, tag)
        assert (late.status_code, faults_of(late)[0]["field"]) == (412, "If-Match")
        plain = await _put(site, STRICT, '"exact@2"')
        assert latest(plain)["number"] == 3
        assert latest(await _put(site, LOOSER, "*"))["number"] == 4

        first = body_of(await site.get("graders/exact", version=1))
        assert cast("dict[str, Json]", first["latest"])["definition"] == EXACT
        numbers = [v["number"] for v in items_of(await site.get("graders/exact/versions"))]
        assert numbers == [4, 3, 2, 1]
        diff = body_of(
            await site.admin.get(site.at("graders/exact/diff"), params={"from": 1, "to": 2})
        )["diff"]
        assert "normalize_text" in str(diff)


async def test_a_version_is_replaced_only_by_who_says_which(site: Site) -> None:
    await site.made()
    path = site.at("graders/exact")
    for tag, status in ((None, 428), ('"other@1"', 412), ('"exact@one"', 412), ("exact", 412)):
        headers = {} if tag is None else {"If-Match": tag}
        answer = await site.admin.put(path, json=LOOSER, headers=headers)
        assert (answer.status_code, faults_of(answer)[0]["field"]) == (status, "If-Match")
    assert latest(await site.admin.put(f"{path}?force=true", json=LOOSER))["number"] == 2


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


async def test_a_locked_grader_changes_only_once_it_is_unlocked(site: Site) -> None:
    await site.made()
    path = site.at("graders/exact")
    locked = await site.admin.put(f"{path}/lock", json={"locked": True})
    assert body_of(locked)["locked"] is True
    for answer in (
        await site.admin.put(path, json=LOOSER, headers={"If-Match": "*"}),
        await site.admin.patch(path, json={"name": "x"}),
        await site.admin.delete(path),
        await site.admin.delete(f"{path}?force=true"),
    ):
        assert answer.status_code == 423
        faults_of(answer)
    assert (await site.post("graders/exact/grade", {"items": [{"answer": "a"}]})).status_code == 200
    await site.admin.put(f"{path}/lock", json={"locked": False})
    assert latest(await site.admin.put(path, json=LOOSER, headers={"If-Match": "*"}))["number"] == 2


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"key": "exact", **cast("dict[str, Json]", STRICT)}, 409, ""),
        ({"key": "export", **cast("dict[str, Json]", STRICT)}, 422, "key"),
        ({"key": "x", "kind": "declared", "definition": {"graders": []}}, 422, EMPTY),
        ({"key": "x", "kind": "function", "definition": {}}, 422, "definition.source"),
        ({"key": "x", "kind": "custom", "definition": {"path": "os:x"}}, 403, "definition.path"),
        (
            {"key": "x", "kind": "declared", "definition": {"graders": [{"type": "python:os:x"}]}},
            422,
            "definition.graders[0].type",
        ),
        (
            {"key": "x", "kind": "declared",
             "definition": {"graders": [{"type": "function", "file": "/etc/passwd"}]}},
            422,
            "definition.graders[0].file",
        ),
    ],
)  # fmt: skip
async def test_a_grader_that_is_wrong_is_not_stored(
    site: Site, body: dict[str, Json], status: int, field: str
) -> None:
    await site.made()
    answer = await site.post("graders", body)
    assert answer.status_code == status, answer.text
    assert any(fault["field"] == field for fault in faults_of(answer)), answer.text
    assert [g["key"] for g in items_of(await site.get("graders"))] == ["exact"]


ENDPOINT: dict[str, Json] = {"url": "https://rewards.example.com/grade"}
ADDRESS = "http://169.254.169.254/v1#m"


async def test_what_the_settings_forbid_is_said_with_the_setting_that_allows_it(
    tmp_path: Path,
) -> None:
    """Where it is forbidden, `tests/service/test_service.py` has."""
    settings = ServerSettings(
        location="", endpoint_secrets={"ASSAY_SECRET_REWARDS": "rewards.example.com"}
    )
    forbidden: list[tuple[str, dict[str, Json], str]] = [
        ("binary_judge", {"criteria": "c", "judge_model": ADDRESS}, "allow_internal_endpoints"),
        ("external_endpoint", {"url": "http://127.0.0.1:9/", "allow_internal": True}, "=true"),
        (
            "external_endpoint",
            {**ENDPOINT, "secret_env": "ASSAY_SECRET_X"},
            "--set endpoint_secrets.ASSAY_SECRET_X=HOST",
        ),
        (
            "external_endpoint",
            {
                "url": "https://rewards.example.com.evil.example/",
                "secret_env": "ASSAY_SECRET_REWARDS",
            },
            "may not be sent",
        ),
    ]
    async with serving(str(tmp_path / "home"), settings) as site:
        for kind, definition, said in forbidden:
            body: Json = {"key": "x", "kind": kind, "definition": definition}
            answer = await site.post("graders", body)
            assert (answer.status_code, said in answer.text) == (403, True), answer.text
        assert items_of(await site.get("graders")) == []


async def test_an_endpoint_may_do_what_the_server_was_told_to_allow(tmp_path: Path) -> None:
    settings = ServerSettings(
        location="",
        endpoint_secrets={"ASSAY_SECRET_REWARDS": "rewards.example.com"},
        allow_internal_endpoints=True,
    )
    body: Json = {
        "key": "x",
        "kind": "external_endpoint",
        "definition": {**ENDPOINT, "secret_env": "ASSAY_SECRET_REWARDS", "allow_internal": True},
    }
    home = str(tmp_path / "home")
    async with serving(home, settings) as site:
        answer = await site.post("graders", body)
        assert answer.status_code in (201, 422), answer.text
        allowed = answer.status_code == 201
    async with serving(home, replace(settings, endpoint_secrets={})) as site:
        if allowed:  # stored when it was allowed, and not any more
            refused = await site.post("graders/x/grade", {"items": [{"answer": "a"}]})
            assert refused.status_code == 403


async def _put(site: Site, body: Json, tag: str) -> httpx.Response:
    path = site.at("graders/exact")
    return await site.admin.put(path, json=body, headers={"If-Match": tag})


def latest(answer: httpx.Response) -> dict[str, Json]:
    assert answer.status_code < 300, answer.text
    return cast("dict[str, Json]", body_of(answer)["latest"])
