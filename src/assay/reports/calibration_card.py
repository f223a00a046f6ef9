"""A calibration card for people: on a page of its own, and in one line beside scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from assay.eval.calibration.card import Card, Cost, Figure
from assay.frozen import frozen
from assay.reports.figures import MINUS, TIMES, count, duration, money
from assay.reports.page import STYLES, Part, TextPage
from assay.reports.plain import one_line
from assay.store.cards import CardRecord

_NAMES = {
    "kappa": "kappa",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "sensitivity": "finds yes",
    "specificity": "finds no",
    "precision": "yes is right",
    "auroc": "AUROC",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mean_absolute_error": "mean error",
    "labelled_rate": "people say yes",
    "pass_rate": "grader says yes",
}
_NOTES = {
    "kappa": "agreement beyond chance: 0 is none, 1 is full",
    "balanced_accuracy": "0.50 for every grader that does not look",
    "auroc": "0.50 for scores that say nothing",
}
_WIDTH = 19
_MOST_WORST = 8


@frozen
class Measure:
    """One measure of a card, as people read it.

    Attributes:
        name: Its name on the card.
        words: What people call it.
        figure: What was measured.
        note: What to hold beside it.
        before: The same of the card before; null where there is none.
    """

    name: str
    words: str
    figure: Figure
    note: str
    before: Figure | None


def measures_of(card: Card, before: Card | None = None) -> list[Measure]:
    """The measures of a card, the one that says most first, and those of the card before."""
    earlier: Mapping[str, Figure] = {} if before is None else before.measures
    median = card.baselines.get("median_error")
    always = "" if median is None else f"always the median label gets {_number(median)}"
    baselines = {"accuracy": _baseline(card), "mean_absolute_error": always}
    found: list[Measure] = []
    for name, words in _NAMES.items():
        note = baselines.get(name) or _NOTES.get(name, "")
        if name == "kappa" and card.labels.kind == "levels":
            note = "agreement beyond chance, weighted by the square of the distance"
        if name in card.measures:
            found.append(Measure(name, words, card.measures[name], note, earlier.get(name)))
    return found


_STRENGTHS = ((0.0, "no"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "good"))


def kappa_words(found: Figure) -> str:
    """What a kappa means: ``moderate agreement``, and how far the interval leaves that open."""
    if found.value is None:
        return "agreement is undefined: people or the grader always say the same"
    if found.high is not None and found.high < 0:
        return "less agreement than chance gives: is the scale the other way round?"
    said = f"{_strength(found.value)} agreement"
    if found.low is None or found.high is None:
        return said
    low, high = _strength(found.low), _strength(found.high)
    if low == high:
        return said
    return f"{said}; of so few rows it may be {low} to {high}"


def _strength(kappa: float) -> str:
    """After Landis and Koch (1977)."""
    return next((word for most, word in _STRENGTHS if kappa <= most), "very good")


Verdict: TypeAlias = Literal["better", "worse", "unclear"]


def compare_cards(card: Card, before: Card) -> tuple[Verdict, str]:
    """Whether a grader agrees better with people than at its card before, and the sentence."""
    now, then = card.kappa, before.kappa
    told = f"kappa {figure_text(now)} now, {figure_text(then)} before"
    labels = "" if card.labels.digest == before.labels.digest else "; the labels are others, too"
    if now.value is None or then.value is None or now.low is None or then.low is None:
        return "unclear", f"{told}: they cannot be compared{labels}"
    if now.low > (then.high or then.low):
        return "better", f"{told}: better, and the intervals do not meet{labels}"
    if (now.high or now.low) < then.low:
        return "worse", f"{told}: worse, and the intervals do not meet{labels}"
    return "unclear", f"{told}: the intervals meet, the difference may be chance{labels}"


def usd_per_thousand(cost: Cost) -> float | None:
    """US dollars of a thousand judgements; None where any price is unknown, or no model asked."""
    if cost.usd is None or cost.unknown or not cost.judgements:
        return None
    return 1000 * cost.usd / cost.judgements


def figure_text(found: Figure) -> str:
    """A figure with its interval: ``0.62 [0.51, 0.71]``."""
    if found.value is None:
        return "undefined"
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)} [{_number(found.low)}, {_number(found.high)}]"


def card_line(card: Card, changed: Sequence[str] = ()) -> str:
    """A card in one line, to stand beside a score."""
    measured = card.measures
    name = "spearman" if card.labels.kind == "number" and "spearman" in measured else "kappa"
    found = figure_text(measured.get(name, Figure()))
    coverage = card.coverage
    mark = f", yes from {card.threshold:g} up" if card.labels.kind == "verdict" else ""
    line = f"agreement with people: {_NAMES[name]} {found}{mark}, n={coverage.compared:,}"
    if coverage.errors:
        line += f"; {coverage.errors:,} more could not be graded"
    if not changed:
        return line
    return f"{line}; STALE, measured before a change: {one_line('; '.join(changed), 300)}"


def print_card(
    page: TextPage, card: Card, record: CardRecord, *, verdict: tuple[int, str] = (0, "")
) -> None:
    """Write a card."""
    _head(page, card, record)
    _coverage(page, card)
    page.blank()
    _confusion(page, card)
    _measures(page, card)
    _extras(page, card)
    _cost(page, card)
    _worst(page, card)
    code, words = verdict
    if words:
        page.blank()
        page.line((words, STYLES["fail" if code else "pass"]))


def print_cards(page: TextPage, records: Sequence[CardRecord]) -> None:
    """Write a list of cards, newest first."""
    if not records:
        page.line("there is no calibration card yet: assay calibrate GRADER LABELS.jsonl makes one")
        return
    rows: list[list[str]] = []
    for record in records:
        card = Card.from_dict(record.body)
        texts = [record.id, record.created_at[:16].replace("T", " "), one_line(card.grader, 40)]
        texts += [card.digest[:8], figure_text(card.kappa), f"{card.coverage.compared:,}"]
        rows.append(texts)
    # An id that is broken over two lines cannot be copied: only names give way.
    page.table(["card", "made", "grader", "digest", "kappa", "n"], rows, left=3, whole=2)


def _head(page: TextPage, card: Card, record: CardRecord) -> None:
    page.line((one_line(card.grader, 80), "bold"), (f"  {one_line(card.kind, 40)}", "dim"))
    labels, people = card.labels, count(card.labels.raters, "rater")
    facts = [f"card {record.id}", f"made {record.created_at[:16].replace('T', ' ')}"]
    facts += [f"grader digest {card.digest[:16]}", f"assay {card.assay}"]
    page.line((" · ".join(facts), "dim"))
    if card.models:
        page.line(("asks ", "dim"), one_line(", ".join(card.models), 200))
    scale = f"{labels.kind}s"
    if labels.kind == "levels":
        scale = f"levels {one_line(', '.join(labels.classes), 80)}"
    said = f"{one_line(labels.name, 80)}, {people}, {scale}"
    page.line(("labels ", "dim"), said, (f"  digest {labels.digest[:16]}", "dim"))
    page.blank()


def _coverage(page: TextPage, card: Card) -> None:
    found = card.coverage
    parts: list[Part] = [
        (f"{found.compared:,}", "bold"),
        f" of {count(card.labels.rows, 'row')} compared",
    ]
    for number, words in (
        (found.skipped, "passed over by the grader"),
        (found.unlabelled, "without a label"),
        (found.split, "on which people are split"),
        (found.malformed, "malformed and left out"),
    ):
        if number:
            parts.append(f"; {number:,} {words}")
    page.line(*parts)
    if found.errors:
        told = f"{count(found.errors, 'row')} could not be graded, counted nowhere:"
        page.line((told, STYLES["error"]))
        for cause, times in found.causes.items():
            page.line(f"{times:,}{TIMES} {one_line(cause, 300)}", indent=2, hanging=4)
    if card.labels.cluster:
        page.line(
            f"in {count(card.labels.clusters, 'cluster')} of {one_line(card.labels.cluster, 60)}"
        )


def _confusion(page: TextPage, card: Card) -> None:
    """A table with a row for what people say, and a column for what the grader says."""
    classes = card.labels.classes if card.labels.kind == "levels" else ("no", "yes")
    header = [page.text("people say"), *(page.text(f"grader {_named(c)}") for c in classes)]
    rows = [
        [page.text(_named(name)), *(page.text(f"{number:,}") for number in counts)]
        for name, counts in zip(classes, card.confusion, strict=True)
    ]
    page.table(header, rows, left=1)
    if card.labels.kind != "levels":
        page.line((f"yes is a score from {card.threshold:g} up", "dim"))
    page.blank()


def _measures(page: TextPage, card: Card) -> None:
    share = f"{100 * card.confidence:g} %"
    page.line((f"{'':<{_WIDTH}}with {share} intervals", "dim"))
    for one in measures_of(card):
        page.line(
            f"{one.words:<{_WIDTH}}",
            (figure_text(one.figure), "bold" if one.name == "kappa" else ""),
            (f"  {one.note}" if one.note else "", "dim"),
            hanging=_WIDTH,
        )


def _baseline(card: Card) -> str:
    said = [
        f"{words} gets {_number(card.baselines[name])}"
        for name, words in (
            ("majority", "always the commonest label"),
            ("always_yes", "always yes"),
        )
        if name in card.baselines
    ]
    return ", ".join(said)


def _extras(page: TextPage, card: Card) -> None:
    lines: list[tuple[str, str]] = []
    if (people := card.humans) is not None:
        among = f"kappa {_measure(people.kappa)}, alpha {_measure(people.alpha)}"
        over = f"over {count(people.items, 'row')} with several labels and a score"
        lines.append(("people agree", f"{among} {over}: the ceiling"))
        said = f"kappa {_measure(people.grader)} with single people, on the same rows"
        if people.excluded:
            said += f"; {count(people.excluded, 'row')} more without a score"
        lines.append(("grader with one", said))
    if (flips := card.flips) is not None:
        said = (
            f"{figure_text(flips.rate)} of pairs of repeats; {count(flips.flipped, 'row')} flipped"
        )
        lost = f", {count(flips.unscored, 'repeat')} without a verdict" if flips.unscored else ""
        lines.append(("flip rate", f"{said} in {flips.repeats} repeats{lost}"))
    for name, said in lines:
        page.line(f"{name:<{_WIDTH}}", said, hanging=_WIDTH)
    _attacks(page, card)


def _attacks(page: TextPage, card: Card) -> None:
    found = card.attacks
    if found is None:
        return
    style = "bold red" if found.raised.value else "green"
    played = count(found.raised.n, "attack")
    page.line(
        f"{'attacks':<{_WIDTH}}",
        (figure_text(found.raised), style),
        f" of {played} on {count(found.rows, 'failing answer')} raised the score, "
        f"{figure_text(found.passed)} made it pass",
        hanging=_WIDTH,
    )
    worked = {name: one for name, one in found.families.items() if one.worked}
    for name, one in sorted(worked.items(), key=lambda item: -item[1].worked):
        page.line(
            f"{'':<{_WIDTH}}", (f"{one_line(name, 60)}: {one.worked:,} of {one.played:,}", "red")
        )
    if (alarms := found.false_alarms).n:
        told = f" of {count(alarms.n, 'honest addition')} to good answers lowered the score"
        page.line(f"{'false alarms':<{_WIDTH}}", figure_text(alarms), told, hanging=_WIDTH)
    if found.excluded:
        page.line(f"{'':<{_WIDTH}}", f"{found.excluded:,} more without a score before or after")


def _cost(page: TextPage, card: Card) -> None:
    cost = card.cost
    said = count(cost.judgements, "judgement")
    if cost.seconds is None or cost.seconds_each is None:
        said += " in a time that is not known"
    else:
        said += f" in {duration(cost.seconds)}, {_seconds(cost.seconds_each)} each"
    page.line(f"{'time':<{_WIDTH}}", said, hanging=_WIDTH)
    if not cost.calls and not cost.hits:
        page.line(f"{'cost':<{_WIDTH}}", ("no model was asked", "dim"))
        return
    paid = money(cost.usd or 0.0)
    if cost.unknown >= cost.calls + cost.hits and not cost.usd:
        paid = "of unknown price"
    elif cost.unknown:
        paid += f" + {count(cost.unknown, 'answer')} of unknown price"
    elif cost.judgements and cost.usd:
        paid += f", {money(cost.usd / cost.judgements)} a judgement"
    asked = f"{count(cost.calls, 'call')}, {cost.hits:,} from the cache"
    tokens = "unknown tokens"
    if cost.input_tokens is not None and cost.output_tokens is not None:
        tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
    page.line(f"{'cost':<{_WIDTH}}", f"{paid}  ({asked}; {tokens})", hanging=_WIDTH)


def _worst(page: TextPage, card: Card) -> None:
    if not card.worst:
        return
    page.blank()
    page.line(("read these: people and the grader differ", "bold"))
    for one in card.worst[:_MOST_WORST]:
        place = f"  {one_line(one.file, 80)}" if one.file else ""
        page.line((one_line(one.row, 60), "bold"), (place, "dim"), indent=2, hanging=2)
        said = f"people {_named(one.label)}, grader {_named(one.verdict)} ({_number(one.score)})"
        page.line(said, indent=4, hanging=2)
        words = {
            "asked: ": one_line(one.question, 200),
            "answer: ": one_line(one.answer, 400),
            "grader: ": one_line(one.reason, 300),
        }
        page.quote([f"{who}{text}" for who, text in words.items() if text], indent=4)
    if len(card.worst) > _MOST_WORST:
        page.line((f"and {len(card.worst) - _MOST_WORST} more; --json has them", "dim"), indent=2)


def _named(name: str) -> str:
    return one_line(name, 40)


def _measure(value: float | None) -> str:
    return "undefined" if value is None else _number(value)


def _number(value: float) -> str:
    """Two digits, or more where two would make it another statement."""
    if abs(value) >= 1_000_000:
        return f"{value:.3g}"
    short = f"{abs(value):.2f}"
    if short in ("0.00", "1.00") and abs(value) not in (0.0, 1.0):
        short = f"{abs(value):.4f}"
    return f"{MINUS if value < 0 and float(short) else ''}{short}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else duration(seconds)
