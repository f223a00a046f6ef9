"""`assay calibrate`: graders of every sort, its output and exit status, cards beside scores."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from assay.eval.calibration.labelled import read_items
from assay.eval.calibration.labelling import kept_row
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.store.database import Database
from assay.store.labels import LabelRecord, Labels
from assay.testing import Asked, FakeJudge
from tests.children import Children, until
from tests.command_line import Command
from tests.each import each
from tests.grader_definitions import StoredGraders, definition
from tests.postgres import new_location
from tests.written_files import write_rows

_GRADERS = "- {type: contains, name: says, substring: 'yes'}\n"
_FUNCTION = """\
def grade(answer, metadata):
    if "label" in metadata or "labels" in metadata:
        raise RuntimeError("the label was seen")
    return 1.0 if "yes" in answer else 0.0
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("graders.yaml").write_text(_GRADERS, "utf-8")
    Path("grade.py").write_text(_FUNCTION, "utf-8")
    _labels(20)


def _labels(n: int, *, wrong: int = 2) -> None:
    rows: list[dict[str, Json]] = []
    for number in range(n):
        says = number % 2 == 1
        answer = f"{'yes' if says else 'no'} {number}"
        rows.append({"id": f"r{number}", "answer": answer, "label": says != (number < wrong)})
    write_rows("labels.jsonl", rows)


@pytest.fixture
def calibrate(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys, "calibrate", "grade", "graders", "report", "serve", "validate")


def _measure(card: dict[str, Any], name: str) -> object:
    return card["measures"][name]["value"]


def _store_grader() -> None:
    declared: dict[str, Json] = {"type": "contains", "name": "says", "substring": "yes"}
    with Database.open(os.environ["ASSAY_DB"]) as database:
        made = definition("declared", graders=(declared,))
        asyncio.run(StoredGraders(database).create("says", made))


@pytest.mark.parametrize("grader", ["graders.yaml", "grade.py:grade", "says", "says@1"])
def test_every_sort_of_grader(calibrate: Command, grader: str) -> None:
    _store_grader()
    card = calibrate.json(grader, "labels.jsonl")
    assert _measure(card, "kappa") == pytest.approx(0.8)
    assert _measure(card, "accuracy") == 0.9
    assert card["coverage"]["compared"] == 20
    assert card["confusion"] == [[9, 1], [1, 9]]


def test_the_page_says_what_was_measured_and_what_to_read(calibrate: Command) -> None:
    status, out, err = calibrate(
        "graders.yaml", "labels.jsonl", "--repeats", "2", "--attacks", "builtin"
    )
    assert status == 0
    for words in (
        "20 of 20 rows compared",
        "kappa              0.80 [",
        "always the commonest label gets 0.50, always yes gets 0.50",
        "0 rows flipped in 2 repeats",
        "of 14 attacks on 10 failing answers raised the score",
        "of 10 honest additions to good answers lowered the score",
        "no model was asked",
        "labels.jsonl:1",
        "people yes, grader no",
    ):
        assert words in out, words
    assert "64 of 64 judgements" in err


def test_the_estimate_has_to_reach_the_bar(calibrate: Command) -> None:
    words = ("graders.yaml", "labels.jsonl", "--min-kappa")
    code, out, _ = calibrate(*words, "0.8")
    assert (code, "reaches 0.80" in out) == (0, True), out
    code, out, _ = calibrate(*words, "0.81")
    assert (code, "kappa 0.80 (interval " in out, ") is below 0.81" in out) == (1, True, True), out
    Path("all.jsonl").write_text('{"answer": "yes", "label": true}\n', "utf-8")
    code, out, _ = calibrate("graders.yaml", "all.jsonl", "--min-kappa", "-1")
    assert (code, "could not be measured" in out) == (1, True), out


def test_a_grader_that_fails_on_many_rows_gets_no_verdict(calibrate: Command) -> None:
    Path("some.py").write_text(
        "def grade(answer):\n"
        "    if 'broken' in answer:\n        raise ValueError('\\x1b]0;owned\\x07')\n"
        "    return 1.0 if 'yes' in answer else 0.0\n",
        "utf-8",
    )
    rows: list[Mapping[str, Json]] = [
        {"answer": f"{word} {n}", "label": word == "yes"}
        for n in range(6)
        for word in ("yes", "no")
    ]
    rows += [{"answer": f"broken {n}", "label": True} for n in range(3)]
    write_rows("some.jsonl", rows)
    code, out, err = calibrate("some.py", "some.jsonl", "--min-kappa", "0.5")
    assert code == 3
    assert "3 of 15 labelled rows could not be graded" in out
    assert "\x1b]0;" not in out + err
    code, _, _ = calibrate("some.py", "some.jsonl")
    assert code == 0


def test_where_nothing_could_be_graded_there_is_no_card(calibrate: Command) -> None:
    Path("broken.py").write_text("def grade(answer):\n    raise ValueError('down')\n", "utf-8")
    code, out, err = calibrate("broken.py", "labels.jsonl")
    assert (code, out) == (3, "")
    assert "nothing could be compared: 20 errors" in err
    assert "20 times: ValueError: down (broken.py:2 in grade)" in err
    assert "Traceback" not in err
    assert calibrate.json("cards") == {"cards": []}
    assert "there is no calibration card yet" in calibrate("cards")[1]


def test_cards_are_kept_listed_and_shown_again(
    calibrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = calibrate.json("graders.yaml", "labels.jsonl")
    assert calibrate.json("cards", "says") == made
    assert calibrate.json("cards", str(made["id"])) == made
    (listed,) = calibrate.json("cards")["cards"]
    assert listed["id"] == made["id"]
    assert "read these" in calibrate("cards", "latest")[1]
    monkeypatch.setenv("COLUMNS", "80")
    assert str(made["id"]) in calibrate("cards")[1], "it can be copied"


def test_labels_of_the_store(calibrate: Command) -> None:
    said = {"ada": ["PASS", "FAIL"] * 10, "bo": [*["PASS", "FAIL"] * 9, "FAIL", "NA"]}
    items = list(read_items("labels.jsonl"))
    with Database.open(os.environ["ASSAY_DB"]) as database:
        for rater, labels in said.items():
            for item, label in zip(items, labels, strict=True):
                record = LabelRecord(item=item.digest, field="label", rater=rater, label=label)
                Labels(database).add("default", record, kept_row(item))
    card = calibrate.json("graders.yaml")
    assert (card["coverage"]["compared"], card["coverage"]["split"]) == (19, 1)
    assert _measure(card, "accuracy") == 0.0
    assert card["humans"]["items"] == 19


def test_malformed_rows_are_left_out_where_that_is_asked_for_and_stand_on_the_card(
    calibrate: Command,
) -> None:
    with Path("labels.jsonl").open("a") as file:
        file.write('{"id": "broken", "answer": \n')
    assert calibrate("graders.yaml", "labels.jsonl")[0] == 2
    code, out, err = calibrate("graders.yaml", "labels.jsonl", "--on-bad-row", "skip")
    assert code == 0
    assert "20 of 20 rows compared; 1 malformed and left out" in out
    assert "left out: labels.jsonl:21" in err
    card = calibrate.json("graders.yaml", "labels.jsonl", "--on-bad-row=skip")
    assert card["coverage"]["malformed"] == 1


def _graded(calibrate: Command, *more: str, by: str = "graders.yaml") -> str:
    return " ".join(calibrate("grade", "labels.jsonl", by, *more)[1].split())


def test_a_card_stands_beside_every_score_of_the_grader_that_it_measured(
    calibrate: Command,
) -> None:
    assert "Calibrated" not in _graded(calibrate)
    made = calibrate.json("graders.yaml", "labels.jsonl")
    shown = _graded(calibrate)
    calibrate("report", "--html", "report.html")
    assert "Calibrated says: agreement with people: kappa 0.80 [" in shown
    assert "STALE" not in shown
    assert "agreement with people: kappa 0.80 [" in Path("report.html").read_text("utf-8")
    found = json.loads(_graded(calibrate, "--json"))
    (one,) = found["overview"]["calibrations"]
    assert (one["card"], one["stale"], one["n"]) == (made["id"], False, 20)
    Path("graders.yaml").write_text(_GRADERS.replace("'yes'", "'no'"), "utf-8")
    assert "STALE, measured before a change: substring yes → no" in _graded(calibrate)
    Path("graders.yaml").write_text(_GRADERS, "utf-8")
    assert "STALE" not in _graded(calibrate)
    source = "async def grade(thread):\n    return float('yes' in (thread.completion() or ''))\n"
    Path("says.py").write_text(source, "utf-8")
    calibrate.json("says.py", "labels.jsonl")
    shown = _graded(calibrate, by="says.py")
    assert "Calibrated says.py: agreement with people: kappa 0.80 [" in shown
    assert "STALE" not in shown


def test_the_card_beside_a_run_measured_the_mark_that_the_run_passes_by(calibrate: Command) -> None:
    """Half of the credit was a yes for the card, and a failure for the rows beside it."""
    halves = "- {type: contains, substring: 'yes'}\n- {type: contains, substring: more}\n"
    Path("graders.yaml").write_text(halves, "utf-8")
    answers = [("yes, more", True), ("yes", False), ("no", False)] * 4
    write_rows(
        "labels.jsonl", [{"answer": f"{a} {n}", "label": y} for n, (a, y) in enumerate(answers)]
    )
    calibrate.json("graders.yaml", "labels.jsonl")
    shown = _graded(calibrate, "--label", "label")
    assert "agreement with people: kappa 1.00 [" in shown
    assert "], yes from 1 up, n=12" in shown
    assert "✓ 4 passed ✗ 8 failed" in shown


_JUDGE = "- {{type: llm_judge, name: judge, model: '{model}', criteria: [The answer says yes.]}}\n"


def _honest(asked: Asked) -> Json:
    """A judge that is right, quotes the answer, and is not fooled by the probes of its honesty."""
    answer = asked.fenced("answer")
    verdict = "MET" if answer.startswith("yes") and "says yes" in asked.outside else "UNMET"
    return {"evidence": [answer], "reasoning": "it says so", "verdict": verdict}


def _judge_rows(n: int) -> None:
    words = ("no, it is not", "yes, it is so")
    write_rows(
        "rows.jsonl", [{"answer": f"{words[i % 2]} {i}", "label": i % 2 == 1} for i in range(n)]
    )


def test_a_model_judge_with_its_cost_and_its_cache(calibrate: Command) -> None:
    _judge_rows(12)
    with FakeJudge(_honest) as fake:
        Path("judge.yaml").write_text(_JUDGE.format(model=fake.model), "utf-8")
        card = calibrate.json("judge.yaml", "rows.jsonl", "--repeats", "2")
        cost = card["cost"]
        assert _measure(card, "kappa") == 1.0
        assert card["models"] == [fake.model]
        assert cost["calls"] >= 24
        assert cost["input_tokens"] > 0
        before = fake.count
        code, out, err = calibrate("judge.yaml", "rows.jsonl", "--repeats", "2", "--json")
        assert (code, json.loads(out)) == (0, card)
        assert f"say what card {card['id']} says: no new card is made" in err
        assert len(calibrate.json("cards")["cards"]) == 1
        other = calibrate.json("judge.yaml", "rows.jsonl", "--repeats", "2", "--threshold", "0.7")
        assert fake.count == before
    again = other["cost"]
    assert other["id"] != card["id"]
    assert (again["calls"], again["hits"]) == (0, 24)
    for name in ("judgements", "unknown", "input_tokens", "output_tokens"):
        assert again[name] == cost[name], name
    assert again["seconds"] == pytest.approx(cost["seconds"], rel=0.01)


def test_a_grader_without_a_name_is_called_as_its_file_and_its_kind(calibrate: Command) -> None:
    """That it borrows no other's card: tests/reports/test_calibration.py."""
    Path("yes.yaml").write_text("- {type: contains, substring: 'yes'}\n", "utf-8")
    made = calibrate.json("yes.yaml", "labels.jsonl")
    assert (made["grader"], made["is_named"]) == ("yes", False)
    assert calibrate.json("cards", "yes") == made
    shown = _graded(calibrate, by="yes.yaml")
    assert "Calibrated contains: agreement with people: kappa 0.80 [" in shown
    Path("named.yaml").write_text("- {type: contains, name: 'yes', substring: 'no'}\n", "utf-8")
    assert "agreement with people" not in _graded(calibrate, by="named.yaml")


_TEMPLATE = (
    "- {{type: binary_judge, model: '{model}', criteria: Says yes.,"
    " user_template: 'A: {{{{completon}}}} {{{{criteria}}}}'}}\n"
)


@each(
    "words",
    [
        ("calibrate", "typo.yaml", "rows.jsonl"),
        ("grade", "rows.jsonl", "typo.yaml"),
        ("validate", "typo.yaml"),
    ],
)
def test_what_is_worth_a_look_in_a_template_is_said_once(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _judge_rows(2)
    with FakeJudge(lambda _: {"evidence": [], "reasoning": "so", "score": "FAIL"}) as fake:
        Path("typo.yaml").write_text(_TEMPLATE.format(model=fake.model), "utf-8")
        code, _, err = Command(capsys)(*words)
    where = "warning: typo.yaml: grader 'binary_judge': user_template: "
    assert err.count(f"{where}line 1: unknown variable 'completon'") == 1
    assert err.count(f"{where}the answer is not shown") == 1
    assert words[0] != "validate" or code == 0


@pytest.mark.parametrize(("winner", "kappa"), [("good", 1.0), ("A", 0.0)])
def test_a_judge_of_pairs_that_goes_by_the_place(
    calibrate: Command, winner: str, kappa: float
) -> None:
    rows: list[dict[str, Json]] = []
    for n in range(8):
        pair = ("good", "poor") if n % 2 else ("poor", "good")
        label = "A" if n % 2 else "B"
        rows.append({"answer": f"{pair[0]} {n}", "other": f"{pair[1]} {n}", "label": label})
    write_rows("pairs.jsonl", rows)

    def choose(asked: Asked) -> Json:
        texts = [fence.text for fence in asked.fences if fence.text.startswith(("good", "poor"))]
        first = "A" if texts[0].startswith("good") else "B"
        return {"reasoning": "so", "winner": first if winner == "good" else "A"}

    with FakeJudge(choose) as fake:
        Path("pair.yaml").write_text(
            f"- {{type: pairwise, model: '{fake.model}', other: {{from: metadata.other}}}}\n",
            "utf-8",
        )
        card = calibrate.json("pair.yaml", "pairs.jsonl")
    assert _measure(card, "kappa") == kappa


_SLOW = """
import time
from pathlib import Path

def grade(answer):
    with open("asked.txt", "a") as log:
        log.write(answer + "\\n")
    if not Path("go").exists() and answer.endswith((" 40", " 41", " 42", " 43")):
        time.sleep(60)
    return 1.0 if "yes" in answer else 0.0
"""

_COMMAND = """
import sys
from assay.cli.main import main
main(["calibrate", *sys.argv[1:]])
"""


def test_what_was_judged_before_an_interruption_is_not_judged_again(calibrate: Command) -> None:
    _labels(64)
    Path("slow.py").write_text(_SLOW, "utf-8")
    with Children() as started:
        process = started.start([sys.executable, "-c", _COMMAND, "slow.py", "labels.jsonl"])
        until(lambda: _kept() >= 32)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "what was finished is kept" in err
    kept = _kept()
    Path("asked.txt").write_text("")
    Path("go").touch()
    card = calibrate.json("slow.py", "labels.jsonl")
    assert card["coverage"]["compared"] == 64
    assert len(Path("asked.txt").read_text().splitlines()) == 64 - kept
    assert card["cost"]["judgements"] == 64


def _kept() -> int:
    with Database.open(os.environ["ASSAY_DB"]) as database:
        ((number,),) = database.rows("SELECT count(*) FROM judgement WHERE card = ''")
    return cast("int", number)


def test_graders_show_tells_the_card(calibrate: Command) -> None:
    def shown() -> str:
        return " ".join(calibrate.ok("graders", "show", "says").split())

    _store_grader()
    assert "none: assay calibrate measures" in shown()
    made = calibrate.json("says", "labels.jsonl")
    assert "agreement with people: kappa 0.80 [" in shown()
    told = calibrate.json("graders", "show", "says")
    assert told["calibration"]["card"] == made["id"]


def test_no_command_asks_the_address_of_a_stranger_unless_it_is_told_to_trust(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = new_location(request, "postgres", tmp_path)  # where others store graders, too
    _judge_rows(2)
    with FakeJudge(_honest) as fake:
        made = definition("binary_judge", criteria="Says yes.", judge_model=fake.model)
        with Database.open(location) as database:
            registry = StoredGraders(database, permissions=Permissions(internal=True))
            asyncio.run(registry.create("cap", made))
        for words in (
            ("serve", "grader", "cap"),
            ("calibrate", "cap", "rows.jsonl"),
            ("grade", "rows.jsonl", "cap"),
        ):
            code, _, err = Command(capsys)(*words, "--db", location)
            assert (code, fake.count) == (2, 0), words
            assert "may not name the address of a model here" in err
        *_, err = Command(capsys)(
            "calibrate", "cap", "rows.jsonl", "--trust-authors", "--db", location
        )
        assert fake.count, err
