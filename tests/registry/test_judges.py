"""Stored judges: they grade in every way that graders do, and say what they rest on."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from assay.errors import InputError
from assay.models import ModelClient, ModelSettings, using
from assay.registry import Definition, ValidationFailedError
from assay.registry.files import yaml_text
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.store import Database
from assay.testing import Asked, FakeJudge
from assay.types.submission import Submission
from tests.command_line import Command, numbers_of
from tests.each import each
from tests.grader_definitions import StoredGraders, changed, definition
from tests.written_files import write_rows

CRITERIA = "The answer names the capital of France."
ROWS: list[dict[str, Json]] = [
    {"id": "right", "question": "Capital of France?", "answer": "It is Paris."},
    {"id": "wrong", "question": "Capital of France?", "answer": "It is Lyon."},
    {"id": "empty", "question": "Capital of France?", "answer": "Answer:"},
    {"id": "na", "messages": [{"role": "user", "content": "Hello"}], "completion": "Hi, no idea."},
]


def knows(asked: Asked) -> Json:
    """A judge that knows one capital, and replies in the form that it is asked for."""
    answer = next(fence.text for fence in asked.fences if fence.name == "answer")
    properties = cast("dict[str, Json]", (asked.schema or {})["properties"])
    score = "PASS" if "Paris" in answer else "NA" if "no idea" in answer else "FAIL"
    said: dict[str, Json] = {"reasoning": f"so: {answer}", "score": score}
    return {"evidence": ["Paris"], **said} if "evidence" in properties else said


@pytest.fixture
def fake() -> Generator[FakeJudge]:
    with FakeJudge(knows) as made:
        yield made


URL = "http://127.0.0.1:9/v1#m"


def _declared(**options: Json) -> Definition:
    return definition("declared", graders=({"type": "llm_judge", "criteria": ["c"], **options},))


AT_URLS: list[Definition] = [
    definition("binary_judge", criteria="c", judge_model=URL),
    definition("binary_judge", criteria="c", judge_model="m", panel={"escalate": URL}),
    definition("prebuilt_judge", type="FAITHFULNESS", judge_model=f"anthropic+{URL}"),
    _declared(model=URL),
    _declared(models=["gpt-5", URL]),
    _declared(type="binary_judge", criteria="c", model=URL),
]


@each("definition", AT_URLS)
async def test_attack_a_stored_judge_makes_a_server_call_an_address(
    definition: Definition, database: Database
) -> None:
    registry = StoredGraders(database)
    with pytest.raises(ValidationFailedError, match="may not name the address of a model"):
        await registry.create("ssrf", definition)
    file = yaml_text({"kind": definition.kind, "definition": definition.to_dict()})
    with pytest.raises(ValidationFailedError, match="may not name the address of a model"):
        await registry.import_files({"ssrf.yaml": file})
    allowed = StoredGraders(database, permissions=Permissions(internal=True))
    await allowed.create("ssrf", definition)
    with pytest.raises(InputError, match="may not name the address of a model"):
        await registry.grade("ssrf", [("1", Submission(answer="hello world"))])
    registry.delete("ssrf")


async def test_a_model_of_the_settings_file_needs_no_permission(
    fake: FakeJudge, registry: StoredGraders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: dict[str, Json] = {"base_url": fake.base_url, "protocol": "openai", "model": "fake"}
    file = tmp_path / "models.yaml"
    file.write_text(json.dumps({"endpoints": {"local": named}}))
    monkeypatch.setenv("ASSAY_MODELS", str(file))
    made = definition("binary_judge", criteria=CRITERIA, judge_model="local")
    with using(ModelClient(ModelSettings.from_environment())):
        await registry.create("named", made)
        (graded,) = await registry.grade("named", [("1", Submission(answer="It is Paris."))])
    assert graded.score == 1.0


def test_a_stored_judge_is_graded_by_what_is_stored() -> None:
    plain = definition("binary_judge", criteria="c", judge_model="m")
    (spec,) = plain.specs
    assert (spec.type, dict(spec.options)) == ("binary_judge", {"criteria": "c", "model": "m"})
    panel = {"repeats": 3, "aggregate": "mean"}
    full = changed(plain, few_shot=2, allow_na=True, panel=panel)
    asked = {"criteria": "c", "model": "m", "few_shot": 2, "allow_na": True}
    assert dict(full.specs[0].options) == {**asked, **panel}
    for kind in ("FAITHFULNESS", "CONTEXT_RELEVANCY", "ANSWER_RELEVANCY"):
        (spec,) = definition("prebuilt_judge", type=kind, judge_model="m").specs
        assert (spec.type, dict(spec.options)) == (kind.lower(), {"model": "m"})


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("rows.jsonl"), ROWS)
    Path("examples.jsonl").write_text('{"input": "q", "output": "Rome", "pass": false}\n\n')
    Path("user.hbs").write_text("{{tone}}\n{{#each examples}}{{label}}{{/each}}\n{{completion}}")
    Path("variables.json").write_text('{"tone": "strict"}')
    return Command(capsys)


def _set(**options: str) -> list[str]:
    return [word for name, value in options.items() for word in ("--set", f"{name}={value}")]


def test_the_command_line_stores_tests_and_shows_a_judge(command: Command, fake: FakeJudge) -> None:
    judge = _set(kind="binary_judge", criteria=CRITERIA, judge_model=fake.model, allow_na="true")
    files = _set(
        examples="@examples.jsonl", user_template="@user.hbs", template_variables="@variables.json"
    )
    made = command.json("graders", "create", "capital", *judge, *files)
    assert made["warnings"] == []
    latest = cast("dict[str, dict[str, dict[str, Json]]]", made["grader"])["latest"]
    assert latest["definition"]["template_variables"] == {"tone": "strict"}
    assert len(cast("list[Json]", latest["definition"]["examples"])) == 1
    tested = command.json("grade", "rows.jsonl", "capital", status=1)
    assert numbers_of(tested)["reward"]["mean"] == pytest.approx(1 / 3)
    assert "FAIL" in fake.requests[0].outside
    command.json("graders", "export")
    code, out, _ = command("validate", "graders/capital.yaml")
    assert code == 0
    assert "--- user ---\nFORM: binary\n\nstrict\nFAIL\n<untrusted " in out
    assert "CRITERION:\nThe answer names" in out
    reports = command.json("validate", "graders/capital.yaml")["reports"]
    (report,) = cast("dict[str, dict[str, list[str]]]", reports).values()
    assert "strict" in report["preview"][1]


def test_the_command_line_tells_what_looks_wrong(command: Command, fake: FakeJudge) -> None:
    judge = _set(kind="binary_judge", criteria="c", judge_model=fake.model)
    typo = ["typo", *judge, *_set(user_template="@user.hbs")]
    Path("user.hbs").write_text("{{completon}}")
    code, out, _ = command("graders", "create", *typo)
    assert (code, "did you mean 'completion'" in out) == (0, True)
    shown = " ".join(command("graders", "show", "typo")[1].split())
    assert "did you mean 'completion'" in shown
    assert len(cast("list[str]", command.json("graders", "show", "typo")["warnings"])) == 2
    Path("user.hbs").write_text("\n{{#if x}}")
    code, _, err = command("graders", "update", *typo)
    assert (code, "user_template: line 2: {{#if}} is not closed" in err) == (2, True)
    code, out, _ = command("graders", "create", "unknown", *judge[:4], *_set(judge_model="nobodys"))
    assert (code, "cannot ask its model" in out) == (0, True)
    Path("examples.jsonl").write_text('{"input": "q", "output": "o", "pass": 1}')
    Path("v.json").write_text("{{")
    wrong = {"examples": "examples[0].pass: ", "template_variables": "v.json: not JSON"}
    for field, said in wrong.items():
        file = "@examples.jsonl" if field == "examples" else "@v.json"
        code, _, err = command("graders", "create", "bad", *judge, *_set(**{field: file}))
        assert (code, said in err) == (2, True)
