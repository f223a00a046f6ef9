"""A stored grader as a reward, when what stands between or the server itself misbehaves."""

from __future__ import annotations

import gc
import json
import pickle
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import httpx
import pytest

from assay import Client
from assay.client import AuthError
from assay.errors import AssayError, ConflictError, InputError, NotFoundError
from assay.models.pace import Timing
from assay.scoring.json_safe import Json
from assay.training import Reward
from assay.types.submission import Submission
from tests.client_modes import Server, running
from tests.endpoint_servers import Asked, faulty, raw
from tests.model_servers import FakeTime
from tests.server_process import ServerProcess

ROWS: list[dict[str, Json]] = [
    {"answer": "4", "expected": "4"},
    {"answer": "5", "expected": "4"},
    {"answer": "poison", "expected": "poison"},
    {"answer": "4", "expected": "4"},
]
HALF = """\
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    return 0.5
"""
SLOW = HALF.replace("    return", "    import time\n    time.sleep(0.2)\n    return")
GRADED = [1.0, 0.0, 1.0, 1.0]
NONE = [None] * len(ROWS)

_PASSED = ("authorization", "content-type", "idempotency-key")


@dataclass(frozen=True, slots=True)
class Said:
    """A reply of the server, on its way to the client."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media: str = "application/json"

    def mapped(self, change: Callable[[dict[str, Any]], object]) -> Said:
        """The same with other JSON."""
        data = json.loads(self.body)
        change(data)
        return replace(self, body=json.dumps(data).encode())


Fault: TypeAlias = "Callable[[Said, bytes], Said | str]"
"""What becomes of a reply, by what was asked; ``reset`` and ``hang`` send half of it."""


@dataclass(slots=True)
class Between:
    """What stands between the client and the server: it spoils the first replies to gradings."""

    to: str
    fault: Fault
    times: int
    url: str = ""
    asked: int = 0
    keys: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])

    def reply(self, connection: socket.socket, asked: Asked, over: threading.Event) -> None:
        """As a `FaultServer` has it."""
        sent = {name: asked.headers[name] for name in _PASSED if name in asked.headers}
        to = self.to + asked.path
        answered = httpx.request(asked.method, to, content=asked.body, headers=sent, timeout=60)
        said = Said(answered.status_code, answered.content)
        found: Said | str = said
        if asked.path.endswith("/grade"):
            self.asked += 1
            self.keys.append(asked.headers["idempotency-key"])
            self.bodies.append(asked.body)
            if self.asked <= self.times:
                found = self.fault(said, asked.body)
        if isinstance(found, Said):
            headers: dict[str, Any] = {**found.headers}
            reply = raw(found.body, found.status, kind=found.media, **headers)
        else:
            reply = raw(said.body[:40], length=len(said.body))
        reply(connection, asked, over)
        if found == "hang":
            over.wait(20)


@contextmanager
def between(to: str, fault: Fault, times: int) -> Generator[Between]:
    """It listens as long as it is needed."""
    found = Between(to, fault, times)
    with faulty(found.reply) as server:
        found.url = server.url
        yield found


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    found = FakeTime()
    monkeypatch.setattr("assay.client.remote.Timing", lambda: found.timing)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(str(tmp_path_factory.mktemp("store"))) as found:
        with Client(found.url, found.key()) as client:
            client.graders.create.declared(key="exact", graders=[{"type": "exact_match"}])
        yield found


@pytest.fixture(autouse=True)
def _key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_API_KEY", server.key())
    # Later, a reward that was made without an answer takes whatever digest comes first.
    monkeypatch.setattr("assay.training.served._FIRST_SECONDS", 100.0)


def _status(status: int, **headers: str) -> Fault:
    body = json.dumps({"title": "no", "status": status, "detail": "not now"}).encode()
    return lambda _said, _asked: Said(status, body, headers)


def _result(**changed: Json) -> Fault:
    def change(said: Said, _: bytes) -> Said:
        return said.mapped(lambda data: data["results"][1].update(changed))

    return change


def _changed(change: Callable[[dict[str, Any]], object]) -> Fault:
    return lambda said, _: said.mapped(change)


def _of_poison(status: int, field: str = "") -> Fault:
    """Refuses whatever has a certain item in it."""

    def refuse(said: Said, asked: bytes) -> Said:
        items = json.loads(asked)["items"]
        place = next((n for n, one in enumerate(items) if one["answer"] == "poison"), None)
        if place is None:
            return said
        fault = {"field": field.format(place), "message": "poison", "hint": ""}
        return Said(status, json.dumps({"detail": "poison", "errors": [fault]}).encode())

    return refuse


_HTML = b"<html><body>Sign in</body></html>"


def _page(status: int) -> Fault:
    return lambda _said, _asked: Said(status, _HTML, media="text/html")


def _half_of_it(how: str) -> Fault:
    return lambda _said, _asked: how


def _cut(said: Said, _: bytes) -> Said:
    return replace(said, body=said.body[:50])


def _as_it_is(said: Said, _: bytes) -> Said:
    return said


ALONE = [1.0, 0.0, None, 1.0]


@pytest.mark.parametrize(
    ("fault", "times", "expected", "cause", "asked"),
    [
        pytest.param(_half_of_it("reset"), 1, GRADED, "", 2, id="reset in the body"),
        pytest.param(_half_of_it("reset"), 99, NONE, "cannot be reached", 0, id="reset always"),
        pytest.param(_half_of_it("hang"), 99, NONE, "not graded within", 0, id="slow loris"),
        pytest.param(_cut, 1, GRADED, "", 2, id="cut off"),
        pytest.param(_cut, 99, NONE, "breaks off", 0, id="cut off always"),
        pytest.param(_page(200), 99, NONE, "not that of an assay", 1, id="a page"),
        pytest.param(_page(502), 2, GRADED, "", 3, id="a proxy's 502"),
        pytest.param(_status(503, Retry_After="5"), 2, GRADED, "", 3, id="503"),
        pytest.param(_status(429, Retry_After="1e9"), 2, GRADED, "", 3, id="429 for a century"),
        pytest.param(_status(429, Retry_After="nan"), 2, GRADED, "", 3, id="429 nan"),
        pytest.param(_status(429), 999, NONE, "not now", 0, id="429 always"),
        pytest.param(_status(302, Location="http://127.0.0.1:1/"), 1, NONE, "302", 1, id="302"),
        pytest.param(_changed(lambda d: d["results"].pop()), 9, NONE, "3 of 4", 1, id="too few"),
        pytest.param(
            _changed(lambda d: d["results"].append(d["results"][0])), 9, NONE, "5 of 4", 1,
            id="too many",
        ),
        pytest.param(
            _changed(lambda d: d["results"].reverse()), 9, NONE, "is of item", 1, id="other order"
        ),
        pytest.param(_result(score=float("nan")), 9, NONE, "not that of an assay", 1, id="nan"),
        pytest.param(_result(score=True), 9, NONE, "not that of an assay", 1, id="a bool"),
        pytest.param(_result(grader="other@1"), 9, NONE, "'other@1'", 1, id="another's outcome"),
        pytest.param(
            _changed(lambda d: d.update(grader="exact@2")), 9, NONE, "'exact@2'", 1,
            id="another version",
        ),
        pytest.param(_of_poison(500), 99, ALONE, "poison", 5, id="500 for one item"),
        pytest.param(_of_poison(413), 99, ALONE, "poison", 5, id="413 for one item"),
        pytest.param(
            _of_poison(422, "items[{}].answer"), 99, ALONE, "poison", 5, id="422 for one item"
        ),
    ],
)  # fmt: skip
def test_what_goes_wrong_on_the_way_is_mended_or_no_reward_and_never_a_number(
    server: Server,
    waits: FakeTime,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    times: int,
    expected: list[float | None],
    cause: str,
    asked: int,
) -> None:
    patience = 0.3 if "loris" in request.node.name else 200
    with between(server.url, fault, times) as way:
        reward = Reward("exact@1", url=way.url, patience=patience)
        batch = reward.grade_now(ROWS)
    assert batch.rewards == expected
    assert {one.status for one in batch.graded if one.score is None} <= {"error"}
    assert all(cause in one.error for one in batch.graded if one.score is None), batch.graded
    assert not asked or way.asked == asked
    assert max(waits.slept, default=0.0) <= 75
    assert sum(waits.slept) < 200
    waited = f"the server at {way.url} answers 50"
    assert caplog.text.count(waited) == (request.node.callspec.id in ("a proxy's 502", "503"))
    if way.asked > 1 and expected in (GRADED, NONE):
        assert len(set(way.keys)) == 1, "what is asked again is not judged twice"


def _nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


_UNSENDABLE: dict[str, dict[str, Any]] = {
    "infinite": {"expected": float("inf")},
    "nested": {"expected": _nested(70)},
    "nested far": {"expected": _nested(5_000)},
    "a long number": {"expected": 10**5_000},
    "an object": {"metadata": {"x": object()}},
}


def test_a_row_that_no_request_can_hold_has_no_reward_and_stops_no_training(
    server: Server,
) -> None:
    gc.collect()  # else a client that was forgotten may be closed where the stack has no room left
    good = Submission(answer="4", expected="4")
    bad = [replace(good, **parts) for parts in _UNSENDABLE.values()]
    batch = Reward("exact@1", url=server.url).grade_now([good, *bad, good])
    assert batch.rewards == [1.0, *[None] * len(bad), 1.0]
    found = dict(zip(_UNSENDABLE, batch.graded[1:-1], strict=True))
    assert [name for name, one in found.items() if one.outcome != "bad_item"] == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (_status(401), AuthError),
        (_status(403), AuthError),
        (_page(401), AuthError),
        (_status(404), NotFoundError),
        (_changed(lambda data: data.update(digest="0" * 64)), ConflictError),
        (_of_poison(422), InputError),
    ],
    ids=["revoked", "viewer", "a proxy's 401", "deleted", "another store", "cannot grade here"],
)
def test_what_no_patience_mends_stops_the_training(
    server: Server, waits: FakeTime, fault: Fault, error: type[AssayError]
) -> None:
    with between(server.url, fault, 99) as way, pytest.raises(error):
        Reward("exact@1", url=way.url).grade_now(ROWS)
    assert (way.asked, waits.slept) == (1, [])


def test_a_wrong_grader_project_or_key_is_told_when_the_reward_is_made(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for grader, project in (("none", "default"), ("exact@7", "default"), ("exact", "none")):
        with pytest.raises(NotFoundError):
            Reward(grader, url=server.url, project=project)
    monkeypatch.setenv("ASSAY_API_KEY", "assay_wrong")
    with pytest.raises(AuthError):
        Reward("exact", url=server.url)


def test_a_newer_version_does_not_change_the_reward_of_a_training(server: Server) -> None:
    with Client(server.url, server.key()) as client:
        client.graders.create.declared(key="moving", graders=[{"type": "exact_match"}])
        reward = Reward("moving", url=server.url)
        client.graders.update("moving", HALF)
        assert reward.grade_now(ROWS).rewards == GRADED
        copied = cast("Reward", pickle.loads(pickle.dumps(reward)))
        assert copied.grade_now(ROWS).rewards == GRADED
        assert Reward("moving", url=server.url).grade_now(ROWS).rewards == [0.5] * 4


@pytest.mark.slow
def test_a_batch_larger_than_a_request_is_split_by_number_and_by_size(
    server: Server, waits: FakeTime
) -> None:
    del waits
    rows = [{"answer": f"{number}", "expected": "7"} for number in range(2_500)]
    large = [{"answer": "é" * (1 << 19), "expected": "4"}] * 5  # 3 MB each as JSON
    with between(server.url, _as_it_is, 0) as way:
        reward = Reward("exact", url=way.url)
        assert sum(one or 0.0 for one in reward.grade_now(rows).rewards) == 1.0
        assert way.asked == 12
        assert reward.grade_now(large).rewards == [0.0] * 5
        assert way.asked == 12 + 3


def test_a_deadline_is_kept_where_the_item_is_graded_and_its_seconds_come_from_there(
    server: Server,
) -> None:
    def add(said: Said, _: bytes) -> Said:
        return said.mapped(lambda data: data.update(seconds=[0.5, 7.4, 0.25, None]))

    with between(server.url, add, 9) as way:
        batch = Reward("exact", url=way.url, deadline=7.5).grade_now(ROWS)
    assert json.loads(way.bodies[0])["deadline"] == 7.5
    assert (batch.rewards, batch.seconds) == (GRADED, (0.5, 7.4, 0.25, 0.0))


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again_in_the_middle_of_a_batch_grades_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def soon(*_: object) -> float:
        return 0.1

    monkeypatch.setattr(Timing, "backoff", soon)
    with ServerProcess(tmp_path) as process:
        monkeypatch.setenv("ASSAY_API_KEY", process.token)
        with Client(process.url, process.token) as client:
            client.graders.create.function(key="slow", fn=SLOW)
        reward = Reward("slow", url=process.url, patience=120)
        port = process.port
        doing = threading.Thread(target=lambda: done.append(reward.grade_now(ROWS * 10).rewards))
        done: list[list[float | None]] = []
        doing.start()
        running = 'project="default",state="running"} 1.0'
        metrics = f"{process.url}/metrics"
        while running not in httpx.get(metrics, headers=process.headers).text:
            assert doing.is_alive()
            time.sleep(0.02)
        process.kill()
        process.start(port=port)
        doing.join(120)
    assert done == [[0.5] * 40]
