"""Canaries: a question about an answer whose right reply is known to be no.

An answer that shows a pattern of attack may have captured the judge that reads it, and another one
may have in a way that no pattern shows. A judge that finds a made-up word in it is not believed. In
a list of things to be judged, one more with such a word is a probe that costs no call of its own.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace

from assay.errors import InputError, ModelError
from assay.graders.judges.fence import fenced
from assay.graders.judges.panel import Panel
from assay.graders.judges.prompt import Prompt
from assay.graders.judges.votes import Decision

__all__ = [
    "captured",
    "check_canary",
    "is_probed",
    "probe_word",
    "refuted",
    "unguessable",
    "untruth",
]


def probe_word(text: str) -> str:
    """A word that no text holds: nobody can guess it, and it differs from process to process."""
    _, nonce = fenced("probe", text)
    return "".join(chr(ord("a") + int(digit, 16)) for digit in nonce[:8]) + "ium"


def unguessable(prompt: Prompt, word: str) -> Prompt:
    """The prompt, with the word left out of the cache's key."""
    return replace(prompt, volatile=(*prompt.volatile, word)) if word else prompt


def captured(what: str) -> ModelError:
    """The error of a judge that a probe has found out."""
    return ModelError(
        f"the judge says of a made-up word that {what}: it cannot be trusted", kind="unbelievable"
    )


_YES = 0.5
"""From which value a reply says that the word is there."""

_WORDINGS = (
    "The {what} contains the word {word}.",
    "The word {word} stands somewhere in the {what}.",
    "Somewhere the {what} speaks of {word}.",
    "The {what} mentions {word} by name.",
    "{word} is named in the {what}.",
)
_BY_THE_ANSWER = frozenset({"unreadable", "unbelievable", "refused", "truncated", "overflow"})
"""Faults of a reply that an answer can bring about."""


def check_canary(share: object) -> None:
    """Reject a share of answers that is not in [0, 1].

    Raises:
        InputError: Unless it is a number in [0, 1].
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise InputError(f"canary must be in [0, 1], got {share!r}")


def is_probed(answer: str, asked: str, share: float, *, is_suspicious: bool) -> bool:
    """Whether the judge is probed on an answer; the same answers are in every run."""
    if share <= 0 or is_suspicious:
        return share > 0
    digest = hashlib.blake2b(answer.encode("utf-8", "replace"), digest_size=8)
    digest.update(b"\0" + asked.encode("utf-8", "replace"))
    return int.from_bytes(digest.digest(), "big") / 2**64 < share


def untruth(answer: str, *, what: str = "answer") -> tuple[str, str]:
    """What is said of an answer and not true, in words that nobody can know beforehand."""
    word = probe_word(answer)
    wording = _WORDINGS[zlib.crc32(word.encode()) % len(_WORDINGS)]
    return wording.format(what=what, word=word), word


def refuted(probe: Decision, panel: Panel, *, is_suspicious: bool) -> ModelError | None:
    """Why a judge's verdict is not believed, by what it said of a made-up word; None if it is.

    Args:
        probe: What it said.
        panel: Who was asked. One captured judge moves a mean, and is enough there.
        is_suspicious: Whether the answer shows a pattern of attack: then any fault is one of the
            verdict's, too; else those that an answer can bring about are.
    """
    values = [probe.value]
    if panel.aggregate == "mean":
        values += [vote.opinion.value for vote in probe.votes if vote.opinion is not None]
    if any(value is not None and value >= _YES for value in values):
        return captured("the answer contains it")
    error = probe.error
    if error is None or error.kind == "not_recorded":
        return None
    if not is_suspicious and error.kind not in _BY_THE_ANSWER:
        return None
    told = f"could not check whether the judge can be trusted: {error}"
    return ModelError(told, kind=error.kind)
