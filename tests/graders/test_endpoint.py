"""The kind `external_endpoint`: what is sent, what is believed, and in which order."""

from __future__ import annotations

import json
import math
import threading
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.apply import grade_many
from assay.graders.endpoint import EndpointGrader
from assay.graders.endpoints.calling import grade_remote
from assay.graders.endpoints.forms import FORMS, base_url
from assay.graders.endpoints.settings import SIGNATURE, TIMESTAMP, EndpointSettings, Protocol, sign
from assay.graders.spec import GraderSpec, read_spec
from assay.models.pace import Timing
from assay.scoring import Json
from assay.scoring.graded import Graded
from assay.types import StringThread, Submission
from assay.types.codec import Problem
from tests.each import each
from tests.endpoint_servers import Asked, answering, faulty, graded, raw, reset

THREAD = StringThread([("system", "S"), ("user", "Q"), ("assistant", "A")])
FULL = Submission(
    answer="A", thread=THREAD, question="Q", expected=["x", 1], metadata={"domain": "math"}
)
PLAIN = Submission(answer="four", question="2+2?")


def settings(url: str, **more: object) -> EndpointSettings:
    options: dict[str, object] = {"url": url, "allow_internal": True, "retries": 0, **more}
    return EndpointSettings(**options)  # pyright: ignore[reportArgumentType] - options of a test


def spec(url: str, **more: Json) -> GraderSpec:
    options: dict[str, Json] = {"url": url, "allow_internal": True, "retries": 0, **more}
    return GraderSpec(type="external_endpoint", options=options)


# What is sent


async def test_what_is_sent_in_assays_form() -> None:
    odd = Submission(answer="\ud800", metadata=cast("dict[str, Json]", {"x": math.nan, "y": {1}}))
    nothing = [Submission(question="Q"), Submission(thread=StringThread())]
    with faulty(graded) as server:
        found = await grade_remote(settings(server.url), [FULL, PLAIN, odd, *nothing])
        (asked,) = server.asked
    assert [one.status for one in found] == [*["scored"] * 3, "error", "error"]
    assert (asked.method, asked.path) == ("POST", "/v1/grade")
    assert asked.headers["content-type"] == "application/json"
    said = {"system": "S", "user": "Q", "assistant": "A"}
    whole: dict[str, Json] = {"answer": "A", "question": "Q", "expected": ["x", 1]}
    whole |= {"messages": [{"role": role, "content": text} for role, text in said.items()]}
    assert asked.json == {
        "items": [
            {"id": "0", **whole, "metadata": {"domain": "math"}},
            {"id": "1", "answer": "four", "question": "2+2?"},
            {"id": "2", "answer": "\ud800", "metadata": {"x": "nan", "y": [1]}},
        ]
    }


TURNS: Json = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "four"}]
ASKED: Json = {"turns": TURNS, "metadata": {"expected": "4"}, "id": 0}
SAMPLES: Json = {"query": ["2+2?\nfour"], "prompts": ["2+2?\n"], "labels": ["4"]}


@each(
    ("protocol", "path", "body"),
    [
        ("adaptive", "/batch_score", {"requests": [ASKED]}),
        ("openrlhf", "/get_reward", SAMPLES),
    ],
)
async def test_what_is_sent_in_other_forms(protocol: Protocol, path: str, body: Json) -> None:
    with faulty(raw("{}")) as server:
        one = Submission(answer="four", question="2+2?", expected="4")
        await grade_remote(settings(server.url, protocol=protocol), [one])
        assert server.asked[0].path == path
        assert server.asked[0].json == body


async def test_what_is_sent_to_nemo_gym() -> None:
    with faulty(raw('{"reward": 1.0}')) as server:
        (found,) = await grade_remote(settings(server.url, protocol="nemo_gym"), [FULL])
        asked = server.asked[0]
    body = cast("dict[str, Json]", asked.json)
    response = cast("dict[str, Json]", body.pop("response"))
    message = cast("list[dict[str, Json]]", response["output"])[0]
    assert found.score == 1.0
    assert asked.path == "/verify"
    assert message["content"] == [{"type": "output_text", "text": "A", "annotations": []}]
    asked_of: Json = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]
    row: dict[str, Json] = {"domain": "math", "question": "Q", "expected": ["x", 1]}
    assert body == {**row, "responses_create_params": {"input": asked_of}}


@each(
    ("url", "protocol", "base"),
    [
        ("http://h", "assay", "http://h"),
        ("http://h/v1/grade", "assay", "http://h"),
        ("http://h/serve/p/k/v1/grade/", "assay", "http://h/serve/p/k"),
        ("http://h/score", "adaptive", "http://h"),
        ("http://h/a/batch_score", "adaptive", "http://h/a"),
        ("http://h/get_reward", "openrlhf", "http://h"),
        ("http://h/verify", "nemo_gym", "http://h"),
        ("http://h/verify", "assay", "http://h/verify"),
    ],
)
def test_a_url_may_hold_the_route_already(url: str, protocol: Protocol, base: str) -> None:
    assert base_url(url, FORMS[protocol]) == base


# Batches


async def test_batches_are_of_the_size_asked_for_and_keep_their_order() -> None:
    def by_number(asked: Asked) -> Json:
        results: list[Json] = [
            {"id": item["id"], "score": int(str(item["answer"])) / 100} for item in asked.items
        ]
        return {"results": results[::-1]}

    with faulty(answering(by_number)) as server:
        many = [(f"row-{n}", Submission(answer=str(n))) for n in range(70)]
        found = await grade_many([spec(server.url, batch=8)], many)
        assert [outcome.id for outcome in found] == [name for name, _ in many]
        assert [outcome.score for outcome in found] == [n / 100 for n in range(70)]
        assert sorted(len(asked.items) for asked in server.asked) == [6] + [8] * 8


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    busy, most, lock = 0, 0, threading.Lock()
    all_here = threading.Barrier(3)

    def count(asked: Asked) -> Json:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        all_here.wait(20)  # passes only when three are under way at once
        with lock:
            busy -= 1
        return {"results": [{"id": asked.items[0]["id"], "score": 1}]}

    with faulty(answering(count)) as server:
        found = await grade_remote(settings(server.url, batch=1, parallel=3), [PLAIN] * 9)
    assert all(outcome.score == 1.0 for outcome in found)
    assert most == 3


async def test_a_batch_that_fails_takes_no_other_with_it() -> None:
    with faulty(reset, graded) as server:
        found = await grade_remote(settings(server.url, batch=2, parallel=1), [PLAIN] * 4)
    assert [outcome.status for outcome in found] == ["error", "error", "scored", "scored"]


# What is believed


async def told(*results: Json, **options: Json) -> list[Graded]:
    """What is made of an endpoint's results, each meant for an item."""
    with faulty(answering(lambda _: {"results": [*results]})) as server:
        grader = spec(server.url, **options)
        return await grade_many([grader], [(f"{n}", PLAIN) for n in range(len(results) or 1)])


GOOD: dict[str, Json] = {"id": "0", "score": 1}
BELIEVED: list[tuple[list[Json], float | None, str]] = [
    ([GOOD], 1.0, ""),
    ([{"id": 0, "score": 0.25}], 0.25, ""),
    ([{"id": "0", "score": 0}], 0.0, ""),
    ([{"id": "0", "score": 1.0000000000000002}], 1.0, ""),
    ([{"id": "0", "score": True}], None, "is a bool"),
    ([{"id": "0", "score": "1"}], None, "must be a number, got str"),
    ([{"id": "0", "score": math.nan}], None, "nan"),
    ([{"id": "0", "score": 1.0001}], None, "not from 0 to 1"),
    ([{"id": "0", "score": -0.1}], None, "not from 0 to 1"),
    ([], None, "no result for this item"),
    ([{"id": "7", "score": 1}], None, "but one for the unknown id '7'"),
    ([{"id": False, "score": 1}], None, "no result"),
    ([GOOD, {"id": 0, "score": 0}], None, "2 results"),
    ([["0", 1]], None, "no result"),
    ([{**GOOD, "status": "great"}], None, "its status is 'great'"),
    ([{**GOOD, "error": {"code": "quota", "message": "try later"}}], None,
     "quota: try later"),
    ([{**GOOD, "reason": 4}], None, "its 'reason': expected text or null, got 4"),
    ([{**GOOD, "flags": ["odd", 1]}], None, "its 'flags[1]': expected text, got 1"),
    ([{**GOOD, "details": ["why"]}], None, "its 'details': expected a mapping"),
    ([{**GOOD, "assurance": "best"}], None, "its 'assurance': 'best' is not"),
    ([{**GOOD, "reason": None, "flags": None, "details": None}], 1.0, ""),
    ([{**GOOD, "error": "try later"}], None, "error: try later"),
    ([{**GOOD, "status": "error"}], None, "no reason was given"),
    ([{**GOOD, "error": False}], None, "no reason"),
]  # fmt: skip


@each(("results", "score", "said"), BELIEVED)
async def test_only_a_well_formed_result_is_a_score(
    results: list[Json], score: float | None, said: str
) -> None:
    found = (await told(*results))[0]
    assert (found.status, found.score) == ("error" if score is None else "scored", score)
    assert said in found.error


async def test_what_is_told_beside_a_score_or_an_error_is_kept_and_bounded() -> None:
    scored, failed = await told(
        {
            "id": "0",
            "score": 0.5,
            "reason": "r" * 3_000_000,
            "details": {"why": "d" * 1_000_000, "nan": math.nan},
            "flags": ["odd", "f" * 1_000, *["more"] * 100],
        },
        {"id": "1", "error": {"code": "judge_failed", "message": "x" * 100_000}},
    )
    assert scored.score == 0.5
    assert len(scored.reason) == 2_000
    assert scored.flags[0] == "odd"
    assert len(scored.flags) <= 20
    assert len(json.dumps(scored.to_dict())) < 20_000
    assert (failed.status, failed.outcome) == ("error", "error")
    assert failed.error.startswith("the endpoint could not grade it: judge_failed: xxx")
    assert len(failed.error) < 2_200
    assert failed.details["error_code"] == "judge_failed"


async def test_details_do_not_stand_for_what_is_known_here() -> None:
    """An endpoint's details that are named like our own must not replace them."""
    details: Json = {"_outcome": "ok", "_digest": "0", "_parameters": {}, "score": 1}
    found = await told(
        {"id": "0", "score": 0.5, "details": details},
        {"id": "1", "error": "no", "details": details},
    )
    assert [(one.score, one.outcome) for one in found] == [(0.5, "ok"), (None, "error")]
    assert found[0].digest == found[1].digest != "0"
    assert found[0].details["score"] == 0.5
    assert found[0].details["_parameters"] != {}


async def test_each_item_has_the_score_the_assurance_or_the_skip_that_is_its_own() -> None:
    usual, weaker, skipped, unknown = await told(
        {**GOOD, "assurance": None},
        {"id": "1", "score": 1, "assurance": "model"},
        {"id": "2", "status": "skipped", "reason": "no code", "score": None},
        {"id": "three", "score": 1},
    )
    assert (usual.score, usual.assurance) == (1.0, "separate")
    assert (weaker.score, weaker.assurance) == (1.0, "model")
    assert (skipped.status, skipped.score, skipped.reason) == ("skipped", None, "no code")
    assert (unknown.status, unknown.score) == ("error", None)


async def test_a_score_is_moved_from_its_range() -> None:
    scores = (-1, 0, 1, 0.5)
    results: list[Json] = [{"id": n, "score": one} for n, one in enumerate(scores)]
    found = await told(*results, range=[-1, 1])
    assert [one.score for one in found] == [0.0, 0.5, 1.0, 0.75]
    assert [one.details["score"] for one in found] == [*scores]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_a_score_in_its_range_is_always_a_value(low: float, width: float, share: float) -> None:
    high = low + width
    score = min(high, low + share * width)
    span = settings("https://example.com", range=(low, high)).range
    (found,) = FORMS["assay"].decode_answer(
        [("0", PLAIN)], {"results": [{"id": "0", "score": score}]}, span
    )
    node = EndpointGrader(url="https://example.com", range=span)._node(found)
    assert node.value is not None
    assert 0.0 <= node.value <= 1.0


Anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["results", "id", "score", "status", "error", "code", "reward", "rewards",
                 "metadata", "responses", "extra_logs", "graded", "reason", "details", "flags"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.sampled_from(sorted(FORMS)), Anything)
def test_whatever_comes_back_every_item_has_one_outcome(protocol: Protocol, reply: Json) -> None:
    for form in (FORMS[protocol], FORMS[protocol].single or FORMS[protocol]):
        items = [(str(n), PLAIN) for n in range(min(3, form.most))]
        found = form.decode_answer(items, reply, (0.0, 1.0))
        assert [outcome.id for outcome in found] == [name for name, _ in items]
        for outcome in found:
            json.dumps(outcome.to_dict(), allow_nan=False)
            node = EndpointGrader(url="https://example.com")._node(outcome)
            assert (node.value is None) == (outcome.status != "scored")


# The other forms

MARKS: list[tuple[Json, list[float | None]]] = [
    ([0], [None, None]),
    (0, [None, None]),
    ([1, 1, 0], [None, None]),
    (None, [None, None]),
    ([math.nan, "0"], [None, None]),
    ([1.0, True], [0.0, 1.0]),
]
OTHERS: list[tuple[Protocol, Json, list[float | None]]] = [
    ("adaptive", {"responses": [{"reward": 1}, {"reward": 0}]}, [1.0, 0.0]),
    ("adaptive", {"responses": [{"reward": 1, "id": 0}, {"reward": 0, "id": 1}]}, [1.0, 0.0]),
    ("adaptive", {"responses": [{"reward": 1, "id": 1}, {"reward": 0, "id": 0}]}, [None, None]),
    ("adaptive", {"responses": [{"reward": None}, {"reward": 0}]}, [None, 0.0]),
    ("adaptive", {"responses": [{"reward": 1}]}, [None, None]),
    ("adaptive", {"responses": {"reward": 1}}, [None, None]),
    ("openrlhf", {"rewards": [1.0, 0.5], "scores": [0, 0]}, [1.0, 0.5]),
    ("openrlhf", {"scores": [1.0, 0.5]}, [1.0, 0.5]),
    ("openrlhf", {"rewards": [0.0, 0.0], "extra_logs": {"graded": [1, 0]}}, [0.0, None]),
    *(
        ("openrlhf", {"rewards": [0.0, 1.0], "extra_logs": {"graded": marks}}, scores)
        for marks, scores in MARKS
    ),
    ("openrlhf", {"rewards": [1.0]}, [None, None]),
    ("openrlhf", {"rewards": [math.nan, 1]}, [None, 1.0]),
    ("openrlhf", [1.0, 0.5], [None, None]),
]


@each(("protocol", "reply", "scores"), OTHERS)
async def test_what_other_forms_reply(
    protocol: Protocol, reply: Json, scores: list[float | None]
) -> None:
    with faulty(answering(lambda _: reply)) as server:
        found = await grade_remote(settings(server.url, protocol=protocol), [PLAIN, PLAIN])
    assert [outcome.score for outcome in found] == scores


async def test_a_reason_of_adaptives_server_is_kept() -> None:
    said: Json = {"reward": 1.0, "metadata": {"reason": "since", "model": "m"}, "id": None}
    with faulty(answering(lambda _: {"responses": [said]})) as server:
        (found,) = await grade_remote(settings(server.url, protocol="adaptive"), [PLAIN])
    assert (found.reason, found.details) == ("since", {"model": "m"})


async def test_a_batch_that_one_item_breaks_is_asked_for_one_by_one() -> None:
    def only_alone(asked: Asked) -> bool:
        return asked.path == "/batch_score" or "bad" in asked.body.decode()

    def reply(connection: object, asked: Asked, over: threading.Event) -> None:
        answer = raw("no", 500) if only_alone(asked) else raw('{"reward": 1, "id": null}')
        answer(connection, asked, over)  # pyright: ignore[reportArgumentType] - it is a socket

    with faulty(reply) as server:
        three = [Submission(answer=text) for text in ("good", "bad", "fine")]
        found = await grade_remote(settings(server.url, protocol="adaptive"), three)
        assert [outcome.score for outcome in found] == [1.0, None, 1.0]
        assert "answered 500" in found[1].error
        assert len(server.asked) == 4


async def test_what_nemo_gym_fails_or_masks_is_no_reward() -> None:
    """Gym 0.7 calls a reward that measures nothing `mask_sample`, with or without a failure."""
    why = {"failure_kind": "session_lost", "failure_reason": "gone"}
    rows: list[tuple[dict[str, Json], float | None, str]] = [
        ({"_ng_failure_class": "judge_failed", "_ng_failure_judge_error": "down"}, None, "d: down"),
        ({"mask_sample": True}, None, "mask_sample"),
        ({"mask_sample": True, **why}, None, "session_lost: gone"),
        ({"mask_sample": False, **why}, 1.0, ""),
        ({"instance_config": {"mask_sample": True}}, None, "mask_sample"),  # what NeMo RL reads
        ({"mask_sample": "true", "instance_config": []}, None, "mask_sample"),
    ]
    for told, score, said in rows:
        with faulty(raw(json.dumps({"reward": score or 0.0, **told}))) as server:
            (found,) = await grade_remote(settings(server.url, protocol="nemo_gym"), [PLAIN])
        assert (found.status, found.score) == ("error" if score is None else "scored", score)
        assert said in found.error


# Authentication and options


async def test_a_request_can_be_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SECRET_R", "abc")
    with faulty(graded) as server:
        await grade_remote(
            settings(server.url, auth="hmac", secret_env="ASSAY_SECRET_R"),
            [PLAIN],
            timing=Timing(now=lambda: 1234.9),
        )
        asked = server.asked[0]
    assert asked.headers[TIMESTAMP.lower()] == "1234"
    assert asked.headers[SIGNATURE.lower()] == sign("abc", "1234", asked.body)
    assert "authorization" not in asked.headers
    assert "abc" not in str(asked.headers)


@each(
    ("options", "said"),
    [
        ({"url": "http://127.0.0.1"}, "url names 127.0.0.1, a loopback address"),
        ({"range": [1, 0]}, "range must be"),
        ({"range": [0]}, "range must be"),
        ({"range": [-1e308, 1e308]}, "range must be"),
        ({"auth": "bearer"}, "needs a secret"),
        ({"auth": "none", "secret_env": "ASSAY_SECRET_X"}, "secret_env is given"),
        ({"secret_env": "sk-1234567890"}, "secret_env must name a variable"),
        ({"secret_env": "AWS_SECRET_ACCESS_KEY"}, "begins with ASSAY_SECRET_"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Json], said: str) -> None:
    problems: list[Problem] = []
    declared: dict[str, Json] = {"type": "external_endpoint", "url": "https://example.com"}
    assert read_spec({**declared, **options}, (), problems, base="/") is None
    assert said in problems[0].message
    assert "1234567890" not in str(problems)


async def test_wrong_options_in_code_are_an_error_of_the_grader() -> None:
    with pytest.raises(InputError):
        EndpointSettings(url="nonsense")
    scored = await EndpointGrader.compute_many([{"url": "nonsense", "answer": "x"}])
    assert isinstance(scored[0], InputError)
