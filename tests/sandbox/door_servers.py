"""Servers at the doors of commands: what a gateway does there, in its plainest form."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from assay.sandbox import CommandResult, Door, open_command, run_command_sync

__all__ = ["PORT", "Keeper", "behind_a_door", "converse"]

PORT = 8377


class Keeper:
    """Says its word to each who comes, until `with` ends.

    Attributes:
        door: Its door.
        met: How many have come.
    """

    def __init__(self, word: str = "hello", port: int = PORT) -> None:
        self.door = Door(port=port, on_open=self._open)
        self.met = 0
        self._word = word.encode()
        self._thread: threading.Thread | None = None
        self._listener: socket.socket | None = None

    def _open(self, listener: socket.socket) -> None:
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, args=[listener])
        self._thread.start()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # it was shut down
            while True:
                guest, _ = listener.accept()
                self.met += 1
                with guest, suppress(ConnectionError):
                    guest.sendall(self._word)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._listener is not None and self._thread is not None:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in `accept`
            self._thread.join()
            self._listener.close()


def behind_a_door(
    argv: list[str], *, port: int = PORT, **options: object
) -> tuple[CommandResult, int]:
    """Run a command with a server at its door; the result, and how many came."""
    with Keeper(port=port) as keeper:
        result = run_command_sync(argv, door=keeper.door, **options)  # pyright: ignore[reportArgumentType] - as given
    return result, keeper.met


def converse(argv: list[str]) -> bytes:
    """Talk to a command that has such a door: what it answers to a word."""

    async def talk(door: Door) -> bytes:
        async with open_command(argv, workspace=None, door=door) as server:
            server.stdin.write(b"well\n")
            return await server.stdout.read()

    with Keeper() as keeper:
        return asyncio.run(talk(keeper.door))
