"""The runner's end of the private channel: take the brief, then speak in signed lines."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import socket
import sys
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


class BriefFields(TypedDict):
    """What the host tells a runner, less the key."""

    hidden: dict[str, str]
    # ``name``, which every planted test's name contains, and ``planted``, the value that each must
    # fail with.
    canary: dict[str, str]
    seed: int
    shuffle: bool
    skip: list[str]
    loose: list[str]
    apart: dict[str, object] | None
    handed: int | None


class RefusedError(Exception):
    """Another process of this command already reports."""


def connect(path: str) -> tuple[BriefFields, Send]:
    """Take the brief."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(path)
        handed: list[int] = []
        told = cast("dict[str, object]", json.loads(_line(link, handed)))
        told["handed"] = handed[0] if handed else None
        if "refused" in told:
            raise RefusedError(str(told["refused"]))
        descriptor = _move_up(link.fileno())
    key = bytes.fromhex(str(told.pop("key")))
    return cast("BriefFields", told), _speaker(descriptor, key)


def _line(link: socket.socket, handed: list[int]) -> bytes:
    """A line, and the descriptor that may come with it."""
    chunks: list[bytes] = []
    while not chunks or not chunks[-1].endswith(b"\n"):
        chunk, beside, _, _ = link.recvmsg(1 << 18, socket.CMSG_SPACE(4))
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                handed.append(int.from_bytes(data[:4], sys.byteorder))
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
    """Make the function that sends: signed, numbered lines, from this process alone."""
    lock, own_pid, state = threading.RLock(), os.getpid(), {"next": 0, "open": 1}
    encode, sign, write, close = json.JSONEncoder().encode, hmac.new, os.write, os.close

    def send(frame: Frame) -> None:
        with lock:
            if not state["open"] or os.getpid() != own_pid:  # a forked child has no say
                return
            signed = f"{state['next']}\n{encode(_cut(frame))}".encode()
            state["next"] += 1
            code = sign(key, signed, hashlib.sha256).hexdigest().encode()
            line = code + b" " + signed.replace(b"\n", b" ", 1) + b"\n"
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


def _cut(value: object) -> object:
    """A frame with texts of a bounded length that are valid Unicode."""
    if isinstance(value, str):
        cut = str.__str__(value)[:_LONGEST_TEXT]
        return cut.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in cast("Frame", value).items()}
    if isinstance(value, list):
        return [_cut(one) for one in cast("list[object]", value)]
    return value


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
