"""Definitions of stored graders: what each kind may say, where a mistake is, and the digest."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.documents import parse_document
from assay.graders.judges.panel import DEFAULT_MODEL
from assay.graders.spec import GraderSpec
from assay.registry import KINDS, definition_from
from assay.registry.files import yaml_text
from assay.scoring.json_safe import Json
from assay.types.codec import ShapeError
from tests.each import each
from tests.grader_definitions import changed, definition
from tests.wrong_input import nested

_ASKED: Json = [{"role": "user", "content": "2+2?"}]
_EXAMPLE: dict[str, Json] = {"input": _ASKED, "output": "4", "pass": True, "reasoning": "it is"}
_EXACT: dict[str, Json] = {"type": "exact_match"}

GOOD: list[tuple[str, dict[str, Json]]] = [
    ("function", {"source": "async def grade(thread): return 1.0"}),
    ("function", {"source": "x", "isolation": "batch", "range": [-1.0, 1.0]}),
    ("binary_judge", {"criteria": "helps", "judge_model": "m"}),
    ("binary_judge", {"criteria": "helps", "judge_model": "m", "examples": [_EXAMPLE]}),
    ("prebuilt_judge", {"type": "FAITHFULNESS", "judge_model": "m"}),
    ("prebuilt_judge", {"type": "CONTEXT_RELEVANCY", "judge_model": "m"}),
    ("prebuilt_judge", {"type": "ANSWER_RELEVANCY", "judge_model": "m"}),
    ("external_endpoint", {"url": "https://rewards.example.com"}),
    ("external_endpoint", {"url": "https://r", "secret_env": "ASSAY_SECRET_R", "auth": "hmac"}),
    ("custom", {}),
    ("custom", {"path": "python:project.graders:Strict", "description": "house style"}),
    ("declared", {"graders": [{"type": "exact_match"}], "threshold": 0.5}),
    ("declared", {"graders": [{"type": "exact_match", "gate": True}, {"type": "f1_score"}]}),
]


@each(("kind", "data"), GOOD)
def test_a_definition_is_read_and_written_back(kind: str, data: dict[str, Json]) -> None:
    definition = definition_from(kind, data)
    assert definition.kind == kind
    assert definition.to_dict() == data
    assert definition_from(kind, definition.to_dict()) == definition


def test_every_kind_is_tried_and_what_has_its_default_is_left_out() -> None:
    assert {kind for kind, _ in GOOD} == set(KINDS)
    assert definition("function", source="x", isolation="call").to_dict() == {"source": "x"}
    made = definition_from("external_endpoint", {"url": "https://x.com", "batch": 32})
    assert made.to_dict() == {"url": "https://x.com"}


def _endpoint(**options: Json) -> tuple[str, dict[str, Json]]:
    return "external_endpoint", {"url": "https://rewards.example.com", **options}


def _judge(**options: Json) -> tuple[str, dict[str, Json]]:
    return "binary_judge", {"criteria": "c", "judge_model": "m", **options}


def _declared(*graders: Json, **options: Json) -> tuple[str, dict[str, Json]]:
    return "declared", {"graders": list(graders), **options}


_GRADED: Json = {"type": "contains", "substring": {"from": "answer"}}
BAD: list[tuple[tuple[str, dict[str, Json]], str, str]] = [
    (("functoin", {}), "kind", "did you mean 'function'"),
    (("function", {}), "source", "'source' is required"),
    (("function", {"source": "x", "sorce": "y"}), "sorce", "did you mean 'source'"),
    (("function", {"source": "x", "range": [1, 0]}), "range", "the lower"),
    (("function", {"source": "x", "range": [0, 0.5, 1]}), "range", "two numbers"),
    (_judge(criteria="  \n"), "criteria", "must not be empty"),
    (_judge(judge_model=""), "judge_model", "a model reference"),
    (_judge(criteria="é" * 40_000), "criteria", "80000 bytes; the limit is 65536"),
    (_judge(user_template="x" * 65_537), "user_template", "65537 bytes"),
    (_judge(user_template="{{#if x}}"), "user_template", "line 1: {{#if}} is not closed"),
    (_judge(system_template="{{> x}}"), "system_template", "partials"),
    (_judge(few_shot=10), "few_shot", "0..8"),
    (_judge(template_variables={"a-b": 1}), "template_variables", "not the name of a variable"),
    (_judge(panel={"repeat": 2}), "panel.repeat", "did you mean 'repeats'?"),
    (_judge(panel={"repeats": 0}), "panel.repeats", "1..100"),
    (_judge(judge_model="a b"), "judge_model", "not a model reference"),
    (_judge(examples=[{**_EXAMPLE, "pass": "yes"}]), "examples[0].pass", "true or false"),
    (_judge(examples=[{"input": [], "output": ""}]), "examples[0].pass", "missing: pass"),
    (_judge(examples=[{**_EXAMPLE, "input": []}]), "examples[0].input", "list of messages"),
    (_judge(examples=[{**_EXAMPLE, "input": 1}]), "examples[0].input", "must be a list"),
    (
        _judge(examples=[{**_EXAMPLE, "input": [{"content": "x"}]}]),
        "examples[0].input[0]",
        "'role'",
    ),
    (_judge(examples=[*[_EXAMPLE] * 101]), "examples", "the limit is 100"),
    (("prebuilt_judge", {"type": "FAITH", "judge_model": "m"}), "type", "FAITHFULNESS"),
    (_endpoint(url="ftp://x.com"), "url", "http"),
    (_endpoint(url="https://me:secret@x.com"), "url", "credentials"),
    (_endpoint(url="https://x.com/?key=1"), "url", "no query"),
    (_endpoint(url="http://127.0.0.1:8000"), "url", "allow_internal"),
    (_endpoint(url="http://169.254.169.254", allow_internal=True), "url", "metadata"),
    (_endpoint(secret_env="my secret"), "secret_env", "ASSAY_SECRET_"),
    (_endpoint(auth="bearer"), "auth", "secret_env"),
    (_endpoint(url="http://r.example", secret_env="ASSAY_SECRET_X"), "auth", "over http"),
    (_endpoint(secret_env="ASSAY_SECRET_X", auth="none"), "secret_env", "auth is 'none'"),
    (_endpoint(batch=0), "batch", "must be in [1, 4096]"),
    (_endpoint(timeout_seconds=0), "timeout_seconds", "above 0"),
    (_endpoint(range=[1, 1]), "range", "the lower"),
    (_endpoint(protocol="openrl"), "protocol", "did you mean 'openrlhf'"),
    (("custom", {"path": "project.graders"}), "path", "python:module:Class"),
    (("custom", {"path": "python:./graders.py:Strict"}), "path", "python:module:Class"),
    (("custom", {"path": "python:a.b:C\n"}), "path", "python:module:Class"),
    (_judge(criteria={"from": "metadata.x"}), "criteria", "kind 'declared'"),
    (_declared(), "graders", "no graders"),
    (_declared(_GRADED), "graders[0].substring.from", "is what is graded"),
    (_declared({"type": "exact_mach"}), "graders[0].type", "did you mean 'exact_match'"),
    (_declared({"type": "contains"}), "graders[0].substring", "needs 'substring'"),
    (_declared({"type": "exact_match", "gate": True}), "graders", "adds credit"),
    (_declared({"type": "exact_match", "weight": -1}), "graders", "adds credit"),
    (_declared({"type": "exact_match"}, threshold=1.5), "threshold", "from 0 to 1"),
    (_declared(*[_EXACT] * 101), "graders", "the limit is 100"),
]


@each(("given_", "field", "said"), BAD)
def test_a_mistake_is_named_with_its_field(
    given_: tuple[str, dict[str, Json]], field: str, said: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        definition_from(*given_)
    problems = {p.field: f"{p.message} {p.hint}" for p in caught.value.problems}
    assert said in problems[field]


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(ShapeError) as caught:
        definition_from("binary_judge", {"criteria": 1, "model": "m", "examples": {}})
    assert [p.field for p in caught.value.problems] == ["criteria", "model", "examples"]


@each(
    ("kind", "data"),
    [("binary_judge", {"criteria": "helps"}), ("prebuilt_judge", {"type": "FAITHFULNESS"})],
)
def test_a_judge_s_model_has_one_default_which_is_stored(kind: str, data: dict[str, Json]) -> None:
    found = definition_from(kind, data)
    assert found.to_dict()["judge_model"] == DEFAULT_MODEL
    assert found.specs[0].options["model"] == DEFAULT_MODEL
    said = definition_from(kind, {**data, "judge_model": DEFAULT_MODEL})
    assert said.digest() == found.digest()


@each(
    ("value", "said"),
    [
        (nested(100_000), "levels deep"),
        ("\ud800", "half a character"),
        ({"\udfff": 1}, "half a character"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1 << 300, "301 bits"),
        ("x" * (1 << 20), "larger than"),
        ([0] * (1 << 20), "larger than"),
    ],
)
def test_attack_what_cannot_be_stored_or_shown_is_refused(value: Json, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        definition_from("declared", {"graders": [{"type": "exact_match", "expected": value}]})


def test_attack_a_declared_grader_probes_no_files(tmp_path: Path) -> None:
    there, absent = tmp_path / "there", tmp_path / "absent"
    there.mkdir()
    said: list[str] = []
    for place in (there, absent):
        with pytest.raises(ShapeError) as caught:
            definition_from(*_declared({"type": "files", "expect_dir": str(place)}))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "names a file" in said[0]


@pytest.mark.parametrize("name", ["python:planted:Grader", "python:./planted.py:Grader"])
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_attack_a_declared_grader_imports_no_class(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "imported"
    (tmp_path / "planted.py").write_text(f"open({str(proof)!r}, 'w')", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    grader: Json = {"type": name}
    outer: Json = (
        {"type": "json_schema", "schema": {"x": [grader]}} if place == "inside" else grader
    )
    with pytest.raises(ShapeError, match="imports no class"):
        definition_from(*_declared(outer))
    assert not proof.exists()
    assert "planted" not in sys.modules


@each("name", ["PATH", "AWS_SECRET_ACCESS_KEY", "ASSAY_SECRET_", "assay_secret_x"])
def test_attack_an_endpoint_takes_no_other_variable_of_the_server(name: str) -> None:
    with pytest.raises(ShapeError) as alone:
        definition_from(*_endpoint(secret_env=name))
    with pytest.raises(ShapeError) as inside:
        definition_from(
            *_declared({"type": "external_endpoint", "url": "https://x.com", "secret_env": name})
        )
    for caught in (alone, inside):
        assert "ASSAY_SECRET_" in str(caught.value)
        assert name not in str(caught.value) or name == "ASSAY_SECRET_"


_JUDGE = definition("binary_judge", criteria="exact_match", judge_model="m")
_GUIDED = changed(_JUDGE, examples=[{"input": "q", "output": "o", "pass": True}])
_OTHERS = [
    definition("declared", graders=(_EXACT,), threshold=0.5),
    definition("declared", graders=({**_EXACT, "weight": 2.0},)),
    definition("declared", graders=({"type": "f1_score"},)),
    definition("function", source="exact_match"),
    definition("external_endpoint", url="https://x.com"),
    _JUDGE,
    _GUIDED,
    changed(_JUDGE, criteria="d"),
    changed(_JUDGE, judge_model="n"),
    changed(_JUDGE, system_template="s"),
    changed(_JUDGE, user_template="{{completion}}"),
    changed(_JUDGE, template_variables={"x": 1}),
    changed(_JUDGE, allow_na=True),
    changed(_JUDGE, few_shot=1),
    changed(_JUDGE, panel={"repeats": 3}),
]


def test_whatever_changes_scores_changes_the_digest() -> None:
    one = definition("declared", graders=(_EXACT,))
    same = definition_from("declared", {"threshold": 1.0, "graders": [_EXACT]})
    assert one.digest() == same.digest()
    assert len(one.digest()) == 64
    assert len({one.digest(), *(other.digest() for other in _OTHERS)}) == 1 + len(_OTHERS)
    for other in _OTHERS:
        again = definition_from(other.kind, other.to_dict())
        assert (again, again.digest()) == (other, other.digest())


def test_the_digest_changes_with_the_code_that_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    def another(spec: GraderSpec) -> str:
        return f"another assay's {spec.type}"

    made = definition("function", source="x")
    before = made.digest()
    monkeypatch.setattr("assay.graders.digest.grader_digest", another)
    assert made.digest() != before


_TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text("ab \n\t:#-'\"|>é.", max_size=12)
    | st.sampled_from(
        ["1e3", "0o17", "no", "null", "~", "12:30", "0x1f", "NaN", "<<", "- a", "a: b"]
    )
)
_DATA: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_TEXTS, _DATA, max_size=4))
def test_data_comes_back_from_its_yaml_and_gives_the_same_bytes(data: dict[str, Json]) -> None:
    text = yaml_text(data, sort_keys=True)
    back = parse_document(text).data
    assert back == data
    assert yaml_text(back, sort_keys=True) == text


def test_yaml_is_what_people_would_write() -> None:
    data: Json = {"type": "exact_match", "a": ["x", {"b": 1}], "long": "one\ntwo\n", "on": "yes"}
    assert yaml_text(data, sort_keys=True) == (
        "a:\n  - x\n  - b: 1\nlong: |\n  one\n  two\n'on': 'yes'\ntype: exact_match\n"
    )


def test_attack_a_large_schema_is_not_compared_with_the_names_of_graders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each `type` in it was: a schema of a megabyte kept a core busy for half a minute."""
    asked: list[str] = []

    def close(name: str, *_: object, **__: object) -> list[str]:
        asked.append(name)
        return []

    monkeypatch.setattr(difflib, "get_close_matches", close)
    schema: Json = {"allOf": [{"properties": {f"p{n}": {"type": "string"}}} for n in range(500)]}
    definition_from("declared", {"graders": [{"type": "json_schema", "schema": schema}]})
    assert asked == []
