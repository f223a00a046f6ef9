"""What a forked process may not inherit: locks that a thread of the parent held, its requests.

The threads of the parent are not there in the child. A lock that one of them held would never be
given back, and a request that one of them sent would be waited for until the end.
"""

from __future__ import annotations

import os
import threading
import weakref


class ForkSafe:
    """Has a lock, which is a new one in each process that is forked from here.

    Args:
        reentrant: Whether a thread that holds the lock may take it again.
    """

    def __init__(self, *, reentrant: bool = False) -> None:
        self._make_lock = threading.RLock if reentrant else threading.Lock
        self.lock = self._make_lock()
        _HELD.add(self)

    def renew(self) -> None:
        """Take a new lock, and forget what is under way; called while there is one thread."""
        self.lock = self._make_lock()


_HELD: weakref.WeakSet[ForkSafe] = weakref.WeakSet()


def _renew() -> None:
    for thing in list(_HELD):
        thing.renew()


os.register_at_fork(after_in_child=_renew)
