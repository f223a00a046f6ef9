"""Browsers that log in: the link that works once, API keys, and where they go on."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from assay.server import admission
from assay.server.app import context_of
from assay.server.context import ServerSettings
from tests.each import each
from tests.server_app import HERE, Site, body_of, faults_of, items_of, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

COOKIE = "assay_session_8400"
OURS = {"Origin": HERE}


async def test_the_link_logs_in_once_and_its_cookie_stays_with_this_site(site: Site) -> None:
    once = context_of(site.app).access.new_link()
    async with site.client() as browser:
        answer = await browser.get("/login", params={"once": once, "next": "/runs/r1?tab=cells"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs/r1?tab=cells")
        cookie = answer.headers["set-cookie"].lower()
        for said in ("httponly", "samesite=strict", "path=/"):
            assert said in cookie
        assert "secure" not in cookie
        assert once not in cookie
        assert (await browser.get("/api/v1/me")).json()["role"] == "admin"
        again = await browser.get("/login", params={"once": once})
        assert (again.status_code, again.headers["location"]) == (303, "/"), "it is logged in"
        async with site.client() as stranger:
            refused = await stranger.get("/login", params={"once": once})
            assert refused.status_code == 403
            assert faults_of(refused)[0]["field"] == "once"

        blind = await browser.post("/api/v1/projects", json={"key": "forged"})
        assert blind.status_code == 403, "a form of any page could send it"
        own = await browser.post("/api/v1/projects", json={"key": "mine"}, headers=OURS)
        assert own.status_code == 201
        session = browser.cookies[COOKIE]
        assert (await browser.post("/logout", headers=OURS)).status_code == 204
        assert COOKIE not in browser.cookies
        browser.cookies.set(COOKIE, session)
        assert (await browser.get("/api/v1/me")).status_code == 401


@each(
    "place",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/ /evil.example",
        "evil",
        "",
        "/a\r\nSet-Cookie: x=1",
    ],
)
async def test_a_link_leads_nowhere_but_to_this_server(site: Site, place: str) -> None:
    once = context_of(site.app).access.new_link()
    async with site.client() as browser:
        answer = await browser.get("/login", params={"once": once, "next": place})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "x=1" not in answer.headers["set-cookie"]


async def test_a_key_logs_in_and_its_session_may_what_the_key_may(site: Site) -> None:
    token = await site.key("viewer", "default")
    async with site.client() as browser:
        answer = await browser.post("/login", json={"key": f" {token}\n"}, headers=OURS)
        assert (answer.status_code, answer.content) == (204, b"")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert token not in cookie
        me = body_of(await browser.get("/api/v1/me"))
        assert (me["role"], me["project"]) == ("viewer", "default")
        denied = await browser.delete("/api/v1/projects/default/graders/x", headers=OURS)
        assert denied.status_code == 403

        first = browser.cookies[COOKIE]
        editor = await site.key("editor", "default")
        await browser.post("/login", json={"key": editor}, headers=OURS)
        assert body_of(await browser.get("/api/v1/me"))["role"] == "editor"
        async with site.client(headers={"Cookie": f"{COOKIE}={first}"}) as left:
            assert (await left.get("/api/v1/me")).status_code == 401, "the one before has ended"

        keys = items_of(await site.get("/api/v1/keys", limit=200))
        (id_,) = [key["id"] for key in keys if token.startswith(str(key["prefix"]))]
        await browser.post("/login", json={"key": token}, headers=OURS)
        assert (await site.admin.delete(f"/api/v1/keys/{id_}")).status_code == 204
        ended = await browser.get("/api/v1/me")
        assert ended.status_code == 401
        assert faults_of(ended)[0]["field"] == "Cookie"


async def test_one_key_that_logs_in_again_and_again_ends_only_its_own_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("_MOST_SESSIONS", 20), ("_MOST_OF_KEY", 5)):
        monkeypatch.setattr(admission, name, most)
    async with serving(str(tmp_path / "home")) as site:
        mine = await site.key("editor")
        async with site.client() as browser:
            await browser.post("/login", json={"key": mine})
            many = await site.key("viewer")
            async with site.client() as script:
                await script.post("/login", json={"key": many})
                first = script.cookies[COOKIE]
                for _ in range(25):
                    script.cookies.clear()
                    assert (await script.post("/login", json={"key": many})).status_code == 204
                assert (await script.get("/api/v1/me")).status_code == 200
                script.cookies.set(COOKIE, first)
                assert (await script.get("/api/v1/me")).status_code == 401
            assert (await browser.get("/api/v1/me")).status_code == 200


async def test_over_https_the_cookie_is_secure_and_a_page_elsewhere_gets_none(site: Site) -> None:
    token = await site.key("viewer")
    transport = httpx.ASGITransport(app=site.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://127.0.0.1") as browser:
        answer = await browser.post("/login", json={"key": token})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("assay_session=")
        assert "Secure" in cookie
        assert (await browser.get("/api/v1/me")).status_code == 200
    # A page elsewhere logs nobody in.
    async with site.client(headers={"Origin": "http://evil.example"}) as elsewhere:
        assert (await elsewhere.post("/login", json={"key": token})).status_code == 403
    async with site.client() as form:
        sent = {"Content-Type": "text/plain"}
        answer = await form.post("/login", content=f'{{"key": "{token}"}}', headers=sent)
        assert answer.status_code == 415


async def test_keys_that_are_guessed_are_slowed_down_and_a_good_one_is_not(tmp_path: Path) -> None:
    settings = ServerSettings(location="", login_failures=3)
    async with serving(str(tmp_path / "home"), settings) as site:
        good = await site.key("viewer")
        async with site.client() as guesser:
            for status in (401, 401, 401, 429):
                answer = await guesser.post("/login", json={"key": "assay_guess"})
                assert answer.status_code == status
                assert "set-cookie" not in answer.headers
            assert (await guesser.post("/login", json={"key": good})).status_code == 204
