"""What every part of a client shares: the backend, the project, and what can be graded.

A backend carries out operations: on a server (`remote`) or on a store of one's own (`local`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.service.arguments import check
from assay.service.operation import Operation
from assay.store.checks import json_text
from assay.tasks.rows import read_row
from assay.types.submission import Submission
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from assay.client.local import LocalBackend
    from assay.client.remote import RemoteBackend

P = ParamSpec("P")
T = TypeVar("T")

Item: TypeAlias = "Mapping[str, Json] | StringThread | Submission"
"""What can be graded: a dataset row, a conversation, or a submission of texts."""


Rows: TypeAlias = "Iterable[Mapping[str, Json]]"


Backend: TypeAlias = "LocalBackend | RemoteBackend"
"""Both sides; every call may raise `AssayError`, of the same types in both."""


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

    async def call(self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out an operation."""
        return await self.carry_out(operation, operation.signature.bind(*args, **kwargs).arguments)

    async def carry_out(self, operation: Operation[..., T], given: Mapping[str, object]) -> T:
        """Carry out an operation with arguments that fit it."""
        project = ""
        if operation.in_project:
            project = self.project(cast("str | None", given.get("project")))
            given = {name: value for name, value in given.items() if name != "project"}
        check(operation, given)
        return await self.backend.call(operation, project, given)

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
