"""OpenAI's python graders in the sandbox: what they are given, and whose fault a failure is."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest

from assay.errors import InputError
from assay.graders.apply import grade_submission
from assay.graders.openai import python as openai_python
from assay.graders.openai.definitions import check_declared, declaration, lacking, read_definition
from assay.graders.openai.static import foreign_imports, imported_packages
from assay.graders.spec import GraderSpec, read_spec
from assay.interop.openai_api import check_grader
from assay.interop.openai_read import read_dump
from assay.interop.openai_suite import suites_of
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.tasks.grader_files import load_graders
from assay.types.codec import Problem, ShapeError
from assay.types.submission import Submission
from tests.each import each

pytestmark = pytest.mark.sandbox


def spec_of(declared: Mapping[str, Json]) -> GraderSpec:
    problems: list[Problem] = []
    spec = read_spec(dict(declared), (), problems, base=".")
    assert spec is not None, problems
    return spec


async def grade(
    source: str, answer: str = "Paris", item: dict[str, Json] | None = None, **options: Json
) -> SubScore:
    text = textwrap.dedent(source)
    spec = spec_of({"type": "openai_python", "source": text, **options})
    row: dict[str, Json] = {"answer": "Paris"} if item is None else item
    result = await grade_submission([spec], Submission(answer=answer, metadata={"item": row}))
    assert result.subscores is not None
    return result.subscores[0]


async def test_a_function_is_given_the_sample_and_the_item() -> None:
    source = """
        import json

        def grade(sample, item):
            print(sorted(sample))
            assert sample["output_json"] == {"city": "Paris"}
            assert sample["choices"][0]["message"]["content"] == sample["output_text"]
            assert sample["output_tools"] == [] and sample["output_audio"] is None
            return 0.75 if json.loads(sample["output_text"])["city"] == item["answer"] else 0
    """
    node = await grade(source, '{"city": "Paris"}', pass_threshold=0.7)
    assert (node.value, node.passed) == (0.75, True)
    assert "output_text" in str(dict(node.metadata or {})["output"])


@each(
    ("body", "said"),
    [
        ("return item['nope']", "KeyError"),
        ("return 'good'", "str"),
        ("return None", "None"),
        ("return float('nan')", "nan"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
async def test_a_function_that_fails_is_an_error_unless_openais_zero_is_asked_for(
    body: str, said: str
) -> None:
    source = f"def grade(sample, item):\n    {body}\n"
    node = await grade(source)
    assert (node.status, node.value) == ("error", None)
    assert said in node.reason
    node = await grade(source, compat="openai")
    assert (node.status, node.value) == ("scored", 0.0)
    assert node.flags == ("python_grader_runtime_error",)
    assert said in node.reason


async def test_an_answer_that_makes_its_grader_hang_is_worth_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openai_python, "SECONDS", 0.3)
    node = await grade("def grade(sample, item):\n    while True:\n        pass\n")
    assert (node.status, node.value, node.flags) == ("scored", 0.0, ("timed_out",))
    assert Graded.of("x", node).outcome.endswith("timeout")  # of its CPU or of the clock


async def test_a_huge_item_is_not_the_answer_s_fault_and_a_scale_may_be_declared() -> None:
    huge = "x" * (17 << 20)
    source = "def grade(sample, item):\n    return 4\n"
    assert (await grade(source, "x", {"answer": huge})).status == "error"
    assert (await grade(source, range=[0, 5])).value == 0.8


@each(
    ("source", "message"),
    [
        ("grade = lambda sample, item: 1", r"does not define grade\(\)"),
        ("class A:\n    def grade(sample, item): ...", r"does not define grade\(\)"),
        ("def grade(sample): ...", "1 positional parameters"),
        ("def grade(*args): ...", "0 positional parameters"),
        ("def grade(sample, item:", r"is not Python: .*line 1"),
        ("(" * 1_000, "is not Python"),
        ("-" * 100_000 + "1", "is not Python"),
        ("\ud800", "is not Python"),
    ],
)
async def test_a_source_that_could_not_grade_is_refused(source: str, message: str) -> None:
    grader: dict[str, Json] = {"type": "python", "source": source}
    multi: dict[str, Json] = {"graders": {"code": grader}, "calculate_output": "code"}
    with pytest.raises(ShapeError, match=message) as caught:
        await read_definition(grader).check()
    assert caught.value.problems[0].field == "source"
    with pytest.raises(ShapeError, match=message) as caught:
        await read_definition({"type": "multi", **multi}).check()
    assert caught.value.problems[0].field == "graders.code.source"
    node = await grade(source, compat="openai")
    assert (node.status, node.value) == ("error", None)
    specs = [spec_of({"type": "openai_python", "source": source, "name": "code"})]
    with pytest.raises(InputError, match=f"grader 'code': source: .*{message}"):
        await check_declared(specs)


def test_a_source_that_is_too_long_is_refused_when_it_is_read() -> None:
    with pytest.raises(ShapeError, match="is 300,000 bytes long") as caught:
        read_definition({"type": "python", "source": "x = 1\n" * 50_000})
    assert caught.value.problems[0].field == "source"


ENDLESS = {
    "imports of many parts": f"import {'a.' * 80_000}a\ndef grade(sample, item): return 1.0\n",
    "one f-string": f"def grade(sample, item): return 1.0\nx = f'{'{x}' * 84_000}'\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ENDLESS)
async def test_a_source_that_takes_the_parser_minutes_or_gigabytes_is_refused(attack: str) -> None:
    definition = read_definition({"type": "python", "source": ENDLESS[attack]})
    with pytest.raises(ShapeError, match="is not Python"):
        await definition.check()


async def test_no_source_is_parsed_in_our_own_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = "# of this test alone"
    source = f"import numpy\n{mark}\ndef grade(sample, item):\n    return 1.0\n"
    compiled = cast("Callable[..., object]", compile)

    here: list[object] = []

    def watched(text: object, *rest: object, **options: object) -> object:
        if mark in str(text):
            here.append(text)
        return compiled(text, *rest, **options)

    grader: dict[str, Json] = {"type": "python", "name": "p", "source": source}
    (tmp_path / "g.json").write_text(json.dumps(grader))
    with monkeypatch.context() as patch:
        patch.setattr("builtins.compile", watched)
        definition = read_definition(grader)
        await definition.check()
        await check_grader({"grader": grader})
        needs = await lacking(definition)
        (suite,) = suites_of(read_dump([str(tmp_path / "g.json")]))
        await check_declared([spec_of(declaration(grader))])
        nodes = [await grade(source), await grade(source.replace("import numpy", ""))]
    assert here == []
    assert needs == ["packages that its source imports: numpy"]
    assert suite.criteria[0].fidelity == "needs you"
    assert [node.value for node in nodes] == [None, 1.0]


OUTPUT = "{{ sample.output_text }}"
TEXTS: dict[str, Json] = {"input": "a", "reference": "a"}
CREDIT: dict[str, Json] = {"type": "string_check", **TEXTS, "operation": "eq"}
FUZZY: dict[str, Json] = {"type": "text_similarity", "evaluation_metric": "fuzzy_match"}


def code(body: str, **more: Json) -> dict[str, Json]:
    return {"type": "openai_python", "source": f"def grade(sample, item): {body}", **more}


BREAKS: dict[str, tuple[dict[str, Json], str, str]] = {
    "no JSON": ({**CREDIT, "input": "{{ sample.output_json.tone }}"}, "a", "invalid_variable"),
    "too long": ({**FUZZY, "input": OUTPUT, "reference": "a"}, "a" * 1_200_000, "too_long"),
    "too long for a template": ({**CREDIT, "input": OUTPUT * 100}, "a" * 1_200_000, "too_long"),
    "too long for a function": (code("return 1.0"), "damn" * 5_000_000, "too_long"),
    "memory": (code("return float(len(bytearray(3 << 30)) > 1)"), "damn", "memory"),
    "exit": (code("__import__('os')._exit(0)"), "damn", "crash"),
    "an exception that is worth 0": (
        *(code("return sample['output_json']['tone']", compat="openai"), "damn", "error"),
    ),
}


@each("way", BREAKS)
async def test_a_penalty_is_not_escaped_by_breaking_its_grader(way: str) -> None:
    declared, answer, outcome = BREAKS[way]
    parts: dict[str, Json] = {"code": {**declared}}
    multi: dict[str, Json] = {"type": "multi", "graders": parts, "calculate_output": "code"}
    for alone in (declared, multi):
        submission = Submission(answer=answer, metadata={"item": {}})
        result = await grade_submission([spec_of(alone)], submission)
        assert result.subscores is not None
        (node,) = result.subscores
        assert (node.status, node.value) == ("scored", 0.0), node.reason
        assert (node.metadata or {})["_outcome"] == outcome
        assert ("crashed" in node.flags) is (way == "exit")
        penalty = spec_of({**alone, "weight": -1.0})
        result = await grade_submission([spec_of(CREDIT), penalty], submission)
        assert result.reward == 0.0


async def test_a_source_in_a_file_stands_beside_the_graders(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def grade(sample, item):\n    return 1.0\n")
    (tmp_path / "g.yaml").write_text("- {type: openai_python, file: p.py}\n")
    (spec,) = load_graders(str(tmp_path / "g.yaml"))
    assert spec.options["file"] == str(tmp_path / "p.py")
    (tmp_path / "p.py").write_text("def grad(sample, item):\n    return 1.0\n")
    (spec,) = load_graders(str(tmp_path / "g.yaml"))
    with pytest.raises(InputError, match="file: does not define grade"):
        await check_declared([spec])
    (tmp_path / "g.yaml").write_text("- {type: openai_python}\n")
    with pytest.raises(InputError, match="either 'source' or 'file'"):
        load_graders(str(tmp_path / "g.yaml"))


async def test_imports_are_found_wherever_they_stand() -> None:
    source = """
        import os.path, numpy as np
        from sklearn.metrics import f1_score
        from . import sibling

        def grade(sample, item):
            import importlib
            from rapidfuzz import fuzz
            importlib.import_module("yaml").dump({})
            __import__("pandas.io")
            return 1.0
    """
    tree = ast.parse(textwrap.dedent(source))
    assert foreign_imports(tree) == ("numpy", "pandas", "rapidfuzz", "sklearn", "yaml")
    assert {"os", "importlib"} < set(imported_packages(tree))
    definition = read_definition({"type": "python", "source": textwrap.dedent(source)})
    assert await lacking(definition) == [
        "packages that its source imports: numpy, pandas, rapidfuzz, sklearn, yaml"
    ]
