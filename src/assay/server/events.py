"""The progress of a job as server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from assay.server.context import Context
from assay.store.catalog_records import JobRecord
from assay.store.jobs import Jobs

__all__ = ["ENDED", "event_id", "follow"]

ENDED = ("finished", "failed", "cancelled")


def event_id(job: JobRecord) -> str:
    """The id of the event that tells a job's state: the same state has the same id."""
    return f"{job.status}-{job.done}"


async def follow(server: Context, job: JobRecord, last: str | None) -> AsyncIterator[bytes]:
    """Tell the state of a job now, and whenever it changes, until it ends or the server stops.

    Args:
        server: The server.
        job: The job as it is.
        last: Id of the event that the client saw last; that state is not told again.
    """
    told, spoken = last, time.monotonic()
    yield b"retry: 1000\n\n"
    while True:
        if event_id(job) != told:
            told, spoken = event_id(job), time.monotonic()
            yield _event(job)
        if job.status in ENDED or server.stopping.is_set():
            return
        if time.monotonic() - spoken >= server.settings.heartbeat_seconds:
            spoken = time.monotonic()
            yield b": alive\n\n"
        await _moment(server)
        job = await server.storage.run(lambda database: Jobs(database).get(job.id))  # noqa: B023 - awaited at once


async def _moment(server: Context) -> None:
    """Wait a moment, or for the server's end."""
    try:
        await asyncio.wait_for(server.stopping.wait(), server.settings.poll_seconds)
    except TimeoutError:
        return


def _event(job: JobRecord) -> bytes:
    name = "done" if job.status in ENDED else "progress"
    data = json.dumps(job.to_dict(), separators=(",", ":"))
    return f"id: {event_id(job)}\nevent: {name}\ndata: {data}\n\n".encode("ascii")
