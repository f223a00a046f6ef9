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
from tests.server_app import Site, body_of, faults_of, scope_of, serving

_MANY = 12
_ROWS: list[dict[str, Json]] = [
    {"id": f"r{number}", "answer": "é" * 500_000} for number in range(_MANY)
]
_PIECE = 1 << 17


async def pieces_of(site: Site, path: str) -> list[bytes]:
    """What the application sends, as it hands it over."""
    pieces: list[bytes] = []

    async def send(message: dict[str, object]) -> None:
        pieces.append(cast("bytes", message.get("body", b"")))

    await asked(site, path, send)
    return pieces


async def asked(site: Site, path: str, send: object) -> None:
    """Ask the application, with what takes its reply."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = scope_of(site.admin.build_request("GET", site.at(path)))
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
    small: list[dict[str, Json]] = [
        {"answer": "\u2028 \n", "metadata": {"n": 2**60 + number, "half": 1.0}}
        for number in range(1_000)
    ]
    async with serving(str(tmp_path)) as site:
        await site.uploaded("mixed", [*_ROWS, *small])
        file = await site.get("datasets/mixed/file")
        shown = body_of(await site.get("datasets/mixed"))
        assert (await site.get("datasets/none/file")).status_code == 404
    assert file.headers["content-disposition"] == 'attachment; filename="mixed.jsonl"'
    assert file.headers["content-type"].startswith("application/x-ndjson")
    lines = file.content.split(b"\n")[:-1]
    assert [json.loads(line) for line in lines] == [*_ROWS, *small]
    assert b'"half":1.0' in lines[-1]
    assert hashlib.sha256(file.content).hexdigest() == shown["digest"]


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
