"""Where the keys of ``assay label`` come from: a terminal, or lines of standard input."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol, TextIO

__all__ = ["COMMANDS", "Keys", "Lines", "key_names", "opened_keys"]

COMMANDS = {"s": "skip", "u": "undo", "m": "more", "w": "note", "q": "quit"}
"""What every key does that is no class."""

_QUIT = "q"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
_MOST_NOTE = 2_000


def key_names(classes: Sequence[str]) -> dict[str, str]:
    """The key of every class: its first letter where that is free, else its number.

    Where one class cannot have its letter, all have numbers: half a scheme confuses.
    """
    letters = [name[0].lower() for name in classes]
    is_clear = len(set(letters)) == len(letters) and not set(letters) & set(COMMANDS)
    if is_clear and all(letter.isascii() and letter.isalnum() for letter in letters):
        return dict(zip(letters, classes, strict=True))
    return {str(place): name for place, name in enumerate(classes, 1)}


class Keys(Protocol):
    """What a rater presses."""

    def forget(self) -> None:
        """Drop what was pressed before the item was shown."""
        ...

    def next(self) -> tuple[str, str]:
        """The next key and the note with it; ``q`` at the end."""
        ...

    def note(self, ask: Callable[[], None]) -> str:
        """A line of text, asked for once it can be written."""
        ...


@contextmanager
def opened_keys(classes: Sequence[str]) -> Generator[Keys]:
    """The keys of the terminal that standard input is, which is put back at the end; or lines."""
    if not sys.stdin.isatty():
        yield Lines(sys.stdin, classes)
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield _Terminal(descriptor, before)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Terminal:
    """Single keys, at once. Keys that send sequences, such as arrows, do nothing."""

    def __init__(self, descriptor: int, before: list[object]) -> None:
        self._descriptor = descriptor
        self._before = before
        self._waiting: deque[str] = deque()

    def forget(self) -> None:
        import termios

        self._waiting.clear()
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def next(self) -> tuple[str, str]:
        while not self._waiting:
            pressed = os.read(self._descriptor, 64)
            if not pressed or pressed[:1] == b"\x04":
                return _QUIT, ""
            self._waiting.extend(_SEQUENCE.sub(b"", pressed).decode("ascii", "replace"))
        return self._waiting.popleft().lower(), ""

    def note(self, ask: Callable[[], None]) -> str:
        import termios
        import tty

        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)  # pyright: ignore[reportArgumentType] - what tcgetattr gave
        try:
            ask()
            return sys.stdin.readline(_MOST_NOTE).strip()
        finally:
            tty.setcbreak(self._descriptor)


class Lines:
    """A line for each key: the key or the class, and a note behind it if there is one."""

    def __init__(self, source: TextIO, classes: Sequence[str]) -> None:
        self._source = source
        self._keys = {name.casefold(): key for key, name in key_names(classes).items()}

    def forget(self) -> None:
        """Lines are meant as they stand."""

    def next(self) -> tuple[str, str]:
        """The key of the next line that holds something."""
        for line in self._source:
            key, _, note = line.strip().partition(" ")
            if key:
                known = key.casefold()
                return self._keys.get(known, known), note.strip()[:_MOST_NOTE]
        return _QUIT, ""

    def note(self, ask: Callable[[], None]) -> str:
        """The next line."""
        ask()
        return self._source.readline(_MOST_NOTE).strip()
