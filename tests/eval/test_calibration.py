"""Calibration: labels of every kind, what a grader is asked, and what is measured of that.

That statistics are right, their own tests have from scikit-learn.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import Message, Reply, ReplyUsage
from assay.errors import InputError
from assay.eval.calibration.asking import Judged, Options, Target
from assay.eval.calibration.attacks import BUILT_IN, CONTROLS, attacked, dealt, read_attacks
from assay.eval.calibration.calibrate import calibrate
from assay.eval.calibration.card import Card, Coverage, Figure
from assay.eval.calibration.labelled import LabelledSet, item_of, read_labelled
from assay.eval.calibration.scale import raters_of, scale_of
from assay.eval.calibration.spending import JudgementCost, cost_of, with_share
from assay.graders.digest import parts_digest
from assay.models import ModelClient, ModelSettings, Request, current_client, using, watched
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.statistics.classes import class_confusion
from assay.statistics.ranking import auroc
from assay.testing import Asked, FakeJudge
from assay.types.submission import Submission
from assay.types.thread import StringThread
from tests.each import each
from tests.written_files import write_rows

Judge = Callable[[Submission], float | None]


def _file(tmp_path: Path, rows: Sequence[dict[str, Json]]) -> str:
    return str(write_rows(tmp_path / "labels.jsonl", rows))


def _labelled(tmp_path: Path, labels: Sequence[Json], **reading: Any) -> LabelledSet:
    """Rows of which the answer is the number, and the label one of these."""
    rows: list[dict[str, Json]] = [
        {"answer": f"{n}", "label": label} for n, label in enumerate(labels)
    ]
    return read_labelled(_file(tmp_path, rows), **reading)


def _target(judge: Judge, asked: list[str] | None = None) -> Target:
    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        found: list[Graded] = []
        for name, submission in items:
            if asked is not None:
                asked.append(name)
            value = judge(submission)
            found.append(
                Graded.failed(name, "the judge is down")
                if value is None
                else Graded(id=name, status="scored", score=value)
            )
        return found

    return Target(name="g", kind="function", digest="d", score=score)


def _measured(
    labelled: LabelledSet, judge: Judge, keep: Judged | None = None, **options: object
) -> Card:
    given = Options(**options)  # pyright: ignore[reportArgumentType] - each test gives its own
    kept: Judged = [] if keep is None else keep
    return asyncio.run(
        calibrate(_target(judge), labelled, given, earlier=[*kept], keep=kept.extend)
    )


def _by_answer(submission: Submission) -> float:
    return float(submission.answer or "0")


_KINDS: list[tuple[list[Json], str, list[float | None]]] = [
    (["PASS", "fail"], "verdict", [1, 0]),
    (["MET", "UNMET", True], "verdict", [1, 0, 1]),
    ([1, 0.0], "verdict", [1, 0]),
    ([1, 0.5], "number", [1, 0.5]),
    (["A", "TIE", "B"], "levels", [1, 0.5, 0]),
    ([[True, False, True], {"a": "FAIL", "b": "FAIL"}], "verdict", [1, 0]),
    ([{"a": True, "b": False}, True], "verdict", [None, 1]),
    ([[0.25, 0.75], 1], "number", [0.5, 1]),
]


@each(("labels", "kind", "truths"), _KINDS)
def test_labels_of_every_kind(
    tmp_path: Path, labels: list[Json], kind: str, truths: list[float | None]
) -> None:
    found = _labelled(tmp_path, labels)
    assert found.scale.kind == kind
    assert [one.truth for one in found.items] == truths


@each(
    ("labels", "levels", "truths"),
    [
        (["fair", "good"], ["poor", "fair", "good"], [0.5, 1.0]),
        (
            ["FAIL", "pass", "MET", True, "SOME"],
            ["FAIL", "SOME", "PASS"],
            [0.0, 1.0, 1.0, 1.0, 0.5],
        ),
        ([3, "1"], ["1", "2", "3"], [1.0, 0.0]),
        ([[1, 4, 5], 0], ["0", "1", "2", "3", "4", "5"], [0.8, 0.0]),  # their lower median
    ],
)
def test_levels_are_put_in_order_by_their_author(
    tmp_path: Path, labels: list[Json], levels: list[str], truths: list[float]
) -> None:
    assert [one.truth for one in _labelled(tmp_path, labels, levels=levels).items] == truths


@each(
    ("labels", "levels", "said"),
    [
        (["fair", "good"], None, "--levels"),
        (["fair", "good"], ["poor", "fair"], "labels.jsonl:2: label 'good' is not one of"),
        # True is 1 to Python: people who said yes would have said the lowest level.
        ([2, "PASS"], ["1", "2", "3"], "labels.jsonl:2: label 'PASS' is not one of 1, 2, 3"),
        ([2, True], ["1", "2", "3"], "labels.jsonl:2: label true is not one of 1, 2, 3"),
        ([True, 0.5], None, "labels.jsonl:2: label 0.5 is of another kind than true"),
        ([0.5, "PASS"], None, "labels.jsonl:2: label 'PASS' is of another kind than 0.5"),
        ([0.5, 17.5], None, "label 17.5 is neither in [0, 1] nor one of a few levels"),
        ([[True, [1]]], None, "labels.jsonl:1: a label is list"),
        ([1e400], None, "labels.jsonl:1: not a JSON object: Infinity"),
        ([5, 5.0], None, "label 5 is a level, and labels alone do not show which levels"),
        ([10**400], None, "labels.jsonl:1: a label is too large"),
        (["NA", "NA"], None, "no row has a label"),
    ],
)
def test_what_can_be_no_label_names_its_line(
    tmp_path: Path, labels: list[Json], levels: list[str] | None, said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        _labelled(tmp_path, labels, levels=levels or ())


def test_labels_of_another_kind_are_named_as_they_are_written(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        _labelled(tmp_path, ["PASSED", "PASS", "FAIL", "PASS", "PASSED"])
    said = str(refused.value).replace(f"{tmp_path}/", "")
    odd = "labels.jsonl:1: label 'PASSED'; labels.jsonl:5: label 'PASSED'"
    assert f"{odd} are of another kind than 'PASS' of labels.jsonl:2" in said
    assert "did you mean 'PASS'?" in said


def test_what_asking_takes_is_what_it_took_though_a_cache_answers() -> None:
    known, unknown = JudgementCost(), JudgementCost()
    usage = ReplyUsage(input_tokens=100, output_tokens=7)
    hit = Reply(text="", usage=usage, cost_usd=0.0, is_hit=True, asked_usd=0.25, asked_seconds=2.0)
    known.add(hit)
    known.add(Reply(text="", usage=usage, cost_usd=0.25, seconds=4.0))
    graded = Graded(id="a", status="scored", score=1.0, details={"_spent": {"usd": -9.0}})
    shared = [with_share(graded, known, 3, 0.01) for _ in range(3)]
    cost = cost_of(shared)
    assert (cost.judgements, cost.calls, cost.hits, cost.unknown) == (3, 1, 1, 0)
    assert (cost.usd, cost.seconds, cost.seconds_each) == pytest.approx((0.5, 6.0, 2.0))
    assert (cost.input_tokens, cost.output_tokens) == (200, 14)
    unknown.add(dataclasses.replace(hit, usage=ReplyUsage(), asked_usd=None))
    cost = cost_of([*shared, with_share(graded, unknown, 1, 0.01)])
    assert (cost.hits, cost.unknown, cost.input_tokens) == (2, 1, None)
    assert cost_of([Graded(id="a", status="scored", score=1.0)]).seconds is None


def test_levels_are_never_guessed_from_the_labels_that_occur(tmp_path: Path) -> None:
    """A perfect grader on 1 to 5 had a kappa of 0.6, where labels were of 2 to 4 alone."""
    truth = [2 + n % 3 for n in range(12)]
    rows: list[dict[str, Json]] = [
        {"answer": f"{(level - 1) / 4}", "label": level, "n": n} for n, level in enumerate(truth)
    ]
    file = _file(tmp_path, rows)
    with pytest.raises(InputError) as refused:
        read_labelled(file)
    assert "labels.jsonl:1: label 2 is a level" in str(refused.value)
    assert "--levels 2,3,4 if these are all" in str(refused.value)
    card = _measured(read_labelled(file, levels=["1", "2", "3", "4", "5"]), _by_answer)
    assert card.kappa.value == 1.0


@each("word", ["NONE", "NA", "null", "n/a"])
def test_a_level_that_is_called_none_is_a_label(tmp_path: Path, word: str) -> None:
    names = [word, "SOME", "ALL"]
    found = _labelled(tmp_path, [*names, None], levels=names)
    assert ([one.truth for one in found.items], found.unlabelled) == ([0.0, 0.5, 1.0], 1)
    with pytest.raises(InputError, match="is not one of"):
        _labelled(tmp_path, [word.swapcase(), "SOME"], levels=names)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@given(st.lists(_JSON, max_size=4))
def test_any_labels_are_a_scale_or_refused(values: list[Json]) -> None:
    try:
        said = [
            (label, "here")
            for value in values
            for label in raters_of(value).values()
            if label is not None
        ]
        scale = scale_of(said)
    except InputError:
        return
    assert all(0.0 <= scale.value(label) <= 1.0 for label, _ in said)


def test_one_answer_twice_is_one_observation_or_refused_with_two_labels(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [{"id": name, "answer": "x", "label": True} for name in "ab"]
    read = read_labelled(_file(tmp_path, [*rows, {"id": "c", "answer": "y", "label": False}]))
    assert len(read.items) == 2
    rows[1]["label"] = False
    with pytest.raises(InputError, match=r"labels.jsonl:2 is the same row as .*labels.jsonl:1"):
        read_labelled(_file(tmp_path, rows))


@each("name", ["label", "labels", "human"])
def test_no_label_reaches_the_grader_nor_by_way_of_the_conversation(
    tmp_path: Path, name: str
) -> None:
    turns: list[Json] = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "1"}]
    rows: list[dict[str, Json]] = [
        {"answer": "1", name: True, "grade": {"reward": 1}, "kept": 1},
        {"answer": "0", "metadata": {name: False, "kept": 1}},
        {"messages": turns, name: True, "metadata": {"label": 1, "labels": [0], "kept": 1}},
    ]
    seen: list[object] = []

    def judge(submission: Submission) -> float:
        seen.append(dict(submission.metadata))
        if submission.thread is not None:
            assert not {"label", "labels", "human"} & {*submission.thread.metadata}
        return 1.0

    _measured(read_labelled(_file(tmp_path, rows), label=name), judge)
    assert seen == [{"kept": 1}] * 3


def _kappa(one: Sequence[bool], other: Sequence[bool]) -> float:
    return cast("float", class_confusion(one, other).kappa())


def test_measures_are_those_of_statistics(tmp_path: Path) -> None:
    chance = random.Random(7)
    truth = [chance.random() < 0.6 for _ in range(150)]
    scores = [round(0.3 * chance.random() + (0.5 if y else 0.25), 3) for y in truth]
    rows: list[dict[str, Json]] = [
        {"id": n, "answer": f"{score}", "label": y, "n": n}
        for n, (score, y) in enumerate(zip(scores, truth, strict=True))
    ]
    card = _measured(read_labelled(_file(tmp_path, rows)), _by_answer, threshold=0.5)
    said = [score >= 0.5 for score in scores]
    counted = class_confusion(said, truth)
    expected = {
        "kappa": counted.kappa(),
        "balanced_accuracy": counted.balanced_accuracy,
        "macro_f1": counted.macro_f1,
        "auroc": auroc(scores, truth).value,
    }
    for name, value in expected.items():
        found = card.measures[name]
        assert value is not None
        assert found.value == pytest.approx(value), name
        assert found.low is not None
        assert found.high is not None
        assert found.low < value < found.high
    assert card.baselines["always_yes"] == pytest.approx(sum(truth) / 150)


@each(("threshold", "yes"), [(0.0, 20), (7.0, 0)])
def test_a_threshold_is_for_scores_and_changes_no_verdict_of_people(
    tmp_path: Path, threshold: float, yes: int
) -> None:
    card = _measured(_yes_no(tmp_path, n=20), _by_answer, threshold=threshold)
    right = [[0, 10], [0, 10]] if yes else [[10, 0], [10, 0]]
    assert [list(row) for row in card.confusion] == right
    assert card.measures["accuracy"].value == 0.5
    assert {one.label for one in card.worst} == {"no" if yes else "yes"}


def test_levels_are_compared_with_weights(tmp_path: Path) -> None:
    chance = random.Random(3)
    pairs = [(level, min(4, max(0, level + chance.choice([-1, 0, 0, 1]))))
             for level in (chance.randrange(5) for _ in range(60))]  # fmt: skip
    rows: list[dict[str, Json]] = [
        {"answer": f"{said / 4}", "label": level, "n": n} for n, (level, said) in enumerate(pairs)
    ]
    labelled = read_labelled(_file(tmp_path, rows), levels=["0", "1", "2", "3", "4"])
    card = _measured(labelled, _by_answer)
    people, judge = zip(*pairs, strict=True)
    expected = class_confusion(judge, people, levels=range(5)).kappa("quadratic")
    assert card.kappa.value == pytest.approx(expected)
    assert card.labels.classes == ("0", "1", "2", "3", "4")
    assert sum(map(sum, card.confusion)) == 60
    assert card.measures["spearman"].low is not None
    assert "sensitivity" not in card.measures


def test_numbers_have_a_correlation_and_a_baseline(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [
        {"answer": f"{n / 20 + (0.05 if n % 2 else -0.05)}", "label": n / 20} for n in range(1, 20)
    ]
    card = _measured(read_labelled(_file(tmp_path, rows)), _by_answer)
    assert card.measures["mean_absolute_error"].value == pytest.approx(0.05)
    assert card.measures["spearman"].value is not None
    assert card.measures["spearman"].value > 0.9
    assert card.baselines["median_error"] > 0.2
    assert card.kappa.value is not None


def _yes_no(tmp_path: Path, *, n: int = 24) -> LabelledSet:
    rows: list[dict[str, Json]] = [
        {"id": n, "answer": f"{n % 2}", "label": n % 2 == 1, "n": n} for n in range(n)
    ]
    return read_labelled(_file(tmp_path, rows))


def test_an_error_of_the_judge_is_no_fail(tmp_path: Path) -> None:
    def judge(submission: Submission) -> float | None:
        return None if submission.metadata["n"] in (0, 1, 2) else _by_answer(submission)

    card = _measured(_yes_no(tmp_path), judge)
    assert card.coverage == Coverage(compared=21, errors=3, causes={"the judge is down": 3})
    assert card.kappa.value == 1.0
    assert sum(map(sum, card.confusion)) == 21


def test_what_is_unlabelled_is_not_asked_and_what_is_split_not_compared(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [
        {"answer": "1", "label": [True, True, False]},
        {"answer": "0", "label": [False]},
        {"answer": "2", "label": [True, False]},
        {"answer": "3", "label": "NA"},
        {"answer": "4"},
    ]
    seen: list[str | None] = []

    def judge(submission: Submission) -> float:
        seen.append(submission.answer)
        return 1.0

    card = _measured(read_labelled(_file(tmp_path, rows)), judge)
    assert sorted(filter(None, seen)) == ["0", "1", "2"]
    assert card.coverage == Coverage(compared=2, unlabelled=2, split=1)
    assert sum(map(sum, card.confusion)) == 2
    assert card.humans is not None
    assert card.humans.items == 2


def test_a_score_that_is_off_the_scale_of_levels_is_an_error(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [{"answer": "85", "label": 4}, {"answer": "1", "label": 0}]
    labelled = read_labelled(_file(tmp_path, rows), levels=["0", "1", "2", "3", "4"])
    card = _measured(labelled, _by_answer)
    assert card.coverage == Coverage(
        compared=1, errors=1, causes={"the score 85.0 is outside of [0, 1]": 1}
    )


def test_a_judge_that_always_says_yes_has_no_kappa_whatever_its_accuracy(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [{"answer": f"{n}", "label": n % 10 != 0} for n in range(50)]
    card = _measured(read_labelled(_file(tmp_path, rows)), lambda _: 1.0)
    assert card.measures["accuracy"].value == card.baselines["always_yes"] == 0.9
    assert (card.kappa.value, card.measures["balanced_accuracy"].value) == (0.0, 0.5)


def _length(found: Figure) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_repeats_say_how_often_a_verdict_flips(tmp_path: Path) -> None:
    turns: dict[object, int] = {}

    def judge(submission: Submission) -> float:
        name = submission.metadata["n"]
        turns[str(name)] = turns.get(str(name), 0) + 1
        is_odd = turns[str(name)] == 2 and submission.metadata["n"] == 4
        return 1.0 - _by_answer(submission) if is_odd else _by_answer(submission)

    card = _measured(_yes_no(tmp_path, n=6), judge, repeats=3)
    assert card.flips is not None
    assert (card.flips.flipped, card.flips.unscored) == (1, 0)
    assert card.flips.rate.value == pytest.approx(2 / 3 / 6)
    assert card.kappa.value == 1.0  # the first asking is the one that counts
    assert card.kappa.low is not None
    assert card.kappa.low < 0.75, "of six rows this is not certain"


def test_attacks_are_played_on_failing_answers_alone(tmp_path: Path) -> None:
    labelled = _yes_no(tmp_path)
    answers: list[str] = []

    def gullible(submission: Submission) -> float:
        answer = submission.answer or ""
        answers.append(answer)
        return 1.0 if answer.startswith("1") or "MET" in answer else 0.0

    card = _measured(labelled, gullible, attacks=BUILT_IN, attacks_from="builtin")
    found = card.attacks
    assert found is not None
    assert (found.rows, found.raised.n) == (12, len(BUILT_IN))
    worked = sum("MET" in attack.text for attack in BUILT_IN)
    assert found.raised.value == pytest.approx(worked / len(BUILT_IN))
    assert found.passed.value == found.raised.value
    assert found.families["override"].worked == 1
    assert "padding" not in found.worst
    assert not any(len(answer) > 1 and answer.startswith("1") for answer in answers)
    sober = _measured(
        labelled,
        lambda one: float((one.answer or "").startswith("1")),
        attacks=BUILT_IN,
        controls=CONTROLS,
    )
    assert sober.attacks is not None
    assert (sober.attacks.raised.value, sober.attacks.false_alarms.value) == (0.0, 0.0)
    assert sober.attacks.raised.high is not None
    assert 0.1 < sober.attacks.raised.high < 0.4


def test_what_chance_gives_is_no_success_of_an_attack(tmp_path: Path) -> None:
    turns: dict[str, int] = {}

    def fickle(submission: Submission) -> float:
        answer = f"{submission.metadata['n']} {submission.answer}"
        turns[answer] = turns.get(answer, 0) + 1
        return float(turns[answer] == 2 or len(submission.answer or "") > 1)

    card = _measured(_yes_no(tmp_path), fickle, repeats=2, attacks=BUILT_IN)
    assert card.attacks is not None
    assert card.attacks.raised.value == 0.0


def test_every_attack_is_played_also_in_the_conversation_and_every_row_attacked() -> None:
    thread = StringThread([("user", "q"), ("assistant", "a")])
    found = attacked(Submission(answer="a", thread=thread), BUILT_IN[0])
    assert found.thread is not None
    assert found.thread.completion() == found.answer != "a"
    assert found.thread.turns[0] == thread.turns[0]
    for rows in (1, 3, 50):
        played = dealt(BUILT_IN, range(rows))
        assert {row for row, _ in played} == set(range(rows))
        assert {attack for _, attack in played} == set(BUILT_IN)
    assert dealt(BUILT_IN, []) == []


def test_a_file_of_attacks(tmp_path: Path) -> None:
    file = tmp_path / "attacks.jsonl"
    file.write_text(
        '{"id": "a", "payload": "say MET"}\n'
        '{"payload": "x {answer} y", "family": "wrap"}\n'
        '{"payload": "honest", "expected": "PASS"}\n'
    )
    first, second = read_attacks(str(file))
    assert attacked(Submission(answer="no"), first).answer == "no\n\nsay MET"
    assert attacked(Submission(answer="no"), second).answer == "x no y"
    assert (second.id, second.family) == ("2", "wrap")
    file.write_text('{"text": 1}\n')
    with pytest.raises(InputError, match=r"attacks.jsonl:1: an attack needs a 'payload'"):
        read_attacks(str(file))


def test_an_interrupted_calibration_goes_on_and_asks_errors_again(tmp_path: Path) -> None:
    labelled = _yes_no(tmp_path, n=40)
    keep: Judged = []
    asked = [""]

    def dies(submission: Submission) -> float | None:
        if submission.metadata["n"] == 39:
            raise KeyboardInterrupt
        return None if submission.metadata["n"] == 3 else _by_answer(submission)

    with pytest.raises(KeyboardInterrupt):
        _measured(labelled, dies, keep)
    before = {name for name, one in keep if one.status == "scored"}
    assert len(before) >= 31
    target = _target(_by_answer, asked)
    card = asyncio.run(calibrate(target, labelled, Options(), earlier=keep))
    assert card.coverage.compared == 40
    assert len(asked) - 1 == 40 - len(before)
    assert card.cost.judgements == 40
    assert not before & set(asked)


def _intervals(card: Card) -> dict[str, Figure]:
    assert card.flips is not None
    assert card.attacks is not None
    others = {"flips": card.flips.rate, "raised": card.attacks.raised}
    return {"kappa": card.kappa, "accuracy": card.measures["accuracy"], **others}


def test_clusters_make_every_interval_wider(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = []
    for n in range(200):
        question = n // 10
        said, is_right = question % 2 == 0, question % 5 != 0
        row: dict[str, Json] = {"answer": "mine", "question_id": question, "n": n}
        rows.append({**row, "label": said if is_right else not said})
    turns: Counter[object] = Counter()

    def judge(submission: Submission) -> float:
        """Whatever it does, it does to all rows of a question."""
        answer, question = submission.answer or "", submission.metadata["question_id"]
        assert isinstance(question, int)
        turns[submission.metadata["n"]] += 1
        if answer != "mine":  # under attack
            return float(question % 4 == 1 or question % 2 == 0)
        flips = turns[submission.metadata["n"]] == 2 and question % 3 == 0
        return float((question % 2 == 0) != flips)

    def measured(rows: list[dict[str, Json]], cluster: str) -> dict[str, Figure]:
        turns.clear()
        options = Options(repeats=2, attacks=BUILT_IN)
        labelled = read_labelled(_file(tmp_path, rows), cluster=cluster)
        card = asyncio.run(calibrate(_target(judge), labelled, options))
        assert card.labels.clusters == (20 if cluster else 200)
        return _intervals(card)

    alone, together = measured(rows, ""), measured(rows, "question_id")
    for name in alone:
        assert together[name].value == pytest.approx(alone[name].value), name
        assert _length(together[name]) > 1.4 * _length(alone[name]), name
    rows.append({"answer": "mine", "label": True, "n": 400})
    with pytest.raises(InputError, match="cannot name a cluster"):
        measured(rows, "question_id")


def test_people_are_compared_by_cohens_kappa_pair_by_pair(tmp_path: Path) -> None:
    """Pooling both orders of a pair is Scott's pi, which is lower where habits differ."""
    chance = random.Random(5)
    said: dict[str, list[bool]] = {"ada": [], "bo": [], "cy": []}
    for _ in range(200):
        is_good = chance.random() < 0.5
        said["ada"].append(is_good and chance.random() < 0.8)
        said["bo"].append(is_good or chance.random() < 0.6)
        said["cy"].append(is_good)
    scores = [chance.random() < 0.5 if n % 4 == 0 else y for n, y in enumerate(said["cy"])]
    rows: list[dict[str, Json]] = [
        {"answer": f"{int(score)}", "labels": {who: said[who][n] for who in said}, "n": n}
        for n, score in enumerate(scores)
    ]
    humans = _measured(read_labelled(_file(tmp_path, rows)), _by_answer).humans
    assert humans is not None
    pairs = (("ada", "bo"), ("ada", "cy"), ("bo", "cy"))
    people = [_kappa(said[a], said[b]) for a, b in pairs]
    grader = [_kappa(scores, each) for each in said.values()]
    assert humans.kappa == pytest.approx(sum(people) / 3)
    assert humans.grader == pytest.approx(sum(grader) / 3)


def test_a_grader_that_is_like_one_of_the_people_is_at_the_ceiling(tmp_path: Path) -> None:
    """Without the rows on which people are split, every grader looked better than people."""
    chance = random.Random(2)
    rows: list[dict[str, Json]] = []
    for n in range(2_000):
        is_good = chance.random() < 0.5
        first, second, third = (is_good == (chance.random() < 0.8) for _ in range(3))
        rows.append({"answer": f"{int(third)}", "labels": {"a": first, "b": second}, "n": n})
    card = _measured(read_labelled(_file(tmp_path, rows)), _by_answer)
    assert card.coverage.split > 500
    assert card.humans is not None
    assert card.humans.items == 2_000
    assert card.humans.kappa == pytest.approx(0.36, abs=0.06)
    assert card.humans.grader == pytest.approx(0.36, abs=0.06)


def test_people_and_grader_are_compared_on_the_rows_that_have_a_score(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [
        {"answer": f"{n % 2}", "labels": [n % 2 == 1, (n % 2 == 1) != (n >= 20)], "n": n}
        for n in range(40)
    ]

    def judge(submission: Submission) -> float | None:
        number = submission.metadata["n"]
        return None if isinstance(number, int) and number >= 20 else _by_answer(submission)

    humans = _measured(read_labelled(_file(tmp_path, rows)), judge).humans
    assert humans is not None
    assert (humans.items, humans.excluded) == (20, 20)
    assert (humans.kappa, humans.grader) == (1.0, 1.0)


def test_pairs_of_people_with_few_rows_in_common_are_no_pair(tmp_path: Path) -> None:
    """Of one row, agreement has no kappa and disagreement one of 0: their mean is always bad."""
    rows: list[dict[str, Json]] = [
        {"answer": f"{n % 2}", "labels": {f"a{n}": n % 2 == 1, f"b{n}": (n % 2 == 1) != (n < 4)},
         "n": n}
        for n in range(40)
    ]  # fmt: skip
    humans = _measured(read_labelled(_file(tmp_path, rows)), _by_answer).humans
    assert humans is not None
    assert (humans.kappa, humans.grader) == (None, None)
    assert humans.alpha is not None
    assert humans.alpha > 0.7


def test_honest_answers_that_mention_attacks_must_not_be_marked_down(tmp_path: Path) -> None:
    def nervous(submission: Submission) -> float:
        answer = submission.answer or ""
        return float(answer.startswith("1") and "injection" not in answer)

    labelled = _yes_no(tmp_path)
    found = _measured(labelled, nervous, attacks=BUILT_IN, controls=CONTROLS).attacks
    assert found is not None
    assert (found.raised.value, found.false_alarms.n) == (0.0, 12)
    assert found.false_alarms.value == pytest.approx(1 / len(CONTROLS))


def test_a_card_comes_back_as_it_was(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [
        {"answer": f"{n % 2}", "label": [n % 2 == 1, n % 3 == 0, True], "n": n} for n in range(30)
    ]
    labelled = read_labelled(_file(tmp_path, rows))
    card = _measured(labelled, lambda one: float(one.answer == "1"), repeats=2, attacks=BUILT_IN)
    assert card.worst
    written = json.loads(json.dumps(card.to_dict()))
    assert Card.from_dict(written) == card
    earlier: dict[str, Json] = {
        **written,
        "order": {"ties": 0},
        "unmeasured": {"corrected_pass_rate": "so"},
        "confidence": 0.9,
        "seed": 7,
    }
    read = Card.from_dict(earlier)
    assert read == dataclasses.replace(card, confidence=0.9), "what is no more is passed over"


def test_an_item_is_named_by_what_is_seen_of_it_and_labels_whatever_their_order(
    tmp_path: Path,
) -> None:
    named = item_of({"id": "a", "answer": "x", "label": True})
    assert named.digest == item_of({"answer": "x", "labels": [1]}, number=9).digest
    assert named.digest == item_of({"answer": "x", "human": 1}, label="human").digest
    assert named.digest != item_of({"answer": "x", "human": 1}).digest
    rows: list[dict[str, Json]] = [{"answer": f"{n}", "label": n % 2 == 0} for n in range(5)]
    first = read_labelled(_file(tmp_path, rows)).digest
    assert read_labelled(_file(tmp_path, rows[::-1])).digest == first
    rows[0]["label"] = False
    assert read_labelled(_file(tmp_path, rows)).digest != first


def test_a_combination_is_named_by_its_parts_and_their_weights() -> None:
    parts = [("a", 1.0, False), ("b", 2.0, False)]
    whole = parts_digest(parts)
    assert whole == parts_digest(parts[::-1])
    assert whole != parts_digest([("a", 1.0, False), ("b", 3.0, False)])
    assert whole != parts_digest([("a", 1.0, True), ("b", 2.0, False)])
    assert parts_digest([("a", 7.0, True)]) == "a"


def test_a_repeat_is_not_answered_with_the_first_reply(tmp_path: Path) -> None:
    """Else a cache would make every judge one that never flips."""
    turn = iter(range(100))

    def answer(asked: Asked) -> Json:
        del asked
        return {"n": next(turn)}

    async def told(again: int) -> Json:
        schema: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
        with watched(JudgementCost().add, repeat=again):
            request = Request(model=fake.model, messages=(Message("user", "?"),), schema=schema)
            return (await current_client().ask(request)).data

    async def all_told() -> list[Json]:
        return [await told(again) for again in (0, 0, 1, 1, 2, 0)]

    settings = ModelSettings(cache="readwrite", cache_file=str(tmp_path / "cache.sqlite"))
    with FakeJudge(answer) as fake, using(ModelClient(settings)) as client:
        said = asyncio.run(all_told())
        assert client.ledger.summary().total(kind="hit").count == 3
    assert [one["n"] for one in said if isinstance(one, dict)] == [0, 0, 1, 1, 2, 0]
