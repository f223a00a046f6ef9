"""Operations carried out here, by whoever has the database at hand: a store without a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from assay.registry.policy import Permissions
from assay.service.operation import EVERY_PROJECT, LOCAL, Desk, Identity, Operation
from assay.store.catalog import GraderVersion
from assay.store.database import Database

if TYPE_CHECKING:
    from assay.graders.batch import Batch
    from assay.registry.grading import Items
    from assay.store.records import CellKey
    from assay.store.regrades import RegradeState

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Here:
    """A host in the thread that has the database."""

    desk: Desk

    @property
    def permissions(self) -> Permissions:
        return self.desk.permissions

    async def run(self, work: Callable[[Desk], T]) -> T:
        return work(self.desk)

    async def finish(self, work: Callable[[Desk], T]) -> T:
        with self.desk.database.writing():
            return work(self.desk)

    async def read(self, work: Callable[[Desk], T]) -> T:
        return work(self.desk)

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await work()

    async def grade(
        self, version: GraderVersion, items: Items, deadline: float | None = None
    ) -> Batch:
        from assay.registry.grading import grade_timed

        return await grade_timed(version, items, self.permissions, deadline)

    async def regrade(self, run: str, cells: Sequence[CellKey] | None) -> RegradeState:
        from assay.eval.regrading import regrade
        from assay.store.regrades import Regrades
        from assay.store.runs import Store

        with Regrades(self.desk.database).held(run):
            return await regrade(Store(self.desk.database), run, cells, by=self.desk.who.name)


async def ask(operation: Operation[P, T], desk: Desk, /, *args: P.args, **given: P.kwargs) -> T:
    """Carry out an operation here, with the database at hand; a change is noted."""
    if not operation.waits:
        return do(operation, desk, *args, **given)
    output = await operation.function(_Here(desk), *args, **given)
    _note(operation, desk, output, args, given)
    return output


def do(operation: Operation[P, T], desk: Desk, /, *args: P.args, **given: P.kwargs) -> T:
    """Carry out an operation that waits for nothing; a change is noted in its transaction."""
    with desk.database.writing() if operation.is_change else nullcontext():
        output = operation.function(desk, *args, **given)
        _note(operation, desk, output, args, given)
    return output


def _note(
    operation: Operation[..., Any],
    desk: Desk,
    output: object,
    args: tuple[object, ...],
    given: Mapping[str, object],
) -> None:
    if operation.is_change:
        bound = operation.signature.bind(*args, **given)
        bound.apply_defaults()  # the log tells the same as a server's, which is sent all of them
        desk.note(operation, bound.arguments, output)


def local_desk(database: Database, project: str = "") -> Desk:
    """The desk of whoever works on the store itself: they run what the project's authors wrote."""
    who = Identity(LOCAL.id, _user(), "admin", EVERY_PROJECT)
    return Desk(database, project, who, Permissions(custom_code=True, internal=True))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user that has no name
        return str(os.getuid())
