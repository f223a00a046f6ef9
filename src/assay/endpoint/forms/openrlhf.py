"""The form of OpenRLHF's remote reward model: ``/get_reward``.

The trainer has no way to hear that a sample could not be graded: an error reply ends its run, and
a missing number is taken for another model's. So such a sample has the reward 0 and
``extra_logs.graded`` 0. **Watch the mean of ``graded``: below 1, some zeros are not grades.**
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from assay.endpoint.problems import ProblemError
from assay.endpoint.served import Asked, Served
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types.codec import Problem
from assay.types.submission import Submission
from assay.types.thread import StringThread

__all__ = ["REQUEST", "read", "reply"]

REQUEST: dict[str, Json] = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "array", "items": {"type": "string"}},
        "prompts": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "array"},
    },
}
"""JSON Schema of a request."""

_log = logging.getLogger("assay.endpoint")

_ENDINGS = ("</s>", "<eos>", "<pad>", "<end_of_turn>", "[EOS]")
"""How models end a text, beside ``<|name|>``."""

_MOST_ENDINGS = 10_000
"""Special tokens taken off: as many as a batch is padded with."""

_MOST_BEFORE = 64
"""Characters that may stand before the prompt: special tokens that begin a text."""


def read(body: Json) -> list[Asked]:
    """The samples of a request, named by their places.

    A response is what follows the prompt in the query, without the special tokens at its end; the
    label is what is expected.

    Raises:
        ProblemError: For malformed lists, or lists of different lengths.
    """
    if not isinstance(body, dict):
        raise ProblemError(422, "the body must be an object with a list 'query'")
    query = _list(body, "query")
    if query is None:
        raise _malformed("query", "a list of texts is needed")
    prompts = _list(body, "prompts") or [""] * len(query)
    labels = _list(body, "labels") or [None] * len(query)
    for name, column in (("prompts", prompts), ("labels", labels)):
        if len(column) != len(query):
            raise _malformed(name, f"{len(column)} entries for {len(query)} queries")
    asked: list[Asked] = []
    for number, (text, prompt, label) in enumerate(zip(query, prompts, labels, strict=True)):
        if not isinstance(text, str) or not isinstance(prompt, str | None):
            raise _malformed(f"query[{number}]", "queries and prompts must be texts")
        asked.append((str(number), _submission(text, prompt or "", label)))
    return asked


def _list(body: dict[str, Json], name: str) -> list[Json] | None:
    value = body.get(name)
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, str):  # one sample, not in a list
        return [value]
    raise _malformed(name, "must be a list")


def _malformed(name: str, message: str) -> ProblemError:
    return ProblemError(422, f"{name}: {message}", errors=[Problem((name,), message)])


def _submission(query: str, prompt: str, label: Json) -> Submission | str:
    place = query.find(prompt, 0, len(prompt) + _MOST_BEFORE)
    if place < 0:
        return "the query does not begin with its prompt, so the response is not known"
    answer = _without_ending(query[place + len(prompt) :])
    turns = [("user", prompt)] if prompt else []
    return Submission(
        answer=answer,
        question=prompt or None,
        thread=StringThread([*turns, ("assistant", answer)]),
        expected=label,
    )


def _without_ending(text: str) -> str:
    """A response without the special tokens that its end was decoded with."""
    kept = len(text)
    for _ in range(_MOST_ENDINGS):
        end = kept
        while end and text[end - 1].isspace():
            end -= 1
        ending = next((e for e in _ENDINGS if text.endswith(e, 0, end)), "")
        start = text.rfind("<|", max(0, end - 40), end) if text.endswith("|>", 0, end) else -1
        if ending:
            kept = end - len(ending)
        elif start >= 0:
            kept = start
        else:
            break
    return text[:kept]


def reply(served: Served, graded: Sequence[Graded]) -> dict[str, Json]:
    """What ``POST /get_reward`` answers: ``rewards`` as graded, ``scores`` moved to [0, 1].

    Raises:
        ProblemError: 500 for a sample without a score, where the grader is served so.
    """
    lost = [outcome for outcome in graded if outcome.score is None]
    if lost and served.on_error == "fail":
        why = lost[0].error or f"skipped: {lost[0].reason}"
        raise ProblemError(500, f"not graded: sample {lost[0].id}: {why}")
    if lost:
        said = "%d of %d samples could not be graded and are answered with 0; the first: %s"
        _log.warning(said, len(lost), len(graded), lost[0].error or lost[0].reason)
    scores = [outcome.score for outcome in graded]
    return {
        "rewards": [0.0 if score is None else score for score in scores],
        "scores": [0.0 if score is None else served.unit(score) for score in scores],
        "extra_logs": {"graded": [0 if score is None else 1 for score in scores]},
    }
