"""Who may do what: keys, roles, projects, the link that logs in once, pages of other origins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio

from assay.scoring.json_safe import Json
from assay.server import admission
from assay.server.app import context_of
from assay.server.context import ServerSettings
from assay.server.metrics import MOST_PROJECTS, Metrics
from tests.each import each
from tests.server_app import EXACT, HERE, Site, body_of, faults_of, items_of, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROJECT = "/api/v1/projects/default"


@dataclass(slots=True)
class Clock:
    """Time that passes when a test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(running: Site) -> Site:
    await running.made()
    await running.post("/api/v1/projects", {"key": "other"})
    return running


@each(
    "given, said",
    [
        ({}, "send an API key"),
        ({"Authorization": "Bearer assay_00000000_unknown"}, "unknown or was revoked"),
        ({"Authorization": "Bearer "}, "not `Bearer` and a key"),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, "not `Bearer` and a key"),
        ({"Cookie": "assay_session=guess"}, "send an API key"),
        ({"Cookie": "assay_session_8400=guess"}, "this session has ended"),
    ],
)
async def test_without_a_valid_key_nothing_is_told(
    site: Site, given: dict[str, str], said: str
) -> None:
    async with site.client(headers=given) as client:
        for path in (
            f"{PROJECT}/graders",
            "/api/v1/keys",
            "/api/v1/me",
            "/serve/default/exact/info",
        ):
            answer = await client.get(path)
            faults_of(answer)
            assert answer.status_code == 401
            assert said in str(body_of(answer)["detail"])
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_key_of_one_project_opens_no_other(site: Site) -> None:
    """Operation by operation: tests/contract."""
    async with site.client(await site.key("admin", "other")) as client:
        seen = items_of(await client.get("/api/v1/projects"))
        assert [project["key"] for project in seen] == ["other"]
        for project in ("*", "default"):
            body = {"name": "more", "role": "viewer", "project": project}
            assert (await client.post("/api/v1/keys", json=body)).status_code == 403
        # "own" is what routes say that are about the caller's own project.
        for key in ("own", "all", "any"):
            assert (await site.post("/api/v1/projects", {"key": key})).status_code == 201
            assert (await client.get(f"/api/v1/projects/{key}/graders")).status_code == 403


async def test_a_log_line_is_one_line_whatever_is_asked_for(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="assay.access"):
        await site.get("/a%0d%0aGET%20/forged%20200%1b[2J?once=secret")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "assay.access"]
    assert line.isprintable()
    assert "secret" not in line


async def test_a_key_is_shown_once_and_useless_once_it_is_revoked(site: Site) -> None:
    made = body_of(
        await site.post("/api/v1/keys", {"name": "ci", "role": "viewer", "project": "default"})
    )
    token = str(made["token"])
    assert token.startswith(f"{made['prefix']}_")
    listed = await site.get("/api/v1/keys", limit=200)
    assert token not in listed.text
    assert "hash" not in listed.text
    async with site.client(token) as client:
        me = body_of(await client.get("/api/v1/me"))
        assert (me["name"], me["role"], me["project"]) == ("ci", "viewer", "default")
        assert (await site.admin.delete(f"/api/v1/keys/{made['id']}")).status_code == 204
        assert (await client.get("/api/v1/me")).status_code == 401


@each(
    "origin",
    ["http://evil.example", "http://127.0.0.1:9999", "null", "http://127.0.0.1.evil.example:8400",
     "file://", "http://[", "http://localhost:8400", "chrome-extension://127.0.0.1:8400",
     "http://x@127.0.0.1:8400", "ftp://127.0.0.1:8400"],
)  # fmt: skip
async def test_a_page_of_another_origin_may_not_write_even_with_a_key(
    site: Site, origin: str
) -> None:
    answer = await site.admin.post(
        "/api/v1/projects", json={"key": "forged"}, headers={"Origin": origin}
    )
    assert (answer.status_code, faults_of(answer)[0]["field"]) == (403, "Origin")


@each(
    "host, status",
    [
        ("127.0.0.1:8400", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8400", 200),
        ("192.168.1.7:8400", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8400", 421),
        ("localhost@evil.example", 421),
        ("", 421),
        ("127.0.0.1:port", 421),
        ("a/b", 421),
    ],
)
async def test_a_name_that_is_not_ours_is_a_rebound_one(site: Site, host: str, status: int) -> None:
    answer = await site.admin.get("/healthz", headers={"Host": host})
    assert answer.status_code == status
    if status == 421:
        faults_of(answer)


async def test_guessing_is_slowed_down_at_each_door_and_others_and_good_keys_are_not(
    tmp_path: Path,
) -> None:
    settings = ServerSettings(location="", login_failures=3)
    async with serving(str(tmp_path / "home"), settings) as site:
        good = await site.key("viewer")
        async with site.client("assay_00000000_guess") as guesser:
            statuses = [(await guesser.get("/api/v1/me")).status_code for _ in range(4)]
            assert statuses == [401, 401, 401, 429]
            for last in (
                await guesser.get("/login", params={"once": "guess"}),
                await guesser.post("/login", json={"key": "assay_guess"}),
            ):
                assert (last.status_code, "set-cookie" in last.headers) == (429, False)
                assert 0 < int(last.headers["retry-after"]) <= 61
            assert (await guesser.post("/login", json={"key": good})).status_code == 204
        assert (await site.get("/api/v1/me")).status_code == 200
        transport = httpx.ASGITransport(app=site.app, client=("10.0.0.9", 1))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as other:
            once = await other.get("/login", params={"once": "guess"})
            keys = [await other.post("/login", json={"key": "assay_guess"}) for _ in range(3)]
        assert [one.status_code for one in (once, *keys)] == [403, 401, 401, 429]
        assert "set-cookie" not in keys[0].headers


async def test_counts_are_not_public_behind_a_local_proxy_that_nobody_named(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    settings = ServerSettings(location="", hosts=("assay.example",))
    async with (
        serving(str(tmp_path / "home"), settings) as site,
        site.client() as stranger,
        site.client(await site.key("viewer")) as scraper,
    ):
        for host, status in (("ASSAY.example:443", 200), ("x", 421)):
            assert (await stranger.get("/healthz", headers={"Host": host})).status_code == status
        assert (await stranger.get("/metrics")).status_code == 200
        for name, value in (
            *(("X-Forwarded-For", "203.0.113.7"), ("X-Real-IP", "203.0.113.7")),
            *(("Forwarded", "for=203.0.113.7"), ("Via", "1.1 Caddy")),
            *(("Host", "assay.example"), ("Host", "192.0.2.1:8400")),
        ):
            with subtests.test(name, value=value):
                passed_on = {name: value}
                assert (await stranger.get("/metrics", headers=passed_on)).status_code == 401
                assert (await scraper.get("/metrics", headers=passed_on)).status_code == 200


async def test_every_reply_tells_browsers_to_be_careful(site: Site) -> None:
    for path in ("/api/v1/me", "/nowhere", "/healthz"):
        headers = (await site.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "no-store" in headers["cache-control"]


async def test_a_reply_and_its_line_in_the_log_have_one_id(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for given, is_kept in (("a-1.b_2", True), ("a" * 65, False), ("a b", False), ("", False)):
        with caplog.at_level("INFO", "assay.access"):
            answer = await site.admin.get("/healthz", headers={"X-Request-Id": given})
        found = answer.headers["x-request-id"]
        assert (found == given) is is_kept
        assert caplog.messages[-1].endswith(f" ms {found}")


async def test_who_made_locked_and_deleted_what_is_noted(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    own = await site.in_new_project()
    with caplog.at_level("INFO", "assay.audit"):
        await own.made("k")
        await own.admin.put(own.at("graders/k/lock"), json={"locked": True})
        await own.admin.delete(own.at("graders/k"))  # it is locked
        await own.admin.put(own.at("graders/k/lock"), json={"locked": False})
        await own.admin.delete(own.at("graders/k"))
        await own.get("graders")
        await own.uploaded("d", [{"answer": "4"}])
    noted = [cast("dict[str, Json]", json.loads(line)) for line in caplog.messages]
    assert [(one["operation"], one["what"]) for one in noted] == [
        ("create_grader", {"key": "k", "name": ""}),
        ("lock_grader", {"key": "k", "locked": True}),
        ("lock_grader", {"key": "k", "locked": False}),
        ("delete_grader", {"key": "k", "force": False}),
        ("create_dataset", {"key": "d", "name": ""}),
    ]
    assert {(one["project"], one["by"], one["role"]) for one in noted} == {
        (own.project, "admin", "admin")
    }
    assert all(one["key"] and one["time"] and one["address"] for one in noted)
    stored = items_of(await own.get("changes"))[::-1]
    assert [{**one, "seq": None} for one in stored] == [{**one, "seq": None} for one in noted]
    newest = items_of(await own.get("/api/v1/changes", limit=6))
    assert [one["project"] for one in newest] == [own.project] * 5 + ["*"]


async def test_a_change_that_is_refused_or_answered_again_is_noted_once(site: Site) -> None:
    own = await site.in_new_project()
    body: Json = {"key": "k", "kind": "declared", "definition": EXACT}
    for _ in range(2):
        await own.post("graders", body, Idempotency_Key="once")
    assert (await own.post("graders", body)).status_code == 409
    async with site.client(await site.key("viewer", own.project)) as client:
        assert (await client.post(own.at("graders"), json=body)).status_code == 403
    await own.post("graders/k/grade", {"items": [{"answer": "4"}]})
    assert [one["operation"] for one in items_of(await own.get("changes"))] == ["create_grader"]


async def test_requests_beyond_those_of_a_minute_are_told_to_wait(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, clock = await site.in_new_project(), Clock()
    monkeypatch.setattr(context_of(site.app).allowances, "_clock", clock)
    limits: Json = {"requests_per_minute": 2, "gradings_at_once": 3}
    async with site.client(await site.key("editor", own.project)) as client:
        free = await client.get(own.at("graders"))
        assert (free.status_code, "ratelimit" in free.headers) == (200, False)
        before = body_of(await own.get(f"/api/v1/projects/{own.project}"))
        made = await own.admin.put(own.at("limits"), json=limits)
        assert body_of(made) == before | limits
        asked = [await client.get(path) for path in (own.at("graders"), "/api/v1/me")]
        clock.now += 20.5
        asked.append(await client.get(own.at("graders")))
        served = await client.post(f"/serve/{own.project}/k/score", json={})
        assert [one.status_code for one in (*asked, served)] == [200, 200, 429, 429]
        assert [one.headers["ratelimit"] for one in asked] == [
            '"minute";r=1;t=60', '"minute";r=0;t=60', '"minute";r=0;t=40',
        ]  # fmt: skip
        assert asked[2].headers["ratelimit-policy"] == '"minute";q=2;w=60'
        assert asked[2].headers["retry-after"] == served.headers["retry-after"] == "40"
        assert "2 requests a minute" in str(body_of(asked[2])["detail"])
        other = await site.get("/api/v1/projects/default/graders")
        assert (other.status_code, "ratelimit" in other.headers) == (200, False)
        raised = await own.admin.put(own.at("limits"), json={})  # who sets limits is never kept out
        assert raised.status_code == 200
        assert (await client.get(own.at("graders"))).status_code == 200


async def test_counts_are_closed_where_others_can_reach_the_server_and_those_of_a_project_its_own(
    tmp_path: Path,
) -> None:
    settings = ServerSettings(location="", is_local=False)
    async with serving(str(tmp_path), settings) as site:
        await site.made()
        own = await site.in_new_project()
        await own.made()
        for one in (site, own):
            body: Json = {"items": [{"answer": "4", "expected": "4"}]}
            assert (await one.post("graders/exact/grade", body)).status_code == 200
        await site.admin.get("/api/v1/projects/invented/graders")
        async with site.client() as stranger:
            assert (await stranger.get("/metrics")).status_code == 401
        seen: dict[str, str] = {}
        for project in ("*", own.project):
            async with site.client(await site.key("viewer", project)) as client:
                seen[project] = (await client.get("/metrics")).text
    for key in ("default", own.project):
        line = f'assay_project_grades_total{{outcome="ok",project="{key}"}} 1.0'
        assert (line in seen["*"], line in seen[own.project]) == (True, key == own.project)
    refused = 'assay_requests_total{method="GET",route="/metrics",status="401"} 1.0'
    assert (refused in seen["*"], "invented" in seen["*"]) == (True, False)
    assert 'project="default"' not in seen[own.project]
    assert all("assay_jobs_waiting 0.0" in text for text in seen.values())


async def test_projects_without_number_are_counted_together() -> None:
    metrics = Metrics()
    for number in range(3 * MOST_PROJECTS):
        metrics.job("finished", f"p{number}")
    metrics.waiting({"p0": 1, "q0": 1, "q1": 1})
    metrics.standing([("p0", 1, 2), ("p1", 3, 4), ("p0", 1, 0)])  # in two lanes
    text = metrics.text("*").decode()
    assert text.count("assay_project_jobs_total{") == MOST_PROJECTS + 1
    assert 'assay_project_jobs_waiting{project="_others"} 2.0' in text
    assert 'assay_jobs_total{status="finished"} 300.0' in text
    assert 'assay_project_gradings{project="p0",state="running"} 2.0' in text


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
