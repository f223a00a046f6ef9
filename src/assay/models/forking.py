"""What a forked process may not inherit: locks that a thread of the parent held, its requests.

The threads of the parent are not there in the child. A lock that one of them held would never be
given back, and a request that one of them sent would be waited for until the end.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forked", "renewed_in_forks"]


class Forked(Protocol):
    """What is made anew in a forked process."""

    def renew(self) -> None:
        """Take new locks, and forget what is under way; called while there is one thread."""
        ...


_HELD: weakref.WeakSet[Forked] = weakref.WeakSet()


def renewed_in_forks(thing: Forked) -> None:
    """Have a thing made anew in each process that is forked from here, as long as it lives."""
    _HELD.add(thing)


def _renew() -> None:
    for thing in list(_HELD):
        thing.renew()


os.register_at_fork(after_in_child=_renew)
