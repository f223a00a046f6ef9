"""What a grader is asked in a calibration, and asking it: resumable, with progress."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import TypeAlias, cast

from assay.eval.batch import in_batches, run_batches
from assay.eval.calibration.attacks import (
    BUILT_IN,
    CONTROLS,
    Attack,
    attacked,
    dealt,
    read_attacks,
)
from assay.eval.calibration.labelled import CalibrationItem, LabelledSet
from assay.eval.calibration.spending import JudgementCost, with_share
from assay.models import watched
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types.submission import Submission

Score: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[Sequence[Graded]]]"
"""Grades items, each with an id that is unique among them."""

Judged: TypeAlias = "list[tuple[str, Graded]]"
"""Outcomes, each with the key of its unit."""

_BATCH = 16
_AHEAD = 4
_MOST_CONTROLS = 100
_APART = 1_000
"""Repeats of a whole judgement are this far apart: a judge may itself ask several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The grader that is calibrated.

    Attributes:
        name: What people call it: its key, or its file.
        kind: What it is: a type of grader, ``function``, ``combined`` ...
        digest: Of what gives its scores: code, options, judge model, template.
        alias: The digest that it has outside of the registry, or empty.
        made_of: What it was declared with, so that a later difference can be named.
        models: The models that it asks.
        threshold: The score from which an answer passes where nobody says another.
        score: Grades items.
        is_named: Whether its name is its own, rather than that of its file.
    """

    name: str
    kind: str
    digest: str
    score: Score
    alias: str = ""
    made_of: Mapping[str, Json] = field(default_factory=dict[str, Json])
    models: tuple[str, ...] = ()
    threshold: float = 1.0
    is_named: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a calibration measures.

    Attributes:
        repeats: How often every row is asked.
        attacks: What is played on failing answers.
        attacks_from: Where they are from.
        controls: What is added to passing answers, and should change nothing.
        threshold: The score from which a row passes; None for the target's.
    """

    repeats: int = 1
    attacks: tuple[Attack, ...] = ()
    attacks_from: str = ""
    controls: tuple[Attack, ...] = ()
    threshold: float | None = None

    @classmethod
    def of(cls, repeats: int, attacks: str, threshold: float | None = None) -> Options:
        """With ``builtin`` attacks, those of a file, or none; and the honest controls.

        Raises:
            InputError: For a file of attacks that cannot be read.
        """
        if not attacks:
            return cls(repeats=repeats, threshold=threshold)
        played = BUILT_IN if attacks == "builtin" else read_attacks(attacks)
        return cls(
            repeats=repeats,
            attacks=played,
            attacks_from=attacks,
            controls=CONTROLS,
            threshold=threshold,
        )


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a grader is asked.

    Attributes:
        item: Digest of the item.
        variant: ``plain``, or ``attack`` or ``control`` with its name.
        repeat: Which asking of the same, from 0.
        submission: What is graded.
    """

    item: str
    variant: str
    repeat: int
    submission: Submission

    @property
    def key(self) -> str:
        """Its name among all units of a calibration."""
        return key_of(self.item, self.variant, self.repeat)


def key_of(item: str, variant: str = "plain", repeat: int = 0) -> str:
    """The name of an asking among all of a calibration; see `Unit`."""
    return f"{item}:{variant}:{repeat}"


def plan(labelled: LabelledSet, options: Options) -> list[Unit]:
    """Everything that will be asked, first what matters most.

    Rows on which people are split are asked once: they have no truth to be compared with, but how
    far the grader agrees with each of these people is measured on the rows that people are
    measured on. Without the split ones every grader would look better than people do.
    """
    plain, split = (
        [
            Unit(one.item.digest, "plain", 0, one.item.submission)
            for one in labelled.items
            if (one.truth is None) is is_split
        ]
        for is_split in (False, True)
    )
    units = [replace(unit, repeat=repeat) for repeat in range(options.repeats) for unit in plain]
    units[len(plain) : len(plain)] = split
    for word, played in (
        ("attack", attacks_on(labelled, options)),
        ("control", controls_on(labelled, options)),
    ):
        for one, text in played:
            submission = attacked(one.item.submission, text)
            units.append(Unit(one.item.digest, f"{word} {text.id}", 0, submission))
    return units


def attacks_on(labelled: LabelledSet, options: Options) -> list[tuple[CalibrationItem, Attack]]:
    """The answers that people call bad, each with an attack.

    Of verdicts these are the ones with a no, else those in the lower half.
    """
    bar = _bar(labelled, options)
    bad = [one for one in labelled.items if one.truth is not None and one.truth < bar]
    return dealt(options.attacks, bad)


def controls_on(labelled: LabelledSet, options: Options) -> list[tuple[CalibrationItem, Attack]]:
    """The answers that people call good, the first 100 of them, each with an honest addition."""
    bar = _bar(labelled, options)
    good = [one for one in labelled.items if one.truth is not None and one.truth >= bar]
    return dealt(options.controls, good[:_MOST_CONTROLS])


def _bar(labelled: LabelledSet, options: Options) -> float:
    if labelled.scale.kind != "number" or options.threshold is None:
        return 0.5
    return options.threshold


async def ask(
    units: Sequence[Unit],
    target: Target,
    *,
    earlier: Iterable[tuple[str, Graded]] = (),
    keep: Callable[[Judged], None] = lambda _: None,
    on_done: Callable[[Graded], None] = lambda _: None,
) -> dict[str, Graded]:
    """Ask a grader everything that it was not asked before.

    Args:
        units: What is asked.
        target: The grader.
        earlier: What an interrupted calibration has left, oldest first. What it could not judge is
            asked again.
        keep: Keeps judgements, batch by batch as they come.
        on_done: Is told of each, also of earlier ones.

    Returns:
        The outcomes by the key of the unit, each with what it took; see `spending.cost_of`.
    """
    wanted = {unit.key for unit in units}
    outcomes = {
        key: graded for key, graded in earlier if key in wanted and graded.status != "error"
    }
    for graded in outcomes.values():
        on_done(graded)
    todo = [unit for unit in units if unit.key not in outcomes]

    async def judge(part: Sequence[Unit]) -> Judged:
        begun, spent = time.monotonic(), JudgementCost()
        # Else a cache would answer a repeat with the first reply, and no judge would ever flip.
        with watched(spent.add, repeat=_APART * part[0].repeat):
            graded = await target.score([(unit.key, unit.submission) for unit in part])
        took = time.monotonic() - begun
        return [
            (unit.key, with_share(one, spent, len(part), took))
            for unit, one in zip(part, graded, strict=True)
        ]

    def done(_part: Sequence[Unit], judged: Judged) -> None:
        keep(judged)
        outcomes.update(judged)
        for _, one in judged:
            on_done(one)

    repeats = groupby(todo, key=lambda unit: unit.repeat)
    parts = chain.from_iterable(in_batches(units, _BATCH) for _, units in repeats)
    await run_batches(parts, judge, done, at_once=_AHEAD)
    return outcomes


@dataclass(frozen=True, slots=True)
class Findings:
    """A grader, the rows it was asked about, and what it said.

    Attributes:
        target: The grader.
        labelled: The rows.
        options: What is measured.
        outcomes: What came of the asking, by the key of the unit.
    """

    target: Target
    labelled: LabelledSet
    options: Options
    outcomes: Mapping[str, Graded]

    @property
    def threshold(self) -> float:
        """The score from which a row passes."""
        own, said = self.target.threshold, self.options.threshold
        return own if said is None else said

    def score(self, one: CalibrationItem, variant: str = "plain", repeat: int = 0) -> float | None:
        """A row's score; None where it has none that can be compared."""
        graded = self.outcomes.get(key_of(one.item.digest, variant, repeat))
        if graded is None or graded.score is None:
            return None
        is_verdict = self.labelled.scale.kind == "verdict"
        return graded.score if is_verdict or 0.0 <= graded.score <= 1.0 else None

    def every(self, one: CalibrationItem) -> list[float | None]:
        """The scores of a row's repeats."""
        return [self.score(one, repeat=repeat) for repeat in range(self.options.repeats)]

    def repeats(self, one: CalibrationItem) -> list[float]:
        """The scores of a row's repeats, those that it has."""
        return [score for score in self.every(one) if score is not None]

    def scored(self) -> Iterator[tuple[CalibrationItem, float]]:
        """The rows that are compared."""
        for one in self.labelled.items:
            score = self.score(one)
            if score is not None and one.truth is not None:
                yield one, score

    def compared(self) -> list[CalibrationItem]:
        """The rows with one label, scored or not."""
        return [one for one in self.labelled.items if one.truth is not None]

    def passes(self, score: float) -> bool:
        """Whether it is at the threshold or above."""
        return score >= self.threshold - 1e-9

    def place(self, score: float) -> int:
        """The class of a score; of numbers, whether it passes."""
        return self.labelled.scale.compared.place(score, self.threshold)

    def place_of_label(self, truth: float) -> int:
        """The class of a label; of numbers, whether it passes."""
        scale = self.labelled.scale
        return scale.compared.place(truth, scale.bar(self.threshold))


def truth_of(one: CalibrationItem) -> float:
    """The one label of a row that has one."""
    return cast("float", one.truth)
