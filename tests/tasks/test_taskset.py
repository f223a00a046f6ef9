"""Task sets: unique slugs, selection, and rows in files that come back as they were."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.environment import Environment
from assay.errors import InputError
from assay.tasks import RunOptions, Task, Taskset
from assay.types import Job, Run
from tests.each import each

ENV = Environment("demo")


@ENV.template()
async def add(a: int = 1, b: int = 2, note: str = "") -> AsyncGenerator[Any, Any]:
    answer = yield f"{a}+{b}?"
    yield 1.0 if answer == str(a + b) else 0.0


@ENV.template()
async def say(word: str) -> AsyncGenerator[Any, Any]:
    answer = yield f"Say {word}."
    yield 1.0 if answer == word else 0.0


async def three(run: Run) -> None:
    run.trace.content = "3"


TASKS = [add(), add(2, 2), say(word="3")]


def test_a_set_is_ordered_and_found_by_slug_and_place() -> None:
    tasks = Taskset("sums", TASKS)
    assert len(tasks) == 3
    assert list(tasks) == TASKS
    assert tasks[1] is TASKS[1]
    assert tasks[TASKS[2].slug] is TASKS[2]
    assert tasks["add"] is TASKS[0]  # without arguments the slug is the id
    with pytest.raises(KeyError, match="did you mean 'add'"):
        tasks["ad"]
    assert repr(tasks) == "Taskset('sums', 3 tasks)"
    with pytest.raises(InputError, match="two tasks of 'sums' have the slug 'add'"):
        Taskset("sums", [add(), add()])


def test_slugs_tell_arguments_apart_whatever_their_order() -> None:
    assert add(a=1, b=3).slug == add(b=3, a=1).slug
    long = [add(note="x" * 9_000 + middle + "x" * 9_000) for middle in "ab"]
    assert len(Taskset("long", long)) == 2


def test_selection() -> None:
    tasks = Taskset("sums", TASKS)
    assert [t.id for t in tasks.filter("say")] == ["say"]
    assert [t.id for t in tasks.exclude(["say", "add"])] == []
    assert list(tasks.filter(lambda task: task.args.get("a") == 2)) == [TASKS[1]]
    assert list(tasks.exclude([TASKS[1].slug])) == [TASKS[0], TASKS[2]]
    assert len(tasks.filter([])) == 0


async def test_a_set_is_run() -> None:
    job = await Taskset("sums", TASKS).run(three, group=2)
    assert [run.slug for run in job] == [t.slug for t in TASKS for _ in range(2)]
    assert [run.reward for run in job] == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert isinstance(job, Job)
    with pytest.raises(InputError, match="'none' has no tasks"):
        await Taskset("none").run(three)


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"group": 0}, "group must be at least 1"),
    ({"max_concurrent": 0}, "max_concurrent must be at least 1"),
    ({"rollout_timeout": 0}, "rollout_timeout must be more than 0"),
    ({"agent_timeout": -1}, "agent_timeout must be more than 0"),
    ({"grading_timeout": float("nan")}, "grading_timeout must be more than 0"),
]


@each(("options", "why"), OPTIONS)
async def test_options_out_of_range(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        await add().run(three, **options)


def test_there_is_time_to_grade_what_a_command_may_take() -> None:
    """Else a command that hangs would be our time-out, left out, and not its own 0."""
    grading = RunOptions().grading_timeout
    assert grading is not None
    assert grading > 600


@pytest.mark.parametrize("ending", ["json", "jsonl"])
async def test_rows_come_back_from_a_file(ending: str, tmp_path: Path) -> None:
    file = str(tmp_path / f"sums.{ending}")
    Taskset("sums", TASKS).to_file(file)
    read = Taskset.from_file(file, env=ENV)
    assert read.name == "sums"
    assert [task.to_dict() for task in read] == [task.to_dict() for task in TASKS]
    assert (await read.run(three)).coverage == (3, 3)


@example(["a\u2028b\x85c\x0bd"])  # what ends a line elsewhere ends no row
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, max_size=5))
def test_any_text_survives_a_file_of_rows(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    file = str(tmp_path_factory.getbasetemp() / "words.jsonl")
    Taskset("words", [say(word=word) for word in words]).to_file(file)
    assert [task.args["word"] for task in Taskset.from_file(file, env=ENV)] == words


def test_what_has_no_row_form_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end it in .json or .jsonl"):
        Taskset("sums", TASKS).to_file(str(tmp_path / "sums.csv"))
    foreign = Task(id="case", work=TASKS[0].work)
    with pytest.raises(InputError, match="'case' is not a template's task"):
        Taskset("sums", [foreign]).to_file(str(tmp_path / "sums.json"))


ROWS: list[tuple[str, str, str]] = [
    ("rows.jsonl", '{"id": "add"}\n{"id": ', "rows.jsonl:2: not JSON"),
    ("rows.jsonl", "[1]", "rows.jsonl:1: a row must be a JSON object"),
    ("rows.jsonl", '\n\n{"ids": "add"}', "rows.jsonl:3: unknown field 'ids' (did you mean 'id'?)"),
    ("rows.jsonl", '{"id": 3}', "rows.jsonl:1: a row needs an 'id'"),
    ("rows.jsonl", '{"id": "add", "args": []}', "rows.jsonl:1: a row needs an 'id'"),
    ("rows.jsonl", '{"id": "adds"}', "no template 'adds' (did you mean 'add'?)"),
    ("rows.jsonl", '{"id": "add", "args": {"c": 1}}', "rows.jsonl:1: template 'add'"),
    ("rows.jsonl", '{"id": "add", "env": "other"}', "the environment 'other' is not given"),
    ("rows.json", "{}", "rows.json: a task file is a list of rows"),
    ("rows.json", "[", "rows.json: not JSON"),
    ("rows.jsonl", '{"id": "add"}\n{"id": "add"}', "have the slug 'add'"),
]


@each(("name", "text", "why"), ROWS)
def test_malformed_rows_name_their_file_and_line(
    name: str, text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        Taskset.from_file(str(tmp_path / name), env=ENV)
    assert why in str(caught.value)


def test_files_that_are_no_text_or_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(InputError, match=r"cannot read .*rows.jsonl"):
        Taskset.from_file(str(tmp_path / "rows.jsonl"), env=ENV)
    with pytest.raises(InputError, match="does not exist"):
        Taskset.from_file(str(tmp_path / "gone.json"))


MODULE = """
from assay import Environment, Taskset
env = Environment("words")

@env.template()
async def say(word: str = "hi"):
    answer = yield word
    yield 1.0

@env.template()
async def needs(word: str):
    yield word
    yield 1.0
"""


def test_the_tasks_of_a_module_are_its_tasks_else_its_environments(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(MODULE)
    assert [t.id for t in Taskset.from_file(str(tmp_path / "bare.py"))] == ["say"]
    (tmp_path / "own.py").write_text(
        MODULE + "\none = needs('a')\nmore = Taskset('more', [needs('b'), one])\n"
    )
    assert [t.args for t in Taskset.from_file(str(tmp_path / "own.py"))] == [
        {"word": "a"},
        {"word": "b"},
    ]
    (tmp_path / "none.py").write_text("x = 1")
    with pytest.raises(InputError, match="defines no tasks"):
        Taskset.from_file(str(tmp_path / "none.py"))


def test_attack_rows_run_no_python_that_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(
        f"{MODULE}\n__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()\n"
    )
    row = {"env": "words", "id": "needs", "args": {"word": "x"}, "slug": "s", "metadata": {"k": 1}}
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    with pytest.raises(InputError, match=r"'words' is not given \(it may be in .*env='.*words.py'"):
        Taskset.from_file(str(tmp_path / "rows.json"))
    assert not (tmp_path / "ran").exists()
    (task,) = Taskset.from_file(str(tmp_path / "rows.json"), env=str(tmp_path / "words.py"))
    assert task.to_dict() == row
    for env, why in (("gone.py", "there is no file"), ("none.py", "has no environment")):
        (tmp_path / "none.py").write_text("")
        with pytest.raises(InputError, match=why):
            Taskset.from_file(str(tmp_path / "rows.json"), env=str(tmp_path / env))
