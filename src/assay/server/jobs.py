"""Jobs: stored datasets that are graded in the background, and go on after any stop.

A job belongs to the server that holds its lease, and to nobody once the lease has run out: a server
that could not renew it stops. Scores are stored as they come, a batch at a time or, where graders
wait for models that cost money, row by row; whoever takes the job over grades only what has no
score yet. Who made it is told of its progress by server-sent events.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Literal, TypeAlias
from zlib import crc32

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.responses import StreamingResponse

from assay.errors import AssayError, ConflictError, NotFoundError, StoreError
from assay.eval.actors import DEPTH
from assay.eval.batch import in_batches, run_batches
from assay.registry.grading import grade_rows
from assay.server.cluster import REST_SECONDS, ClusterAwayError
from assay.server.context import Context, caller, context
from assay.server.door import Door, needs
from assay.server.lanes import lane_of, waits
from assay.server.limits import Turns
from assay.server.live import Told, described, streamed
from assay.server.openapi import problem_responses
from assay.server.operations import Project
from assay.service.graders import version_to_run
from assay.service.jobs import ENDED, show_job
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.datasets import DatasetRow, Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.pages import Page, Stretch
from assay.store.scores import ScoreRecord

_LAST_SECONDS = 2.0
_STRETCH = 8
"""How many batches of rows are read at once where they are graded one by one."""
_PAGE_ROWS = 1_000
_MOST_ROWS = 8 * _PAGE_ROWS

Outcomes: TypeAlias = "list[tuple[int, ScoreRecord]]"
"""Number and outcome of rows, as `Jobs.add_scores` takes them."""

_LOG = logging.getLogger("assay.server")


class Workers:
    """Works on jobs, a few at a time, until the server stops.

    Args:
        server: The server.
    """

    def __init__(self, server: Context) -> None:
        self._server = server
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        name = f"{os.uname().nodename}:{os.getpid()}:{secrets.token_hex(4)}"
        slots = self._server.settings.job_slots
        limit = self._server.allowances.at_once
        shared = (Turns(slots, most_waiting=0, limit=limit), asyncio.Lock())
        self._tasks = [
            asyncio.create_task(_Worker(self._server, f"{name}:{n}", *shared).work())
            for n in range(slots)
        ]

    async def stop(self) -> None:
        """Wait until the batches in flight are stored, but not for one that takes very long."""
        if not self._tasks:
            return
        left = self._server.stopping.left(self._server.settings.limits.grace_seconds)
        _, late = await asyncio.wait(self._tasks, timeout=max(left, 0.0))
        for task in late:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=_LAST_SECONDS)


class _Worker:
    """Works on one job at a time.

    Args:
        server: The server.
        owner: Names the worker; no other one has the name.
        turns: Which project's turn it is.
        looking: Held by the one worker that looks for a job.
    """

    def __init__(self, server: Context, owner: str, turns: Turns, looking: asyncio.Lock) -> None:
        self._server = server
        self._settings = server.settings
        self._owner = owner
        self._turns, self._looking = turns, looking
        self._left = self._said = ""

    async def work(self) -> None:
        """Look for jobs and carry them out until the server stops."""
        is_away = False
        while not self._server.stopping.is_set():
            try:
                if self._left:  # the database failed while we had it
                    await self._server.storage.run(self._release_left)
                job = await self._next()
                is_away = False
                if job is not None:
                    self._left = job.id
                    try:
                        await self._carry_out(job)
                    finally:
                        self._turns.give_back(job.project)
                    self._left = ""
            except StoreError as error:
                if not is_away:
                    _LOG.error("jobs wait for the database: %s", error)
                is_away = True
                await self._pause()

    async def _next(self) -> JobRecord | None:
        """The next job, of a project that may have one more; None at the end."""
        async with self._looking:
            while not self._server.stopping.is_set():
                claim = partial(self._claim, self._turns.sated())
                if (job := await self._server.storage.run(claim)) is not None:
                    await self._server.allowances.find(job.project)  # its limits hold for jobs too
                    self._turns.take(job.project)
                    return job
                await self._pause()
        return None

    async def _pause(self) -> None:
        """Wait for a new job, for the server's end, or a moment."""
        events = (self._server.wake, self._server.stopping)
        waits = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(
            waits, timeout=self._settings.poll_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in waits:
            wait.cancel()
        self._server.wake.clear()

    def _claim(self, but_not: Sequence[str], database: Database) -> JobRecord | None:
        now = datetime.now(UTC)
        return Jobs(database).claim(self._owner, self._settings.lease_seconds, now, but_not=but_not)

    def _release_left(self, database: Database) -> None:
        Jobs(database).release(self._left, self._owner, failed=True)
        self._left = ""

    async def _carry_out(self, job: JobRecord) -> None:
        """Grade what has no score yet; what cannot go on, and why, is written into the job."""
        grading = asyncio.create_task(self._grade(job))
        keeping = asyncio.create_task(self._keep(job.id, grading))
        try:
            await grading
        except asyncio.CancelledError:
            _LOG.info("job %s was cancelled, or is another server's now", job.id)
        except StoreError:
            raise  # the database is away: whoever has it again first goes on
        except ConflictError as error:
            _LOG.info("job %s ends here: %s", job.id, error)
        except AssayError as error:
            await self._finish(job, "failed", str(error))
        except Exception as error:  # the boundary: a job that breaks must not end the others
            _LOG.exception("job %s broke", job.id)
            await self._finish(job, "failed", f"an error of ours: {type(error).__name__}")
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self, job: str, grading: asyncio.Task[None]) -> None:
        """Renew the lease for as long as it is ours, and end the grading when it is not."""
        seconds, clock = self._settings.lease_seconds, asyncio.get_running_loop().time
        ends = clock() + seconds
        while True:
            await asyncio.sleep(min(seconds / 6, 2.0))
            asked = clock()
            try:
                async with asyncio.timeout_at(ends):
                    held = await self._server.storage.run(
                        lambda database: Jobs(database).renew(
                            job, self._owner, seconds, datetime.now(UTC)
                        )
                    )
                ends = asked + seconds
            except StoreError:
                held = clock() < ends  # the next batch finds out, too
            except TimeoutError:
                held = False
            if not held:
                grading.cancel()
                return

    async def _grade(self, job: JobRecord) -> None:
        server, settings = self._server, self._settings
        self._said = ""

        def begin(database: Database) -> tuple[GraderVersion, set[int]]:
            version = version_to_run(server.desk(database, job.project), job.grader, job.version)
            return version, Jobs(database).graded_rows(job.id)

        version, graded = await server.storage.run(begin)
        # Rows that wait for somebody else are graded each on its own, many at once.
        is_waiting = waits(version)
        size, at_once = (1, settings.job_batch) if is_waiting else (settings.job_batch, 1)
        limit = settings.job_batch * (_STRETCH if is_waiting else 1)
        if server.cluster is not None:
            at_once = max(at_once, DEPTH * server.cluster.cores)
            limit = max(limit, min(2 * size * at_once, _MOST_ROWS))
        after = 0
        while not server.stopping.is_set():
            rows = await self._rows(job, after, limit)
            if not rows:
                await self._finish(job, "finished")
                return
            if todo := [row for row in rows if row.number not in graded]:
                batches = in_batches(todo, size)
                stretch = partial(self._stretch, job.id, version, batches, at_once)
                await server.allowances.find(job.project)
                try:
                    lane = lane_of(version)
                    await server.lanes.run(lane, job.project, stretch, is_refused=False)
                except ClusterAwayError as error:
                    graded = await self._wait_for_cluster(job.id, str(error))
                    continue
                await self._say(job.id, "")
            after = rows[-1].number
        await server.storage.run(lambda database: Jobs(database).release(job.id, self._owner))

    async def _wait_for_cluster(self, job: str, why: str) -> set[int]:
        """Wait a while; which rows are graded by then."""
        server = self._server
        await self._say(job, why)
        with suppress(TimeoutError):
            await asyncio.wait_for(server.stopping.wait(), REST_SECONDS)
        return await server.storage.run(lambda database: Jobs(database).graded_rows(job))

    async def _say(self, job: str, message: str) -> None:
        """Write into the job what it waits for."""
        if message == self._said:
            return
        if message:
            _LOG.warning("job %s %s", job, message)
        await self._server.storage.run(
            lambda database: Jobs(database).note(job, self._owner, message)
        )
        self._said = message

    async def _rows(self, job: JobRecord, after: int, limit: int) -> list[DatasetRow]:
        def page(database: Database) -> Page[DatasetRow]:
            first, most = found[-1].number if found else after, min(limit - len(found), _PAGE_ROWS)
            return Datasets(database).rows(job.project, job.dataset, Stretch(most, first))

        found: list[DatasetRow] = []
        while len(found) < limit and (rows := await self._server.storage.run(page)):
            found += rows
            if len(rows) < _PAGE_ROWS:  # they are large, and enough for now
                break
        return found

    async def _stretch(
        self,
        job: str,
        version: GraderVersion,
        batches: Iterable[Sequence[DatasetRow]],
        at_once: int,
    ) -> None:
        """Grade batches of rows, and store what came of each in one transaction as it ends."""
        server = self._server

        async def grade(rows: Sequence[DatasetRow]) -> Outcomes:
            return await grade_rows(version, rows, partial(server.grade_for_job, version))

        async def keep(_: Sequence[DatasetRow], scores: Outcomes) -> None:
            def store(database: Database) -> None:
                Jobs(database).add_scores(job, scores)

            try:
                await server.storage.run(store)
            except StoreError:
                await server.storage.run(store)  # they may have been paid for

        # Told to stop it begins no more; those under way were asked, and are paid for.
        rest = takewhile(lambda _: not server.stopping.is_set(), batches)
        await run_batches(rest, grade, keep, at_once=at_once)

    async def _finish(
        self, job: JobRecord, status: Literal["finished", "failed"], message: str = ""
    ) -> None:
        try:
            record = await self._server.storage.run(
                lambda database: Jobs(database).finish(job.id, status, message)
            )
        except NotFoundError:
            _LOG.info("job %s was deleted while it was graded", job.id)
            return
        if record.status == status:  # else it was cancelled meanwhile
            self._server.metrics.job(status, job.project)


# Progress, as server-sent events.

router = APIRouter(route_class=Door, tags=["jobs"])

_STREAM: dict[int | str, dict[str, Any]] = {
    **described(
        "Events `progress` and, at the end, `done`, each with the job as its data.",
        'id: running-64\nevent: progress\ndata: {"status":"running"}\n\n',
    ),
    204: {"description": "The client has seen the end already."},
}


@router.get(
    "/api/v1/projects/{project}/jobs/{id}/events",
    response_class=StreamingResponse,
    openapi_extra=needs("viewer"),
    responses={**_STREAM, **problem_responses(404)},
)
async def follow_job(
    request: Request,
    project: Project,
    id: Annotated[  # noqa: A002 - its name in the path
        str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", description="Id of the job.")
    ],
    *,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="Id of the event seen last.")
    ] = None,
) -> Response:
    """The job's progress as it happens."""
    server, who = context(request), caller(request)
    job = await server.storage.run(
        lambda database: show_job.function(server.desk(database, project, who), id)
    )
    if job.status in ENDED and last_event_id == _told(job).id:
        return Response(status_code=204)  # tells a browser to stop asking

    async def look() -> Told:
        return _told(await server.storage.run(lambda database: Jobs(database).get(job.id)))

    return streamed(request, _told(job), look, last_event_id)


def _told(job: JobRecord) -> Told:
    has_ended = job.status in ENDED
    name = "done" if has_ended else "progress"
    waits = f"-waits-{crc32(job.message.encode()):x}" if job.message and not has_ended else ""
    return Told(f"{job.status}-{job.done}{waits}", name, job.to_dict(), is_last=has_ended)
