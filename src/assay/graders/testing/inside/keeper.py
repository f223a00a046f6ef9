"""Keeps the one session where nothing but our own code finds it.

What pytest and unittest hold of ours, plugins and results, is in reach of whatever runs in their
process: through frames, plugin managers, test items. None of it may lead to the session.
"""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING, cast

from assay.graders.testing.inside.hooks import listen
from assay.graders.testing.inside.origins import frame_above

if TYPE_CHECKING:
    from assay.graders.testing.inside.session import Session

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - a prefix
_EVENT = f"session {random.SystemRandom().getrandbits(128):x}"


def keep(session: Session) -> None:
    """Keep the session; once."""
    caller, event, asking, ours = frame_above, _EVENT, _ask.__code__, _OURS
    getting = Kept.__get__.__code__

    def hear(arguments: tuple[object, ...]) -> None:
        if caller(2).f_code is not asking:
            return
        asker = caller(3)
        if asker.f_code is getting:
            asker = caller(4)
        if asker.f_code.co_filename.startswith(ours):
            cast("list[Session]", arguments[0]).append(session)

    listen(event, hear)


class Kept:
    """An attribute that is the session, for code of ours."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type | None = None) -> Session:
        return _ask()


def report(what: str) -> None:
    """Tell of a sign of tampering; unlike a method of the session, it does not lead to it."""
    _ask().tamper(what)


def suspect(what: str) -> None:
    """Tell of what is a sign only in a run that does not come to its end."""
    _ask().suspect(what)


def look() -> None:
    """Look at the built-in functions, which hidden tests share with the submission."""
    _ask().integrity.check_builtins()


def _ask() -> Session:
    answer: list[Session] = []
    sys.audit(_EVENT, answer)
    if not answer:
        raise AttributeError("_session")
    return answer[0]
