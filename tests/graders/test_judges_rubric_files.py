"""Rubric files: ours, HealthBench's and PaperBench's, and what a hostile file cannot do."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.judges.criteria import Criterion, leaves
from assay.graders.judges.rubric_files import load_rubric
from assay.scoring.json_safe import Json
from tests.each import each

OURS = """\
name: Answers of the help desk
criteria:
- Names the city
- [Gives the year, 2]
- requirement: Invents a source
  weight: -1.5
  name: invention
- requirement: Style
  children:
  - {requirement: Is short, weight: 1, levels: [long, fair, short]}
  - {requirement: Is polite, required: true}
"""
EXAMPLE: dict[str, Json] = {
    "prompt_id": "one",
    "prompt": [{"role": "user", "content": "My arm hurts."}],
    "example_tags": ["theme:hedging"],
    "rubrics": [
        {"criterion": "Advises to see a doctor", "points": 7, "tags": ["axis:accuracy"]},
        {"criterion": "Names a dose without need", "points": -4, "tags": []},
    ],
}
TREE: dict[str, Json] = {
    "id": "root",
    "requirements": "The paper is reproduced",
    "weight": 1,
    "sub_tasks": [
        {
            "id": "a",
            "requirements": "The method is written",
            "weight": 3,
            "sub_tasks": [],
            "task_category": "Code Development",
            "finegrained_task_category": "Method Implementation",
        },
        {
            "id": "b",
            "requirements": "It is run",
            "weight": 2,
            "sub_tasks": [
                {"id": "c", "requirements": "It runs", "weight": 1, "sub_tasks": None},
                {"id": "d", "requirements": "The figure matches", "weight": 4},
            ],
            "task_category": None,
        },
    ],
}


def written(tmp_path: Path, text: str, name: str = "rubric.yaml") -> str:
    file = tmp_path / name
    file.write_text(text, "utf-8")
    return str(file)


def shape(criterion: Criterion) -> object:
    inside = [shape(child) for child in criterion.children]
    return (criterion.requirement, criterion.weight, *([inside] if inside else []))


def test_our_own_form(tmp_path: Path) -> None:
    read = load_rubric(written(tmp_path, OURS))
    assert [shape(one) for one in read] == [
        ("Names the city", 1.0),
        ("Gives the year", 2.0),
        ("Invents a source", -1.5),
        ("Style", 1.0, [("Is short", 1.0), ("Is polite", 1.0)]),
    ]
    assert [level.value for level in read[3].children[0].levels] == [0.0, 0.5, 1.0]
    assert (read[2].label, read[3].children[1].required) == ("invention", True)
    listed = "\n".join(OURS.split("\n")[2:])
    assert load_rubric(written(tmp_path, listed, "list.yml")) == read
    as_json = json.dumps(["Names the city", ["Gives the year", 2]])
    assert load_rubric(written(tmp_path, as_json, "list.json")) == read[:2]


def test_an_example_of_health_bench(tmp_path: Path) -> None:
    wanted = [("Advises to see a doctor", 7.0), ("Names a dose without need", -4.0)]
    for name in ("one.json", "one.yaml", "one.jsonl"):
        read = load_rubric(written(tmp_path, json.dumps(EXAMPLE), name))
        assert [shape(one) for one in read] == wanted


def test_of_many_examples_one_is_picked_by_its_id(tmp_path: Path) -> None:
    item: Json = {"criterion": "Is short", "points": 1}
    many: list[Json] = [EXAMPLE, {"prompt_id": "two", "rubrics": [item]}, {"rubrics": [item]}]
    lines = "\n\n".join(map(json.dumps, many)) + "\n"
    for text, name in ((lines, "many.jsonl"), (json.dumps(many), "many.json")):
        file = written(tmp_path, text, name)
        assert [one.requirement for one in load_rubric(file, example="two")] == ["Is short"]
        with pytest.raises(InputError, match=r"holds 3 rubrics.*such as one, two") as caught:
            load_rubric(file)
        assert caught.value.location.file == file
        with pytest.raises(InputError, match="no rubrics with the id 'three'"):
            load_rubric(file, example="three")
    doubled = written(tmp_path, f"{lines}{json.dumps(many[1])}", "doubled.jsonl")
    with pytest.raises(InputError, match="2 rubrics with the id 'two'"):
        load_rubric(doubled, example="two")


def test_a_tree_of_paper_bench(tmp_path: Path) -> None:
    (root,) = load_rubric(written(tmp_path, json.dumps(TREE), "paper.json"))
    assert shape(root) == (
        "The paper is reproduced",
        1.0,
        [
            ("The method is written", 3.0),
            ("It is run", 2.0, [("It runs", 1.0), ("The figure matches", 4.0)]),
        ],
    )
    assert len(list(leaves([root]))) == 3


NODE = "requirements: a\nweight: 1\n"
WRONG: list[tuple[str, str, int | None, str, str]] = [
    # name, text, line, field, message; what no document may hold is in tests/test_documents.py
    ("a.yaml", "just words", 1, "criteria", "expected a list of criteria"),
    ("a.yaml", "criterai:\n- x", 1, "criteria", "is required .*did you mean 'criteria'"),
    ("a.yaml", "criteria:\n- a\nmodel: gpt-4", 3, "model", "no such field .*where the grader"),
    ("a.yaml", "criteria:\n- a\n- [b, two]", 3, "criteria[1].weight", "a number"),
    ("a.yaml", "- a\n- {requirement: b, wieght: 2}", 2, "[1].wieght", "'weight'"),
    ("a.yaml", "- a\n- ' '", 2, "[1].requirement", "needs words"),
    ("a.yaml", "a: [b", 2, "", "not valid YAML"),
    ("a.json", '["a",\n["b", NaN]]', 2, "[1][1]", "NaN is not a number"),
    ("a.jsonl", '{"rubrics": [}', 1, "", "is not JSON"),
    ("a.jsonl", "", None, "", "holds 0 rubrics"),
    ("a.json", '{"rubrics": []}', 1, "rubrics", "not empty"),
    ("a.yaml", "rubrics:\n- criterion: a\n  points: many", 3, "rubrics[0].points", "a number"),
    ("a.yaml", "rubrics:\n- points: 2", 2, "rubrics[0].criterion", "is required"),
    ("a.yaml", "rubrics:\n- 3", 2, "rubrics[0]", "expected a mapping"),
    ("a.yaml", "requirements: a\nweight: true", 2, "weight", "a number"),
    ("a.yaml", "requirements: a\nweight: -1", 2, "weight", "0 or more"),
    ("a.yaml", f"{NODE}sub_tasks:\n- {{requirements: b}}", 4, "sub_tasks[0].weight", "is required"),
    ("a.yaml", f"{NODE}subtasks: []", 3, "subtasks", "'sub_tasks'"),
    # Attack: what weighs nothing that can be read weighed 1, without a word.
    ("a.yaml", "rubrics:\n- criterion: a\n  points: null", 3, "rubrics[0].points", "got null"),
    ("a.yaml", "rubrics:\n- points: 1\n  criterion:", 3, "rubrics[0].criterion", "got null"),
    ("a.yaml", "requirements: a\nweight:", 2, "weight", "got null"),
    (
        "a.yaml",
        f"{NODE}sub_tasks:\n- {{requirements: b, weight: }}",
        4,
        "sub_tasks[0].weight",
        "null",
    ),
]


@each(("name", "text", "line", "field", "said"), WRONG)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, name: str, text: str, line: int | None, field: str, said: str
) -> None:
    file = written(tmp_path, text, name)
    with pytest.raises(InputError, match=said) as caught:
        load_rubric(file)
    place = caught.value.location
    assert (place.file, place.line, place.field) == (file, line, field)


@each("name", ["many.json", "many.yaml"])
def test_a_mistake_in_json_is_told_with_line_and_column(tmp_path: Path, name: str) -> None:
    """It was told at 1:1, and so was one in a list of examples."""
    fine: Json = {"prompt_id": "one", "rubrics": [{"criterion": "a", "points": 1}]}
    wrong: Json = {"prompt_id": "two", "rubrics": [{"criterion": "a", "points": "many"}]}
    for data, options, field in (
        (wrong, {}, "rubrics[0].points"),
        ([fine, wrong], {"example": "two"}, "[1].rubrics[0].points"),
    ):
        text = json.dumps(data, indent="\t" if name == "many.json" else 1)
        with pytest.raises(InputError, match="a number") as caught:
            load_rubric(written(tmp_path, text, name), **options)
        place = caught.value.location
        before = text[: text.index('"many"')]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert (place.line, place.column, place.field) == (line, column, field)


def test_a_file_that_cannot_be_read_is_named_and_a_changed_one_read_again(tmp_path: Path) -> None:
    for name in ("gone.yaml", "", "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            load_rubric(str(tmp_path / name))
    with pytest.raises(InputError, match="no rubrics with the id 'one'"):
        load_rubric(written(tmp_path, "- a", "b.yaml"), example="one")
    for name in ("a", "another"):
        assert load_rubric(written(tmp_path, f"- {name}"))[0].requirement == name


def test_many_or_deep_criteria_are_refused_and_groups_may_stand_thirty_deep(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="more than 5,000"):
        load_rubric(written(tmp_path, json.dumps(["a"] * 5_001), "many.json"))
    node: Json = {"requirements": "a", "weight": 1}
    ours: Json = {"requirement": "a"}
    for depth in range(1, 32):
        node = {"requirements": "a", "weight": 1, "sub_tasks": [node]}
        ours = {"requirement": "a", "children": [ours]}
        for name, deep in (("tree.json", node), ("ours.yaml", [ours])):
            if depth == 30:
                file = written(tmp_path, json.dumps(deep), name)
                assert len(list(leaves(load_rubric(file)))) == 1
            if depth == 31:
                with pytest.raises(InputError, match=r"(30|64) deep|64 levels"):
                    load_rubric(written(tmp_path, json.dumps(deep), name))


def test_attack_one_doubled_key_among_many_takes_minutes(tmp_path: Path) -> None:
    """For each key all others were counted: 800 KB took an hour."""
    keys = "".join(f'"k{n}":1,' for n in range(30_000))
    file = written(tmp_path, f'{{{keys}"k29999":2}}', "a.json")
    started = time.process_time()
    with pytest.raises(InputError, match="'k29999' is already used"):
        load_rubric(file)
    assert time.process_time() - started < 30.0


@given(text=st.text(alphabet=st.sampled_from("-[]{}:,&*!|>'\"ab1 .\n\t#?%"), max_size=60))
@pytest.mark.parametrize("name", ["fuzz.yaml", "fuzz.json", "fuzz.jsonl"])
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    file = tmp_path_factory.mktemp("fuzz") / name
    file.write_text(text)
    try:
        read = load_rubric(str(file))
    except InputError:
        return
    assert all(isinstance(one, Criterion) for one in read)
