"""Declared graders: every mistake is found where the declaration is read, with its place."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest

from assay.errors import InputError
from assay.graders.kinds import KINDS, kind_of
from assay.graders.spec import GraderSpec, read_spec, spec_schema
from assay.scoring import Json
from assay.types.codec import Problem
from tests.each import each
from tests.wrong_input import mistakes

EXAMPLE: Json = {"input": "a", "output": "b", "pass": True}
TURN: Json = {"role": "user", "content": "Right?"}
CHECK: dict[str, Json] = {"type": "string_check", "reference": "a", "operation": "eq"}
EQUAL: Json = {**CHECK, "name": "a", "input": "a"}
LABELS: dict[str, Json] = {"labels": ["a"], "passing_labels": ["a"]}
GOOD: list[dict[str, Json]] = [
    {"type": "exact_match"},
    {"type": "exact_match", "expected": "42", "normalize_text": False},
    {"type": "contains", "substring": "a", "name": "has a", "weight": 2},
    {"type": "contains_any", "substrings": ["a", "b"], "weight": -0.5},
    {"type": "contains_all", "substrings": ["a"], "gate": True},
    {"type": "numeric_match", "expected": 4, "tolerance": 0.1},
    {"type": "f1_score"},
    {"type": "regex_match", "pattern": "a+", "full": True},
    {"type": "json_match", "expected": {"a": [1]}},
    {"type": "json_schema", "schema": {"type": "object"}},
    {"type": "choice_match", "choices": ["A", "B"]},
    {"type": "similarity", "metric": "rouge_l", "threshold": 0.5},
    {"type": "math_equal"},
    {"type": "command", "cmd": "make test", "expect_exit": 1, "timeout_s": 5},
    {"type": "files", "expect_dir": "wanted", "files": ["*.py"]},
    {"type": "files", "patterns": ["a"]},
    {"type": "pytest", "inject": ["wanted", {"src": "wanted/a", "dest": "t/a"}]},
    {"type": "tests", "cmd": "make", "junit_xml": ["a.xml"]},
    {"type": "swebench", "fail_to_pass": ["t::a"]},
    {"type": "implemented", "gate": True},
    {"type": "model_judge", "rubric": "rubric.md", "models": ["m"]},
    {"type": "agent_judge", "criteria": ["a"], "model": "m", "steps": 20, "max_cost_usd": 0.5},
    {"type": "trace", "require_tools": [{"kind": "write"}], "max_tool_calls": {"read": 3}},
    {"type": "tool_correctness", "expected": ["read", {"name": "Edit"}]},
    {"type": "efficiency", "target_cost_usd": 0.5},
    {"type": "c_tests", "headers": ["kit.h"], "sources": ["kit.c"], "tests": ["kit_test.c"]},
    {"type": "audit", "ignore": ["exits"], "patterns": ["b"]},
    {"type": "llm_judge", "criteria": ["a"], "models": ["m"], "repeats": 3, "quorum": 2},
    {"type": "binary_judge", "criteria": "a", "examples": [EXAMPLE]},
    {"type": "faithfulness", "documents": ["a"], "max_claims": 9},
    {"type": "context_relevancy", "documents": ["a"]},
    {"type": "answer_relevancy", "on_empty": "skip"},
    {"type": "pairwise", "criteria": "a", "other": "b"},
    {"type": "function", "source": "def grade(answer): return 1.0", "range": [0, 2]},
    {"type": "external_endpoint", "url": "https://example.com", "retries": 1},
    {**CHECK, "input": "{{sample.output_text}}"},
    {"type": "text_similarity", "input": "a", "reference": "b", "evaluation_metric": "bleu"},
    {"type": "score_model", "input": [TURN], "model": "m", "range": [0, 1]},
    {"type": "label_model", "input": [TURN], "model": "m", **LABELS},
    {"type": "openai_python", "source": "def grade(sample, item): return 1.0"},
    {"type": "multi", "graders": {"a": EQUAL}, "calculate_output": "a"},
]

WORDS: list[tuple[Json, str, str]] = [
    ("exact_match", "", "a grader is a mapping with a 'type'"),
    ({}, "type", "'type' is required (one of command, files"),
    ({"type": "exact_macth"}, "type", "unknown grader type 'exact_macth' (did you mean"),
    ({"type": "files", "pattern": ["a"]}, "pattern", "no option 'pattern' (did you mean 'pattern"),
    ({"type": "exact_match", "weight": math.nan}, "weight", "must be finite, got nan"),
    ({"type": "exact_match", "gate": True, "weight": -2}, "weight", "a gate adds no credit"),
    ({"type": "files", "expect_dir": "gone"}, "expect_dir", "'gone' does not exist (looked for it"),
    (
        {"type": "model_judge", "rubric": "Is it?"},
        "rubric",
        "(model_judge takes the text as 'words",
    ),
    ({"type": "command", "cmd": " "}, "cmd", "must not be blank"),
    ({"type": "pytest", "inject": [{"src": "gone", "dest": "a"}]}, "inject[0].src", "not exist"),
    ({"type": "python:nowhere:X"}, "type", "cannot be imported: ModuleNotFoundError"),
    ({"type": "python:own.py:Lenght"}, "type", "no Grader 'Lenght' (did you mean 'Length'?)"),
    ({"type": "python:own.py:NotOne"}, "type", "has no Grader 'NotOne'"),
    ({"type": "python:own.py"}, "type", "must be python:module:Class"),
    ({"type": "python:broken.py:X"}, "type", "cannot be imported: ZeroDivisionError"),
    ({"type": "python:gone.py:X"}, "type", "cannot be imported: FileNotFoundError"),
    ({"type": "exact_match", "extract": "boxd"}, "extract", "did you mean 'boxed'"),
    ({"type": "f1_score", "extract": "("}, "extract", "RE2 refuses the pattern"),
    ({"type": "math_equal", "extract": "("}, "extract", "RE2 refuses the pattern"),
    ({"type": "json_match", "tolerance": -1}, "tolerance", "at least 0"),
    ({"type": "numeric_match", "tolerance": -1}, "tolerance", "at least 0"),
    ({"type": "choice_match", "choices": ["yes", "Yes"]}, "choices", "hold a label twice"),
    ({"type": "choice_match", "choices": ["a", "b"], "extract": "("}, "extract", "RE2 refuses"),
    ({"type": "regex_match", "pattern": "("}, "pattern", "RE2 refuses the pattern"),
    ({"type": "json_schema", "schema": {"type": "objekt"}}, "schema", "objekt"),
    ({"kind": "exact_match"}, "type", "'kind' is called 'type'"),
    ({"type": "python:own.py:Length"}, "target", "needs 'target'"),
    ({"type": "python:own.py:Length", "target": "x"}, "target", "expected a whole number, got 'x'"),
    ({"type": "python:own.py:Length", "target": 3, "tarket": 3}, "tarket", "did you mean 'target'"),
]
"""What no schema knows, and samples of the words; all other mistakes are made from the schema."""

OWN = """
from assay.graders import Grader

class Length(Grader):
    '''Long enough.'''

    name = "length"

    @classmethod
    async def compute_score(cls, answer: str, target: int, tags: set[str] = frozenset()):
        return 1.0 if len(answer) >= target else 0.0

class Free(Grader):
    @classmethod
    def compute_score(cls, **options):
        return 1.0

class NotOne:
    pass
"""


ENDPOINT: dict[str, Json] = {"type": "external_endpoint", "url": "https://example.com"}
AGENT: dict[str, Json] = {"type": "agent_judge", "criteria": ["a"]}
SWEBENCH: dict[str, Json] = {"type": "swebench", "fail_to_pass": ["a"]}
BOUNDS: list[tuple[dict[str, Json], dict[str, Json], str]] = [
    (ENDPOINT, {"timeout_seconds": 0}, "must be above 0 and at most 3600"),
    (ENDPOINT, {"batch": 0}, "must be in [1, 4096]"),
    (ENDPOINT, {"parallel": 1000}, "must be in [1, 64]"),
    (ENDPOINT, {"retries": -1}, "must be in [0, 10]"),
    (AGENT, {"steps": 0}, "must be in [1, 1000]"),
    (AGENT, {"max_cost_usd": 0}, "must be more than 0"),
    (AGENT, {"pass_threshold": 2}, "must be in [0, 1]"),
    ({"type": "command", "cmd": "true"}, {"timeout_s": 0}, "must be more than 0"),
    ({"type": "files", "patterns": ["a"]}, {"files": []}, "must not be empty"),
    ({"type": "trace"}, {"max_tool_calls": -1}, "0 or more"),
    ({"type": "model_judge", "words": "a"}, {"pass_threshold": 1.5}, "must be in [0, 1]"),
    ({"type": "pytest"}, {"pass_threshold": 1.5}, "must be in [0, 1]"),
    ({"type": "pytest"}, {"timeout_s": 0}, "must be more than 0"),
    (SWEBENCH, {"timeout_s": 0}, "must be more than 0"),
    (SWEBENCH, {"pass_threshold": 1.5}, "must be in [0, 1]"),
]
"""What the schema's own mistakes cannot notice: they are made from the same annotations."""


@pytest.fixture
def base(tmp_path: Path) -> str:
    (tmp_path / "wanted").mkdir()
    (tmp_path / "wanted" / "a").touch()
    (tmp_path / "rubric.md").write_text("It is clear.")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("1 / 0")
    return str(tmp_path)


def reading(data: Json, base: str) -> tuple[GraderSpec | None, list[Problem]]:
    problems: list[Problem] = []
    return read_spec(data, ("graders", 2), problems, base=base), problems


@each("data", GOOD)
def test_every_kind_can_be_declared(data: dict[str, Json], base: str) -> None:
    spec, problems = reading(data, base)
    assert problems == []
    assert spec is not None
    assert (spec.type, spec.weight) == (data["type"], data.get("weight", 1.0))
    assert spec.label == data.get("name", data["type"])
    assert set(spec.options) == set(data) - {"type", "name", "weight", "gate"}


@each(("data", "field", "message"), WORDS)
def test_mistakes_are_named_with_their_place(
    data: Json, field: str, message: str, base: str
) -> None:
    spec, problems = reading(data, base)
    assert spec is None
    found = {p.field: f"{p.message} ({p.hint})" for p in problems}
    assert message in found[f"graders[2].{field}".removesuffix(".")]


@each(("right", "beyond", "message"), BOUNDS)
def test_an_option_beyond_its_bounds_is_refused(
    right: dict[str, Json], beyond: dict[str, Json], message: str
) -> None:
    spec, problems = reading({**right, **beyond}, "/")
    assert spec is None
    assert problems[0].path[-1] in beyond
    assert message in problems[0].message


@each("kind", KINDS)
def test_whatever_no_option_can_be_is_refused_with_its_place(kind: str, base: str) -> None:
    assert (kind_of(kind).name, bool(kind_of(kind).description)) == (kind, True)
    with pytest.raises(InputError, match=f"did you mean '{kind}'"):
        kind_of(f"{kind}x")
    schema = spec_schema()
    branches = cast("list[dict[str, Any]]", schema["oneOf"])
    branch = next(one for one in branches if one["properties"]["type"].get("const") == kind)
    (right, *_) = [data for data in GOOD if data["type"] == kind]
    for place, wrong in mistakes({**branch, "$defs": schema["$defs"]}, right):
        if place[:1] in ((), ("type",)):
            continue  # of which kind it is, is not known then
        spec, problems = reading(wrong, base)
        assert spec is None, (place, wrong)
        assert place in [p.path[2:][: len(place)] for p in problems], (place, wrong)


def test_all_mistakes_are_found_at_once(base: str) -> None:
    data: Json = {"type": "command", "weight": "x", "cwd": ".", "timeout_s": "1"}
    _, problems = reading(data, base)
    assert [p.path[-1] for p in problems] == ["weight", "cwd", "timeout_s", "cmd"]


def test_paths_are_made_absolute(base: str) -> None:
    spec, _ = reading({"type": "files", "expect_dir": "./wanted"}, base)
    assert spec is not None
    assert spec.options["expect_dir"] == str(Path(base, "wanted").resolve())


@each("place", ["own.py", "./own.py"])
def test_a_grader_of_ones_own_stands_in_a_file_beside_the_case(place: str, base: str) -> None:
    # Its "tags" are of a type that no file can hold.
    data: Json = {"type": f"python:{place}:Length", "target": 3, "tags": ["a"]}
    spec, problems = reading(data, base)
    assert problems == []
    assert spec is not None
    assert spec.label == "length"  # as the class calls itself
    assert spec.type == f"python:{Path(base, 'own.py').resolve()}:Length"
    assert spec.kind.description == "Long enough."
    spec, _ = reading({"type": f"python:{place}:Free", "whatever": [1]}, base)
    assert spec is not None
    assert spec.options == {"whatever": [1]}


def test_the_schema_takes_what_the_reader_takes() -> None:
    validator = jsonschema_rs.validator_for(spec_schema())
    for data in GOOD:
        assert validator.is_valid(data), data
    for kind in KINDS:
        assert not validator.is_valid({"type": kind, "no such option": 1})
    assert validator.is_valid({"type": "python:own:Grader", "anything": 1})
