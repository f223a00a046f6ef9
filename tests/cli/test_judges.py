"""Judges on the command line: what is kept is not asked for again, and a budget is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.scoring.json_safe import Json
from assay.testing import FakeJudge
from tests.command_line import assay, cells, summary
from tests.written_files import write_rows

_ROWS = 45


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return counted_rows(tmp_path, _ROWS)


def counted_rows(root: Path, count: int) -> Path:
    """Answers, of which every third is wrong."""
    rows = [
        {
            "id": f"row-{number}",
            "question": "What is the capital of Australia?",
            "answer": f"Number {number}: it is {'Sydney' if number % 3 == 0 else 'Canberra'}.",
        }
        for number in range(count)
    ]
    write_rows(root / "rows.jsonl", rows)
    return root


def judge(suite: Path, fake: FakeJudge, **more: object) -> Path:
    """A grader file with one judge."""
    criteria = ["The answer says that it is Canberra"]
    more = {"canary": 0.0, **more}  # one question for each row
    grader = {"type": "llm_judge", "model": fake.model, "criteria": criteria, **more}
    file = suite / "judge.yaml"
    file.write_text(json.dumps([grader]), "utf-8")
    return file


def test_what_is_recorded_replays_without_a_model(suite: Path) -> None:
    with FakeJudge() as fake:
        command = ["grade", "rows.jsonl", str(judge(suite, fake)), "--json"]
        first = assay(*command, cwd=suite)
    replayed = assay(*command, cwd=suite, env={"ASSAY_CACHE": "replay"})
    assert replayed.returncode == first.returncode
    assert summary(replayed)["passed"] == summary(first)["passed"] == _ROWS * 2 // 3
    (suite / ".assay" / "models.sqlite").unlink()
    missing = assay(*command, cwd=suite, env={"ASSAY_CACHE": "replay"})
    assert missing.returncode == 3
    assert "has no recording of" in missing.stdout


@pytest.mark.slow
def test_a_dead_judge_is_an_error_and_never_a_zero(suite: Path) -> None:
    with FakeJudge() as fake:
        file = judge(suite, fake, timeout_seconds=2)
    done = assay("grade", "rows.jsonl", str(file), "--json", cwd=suite)
    assert done.returncode == 3
    assert summary(done)["errors"] == _ROWS
    assert summary(done)["reward"] == {"mean": None, "low": None, "high": None, "n": 0}
    assert done.stderr.splitlines()[:2] == [
        f"models: no price is known for {fake.model}",
        f"models: {fake.model} cannot be reached: connection refused; asked again",
    ]
    last = done.stderr.splitlines()[-1]
    assert last.startswith("models: nothing was answered, ")
    assert last.endswith(" tries failed, $0.00")
    assert " left " not in done.stderr


def priced(suite: Path, fake: FakeJudge) -> tuple[str, dict[str, str]]:
    """The judge as a model whose price is known, and where it is."""
    grader = judge(suite, fake)
    text = grader.read_text("utf-8").replace(fake.model, "openai:gpt-4o-mini")
    grader.write_text(text, "utf-8")
    return str(grader), dict(fake.environment())


def test_a_budget_stops_before_it_is_spent_and_it_is_said_that_it_may_not_do(suite: Path) -> None:
    counted_rows(suite, count := 120)
    with FakeJudge() as fake:
        grader, env = priced(suite, fake)
        command = ("grade", "rows.jsonl", grader, "--json", "--max-cost", "0.01")
        done = assay(*command, cwd=suite, env=env)
        assert "asking stops before it costs more than $0.01" in done.stderr.splitlines()[0]
        assert (done.returncode, "budget" in done.stdout) == (3, True)
        assert 0 < fake.count < count


def test_what_it_will_cost_is_said_before_and_after_ten_calls(suite: Path) -> None:
    with FakeJudge() as fake:
        grader, env = priced(suite, fake)
        done = assay("grade", "rows.jsonl", grader, "--json", cwd=suite, env=env)
        first, measured = [line for line in done.stderr.splitlines() if "will cost" in line]
        assert first.startswith(f"models: {_ROWS} rows will cost $0.00")
        assert " to $0.1" in first
        assert first.endswith(f"{_ROWS} rows ask, and how long replies are is not known yet")
        assert measured.startswith(f"models: {_ROWS} rows will cost about $0.0")
        assert measured.endswith(": from 10 calls of 10 rows")
        bill = json.loads(done.stdout)["bill"]
        spent = summary(done)["judge_cost_usd"]
        assert bill["before"]["low_usd"] < spent < bill["before"]["high_usd"]
        assert bill["measured"]["low_usd"] <= spent + 1e-9
        assert spent <= bill["measured"]["high_usd"] + 1e-9
        again = assay("grade", "rows.jsonl", grader, "--json", cwd=suite, env=env)
        assert f"models: {_ROWS} rows will cost $0.00: the cache has all replies" in again.stderr
        asked = fake.count
        with (suite / "rows.jsonl").open("a", encoding="utf-8") as rows:
            rows.write('{"id": "new", "question": "Q?", "answer": "It is Canberra, too."}\n')
        more = assay("grade", "rows.jsonl", grader, "--json", cwd=suite, env=env)
        assert fake.count == asked + 1, "what is foretold is not asked"
        assert f"1 rows ask; {_ROWS} replies from the cache" in more.stderr


def test_nothing_is_foretold_of_models_that_cost_nothing_or_are_not_asked(suite: Path) -> None:
    for model in ("fake", "openai:gpt-4o-mini"):
        judge = f"- {{type: llm_judge, model: '{model}', criteria: [names it]}}\n"
        (suite / "one.yaml").write_text(judge, "utf-8")
        done = assay("grade", "rows.jsonl", "one.yaml", cwd=suite)
        assert "will cost" not in done.stderr, model
        assert "the cache has" not in done.stderr, model
    (suite / "empty.jsonl").write_text('{"id": "1", "answer": ""}\n', "utf-8")
    with FakeJudge() as fake:
        grader, env = priced(suite, fake)
        done = assay("grade", "empty.jsonl", grader, cwd=suite, env=env)
    assert done.stderr.splitlines()[0] == "models: 1 row will cost $0.00: none asks a model"


def test_a_judge_that_looks_costs_so_much_or_more(suite: Path) -> None:
    rows = (suite / "rows.jsonl").read_text().splitlines(keepends=True)
    (suite / "rows.jsonl").write_text("".join(rows[:3]))
    (suite / "agent.yaml").write_text(
        "- {type: agent_judge, model: 'openai:gpt-4o-mini', criteria: [names it], steps: 1}\n"
    )
    with FakeJudge() as fake:
        done = assay("grade", "rows.jsonl", "agent.yaml", cwd=suite, env=fake.environment())
    first = done.stderr.splitlines()[0]
    assert first.startswith("models: 3 rows will cost $")
    assert " or more: " in first
    assert first.endswith("what follows from the replies comes on top")


def test_cells_are_foretold_from_earlier_runs_and_grading_again_from_the_cells(suite: Path) -> None:
    with FakeJudge() as fake:
        grader, env = priced(suite, fake)
        (suite / "evals" / "c").mkdir(parents=True)
        (suite / "evals" / "c" / "case.yaml").write_text(
            "id: c\ntask: {prompt: What is the capital of Australia? It is Canberra.}\n"
            f"matrix: {{harnesses: [echo], models: [none], trials: 4}}\n"
            f"graders: {Path(grader).read_text('utf-8')}\n",
            "utf-8",
        )
        off = {**env, "ASSAY_CACHE": "off"}
        first = assay("run", "evals", cwd=suite, env=off)
        said = "what 4 cells will cost is said once 10 calls of openai:gpt-4o-mini are paid"
        assert said in first.stderr
        second = assay("run", "evals", "--json", cwd=suite, env=off)
        assert "from 4 cells like them of earlier runs" in second.stderr
        spent = summary(second)["judge_cost_usd"]
        before = json.loads(second.stdout)["bill"]["before"]
        assert before["low_usd"] <= spent + 1e-9 <= before["high_usd"] + 2e-9
        again = assay("regrade", "latest", cwd=suite, env=off)
        assert "4 cells will cost $0.00 to $" in again.stderr


_NO_KEYS = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ({"type": "model_judge", "rubric": "rubric.md"}, 0),
        ({"type": "llm_judge", "criteria": ["x"]}, 3),
        ({"type": "binary_judge", "criteria": "x"}, 3),
        ({"type": "faithfulness"}, 3),
    ],
)
def test_without_a_key_model_judge_alone_is_skipped_and_strict_refuses_that(
    tmp_path: Path, kind: dict[str, object], status: int
) -> None:
    """Green for one judge and red for another, and no two pages said the same of it."""
    (tmp_path / "rubric.md").write_text("Be kind.", "utf-8")
    row = {"answer": "hi", "question": "q", "metadata": {"contexts": ["hi there"]}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    graders = [{"type": "contains", "substring": "hi"}, {**kind, "model": "openai:gpt-5"}]
    (tmp_path / "g.yaml").write_text(json.dumps(graders), "utf-8")
    command = ("grade", "rows.jsonl", "g.yaml")
    done = assay(*command, cwd=tmp_path, env=_NO_KEYS)
    said = "PASS, BUT 0.50 of the weight was not graded (model_judge: there is no key"
    assert (done.returncode, said in done.stdout) == (status, status == 0)
    assert assay(*command, "--strict", cwd=tmp_path, env=_NO_KEYS).returncode == 3
    assert assay("report", "--strict", cwd=tmp_path, env=_NO_KEYS).returncode == 3


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "llm_judge", "criteria": ["It names Paris"]},
        {"type": "binary_judge", "criteria": "It names Paris"},
        {"type": "model_judge", "words": "It names Paris."},
    ],
)
def test_judges_are_tried_without_a_key_by_the_model_fake(
    tmp_path: Path, kind: dict[str, Json]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"answer": "Paris", "question": "Capital?"}', "utf-8")
    (tmp_path / "g.yaml").write_text(json.dumps([{**kind, "model": "fake"}]), "utf-8")
    done = assay("grade", "rows.jsonl", "g.yaml", cwd=tmp_path, env=_NO_KEYS)
    assert (done.returncode, "PASS: the 1 graded" in done.stdout) == (0, True)
    assert "the model fake looks for words" in " ".join(done.stderr.split())
    (cell,) = cells(assay("report", "--json", cwd=tmp_path))
    assert cell["flags"] == ["fake_judge"]
