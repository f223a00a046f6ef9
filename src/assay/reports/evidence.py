"""What a report shows of the evidence behind a score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import cast

from assay.reports.plain import first_lines, last_lines, one_line
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord

__all__ = ["Evidence", "evidence", "left_out", "tidy"]

_MAX_DEPTH = 64
_MAX_BITS = 1024


def tidy(value: object, *, depth: int = 0) -> Json:  # noqa: PLR0911 - one return per kind
    """Copy a value to plain JSON without shortening it.

    NaN and the infinities become null, lone surrogates ``?``, integers too large for most readers
    and anything that is not JSON a short text that says so.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_BITS else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return "<too deep>"
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {
            str(key).encode("utf-8", "replace").decode("utf-8"): tidy(item, depth=depth + 1)
            for key, item in entries.items()
        }
    if isinstance(value, list | tuple):
        return [tidy(item, depth=depth + 1) for item in cast("list[object]", value)]
    return f"<{type(value).__name__}>"


_FIRST = (
    "exit_code",
    "returncode",
    "timed_out",
    "passed",
    "failed",
    "total",
    "verdict",
    "reason",
    "reasons",
    "reasoning",
    "explanation",
    "error",
    "expected",
    "actual",
    "diff",
)
_OUTPUTS = ("output", "stdout", "stderr", "log")
_PARAMETERS = "_parameters"
_DIGEST = "_digest"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One recorded fact, safe to show.

    Attributes:
        label: What it is, in words.
        lines: Its text; more than one line is shown as a block.
    """

    label: str
    lines: tuple[str, ...]


def evidence(
    node: SubScore, *, lines: int = 8, width: int = 500, parameters: bool = False
) -> list[Evidence]:
    """What is known about why a node has its score: its reason, flags and metadata."""
    found: list[Evidence] = []
    if node.reason:
        found.append(Evidence("reason", tuple(first_lines(node.reason, lines, width=width))))
    if node.flags:
        flags = "\n".join(one_line(flag, width) for flag in node.flags)
        found.append(Evidence("flagged", tuple(first_lines(flags, lines, width=width))))
    metadata = node.metadata or {}
    for key in _ordered(list(metadata), parameters=parameters):
        if key == "subscores" and node.children:
            continue  # only repeats the names of the children
        if key == "reason" and metadata[key] == node.reason:
            continue
        shown = _shown(metadata[key], lines=lines, width=width, tail=key in _OUTPUTS)
        if shown:
            found.append(Evidence(_label(key), shown))
    return found


def left_out(cell: CellRecord) -> list[str]:
    """The changes of a submission that were not graded, one line each: path and reason."""
    lines: list[str] = []
    for name, what in (("dropped", ""), ("restored", "as in the source: ")):
        found = cell.notes.get(name)
        lines += [
            one_line(f"{what}{line}", 200)
            for line in (found if isinstance(found, list) else [])
            if isinstance(line, str)
        ]
    return lines


def _ordered(keys: list[str], *, parameters: bool) -> list[str]:
    first = [key for key in _FIRST if key in keys]
    outputs = [key for key in _OUTPUTS if key in keys]
    known = {*first, *outputs, _PARAMETERS, _DIGEST}
    rest = [key for key in keys if key not in known]
    last = [key for key in (_PARAMETERS, _DIGEST) if parameters and key in keys]
    return [*first, *outputs, *rest, *last]


def _shown(value: Json, *, lines: int, width: int, tail: bool) -> tuple[str, ...]:
    if value is None or value in ("", [], {}):
        return ()
    if isinstance(value, str):
        text = value
    else:
        tidied = tidy(value)
        text = json.dumps(tidied, ensure_ascii=False)
        if len(text) > 100 and isinstance(tidied, dict | list):
            text = json.dumps(tidied, ensure_ascii=False, indent=2)
    return tuple((last_lines if tail else first_lines)(text, lines, width=width))


def _label(key: str) -> str:
    return one_line(key.strip("_").replace("_", " "), 40) or "value"
