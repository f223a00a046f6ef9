"""The operations over HTTP: requests, and what is read of replies, follow from the table."""

from __future__ import annotations

import asyncio
import inspect
import json
import typing
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import quote

from assay.client.errors import ServerError, UnreachableError
from assay.client.scope import Rows
from assay.client.transport import Transport
from assay.errors import InputError
from assay.graders.functions import ValidationReport
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service.data import ENDED
from assay.service.operation import Operation, Page
from assay.store import DatasetRecord, JobRecord
from assay.types import codec
from assay.types.codec import Problem, ShapeError

__all__ = ["RemoteBackend"]

P = ParamSpec("P")
T = TypeVar("T")

_SPOOLED = 64 << 20
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

    async def call(
        self, operation: Operation[P, T], project: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Ask the server for an operation."""
        bound = inspect.signature(operation.function).bind(None, *args, **kwargs).arguments
        path = operation.path.replace("{project}", quote(project, safe=""))
        query: dict[str, str | int | None] = {}
        body: dict[str, Json] | None = None
        headers: dict[str, str] = {}
        for one in operation.places:
            value = bound.get(one.name, one.default)
            if one.place == "path":
                path = path.replace(f"{{{one.name}}}", quote(str(value), safe=""))
            elif one.place == "if-match":
                headers["If-Match"] = "*" if value is None else f'"{bound["key"]}@{value}"'
            elif one.place == "body":
                body = body or {}
                if value != one.default:
                    body[one.name] = _sent(value)
            elif value != one.default:
                query[one.spec.alias or one.name] = "true" if value is True else cast("str", value)
        answer = await self._http.send(
            operation.method, path, query=query, body=body, headers=headers
        )
        done = None if operation.output is type(None) else _read(operation.output, answer)
        return cast("T", done)

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
        return cast("DatasetRecord", _read(DatasetRecord, answer))

    async def begin(self, job: JobRecord) -> JobRecord:
        """Nothing: the server works on the job."""
        return job

    async def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job as it gets on; a broken stream is taken up again."""
        broken = 0
        while True:
            try:
                async with self._http.events(_path(project, "jobs", job, "events")) as events:
                    async for _, data in events:
                        broken = 0
                        record = cast("JobRecord", _read(JobRecord, data))
                        yield record
                        if record.status in ENDED:
                            return
            except UnreachableError:
                broken += 1
                if broken == _FOLLOW_TRIES:
                    raise
                await asyncio.sleep(0.25 * broken)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.close()


def _path(project: str, *parts: str) -> str:
    return "/api/v1/projects/" + "/".join(quote(part, safe="") for part in (project, *parts))


def _sent(value: object) -> Json:
    """A parameter in a body: what rows hold is left as it is, so that no NaN gets through."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Json]", value))
    if isinstance(value, list | tuple):
        return [_sent(item) for item in cast("Sequence[object]", value)]
    return cast("Json", value)


def _read(kind: Any, data: Json) -> object:  # noqa: ANN401 - any type
    """Read an output, passing over fields that a newer server adds."""
    if kind in (Graded, ValidationReport):
        return kind.from_dict(_mapping(data))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Page:
        items = _read(list[arguments[0]], _mapping(data).get("items"))
        return Page(cast("list[object]", items), str(_mapping(data).get("next_cursor") or ""))
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_record(cast("Any", kind), _mapping(data))
    return _read_part(cast("object", kind), arguments, data)


def _read_part(kind: object, arguments: tuple[Any, ...], data: Json) -> object:
    """A list of records, a record or none, or what holds no record."""
    inner = next((one for one in arguments if is_dataclass(one)), None)
    if inner is not None and type(None) in arguments:
        return None if data is None else _read(inner, data)
    if inner is not None:
        if not isinstance(data, list):
            raise ServerError("the answer is not that of an assay server: a list is missing")
        return tuple(_read(inner, item) for item in data)
    problems: list[Problem] = []
    value = codec.read(kind, data, (), problems)
    if problems:
        raise ServerError(f"the answer is not that of an assay server: {ShapeError(problems)}")
    return value


def _read_record(kind: Any, data: Mapping[str, Json]) -> object:  # noqa: ANN401 - any dataclass
    hints = typing.get_type_hints(kind, localns={"Json": object})
    if data.get("next_cursor", "") is None:
        data = {**data, "next_cursor": ""}
    given = {
        field.name: _read(hints[field.name], data[field.name])
        for field in fields(kind)
        if field.name in data
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ServerError(f"the server's answer is not a valid {kind.__name__}: {error}") from error


def _mapping(answer: Json) -> Mapping[str, Json]:
    if not isinstance(answer, dict):
        raise ServerError("the answer is not that of an assay server")
    return answer


def _spool(rows: Iterable[Mapping[str, Json]], write: Callable[[bytes], object]) -> None:
    for number, row in enumerate(rows, 1):
        try:
            write(json.dumps(dict(row), allow_nan=False).encode("ascii") + b"\n")
        except (TypeError, ValueError) as error:
            raise InputError(f"row {number} is not JSON: {error}") from error
