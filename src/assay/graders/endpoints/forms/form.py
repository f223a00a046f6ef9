"""`WireForm`: one wire form, said once for whoever calls an endpoint and whoever is one.

What comes in is data of a stranger, on both sides. An answer about an item is believed only if it
is well formed: a finite number in the declared range, exactly one entry for the item. Anything
else is an error of that item, never a 0. Scores keep the endpoint's own scale here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from assay.errors import GraderError, ScoreError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number, unrounded
from assay.types.codec import Problem, ShapeError
from assay.types.submission import Submission

Item: TypeAlias = tuple[str, Submission]

Asked: TypeAlias = "tuple[str, Submission | str]"
"""An item with its id, or a text that says why it is invalid."""

Span: TypeAlias = tuple[float, float]

_MOST_REASON = 2_000
"""Characters kept of a reason."""
_MOST_CODE = 100


class Server(Protocol):
    """What a form asks of the grader that it serves."""

    @property
    def on_error(self) -> str:
        """What is answered for an item without a score: ``zero`` or ``fail``."""
        ...

    def unit(self, score: float) -> float:
        """A score moved from its range to [0, 1]."""
        ...

    def read_item(self, row: Mapping[str, Json], number: int) -> Submission:
        """What a dataset row asks to have graded; raises `InputError`."""
        ...


class NotGradedError(GraderError):
    """Items of a request could not be graded, and the form has no other place to say so."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(f"not graded: {message}")
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """One wire form."""

    route: str
    title: str
    schema: Mapping[str, Json]
    encode_request: Callable[[Sequence[Item]], Json]
    # The items of a request; raises `ShapeError`. One that is malformed is an error of its own
    # where the form has a place for it.
    decode_request: Callable[[Json, Server], list[Asked]]
    # Makes the answer to a request of the outcomes, one per item and in their order; raises
    # `NotGradedError`.
    encode_answer: Callable[[Json, Sequence[Graded], Server], Json]
    decode_answer: Callable[[Sequence[Item], Json, Span], list[Graded]]
    most: int = 4_096
    single: WireForm | None = None
    info: str = ""

    def each(self) -> Iterator[WireForm]:
        """It, and its form for one item."""
        yield self
        if self.single is not None:
            yield self.single


def malformed(message: str, *path: str | int) -> ShapeError:
    """A request that has not the shape of its form, at a place."""
    return ShapeError([Problem(path, message)])


def turns_of(submission: Submission) -> list[Json]:
    """The conversation as chat messages, with the answer at its end."""
    before, answer = before_and_answer(submission)
    return [*before, *([] if answer is None else [{"role": "assistant", "content": answer}])]


def before_and_answer(submission: Submission) -> tuple[list[dict[str, Json]], str | None]:
    """What was said before the answer, as chat messages, and the answer."""
    thread, answer, said = submission.thread, submission.answer, submission.question
    if thread is None:
        return [] if said is None else [{"role": "user", "content": said}], answer
    is_last = answer is None or answer == thread.completion()
    turns = thread.messages() if is_last else thread.turns
    before: list[dict[str, Json]] = [{"role": role, "content": text} for role, text in turns]
    return before, thread.completion() if is_last else answer


def scored(
    item: str,
    score: Json,
    span: Span,
    *,
    reason: str = "",
    details: Mapping[str, Json] | None = None,
    flags: tuple[str, ...] = (),
) -> Graded:
    """An item with its score, if that is a finite number in the range."""
    low, high = span
    try:
        number = unrounded(finite_number(score, what="its score"), low, high)
    except ScoreError as error:
        return bad(item, str(error))
    if not low <= number <= high:
        return bad(item, f"its score {number:g} is not from {low:g} to {high:g}, the range")
    return Graded(
        id=item,
        status="scored",
        score=number,
        reason=reason,
        details=details or {},
        flags=flags,
        assurance="separate",
    )


def bad(item: str, message: str) -> Graded:
    """An item whose answer is malformed."""
    return Graded.failed(item, message, outcome="bad_reply")


def all_bad(items: Sequence[Item], message: str) -> list[Graded]:
    """Items whose answer is malformed as a whole."""
    return [bad(item, message) for item, _ in items]


def reason_in(data: Mapping[str, Json]) -> str:
    """The reason that data gives, bounded."""
    reason = data.get("reason")
    return cut(reason) if isinstance(reason, str) else ""


def cut(text: str, most: int = _MOST_REASON) -> str:
    """A stranger's text, bounded."""
    text = text.encode("utf-8", "replace").decode()  # half characters cannot be stored
    return text if len(text) <= most else f"{text[: most - 3]}..."


def remote_error(item: str, error: Json, evidence: dict[str, Json]) -> Graded:
    """The endpoint could not grade the item, and said why."""
    code, message = "error", error
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
    code = cut(code, _MOST_CODE) if isinstance(code, str) and code else "error"
    told = message if isinstance(message, str) and message else "no reason was given"
    return Graded(
        id=item,
        status="error",
        outcome="error",
        error=f"the endpoint could not grade it: {code}: {cut(told)}",
        details={**evidence, "error_code": code},
    )
