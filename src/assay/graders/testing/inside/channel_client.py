"""The runner's end of the private channel: take the brief, then speak in signed, numbered lines."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Frame = dict[str, object]
    Send = Callable[[Frame], None]

_HIGH_DESCRIPTOR = 700
"""Above what a submission writes to when it sprays every descriptor it may have."""

_LONGEST_TEXT = 4_000
_LONGEST_LINE = 1_000_000


class Brief(TypedDict):
    """What the host tells a runner, less the key.

    Attributes:
        hidden: Sources by their path below the workspace.
        canary: ``name``, which every planted test's name contains, and ``planted``, the value that
            each must fail with.
        seed: Of the order.
        shuffle: Whether the order is free.
        skip: Ids not to run.
    """

    hidden: dict[str, str]
    canary: dict[str, str]
    seed: int
    shuffle: bool
    skip: list[str]


class RefusedError(Exception):
    """Another process of this command already reports."""


def connect(path: str) -> tuple[Brief, Send]:
    """Take the brief.

    Args:
        path: The socket.

    Returns:
        The brief, and the only way to speak. The key lives in that function's closure.

    Raises:
        RefusedError: If the host serves another process.
        OSError: If there is no host.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(path)
        told = cast("dict[str, object]", json.loads(_line(link)))
        if "refused" in told:
            raise RefusedError(str(told["refused"]))
        descriptor = _move_up(link.fileno())
    key = bytes.fromhex(str(told.pop("key")))
    return cast("Brief", told), _speaker(descriptor, key)


def _line(link: socket.socket) -> bytes:
    chunks: list[bytes] = []
    while not chunks or not chunks[-1].endswith(b"\n"):
        chunk = link.recv(1 << 18)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _move_up(descriptor: int) -> int:
    for lowest in (_HIGH_DESCRIPTOR, 64, 3):
        try:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:  # above the limit on open files
            continue
    return os.dup(descriptor)


def _speaker(descriptor: int, key: bytes) -> Send:
    """Make the function that sends; it has all it needs before any submission is imported."""
    write, pid_of, own_pid, close = os.write, os.getpid, os.getpid(), os.close
    new_mac, sha256, dumps, lock = hmac.new, hashlib.sha256, json.dumps, threading.RLock()
    state = {"next": 0, "open": 1}

    def send(frame: Frame) -> None:
        payload = dumps({name: _plain(value) for name, value in frame.items()})
        with lock:
            if not state["open"] or pid_of() != own_pid:  # a forked child has no say
                return
            number = state["next"]
            state["next"] = number + 1
            code = new_mac(key, f"{number}\n{payload}".encode(), sha256).hexdigest()
            line = f"{code} {number} {payload}\n".encode()
            try:
                while line:
                    line = line[write(descriptor, line) :]
            except OSError:  # the host has heard enough; it says why
                state["open"] = 0

    def leave() -> None:
        state["open"] = 0
        close(descriptor)

    os.register_at_fork(after_in_child=leave)
    return send


def _plain(value: object) -> bool | float | str | list[object] | Frame | None:
    """A copy of exact built-in types, with texts of bounded length that are valid Unicode."""
    if isinstance(value, str):
        text = str.__str__(value)[:_LONGEST_TEXT]
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_plain(entry) for entry in cast("list[object]", value)]
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in cast("Frame", value).items()}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)[:_LONGEST_TEXT]


def send_collected(send: Send, ids: list[str], errors: list[tuple[str, str]]) -> None:
    """Say what was collected, in as many lines as their length asks for."""
    entries = [{"id": name, "message": message} for name, message in errors]
    for start in range(0, len(entries), 100):
        send({"event": "collected", "ids": [], "errors": entries[start : start + 100]})
    batch: list[str] = []
    size = 0
    for name in ids:
        # JSON may write one character as six.
        if size + 6 * len(name) > _LONGEST_LINE // 2:
            send({"event": "collected", "ids": batch, "errors": []})
            batch, size = [], 0
        batch.append(name)
        size += 6 * min(len(name), _LONGEST_TEXT) + 4
    send({"event": "collected", "ids": batch, "errors": []})
