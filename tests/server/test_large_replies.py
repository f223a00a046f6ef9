"""Large replies: no page, file or reader of one project holds up the server for the others."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.json_safe import Json
from tests.server_app import Site, body_of, faults_of, items_of, serving

_MANY = 12
_ROWS: list[dict[str, Json]] = [
    {"id": f"r{number}", "answer": "é" * 500_000} for number in range(_MANY)
]
_PIECE = 1 << 17


async def test_a_page_of_large_rows_holds_a_few_of_them_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    async with serving(str(tmp_path)) as site:
        await site.uploaded("large", _ROWS)
        seen, pages, cursor = list[Json](), 0, ""
        while pages < 2 * _MANY:
            where = f"datasets/large/rows?whole=true&limit=200{cursor and f'&after={cursor}'}"
            page = await site.get(where)
            assert len(page.content) < 16 << 20
            seen += [row["id"] for row in items_of(page)]
            pages += 1
            if not (cursor := cast("str", body_of(page)["next"])):
                break
        assert seen == [row["id"] for row in _ROWS]
        assert pages > 1


async def pieces_of(site: Site, path: str) -> list[bytes]:
    """What the application sends, as it hands it over."""
    pieces: list[bytes] = []

    async def send(message: dict[str, object]) -> None:
        pieces.append(cast("bytes", message.get("body", b"")))

    await asked(site, path, send)
    return pieces


async def asked(site: Site, path: str, send: object) -> None:
    """Ask the application, with what takes its reply."""
    where, _, query = site.at(path).partition("?")
    token = site.admin.headers["authorization"]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
        "method": "GET", "scheme": "http", "path": where, "raw_path": where.encode(),
        "query_string": query.encode(), "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8400),
        "headers": [(b"host", b"127.0.0.1:8400"), (b"authorization", token.encode())],
    }  # fmt: skip

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    await site.app(scope, receive, send)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "path", ["datasets/large/rows?whole=true&limit=200", "datasets/large/file"]
)
async def test_a_large_reply_is_written_in_pieces(tmp_path: Path, path: str) -> None:
    async with serving(str(tmp_path)) as site:
        await site.uploaded("large", _ROWS[:3])
        pieces = await pieces_of(site, path)
        assert max(map(len, pieces)) <= _PIECE
        whole = await site.get(path)
        assert b"".join(pieces) == whole.content


async def test_a_file_is_the_rows_as_they_are_stored_whatever_their_size(tmp_path: Path) -> None:
    rows = [*_ROWS, *({"answer": str(number)} for number in range(1_000))]
    async with serving(str(tmp_path)) as site:
        await site.uploaded("mixed", rows)
        file = (await site.get("datasets/mixed/file")).content
        shown = body_of(await site.get("datasets/mixed"))
        assert [json.loads(line) for line in file.splitlines()] == rows
        assert hashlib.sha256(file).hexdigest() == shown["digest"]


@asynccontextmanager
async def stalled(site: Site, path: str, count: int) -> AsyncGenerator[None]:
    """Readers of a reply who read nothing after its beginning."""

    async def reading(begun: asyncio.Event) -> None:
        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.body":
                begun.set()
                await asyncio.Event().wait()

        await asked(site, path, send)

    events = [asyncio.Event() for _ in range(count)]
    tasks = [asyncio.create_task(reading(begun)) for begun in events]
    try:
        await asyncio.wait_for(asyncio.gather(*(begun.wait() for begun in events)), 60)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_project_has_a_few_downloads_at_once_and_others_have_theirs(tmp_path: Path) -> None:
    async with serving(str(tmp_path)) as site:
        other = await site.in_new_project()
        for one in (site, other):
            await one.uploaded("d", [{"answer": "4"}])
        async with stalled(site, "datasets/d/file", 8):
            refused = await site.get("datasets/d/file")
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
            faults_of(refused)
            assert (await other.get("datasets/d/file")).status_code == 200
        assert (await site.get("datasets/d/file")).status_code == 200
