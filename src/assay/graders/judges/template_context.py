"""The variables of a judge's templates: one conversation, seen from many sides.

They have the names and the texts that Adaptive's judges have, so that templates move over. What
comes from a conversation, its metadata or an example is material; the criterion, the form of the
reply and the author's own variables are trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.graders.judges.base import answer_in
from assay.graders.judges.examples import Example
from assay.graders.judges.template import Rendered, render, render_fenced
from assay.scoring.json_safe import Json, plain
from assay.types.thread import StringThread

__all__ = ["MATERIAL", "conversation", "fenced_render", "output_schema", "raw_render", "variables"]

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
    """The parts of a submission as one conversation that ends with the answer.

    Args:
        answer: The answer; what ends the thread by default.
        question: What was asked, where there is no thread.
        thread: The conversation.
        metadata: What belongs to the sample; comes before the thread's own.

    Raises:
        GraderError: If there is no answer, which is not the same as an empty one.
    """
    before = [] if thread is None else [(turn[0], turn[1]) for turn in thread.messages()]
    answer = answer_in(answer, thread)
    if thread is None and question:
        before = [("user", question)]
    beside = {**(thread.metadata if thread is not None else {}), **(metadata or {})}
    return StringThread([*before, ("assistant", answer)], beside)


def variables(
    thread: StringThread,
    *,
    criteria: str,
    examples: Sequence[Example] = (),
    allow_na: bool = False,
    own: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """All variables.

    Args:
        thread: A conversation that ends with the answer.
        criteria: The criterion.
        examples: What people decided about other answers.
        allow_na: Whether the judge may say that the criterion does not apply.
        own: Further variables of the author's; they come before those of the same name.
    """
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


def raw_render(template: str, given: Mapping[str, Json]) -> str:
    """A template with its variables as they are, byte for byte, for people and tests to look at.

    It is never sent: whatever an answer says would stand among the template's own words.

    Raises:
        InputError: As of `render`.
    """
    return render(template, given)


def fenced_render(
    template: str, given: Mapping[str, Json], own: Mapping[str, Json] | None = None
) -> Rendered:
    """A template as a judge gets it: the texts of `MATERIAL` in fences.

    Args:
        template: The template.
        given: What `variables` gives.
        own: The author's own variables among them; they are trusted, whatever they are called.

    Raises:
        InputError: As of `render`.
    """
    material = {name: fence for name, fence in MATERIAL.items() if name not in (own or {})}
    return render_fenced(template, given, material)
