"""A process that imports what compares, once, and forks others that compare and can be killed.

Run as a script by `assay.text.killable`, which says what they are asked; imports nothing of assay.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn, cast

_MEMORY = 4 * 1024**3
_GRACE_SECONDS = 5

_Reading = Callable[[str], Callable[[str], bool | str]]
"""Reads what is wanted; what that gives says whether an answer holds."""


class _RefusedError(Exception):
    """What is wanted makes no sense."""


def main(subject: str, descriptor: str) -> None:
    """Fork and kill as told by this socket, until who tells has gone; then nothing is left.

    Each order is four bytes, answered with the id of a process: 0, with the socket for the requests
    of a new one; or the id of one to kill. None is reaped before, so that ids stay what they are.
    """
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would reap for us
    _limit(resource.RLIMIT_AS, _MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    control = socket.socket(fileno=int(descriptor))
    read = {"mathematics": _mathematics, "schemas": _schemas}[subject]()
    gc.freeze()  # what is shared stays shared
    pid = os.getpid()  # we are ready
    forked: set[int] = set()
    try:
        while True:
            control.sendall(pid.to_bytes(4, "little"))
            order, links, _, _ = socket.recv_fds(control, 4, 1)
            if not order:
                break
            pid = int.from_bytes(order, "little")
            if links:
                pid = _fork(read, control, links[0])
                forked.add(pid)
            else:
                _kill(pid)
                forked.remove(pid)
    finally:
        for pid in forked - {0}:
            _kill(pid)


def _fork(read: _Reading, control: socket.socket, descriptor: int) -> int:
    """A new process that compares; 0 where the system has none left."""
    with socket.socket(fileno=descriptor) as link:
        try:
            pid = os.fork()
        except OSError:
            return 0
        if pid == 0:
            try:
                control.close()
                _serve(read, link)
            finally:
                os._exit(0)
    return pid


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _serve(read: _Reading, link: socket.socket) -> None:
    """Answer requests until there are no more."""

    def say(**line: bool | str) -> None:
        link.sendall(json.dumps(line).encode() + b"\n")

    for line in link.makefile(encoding="ascii"):
        request = json.loads(line)
        _limit_cpu(float(request["seconds"]))
        try:
            holds = read(str(request["wanted"]))
        except _RefusedError as error:
            say(refused=str(error))
            continue
        say(refused="")
        say(holds=holds(str(request["answer"])))


# --- Mathematics ---------------------------------------------------------------------------------


def _mathematics() -> _Reading:
    parse, verify = _library()

    def read(wanted: str) -> Callable[[str], bool | str]:
        gold = _quietly(parse, wanted)

        def holds(text: str) -> bool | str:
            answer = _quietly(parse, text) if gold else None
            equal = bool(answer) and _quietly(verify, gold, answer) is True
            if not equal or _quietly(_numbers_agree, gold, answer) is False:
                return False
            return str(cast("list[object]", answer)[-1]) or True

        return holds

    read(r"$\frac{1}{2}$")("$x^2+1$")  # its tables are read when they are first needed
    return read


def _library() -> tuple[Callable[..., object], Callable[..., object]]:
    """Import math-verify and bind what we want of it: no time-outs of its own, no fall-backs."""
    module = importlib.import_module("math_verify")
    parse = functools.partial(
        cast("Callable[..., object]", module.parse),
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    verify = functools.partial(
        cast("Callable[..., object]", module.verify),
        timeout_seconds=None,
        allow_set_relation_comp=True,
    )
    return functools.lru_cache(maxsize=64)(parse), verify


def _numbers_agree(gold: object, answer: object) -> bool | None:
    """Whether two numbers are as close as their size allows; None where either is not a number.

    The library compares by six decimals, which makes all small numbers equal.
    """
    values: list[complex] = []
    for parsed in (gold, answer):
        first: object = cast("list[object]", parsed)[0]
        if not getattr(first, "is_number", False):
            return None
        values.append(complex(cast("complex", first)))
    one, other = values
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other))


def _quietly(function: Callable[..., object], *arguments: object) -> object:
    """Call a function on hostile input; None if it fails in any way."""
    try:
        return function(*arguments)
    except Exception:  # whatever an answer does to the library, it is not equal
        return None


# --- JSON Schema ---------------------------------------------------------------------------------

_PROBES: tuple[object, ...] = (None, True, 1, "a", [], [1], {}, {"a": 1})
"""A schema that takes too long for these takes too long by itself, whatever the answer is."""


def _schemas() -> _Reading:
    library: Any = importlib.import_module("jsonschema_rs")

    @functools.lru_cache(maxsize=64)
    def read(wanted: str) -> Callable[[str], bool | str]:
        try:
            validator = library.validator_for(
                json.loads(wanted),
                pattern_options=library.RegexOptions(),  # linear in the text
                retriever=_fetch_nothing,
            )
        except ValueError as error:
            lines = str(error).strip().splitlines()
            raise _RefusedError(lines[0] if lines else "unknown reason") from None
        for probe in _PROBES:
            validator.is_valid(probe)
        return lambda text: bool(validator.is_valid(json.loads(text)))

    return read


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema, and nothing is fetched")


# --- Limits --------------------------------------------------------------------------------------


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
        resource.setrlimit(kind, (most, hard))


def _limit_cpu(seconds: float) -> None:
    """Die of a hang even if nobody is left to kill us."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + _GRACE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
