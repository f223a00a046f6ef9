"""`FunctionSource`: the source of a function grader, and what it is given to run with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from assay.errors import InputError
from assay.graders.functions.reading import MARK, foreign_coding, without_mark
from assay.scoring.json_safe import Json
from assay.types import picture as picture_module
from assay.types import thread as thread_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.sandbox.functions.program import Program

__all__ = ["MAX_SOURCE_BYTES", "FunctionSource", "Isolation", "given_modules", "read_source"]

Isolation: TypeAlias = Literal["call", "batch"]
"""A fresh process for each call, or one for many calls of the same function."""

MAX_SOURCE_BYTES = 65_536
"""Longest source, as UTF-8."""

_SHORTER = "make it shorter; data can come with the samples' metadata"
_MODULE = "assay.types.thread"
_GIVE = """\
from assay.types.thread import StringThread, StringTurn

__all__ = ["StringThread", "StringTurn"]
"""
_ARGUMENT = "assay_argument"
_THREAD_OF = """\
from assay.types.thread import StringThread


def thread(payload):
    return (StringThread.from_dict(payload),)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A function grader: ``async def grade(thread: StringThread) -> float`` and what it needs.

    The source is not checked here; see `assay.graders.function.validate_function`.

    Attributes:
        text: Python source, at most `MAX_SOURCE_BYTES`. A byte order mark at its beginning is
            dropped, as Python drops that of a file.
        isolation: ``call``: every call in a process of its own, so that none sees what another
            left behind. ``batch``: one process for many calls, for functions that are slow to set
            up.
        range: Lowest and highest score it may return; any finite number by default.

    Raises:
        InputError: For another isolation, or a range that is not two finite numbers in order.
    """

    text: str
    isolation: Isolation = "call"
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.isolation not in ("call", "batch"):
            raise InputError(f"isolation {self.isolation!r} must be 'call' or 'batch'")
        object.__setattr__(self, "text", without_mark(self.text))
        if self.range is not None:
            low, high = self.range
            if not (low < high and math.isfinite(high - low)):
                raise InputError(
                    f"range {list(self.range)} must be two finite numbers, the lower one first"
                )

    @property
    def digest(self) -> str:
        """What exactly gives its scores: source, options and our own code; 16 hex digits."""
        return _digest(self.text, self.isolation, self.range)

    @property
    def worst(self) -> float:
        """The score of a submission that keeps the function from grading it."""
        return 0.0 if self.range is None else self.range[0]

    def program(self) -> Program:
        """What a worker of the sandbox loads.

        Raises:
            InputError: For a source that is too long, or whose coding line is not UTF-8's.
        """
        from assay.sandbox.functions import Program

        size = len(self.text.encode("utf-8", "surrogatepass"))
        if size > MAX_SOURCE_BYTES:
            raise InputError(
                f"the function's source has {size} bytes; limit {MAX_SOURCE_BYTES}", hint=_SHORTER
            )
        if foreign := foreign_coding(self.text):
            line, name = foreign
            raise InputError(
                f"line {line} of the function's source says that it is {name:.40}, but it is UTF-8",
                hint="save it as UTF-8 and take the coding line out",
            )
        return Program(
            source=self.text,
            modules=given_modules(),
            argument=f"{_ARGUMENT}:thread",
            provided="adaptive_harmony",
            as_written=True,
        )


@lru_cache(maxsize=64)
def _digest(text: str, isolation: str, bounds: tuple[float, float] | None) -> str:
    from assay.graders.digest import grader_digest
    from assay.graders.spec import GraderSpec

    options: dict[str, Json] = {"source": text, "isolation": isolation}
    if bounds is not None:
        options["range"] = list(bounds)
    return grader_digest(GraderSpec(type="function", options=options))


@lru_cache(maxsize=1)
def given_modules() -> Mapping[str, str]:
    """The modules that a function finds beside the standard library, with their source."""
    return MappingProxyType(
        {
            "adaptive_harmony": _GIVE,
            "assay": _GIVE,
            "assay.types": _GIVE,
            _MODULE: Path(thread_module.__file__).read_text("utf-8"),
            picture_module.__name__: Path(picture_module.__file__).read_text("utf-8"),
            _ARGUMENT: _THREAD_OF,
        }
    )


def read_source(file: str) -> str:
    """Read a function's file."""
    try:
        with Path(file).open("rb") as handle:
            content = handle.read(MAX_SOURCE_BYTES + len(MARK.encode()) + 1)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    content = content.removeprefix(MARK.encode())
    if len(content) > MAX_SOURCE_BYTES:
        raise InputError(f"{file} is longer than {MAX_SOURCE_BYTES} bytes", hint=_SHORTER)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{file}:{line}: not UTF-8", hint="save the file as UTF-8") from error
