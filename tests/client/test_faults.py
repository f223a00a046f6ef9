"""What the client makes of servers that refuse, fail, stumble or are none."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from aiohttp import ClientSession, web

from assay import AsyncClient, Client
from assay.client import AuthError, ServerError, UnreachableError
from assay.client.remote import Transport
from assay.errors import ConflictError, InputError, LockedError
from assay.models.pace import Timing
from assay.registry import definition_from
from assay.scoring.json_safe import Json
from tests.client_modes import running
from tests.each import each

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncGenerator[str]:
    """A server that answers every request as it is told."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def _at_once(seconds: float) -> None:
    del seconds


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who tries again waits for nothing."""

    def at_once(*_: object) -> float:
        return 0.0

    monkeypatch.setattr(Timing, "backoff", at_once)


async def test_a_busy_server_is_asked_again_with_the_same_key() -> None:
    keys: list[str] = []

    async def busy(request: web.Request) -> web.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            return web.json_response({"detail": "busy"}, status=503, headers={"Retry-After": "1"})
        return web.json_response({"key": "p", "name": "", "created_at": ""}, status=201)

    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    async with answering(busy) as url:
        transport = Transport(url, None, timeout=5.0, timing=Timing(sleep=pause))
        assert await transport.send("POST", "/api/v1/projects", body={"key": "p"}) is not None
        await transport.close()
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert [1.0 <= seconds <= 1.25 for seconds in waited] == [True, True]


async def test_who_is_cancelled_as_a_try_runs_out_of_time_is_cancelled() -> None:
    """Who stood still for a while finds both at once; the deadline of a batch was lost there."""
    is_over = asyncio.Event()

    async def late(_: web.Request) -> web.Response:
        await is_over.wait()
        return web.Response()

    async with answering(late) as url:
        transport = Transport(url, None, timeout=0.3, timing=Timing(sleep=_at_once))
        asking = asyncio.create_task(transport.send("GET", "/"))
        asyncio.get_running_loop().call_later(0.25, asking.cancel)
        await asyncio.sleep(0.2)
        time.sleep(0.2)  # noqa: ASYNC251 - it stands still
        with pytest.raises(asyncio.CancelledError):
            await asking
        is_over.set()
        await transport.close()


_PASSED = ("Authorization", "Content-Type", "If-Match", "Idempotency-Key")


@asynccontextmanager
async def losing(url: str) -> AsyncGenerator[str]:
    """A way to a server on which the first reply to each change is lost."""
    seen: set[str] = set()
    async with ClientSession() as session:

        async def forward(request: web.Request) -> web.Response:
            kept = {name: request.headers[name] for name in _PASSED if name in request.headers}
            body = await request.read()
            target = url + request.path_qs
            async with session.request(request.method, target, headers=kept, data=body) as reply:
                answer = web.Response(body=await reply.read(), status=reply.status)
                answer.content_type = reply.content_type
            what = f"{request.method} {request.path}"
            if request.method != "GET" and what not in seen and request.transport is not None:
                seen.add(what)
                request.transport.abort()
            return answer

        async with answering(forward) as lossy:
            yield lossy


@pytest.mark.usefixtures("impatient")
async def test_a_change_whose_reply_was_lost_is_neither_refused_nor_denied(tmp_path: Path) -> None:
    with running(str(tmp_path)) as server:
        async with losing(server.url) as url, AsyncClient(url, server.key()) as client:
            exact = [{"type": "exact_match"}]
            await client.graders.create.declared(key="g", graders=exact)
            new = definition_from("declared", {"graders": [{"type": "numeric_match"}]})
            changed = await client.graders.update("g", new, expected=1)
            assert changed.latest.number == 2
            with pytest.raises(ConflictError):
                await client.graders.update("g", new, expected=7)
            await client.datasets.create("d", [{"answer": "4", "expected": "4"}])
            await client.datasets.delete("d", force=True)
            assert await client.graders.delete("g")
            assert not await client.graders.delete("g")


@each("key", ["a\n", "a\r\nX-Admin: 1", "schlüssel", "a\0"])
def test_a_key_that_no_header_can_hold_is_an_input_error(key: str) -> None:
    with pytest.raises(InputError, match="one line of printable ASCII"):
        Client("http://127.0.0.1:1", key).graders.list()


async def test_what_json_cannot_hold_is_an_input_error() -> None:
    transport = Transport("http://127.0.0.1:1", None, timeout=5.0)
    for body in (b"bytes", float("nan"), {1: {2}}):
        with pytest.raises(InputError, match="cannot be sent as JSON"):
            await transport.send("POST", "/", body=cast("Json", {"details": body}))


async def test_what_a_server_answers_is_a_typed_error() -> None:
    answers: list[tuple[int, Json, type[Exception]]] = [
        (401, {"detail": "no key"}, AuthError),
        (403, {"detail": "viewer"}, AuthError),
        (423, {"detail": "locked"}, LockedError),
        (422, {"errors": [{"field": "key", "message": "bad", "hint": "mend"}]}, InputError),
        (500, {"detail": "ours"}, ServerError),
        (404, "<html>not assay</html>", ServerError),
        (200, "<html>not assay</html>", ServerError),
        (200, {"items": 7}, ServerError),
        (200, [], ServerError),
        (302, {}, ServerError),
    ]
    said: tuple[int, Json] = (200, None)

    async def answer(_: web.Request) -> web.Response:
        status, body = said
        if isinstance(body, str):
            return web.Response(text=body, status=status, content_type="text/html")
        return web.json_response(body, status=status)

    async with answering(answer) as url, AsyncClient(url) as client:
        for status, body, error in answers:
            said = (status, body)
            with pytest.raises(error):
                await client.graders.list()
        # What a newer server has more is passed over.
        said = (200, {"items": [{"key": "p", "colour": "red"}], "next": None})
        assert [project.key for project in await client.projects.list()] == ["p"]


CARD: dict[str, Json] = {
    "grader": "g", "digest": "d", "card": "c", "kappa": 1, "kappa_interval": None, "n": 20,
    "errors": 0, "stale": True, "changed": ["model one → two"], "line": "kappa 1.00",
}  # fmt: skip


async def test_a_card_is_read_as_far_as_it_is_told_and_a_wrong_one_is_never_no_card() -> None:
    member: dict[str, Json] = {}

    async def answer(_: web.Request) -> web.Response:
        results: Json = [{"id": "1", "status": "skipped"}]
        return web.json_response({"results": results, "items": [], **member})

    async with answering(answer) as url, AsyncClient(url) as client:
        grade = client.graders.grade
        assert (await grade("g", [{"answer": "a"}])).calibration is None  # of an older server
        member = {"calibration": None}
        assert (await grade("g", [{"answer": "a"}])).calibration is None
        for more in ({}, {"colour": "red"}):
            member = {"calibration": CARD | more}
            card = (await grade("g", [{"answer": "a"}])).calibration
            assert card is not None
            assert (card.card, card.stale, card.changed) == ("c", True, ("model one → two",))
        wrong: list[Json] = [7, [], {}, *(CARD | {n: "x"} for n in ("stale", "n", "changed"))]
        for one in wrong:
            member = {"calibration": one}
            for ask in (client.graders.calibration("g"), client.jobs.results("j")):
                with pytest.raises(ServerError):
                    await ask


async def test_a_server_cannot_make_the_client_write_elsewhere(tmp_path: Path) -> None:
    async def hostile(request: web.Request) -> web.Response:
        del request
        return web.json_response({"files": {"../escaped.yaml": "kind: custom\n"}})

    async with answering(hostile) as url, AsyncClient(url) as client:
        with pytest.raises(InputError, match="plain name"):
            await client.graders.export(str(tmp_path / "graders"))
    assert not (tmp_path / "escaped.yaml").exists()


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_not_there_is_said_to_be() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = taken.getsockname()[1]
        with (
            Client(f"http://127.0.0.1:{port}", "key") as client,
            pytest.raises(UnreachableError, match="assay serve"),
        ):
            client.graders.list()


def test_an_address_that_is_none_or_two_places_at_once_are_refused_at_once() -> None:
    for url in ("assay.example", "ftp://x", "http://", "http://user:pw@x"):
        with pytest.raises(InputError):
            Client(url)
    with pytest.raises(InputError, match="not both"):
        Client("http://127.0.0.1:1", store="here")


def test_keys_and_roles_are_checked_also_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(str(tmp_path / "store")) as server:
        with Client(server.url) as client, pytest.raises(AuthError, match="api_key="):
            client.graders.list()
        with Client(server.url, "assay_wrong_key") as client, pytest.raises(AuthError):
            client.graders.list()
        with Client(server.url, server.key("viewer")) as client:
            assert client.graders.list() == []
            with pytest.raises(AuthError, match=r"needs the role editor .* 'viewer' is viewer"):
                client.graders.create.custom(key="review")
        monkeypatch.setenv("ASSAY_URL", server.url)
        monkeypatch.setenv("ASSAY_API_KEY", server.key())
        with Client() as client:
            assert client.graders.create.custom(key="review").key == "review"
