"""What every part of a client shares: the backend, the project, and how calls are checked.

A backend carries out operations: on a server (`remote`) or on a store of one's own (`local`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, Protocol, TypeAlias, TypeVar, cast

from assay.client.errors import ArgumentError
from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.service.operation import Operation
from assay.service.pages import Page
from assay.store.checks import json_text
from assay.store.datasets import DatasetRecord
from assay.store.jobs import JobRecord
from assay.tasks.rows import read_row
from assay.types.submission import Submission
from assay.types.thread import StringThread

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

Item: TypeAlias = "Mapping[str, Json] | StringThread | Submission"
"""What can be graded: a dataset row, a conversation, or a submission of texts."""


Rows: TypeAlias = "Iterable[Mapping[str, Json]]"


class Backend(Protocol):
    """Both sides; every call may raise `AssayError`, of the same types in both."""

    async def call(
        self, operation: Operation[P, T], project: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Carry out an operation."""
        ...

    async def create_dataset(self, project: str, key: str, name: str, rows: Rows) -> DatasetRecord:
        """Store a dataset."""
        ...

    async def begin(self, job: JobRecord) -> JobRecord:
        """See to it that a new job is worked on."""
        ...

    def follow(self, project: str, job: str) -> AsyncIterator[JobRecord]:
        """The job as it gets on."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


class Scope:
    """A backend, opened when first used, and the project that calls are about."""

    def __init__(self, make: Callable[[], Backend], project: str | None) -> None:
        self._make = make
        self._project = project
        self._backend: Backend | None = None
        self._is_closed = False

    @property
    def backend(self) -> Backend:
        """The backend.

        Raises:
            InputError: If the client was closed.
        """
        if self._is_closed:
            raise InputError("the client is closed", hint="make a new one")
        if self._backend is None:
            self._backend = self._make()
        return self._backend

    async def call(
        self, operation: Operation[P, T], project: str | None, /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Carry out an operation in a project; None is the client's."""
        return await self.backend.call(operation, self.project(project), *args, **kwargs)

    def set_project(self, project: str) -> None:
        """Choose the project of calls that name none."""
        self._project = self.project(project)

    def project(self, given: str | None) -> str:
        """The project of one call.

        Raises:
            InputError: If there is none.
        """
        project = self._project if given is None else given
        if project is None:
            raise InputError(
                "this call needs a project", hint="pass project=, or give the client one"
            )
        if not project.strip():
            raise InputError("project must be a non-empty string")
        return project

    async def close(self) -> None:
        """Let go of the backend."""
        backend, self._backend, self._is_closed = self._backend, None, True
        if backend is not None:
            await backend.close()


async def every(page: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """All items of a paged list."""
    items: list[T] = []
    cursor: str | None = None
    while True:
        part = await page(cursor)
        items += part.items
        cursor = part.next_cursor
        if not cursor:
            return items


def rows_of(items: Iterable[Item]) -> list[Mapping[str, Json]]:
    """Items as dataset rows; one without an id is given its number, from 1.

    Raises:
        InputError: For two items of one id, or a submission with parts that no row can hold.
    """
    rows = [_row(item, number) for number, item in enumerate(items, 1)]
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        name = row.get("id")
        if isinstance(name, str | int) and seen.setdefault(str(name), number) != number:
            raise InputError(
                f"item {number} has the id of item {seen[str(name)]}: {name!r:.100}",
                hint="ids must differ",
            )
    return rows


_MOST_ROW_BYTES = 256 << 20
_ESCAPED_BYTES = 6
"""A character that is not of ASCII, as JSON escapes it."""


def items_of(items: Iterable[Item], field: str) -> list[Mapping[str, Json]]:
    """Rows that are to be graded, read before they are sent: wrong ones are told alike everywhere.

    Args:
        items: The rows.
        field: What errors call the list.

    Raises:
        InputError: For a row that cannot be graded or is not JSON, named by its place.
    """
    return [row for row, _ in sized_items_of(items, field)]


def sized_items_of(items: Iterable[Item], field: str) -> list[tuple[Mapping[str, Json], int]]:
    """The same, each with the bytes that it has at most where it is sent."""
    found: list[tuple[Mapping[str, Json], int]] = []
    for number, row in enumerate(rows_of(items)):
        place = f"{field}[{number}]"
        read_row(row, number + 1, Location(field=place))
        try:
            text = json_text(row, "the row", most=_MOST_ROW_BYTES)
        except InputError as error:
            where = Location(field=place)
            raise InputError(error.message, location=where, hint=error.hint) from error
        found.append((row, len(text) * (1 if text.isascii() else _ESCAPED_BYTES)))
    return found


def _row(item: Item, number: int) -> Mapping[str, Json]:
    if isinstance(item, StringThread):
        return {"id": str(number), **item.to_dict()}
    if isinstance(item, Submission):
        return {"id": str(number), **_submission_row(item, number)}
    if not isinstance(cast("object", item), Mapping):
        raise InputError(f"item {number} must be a row, a StringThread or a Submission")
    return item if "id" in item else {"id": str(number), **item}


def _submission_row(item: Submission, number: int) -> dict[str, Json]:
    if item.workspace is not None or item.trace is not None:
        raise InputError(
            f"item {number} has a workspace or a trace, which no row can hold",
            hint="grade it as a case: assay run",
        )
    row: dict[str, Json] = {"metadata": dict(item.metadata)}
    if item.thread is not None:
        row["messages"] = item.thread.to_dict()["messages"]
        row["metadata"] = {**item.thread.metadata, **item.metadata}
    parts: Sequence[tuple[str, Json]] = (
        ("answer", item.answer),
        ("question", item.question),
        ("expected", item.expected),
    )
    row.update({name: part for name, part in parts if part is not None})
    return row


# Calls: arguments are checked, and who calls is remembered for warnings.

_OURS = "assay.client"
_Registry: TypeAlias = "dict[str | tuple[str, type[Warning], int], int]"


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the caller's, as `warnings.warn_explicit` wants it."""

    file: str
    line: int
    module: str
    registry: _Registry


_CALLER: ContextVar[_Place | None] = ContextVar("assay_client_caller", default=None)


def checked_calls(where: str) -> Callable[[C], C]:
    """Check the arguments of all public calls of a class.

    Args:
        where: How users get to the class, such as ``graders``.
    """

    def decorate(kind: C) -> C:
        for name, member in list(vars(kind).items()):
            if not name.startswith("_") and inspect.isfunction(member):
                setattr(kind, name, checked(f"{where}.{name}")(member))
        return kind

    return decorate


def checked(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make arguments that do not fit an `InputError`.

    Args:
        name: What users call the function.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature, waits = inspect.signature(function), inspect.iscoroutinefunction(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise _refusal(name, signature.parameters, args, kwargs, error) from None
            if not waits:
                return function(*args, **kwargs)
            work = cast("Callable[..., Awaitable[object]]", function)
            return cast("T", _placed(_caller(), work, args, kwargs))

        return call

    return decorate


def _refusal(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    error: TypeError,
) -> ArgumentError:
    named = [p for p in parameters if p != "self"]
    by_place = set(list(parameters)[: len(args)])
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty
        and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        and p.name not in kwargs
        and p.name not in by_place
    ]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if takes_any else [given for given in kwargs if given not in named]
    if unknown:
        hint = f"did you mean {missing[0]!r}?" if len(missing) == 1 else nearest(unknown[0], named)
        return ArgumentError(f"{name}() takes no parameter {unknown[0]!r:.80}", hint=hint)
    if missing:
        return ArgumentError(f"{name}() needs {' and '.join(f'{one}=' for one in missing)}")
    hint = "name them: " + ", ".join(f"{one}=" for one in named)
    return ArgumentError(f"{name}(): {error}", hint=hint)


async def _placed(
    place: _Place | None,
    work: Callable[..., Awaitable[object]],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:
    token = _CALLER.set(place)
    try:
        return await work(*args, **kwargs)
    finally:
        _CALLER.reset(token)


def _caller() -> _Place | None:
    """The nearest line outside of the client: of a task that comes later nothing else knows it."""
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module != _OURS and not module.startswith(f"{_OURS}."):
            registry = cast("_Registry", frame.f_globals.setdefault("__warningregistry__", {}))
            return _Place(frame.f_code.co_filename, frame.f_lineno, module, registry)
        frame = frame.f_back
    return None


def warn_caller(message: str) -> None:
    """Warn of something in the call that is being carried out, at the caller's own line."""
    place = _CALLER.get()
    if place is None:
        warnings.warn(message, UserWarning, stacklevel=3)
        return
    warnings.warn_explicit(
        message,
        UserWarning,
        place.file,
        place.line,
        module=place.module,
        registry=place.registry,
    )
