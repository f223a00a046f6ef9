"""Examples for a judge: answers that people decided about, and which of them it is shown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from assay.errors import InputError, Location, nearest
from assay.graders.judges.fence import unescaped
from assay.scoring.json_safe import Json

__all__ = ["MAX_SHOWN", "Example", "chosen", "read_examples"]

MAX_SHOWN = 8
"""Most examples that a judge is shown."""

_FIELDS = ("input", "output", "pass", "passes", "reasoning")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An answer, and what people decided.

    Attributes:
        input: The conversation before it, as (role, content).
        output: The answer.
        passes: Whether it meets the criterion.
        reasoning: Why.
    """

    input: tuple[tuple[str, str], ...]
    output: str
    passes: bool
    reasoning: str = ""

    @property
    def label(self) -> Literal["PASS", "FAIL"]:
        """The verdict, as judges give it."""
        return "PASS" if self.passes else "FAIL"


def read_examples(data: object) -> tuple[Example, ...]:
    """Read examples.

    Args:
        data: A list of ``{"input", "output", "pass", "reasoning"}``: chat messages or the
            question alone, the answer, true or false (``passes`` is the same), and why.

    Raises:
        InputError: Naming the example and the field.
    """
    if data is None:
        return ()
    if not isinstance(data, list | tuple):
        raise InputError("examples: must be a list", hint="of {input, output, pass, reasoning}")
    listed = cast("Sequence[object]", data)
    return tuple(_example(one, f"examples[{number}]") for number, one in enumerate(listed))


def _example(data: object, place: str) -> Example:
    if isinstance(data, Example):
        return data
    if not isinstance(data, Mapping):
        raise InputError("must be a mapping", location=Location(field=place))
    given = cast("Mapping[str, Json]", data)
    passes = given.get("pass", given.get("passes"))
    lacking = [name for name in ("input", "output") if given.get(name) is None]
    if lacking or passes is None:
        lacking += [] if passes is not None else ["pass"]
        strange = next((str(key) for key in given if key not in _FIELDS), "")
        meant = f"; it has {strange!r}: {nearest(strange, lacking)}" if strange else ""
        raise InputError(
            # In the message, for a case's reader keeps that, and the place in the case.
            f"{place}: each example must contain 'input', 'output', and 'pass'",
            hint=f"missing: {', '.join(lacking)}{meant}",
        )
    if not isinstance(passes, bool):
        raise InputError("'pass' must be true or false", location=Location(field=f"{place}.pass"))
    return Example(
        input=_messages(given["input"], f"{place}.input"),
        output=_said(given["output"]),
        passes=passes,
        reasoning=_said(given.get("reasoning") or ""),
    )


def _messages(data: Json, place: str) -> tuple[tuple[str, str], ...]:
    if isinstance(data, str):
        return (("user", data),)
    if not isinstance(data, list) or not data:
        raise InputError("must be a list of messages", location=Location(field=place))
    found: list[tuple[str, str]] = []
    for number, message in enumerate(data):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(role, str) or not role:
            where = Location(field=f"{place}[{number}]")
            raise InputError("a message needs a 'role' and a 'content'", location=where)
        found.append((role, _said(message.get("content") or "")))
    return tuple(found)


def _said(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def chosen(
    examples: Sequence[Example], answer: str, most: int
) -> tuple[tuple[Example, ...], tuple[int, ...]]:
    """Which examples a judge is shown for an answer: as many passing as failing, if there are.

    Args:
        examples: All of them, the best first.
        answer: What is judged. An example of this very answer would tell the verdict, and so
            would one that differs in case, spaces, punctuation or what cannot be seen.
        most: How many, at most.

    Returns:
        Those that are shown, in their order, and the numbers, from 0, of those that are left out
        for they are the answer itself.
    """
    own = _words(answer)
    leaks = tuple(n for n, one in enumerate(examples) if _words(one.output) == own)
    left = [n for n in range(len(examples)) if n not in leaks]
    passing = [n for n in left if examples[n].passes]
    failing = [n for n in left if not examples[n].passes]
    half = most // 2
    many = min(len(passing), max(most - half, most - len(failing)))
    taken = {*passing[:many], *failing[: max(0, most - many)]}
    return tuple(examples[n] for n in sorted(taken)), leaks


def _words(text: str) -> str:
    """The letters and digits of a text, in one case; of one without any, the text."""
    text = unescaped(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _BETWEEN_WORDS.sub("", text).casefold() or text.strip()
