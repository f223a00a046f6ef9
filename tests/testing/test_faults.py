"""Fault plans, and each fault as it arrives over a socket."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError
from assay.graders.apply import grade_submission
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.grader_files import load_graders
from assay.testing import Asked, FakeJudge, Fault
from assay.testing.faults import FAULTS, FaultPlan
from assay.types.submission import Submission
from tests.each import each

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "verdict": {"type": "string", "enum": ["MET", "UNMET"]},
    },
}
_REPLY = {"reasoning": "because", "verdict": "MET"}
_FORM = {"type": "json_schema", "json_schema": {"name": "v", "schema": _SCHEMA}}


class Raw:
    """A response as it came: its status, headers and body."""

    def __init__(self, fake: FakeJudge, *, protocol: str = "openai") -> None:
        path = "/v1/chat/completions" if protocol == "openai" else "/v1/messages"
        messages = [{"role": "user", "content": "x"}]
        body: dict[str, Any] = {"model": "m", "max_tokens": 10_000_000, "messages": messages}
        if protocol == "openai":
            body["response_format"] = _FORM
        connection = http.client.HTTPConnection(fake.root_url.removeprefix("http://"), timeout=60)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            self.status = response.status
            self.headers = {key.lower(): value for key, value in response.getheaders()}
            self.body = response.read()
        finally:
            connection.close()

    @property
    def error(self) -> Any:
        return json.loads(self.body)["error"]

    @property
    def choice(self) -> Any:
        return json.loads(self.body)["choices"][0]

    @property
    def text(self) -> str:
        return str(self.choice["message"]["content"])


def met(fault: str | Fault, *, protocol: str = "openai", reply: Any = None) -> Raw:
    with FakeJudge(lambda asked: reply or _REPLY, faults=[fault]) as fake:
        return Raw(fake, protocol=protocol)


@each(
    ("fault", "headers"),
    [
        ("429", {}),
        ("429:retry_after=2", {"retry-after": "2"}),
        ("503:retry_after=0.5", {"retry-after": "0.5"}),
        ("529:retry_after_ms=250", {"retry-after-ms": "250"}),
        (
            Fault("429", retry_after="Fri, 31 Dec 2100 23:59:59 GMT"),
            {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"},
        ),
    ],
)
def test_when_to_try_again_is_told(fault: str | Fault, headers: dict[str, str]) -> None:
    raw = met(fault)
    told = {key: value for key, value in raw.headers.items() if key.startswith("retry")}
    assert told == headers
    assert raw.status in (429, 503, 529)


def test_what_is_refused_is_named_as_by_the_provider() -> None:
    raw = met("400:parameter=response_format")
    assert (raw.status, raw.error["param"]) == (400, "response_format")
    assert "top_p" in met("400:parameter=top_p", protocol="anthropic").error["message"]
    assert met("overflow").error["code"] == "context_length_exceeded"
    assert "too long" in met("overflow", protocol="anthropic").error["message"]
    quota = met("quota")
    assert (quota.status, quota.error["code"]) == (429, "insufficient_quota")
    assert quota.error["type"] == "insufficient_quota"


def test_bodies_that_are_no_reply() -> None:
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        met("reset")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(met("truncated").body)
    html = met("html")
    assert (html.status, html.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert html.body.startswith(b"<!doctype html>")
    plain = met("content_type")
    assert plain.headers["content-type"].startswith("text/plain")
    assert json.loads(plain.text) == _REPLY


def test_bodies_that_are_slow_or_huge_are_whole() -> None:
    start = time.monotonic()
    raw = met("slow:seconds=0.08")
    assert time.monotonic() - start >= 0.08
    assert json.loads(raw.text) == _REPLY
    assert len(met("huge:megabytes=2").text) == 2 * 1_048_576


def test_replies_that_end_early() -> None:
    length, half = met("length"), len(json.dumps(_REPLY)) // 2
    assert (length.choice["finish_reason"], len(length.text)) == ("length", half)
    refused = met("refusal").choice
    assert (refused["finish_reason"], refused["message"]["content"]) == ("content_filter", None)
    assert json.loads(met("refusal", protocol="anthropic").body)["stop_reason"] == "refusal"
    assert met("empty").text == ""


def test_replies_that_are_wrong() -> None:
    assert json.loads(met("off_menu").text) == {"reasoning": "because", "verdict": "PERHAPS"}
    assert met("prose").text.endswith("The verdict is MET.")
    assert json.loads(met("missing").text) == {"reasoning": "because"}
    two = {"verdicts": [{"claim": 1}, {"claim": 2}]}  # the last of a list is missing
    assert json.loads(met("missing", reply=two).text) == {"verdicts": [{"claim": 1}]}
    assert "NaN" in met("nan").text
    assert "NaN" in met("nan", reply={"score": 0.5, "reasoning": "x"}).text


def test_duplicate_keys_give_different_verdicts_of_the_menu() -> None:
    pairs: list[tuple[str, object]] = []

    def keep(found: list[tuple[str, object]]) -> None:
        pairs.extend(found)

    json.loads(met("duplicate_keys", reply={"verdict": "UNMET"}).text, object_pairs_hook=keep)
    assert pairs == [("verdict", "MET"), ("verdict", "UNMET")]


@each("kind", sorted(set(FAULTS) - {"hang", "reset", "huge", "slow"}))
def test_every_fault_is_answered_whatever_the_reply_is(kind: str) -> None:
    replies: list[Json] = ["no JSON", [], {}, {"verdicts": []}]
    for reply in replies:
        with FakeJudge([reply], faults=[kind]) as fake:
            assert Raw(fake).status


@each(
    ("text", "fault"),
    [
        ("500", Fault("500")),
        ("429x3", Fault("429", times=3)),
        ("429:retry_after=1x2", Fault("429", retry_after=1.0, times=2)),
        ("slow: seconds=0.5, at=4", Fault("slow", seconds=0.5, at=4)),
        ("400:parameter=max_tokens", Fault("400", parameter="max_tokens")),
        ("500:probability=0.1", Fault("500", probability=0.1)),
        ("overflow", Fault("overflow")),
        ("prosex2", Fault("prose", times=2)),
    ],
)
def test_faults_are_read(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@each(
    ("text", "told"),
    [
        ("", "unknown fault ''"),
        ("418", "unknown fault '418'"),
        ("sloww", "did you mean 'slow'"),
        ("429:retry=1", "did you mean"),
        ("slow:seconds=long", "is not a number"),
        ("429x0", "times from 1 up"),
        ("500:probability=2", "probability from 0 to 1"),
        ("slow:seconds=-1", "below 0"),
        ("slow:seconds=nan", "finite"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Fault.parse(text)


def kinds(plan: FaultPlan, many: int) -> list[str]:
    asked = [Asked(protocol="openai", model="m", messages=(), index=n) for n in range(many)]
    return [fault.kind if fault else "" for fault in map(plan.next, asked)]


def test_a_plan_goes_in_order_and_ends_or_is_a_function() -> None:
    assert kinds(FaultPlan(["500x2", None, "429"]), 6) == ["500", "500", "", "429", "", ""]
    assert kinds(FaultPlan(["500", "429:at=2x2"]), 5) == ["500", "", "429", "429", ""]
    odd = FaultPlan(lambda asked: Fault("500") if asked.index % 2 else None)
    assert kinds(odd, 4) == ["", "500", "", "500"]


def test_chance_is_the_same_with_the_same_seed() -> None:
    first = kinds(FaultPlan(["500:probability=0.3"], seed=1), 200)
    assert first == kinds(FaultPlan(["500:probability=0.3"], seed=1), 200)
    assert first != kinds(FaultPlan(["500:probability=0.3"], seed=2), 200)
    assert 30 < first.count("500") < 90


_DOCUMENT, _ASKED = "Canberra is the capital.", "Which city is the capital?"
_SCORE_MODEL: dict[str, Json] = {
    "type": "score_model",
    "input": [{"role": "user", "content": "Names Canberra? {{sample.output_text}}"}],
}
_LABEL_MODEL: dict[str, Json] = {
    "type": "label_model",
    "input": [{"role": "user", "content": "{{sample.output_text}}\n\nCRITERION:\nCanberra"}],
    "labels": ["yes", "no"],
    "passing_labels": ["yes"],
}
_LEVELS: Json = [{"requirement": "Names Canberra", "levels": ["no", "partly", "yes"]}]
_GRADERS: dict[str, dict[str, Json]] = {
    "binary": {"type": "binary_judge", "criteria": "The answer names Canberra"},
    "chunks": {"type": "context_relevancy"},
    "claims": {"type": "faithfulness"},
    "compare": {"type": "pairwise", "criteria": "Names Canberra", "other": "Sydney."},
    "criterion": {"type": "llm_judge", "criteria": ["The answer names Canberra"], "canary": 0.0},
    "levels": {"type": "llm_judge", "criteria": _LEVELS, "canary": 0.0},
    "model_judge": {"type": "model_judge"},
    "relevance": {"type": "answer_relevancy"},
    "score_model": _SCORE_MODEL,
    "label_model": _LABEL_MODEL,
    "verify": {"type": "faithfulness"},
}
_LATER = {"relevance": 1, "verify": 1}
"""How many requests come before that for the verdicts."""

_WRONG = ["off_menu", "duplicate_keys", "nan", "missing", "prose", "empty", "refusal", "length"]


async def judged(form: str, fault: str, path: Path, protocol: str) -> EvaluationResult:
    rubric = path / "rubric.md"
    rubric.write_text("Names Canberra")
    with FakeJudge(faults=[None] * _LATER.get(form, 0) + [f"{fault}x9"]) as fake:
        model = fake.model if protocol == "openai" else fake.anthropic_model
        declared: dict[str, Json] = {**_GRADERS[form], "model": model}
        if form == "model_judge":
            declared["rubric"] = str(rubric)
        about: dict[str, Json] = {"documents": [_DOCUMENT, "Tea is hot."]}
        submission = Submission(answer=_DOCUMENT, question=_ASKED, metadata=about)
        return await grade_submission(load_graders(json.dumps([declared])), submission)


@pytest.mark.parametrize("form", sorted(_GRADERS))
@each("protocol", ["openai", "anthropic"])
async def test_no_form_makes_a_number_of_a_wrong_reply(
    form: str, protocol: str, tmp_path: Path
) -> None:
    """A fault that does nothing to a form would make a test of that form prove nothing."""
    assert (await judged(form, "slow:seconds=0", tmp_path, protocol)).reward is not None
    for fault in _WRONG:
        result = await judged(form, fault, tmp_path, protocol)
        assert (result.reward, result.isError) == (None, True), fault
