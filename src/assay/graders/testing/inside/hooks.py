"""The one audit hook of the process: an event goes to whoever listens to it, at little cost.

Nothing leads to an audit hook, so that what its listeners know is out of reach. Once all listen,
`seal` makes this module forget them, too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Listener = Callable[[tuple[object, ...]], None]

_listeners: dict[str, Listener] = {}


def listen(event: str, listener: Listener) -> None:
    """Have a function called at each event of a name; its caller's caller raised the event."""
    _listeners[event] = listener


def install() -> None:
    """Start to listen."""
    listener_of = _listeners.get

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        listener = listener_of(event)
        if listener is not None:
            listener(arguments)

    sys.addaudithook(hear)


def seal() -> None:
    """Forget the listeners, which go on listening."""
    globals()["_listeners"] = {}
