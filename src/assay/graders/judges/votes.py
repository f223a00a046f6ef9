"""`PanelDecision`: how the votes of a panel make one verdict or number, and if it is believed.

A decision needs a quorum of votes, so that a panel does not quietly shrink to those who answered.

An answer that shows a pattern of attack may have captured the judge that reads it, and another one
may have in a way that no pattern shows. A canary is a question about an answer whose right reply is
known to be no: a judge that finds a made-up word in the answer is not believed. In a list of things
to be judged, one more with such a word is a probe that costs no call of its own.
"""

from __future__ import annotations

import hashlib
import math
import statistics
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TypeVar, cast

from assay.errors import ModelError
from assay.graders.judges.fence import Prompt, fenced
from assay.graders.judges.panel import Form, Judge, Opinion, Panel, Vote, Voter, together
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore

_T = TypeVar("_T")

_ROUNDING = 1e-9
_FAR_APART = 0.25
"""Scores whose range is more than this disagree."""


@dataclass(frozen=True, slots=True)
class PanelDecision(Opinion):
    """What a panel decided; without a value, too, where there is an error."""

    _: KW_ONLY
    # Share of the votes that say the same, in [0, 1]; None without votes. Where the panel
    # escalated, of the votes before.
    agreement: float | None = None
    votes: tuple[Vote, ...] = ()
    error: ModelError | None = None

    def votes_to_list(self) -> list[Json]:
        """The votes as plain JSON."""
        return [vote.to_dict() for vote in self.votes]

    def to_json(self) -> dict[str, Json]:
        """What is kept of one of several decisions."""
        kept: dict[str, Json] = {
            "verdict": self.word if self.error is None else "ERROR",
            "reason": self.reason if self.error is None else str(self.error),
            "votes": self.votes_to_list(),
            **noted(evidence=list(self.evidence)),
        }
        if self.agreement is not None and len(self.votes) > 1:
            kept["agreement"] = self.agreement
        return kept

    def child(self, name: str, weight: float = 1.0, *, passed: bool | None = None) -> SubScore:
        """The node of one of several decisions, whose evidence stands in its parent."""
        if self.error is not None:
            return SubScore.error(name, str(self.error), weight=weight)
        if self.value is None:
            return SubScore.skipped(name, self.reason, weight=weight)
        return SubScore(name, self.value, weight, reason=self.reason, passed=passed)


async def poll(
    write: Callable[[], Prompt], form: Form[Opinion], panel: Panel, *, is_fault: bool = False
) -> PanelDecision:
    """Ask a panel one question, see `run_panel`; one that is too long to be asked is an error."""
    try:
        prompt = write()
    except ModelError as error:
        return PanelDecision(error=error)

    async def judge(voter: Voter) -> Opinion:
        return await voter.ask(prompt, form)

    return await run_panel(panel, judge, is_fault=is_fault)


async def run_panel(panel: Panel, judge: Judge, *, is_fault: bool = False) -> PanelDecision:
    """Have every voter of a panel judge, and make one decision of their votes.

    ``panel``: Who is asked. Of an even number, the ``majority`` of numbers and the ``median`` lie
    in between.
    """
    voters = [Voter(panel, model, n) for model in panel.models for n in range(panel.repeats)]
    if len(voters) == 1:
        votes = [await Vote.of(voters[0], judge)]
    else:
        votes = await together(Vote.of(voter, judge) for voter in voters)
    decision = _Count(panel, votes, is_fault=is_fault).decide()
    if panel.escalate and _is_doubtful(votes):
        final = await Vote.of(Voter(panel, panel.escalate), judge)
        alone = replace(panel, models=(panel.escalate,), repeats=1, quorum=0, escalate="")
        decided = _Count(alone, [final], is_fault=is_fault).decide()
        return replace(decided, votes=(*votes, final), agreement=decision.agreement)
    return decision


async def scored_by(name: str, panel: Panel, judge: Judge) -> SubScore:
    """`run_panel` of voters that ask several questions, as one node.

    Its children and the evidence at its top are those of the vote nearest to the score; every
    vote's own evidence and calls stand under ``votes``.
    """
    decision = await run_panel(panel, judge)
    votes: list[Json] = [vote.to_dict(in_steps=True) for vote in decision.votes]
    metadata: dict[str, Json] = {"model": panel.models[0], "models": list(panel.models)}
    if decision.error is not None:
        metadata["votes"] = votes
    elif len(votes) > 1:
        metadata.update({**decision.metadata, "votes": votes, "agreement": decision.agreement})
    else:
        metadata.update({**decision.metadata, "calls": decision.votes[0].calls_to_list()})
    children = decision.children if decision.error is None else None
    return node_of(name, decision, metadata, children=children)


def node_of(
    name: str,
    decision: PanelDecision,
    metadata: Mapping[str, Json],
    *,
    children: Sequence[SubScore] | None = None,
    passed: bool | None = None,
) -> SubScore:
    """The node of a decision: an error, a skip where there is no value, or a score."""
    if (error := decision.error) is not None:
        kept = {**metadata, "_outcome": error.kind}
        return SubScore(name, status="error", reason=str(error), metadata=kept, children=children)
    return SubScore(
        name,
        decision.value,
        metadata=metadata,
        children=children,
        status="skipped" if decision.value is None else "scored",
        reason=decision.reason,
        passed=passed,
        flags=flags_of(metadata),
    )


def is_pass(value: float, threshold: float) -> bool:
    """Whether a score passes; a mean of decimals may lose a little."""
    return value >= threshold - _ROUNDING


def flags_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """What people should look at: a verdict of the offline judge is worth nothing."""
    models = metadata.get("models")
    is_fake = "fake" in (metadata.get("model"), *(models if isinstance(models, list) else ()))
    return ("fake_judge",) if is_fake else ()


class _Count:
    """The votes of a panel, and what they come to."""

    def __init__(self, panel: Panel, votes: Sequence[Vote], *, is_fault: bool) -> None:
        self._panel = panel
        self._votes = tuple(votes)
        self._opinions = [vote.opinion for vote in votes if vote.opinion is not None]
        self._worst = max if is_fault else min

    def decide(self) -> PanelDecision:
        opinions, panel = self._opinions, self._panel
        if not opinions or len(opinions) < panel.needed:
            return PanelDecision(votes=self._votes, error=self._missing())
        if len(self._votes) == 1:
            return self._decided(opinions[0])
        if panel.aggregate == "majority" and all(opinion.word for opinion in opinions):
            return self._majority()
        applied = [opinion for opinion in opinions if opinion.value is not None]
        values = [cast("float", opinion.value) for opinion in applied]
        if 2 * len(values) <= len(opinions):  # most say that it does not apply, or half of them
            other = next(opinion for opinion in opinions if opinion.value is None)
            if 2 * len(values) < len(opinions):
                return self._decided(other)
            if panel.tie != "fail":
                told = f"{len(values)} of {len(opinions)} say that it applies"
                return self._split(told, self._decided(other))
        value = self._aggregate(values)
        nearest = min(applied, key=lambda opinion: abs(cast("float", opinion.value) - value))
        word = nearest.word if nearest.value == value else ""  # between words there is none
        return self._decided(replace(nearest, word=word, value=value))

    def _aggregate(self, values: Sequence[float]) -> float:
        if self._panel.aggregate == "min":
            return self._worst(values)
        if self._panel.aggregate == "mean":
            return min(max(math.fsum(values) / len(values), min(values)), max(values))
        return statistics.median(values)  # the majority of numbers is their median

    def _majority(self) -> PanelDecision:
        """The word that most opinions have."""
        counts = Counter(opinion.word for opinion in self._opinions)
        top = max(counts.values())
        words = [word for word, count in counts.items() if count == top]
        tied = [opinion for opinion in self._opinions if opinion.word in words]
        if len(words) == 1:
            return self._decided(tied[0])
        if self._panel.tie != "fail":
            return self._split(" and ".join(f"{top} for {word}" for word in words), PanelDecision())
        # Not applicable is worth no more than the worst: else a split would be a way out.
        applied = [opinion for opinion in tied if opinion.value is not None]
        return self._decided(self._worst(applied, key=lambda one: one.value or 0.0))

    def _split(self, told: str, decision: PanelDecision) -> PanelDecision:
        """What an even split is, where it is not a failure."""
        told = f"the judges are split: {told}"
        if self._panel.tie == "error":
            return PanelDecision(votes=self._votes, error=ModelError(told, kind="unbelievable"))
        return replace(decision, word="NA", reason=told, evidence=(), votes=self._votes)

    def _decided(self, chosen: Opinion) -> PanelDecision:
        same = sum(_is_alike(opinion, chosen) for opinion in self._opinions)
        said = (getattr(chosen, field.name) for field in fields(Opinion))
        return PanelDecision(*said, agreement=same / len(self._opinions), votes=self._votes)

    def _missing(self) -> ModelError:
        failed = [(vote.model, vote.error) for vote in self._votes if vote.error is not None]
        if self._panel.asked == 1 and failed:
            return failed[0][1]
        told = "; ".join(dict.fromkeys(f"{model}: {error}" for model, error in failed))
        given, asked = len(self._opinions), len(self._votes)
        return ModelError(
            f"{given} of {asked} judges gave a verdict, and {self._panel.needed} decide: {told}",
            kind=failed[0][1].kind if failed else "unreadable",
        )


def _is_alike(one: Opinion, other: Opinion) -> bool:
    if one.word or other.word or one.value is None or other.value is None:
        return one.word == other.word and (one.word != "" or one.value == other.value)
    return abs(one.value - other.value) <= _FAR_APART


def _is_doubtful(votes: Iterable[Vote]) -> bool:
    """Whether votes disagree, or some are missing."""
    first, *others = [vote.opinion for vote in votes]
    return first is None or any(one is None or not _is_alike(one, first) for one in others)


def probe_word(text: str) -> str:
    """A word that no text holds: nobody can guess it, and it differs from process to process."""
    _, nonce = fenced("probe", text)
    return "".join(chr(ord("a") + int(digit, 16)) for digit in nonce[:8]) + "ium"


def unguessable(prompt: Prompt, *words: str) -> Prompt:
    """The prompt, with these words left out of the cache's key."""
    return replace(prompt, volatile=(*prompt.volatile, *filter(None, words)))


def captured(what: str) -> ModelError:
    """The error of a judge that a probe has found out."""
    return ModelError(
        f"the judge says of a made-up word that {what}: it cannot be trusted", kind="unbelievable"
    )


def unchecked(error: ModelError | None) -> ModelError | None:
    """The error of a judge of which a probe came to an error; None for one that is not recorded."""
    if error is None or error.kind == "not_recorded":
        return None
    told = f"could not check whether the judge can be trusted: {error}"
    return ModelError(told, kind=error.kind)


_YES = 0.5
"""From which value a reply says that the word is there."""

_WORDINGS = (
    "The {what} contains the word {word}.",
    "The word {word} stands somewhere in the {what}.",
    "Somewhere the {what} speaks of {word}.",
    "The {what} mentions {word} by name.",
    "{word} is named in the {what}.",
)
BY_THE_ANSWER = frozenset({"unreadable", "unbelievable", "refused", "truncated", "overflow"})
"""Faults that an answer can bring about: what is undecided for these speaks against it."""


async def probed(
    question: Awaitable[_T],
    write: Callable[[str], Prompt],
    form: Form[Opinion],
    panel: Panel,
    *,
    answer: str,
    asked: str,
    share: float,
    is_suspicious: bool,
    what: str = "answer",
) -> tuple[_T, PanelDecision | None, ModelError | None]:
    """Have a question asked, and beside it, of a share of answers, one whose reply must be no.

    ``write``: The prompt that asks whether something holds for the answer.
    ``asked``: What else decides on which answers the judge is probed.

    Returns: What the question came to, what was said of the made-up word, and why no verdict is
    believed.
    """
    # Whatever a picture orders, no pattern finds it.
    is_suspicious = is_suspicious or panel.is_shown_answer
    if not is_probed(answer, asked, share, is_suspicious=is_suspicious):
        return await question, None, None
    said, word = untruth(answer, what=what)
    probe = poll(lambda: unguessable(write(said), said, word), form, panel)
    both = await together([cast("Awaitable[object]", question), probe])
    found, decision = cast("_T", both[0]), cast("PanelDecision", both[1])
    return found, decision, _refuted(decision, panel, is_suspicious=is_suspicious)


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


def _refuted(probe: PanelDecision, panel: Panel, *, is_suspicious: bool) -> ModelError | None:
    """Why a judge's verdict is not believed, by what it said of a made-up word; None if it is.

    ``is_suspicious``: Whether the answer shows a pattern of attack: then any fault is one of the
    verdict's, too; else those that an answer can bring about are.
    """
    values = [probe.value]
    if panel.aggregate == "mean":
        values += [vote.opinion.value for vote in probe.votes if vote.opinion is not None]
    if any(value is not None and value >= _YES for value in values):
        return captured("the answer contains it")
    error = probe.error
    if error is not None and not is_suspicious and error.kind not in BY_THE_ANSWER:
        return None
    return unchecked(error)
