"""The store that ``assay graders`` works on, and how it names what is in it."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import is_shared, state_home
from assay.errors import InputError, LockedError, NotFoundError
from assay.registry import Registry
from assay.store.database import Database
from assay.store.projects import Projects

if TYPE_CHECKING:
    from assay.reports.standing import Standing
    from assay.store.catalog_records import GraderVersion

__all__ = ["key_and_version", "opened", "standing_of"]


@contextmanager
def opened(
    given: Namespace, *, trusted: bool | None = None, make: bool = False
) -> Generator[Registry]:
    """The graders of the project that options name.

    Args:
        given: The options.
        trusted: Whether classes of graders' authors are imported, and endpoints on private
            networks called. None allows the first in a store of one's own, the second everywhere.
        make: Whether to make the store and the project if they are not there.

    Raises:
        InputError: If there is no store, and none is to be made. Nothing is made then.
        NotFoundError: Naming the store.
        LockedError: Naming the command that unlocks.
    """
    place = _place(given)
    if not make and _is_nothing(place):
        raise InputError(
            f"there is no store at {place}",
            hint="`assay graders create` and `import` make one; --db or ASSAY_HOME names another",
        )
    with Database.open(place) as database:
        if make and given.project not in {p.key for p in Projects(database).all()}:
            Projects(database).create(given.project)
            print(f"made project {given.project!r}", file=sys.stderr)
        try:
            yield Registry(
                database,
                given.project,
                allow_custom_code=not is_shared(given) if trusted is None else trusted,
                allow_internal=trusted is not False,
            )
        except NotFoundError as error:
            message = f"{error.message}, in the store {database.place}"
            raise NotFoundError(message, location=error.location, hint=error.hint) from error
        except LockedError as error:
            raise LockedError(error.message, hint=f"first: {_unlock(given)}") from error


def key_and_version(given: Namespace) -> tuple[str, int | None]:
    """The key and the version of ``KEY`` or ``KEY@N``, and of ``--version``.

    Raises:
        InputError: For a version that is none, or two that differ.
    """
    said: int | None = getattr(given, "version", None)
    key, at, number = given.key.partition("@")
    if not at:
        return key, said
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number)):
        raise InputError(f"{number!r:.80} is no version of {key!r:.80}", hint="such as exact@2")
    if said not in (None, int(number)):
        raise InputError(f"{given.key!r} and --version {said} are two versions", hint="keep one")
    return key, int(number)


def standing_of(given: Namespace, version: GraderVersion) -> Standing | None:
    """The calibration card of a stored grader; None where there is none."""
    from assay.reports.standing import stored_standing

    with Database.open(_place(given)) as database:
        return stored_standing(database, version)


def _place(given: Namespace) -> str:
    return given.db or state_home()


def _is_nothing(place: str) -> bool:
    """Whether a place is a directory without a store in it, or not there at all."""
    folder = Path(place)
    try:
        return "://" not in place and (
            not folder.exists() or (folder.is_dir() and not (folder / "assay.db").exists())
        )
    except OSError:
        return False  # opening it says what is wrong


def _unlock(given: Namespace) -> str:
    words = ["assay", "graders", "lock", getattr(given, "key", "KEY"), "--unlock"]
    if given.project != "default":
        words += ["--project", given.project]
    if given.db and not is_shared(given):
        words += ["--db", given.db]
    return shlex.join(words)
