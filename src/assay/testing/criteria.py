"""Whether an answer does what a criterion says, by the words of both."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from assay.testing.asserted import Reading, Sentence
from assay.testing.vocabulary import COPULA, GRADING
from assay.testing.words import content_stems, stem, words

__all__ = ["Finding", "judge_criterion", "key_groups"]

_GRADING = frozenset(map(stem, GRADING))
_ABSENCE = re.compile(
    r"\b(?:(?:does|do|did|is|are|was|were|must|should|shall|may|can|has|have)(?: not|n['\u2019]t)"
    r"|cannot|no (?:mention|reference|claim|sign|trace)|never|avoids?|omits?|refrains?|without|"
    r"free of|free from|leaves? out|lacks?|nowhere|contains no|includes no|makes no)\b",
    re.IGNORECASE,
)
_MENTIONING = re.compile(
    r"\b(?:mention|contain|include|use|name|refer|reveal|discuss|word|phrase|term|disclose|quote|"
    r"list|cite)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(at most|no more than|not more than|fewer than|less than|under|within|up to|at least|"
    r"more than|no fewer than)\s+(\d+|\w+)\s+(words?|sentences?|characters?|lines?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a criterion is met, why, and the sentences that show it, verbatim.

    Attributes:
        share: Of the criterion's key words, how many the answer asserts: 0 to 1.
    """

    is_met: bool
    reason: str
    quotes: tuple[str, ...] = ()
    share: float = 0.0


def judge_criterion(answer: str, criterion: str, *, question: str = "") -> Finding:
    """Judge an answer.

    A criterion is met when each of its key words is asserted by a sentence of the answer. Key words
    are those with a meaning that do not stand in the question; "X or Y" is one of them. A criterion
    of absence ("does not mention X") is met when they are not all there.

    Args:
        answer: What is judged.
        criterion: What it shall do.
        question: What it answers.
    """
    limited = _judge_limit(answer, criterion)
    if limited is not None:
        return limited
    groups = key_groups(criterion, question)
    if not groups:
        return Finding(is_met=False, reason="The criterion has no words to look for.")
    is_absence = bool(_ABSENCE.search(criterion))
    keys = {key for group in groups for key in group}
    reading = Reading(answer, set(content_stems(f"{criterion} {question}")) - keys)
    values = _values(criterion)
    mentions = is_absence and bool(_MENTIONING.search(criterion))
    found = [
        reading.mentions(group)
        if mentions
        else reading.says(group, is_one_value=bool(group & values))
        for group in groups
    ]
    return _concluded(groups, found, answer, is_absence=is_absence)


def _concluded(
    groups: list[frozenset[str]],
    found: list[Sentence | None],
    answer: str,
    *,
    is_absence: bool,
) -> Finding:
    there = [sentence for sentence in found if sentence is not None]
    share = len(there) / len(groups)
    quotes = tuple(dict.fromkeys(answer[one.start : one.end] for one in there))
    missing = [min(group) for group, one in zip(groups, found, strict=True) if one is None]
    if is_absence:
        is_met = bool(missing)
        reason = "It is not there." if is_met else f"It is there: {quotes[0][:200]}"
        return Finding(is_met, reason, () if is_met else quotes, 1.0 if is_met else 0.0)
    if missing:
        reason = f"The answer does not assert: {', '.join(missing)}"
        return Finding(is_met=False, reason=reason, share=share)
    return Finding(is_met=True, reason="The answer asserts it.", quotes=quotes, share=1.0)


def key_groups(criterion: str, question: str = "") -> list[frozenset[str]]:
    """The words a criterion hangs on, as stems; words joined by "or" are one group."""
    asked = set(content_stems(question))
    keys = [key for key in content_stems(criterion) if key not in _GRADING]
    own = [key for key in keys if key not in asked] or keys
    groups: list[set[str]] = []
    parts = words(criterion)
    for at, word in enumerate(parts):
        if word.stem not in own or any(word.stem in group for group in groups):
            continue
        is_other = any(parts[back].text.casefold() == "or" for back in range(max(0, at - 2), at))
        if is_other and groups:
            groups[-1].add(word.stem)
        else:
            groups.append({word.stem})
    return [frozenset(group) for group in groups]


def _values(criterion: str) -> frozenset[str]:
    """Words that the criterion gives as the value of something: "the capital is X"."""
    parts = words(criterion)
    return frozenset(
        word.stem for before, word in itertools.pairwise(parts) if before.text.casefold() in COPULA
    )


def _judge_limit(answer: str, criterion: str) -> Finding | None:
    """A criterion about length, such as "at most 50 words"; None for any other."""
    limit = _LIMIT.search(criterion)
    if limit is None:
        return None
    number = stem(limit[2])
    if not number.isdecimal():
        return None
    unit = limit[3].casefold().rstrip("s")
    length = {
        "word": len(words(answer)),
        "sentence": len(Reading(answer).sentences),
        "character": len(answer),
        "line": len([line for line in answer.splitlines() if line.strip()]),
    }[unit]
    bound = int(number)
    how = limit[1].casefold()
    is_met = {
        "at least": length >= bound,
        "no fewer than": length >= bound,
        "more than": length > bound,
        "fewer than": length < bound,
        "less than": length < bound,
        "under": length < bound,
    }.get(how, length <= bound)
    reason = f"It has {length} {unit}s."
    first = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    return Finding(is_met, reason, (first,) if is_met and first else (), float(is_met))
