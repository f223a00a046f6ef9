"""`assay import promptfoo`: cases of its tests, what is left, and results replayed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from assay.interop.promptfoo_read import read_config, rendered
from assay.interop.promptfoo_suite import ImportedTests, cases_of
from assay.scoring.json_safe import Json
from assay.tasks.case import load_case, load_cases
from tests.command_line import assay, cells, result
from tests.each import each

EXAMPLE = Path(__file__).parents[2] / "examples" / "promptfoo"


def imported(cwd: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return assay("import", "promptfoo", "promptfooconfig.yaml", *more, cwd=cwd)


async def of_text(cwd: Path, text: str) -> ImportedTests:
    (cwd / "promptfooconfig.yaml").write_text(text)
    return await cases_of(read_config(str(cwd / "promptfooconfig.yaml")))


async def graders_of(cwd: Path, *asserts: str, more: str = "") -> tuple[list[Json], list[str]]:
    """What some assertions become, and what is said of those that do not."""
    lines = "".join(f"    - {one}\n" for one in asserts)
    text = f"prompts: ['{{{{q}}}}']\ntests:\n- vars: {{q: x, city: Rome}}\n{more}  assert:\n{lines}"
    found = await of_text(cwd, text)
    kept = [one.declaration for case in found.cases for one in case.graders]
    left = [f"{one.what} ({one.hint})" for one in found.left if "no case is" not in one.what]
    return cast("list[Json]", kept), left


@pytest.mark.sandbox
def test_an_example_is_imported_replayed_and_run(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    done = imported(tmp_path, "results.json", "--out", "evals")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    for shown in (
        "promptfooconfig.yaml: 8 cases in evals",
        "icontains contains 5 exact",
        "python function 4 approximate",
        "not-contains-any contains_any 4 exact",
        "the whole test 8 8 8 of 8 1.00",
    ):
        assert shown in words
    case = load_case(str(tmp_path / "evals/kenya-2"))
    assert case.task.system_prompt == "You are a teacher of geography.\n"
    assert case.graders[0].from_row == {"substring": "metadata.city"}
    recorded = json.loads((EXAMPLE / "results.json").read_text())["results"]["results"]
    run = assay("run", "evals", "--harness", "replay", "--json", cwd=tmp_path)
    by_case = {str(cell["case"]): cell["reward"] for cell in cells(run)}
    for one in recorded:
        name = one["testCase"]["description"].lower().replace(",", "").replace(" ", "-")
        case = load_case(str(tmp_path / "evals" / (f"{name}-2" if one["promptIdx"] else name)))
        reward = cast("float", by_case[case.id])
        assert (reward >= case.expect.pass_threshold - 1e-9) == one["success"]
        assert reward == pytest.approx(one["score"]) or case.expect.pass_threshold == 1.0
    again = imported(tmp_path)
    assert "results.json lies beside it" in again.stdout


@pytest.mark.sandbox
def test_each_difference_is_explained(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    whole = json.loads((EXAMPLE / "results.json").read_text())
    first = whole["results"]["results"][0]
    part = first["gradingResult"]["componentResults"][0]
    part.update({"pass": False, "score": 0, "reason": "Expected output to contain it"})
    whole["results"]["results"][1]["response"] = {"error": "429"}
    third = whole["results"]["results"][2]
    third["vars"] = third["testCase"]["vars"] = {"country": "Atlantis"}
    (tmp_path / "results.json").write_text(json.dumps(whole))
    done = imported(tmp_path, "results.json", "--json")
    assert done.returncode == 1
    replays = {
        str(one["criterion"]): one for one in cast("list[dict[str, Json]]", result(done)["replay"])
    }
    (odd,) = cast("list[dict[str, Json]]", replays["icontains"]["disagreements"])
    assert odd["row"] == "kenya (openai:gpt-5-mini)"
    assert odd["recorded"] == {"score": None, "passed": False}
    assert "promptfoo: Expected output to contain it; assay: " in str(odd["why"])
    assert result(done)["not_replayed"] == {
        "the provider gave no answer": 1,
        "no case has these variables and this prompt": 1,
    }
    shown = imported(tmp_path, "results.json", "--out", "more").stdout
    said = (
        "icontains: row kenya (openai:gpt-5-mini): recorded no score (failed), replayed 1 (passed)"
    )
    assert f"{said}; promptfoo: Expected" in " ".join(shown.split())
    without = imported(tmp_path, "results.json", "--out", "third", "--no-replay", "--json")
    assert (without.returncode, result(without)["replay"]) == (1, [])


def declared(kind: str, **options: Json) -> Json:
    return {"type": kind, **options}


def judged(criterion: Json, **options: Json) -> Json:
    return declared("llm_judge", criteria=[criterion], **options)


def traced(**options: Json) -> Json:
    return declared("trace", **options)


_DRAFT: Json = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array"}
_SENT: Json = {"raw_name": "send", "args": {"to": "me"}, "args_mode": "superset"}
_NEITHER: dict[str, Json] = {"input": "{{ sample.output_text }}", "reference": "{{ item.city }}"}
_BOTH: Json = ['a"b,c', 'd "e"', r"f\\"]
_NOT_IN = declared("contains", substring="in Rome", negate=True)
_ANY = declared("contains_any", substrings=["x", "Rome"])
_FACTS = "Agrees in its facts with this answer of an expert: It is Rome"


@each(
    ("asked", "grader"),
    [
        ("contains, value: Rome", declared("contains", substring="Rome", case_sensitive=True)),
        ("icontains, value: '{{city}}'", declared("contains", substring={"from": "metadata.city"})),
        ("not-icontains, value: 'in {{city}}'", _NOT_IN),
        (
            "contains-all, value: 'a, \"b,c\"'",
            declared("contains_all", substrings=["a", "b,c"], case_sensitive=True),
        ),
        (
            r'''contains-any, value: '"a\"b,c", "d ""e""" , f\\' ''',
            declared("contains_any", substrings=_BOTH, case_sensitive=True),
        ),
        ("icontains-any, value: [x, '{{city}}']", _ANY),
        (
            "regex, value: '^R', weight: 2, metric: form",
            declared("regex_match", name="form", pattern="^R", weight=2.0),
        ),
        ("starts-with, value: '(a'", declared("regex_match", pattern=r"\A\(a")),
        ("not-equals, value: '{{city}}'", declared("string_check", **_NEITHER, operation="ne")),
        ("equals, value: {a: 1}", declared("json_match", expected={"a": 1}, strict=True)),
        ("is-json", declared("json_schema", schema=True, strict=True)),
        ("contains-json, value: {type: array}", declared("json_schema", schema=_DRAFT)),
        (
            "rouge-n, value: abc",
            declared("similarity", reference="abc", metric="rouge_1", threshold=0.75),
        ),
        ("cost, threshold: 0.01", traced(max_cost_usd=0.01)),
        ("latency, threshold: 1500", traced(max_seconds=1.5)),
        (
            "'trajectory:tool-used', value: [find, send]",
            traced(require_tools=[{"raw_name": "find"}, {"raw_name": "send"}]),
        ),
        ("'not-trajectory:tool-used', value: rm", traced(forbid_tools=[{"raw_name": "rm"}])),
        (
            "'trajectory:tool-args-match', value: {name: send, args: {to: me}}",
            traced(require_tools=[_SENT]),
        ),
        (
            "tool-call-f1, value: 'a, b'",
            declared("tool_correctness", expected=[{"raw_name": "a"}, {"raw_name": "b"}]),
        ),
        (
            "llm-rubric, value: 'is about {{city}}', provider: 'openai:chat:gpt-5'",
            judged("is about Rome", model="openai:gpt-5"),
        ),
        ("not-llm-rubric, value: is rude", judged({"requirement": "is rude", "weight": -1.0})),
        ("factuality, value: It is Rome", judged(_FACTS)),
    ],
)
async def test_an_assertion_is_a_grader(asked: str, grader: Json, tmp_path: Path) -> None:
    assert await graders_of(tmp_path, f"{{type: {asked}}}") == ([grader], [])


@each(
    ("asked", "said"),
    [
        (
            "{type: javascript, value: 'process.exit(1)'}",
            "javascript: 'javascript' has no counterpart here ({type: function",
        ),
        ("{type: similar, value: x}", "there are no embeddings here"),
        ("{type: regex, value: '(?=x)'}", "regex: pattern: RE2 refuses the pattern"),
        ("{type: contains, value: '{{nothing}}'}", "{{ nothing }} is not there"),
        ("{type: contains, value: '{{ city | upper }}'}", "it does more than name a variable"),
        ("{type: contains, value: '{% if x %}y{% endif %}'}", "a block of Nunjucks"),
        (
            "{type: equals, value: x, transform: output.trim()}",
            "'transform' of an assertion has no counterpart",
        ),
        ("{type: select-best, value: x}", "(pairwise)"),
        ("{type: made-up}", "'made-up' has no counterpart here ({type: function"),
        ("{type: icontain}", "'icontain' has no counterpart here (did you mean 'icontains'?)"),
        ("{type: not-latency, threshold: 5}", "not-latency has no counterpart"),
        ("{type: python, value: file://../grade.py}", "it lies outside"),
        ("{type: python, value: file:///etc/passwd.py}", "it lies outside"),
        ("{type: contains, value: file://gone.txt}", "there is no such file"),
        ("{type: contains-any, value: [file://gone.txt]}", "a file in a list"),
        ("""{type: contains-any, value: '"a, b'}""", "a quote that does not end before a comma"),
        ("""{type: contains-any, value: 'c, "a" b'}""", "a quote that does not end before a comma"),
        ("{type: contains, value: file://code.js}", "nothing is run at an import"),
    ],
)
async def test_what_is_not_carried_over_is_listed(asked: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "code.js").write_text("process.exit(1)")
    kept, left = await graders_of(tmp_path, asked)
    assert (kept, len(left)) == ([], 1)
    assert said in left[0]


async def test_the_place_of_what_is_left_is_that_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "tests.csv").write_text("q,__expected\nfine,x\nbad,javascript:1\n")
    found = await of_text(tmp_path, "prompts: ['{{q}}']\nredteam: {}\ntests: file://tests.csv\n")
    assert [case.id for case in found.cases] == ["fine"]
    said = [str(one).removeprefix(f"{tmp_path}/") for one in found.left]
    assert said[0].startswith("promptfooconfig.yaml:2:10: redteam: 'redteam' has no counterpart")
    assert any(one.startswith("tests.csv:3:1: assert[0]: javascript") for one in said)
    assert any("no case is written" in one for one in said)


def test_a_case_that_asks_for_less_says_so(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\ntests:\n- assert:\n  - {type: javascript, value: '1'}\n"
        "  - {type: contains, value: x}\n"
    )
    done = imported(tmp_path)
    assert done.returncode == 1
    words = " ".join(done.stdout.split())
    assert "promptfooconfig.yaml:4:5: tests[0].assert[0]: javascript" in words
    text = (tmp_path / "promptfoo/test/case.yaml").read_text()
    assert "# Not carried over" in text
    assert "javascript" in text
    assert [one.type for one in load_case(str(tmp_path / "promptfoo/test")).graders] == ["contains"]


async def test_variables_scenarios_and_defaults_make_cases(tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"vars": {"q": "from a file"}}\n')
    (tmp_path / "long.txt").write_text("a text\n")
    found = await of_text(
        tmp_path,
        """
prompts: ['{{q}} {{more}}', {raw: 'second {{q}}', label: two}]
defaultTest: {vars: {more: '{{q}}!'}, assert: [{type: icontains, value: '{{q}}'}], threshold: 0.5}
tests:
- {vars: {q: [a, b]}, prompts: [two]}
- vars: {q: file://long.txt}
- file://more.jsonl
scenarios:
- config: [{vars: {q: s1}}, {vars: {q: s2}}]
  tests: [{assert: [{type: equals, value: x}]}]
""",
    )
    assert found.left == []
    asked = [case.question for case in found.cases]
    assert asked[:4] == ["second a", "second b", "a text a text!", "second a text"]
    assert asked[4:] == [
        f"{p}{q}{s}"
        for q in ("from a file", "s1", "s2")
        for p, s in (("", f" {q}!"), ("second ", ""))
    ]
    assert [len(case.graders) for case in found.cases] == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert {case.threshold for case in found.cases} == {0.5}


async def test_sets_share_their_weight_and_a_lone_threshold_is_the_cases(tmp_path: Path) -> None:
    inner = "assert: [{type: contains, value: a}, {type: contains, value: b, weight: 3}]"
    kept, left = await graders_of(
        tmp_path, f"{{type: assert-set, weight: 2, {inner}}}", "{type: contains, value: c}"
    )
    weights = [cast("dict[str, Json]", one).get("weight", 1.0) for one in kept]
    assert (weights, left) == ([0.5, 1.5, 1.0], [])
    kept, left = await graders_of(
        tmp_path, f"{{type: assert-set, threshold: 0.5, {inner}}}", "{type: contains, value: c}"
    )
    assert (len(kept), len(left)) == (1, 1)
    alone = await of_text(
        tmp_path,
        f"prompts: [x]\ntests: [{{assert: [{{type: assert-set, threshold: 0.5, {inner}}}]}}]",
    )
    assert (alone.cases[0].threshold, alone.left) == (0.5, [])


async def test_a_threshold_that_nothing_reaches_is_no_lower_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("q,__expected,__threshold\na,x,nan\nb,x,2\nc,x,0.5\n")
    found = await of_text(tmp_path, "prompts: ['{{q}}']\ntests: t.csv\n")
    assert [(case.id, case.threshold) for case in found.cases] == [("a", 1.0), ("c", 0.5)]
    assert any("no score reaches its threshold of 2" in one.what for one in found.left)


@pytest.mark.sandbox
async def test_python_that_has_more_than_the_standard_library_is_left(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "grade.py").write_text(f"open({str(marker)!r}, 'w')\nimport numpy\n")
    kept, left = await graders_of(tmp_path, "{type: python, value: 'file://grade.py:check'}")
    assert (kept, len(left)) == ([], 1)
    assert "numpy" in left[0]
    assert not marker.exists()


def test_templates_do_no_more_than_name_variables_and_what_is_filled_in_is_none_again() -> None:
    calls = ("{{ city.__class__ }}", "{{ range(10) }}", "{{ env.HOME }}", "{{ city['x'] }}")
    for attack in (*calls, "{{city", "{# x #}"):
        with pytest.raises(ValueError, match=r"name|not there|block"):
            rendered(attack, {"city": "Rome"})
    assert rendered("{{a}} {{ b[0].c }}", {"a": "{{ b }}", "b": [{"c": 1}]}) == "{{ b }} 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "promptfooconfig.yaml:1:1: expected a mapping"),
        ("prompts: [x", "not valid YAML"),
        (
            "a: &a [x,x]\nb: &b [*a,*a]\n"
            + "".join(
                f"{chr(n + 1)}: &{chr(n + 1)} [{','.join([f'*{chr(n)}'] * 9)}]\n"
                for n in range(98, 108)
            ),
            "more than",
        ),
        (
            "prompts: [x]\ntests:\n- vars:\n"
            + "".join(f"    v{n}: [{','.join('abcdefghij')}]\n" for n in range(9)),
            "multiply to more than",
        ),
        (
            "prompts: ['{{a}}{{b}}']\ntests:\n"
            + "- vars: {a: [1b,2b,3b,4b], b: [a,b,c,d,e]}\n" * 300,
            "more than 5000 cases",
        ),
    ],
)
def test_hostile_configurations_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(text)
    done = imported(tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "promptfoo").exists()


def test_a_link_out_of_the_directory_and_names_in_results_lead_nowhere(tmp_path: Path) -> None:
    directories = {
        "../../../evil": "evil",
        "openai:../../../evil": "openai:-evil",
        "openai:org/../../../../evil": "openai:org-evil",
        "/etc/evil": "etc-evil",
        "openai:org/gpt-5.1": "openai:org/gpt-5.1",
        "..": "model",
    }
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (inner / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inner / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\ntests:\n- {vars: {q: file://link.txt}}\n- {vars: {q: y}}\n"
    )
    one = {"testCase": {"vars": {"q": "y"}}, "prompt": {"raw": "y", "label": "{{q}}"}}
    said = {"response": {"output": "hm"}, "success": True}
    results = [{**one, **said, "provider": {"id": provider}} for provider in directories]
    (inner / "results.json").write_text(json.dumps({"results": {"results": results}}))
    done = imported(inner, "results.json")
    outside = "link.txt: it lies outside of the configuration's directory"
    assert outside in " ".join(done.stdout.split())
    assert "secret" not in done.stdout
    assert [case.id for case in load_cases([str(inner / "promptfoo")])] == ["y"]
    recordings = inner / "promptfoo/y/recordings"
    answers = {recordings / directory / "answer.txt" for directory in directories.values()}
    assert {*tmp_path.rglob("answer.txt")} == answers
