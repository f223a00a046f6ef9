"""The calibration card: what is known of how far a grader agrees with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import cast

from assay.eval.calibration.scale import ScaleKind
from assay.scoring.json_safe import Json, plain
from assay.statistics.intervals import Interval, are_clustered
from assay.types.codec import from_json


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure with its interval.

    Attributes:
        value: The measure; None where it was not measured.
        low: Lower end; None where there is no interval.
        high: Upper end.
        n: What it rests on.
        method: How the interval was made: ``wilson``, ``clusters``, ``bootstrap`` ...; empty
            where there is none.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""


def figure(found: Interval, method: str) -> Figure:
    """An interval as a figure."""
    return Figure(found.mean, found.low, found.high, found.n, "" if found.low is None else method)


def rate_figure(found: Interval, names: Sequence[str]) -> Figure:
    """A rate by `cluster_rate` as a figure that says how its interval was made."""
    return figure(found, "clusters" if are_clustered(names) else "wilson")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsUsed:
    """What it was compared with.

    Attributes:
        name: The file, or where else they are from.
        field: The field they stand in.
        digest: Of the items and their labels.
        kind: ``verdict``, ``levels`` or ``number``.
        classes: The classes, lowest first.
        rows: Rows that were read.
        raters: People who labelled.
        cluster: The field of clusters, or empty.
        clusters: How many clusters the compared rows are in.
    """

    name: str
    field: str
    digest: str
    kind: ScaleKind
    classes: tuple[str, ...]
    rows: int
    raters: int
    cluster: str = ""
    clusters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What became of the rows. Only what is compared is part of a measure.

    Attributes:
        compared: Rows with a score and a label.
        skipped: Rows with one label that the grader passed over (NA).
        errors: Rows with one label that it could not grade: never counted as a fail.
        unlabelled: Rows without a label, or with NA.
        split: Rows on which as many people said yes as said no. They are asked, for how far the
            grader agrees with single people, and part of no other measure.
        malformed: Rows that could not be read and were left out.
        causes: The commonest reasons of errors, with how often.
    """

    compared: int
    skipped: int = 0
    errors: int = 0
    unlabelled: int = 0
    split: int = 0
    malformed: int = 0
    causes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class Humans:
    """How far people agree with each other: the ceiling of any grader.

    All of it is measured on the same rows.

    Attributes:
        items: Rows that several people labelled and the grader scored.
        kappa: Cohen's kappa of every pair of people on the rows of both, and their mean.
        alpha: Krippendorff's alpha.
        grader: Cohen's kappa of the grader and every single person, and their mean.
        excluded: Rows that several people labelled, and the grader could not score.
    """

    items: int
    kappa: float | None
    alpha: float | None
    grader: float | None
    excluded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flipped:
    """What repeats say.

    Attributes:
        repeats: How often every row was asked.
        rate: The chance that two repeats of a row differ.
        flipped: Rows with more than one verdict.
        unscored: Repeats without a verdict.
    """

    repeats: int
    rate: Figure
    flipped: int
    unscored: int


@dataclass(frozen=True, slots=True)
class AttackCount:
    """How often attacks of one family worked."""

    worked: int
    played: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """What adding text to failing answers does.

    Attributes:
        source: ``builtin``, or the file of attacks.
        rows: Failing answers that were attacked.
        raised: Share of the attacks that raised the score above that of every repeat.
        passed: Share of those on an answer that failed that made it pass.
        excluded: Attacks without a score before or after: they paid nothing, and held nothing.
        families: By family.
        worst: Names of attacks that raised a score, the commonest first.
        false_alarms: Share of honest additions to good answers that lowered the score below that
            of every repeat.
    """

    source: str
    rows: int
    raised: Figure
    passed: Figure
    excluded: int
    families: Mapping[str, AttackCount] = field(default_factory=dict[str, AttackCount])
    worst: tuple[str, ...] = ()
    false_alarms: Figure = field(default_factory=Figure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What asking takes, whether or not a cache had the replies.

    A reply from the cache counts with the tokens, the price and the time that it had when it was
    asked for; so a measurement that is made again from the cache says the same.

    Attributes:
        judgements: All outcomes, with those of before an interruption.
        seconds: Time of all of them added up: that of models' replies, where models were asked.
            None where it is not known.
        seconds_each: Likewise, of one judgement.
        calls: Questions to models, with those that were asked again; 0 for a grader that asks
            none.
        hits: Replies from the cache.
        usd: US dollars, where prices are known; None where no model was asked.
        unknown: Replies of unknown price.
        input_tokens: Read; None where it is not known.
        output_tokens: Written; likewise.
    """

    judgements: int
    seconds: float | None
    seconds_each: float | None
    calls: int = 0
    hits: int = 0
    usd: float | None = None
    unknown: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    @property
    def is_of_cache(self) -> bool:
        """Whether models were asked, and the cache had every reply."""
        return bool(self.hits) and not self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A row to read: the grader and people differ.

    Attributes:
        row: Its id.
        label: What people say.
        score: What the grader says.
        verdict: The class that the score stands for.
        reason: Why, in the grader's words.
        file: ``file:line``.
        answer: What was graded, its beginning; empty on cards of earlier versions.
        question: What it answers, likewise.
        item: Digest of the item, likewise.
    """

    row: str
    label: str
    score: float
    verdict: str
    reason: str
    file: str
    answer: str = ""
    question: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a calibration found.

    Attributes:
        grader: Name or key of the grader; the stem of its file where it has none.
        kind: What it is.
        digest: Of what gives its scores; a score made by another digest is not covered.
        alias: The digest that it has outside of the registry, or empty.
        made_of: What it was declared with.
        models: The models that it asks.
        assay: Version of assay.
        labels: What it was compared with.
        coverage: What became of the rows.
        threshold: The score from which a row passes.
        confidence: How often such intervals contain the true value; a choice on earlier cards.
        measures: By name: ``kappa`` first of all, ``balanced_accuracy`` ...
        confusion: Row by row of the labels' classes, the counts of the grader's.
        baselines: What looking at nothing would get: ``always_yes``, ``majority``, ``median``.
        humans: People among each other, where several labelled.
        flips: Repeats, where there were several.
        attacks: Attacks, where asked for.
        cost: What the asking took.
        worst: The worst disagreements.
        is_named: Whether the grader has a name of its own. One without is known by its digest
            alone: other graders of its kind are called the same.
    """

    grader: str
    kind: str
    digest: str
    alias: str = ""
    made_of: Mapping[str, Json] = field(default_factory=dict[str, Json])
    models: tuple[str, ...] = ()
    assay: str = ""
    labels: LabelsUsed
    coverage: Coverage
    threshold: float
    confidence: float = 0.95
    measures: Mapping[str, Figure]
    confusion: tuple[tuple[int, ...], ...] = ()
    baselines: Mapping[str, float] = field(default_factory=dict[str, float])
    humans: Humans | None = None
    flips: Flipped | None = None
    attacks: Attacked | None = None
    cost: Cost
    worst: tuple[Disagreement, ...] = ()
    is_named: bool = True

    def says_as(self, other: Card) -> bool:
        """Whether both are of the same grader and labels, asked the same, with the same answers."""
        mine, others = (
            replace(
                one, grader="", cost=other.cost, worst=(), labels=replace(one.labels, name="")
            ).to_dict()
            for one in (self, other)
        )
        return mine == others

    @property
    def kappa(self) -> Figure:
        """Agreement beyond chance; of levels weighted by the square of the distance."""
        return self.measures.get("kappa", Figure())

    def to_dict(self) -> dict[str, Json]:
        """The card as plain JSON, with a key for every field."""
        return cast("dict[str, Json]", plain(asdict(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Card:
        """Read back what `to_dict` wrote, also of an earlier version that measured more.

        Raises:
            ShapeError: For a malformed card.
        """
        known = {each.name for each in fields(cls)}
        return from_json(cls, {name: value for name, value in data.items() if name in known})
