"""Endpoints that hang, break, lie or flood: one deadline, few tries, and never a 0."""

from __future__ import annotations

import gzip
import json
import socket
import time
from email.utils import formatdate

import pytest

from assay.graders.apply import grade_many
from assay.graders.endpoints.calling import EndpointInfo, grade_remote, probe
from assay.graders.endpoints.settings import EndpointSettings
from assay.graders.spec import GraderSpec
from assay.models.pace import Timing
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types import Submission
from tests.each import each
from tests.endpoint_servers import (
    Asked,
    FaultServer,
    Reply,
    answering,
    drip,
    faulty,
    graded,
    hang,
    raw,
    reset,
)

ONE = [Submission(answer="x")]
NOW = 1_750_000_000.0


class Clock:
    """Time that passes only in pauses, and chance that always takes the most."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.timing = Timing(sleep=self.sleep, uniform=lambda low, high: high, now=lambda: NOW)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def settings(server: FaultServer, **more: object) -> EndpointSettings:
    options: dict[str, object] = {"url": server.url, "allow_internal": True, **more}
    return EndpointSettings(**options)  # pyright: ignore[reportArgumentType] - options of a test


async def graded_by(server: FaultServer, clock: Clock | None = None, **more: object) -> Graded:
    timing = (clock or Clock()).timing
    (outcome,) = await grade_remote(settings(server, **more), ONE, timing=timing)
    return outcome


@each("fault", [reset, raw("{}", 429), raw("{}", 502), raw("{}", 503), raw("{}", 504)])
async def test_what_was_not_graded_is_tried_again_a_bounded_number_of_times(fault: Reply) -> None:
    clock = Clock()
    with faulty(fault, fault, graded) as server:
        assert (await graded_by(server, clock)).score == 0.5
        assert len(server.asked) == 3
    assert clock.pauses == [0.25, 0.5]  # full jitter: at most this long
    for options, tries, pauses in (({}, 4, [0.25, 0.5, 1.0]), ({"retries": 0}, 1, [])):
        clock = Clock()
        with faulty(fault) as server:
            outcome = await graded_by(server, clock, **options)
            assert (outcome.status, outcome.outcome) == ("error", "unreachable")
            assert outcome.score is None
            assert f"({tries} tr" in outcome.error
            assert len(server.asked) == tries
        assert clock.pauses == pauses


async def test_retry_after_is_waited_for_where_the_deadline_allows_it() -> None:
    clock = Clock()
    busy = [raw("{}", 429, Retry_After=at) for at in ("5", formatdate(NOW + 7, usegmt=True))]
    with faulty(*busy, graded) as server:
        assert (await graded_by(server, clock)).score == 0.5
    assert clock.pauses == [5.25, 7.5]
    clock = Clock()
    with faulty(raw("{}", 503, Retry_After="61")) as server:
        outcome = await graded_by(server, clock)
        assert outcome.outcome == "unreachable"
        assert "beyond the deadline" in outcome.error
        assert len(server.asked) == 1
    assert clock.pauses == []


@each(
    ("faults", "before"),
    [([hang], ""), ([drip], ""), ([reset, raw("{}", 503), hang], "; before that: ")],
)
async def test_one_deadline_holds_for_all_of_a_reply_and_over_all_tries(
    faults: list[Reply], before: str
) -> None:
    started = time.monotonic()
    with faulty(*faults) as server:
        outcome = await graded_by(server, timeout_seconds=0.4)
        assert len(server.asked) == len(faults)
    assert (outcome.status, outcome.outcome) == ("error", "unreachable")
    assert f"no reply within 0.4 seconds{before}" in outcome.error
    assert ("answered 503" in outcome.error) == bool(before)
    assert time.monotonic() - started < 20


async def test_what_nobody_answers_is_unreachable() -> None:
    async def unknown(name: str, port: int) -> list[str]:
        raise OSError("unknown")

    with faulty(graded) as server:
        url = server.url.replace("http:", "https:")  # it has no TLS
        secure = EndpointSettings(url=url, allow_internal=True, timeout_seconds=0.4)
        (outcome,) = await grade_remote(secure, ONE, timing=Clock().timing)
        assert (outcome.status, outcome.outcome) == ("error", "unreachable")
    nowhere = EndpointSettings(url="https://nowhere.example.com")
    for where, said in (
        (settings(server), "connection refused (4 tries)"),
        (nowhere, "its host name cannot be resolved (4 tries)"),
    ):
        (outcome,) = await grade_remote(where, ONE, timing=Clock().timing, lookup=unknown)
        assert (outcome.status, outcome.outcome) == ("error", "unreachable")
        assert said in outcome.error


BOMB = gzip.compress(b"[" + b" " * (16 << 20) + b"]", 1)
GOOD = json.dumps({"results": [{"id": "0", "score": 0.5}]})


def garbage(connection: socket.socket, asked: Asked, over: object) -> None:
    """Speak no HTTP."""
    connection.sendall(b"\x00\x01 nonsense\r\n\r\n")


FINAL: list[tuple[Reply, str, str]] = [
    (raw("{}", 500), "rejected", "answered 500"),
    (raw("gone", 404, kind="text/plain"), "rejected", "answered 404: gone"),
    (raw("x" * 100_000, 400, kind="text/plain"), "rejected", "answered 400: xxx"),
    (raw('{"detail": "who are you?"}', 401), "rejected", "answered 401: who are you?"),
    (raw('{"detail": [1]}', 422), "rejected", 'answered 422: {"detail": [1]}'),
    (raw(GOOD[:20], length=len(GOOD)), "bad_reply", "broke off"),
    (raw('{"results": [{"id": "0", "score": 0.0, "score": 1.0}]}'), "bad_reply",
     "the key 'score' twice in one object"),
    (raw("<html>"), "bad_reply", "broken JSON"),
    (raw(GOOD, kind="text/html"), "bad_reply", "text/html, not JSON"),
    (raw("{}"), "bad_reply", "no list 'results'"),
    (raw(BOMB, Content_Encoding="gzip"), "bad_reply", "more than 8 MiB"),
    (raw(gzip.compress(GOOD.encode())[:-9], Content_Encoding="gzip"), "bad_reply",
     "broke off"),
    (garbage, "bad_reply", "does not speak HTTP"),
]  # fmt: skip


@each(("fault", "outcome", "said"), FINAL)
async def test_a_reply_that_is_none_is_an_error_and_not_tried_again(
    fault: Reply, outcome: str, said: str
) -> None:
    with faulty(fault) as server:
        found = await graded_by(server)
        assert (found.status, found.outcome, found.score) == ("error", outcome, None)
        assert said in found.error
        assert len(found.error) < 500
        assert len(server.asked) == 1


async def test_a_redirect_is_not_followed() -> None:
    with faulty(graded) as other, faulty(raw("", 307, Location=f"{other.url}/v1/grade")) as server:
        found = await graded_by(server)
        assert (found.outcome, other.asked, len(server.asked)) == ("rejected", [], 1)
        assert "a redirect" in found.error


async def test_a_packed_reply_is_read_and_its_cookies_are_not_kept() -> None:
    packed = gzip.compress(GOOD.encode())
    with faulty(raw(packed, Content_Encoding="gzip", Set_Cookie="a=b"), graded) as server:
        two = await grade_remote(settings(server, batch=1, parallel=1), [*ONE, *ONE])
        assert two[0].score == 0.5
        assert all("cookie" not in asked.headers for asked in server.asked)


# Secrets

SECRET = "s3cr3t-Value_1"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ASSAY_SECRET_R", f"{SECRET}\n")
    return "ASSAY_SECRET_R"


def echo_everything(asked: Asked) -> object:
    said = f"bad token {SECRET}: {asked.headers}"
    return {
        "results": [
            {"id": "0", "score": 0.5, "reason": said, "flags": [said], "details": {SECRET: [said]}},
            {"id": "1", "error": {"code": SECRET, "message": said}},
        ]
    }


async def test_an_endpoint_that_says_the_secret_back_does_not_get_it_recorded(secret: str) -> None:
    with faulty(answering(echo_everything)) as server:  # pyright: ignore[reportArgumentType] - JSON all the same
        options: dict[str, Json] = {"url": server.url, "allow_internal": True, "secret_env": secret}
        grader = GraderSpec(type="external_endpoint", options=options)
        found = await grade_many([grader], [("a", ONE[0]), ("b", ONE[0])])
        assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    assert [outcome.status for outcome in found] == ["scored", "error"]
    assert "[redacted]" in found[0].reason
    assert SECRET not in json.dumps([outcome.to_dict() for outcome in found])


@pytest.mark.parametrize("auth", ["bearer", "hmac"])
@pytest.mark.parametrize(
    "fault",
    [raw(f'{{"detail": "no {SECRET}"}}', 401), raw(SECRET, kind=SECRET), reset, raw("", 302)],
    ids=["401", "odd-type", "reset", "redirect"],
)
async def test_no_failure_shows_the_secret(
    secret: str, auth: str, fault: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with faulty(fault) as server:
        found = await graded_by(server, secret_env=secret, auth=auth)
    assert found.status == "error"
    assert SECRET not in json.dumps(found.to_dict()) + caplog.text


@pytest.mark.parametrize("value", ["", "a\r\nX-Evil: 1", "\u00fcber"])
async def test_without_a_secret_that_a_header_can_hold_nothing_is_sent_or_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SECRET_ODD", value)
    with faulty(graded) as server:
        found = await graded_by(server, secret_env="ASSAY_SECRET_ODD")
        assert (found.status, server.asked) == ("error", [])
    assert ("ASSAY_SECRET_ODD holds no secret" in found.error) == (not value)
    assert not value or value not in found.error


# What it is


async def test_an_endpoint_is_asked_what_it_is() -> None:
    told = {"name": "rewards", "version": 3, "max_batch": 8, "description": None}
    with faulty(raw(json.dumps(told))) as server:
        info = await probe(settings(server))
        assert (server.asked[0].method, server.asked[0].path) == ("GET", "/v1/info")
    assert info == EndpointInfo(online=True, name="rewards", version="3", details={"max_batch": 8})


OTHERS = {"adaptive": "GET /info", "openrlhf": "POST /get_reward", "nemo_gym": "POST /seed_session"}


@each(("protocol", "asked"), OTHERS.items())
async def test_other_protocols_are_asked_in_their_way(protocol: str, asked: str) -> None:
    with faulty(raw("{}")) as server:
        info = await probe(settings(server, protocol=protocol))
        assert info.online
        assert f"{server.asked[0].method} {server.asked[0].path}" == asked


@each("fault", [raw("[]"), raw("x", 500), reset])
async def test_an_endpoint_that_is_not_there_is_offline(fault: Reply) -> None:
    with faulty(fault) as server:
        info = await probe(settings(server), timing=Clock().timing)
    assert not info.online
    assert info.error
    assert info.to_dict()["online"] is False
