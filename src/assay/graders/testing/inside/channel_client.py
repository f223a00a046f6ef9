"""The runner's end of the private channel: take the brief, then speak in signed, numbered lines."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import random
import socket
import sys
import threading
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, TypedDict, cast

from assay.graders.testing.inside.hooks import install, listen
from assay.graders.testing.inside.origins import frame_above

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    Frame = dict[str, object]
    Send = Callable[[Frame], None]

_HIGH_DESCRIPTOR = 700
"""Above what a submission writes to when it sprays every descriptor it may have."""

_LONGEST_TEXT = 4_000
_LONGEST_LINE = 1_000_000
_MOST_SIGNS = 40
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - a prefix


class Brief(TypedDict):
    """What the host tells a runner, less the key.

    Attributes:
        hidden: Sources by their path below the workspace.
        canary: ``name``, which every planted test's name contains, and ``planted``, the value that
            each must fail with.
        seed: Of the order.
        shuffle: Whether the order is free.
        skip: Ids not to run.
        loose: Classes of the submission, as ``module.Class``, that may equal what they like.
        given: The author's sources that the agent has seen, by their path below the workspace.
    """

    hidden: dict[str, str]
    canary: dict[str, str]
    seed: int
    shuffle: bool
    skip: list[str]
    loose: list[str]
    given: dict[str, str]


class RefusedError(Exception):
    """Another process of this command already reports."""


def connect(path: str) -> tuple[Brief, Send]:
    """Take the brief.

    Args:
        path: The socket.

    Returns:
        The brief, and the only way to speak. Nothing leads to the key.

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
    """Make the function that sends; it has all it needs before any submission is imported.

    Key and descriptor are known to an audit hook only, to which no attribute of anything leads. It
    hears nobody but our own code, called by whoever calls us by right.
    """
    say, said = _voice(descriptor, key), cast("set[str]", set())
    event, audit = f"say {random.SystemRandom().getrandbits(128):x}", sys.audit
    is_rightful, caller, thread_of = _rightful(), frame_above, threading.get_ident
    own_thread = thread_of()

    def say_once(kind: str, what: str) -> None:
        if what not in said and len(said) < _MOST_SIGNS:
            said.add(what)
            say({"event": kind, "what": what})

    def hear(arguments: tuple[object, ...]) -> None:
        frame = arguments[0]
        if type(frame) is not dict or caller(2).f_code is not asking:
            say_once("tamper", "a report was made up")
            return
        told = cast("Frame", frame)
        kind = told.get("event")
        if kind in ("tamper", "suspect"):
            say_once(str(kind), str(told.get("what")))
        elif thread_of() != own_thread or not is_rightful(caller(3)):
            say_once("tamper", "a report was made up")
        else:
            say(told)

    def send(frame: Frame) -> None:
        audit(event, frame)

    asking = send.__code__
    listen(event, hear)
    install()
    return send


def _voice(descriptor: int, key: bytes) -> Send:
    """Make the function that writes signed, numbered lines."""
    write, pid_of, own_pid, close = os.write, os.getpid, os.getpid(), os.close
    sign, to_json, lock = _signer(key), _writer(), threading.RLock()
    state = {"next": 0, "open": 1}

    def say(frame: Frame) -> None:
        with lock:
            if not state["open"] or pid_of() != own_pid:  # a forked child has no say
                return
            number = state["next"]
            state["next"] = number + 1
            payload = to_json(frame)
            code = sign(f"{number}\n{payload}".encode())
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
    return say


def _rightful() -> Callable[[FrameType | None], bool]:
    """Make the function that says whether our code speaks, called by those who run us."""
    ours, separator = _OURS, os.sep

    def is_rightful(frame: FrameType | None) -> bool:
        if frame is None or not frame.f_code.co_filename.startswith(ours):
            return False
        while frame is not None and frame.f_code.co_filename.startswith(ours):
            frame = frame.f_back
        if frame is None:
            return True
        path = frame.f_code.co_filename.replace(separator, "/")
        return "/pluggy/" in path or "/unittest/" in path

    return is_rightful


def _signer(key: bytes) -> Callable[[bytes], str]:
    """HMAC-SHA256 (RFC 2104) of nothing but C code, which nobody can replace."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def sign(message: bytes) -> str:
        inside, outside = inner.copy(), outer.copy()
        inside.update(message)
        outside.update(inside.digest())
        return outside.hexdigest()

    return sign


def _writer() -> Callable[[object], str]:
    """Make the function that writes JSON of a value, by means that nobody can replace.

    Texts are cut to a bounded length and are valid Unicode.
    """
    quote, is_finite, kind_of = encode_basestring_ascii, math.isfinite, type

    def text_of(value: str) -> str:
        cut = str.__str__(value)[:_LONGEST_TEXT]
        return quote(cut.encode("utf-8", "backslashreplace").decode("utf-8"))

    def plain(value: object) -> str:
        if value is None:
            return "null"
        if kind_of(value) is bool:
            return "true" if value else "false"
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return float.__repr__(value) if is_finite(value) else "null"
        return text_of(f"a {kind_of(value).__name__}")

    def write(value: object) -> str:
        if isinstance(value, str):
            return text_of(value)
        if isinstance(value, dict):
            pairs = cast("Frame", value).items()
            return "{" + ", ".join([f"{text_of(str(k))}: {write(v)}" for k, v in pairs]) + "}"
        if isinstance(value, list):
            return "[" + ", ".join([write(one) for one in cast("list[object]", value)]) + "]"
        return plain(value)

    return write


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
