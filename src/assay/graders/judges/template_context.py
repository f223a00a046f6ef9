"""What a judge's templates can show: one conversation seen from many sides, and examples.

The variables have the names and the texts that Adaptive's judges have, so that templates move over.
What comes from a conversation, its metadata or an example is material; the criterion, the form of
the reply and the author's own variables are trusted. Examples are answers that people decided
about; which of them a judge is shown is decided here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from assay.errors import InputError, Location, nearest
from assay.graders.judges.base import answer_in
from assay.graders.judges.fence import RowText, unescaped
from assay.graders.judges.template import Rendered, render_fenced
from assay.scoring.json_safe import Json, noted, plain
from assay.types.thread import StringThread

MAX_SHOWN = 8
"""Most examples that a judge is shown."""

_FIELDS = ("input", "output", "pass", "passes", "reasoning")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An answer, and what people decided."""

    input: tuple[tuple[str, str], ...]
    output: str
    passes: bool
    reasoning: str = ""

    @property
    def label(self) -> Literal["PASS", "FAIL"]:
        """The verdict, as judges give it."""
        return "PASS" if self.passes else "FAIL"

    def to_json(self) -> dict[str, Json]:
        """As people write it."""
        more, said = noted(reasoning=self.reasoning), _turns(self.input)
        return {"input": said, "output": self.output, "pass": self.passes, **more}


def read_examples(data: object) -> tuple[Example, ...]:
    """Read examples."""
    if data is None:
        return ()
    if not isinstance(data, list | tuple):
        raise InputError("examples: must be a list", hint="of {input, output, pass, reasoning}")
    listed = cast("Sequence[object]", data)
    return tuple(_read_example(one, f"examples[{number}]") for number, one in enumerate(listed))


def _read_example(data: object, place: str) -> Example:
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
            location=Location(field=f"{place}.{lacking[0]}"),
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

    ``answer``: What is judged. An example of this very answer would tell the verdict, and so would
    one that differs in case, spaces, punctuation or what cannot be seen.
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


MATERIAL: Mapping[str, str] = {
    "completion": "answer",
    "last_user_turn_content": "question",
    "turns": "conversation",
    "context_turns": "context",
    "context_turns_without_last_user": "context",
    "context_str": "context",
    "context_str_without_last_user": "context",
    "metadata": "metadata",
    "examples": "examples",
}
"""Variables that are material, with the names of their fences."""


def conversation(
    answer: str | None,
    question: str | None = None,
    thread: StringThread | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> StringThread:
    """The parts of a submission as one conversation that ends with the answer."""
    before = [] if thread is None else [(turn[0], turn[1]) for turn in thread.messages()]
    answer = answer_in(answer, thread)
    if thread is None and question:
        before = [("user", question)]
    beside = {**(thread.metadata if thread is not None else {}), **(metadata or {})}
    pictures = () if thread is None else thread.pictures
    return StringThread([*before, ("assistant", answer)], beside, pictures)


def variables(
    thread: StringThread,
    *,
    criteria: str,
    examples: Sequence[Example] = (),
    allow_na: bool = False,
    own: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """All variables."""
    turns = [(turn[0], turn[1]) for turn in thread.turns]
    last = max((n for n, (role, _) in enumerate(turns) if role == "user"), default=-1)
    without = turns[:last] if last >= 0 else turns[:-1]
    return {
        "completion": turns[-1][1] if turns else "",
        "last_user_turn_content": turns[last][1] if last >= 0 else None,
        "turns": _turns(turns),
        "context_turns": _turns(turns[:-1]),
        "context_turns_without_last_user": _turns(without),
        "context_str": _joined(turns[:-1]),
        "context_str_without_last_user": _joined(without),
        "metadata": plain(thread.metadata),
        "output_schema": output_schema(allow_na=allow_na),
        "criteria": criteria,
        "examples": [_example(number, one) for number, one in enumerate(examples, 1)],
        "template_variables": dict(own or {}),
        **(own or {}),
    }


def _turns(turns: Sequence[tuple[str, str]]) -> list[Json]:
    return [{"role": role, "content": content} for role, content in turns]


def _joined(turns: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"[{role}]\n{content}" for role, content in turns)


def _example(number: int, example: Example) -> dict[str, Json]:
    before = example.input[:-1]
    return {
        "number": number,
        "context_str": "\n".join(f"{role}:\n{content}" for role, content in before),
        "user_question": example.input[-1][1] if example.input else "",
        "completion": example.output,
        "label": example.label,
        "reasoning": example.reasoning,
        "output_json": json.dumps(
            {"reasoning": example.reasoning, "score": example.label}, ensure_ascii=False
        ),
    }


def output_schema(*, allow_na: bool = False) -> str:
    """The form of the reply, for people and models to read."""
    na = ", or NA where the criterion does not apply at all" if allow_na else ""
    return (
        '{\n  "reasoning": str,\n  "score": str\n}\n\n'
        "reasoning: why, in a sentence or two\n"
        f"score: PASS where the criterion is met, FAIL where it is not{na}"
    )


def fenced_render(
    template: str, given: Mapping[str, Json], own: Mapping[str, Json] | None = None
) -> Rendered:
    """A template as a judge gets it: the texts of `MATERIAL` in fences."""
    material = {name: fence for name, fence in MATERIAL.items() if name not in (own or {})}
    if isinstance(given.get("criteria"), RowText):
        material["criteria"] = "criterion"
    return render_fenced(template, given, material)
