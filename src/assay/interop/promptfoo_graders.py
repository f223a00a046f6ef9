"""promptfoo's assertions as graders of ours: a table from their types to our kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from assay.errors import InputError, nearest
from assay.interop.promptfoo_read import (
    ConfigPart,
    model_of,
    number_of,
    provider_of,
    rendered,
    variable_of,
)
from assay.scoring.json_safe import Json

Declaration: TypeAlias = "dict[str, Json]"


@dataclass(slots=True, kw_only=True)
class AskedAssertion:
    """One assertion, as it is asked of one test.

    Attributes:
        type: Its type, without ``not-``.
        inverse: Whether the opposite is asked for.
        value: What it compares with, its templates filled in.
        raw: The same as it was written.
        threshold: From or to where it passes, if it says.
        variables: Those of the test.
        is_verdict: Whether it has to pass by itself, so that its grader gives 1 or 0; else its
            score is a part of the test's.
        source: What a file of code that it names holds; "" for none.
        function: The function of it that is meant.
        config: What is told to that function.
        model: The judge that it names; "" for the default.
        doubts: Why it may decide otherwise here; added to while it is read.
    """

    type: str
    inverse: bool
    value: Json
    raw: Json
    threshold: float | None
    variables: Mapping[str, Json]
    is_verdict: bool
    source: str
    function: str
    config: Json
    model: str
    doubts: list[str]

    def text(self) -> str:
        """The value, where a text is wanted."""
        if self.value in (None, "") or isinstance(self.value, dict | list | bool):
            raise InputError("its value must be a text")
        return self.value if isinstance(self.value, str) else json.dumps(self.value)

    def texts(self) -> list[str]:
        """The value as a list: of a text, what stands between its commas."""
        value = self.value
        if isinstance(value, str):
            value = [one for one in _between_commas(value) if one]
        if not isinstance(value, list) or not value:
            raise InputError("its value must be a list of texts")
        return [one if isinstance(one, str) else json.dumps(one) for one in value]

    def from_row(self, *types: type) -> Json:
        """The variable that the value is nothing but, as an option that comes from there."""
        name = variable_of(self.raw)
        is_plain = name and isinstance(self.variables.get(name), types)
        return {"from": f"metadata.{name}"} if is_plain else None

    def at_least(self, default: float) -> Declaration:
        """The threshold of a likeness, where it has to pass by itself."""
        least = default if self.threshold is None else self.threshold
        return {"threshold": least} if self.is_verdict else {}

    def not_inverse(self, instead: str) -> None:
        """Refuse the opposite."""
        if self.inverse:
            raise InputError(f"not-{self.type} has no counterpart", hint=instead)


_FIELD = re.compile(r'\s*+(?:"((?:[^"\\]|\\.|"")*)"\s*|([^",][^,]*)?)(?:,|\Z)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])|""')


def _between_commas(text: str) -> Iterator[str]:
    """The texts that a text lists: one in quotes may hold commas, and quotes that are escaped."""
    at = 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            hint = "write a list of texts"
            raise InputError("its value has a quote that does not end before a comma", hint=hint)
        quoted, bare = field.groups()
        if quoted is None:
            yield (bare or "").strip()
        else:
            yield _ESCAPED.sub(lambda found: found[1] or '"', quoted)
        at = field.end()


_Rule: TypeAlias = Callable[[AskedAssertion], Declaration]


def _negated(asked: AskedAssertion, declaration: Declaration) -> Declaration:
    return {**declaration, "negate": True} if asked.inverse else declaration


def _contains(*, any_case: bool) -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        said: Declaration = {
            "type": "contains",
            "substring": asked.from_row(str) or asked.text(),
            **({} if any_case else {"case_sensitive": True}),
        }
        return _negated(asked, said)

    return declared


def _contains_many(kind: str, *, any_case: bool) -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        said: Declaration = {
            "type": kind,
            "substrings": asked.from_row(list) or list[Json](asked.texts()),
            **({} if any_case else {"case_sensitive": True}),
        }
        return _negated(asked, said)

    return declared


def _equals(asked: AskedAssertion) -> Declaration:
    if isinstance(asked.value, dict | list):
        said: Declaration = {"type": "json_match", "expected": asked.value, "strict": True}
        return _negated(asked, said)
    named = variable_of(asked.raw)
    if named and not {"item", "sample"} & {named, *asked.variables}:
        reference = f"{{{{ item.{named} }}}}"
    else:
        value = asked.value
        reference = value if isinstance(value, str) else json.dumps(value)
        if "{{" in reference:
            raise InputError("its value has '{{' in it", hint="put it into a variable")
    return {
        "type": "string_check",
        "input": "{{ sample.output_text }}",
        "reference": reference,
        "operation": "ne" if asked.inverse else "eq",
    }


def _regex(asked: AskedAssertion) -> Declaration:
    said: Declaration = {"type": "regex_match", "pattern": asked.from_row(str) or asked.text()}
    return _negated(asked, said)


def _starts_with(asked: AskedAssertion) -> Declaration:
    # RE2 takes every character that is no letter or digit behind a backslash for itself.
    plain = re.sub(r"([^\w\s])", r"\\\1", asked.text(), flags=re.ASCII)
    return _negated(asked, {"type": "regex_match", "pattern": rf"\A{plain}"})


def _json(*, strict: bool) -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        schema = asked.value
        if isinstance(schema, str) and schema.strip():
            from assay.documents import parse_document

            schema = parse_document(schema).data
        schema = True if schema in (None, "") else schema
        if not isinstance(schema, dict | bool):
            raise InputError("its value must be a JSON Schema")
        if isinstance(schema, dict):
            schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            if '"format"' in json.dumps(schema):
                asked.doubts.append("'format' of a schema is not checked here")
        if not strict:
            asked.doubts.append("the answer, its last fence or its last object is looked at")
        said: Declaration = {"type": "json_schema", "schema": schema}
        return _negated(asked, {**said, "strict": True} if strict else said)

    return declared


def _likeness(metric: str, default: float) -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        asked.doubts.append("tokens and smoothing differ")
        said: Declaration = {
            "type": "similarity",
            "reference": asked.from_row(str) or asked.text(),
            "metric": metric,
            **asked.at_least(default),
        }
        return _negated(asked, said)

    return declared


_EDITS = """\
WANTED, MOST = {wanted!r}, {most!r}


async def grade(thread: StringThread) -> float:
    said = thread.completion() or ""
    row = list(range(len(WANTED) + 1))
    for number, letter in enumerate(said, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(WANTED, 1):
            before, row[place] = row[place], min(
                row[place] + 1, row[place - 1] + 1, before + (letter != other)
            )
    return float(row[-1] <= MOST)
"""


def _levenshtein(asked: AskedAssertion) -> Declaration:
    asked.not_inverse("similarity with metric: levenshtein and negate: true")
    source = _EDITS.format(wanted=asked.text(), most=asked.threshold or 5.0)
    return {"type": "function", "source": source}


def _words(asked: AskedAssertion) -> Declaration:
    value = asked.value
    limits = value if isinstance(value, dict) else {"min": value, "max": value}
    least, most = limits.get("min"), limits.get("max")
    try:
        low = max(0, int(str(least))) if least is not None else 0
        high = "" if most is None else str(max(0, int(str(most))))
    except ValueError as error:
        raise InputError("its value must be a number, or min and max") from error
    if max(low, int(high or 0)) > _MOST_WORDS:
        raise InputError(f"more than {_MOST_WORDS} words are no pattern", hint="write a function")
    pattern = rf"(?:\S+(?:\s+|\z)){{{low},{high}}}"
    return _negated(asked, {"type": "regex_match", "pattern": pattern, "full": True})


_MOST_WORDS = 1_000

_PYTHON = """\
{source}


async def grade(thread: StringThread) -> float:
    context = {{**{context!r}, "vars": dict(thread.metadata), "prompt": thread.last_user_turn()}}
    found = score = {call}(thread.completion() or "", context)
    if isinstance(found, str):
        found = score = {{"true": True, "false": False}}[found.lower()]
    if isinstance(found, dict):
        score = found["score"]
        found = found["pass"] if "pass" in found else found["pass_"]
        passed = bool(found) and {dict_passes}
    else:
        passed = found if isinstance(found, bool) else {passes}
    return float({worth})
"""


def _python(asked: AskedAssertion) -> Declaration:
    call, source, least = asked.function or "get_assert", asked.source, asked.threshold
    passed = "not passed" if asked.inverse else "passed"
    if not source:
        body = asked.text()
        call = "asserted"
        lines = body.split("\n") if "\n" in body else [f"return {body}"]
        inner = "\n".join(f"    {line}" for line in lines)
        source = f"import json\n\n\ndef {call}(output, context):\n{inner}"
    elif not call.isidentifier():
        raise InputError(f"{call[:50]!r} names no function")
    asked.doubts.append(
        "what raises is an error here, and no failure; 'context' has vars, prompt and config"
    )
    return {
        "type": "function",
        "source": _PYTHON.format(
            source=source.rstrip(),
            call=call,
            context={"config": asked.config} if asked.config else {},
            dict_passes="True" if least is None else f"score >= {least}",
            passes="found > 0" if least is None else f"found >= {least}",
            worth=passed if asked.is_verdict else f"{passed} if isinstance(score, bool) else score",
        ),
    }


def _judge(before: str = "") -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        said = asked.value
        texts = [str(one) for one in said] if isinstance(said, list) else [asked.text()]
        criteria: list[Json] = [f"{before}{text}" for text in texts]
        if asked.inverse:
            criteria = [{"requirement": text, "weight": -1.0} for text in criteria]
        asked.doubts.append("a judge may judge otherwise when it is asked again")
        if asked.threshold is not None:
            asked.doubts.append("a criterion is met or not: its threshold is not asked for")
        model: Declaration = {"model": asked.model} if asked.model else {}
        return {"type": "llm_judge", **model, "criteria": criteria}

    return declared


def _budget(option: str, scale: float) -> _Rule:
    def declared(asked: AskedAssertion) -> Declaration:
        asked.not_inverse("a budget is kept or not")
        if asked.threshold is None:
            raise InputError("it has no threshold", hint=f"trace with {option}")
        return {"type": "trace", option: asked.threshold / scale}

    return declared


def _tools_used(asked: AskedAssertion) -> Declaration:
    value = asked.value
    if isinstance(value, dict):
        least, most = value.get("min", 1), value.get("max")
        if least != 1 or most is not None:
            raise InputError("'min' and 'max' have no counterpart", hint="trace, max_tool_calls")
        value = value.get("name")
    names = asked.texts() if isinstance(value, list) else [value]
    matchers: list[Json] = [_tool(one) for one in names]
    return {"type": "trace", "forbid_tools" if asked.inverse else "require_tools": matchers}


def _tool(said: Json) -> Declaration:
    if isinstance(said, dict):
        if said.get("type", "tool") != "tool" or "pattern" in said:
            raise InputError(
                "a step by 'pattern', or of another type than tool, has no counterpart"
            )
        said = said.get("name")
    if not isinstance(said, str) or not said:
        raise InputError("a tool has no name")
    return {"raw_name": said}


def _tool_sequence(asked: AskedAssertion) -> Declaration:
    asked.not_inverse("trace with forbid_tools")
    value = asked.value if isinstance(asked.value, dict) else {"steps": asked.value}
    steps = value.get("steps")
    matchers: list[Json] = [_tool(one) for one in steps] if isinstance(steps, list) else []
    if value.get("mode") == "exact":
        return {"type": "tool_correctness", "expected": matchers, "ordered": True}
    ordered: Declaration = {"ordered": True} if len(matchers) > 1 else {}
    return {"type": "trace", "require_tools": matchers, **ordered}


def _tool_arguments(asked: AskedAssertion) -> Declaration:
    value = asked.value if isinstance(asked.value, dict) else {}
    given = value.get("args", value.get("arguments"))
    if not isinstance(given, dict) or "defaults" in value:
        raise InputError(
            "its 'args' must be a mapping, without 'defaults'", hint="trace, args_rules"
        )
    ignored = value.get("ignore") or []
    names = ignored if isinstance(ignored, list) else [ignored]
    matcher: Declaration = {
        **_tool({"name": value.get("name"), **{k: v for k, v in value.items() if k == "pattern"}}),
        "args": {name: one for name, one in given.items() if name not in names},
        "args_mode": "exact" if value.get("mode") == "exact" else "superset",
    }
    if names:
        matcher["args_rules"] = {str(name): {"ignore": True} for name in names}
    return {"type": "trace", "forbid_tools" if asked.inverse else "require_tools": [matcher]}


def _step_count(asked: AskedAssertion) -> Declaration:
    asked.not_inverse("trace with max_tool_calls")
    value = asked.value if isinstance(asked.value, dict) else {}
    most = value.get("max")
    if value.get("type") != "tool" or set(value) - {"type", "max"} or not isinstance(most, int):
        raise InputError("only 'max' of type: tool has a counterpart", hint="trace, max_tool_calls")
    return {"type": "trace", "max_tool_calls": most}


def _tool_f1(asked: AskedAssertion) -> Declaration:
    asked.not_inverse("trace with forbid_tools")
    if asked.is_verdict and asked.threshold not in (None, 1, 1.0):
        raise InputError(
            "a threshold below 1 needs one of the test", hint="'threshold' of the test"
        )
    asked.doubts.append("each call counts, and not each name once")
    expected: list[Json] = [{"raw_name": name} for name in asked.texts()]
    return {"type": "tool_correctness", "expected": expected}


_RULES: Mapping[str, _Rule] = {
    "equals": _equals,
    "contains": _contains(any_case=False),
    "icontains": _contains(any_case=True),
    "contains-any": _contains_many("contains_any", any_case=False),
    "icontains-any": _contains_many("contains_any", any_case=True),
    "contains-all": _contains_many("contains_all", any_case=False),
    "icontains-all": _contains_many("contains_all", any_case=True),
    "starts-with": _starts_with,
    "regex": _regex,
    "word-count": _words,
    "is-json": _json(strict=True),
    "contains-json": _json(strict=False),
    "levenshtein": _levenshtein,
    "rouge-n": _likeness("rouge_1", 0.75),
    "bleu": _likeness("bleu", 0.5),
    "gleu": _likeness("gleu", 0.5),
    "meteor": _likeness("meteor", 0.5),
    "python": _python,
    "llm-rubric": _judge(),
    "g-eval": _judge(),
    "model-graded-closedqa": _judge(),
    "factuality": _judge("Agrees in its facts with this answer of an expert: "),
    "model-graded-factuality": _judge("Agrees in its facts with this answer of an expert: "),
    "cost": _budget("max_cost_usd", 1),
    "latency": _budget("max_seconds", 1_000),
    "trajectory:tool-used": _tools_used,
    "trajectory:tool-sequence": _tool_sequence,
    "trajectory:tool-args-match": _tool_arguments,
    "trajectory:step-count": _step_count,
    "tool-call-f1": _tool_f1,
}
"""What becomes which grader, by its type over there."""

_FUNCTION = "{type: function, file: grade.py} with `async def grade(thread): ...` in Python"
_JUDGE = "llm_judge with criteria"
_LEFT: Mapping[str, str] = {
    "javascript": _FUNCTION,
    "ruby": _FUNCTION,
    **dict.fromkeys(
        [
            "is-xml",
            "contains-xml",
            "is-html",
            "contains-html",
            "is-sql",
            "contains-sql",
            "finish-reason",
        ],
        _FUNCTION,
    ),
    **dict.fromkeys(
        ("similar", "similar:cosine", "similar:dot", "similar:euclidean"),
        f"there are no embeddings here: similarity with a metric of words, or {_JUDGE}",
    ),
    **dict.fromkeys(
        ["is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"],
        "trace with require_tools and args",
    ),
    "is-refusal": "contains_any with the words of a refusal",
    "answer-relevance": "answer_relevancy, with expect.pass_threshold of the case",
    "context-faithfulness": "faithfulness, over rows with their documents",
    "context-relevance": "context_relevancy, over rows with their documents",
    "context-recall": _JUDGE,
    "conversation-relevance": _JUDGE,
    "trajectory:goal-success": "model_judge with include_trace",
    "trace-span-duration": "trace with max_seconds",
    "trace-span-count": "trace with max_tool_calls",
    "trace-error-spans": "trace with require_no_denied",
    "skill-used": "trace with require_tools",
    "agent-rubric": "model_judge with include_trace",
    "search-rubric": _JUDGE,
    "select-best": "pairwise",
    "max-score": "assay compare, of two runs",
    "human": "assay label",
    "webhook": "external_endpoint",
    **dict.fromkeys(["classifier", "moderation", "guardrails", "pi"], _JUDGE),
    **dict.fromkeys(("perplexity", "perplexity-score"), "nothing here reads log-probabilities"),
}
"""What does not, and what to write instead."""

KNOWN = frozenset({*_RULES, *_LEFT})
"""Types of assertions that are known by name."""

OF_TRACES = frozenset({"cost", "latency"})
"""Assertions over what a result says of its call; those over tools have no trace in results."""

_CARRIED = frozenset({"type", "value", "threshold", "weight", "metric", "provider", "rubricPrompt"})
_OF_FUNCTIONS = frozenset({"config", "source", "function"})
_HINTS = {"transform": "a function can take the answer apart", "contextTransform": _FUNCTION}


def declared(said: ConfigPart, asked: AskedAssertion) -> Declaration:
    """The grader that an assertion becomes.

    Raises:
        InputError: If it has no counterpart, with what to write instead.
    """
    rule = _RULES.get(asked.type)
    if rule is None:
        hint = _LEFT.get(asked.type) or nearest(asked.type, sorted(KNOWN))
        hint = hint if asked.type in _LEFT or hint.startswith("did you mean") else _FUNCTION
        raise InputError(f"{asked.type[:60]!r} has no counterpart here", hint=hint)
    for name, _ in said.fields():
        if name not in (_CARRIED | _OF_FUNCTIONS if asked.type == "python" else _CARRIED):
            what = f"{name[:60]!r} of an assertion has no counterpart"
            raise InputError(what, hint=_HINTS.get(name, ""))
        if name == "rubricPrompt":
            asked.doubts.append("its own rubricPrompt is not used")
    return rule(asked)


def asked_of(
    said: ConfigPart, variables: Mapping[str, Json], *, is_verdict: bool, judge: ConfigPart | None
) -> AskedAssertion:
    """Read an assertion for one test.

    Args:
        said: The assertion; where its value is a file of code, with ``source`` and ``function``.
        variables: Those of the test.
        is_verdict: See `AskedAssertion`.
        judge: The model that the test names for judging.

    Raises:
        InputError: For a template that cannot be filled in.
    """
    data = said.value if isinstance(said.value, dict) else {}
    kind, value = str(data.get("type") or ""), data.get("value")
    inverse = kind.startswith("not-")
    named = said.get("provider") or judge
    return AskedAssertion(
        type=kind.removeprefix("not-"),
        inverse=inverse,
        value=_filled(value, variables) if kind.removeprefix("not-") in _RULES else value,
        raw=value,
        threshold=number_of(said.get("threshold")),
        variables=variables,
        is_verdict=is_verdict,
        source=str(data.get("source") or ""),
        function=str(data.get("function") or ""),
        config=data.get("config"),
        model=model_of(provider_of(named)[0]) if named else "",
        doubts=[],
    )


def _filled(value: Json, variables: Mapping[str, Json]) -> Json:
    if isinstance(value, str):
        return rendered(value, variables)
    if isinstance(value, list):
        if any(isinstance(one, str) and one.startswith("file://") for one in value):
            raise InputError("a file in a list of values is not read", hint="write its text there")
        return [rendered(one, variables) if isinstance(one, str) else one for one in value]
    return value
