"""The process that does the mathematics, so that it can be killed: JSON lines in, JSON lines out.

Run as a script by `assay.text.math`; imports nothing of assay. After ``{"ready": true}`` it answers
each request ``{"gold": str, "answer": str, "seconds": number}`` with two lines: ``{"gold": bool}``
once the expected answer is parsed (so that a hang can be put down to the right side), then
``{"equal": bool}``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import resource
import sys
from collections.abc import Callable
from typing import cast

_MEMORY = 4 * 1024**3
_GRACE_SECONDS = 5


def main() -> None:
    """Serve requests until standard input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever the library prints must not pass for an answer
    logging.disable(logging.CRITICAL)
    _limit(resource.RLIMIT_AS, _MEMORY)
    _limit(resource.RLIMIT_CORE, 0)

    def say(**line: bool) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    parse, verify = _library()
    say(ready=True)
    for line in sys.stdin:
        request = json.loads(line)
        _limit_cpu(float(request["seconds"]))
        gold = _quietly(parse, str(request["gold"]))
        say(gold=bool(gold))
        answer = _quietly(parse, str(request["answer"])) if gold else None
        equal = bool(answer) and _quietly(verify, gold, answer) is True
        say(equal=equal and _quietly(_numbers_agree, gold, answer) is not False)


def _library() -> tuple[Callable[..., object], Callable[..., object]]:
    """Import math-verify and bind what we want of it: no time-outs of its own, no fall-backs."""
    module = importlib.import_module("math_verify")
    parse = functools.partial(
        cast("Callable[..., object]", module.parse),
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    verify = functools.partial(cast("Callable[..., object]", module.verify), timeout_seconds=None)
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
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
