"""Judge work by criteria: one question for each, all at once, and one score of them together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from assay.errors import ModelError
from assay.graders.judges.criteria import Criterion, leaves, signed
from assay.graders.judges.evidence import Sought
from assay.graders.judges.fence import (
    Part,
    Prompt,
    RowText,
    Untrusted,
    asking,
    compose,
    suspicions,
)
from assay.graders.judges.gate import uncommented
from assay.graders.judges.panel import (
    TEXT,
    Form,
    Opinion,
    Panel,
    RefutedError,
    object_schema,
    together,
)
from assay.graders.judges.pictures import quotable
from assay.graders.judges.votes import BY_THE_ANSWER, PanelDecision, node_of, poll, probed
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore

__all__ = [
    "Combined",
    "Judged",
    "Material",
    "combined",
    "judge_criteria",
    "nothing_met",
    "rubric_node",
    "words_of",
    "worth_of",
]

_MET = ("MET", "UNMET")
_WORTH = {"MET": 1.0, "UNMET": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What criteria are asked about."""

    answer: str
    question: str = ""
    reference: str = ""
    more: tuple[tuple[str, str], ...] = ()

    @property
    def quotable(self) -> str:
        """What of it may be quoted as evidence: what a reader of the answer sees."""
        return uncommented(self.answer)

    def parts(self) -> list[Part]:
        """The material, with a word before each piece of what it is."""
        parts: list[Part] = []
        if self.question:
            parts += ["What was asked for:", Untrusted("question", self.question)]
        if self.reference:
            parts += [
                "An answer known to be right, to compare with; other wordings may be as right:",
                Untrusted("reference", self.reference),
            ]
        for name, text in self.more:
            parts += [f"The {name.replace('-', ' ')}:", Untrusted(name, text)]
        return [*parts, *self.said_parts()]

    def said_parts(self) -> list[Part]:
        """What of it is to be graded."""
        return ["The answer to be graded:", Untrusted("answer", self.answer)]

    def signs(self) -> tuple[str, ...]:
        """Patterns of attack in it; noted, never scored."""
        return suspicions(self.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of all criteria."""

    criteria: tuple[Criterion, ...]
    decisions: tuple[PanelDecision, ...]
    captured: ModelError | None = None
    # Patterns of attack that the answer shows; noted, never scored.
    suspicions: tuple[str, ...] = ()
    # What was said of a question whose answer is known; None where none was asked.
    probe: PanelDecision | None = None

    def to_json(self) -> dict[str, Json]:
        """What is kept beside the criteria."""
        kept = noted(injection_suspected=list(self.suspicions))
        if self.probe is not None:
            kept["probe"] = self.probe.votes_to_list()
        return kept

    def fault(self, total: Combined, min_coverage: float) -> ModelError | None:
        """Why the rubric has no score; None where enough of it was judged."""
        errors = [one.error for one in self.decisions if one.error is not None]
        if self.captured is not None or not errors:
            return self.captured
        if total.value is not None and total.coverage >= min_coverage:
            return None
        told, many = "; ".join(dict.fromkeys(map(str, errors))), len(self.decisions)
        said = told if many == 1 else f"{len(errors)} of {many} criteria were not judged: {told}"
        return ModelError(said, kind=errors[0].kind)


async def judge_criteria(
    criteria: Sequence[Criterion], material: Material, panel: Panel, *, canary: float = 0.02
) -> Judged:
    """Ask about every leaf of a rubric, side by side.

    ``canary``: Share of answers, in [0, 1], about which a question is asked whose answer is known
    to be no. Answers that show a pattern of attack are always among them.
    """
    asked, parts = list(signed(criteria)), material.parts()
    sought = Sought(quotable(material.quotable, panel.pictures))
    found = material.signs()
    decisions, probe, error = await probed(
        together(_decide(one, parts, sought, panel, is_fault=is_fault) for one, is_fault in asked),
        lambda said: _asked("criterion", parts, Criterion(requirement=said, polarity="presence")),
        verdict_form("verdict", _schema("verdict", _MET), _WORTH),
        panel,
        answer=material.answer,
        asked="\0".join(criterion.requirement for criterion, _ in asked),
        share=canary,
        is_suspicious=bool(found),
    )
    return Judged(
        criteria=tuple(criteria),
        decisions=tuple(decisions),
        captured=error,
        suspicions=found,
        probe=probe,
    )


async def _decide(
    criterion: Criterion, parts: Sequence[Part], sought: Sought, panel: Panel, *, is_fault: bool
) -> PanelDecision:
    form = _levels_form(criterion) if criterion.levels else _criterion_form(criterion, sought)
    name = "levels" if criterion.levels else "criterion"
    return await poll(lambda: _asked(name, parts, criterion), form, panel, is_fault=is_fault)


def _asked(name: str, parts: Sequence[Part], criterion: Criterion) -> Prompt:
    polarity = "presence" if criterion.is_presence else "absence"
    shown, said = asking("CRITERION", criterion.requirement)
    lines = [said, "", f"POLARITY: {polarity}"]
    if criterion.weight < 0:
        lines.append("It describes a fault: MET says that the answer has the fault.")
    if criterion.levels:
        levels = [f"{one.name}: {one.description}".rstrip(": ") for one in criterion.levels]
        if isinstance(criterion.requirement, RowText):
            shown = (*shown, "Its levels:", Untrusted("levels", "\n".join(levels)))
        else:
            lines += ["", "LEVELS:", *levels]
        lines += ["", "Say which level describes the answer best."]
    else:
        lines += ["", "Say whether the criterion holds for the answer, taken literally."]
        if criterion.allow_na:
            lines.append("NA is for a criterion whose condition does not arise here at all.")
    lines.append(
        "First the evidence: passages of the answer, copied word for word"
        + (", without which nothing can be MET;" if criterion.is_presence else "; it may be empty;")
        + " then the reasoning, in a sentence or two; then the decision."
    )
    return compose(name, [*parts, *shown], "\n".join(lines))


def worth_of(criterion: Criterion) -> Mapping[str, float]:
    """What each verdict on a criterion is worth: of its levels, or of MET and UNMET."""
    return {level.name: level.value for level in criterion.levels} or _WORTH


def words_of(criterion: Criterion) -> tuple[str, ...]:
    """The verdicts that a judge may give on a criterion."""
    words = tuple(worth_of(criterion))
    return (*words, "NA") if criterion.allow_na and "NA" not in words else words


def nothing_met(criteria: Sequence[Criterion], why: str) -> list[SubScore]:
    """The nodes of criteria that nobody is asked about, as there is nothing to be judged."""
    return [
        SubScore(one.label, 0.0, one.weight, reason=why, passed=one.weight < 0)
        for one in leaves(criteria)
    ]


def _criterion_form(criterion: Criterion, sought: Sought) -> Form[Opinion]:
    """MET or UNMET, with quotes that are looked up."""
    words = words_of(criterion)
    quoted = sought if criterion.is_presence else None
    schema = _schema("verdict", words)
    return verdict_form("verdict", schema, _WORTH, quoted, criterion.requirement)


def verdict_form(
    key: str,
    schema: Mapping[str, Json],
    worth: Mapping[str, float],
    sought: Sought | None = None,
    criterion: str = "",
) -> Form[Opinion]:
    """A word, what it is worth, and quotes; "NA" is worth nothing, and not 0.

    ``sought``: Where a quote has to stand, without which nothing is worth 1.
    """

    def read(data: Mapping[str, Json]) -> Opinion:
        word, quotes = str(data[key]), data.get("evidence")
        evidence = tuple(map(str, quotes)) if isinstance(quotes, list) else ()
        value = worth.get(word)
        if sought and value == 1.0 and (complaint := sought.complaint(evidence, criterion)):
            raise RefutedError(complaint)
        return Opinion(word, value, str(data["reasoning"]), evidence)

    return Form("level" if key == "level" else "verdict", schema, read)


def _levels_form(criterion: Criterion) -> Form[Opinion]:
    return verdict_form("level", _schema("level", words_of(criterion)), worth_of(criterion))


@lru_cache(maxsize=1_000)
def _schema(key: str, words: tuple[str, ...]) -> dict[str, Json]:
    """One object for each menu: what is compiled from it is kept by the object."""
    menu: Json = {"type": "string", "enum": list[Json](words)}
    evidence: Json = {"type": "array", "items": TEXT}
    return object_schema(**{"evidence": evidence, "reasoning": TEXT, key: menu})


def combined(criteria: Sequence[Criterion], decisions: Sequence[PanelDecision]) -> Combined:
    """The score of a rubric.

    With met values ``v`` and weights ``w`` of what applies: ``clip(sum(w v) / sum(w > 0), 0, 1)``;
    of faults alone ``clip(1 + sum(w v) / sum(|w|), 0, 1)``. A group is worth what its children are
    worth by the same formula. What is not applicable is left out, and so is what could not be
    decided for a fault of the machinery; where the answer may have brought the fault about (a judge
    that refused, or wrote what cannot be read or believed), it counts against the answer.
    """
    total = _summed(criteria, iter(decisions))
    if all(decision.error is None for decision in decisions):
        return replace(total, coverage=1.0)
    is_lost = any(
        decision.error is not None and criterion.required
        for criterion, decision in zip(leaves(criteria), decisions, strict=True)
    )
    # What is missing may weigh nothing, or next to nothing: then, too, it is not the whole.
    return replace(total, coverage=0.0 if is_lost else min(total.coverage, 1.0 - 2**-53))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """What criteria are worth together, and what that rests on."""

    value: float | None
    raw: float | None
    # What it would be if everything undecided spoke against the answer.
    low: float | None
    # What it would be if everything undecided spoke for it.
    high: float | None
    # Share of the weight that was decided, in [0, 1]; 0 where a required criterion was not.
    coverage: float
    # The required criterion that is not met, and whether one may not be.
    failed: str = ""
    may_fail: bool = False
    # Whether the answer may have brought about that it is undecided.
    is_suspect: bool = False


def _leaf(decision: PanelDecision) -> Combined:
    value, error = decision.value, decision.error
    if error is None:
        return Combined(value=value, raw=value, low=value, high=value, coverage=1.0)
    is_suspect = error.kind in BY_THE_ANSWER
    return Combined(value=None, raw=None, low=0.0, high=1.0, coverage=0.0, is_suspect=is_suspect)


def _summed(
    criteria: Sequence[Criterion], decisions: Iterator[PanelDecision], *, is_fault: bool = False
) -> Combined:
    """Add up criteria, or the parts of a fault: what is known, the least and the most."""
    known, low, high = list[_Weighed](), list[_Weighed](), list[_Weighed]()
    covered, failed, may_fail = 0.0, "", False
    for criterion in criteria:
        weight, is_against = criterion.weight, is_fault != (criterion.weight < 0)
        if criterion.children:
            one = _summed(criterion.children, decisions, is_fault=is_against)
        else:
            one = _leaf(next(decisions))
        least, most = one.low, one.high
        is_open = one.value is None and least is not None
        covered += 0.0 if is_open else abs(weight) * one.coverage
        failed, may_fail = failed or one.failed, may_fail or one.may_fail
        if least is None or most is None:  # it does not apply
            continue
        if criterion.required:
            failed = failed or (criterion.label if most < 1.0 else "")
            may_fail = may_fail or least < 1.0
        if one.value is not None or one.is_suspect:
            known.append((weight, float(is_against) if one.value is None else one.value))
        # What costs is at its worst where it is met.
        low.append((weight, least if weight > 0 else most))
        high.append((weight, most if weight > 0 else least))
    # Where nothing that earns is decided, what is known of the faults is not a score.
    is_known = any(weight > 0 for weight, _ in known) or not any(weight > 0 for weight, _ in high)
    raw, least, most = _mean(known) if is_known else None, _mean(low), _mean(high)
    if failed:
        raw, most = (None if raw is None else 0.0), (None if most is None else 0.0)
    if may_fail and least is not None:
        least = 0.0
    whole = sum(abs(criterion.weight) for criterion in criteria)
    return Combined(
        value=_clipped(raw),
        raw=raw,
        low=_clipped(least),
        high=_clipped(most),
        coverage=covered / whole if whole else 1.0,
        failed=failed,
        may_fail=may_fail,
    )


_Weighed: TypeAlias = tuple[float, float]


def _mean(weighed: Sequence[_Weighed]) -> float | None:
    total = math.fsum(weight * value for weight, value in weighed)
    if positive := sum(weight for weight, _ in weighed if weight > 0):
        return total / positive
    negative = -sum(weight for weight, _ in weighed)
    return 1.0 + total / negative if negative else None


def _clipped(value: float | None) -> float | None:
    return None if value is None else min(max(value, 0.0), 1.0)


def rubric_node(
    name: str, judged: Judged, metadata: Mapping[str, Json], *, min_coverage: float = 1.0
) -> SubScore:
    """The node of a rubric, with a child for each criterion.

    ``min_coverage``: Share of the weight, in (0, 1], that must have been judged; with less it is an
    error. Where nothing applies, it is skipped.
    """
    total = combined(judged.criteria, judged.decisions)
    pairs = list(zip(leaves(judged.criteria), judged.decisions, strict=True))
    listed: list[Json] = [
        {"criterion": one.requirement, "weight": one.weight, **decision.to_json()}
        for one, decision in pairs
    ]
    kept: dict[str, Json] = {**metadata, "criteria": listed, "raw": total.raw}
    kept.update({"coverage": total.coverage, **judged.to_json()})
    if total.coverage < 1.0:
        kept["bounds"] = [total.low, total.high]
    children = [_criterion_node(*pair) for pair in pairs]
    reason = f"required and not met: {total.failed}" if total.failed else ""
    if total.value is None:
        reason = "no criterion applies"
    error = judged.fault(total, min_coverage)
    decision = PanelDecision(value=total.value, reason=reason, error=error)
    return node_of(name, decision, kept, children=children)


def _criterion_node(criterion: Criterion, decision: PanelDecision) -> SubScore:
    """The node of one criterion; its name is its words."""
    value, weight = decision.value or 0.0, criterion.weight
    is_good = value >= 1.0 if weight >= 0 else value <= 0.0
    return decision.child(criterion.label, weight, passed=is_good)
