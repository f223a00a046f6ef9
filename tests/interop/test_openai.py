"""What OpenAI's API gave, as graders and rows of ours: read, written, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.apply import grade_submission
from assay.interop.openai_read import Dump, read_dump, read_item
from assay.interop.openai_replay import Replay, replay
from assay.interop.openai_suite import Suite, SuiteGrader, suites_of, write_suites
from assay.scoring.json_safe import Json
from assay.tasks.grader_files import load_graders
from assay.tasks.rows import read_rows
from tests.each import each

UUID = "1c1d6ed7-0b0c-4a3e-9f9d-3f1f5b8f9a10"
EXAMPLES = Path(__file__).parents[2] / "examples" / "openai"
CHECK: dict[str, Json] = {
    "type": "string_check",
    "name": "Match",
    "id": f"Match-{UUID}",
    "input": "{{ sample.output_text }}",
    "reference": "{{ item.answer }}",
    "operation": "eq",
}
SIMILAR: dict[str, Json] = {
    "type": "text_similarity",
    "name": "Close",
    "input": "{{ sample.output_text }}",
    "reference": "{{ item.answer }}",
    "evaluation_metric": "fuzzy_match",
    "pass_threshold": 0.8,
}
JUDGE: dict[str, Json] = {
    "type": "score_model",
    "name": "Good",
    "model": "gpt-4o",
    "input": [{"role": "user", "content": "{{ sample.output_text }}"}],
    "range": None,
}


def python(name: str, body: str) -> dict[str, Json]:
    return {"type": "python", "name": name, "source": f"def grade(sample, item):\n    {body}\n"}


def both(first: Json, second: Json) -> dict[str, Json]:
    parts: dict[str, Json] = {"a": first, "b": second}
    return {"type": "multi", "name": "Both", "graders": parts, "calculate_output": "a + b"}


def evaluation(*criteria: Json, identity: str = "eval_1", name: str = "An eval") -> dict[str, Json]:
    return {"object": "eval", "id": identity, "name": name, "testing_criteria": list(criteria)}


def result(name: str, score: Json, *, passed: Json) -> Json:
    return {"name": name, "score": score, "passed": passed, "sample": None}


def output_item(
    number: int, said: str | None, answer: str, *results: Json, eval_id: str = "eval_1"
) -> dict[str, Json]:
    asked: list[Json] = [{"role": "user", "content": "Where?"}]
    output: list[Json] = [] if said is None else [{"role": "assistant", "content": said}]
    return {
        "object": "eval.run.output_item",
        "id": f"outputitem_{number}",
        "eval_id": eval_id,
        "run_id": "evalrun_1",
        "datasource_item_id": number,
        "datasource_item": {"answer": answer},
        "results": list(results),
        "sample": {"input": asked, "output": output, "model": "gpt-4o"},
    }


def kept(folder: Path, name: str, *documents: Json, lines: bool = False) -> str:
    file = folder / name
    texts = [json.dumps(document) for document in documents]
    file.write_text("\n".join(texts) if lines else texts[0])
    return str(file)


def suite_of(folder: Path, *documents: Json) -> Suite:
    (suite,) = suites_of(read_dump([kept(folder, "dump.jsonl", *documents, lines=True)]))
    return suite


# --- Reading --------------------------------------------------------------------------------------

JOB: Json = {
    "object": "fine_tuning.job",
    "id": "ftjob-1",
    "method": {"type": "reinforcement", "reinforcement": {"grader": CHECK, "hyperparameters": {}}},
}


@each(
    ("document", "counts"),
    [
        (CHECK, (0, 1, 0)),
        ([CHECK, SIMILAR], (0, 2, 0)),
        ({"grader": CHECK}, (0, 1, 0)),
        (JOB, (0, 1, 0)),
        ({"object": "list", "data": [JOB, JOB]}, (0, 2, 0)),
        (evaluation(CHECK), (1, 0, 0)),
        ({"object": "list", "data": [evaluation(CHECK)], "has_more": False}, (1, 0, 0)),
        (output_item(1, "a", "b"), (0, 0, 1)),
        ({"data": [output_item(1, "a", "b"), output_item(2, "a", "b")]}, (0, 0, 2)),
        ([evaluation(CHECK), output_item(1, "a", "b")], (1, 0, 1)),
    ],
)
def test_every_form_of_dump_is_read(
    tmp_path: Path, document: Json, counts: tuple[int, int, int]
) -> None:
    file = kept(tmp_path, "x.json", document)
    dump: Dump = read_dump([file])
    assert (len(dump.evals), len(dump.graders), len(dump.items)) == counts
    both = [output_item(3, "a", "b"), output_item(4, "a", "b")]
    more = read_dump([kept(tmp_path, "a.jsonl", *both, lines=True), file])
    assert (len(more.evals), len(more.graders), len(more.items) - 2) == counts


@each(
    ("text", "message"),
    [
        ("\xff\xfe\0", "not UTF-8"),
        ("", "is not JSON"),
        ("[]", "no grader, eval or output item"),
        ('{"a": 1}', "neither a grader nor an eval"),
        ("[1]", r"x\.json: \[0\]: expected an object"),
        ('{"data": [{"data": [{"what": 1}]}]}', r"data\[0\]\.data\[0\]: this is neither"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"testing_criteria": {}}', "testing_criteria: expected a list"),
        ('{"testing_criteria": [3]}', r"testing_criteria\[0\]: a grader is an object"),
        ('{"method": {"type": "supervised"}}', "no method.reinforcement.grader"),
        ('{"results": [{"score": 1}], "sample": {}}', r"results\[0\]: a result is an object with"),
        ('{"results": [{"name": "x", "score": true}], "sample": {}}', r"results\[0\]: score is a"),
        ('{"results": [{"name": "x", "score": 1e999}], "sample": {}}', "too large a number"),
        ('{"results": [], "sample": 3}', "sample: expected an object"),
        ('{"type": "string_check", "input": ""}\n{"type": ', "x.json:2: this is not JSON"),
        ("[" * 50_000, "is not JSON"),
        ("[" * 100 + "]" * 100, "nested too deeply"),
    ],
)
def test_what_is_none_of_these_is_refused_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        suites_of(read_dump([str(file)]))
    with pytest.raises(InputError, match="cannot be read"):
        read_dump([str(tmp_path / "none.json")])


# --- How exactly it carries over ------------------------------------------------------------------


@each(
    ("grader", "fidelity", "note"),
    [
        (CHECK, "exact", ""),
        (SIMILAR, "approximate", "not documented"),
        ({**SIMILAR, "evaluation_metric": "cosine"}, "needs you", "embedding model"),
        (JUDGE, "needs you", "judge model in place of gpt-4o"),
        (python("p", "return 1.0"), "exact", ""),
        (python("p", "import numpy"), "needs you", "numpy"),
        ({**CHECK, "type": "endpoint"}, "needs you", "unknown type of grader 'endpoint'"),
        ({**CHECK, "operation": "regex"}, "needs you", r"testing_criteria[0].operation: 'regex'"),
        ({**CHECK, "weight": 3}, "needs you", r"testing_criteria[0].weight: unknown field"),
        ({**CHECK, "input": "{{ prompt }}"}, "needs you", "names nothing"),
        (both(CHECK, SIMILAR), "approximate", "not documented"),
        (both(CHECK, JUDGE), "needs you", "judge model"),
    ],
)
def test_the_fidelity_of_each_grader(
    tmp_path: Path, grader: dict[str, Json], fidelity: str, note: str
) -> None:
    (criterion,) = suite_of(tmp_path, evaluation(grader)).criteria
    assert criterion.fidelity == fidelity
    assert note in "; ".join(criterion.notes)


def test_results_find_their_criterion_by_name_id_and_name_with_an_id(tmp_path: Path) -> None:
    other = {**CHECK, "id": "Match-other"}
    suite = suite_of(tmp_path, evaluation(CHECK, other, SIMILAR))
    names = [criterion.name for criterion in suite.criteria]
    assert names == ["Match", "Match 2", "Close"]

    def found(result: str) -> str | None:
        criterion: SuiteGrader | None = suite.criterion_of(result)
        return criterion.name if criterion is not None else None

    assert found(f"Match-{UUID}") == "Match"
    assert found("Match-other") == "Match 2"
    assert found(f"Close-{UUID}") == "Close"
    assert found("Match") is None  # it could be either
    assert found("Close-x") is None


def test_a_result_whose_grader_is_in_no_file_needs_you(tmp_path: Path) -> None:
    item = output_item(1, "a", "a", result("Match", 1.0, passed=True))
    (found,) = suite_of(tmp_path, item).criteria
    assert (found.name, found.fidelity, found.declaration) == ("Match", "needs you", None)


def test_items_go_to_their_eval(tmp_path: Path) -> None:
    documents = [
        evaluation(CHECK, identity="e1", name="One"),
        evaluation(SIMILAR, identity="e2", name="One"),
        output_item(1, "a", "a", result("Close", 1.0, passed=True), eval_id="e2"),
        output_item(2, "a", "a", result("Far", 1.0, passed=True), eval_id="e3"),
    ]
    suites = suites_of(read_dump([kept(tmp_path, "d.jsonl", *documents, lines=True)]))
    found = [(suite.slug, len(suite.rows)) for suite in suites]
    assert found == [("one", 0), ("one-2", 1), ("e3", 1)]


def test_overlapping_pages_give_each_row_once_and_lose_none(tmp_path: Path) -> None:
    one, other = output_item(1, "a", "a"), output_item(1, "b", "a")
    suite = suite_of(tmp_path, evaluation(CHECK), one, one, other)
    assert [(row.id, row.data["answer"]) for row in suite.rows] == [
        ("outputitem_1", "a"),
        ("outputitem_1#2", "b"),
    ]


@each(
    ("sample", "answer"),
    [
        ({"output": [{"role": "assistant", "content": "said"}]}, "said"),
        ({"output": [{"role": "tool", "content": "x"}, {"content": "said"}]}, "said"),
        ({"output": [{"content": [{"type": "output_text", "text": "said"}]}]}, "said"),
        ({"output": [{"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}]}, ""),
        ({"output_text": "said"}, "said"),
        ({"choices": [{"message": {"content": "said"}}]}, "said"),
        ({"output": [], "error": {"code": "rate_limit", "message": "later"}}, None),
        ({}, None),
    ],
)
def test_what_the_model_said_is_found(tmp_path: Path, sample: Json, answer: str | None) -> None:
    item: Json = {"results": [], "datasource_item": {}, "sample": sample, "id": "i"}
    (found,) = read_dump([kept(tmp_path, "x.json", item)]).items
    assert read_item(found).data["answer"] == answer


def test_rows_of_a_run_that_holds_its_own_data(tmp_path: Path) -> None:
    content: Json = [{"item": {"answer": "a"}, "sample": {"output_text": "b"}}, {"item": {}}]
    run: Json = {
        "object": "eval.run",
        "id": "r",
        "eval_id": "eval_1",
        "data_source": {"type": "jsonl", "source": {"type": "file_content", "content": content}},
    }
    suite = suite_of(tmp_path, evaluation(CHECK), run)
    assert [row.data["answer"] for row in suite.rows] == ["b", None]
    assert suite.rows[0].data["item"] == {"answer": "a"}


# --- Writing --------------------------------------------------------------------------------------


def test_what_is_written_can_be_read_and_nothing_is_lost(tmp_path: Path) -> None:
    strange = {**CHECK, "type": "endpoint", "name": "Strange"}
    criteria = (CHECK, SIMILAR, python("Code!", "return 1.0"), JUDGE, strange)
    dump = kept(tmp_path, "eval.json", evaluation(*criteria))
    items = kept(tmp_path, "items.json", {"data": [output_item(1, "a", "a", eval_id="eval_1")]})
    target = tmp_path / "out" / "deep"
    written = write_suites(suites_of(read_dump([dump, items])), [dump, items], str(target))
    ours = ["data.jsonl", "graders.yaml", "needs-you.yaml"]
    assert written == [*ours, "origin/eval.json", "origin/items.json"]
    runs = [(spec.type, spec.label) for spec in load_graders(str(target / "graders.yaml"))]
    carried = [("string_check", "Match"), ("text_similarity", "Close")]
    assert runs == [*carried, ("openai_python", "Code!")]
    (waits,) = load_graders(str(target / "needs-you.yaml"))
    assert waits.type == "score_model"
    assert "# needs a judge model" in (target / "needs-you.yaml").read_text()
    (row,) = read_rows(str(target / "data.jsonl"))
    assert (row.submission.answer, row.submission.question) == ("a", "Where?")
    assert row.submission.metadata["item"] == {"answer": "a"}
    assert "Strange" in (target / "origin" / "eval.json").read_text()


def test_a_directory_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = kept(tmp_path, "g.json", CHECK)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(InputError, match="already there"):
        write_suites(suites_of(read_dump([file])), [file], str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    name = '../../x\n- {type: command, cmd: "rm"}\n\x1b[2J"\u2028'
    grader = {**python(name, "return 1.0")}
    file = kept(tmp_path, "d.json", evaluation(grader, {**JUDGE, "model": name}, name=name))
    written = write_suites(suites_of(read_dump([file])), [file], str(tmp_path / "out"))
    (spec,) = load_graders(str(tmp_path / "out" / "graders.yaml"))
    assert (spec.type, spec.name) == ("openai_python", name)
    (judge,) = load_graders(str(tmp_path / "out" / "needs-you.yaml"))
    assert judge.options["model"] == name
    assert all(".." not in path for path in written)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


_CODES = st.text(st.sampled_from(' \t\n\r#"|-:{\\\u0085\u2028é😀a'), max_size=30)
_BLANKS = st.text(st.sampled_from(" \t\n\r\f"), max_size=5)


@given(text=_CODES, before=_BLANKS, after=_BLANKS, name=_TEXTS.filter(str.strip))
def test_any_source_and_name_stand_in_the_file_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, text: str, before: str, after: str, name: str
) -> None:
    """A function must not become another one by being written as YAML."""
    folder = tmp_path_factory.mktemp("source")
    source = f"{before}\ndef grade(sample, item):\n    r'''{text} '''\n    return 1.0\n{after}"
    grader: Json = {"type": "python", "name": name, "source": source}
    file = kept(folder, "g.json", grader)
    write_suites(suites_of(read_dump([file])), [file], str(folder / "out"))
    (spec,) = load_graders(str(folder / "out" / "graders.yaml"))
    assert (spec.name, spec.options) == (name, {"source": source})


def test_a_criterion_of_an_eval_is_written_as_a_verdict_and_a_reward_as_its_number(
    tmp_path: Path,
) -> None:
    code = {**python("Code", "return 0.5"), "pass_threshold": 0.5}
    free = python("Free", "return 0.5")
    judge = {**JUDGE, "pass_threshold": 0.5}
    document = evaluation(CHECK, SIMILAR, code, free, judge)
    recorded = output_item(1, "a", "a", result("Close", 1.0, passed=True))
    documents: list[tuple[str, Json, set[str]]] = [
        ("eval", document, {"Close", "Code", "Good"}),
        ("alone", [CHECK, SIMILAR, code, free, judge], set()),
        ("recorded", [SIMILAR, recorded], {"Close"}),
    ]
    for name, found, verdicts in documents:
        file = kept(tmp_path, f"{name}.json", found)
        suites = suites_of(read_dump([file]))
        write_suites(suites, [file], str(tmp_path / name))
        specs = [
            spec
            for written in ("graders.yaml", "needs-you.yaml")
            if (tmp_path / name / written).exists()
            for spec in load_graders(str(tmp_path / name / written))
        ]
        assert {spec.label for spec in specs if spec.options.get("pass_fail")} == verdicts
    (suite,) = suites_of(read_dump([kept(tmp_path, "e.json", document)]))
    notes = {criterion.name: "; ".join(criterion.notes) for criterion in suite.criteria}
    assert "no pass_threshold" in notes["Free"]
    assert "no pass_threshold" not in notes["Match"] + notes["Close"] + notes["Code"]


async def test_a_row_passes_when_every_criterion_passes(tmp_path: Path) -> None:
    """A similarity of 0.9 passed over there, and made the row fail when it was graded here."""
    said = result("Close", 0.9, passed=True)
    items = [output_item(1, "Paris", "Paris France", said), output_item(2, "x", "Paris", said)]
    file = kept(tmp_path, "d.jsonl", evaluation(SIMILAR), *items, lines=True)
    write_suites(suites_of(read_dump([file])), [file], str(tmp_path / "out"))
    specs = load_graders(str(tmp_path / "out" / "graders.yaml"))
    rows = read_rows(str(tmp_path / "out" / "data.jsonl"))
    passed, failed = [await grade_submission(specs, row.submission) for row in rows]
    assert (passed.reward, failed.reward) == (1.0, 0.0)
    assert passed.subscores is not None
    assert dict(passed.subscores[0].metadata or {})["reward"] == pytest.approx(0.9)


# --- Replay ---------------------------------------------------------------------------------------


async def replays(folder: Path, criteria: list[Json], items: list[Json]) -> list[Replay]:
    return await replay(suite_of(folder, evaluation(*criteria), *items))


async def test_a_replay_counts_what_agrees_and_lists_what_does_not(tmp_path: Path) -> None:
    recorded: list[tuple[str, Json, Json]] = [
        ("a", 1.0, True),
        ("b", 0.0, False),
        ("b", 1.0, True),
        ("b", None, False),
        ("a", None, None),  # nothing to compare
    ]
    items: list[Json] = [
        output_item(number, said, "a", result("Match", score, passed=passed))
        for number, (said, score, passed) in enumerate(recorded, 1)
    ]
    (found,) = await replays(tmp_path, [CHECK], items)
    assert (found.recorded, found.replayed, found.agreed) == (5, 4, 3)
    (odd,) = found.disagreements
    assert (odd.row, odd.recorded_score, odd.score) == ("outputitem_3", 1.0, 0.0)
    assert found.kappa == pytest.approx(0.5)
    assert found.largest_difference == 1.0


async def test_an_exact_grader_agrees_in_its_score_and_an_approximate_one_in_its_verdict(
    tmp_path: Path,
) -> None:
    results = result("Match", 0.3, passed=False), result("Close", 0.93, passed=True)
    item = output_item(1, "Paris, France", "Paris France", *results)
    match, close = await replays(tmp_path, [CHECK, SIMILAR], [item])
    assert (match.agreed, len(match.disagreements)) == (0, 1)
    assert (close.agreed, len(close.disagreements)) == (1, 0)
    assert close.largest_difference == pytest.approx(0.03)


@pytest.mark.sandbox
async def test_what_could_not_be_graded_counts_as_neither(tmp_path: Path) -> None:
    fails = python("Fails", "return item['nope']")
    typo = {**CHECK, "name": "Typo", "id": "t", "reference": "{{ item.typo }}"}
    names = ("Match", "Fails", "Typo", "Good", "Gone")
    results = [result(name, 0.0, passed=False) for name in names]
    items: list[Json] = [output_item(n, said, "a", *results) for n, said in ((1, "b"), (2, None))]
    done = {r.criterion: r for r in await replays(tmp_path, [CHECK, fails, typo, JUDGE], items)}
    assert set(done) == set(names)
    assert (done["Match"].replayed, done["Match"].agreed) == (1, 1)
    assert "nothing was sampled" in next(iter(done["Match"].not_replayed))
    for name in names[1:]:
        found = done[name]
        assert (found.recorded, found.replayed, found.agreed, found.kappa) == (2, 0, 0, None)
        assert found.not_replayed.total() == 2
        assert found.disagreements == []


@pytest.mark.sandbox
@pytest.mark.parametrize("sample", [None, {"output": []}, {"output": [], "error": {"code": "x"}}])
async def test_a_sample_that_was_never_recorded_is_not_replayed(
    tmp_path: Path, sample: Json
) -> None:
    """It was graded as if the model had said nothing: recorded 0.7, replayed 0."""
    empty = python("Empty", "return 0.0 if sample['output_text'] is None else 1.0")
    fixed = {**CHECK, "name": "Fixed", "id": "f", "input": "{{ item.answer }}"}
    alike = {**SIMILAR, "name": "Alike", "input": "x"}
    criteria: list[Json] = [CHECK, empty, fixed, alike, both(fixed, empty)]
    names = ("Match", "Empty", "Fixed", "Alike", "Both")
    item = output_item(1, None, "a", *(result(name, 0.7, passed=True) for name in names))
    found = await replays(tmp_path, criteria, [{**item, "sample": sample}])
    assert [one.criterion for one in found] == list(names)
    for one in found:
        assert (one.recorded, one.replayed, one.largest_difference) == (1, 0, None)
        assert "nothing was sampled" in next(iter(one.not_replayed))


async def test_an_answer_worth_nothing_agrees_with_a_recorded_zero(tmp_path: Path) -> None:
    check = {**CHECK, "input": "{{ sample.output_json.x }}"}
    items: list[Json] = [output_item(1, "no json", "a", result("Match", 0, passed=False))]
    (found,) = await replays(tmp_path, [check], items)
    assert found.agreed == 1


@pytest.mark.sandbox
async def test_the_example_carries_over_as_its_page_says() -> None:
    files = [str(EXAMPLES / "eval.json"), str(EXAMPLES / "output_items.jsonl")]
    (suite,) = suites_of(read_dump(files))
    assert [c.fidelity for c in suite.criteria] == ["exact", "approximate", "exact", "needs you"]
    done = {found.criterion: found for found in await replay(suite)}
    counts = {name: (r.recorded, r.replayed, r.agreed) for name, r in done.items()}
    assert counts == {
        "Category": (10, 10, 10),
        "Summary": (10, 10, 10),
        "Priority": (10, 8, 8),
        "Tone": (10, 0, 0),
    }
    shown = done["Priority"].to_dict()
    assert len(cast("dict[str, Json]", shown["not_replayed"])) == 2
    (job,) = suites_of(read_dump([str(EXAMPLES / "rft_job.json")]))
    assert [(c.type, c.fidelity) for c in job.criteria] == [("multi", "approximate")]
