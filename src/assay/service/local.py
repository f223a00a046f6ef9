"""Operations carried out here, by whoever has the database at hand: a store without a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

from assay.registry.policy import Permissions
from assay.service.operation import EVERY_PROJECT, LOCAL, Desk, Host, Identity, Operation
from assay.store.database import Database

P = ParamSpec("P")
T = TypeVar("T")


async def ask(operation: Operation[P, T], desk: Desk, /, *args: P.args, **given: P.kwargs) -> T:
    """Carry out an operation here, with the database at hand; a change is noted."""
    if not operation.waits:
        return do(operation, desk, *args, **given)
    output = await operation.function(Host(desk), *args, **given)
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
