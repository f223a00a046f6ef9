"""Templates over `item` and `sample`: what they find, and what no template can do."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.openai.rewards import FaultError, SubmissionFaultError
from assay.graders.openai.template import (
    MAX_NESTING,
    MAX_RENDERED,
    TemplateScope,
    parse_template,
    sample_of,
    scope_of,
)
from assay.scoring.json_safe import Json
from assay.types.thread import StringThread
from assay.types.trace import AgentStep, ToolCall, Trace
from tests.each import each

ITEM: dict[str, Json] = {
    "x": "ex",
    "n": 3,
    "f": 1.0,
    "yes": True,
    "none": None,
    "list": ["a", {"b": "c"}],
    "deep": {"ground-truth": {"wo rd": "w"}, "é": "accent", "0": "zero"},
    "tricky": "{{ item.x }} }} {{ sample.output_text",
}


def render(text: str, answer: str | None = "hello", item: dict[str, Json] | None = None) -> str:
    return parse_template(text).render(
        TemplateScope(ITEM if item is None else item, sample_of(answer))
    )


@each(
    ("template", "text"),
    [
        ("plain { text } }", "plain { text } }"),
        ("{{\n item.x\t}}", "ex"),
        ("<{{item.x}}|{{ sample.output_text }}>", "<ex|hello>"),
        ("{{ item.n }} {{ item.f }} {{ item.yes }} {{ item.none }}", "3 1.0 true null"),
        ("{{ item.list }}", '["a", {"b": "c"}]'),
        ("{{ item.deep.ground-truth['wo rd'] }}", "w"),
        ('{{ item["deep"]["é"] }}{{ item.deep.0 }}', "accentzero"),
        ("{{ sample.choices[0].message.content }}", "hello"),
        ("{{ sample.output_tools }}", "[]"),
    ],
)
def test_what_is_named_is_put_in(template: str, text: str) -> None:
    assert render(template) == text


def test_what_is_put_in_is_never_a_template_again() -> None:
    assert render("{{ item.tricky }}") == ITEM["tricky"]
    assert render("{{ sample.output_text }}", "{{ item.x }}") == "{{ item.x }}"
    assert render("{{ sample.output_text }}{{ item.x }}", "{{ item.") == "{{ item.ex"


@each(
    ("template", "message"),
    [
        ("{{ item.x", "is never closed"),
        ("{{ output_text }}", "names nothing"),
        ("{{ item.x | upper }}", "names nothing"),
        ("{{ item.list[-1] }}", "names nothing"),
        ("{{ item.list[x] }}", "names nothing"),
        ("abc {{ 1 + 1 }}", "at character 5"),
        ("{{" * 400_000, "is never closed"),
        ("x" * 1_000_001, "is longer"),
    ],
)
def test_what_is_no_template_is_refused(template: str, message: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError, match=message):
        parse_template(template)
    assert time.process_time() - started < 2


@each(
    "path",
    [
        "item.__class__.__mro__[1].__subclasses__",
        "item.keys",
        "item.x()",
        "item.list[9]",
        "sample.__dict__",
        "item.x[0]",
    ],
)
def test_an_attribute_is_no_key(path: str) -> None:
    with pytest.raises(FaultError, match="is missing") as caught:
        render(f"{{{{ {path} }}}}")
    assert not isinstance(caught.value, SubmissionFaultError)
    assert caught.value.flag == "invalid_variable_error"


def test_whose_fault_it_is_that_something_is_missing_or_too_long() -> None:
    for path in ("output_json.name", "output_tools[0]", "choices[1]"):
        with pytest.raises(SubmissionFaultError, match="is missing"):
            render(f"{{{{ sample.{path} }}}}")
    long, template = "x" * (MAX_RENDERED + 1), "{{ item.x }}{{ sample.output_text }}"
    with pytest.raises(SubmissionFaultError):
        render(template, long)
    cases: list[tuple[str, str | None, dict[str, Json]]] = [
        ("{{ sample.output_text }}", None, ITEM),  # without an answer nothing is the model's
        ("{{ sample.output_json.name }}", None, ITEM),
        (template, "short", {"x": long}),
        ("{{item.x}}" * 50_000, "short", {"x": "y" * 1_000_000}),  # it stops early
    ]
    for text, answer, item in cases:
        with pytest.raises(FaultError) as caught:
            render(text, answer, item)
        assert not isinstance(caught.value, SubmissionFaultError)


_KEY = st.text(
    st.characters(exclude_characters=".[]{}\"'", exclude_categories=["Z", "C"]), min_size=1
)


@given(_KEY, st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_key_and_any_value(key: str, value: Json) -> None:
    expected = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    assert render(f"{{{{ item.{key} }}}}", item={key: value}) == expected


@given(st.text(alphabet="{} itemsaple.[]0'\"x", max_size=30))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(InputError, FaultError):
        render(text)


# --- item and sample ------------------------------------------------------------------------------


def test_output_json_is_there_only_for_json() -> None:
    assert sample_of('{"a": [1]}')["output_json"] == {"a": [1]}
    assert sample_of("42")["output_json"] == 42
    for answer in ("hello", "NaN", '{"a": NaN}', "", "[" * 100_000, "9" * 5_000):
        assert "output_json" not in sample_of(answer)
    assert "output_json" in sample_of("[" * MAX_NESTING + "]" * MAX_NESTING)
    deep = "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1)
    assert "output_json" not in sample_of(deep)
    with pytest.raises(SubmissionFaultError):
        render("{{ sample.output_json }}", deep)


def test_a_row_without_item_is_an_item_itself() -> None:
    scope = scope_of(
        answer="a", question="q", expected="e", metadata={"level": 2, "sample": {"model": "m"}}
    )
    assert scope.item == {"level": 2, "question": "q", "expected": "e"}
    assert scope.sample["model"] == "m"
    assert scope_of(metadata={"item": {"y": 1}}, expected="e").item == {"y": 1}


def test_the_answer_counts_and_not_what_was_recorded_of_it() -> None:
    recorded: dict[str, Json] = {"output_text": "old", "output_json": {"old": 1}, "choices": []}
    called: Json = [{"id": "1"}]
    sample = scope_of(
        answer="new", metadata={"sample": {**recorded, "output_tools": called}}
    ).sample
    assert (sample["output_text"], sample["output_tools"]) == ("new", called)
    assert "output_json" not in sample
    thread = StringThread([("user", "q"), ("assistant", "said")])
    assert scope_of(thread=thread).sample["output_text"] == "said"


def test_tool_calls_of_a_trace_are_output_tools() -> None:
    trace = Trace()
    call = ToolCall(name="search", arguments={"q": "x"}, id="c1")
    trace.record(AgentStep(content="", tool_calls=(call,)))
    scope = scope_of(answer="a", trace=trace)
    template = parse_template("{{ sample.output_tools[0].function.name }}")
    assert template.render(scope) == "search"
    arguments = parse_template("{{ sample.output_tools[0].function.arguments }}")
    assert json.loads(arguments.render(scope)) == {"q": "x"}
