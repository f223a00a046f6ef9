"""Proof that a hidden test ran to its end, gathered by the test itself, not by its runner.

The source of every hidden test is changed to run its body inside ``with WATCH[n]:`` and to take its
constants from ``VAULT[n]``. So a report that says "passed" of a test whose body never ended is
known to be false, whoever made it; and a submission that reads the bytecode of its caller finds
numbers of constants, not the constants.
"""

from __future__ import annotations

import random
import sys
from opcode import opmap
from typing import TYPE_CHECKING, cast

from assay.graders.testing.inside.hooks import listen
from assay.graders.testing.inside.origins import Origins, frame_above

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SUBSCRIBES = opmap["BINARY_SUBSCR" if "BINARY_SUBSCR" in opmap else "BINARY_OP"]
_CACHE = opmap.get("CACHE", 0)


class _Watched:
    """The body of one test while it runs."""

    __slots__ = ("_active", "_index", "_runs")

    def __init__(self, index: int, runs: list[tuple[int, bool]], active: list[object]) -> None:
        self._index = index
        self._runs = runs
        self._active = active

    def __enter__(self) -> None:
        self._active.append(self)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self in self._active:
            self._active.remove(self)
        self._runs.append((self._index, kind is None))


class Watch:
    """What ``WATCH[n]`` asks: writes down how the bodies of tests end.

    Args:
        origins: Knows the hidden code.
        report: Takes a sentence about whoever runs hidden tests beside the runner.
    """

    def __init__(self, origins: Origins, report: Callable[[str], None]) -> None:
        self._origins = origins
        self._report = report
        self._runs: list[tuple[int, bool]] = []
        self._active: list[object] = []

    def begin(self, index: int, frame: FrameType) -> _Watched:
        """The body of a test, whose frame this is, is entered."""
        if self._origins.is_run_by_submission(frame, nested=bool(self._active)):
            self._report("a hidden test was run by the submission")
        return _Watched(index, self._runs, self._active)

    def forget(self) -> None:
        """Start anew, before a test."""
        del self._runs[:]
        del self._active[:]

    def saw(self, indices: tuple[int, ...], *, clean: bool) -> bool:
        """Whether one of some bodies ended; if ``clean``, its last run without an exception."""
        ends = [is_clean for index, is_clean in self._runs if index in indices]
        return bool(ends) and (ends[-1] or not clean)


class Constants:
    """What ``VAULT[n]`` asks: gives a constant to the code that it was taken from."""

    def __init__(self) -> None:
        self._held: dict[int, object] = {}
        self._draw = random.SystemRandom().getrandbits

    def put(self, constant: object) -> int:
        """Keep a constant; returns its number."""
        number = self._draw(60)
        self._held[number] = constant
        return number

    def get(self, number: int, frame: FrameType) -> object:
        """The constant of a number."""
        del frame
        return self._held[number]


def witness(codes: dict[int, bytes], respond: Callable[[int, FrameType], object]) -> object:
    """Make an object whose items hidden code can ask for, and nobody else.

    It asks an audit hook, by an event of its own. Only the hook knows the answers: no attribute of
    anything leads to it, nor does ``gc``.

    Args:
        codes: The hidden code, by identity. It may still grow.
        respond: Gives the item of a number to the frame that asks.
    """
    event, audit, caller = (
        f"witness {random.SystemRandom().getrandbits(128):x}",
        sys.audit,
        frame_above,
    )

    class Witness:
        __slots__ = ()

        def __getitem__(self, number: int) -> object:
            answer: list[object] = []
            audit(event, number, answer)
            if not answer:
                raise LookupError("this belongs to the tests")
            return answer[0]

    asking = vars(Witness)["__getitem__"].__code__

    def hear(arguments: tuple[object, ...]) -> None:
        frame = caller(2)
        if frame.f_code is asking and _takes_item(frame.f_back, codes):
            number, answer = cast("tuple[int, list[object]]", arguments)
            answer.append(respond(number, cast("FrameType", frame.f_back)))

    listen(event, hear)
    return Witness()


def _takes_item(frame: FrameType | None, codes: dict[int, bytes]) -> bool:
    """Whether hidden code is just subscribing something: not calling, nor iterating."""
    code = codes.get(id(frame.f_code)) if frame else None
    if frame is None or code is None:
        return False
    at = frame.f_lasti
    while at > 0 and code[at] == _CACHE:  # the interpreter may stand behind the instruction
        at -= 2
    return code[at] == _SUBSCRIBES


class Expectation:
    """What must have been seen of a test that passed.

    Attributes:
        indices: Bodies, of which one must have ended.
        clean: Whether without an exception: nothing around it may catch one.
    """

    __slots__ = ("clean", "indices")

    def __init__(self, indices: tuple[int, ...], *, clean: bool) -> None:
        self.indices = indices
        self.clean = clean


class Ledger:
    """The tests that leave evidence, by where they are written and by their code."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Expectation] = {}
        self._by_line: dict[tuple[str, str, int], Expectation] = {}
        self._count = 0

    def add(self, path: str, name: str, line: int, *, clean: bool) -> int:
        """Enter a test; returns the number of its body.

        Args:
            path: Of its file.
            name: Dotted, inside the file.
            line: Where its ``def`` is.
            clean: Whether nothing around it may catch an exception.
        """
        index = self._count
        self._count += 1
        known = self._by_name.get((path, name))
        before = known.indices if known else ()
        clean = clean and (known.clean if known else True)
        self._by_name[path, name] = Expectation((*before, index), clean=clean)
        self._by_line[path, name, line] = Expectation((index,), clean=clean)
        return index

    def of(self, path: str, name: str, function: object) -> Expectation | None:
        """What to expect of a test; None where it leaves no evidence.

        Args:
            path: Of the file that it was collected from.
            name: Dotted, as collected: an inherited test has its subclass's name.
            function: What will be called.
        """
        if (path, name) in self._by_name:
            return self._by_name[path, name]
        code = getattr(function, "__code__", None)
        qualified = getattr(function, "__qualname__", "")
        where = (getattr(code, "co_filename", ""), qualified, getattr(code, "co_firstlineno", 0))
        return self._by_line.get(where)
