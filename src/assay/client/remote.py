"""The operations over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote

from assay.client.backend import Details, Page, Rows
from assay.client.calibration import Calibration, Grades, Results
from assay.client.errors import ServerError, UnreachableError
from assay.client.transport import Transport
from assay.errors import InputError
from assay.graders.functions import ValidationReport
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store import (
    DatasetRecord,
    DatasetRow,
    GraderRecord,
    GraderVersion,
    JobRecord,
    ProjectRecord,
    RunRecord,
    ScoreRecord,
)
from assay.types.codec import from_json

if TYPE_CHECKING:
    from assay.registry import Definition

__all__ = ["RemoteBackend"]

T = TypeVar("T")

_SPOOLED = 64 << 20
_ENDED = ("finished", "failed", "cancelled")
_FOLLOW_TRIES = 8


class RemoteBackend:
    """An assay server.

    Args:
        base_url: Its address.
        api_key: The key, or None where the server asks for none.
        timeout: Seconds until a request is given up.
    """

    def __init__(self, base_url: str, api_key: str | None, *, timeout: float) -> None:
        self._http = Transport(base_url, api_key, timeout=timeout)

    async def create_grader(
        self, project: str, key: str, definition: Definition, details: Details
    ) -> GraderRecord:
        """Store a grader."""
        texts = {
            "name": details.name,
            "description": details.description,
            "feedback_key": details.feedback_key,
            "note": details.note,
        }
        body: dict[str, Json] = {"key": key, **_definition(definition)}
        body |= {field: text for field, text in texts.items() if text}
        if details.samples:
            body["samples"] = [dict(sample) for sample in details.samples]
        answer = await self._http.send("POST", _path(project, "graders"), body=body)
        return _record(GraderRecord, answer)

    async def update_grader(
        self,
        project: str,
        key: str,
        definition: Definition,
        *,
        note: str,
        expected: int | None,
        samples: Sequence[Mapping[str, Json]],
    ) -> GraderRecord:
        """Store a new version."""
        tag = "*" if expected is None else f'"{key}@{expected}"'
        body: dict[str, Json] = {**_definition(definition), "note": note}
        if samples:
            body["samples"] = [dict(sample) for sample in samples]
        answer = await self._http.send(
            "PUT", _path(project, "graders", key), body=body, headers={"If-Match": tag}
        )
        return _record(GraderRecord, answer)

    async def describe_grader(
        self, project: str, key: str, changes: Mapping[str, str]
    ) -> GraderRecord:
        """Change what people read."""
        answer = await self._http.send("PATCH", _path(project, "graders", key), body={**changes})
        return _record(GraderRecord, answer)

    async def validate(
        self, project: str, definition: Definition, samples: Sequence[Mapping[str, Json]]
    ) -> ValidationReport:
        """Check a grader and store nothing."""
        body: dict[str, Json] = {
            **_definition(definition),
            "samples": [dict(sample) for sample in samples],
        }
        answer = await self._http.send("POST", _path(project, "graders", "validate"), body=body)
        return ValidationReport.from_dict(_mapping(answer))

    async def grader(self, project: str, key: str) -> GraderRecord:
        """A grader."""
        return _record(GraderRecord, await self._http.send("GET", _path(project, "graders", key)))

    async def graders(
        self, project: str, *, limit: int, cursor: str, kind: str | None, query: str
    ) -> Page[GraderRecord]:
        """A part of the graders."""
        wanted = {"kind": kind, "query": query or None}
        return await self._page(GraderRecord, _path(project, "graders"), limit, cursor, wanted)

    async def version(self, project: str, key: str, number: int) -> GraderVersion:
        """One version of a grader."""
        answer = await self._http.send(
            "GET", _path(project, "graders", key), query={"version": number}
        )
        return _record(GraderRecord, answer).latest

    async def versions(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[GraderVersion]:
        """A part of the versions."""
        return await self._page(
            GraderVersion, _path(project, "graders", key, "versions"), limit, cursor
        )

    async def lock_grader(self, project: str, key: str, *, locked: bool) -> GraderRecord:
        """Lock or unlock."""
        answer = await self._http.send(
            "PUT", _path(project, "graders", key, "lock"), body={"locked": locked}
        )
        return _record(GraderRecord, answer)

    async def delete_grader(self, project: str, key: str, *, force: bool) -> None:
        """Delete a grader."""
        await self._http.send("DELETE", _path(project, "graders", key), query=_forced(force))

    async def diff(self, project: str, key: str, older: int | None, newer: int | None) -> str:
        """What changed."""
        answer = await self._http.send(
            "GET", _path(project, "graders", key, "diff"), query={"from": older, "to": newer}
        )
        return str(_mapping(answer).get("diff") or "")

    async def export(self, project: str, keys: Sequence[str]) -> dict[str, str]:
        """Graders as files."""
        answer = await self._http.send(
            "GET", _path(project, "graders", "export"), query={"keys": ",".join(keys) or None}
        )
        files = _mapping(answer).get("files")
        return {name: str(text) for name, text in _mapping(files).items()}

    async def import_(
        self, project: str, files: Mapping[str, str], *, update: bool
    ) -> Sequence[GraderRecord]:
        """Files as graders."""
        answer = await self._http.send(
            "POST",
            _path(project, "graders", "import"),
            body={"files": {**files}, "update": update},
        )
        return [_record(GraderRecord, item) for item in _items(answer)]

    async def grade(
        self, project: str, key: str, items: Sequence[Mapping[str, Json]], version: int | None
    ) -> Grades:
        """Grade items."""
        body: dict[str, Json] = {"items": [dict(item) for item in items]}
        if version is not None:
            body["version"] = version
        answer = await self._http.send("POST", _path(project, "graders", key, "grade"), body=body)
        results = _items(answer, "results")
        if len(results) != len(items):
            raise ServerError(f"the server graded {len(results)} of {len(items)} items")
        graded = (Graded.from_dict(_mapping(result)) for result in results)
        return Grades(graded, _calibration(answer))

    async def calibration(self, project: str, key: str, version: int | None) -> Calibration | None:
        """The card of a version."""
        return _calibration(
            await self._http.send("GET", _path(project, "graders", key), query={"version": version})
        )

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset: it is spooled here first, so that it can be sent again."""
        import tempfile

        with tempfile.SpooledTemporaryFile(max_size=_SPOOLED) as spool:
            await asyncio.to_thread(_spool, rows, spool.write)

            async def lines() -> AsyncIterator[bytes]:
                spool.seek(0)
                while chunk := await asyncio.to_thread(spool.read, 1 << 20):
                    yield chunk

            answer = await self._http.send(
                "POST", _path(project, "datasets", key), query={"name": name or None}, body=lines
            )
        return _record(DatasetRecord, answer)

    async def dataset(self, project: str, key: str) -> DatasetRecord:
        """A dataset."""
        return _record(DatasetRecord, await self._http.send("GET", _path(project, "datasets", key)))

    async def datasets(self, project: str, *, limit: int, cursor: str) -> Page[DatasetRecord]:
        """A part of the datasets."""
        return await self._page(DatasetRecord, _path(project, "datasets"), limit, cursor)

    async def dataset_rows(
        self, project: str, key: str, *, limit: int, cursor: str
    ) -> Page[DatasetRow]:
        """A part of the rows."""
        return await self._page(DatasetRow, _path(project, "datasets", key, "rows"), limit, cursor)

    async def delete_dataset(self, project: str, key: str, *, force: bool) -> None:
        """Delete a dataset."""
        await self._http.send("DELETE", _path(project, "datasets", key), query=_forced(force))

    async def create_job(
        self, project: str, grader: str, dataset: str, version: int | None
    ) -> JobRecord:
        """Grade a dataset."""
        body: dict[str, Json] = {"grader": grader, "dataset": dataset}
        if version is not None:
            body["version"] = version
        return _record(JobRecord, await self._http.send("POST", _path(project, "jobs"), body=body))

    async def job(self, project: str, job: str) -> JobRecord:
        """A job."""
        return _record(JobRecord, await self._http.send("GET", _path(project, "jobs", job)))

    async def jobs(self, project: str, *, limit: int, cursor: str) -> Page[JobRecord]:
        """A part of the jobs."""
        return await self._page(JobRecord, _path(project, "jobs"), limit, cursor)

    async def cancel_job(self, project: str, job: str) -> JobRecord:
        """Stop a job."""
        return _record(
            JobRecord, await self._http.send("POST", _path(project, "jobs", job, "cancel"))
        )

    async def results(self, project: str, job: str, *, limit: int, cursor: str) -> Results:
        """A part of a job's scores."""
        answer = await self._http.send(
            "GET",
            _path(project, "jobs", job, "results"),
            query={"limit": limit, "cursor": cursor or None},
        )
        page = _read_page(ScoreRecord, answer)
        return Results(page.items, page.next_cursor, _calibration(answer))

    async def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job as it gets on; a broken stream is taken up again."""
        broken = 0
        while True:
            try:
                async with self._http.events(_path(project, "jobs", job, "events")) as events:
                    async for _, data in events:
                        broken = 0
                        record = _record(JobRecord, data)
                        yield record
                        if record.status in _ENDED:
                            return
            except UnreachableError:
                broken += 1
                if broken == _FOLLOW_TRIES:
                    raise
                await asyncio.sleep(0.25 * broken)

    async def add_scores(self, project: str, scores: Sequence[Mapping[str, Json]]) -> int:
        """Write scores."""
        body: dict[str, Json] = {"scores": [dict(score) for score in scores]}
        await self._http.send("POST", _path(project, "scores"), body=body)
        return len(scores)

    async def scores(
        self, project: str, *, grader: str | None, item: str | None, limit: int, cursor: str
    ) -> Page[ScoreRecord]:
        """A part of the scores."""
        wanted = {"grader": grader, "item": item}
        return await self._page(ScoreRecord, _path(project, "scores"), limit, cursor, wanted)

    async def projects(self) -> Sequence[ProjectRecord]:
        """All projects."""
        answer = await self._http.send("GET", "/api/v1/projects", query={"limit": 200})
        return [_record(ProjectRecord, item) for item in _items(answer)]

    async def create_project(self, key: str, name: str) -> ProjectRecord:
        """Make a project."""
        body: dict[str, Json] = {"key": key, "name": name} if name else {"key": key}
        return _record(ProjectRecord, await self._http.send("POST", "/api/v1/projects", body=body))

    async def runs(self, limit: int) -> Sequence[RunRecord]:
        """The newest runs."""
        answer = await self._http.send("GET", "/api/v1/runs", query={"limit": limit})
        return [_record(RunRecord, item) for item in _items(answer)]

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.close()

    async def _page(
        self,
        kind: type[T],
        path: str,
        limit: int,
        cursor: str,
        wanted: Mapping[str, str | None] | None = None,
    ) -> Page[T]:
        query = {"limit": limit, "cursor": cursor or None, **(wanted or {})}
        return _read_page(kind, await self._http.send("GET", path, query=query))


def _path(project: str, *parts: str) -> str:
    return "/api/v1/projects/" + "/".join(quote(part, safe="") for part in (project, *parts))


def _forced(force: bool) -> dict[str, str | int | None]:  # noqa: FBT001 - one flag
    return {"force": "true" if force else None}


def _definition(definition: Definition) -> dict[str, Json]:
    return {"kind": definition.kind, "definition": definition.to_dict()}


def _mapping(answer: Json) -> Mapping[str, Json]:
    if not isinstance(answer, dict):
        raise ServerError("the server did not answer as assay does")
    return answer


def _items(answer: Json, name: str = "items") -> list[Json]:
    items = _mapping(answer).get(name)
    if not isinstance(items, list):
        raise ServerError(f"the server's answer has no {name!r}")
    return items


def _read_page(kind: type[T], answer: Json) -> Page[T]:
    items = [_record(kind, item) for item in _items(answer)]
    return Page(items, str(_mapping(answer).get("next_cursor") or ""))


def _calibration(answer: Json) -> Calibration | None:
    """The card in an answer; an older server's answers have none."""
    card = _mapping(answer).get("calibration")
    return None if card is None else _record(Calibration, card)


def _record(kind: type[T], data: Json) -> T:
    """Read a record, passing over fields that a newer server adds."""
    known = {field.name for field in fields(cast("type[JobRecord]", kind))}
    kept = {name: item for name, item in _mapping(data).items() if name in known}
    if kind is ScoreRecord:
        graded = Graded.from_dict(_mapping(kept.pop("graded", {})))
        return cast("T", ScoreRecord(**cast("dict[str, str]", kept), graded=graded))  # type: ignore[arg-type]
    try:
        return from_json(kind, kept)
    except InputError as error:
        raise ServerError(f"the server's answer is no {kind.__name__}: {error}") from error


def _spool(rows: Iterable[Mapping[str, Json]], write: Callable[[bytes], object]) -> None:
    for number, row in enumerate(rows, 1):
        try:
            write(json.dumps(dict(row), allow_nan=False).encode("ascii") + b"\n")
        except (TypeError, ValueError) as error:
            raise InputError(f"row {number} is not JSON: {error}") from error
