"""Look at a python grader's source: its size here, all else in the sandbox."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import SandboxError
from assay.graders.openai.base import wrong

if TYPE_CHECKING:
    from assay.sandbox.functions import Program

__all__ = ["MAX_SOURCE_BYTES", "Examination", "check_size", "examine_source"]

MAX_SOURCE_BYTES = 256_000
"""Size from which a source is refused."""

_EXAMINER = """\
import json

from assay.graders.openai.static import examine


def grade(source):
    print(json.dumps(examine(source)))
    return 1.0
"""
_REMEMBERED = 64
_known: OrderedDict[str, Examination] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found in a source.

    Attributes:
        fault: What is wrong, or empty.
        hint: The mend, or empty.
        foreign: Packages it imports that are not in the standard library, sorted; the first 50.
    """

    fault: str = ""
    hint: str = ""
    foreign: tuple[str, ...] = ()


def check_size(source: str) -> None:
    """Refuse a source that is too long.

    Raises:
        InputError: Saying so.
    """
    size = len(source.encode("utf-8", "surrogatepass"))
    if size >= MAX_SOURCE_BYTES:
        raise wrong("source", f"is {size:,} bytes long", f"less than {MAX_SOURCE_BYTES:,}")


async def examine_source(source: str) -> Examination:
    """Whether a source is Python that defines ``grade(sample, item)``, and what it imports.

    It is parsed in the sandbox, within the time and memory of a function's call: a source that
    takes more is refused. The latest findings are remembered.

    Raises:
        SandboxError: If the sandbox fails, or this machine has none.
    """
    found = _known.get(source)
    if found is None:
        found = _known[source] = await _examined(source)
        if len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


async def _examined(source: str) -> Examination:
    from assay.sandbox.functions import pool_for

    outcome = await pool_for(_examiner()).call(json.dumps(source).encode())
    if outcome.status == "ok":
        said = cast("dict[str, str]", json.loads(outcome.output))
        foreign = tuple(cast("list[str]", said["foreign"]))
        return Examination(fault=said["fault"], hint=said["hint"], foreign=foreign)
    # A parser does not sleep: if it ran out of real time, the machine was busy.
    if outcome.status in ("sandbox_error", "error", "bad_return", "wall_timeout"):
        raise SandboxError(f"a source could not be checked: {outcome.message}")
    fault = f"is not Python that can be read within bounds ({outcome.message or outcome.status})"
    return Examination(fault=fault, hint="write it more simply")


@lru_cache(maxsize=1)
def _examiner() -> Program:
    from assay.sandbox.functions import Program

    here = Path(__file__).parent
    parts = {name: (here / f"{name}.py").read_text("utf-8") for name in ("imports", "static")}
    modules = {f"assay.graders.openai.{name}": text for name, text in parts.items()}
    return Program(source=_EXAMINER, modules=modules)
