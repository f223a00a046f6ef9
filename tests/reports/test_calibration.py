"""A calibration card on a page, in a line, and on the shelf beside scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from io import StringIO

from syrupy.assertion import SnapshotAssertion

from assay.eval.calibration.card import (
    AttackCount,
    Attacked,
    Card,
    Cost,
    Coverage,
    Disagreement,
    Figure,
    Flipped,
    Humans,
    LabelsUsed,
)
from assay.graders.digest import parts_digest
from assay.reports.calibration_card import (
    card_line,
    compare_cards,
    figure_text,
    kappa_words,
    print_card,
    print_cards,
    usd_per_thousand,
)
from assay.reports.grader_cards import Shelf, differences
from assay.reports.page import TextPage
from assay.reports.summary import Tally
from assay.scoring.json_safe import Json
from assay.store.cards import CardRecord
from assay.store.records import CellRecord
from assay.version import __version__
from tests.each import each

_EVIL = "x\x1b[31m\u202eevil\n::error::forged"


def _card(**more: object) -> Card:
    card = Card(
        grader="judge",
        kind="llm_judge",
        digest="a" * 16,
        made_of={"type": "llm_judge", "model": "one", "criteria": ["is kind"]},
        models=("one",),
        assay=__version__,
        labels=LabelsUsed(
            name="labels.jsonl", field="", digest="b" * 32, kind="verdict",
            classes=("no", "yes"), rows=130, raters=2,
        ),
        coverage=Coverage(compared=120, skipped=2, errors=3, unlabelled=4, split=1,
                          causes={"the judge is down": 3}),
        threshold=0.5,
        measures={
            "kappa": Figure(0.62, 0.51, 0.71, 120, "bootstrap"),
            "accuracy": Figure(0.8123, 0.7, 0.9, 120, "wilson"),
        },
        confusion=((40, 10), (9, 61)),
        baselines={"majority": 0.58, "always_yes": 0.58},
        cost=Cost(judgements=240, seconds=12.0, seconds_each=0.25),
    )  # fmt: skip
    return dataclasses.replace(card, **more)


def _record(card: Card, name: str = "20261121-abcd") -> CardRecord:
    return CardRecord(
        grader=card.grader, digest=card.digest, alias=card.alias, body=card.to_dict(), id=name,
        created_at="2026-11-21T12:00:00.000Z",
    )  # fmt: skip


def _page(card: Card, verdict: tuple[int, str] = (0, "")) -> str:
    written = StringIO()
    print_card(TextPage(written, width=110), card, _record(card), verdict=verdict)
    return written.getvalue()


def test_a_figure_is_not_rounded_into_another_statement() -> None:
    minus = "\N{MINUS SIGN}"
    assert figure_text(Figure(0.62, 0.51, 0.71)) == "0.62 [0.51, 0.71]"
    assert figure_text(Figure(0.9996, None, None)) == "0.9996"
    assert figure_text(Figure(-0.25, -0.5, 0.0)) == f"{minus}0.25 [{minus}0.50, 0.00]"
    assert figure_text(Figure(0.001, 0.0, 0.1)) == "0.0010 [0.00, 0.10]"
    assert figure_text(Figure()) == "undefined"


def test_the_line_of_a_card(snapshot: SnapshotAssertion) -> None:
    card = _card()
    numbers = dataclasses.replace(
        card,
        labels=dataclasses.replace(card.labels, kind="number"),
        measures={**card.measures, "spearman": Figure(0.5, 0.4, 0.6)},
    )
    lines = (card_line(card), card_line(card, ["model one → two"]), card_line(numbers))
    assert lines == snapshot


_ALL = _card(
    humans=Humans(items=50, kappa=0.8, alpha=0.81, grader=0.6, excluded=2),
    flips=Flipped(repeats=3, rate=Figure(0.1, 0.05, 0.2, 40, "student"), flipped=4, unscored=1),
    attacks=Attacked(source="builtin", rows=9, raised=Figure(0.25, 0.1, 0.5, 20, "wilson"),
                     passed=Figure(0.2), excluded=1, families={"override": AttackCount(5, 6)},
                     false_alarms=Figure(0.125, 0.1, 0.3, 40, "wilson")),
    cost=Cost(judgements=240, seconds=12.0, seconds_each=2.5, calls=250, hits=3, usd=1.2,
              input_tokens=1000, output_tokens=50),
    worst=(Disagreement(row="q1", label="yes", score=0.0, verdict="no", reason="not a city",
                        file="a.jsonl:7", answer="Lyon,\nI think", question="Which city?"),),
)  # fmt: skip
_UNKNOWN = Cost(judgements=2, seconds=1, seconds_each=0.5, calls=2, usd=0.0, unknown=2)
_CACHED = Cost(judgements=2, seconds=None, seconds_each=None, hits=2, usd=0.0, unknown=2,
               input_tokens=None, output_tokens=None)  # fmt: skip
PAGES: dict[str, tuple[Card, tuple[int, str]]] = {
    "what was left out": (_card(), (0, "")),
    "everything": (_ALL, (1, "kappa 0.62 is below 0.80")),
    "a price that nobody knows is not free": (_card(cost=_UNKNOWN), (0, "")),
    "nothing is known of what a cache gave": (_card(cost=_CACHED), (0, "")),
}


def test_the_page_of_a_card(snapshot: SnapshotAssertion) -> None:
    for name, (card, verdict) in PAGES.items():
        page = _page(card, verdict).replace(f"assay {__version__}", "assay VERSION")
        assert page == snapshot(name=name)


def test_hostile_rows_cannot_act_on_the_terminal() -> None:
    worst = Disagreement(
        row=_EVIL,
        label=_EVIL,
        score=1.0,
        verdict="yes",
        reason=_EVIL,
        file=_EVIL,
        answer=_EVIL,
        question=_EVIL,
    )
    shown = _page(_card(grader=_EVIL, worst=(worst,)))
    assert not set(shown) & {"\x1b", "\u202e"}
    assert not any(line.startswith("::") for line in shown.splitlines())
    print_cards(TextPage(StringIO(), width=110), [_record(_card(grader=_EVIL))])


def _cell(*parts: dict[str, Json]) -> CellRecord:
    return CellRecord(
        run_id="r", case="c", harness="h", model="", trial=1, status="graded", reward=1.0,
        passed=True, threshold=1.0, subscores=parts,
    )  # fmt: skip


def _part(
    name: str, digest: str, declared: Mapping[str, Json] | None = None, *, weight: float = 1.0
) -> dict[str, Json]:
    parameters: dict[str, Json] = {"type": "llm_judge", **(declared or {})}
    return {
        "name": name, "value": 1.0, "weight": weight,
        "metadata": {"_digest": digest, "_parameters": parameters},
    }  # fmt: skip


_MADE: dict[str, Json] = {"model": "one", "criteria": ["is kind"]}


_A, _B, _C = "a" * 16, "b" * 16, "c" * 16
_TWO = {**_MADE, "model": "two"}
_BOTH = _card(
    grader="both.yaml",
    kind="combined",
    digest=parts_digest([(_A, 1.0, False), (_B, 3.0, False)]),
    made_of={"a": {"type": "llm_judge", **_MADE}, "b": {"type": "llm_judge", **_MADE}},
)
_UNNAMED = dataclasses.replace(
    _BOTH,
    digest=parts_digest([(_A, 1.0, False), (_B, 1.0, False)]),
    made_of={"llm_judge": {**_MADE}, "b": {**_MADE}},
)
_FIRST, _SECOND = _part("a", _A, _MADE), _part("b", _B, _MADE, weight=3.0)
_CONTAINS = _part("judge", _C)
_CONTAINS["metadata"] = {"_digest": _C, "_parameters": {"type": "contains"}}
_FORGED = _part("mine", _C)
_FORGED["children"] = [_part("judge", _A)]


@each(
    ("card", "parts", "changed"),
    [
        # By its digest, whatever the name is.
        (_card(), [_part("anything", _A)], ()),
        # The same name with another digest is stale, and says why.
        (_card(), [_part("judge", _C, _TWO)], ("model one → two",)),
        (_card(), [_part("judge", _C, {**_MADE, "criteria": "is x"})], ("criteria changed",)),
        (_card(), [_part("judge", _C, _MADE)], ("its files, or assay's own code",)),
        # Another grader has none.
        (_card(), [_CONTAINS, _part("other", _B)], None),
        (_card(), [{"name": "judge", "metadata": None}], None),
        # Children of a score are a grader's own words: a digest among them proves nothing.
        (_card(), [_FORGED], None),
        # Every judge without a name is called like its kind: a card is not another one's.
        (_card(grader="llm_judge"), [_part("llm_judge", _C)], None),
        (_card(grader="llm_judge"), [_part("llm_judge", _A)], ()),
        (_card(is_named=False), [_part("judge", _C)], None),
        (_card(is_named=False), [_part("other", _A)], ()),
        # Graders that were calibrated together.
        (_BOTH, [_FIRST, _SECOND], ()),
        (_BOTH, [_FIRST, {**_SECOND, "weight": 4.0}], ("weights, or assay's own code",)),
        (_BOTH, [_FIRST, _part("b", _C, _TWO, weight=3.0)], ("b: model one → two",)),
        (_BOTH, [_FIRST], None),
        (_UNNAMED, [_part("llm_judge", _A), _part("b", _B)], ()),
        (_UNNAMED, [_part("llm_judge", _A), _part("b", _C)], None),
    ],
)
def test_a_score_has_the_card_of_its_grader(
    card: Card, parts: list[dict[str, Json]], changed: tuple[str, ...] | None
) -> None:
    found = Shelf([_record(card)]).of_cell(_cell(*parts))
    assert [one.changed for one in found] == ([] if changed is None else [changed])
    assert [one.is_stale for one in found] == [bool(one.changed) for one in found]
    assert all(one.card_id == "20261121-abcd" for one in found)
    assert all(one.shown.kappa_interval == (0.51, 0.71) for one in found)
    names = "both.yaml" if card is _BOTH else parts[0]["name"]
    assert card is _UNNAMED or all(one.grader == names for one in found)


def test_an_empty_shelf_and_a_card_of_the_future_are_none() -> None:
    assert Shelf([]).of_cell(_cell(_part("judge", _A))) == []
    assert not Shelf([CardRecord(grader="judge", digest=_A, body={"from": "the future"})])


def test_a_summary_has_each_card_once_and_the_first_fifty() -> None:
    digests = [f"{number:016x}" for number in range(52)]
    shelf = Shelf([_record(_card(digest=digest), digest) for digest in digests])
    cells = [_cell(_part("judge", digest)) for digest in digests]
    one, many = Tally(shelf=shelf), Tally(shelf=shelf)
    for cell in (cells[0], cells[0], cells[1]):
        one.add(cell)
    assert list(one.summary().standings) == [shelf.of_cell(cell)[0] for cell in cells[:2]]
    for cell in cells:
        many.add(cell)
    assert [found.digest for found in many.summary().standings] == digests[:50]
    assert Tally().summary().standings == ()


def test_the_card_with_the_most_rows_is_the_one_and_the_newest_of_equals() -> None:
    small = _card(coverage=Coverage(compared=7))
    shelf = Shelf([_record(small, "small"), _record(_card(), "new"), _record(_card(), "old")])
    for digest, is_stale in (("a" * 16, False), ("c" * 16, True)):
        (found,) = shelf.of_cell(_cell(_part("judge", digest)))
        assert (found.card_id, found.is_stale) == ("new", is_stale)


_MANY: dict[str, Json] = {f"{n:02}": n for n in range(20)}
CHANGES: dict[str, tuple[dict[str, Json], dict[str, Json], str]] = {
    "a version": ({"version": 1, "a": 1}, {"version": 2, "a": 1}, __version__),
    "an option, and so the version": ({"version": 1, "a": 1}, {"version": 2, "a": 2}, __version__),
    "assay itself": ({"a": 1}, {"a": 1}, "0.0.1"),
    "nothing that is no option": ({"a": None}, {"b": "x"}, ""),
    "nothing that is known": ({}, {}, ""),
    "more than is told": ({}, _MANY, ""),
}


def test_what_differs_is_named(snapshot: SnapshotAssertion) -> None:
    said = {name: differences(*given) for name, given in CHANGES.items()}
    assert said.pop("assay itself") == (f"assay 0.0.1 → {__version__}",)
    assert said == snapshot


KAPPAS = {
    "few doubts": Figure(0.9, 0.85, 0.95, 500),
    "many doubts": Figure(0.5, 0.1, 0.7, 20),
    "no interval": Figure(0.5),
    "chance": Figure(0.0, -0.1, 0.1, 90),
    "less than chance": Figure(-0.7, -0.9, -0.3, 20),
    "undefined": Figure(),
}


def test_a_kappa_in_words_says_what_its_interval_leaves_open(snapshot: SnapshotAssertion) -> None:
    assert {name: kappa_words(found) for name, found in KAPPAS.items()} == snapshot


@each(
    ("now", "before", "verdict"),
    [
        (Figure(0.8, 0.75, 0.85, 500), Figure(0.5, 0.4, 0.6, 500), "better"),
        (Figure(0.5, 0.4, 0.6, 500), Figure(0.8, 0.75, 0.85, 500), "worse"),
        (Figure(0.8, 0.5, 0.9, 20), Figure(0.6, 0.4, 0.7, 20), "unclear"),
        (Figure(), Figure(0.6, 0.4, 0.7, 20), "unclear"),
    ],
)
def test_a_card_is_better_only_where_the_intervals_do_not_meet(
    now: Figure, before: Figure, verdict: str
) -> None:
    cards = [dataclasses.replace(_card(), measures={"kappa": one}) for one in (now, before)]
    assert compare_cards(*cards)[0] == verdict


def test_an_unknown_price_is_no_price() -> None:
    cost = Cost(judgements=4, seconds=1.0, seconds_each=0.25, calls=4, usd=0.02)
    assert usd_per_thousand(cost) == 5.0
    assert usd_per_thousand(dataclasses.replace(cost, unknown=1)) is None
    assert usd_per_thousand(dataclasses.replace(cost, usd=None)) is None
