"""The form of OpenRLHF's remote reward model: ``/get_reward``.

The trainer has no way to hear that a sample could not be graded: an error reply ends its run, and
a missing number is taken for another model's. So such a sample has the reward 0 and
``extra_logs.graded`` 0. **Watch the mean of ``graded``: below 1, some zeros are not grades.**
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from assay.graders.endpoints.forms.form import (
    Asked,
    Item,
    NotGradedError,
    Server,
    Span,
    WireForm,
    all_bad,
    before_and_answer,
    malformed,
    remote_error,
    scored,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_parameters
from assay.types.submission import Submission
from assay.types.thread import StringThread

_SCHEMA: dict[str, Json] = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "array", "items": {"type": "string"}},
        "prompts": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "array"},
    },
}

_log = logging.getLogger("assay.endpoint")

_ENDINGS = ("</s>", "<eos>", "<pad>", "<end_of_turn>", "[EOS]")
"""How models end a text, beside ``<|name|>``."""

_MOST_ENDINGS = 10_000
"""Special tokens taken off: as many as a batch is padded with."""

_MOST_BEFORE = 64
"""Characters that may stand before the prompt: special tokens that begin a text."""


def _encode_request(items: Sequence[Item]) -> Json:
    query: list[Json] = []
    prompts: list[Json] = []
    labels: list[Json] = []
    for _, submission in items:
        before, answer = before_and_answer(submission)
        text = "\n".join(str(turn["content"]) for turn in before)
        prompt = f"{text}\n" if text else ""
        query.append(prompt + (answer or ""))
        prompts.append(prompt)
        labels.append(submission.expected)
    return {"query": query, "prompts": prompts, "labels": labels}


def _decode_answer(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    if not isinstance(reply, dict):
        return all_bad(items, "the reply is not an object")
    listed = _listed(reply.get("rewards", reply.get("scores")))
    if len(listed) != len(items):
        return all_bad(items, f"the reply has {len(listed)} rewards for {len(items)} samples")
    logs = reply.get("extra_logs")
    given = logs if isinstance(logs, dict) else {}
    logged = {name: _listed(said) for name, said in given.items()}
    columns = {name: column for name, column in logged.items() if len(column) == len(items)}
    # Where it does not say of each sample whether it was graded, none was.
    marks = columns.get("graded", [0 if "graded" in logged else 1] * len(items))
    graded: list[Graded] = []
    for n, ((item, _), reward) in enumerate(zip(items, listed, strict=True)):
        details = record_parameters({name: column[n] for name, column in columns.items()})
        if marks[n] != 1:
            graded.append(remote_error(item, "extra_logs.graded is not 1", details))
        else:
            graded.append(scored(item, reward, span, details=details))
    return graded


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _decode_request(body: Json, server: Server) -> list[Asked]:
    """The samples of a request, named by their places.

    A response is what follows the prompt in the query, without the special tokens at its end; the
    label is what is expected.
    """
    del server
    if not isinstance(body, dict):
        raise malformed("the body must be an object with a list 'query'")
    query = _list(body, "query")
    if query is None:
        raise malformed("a list of texts is needed", "query")
    prompts = _list(body, "prompts") or [""] * len(query)
    labels = _list(body, "labels") or [None] * len(query)
    for name, column in (("prompts", prompts), ("labels", labels)):
        if len(column) != len(query):
            raise malformed(f"{len(column)} entries for {len(query)} queries", name)
    asked: list[Asked] = []
    for number, (text, prompt, label) in enumerate(zip(query, prompts, labels, strict=True)):
        if not isinstance(text, str):
            raise malformed("must be a text", "query", number)
        if not isinstance(prompt, str | None):
            raise malformed("must be a text", "prompts", number)
        asked.append((str(number), sample(text, prompt or "", label)))
    return asked


def _list(body: dict[str, Json], name: str) -> list[Json] | None:
    value = body.get(name)
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, str):  # one sample, not in a list
        return [value]
    raise malformed("must be a list", name)


def sample(query: str, prompt: str, label: Json) -> Submission | str:
    """A sample as graders take it; or why it is none."""
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


def _encode_answer(body: Json, graded: Sequence[Graded], server: Server) -> Json:
    """``rewards`` as graded, ``scores`` moved to [0, 1]."""
    del body
    lost = [outcome for outcome in graded if outcome.score is None]
    if lost and server.on_error == "fail":
        why = lost[0].error or f"skipped: {lost[0].reason}"
        raise NotGradedError(f"sample {lost[0].id}: {why}")
    if lost:
        said = "%d of %d samples could not be graded and are answered with 0; the first: %s"
        _log.warning(said, len(lost), len(graded), lost[0].error or lost[0].reason)
    scores = [outcome.score for outcome in graded]
    return {
        "rewards": [0.0 if score is None else score for score in scores],
        "scores": [0.0 if score is None else server.unit(score) for score in scores],
        "extra_logs": {"graded": [0 if score is None else 1 for score in scores]},
    }


_ONE = WireForm(
    route="/get_reward",
    title="Rewards of samples, for OpenRLHF.",
    schema=_SCHEMA,
    encode_request=_encode_request,
    decode_request=_decode_request,
    encode_answer=_encode_answer,
    decode_answer=_decode_answer,
    most=1,
)
FORM = replace(_ONE, most=4_096, single=_ONE)
