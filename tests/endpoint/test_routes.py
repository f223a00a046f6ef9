"""Being an endpoint: every wire form over real HTTP, who gets in, and how much."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import httpx
import pytest

from assay.endpoint import Served, app_for, router_finding, router_for, serve_wire
from assay.endpoint.problems import ProblemError
from assay.endpoint.scorers import scorer_of
from assay.errors import InputError
from assay.graders.endpoints.calling import grade_remote, probe
from assay.graders.endpoints.forms import FORMS
from assay.graders.endpoints.settings import SIGNATURE, TIMESTAMP, EndpointSettings, Protocol, sign
from assay.scoring import Json
from assay.scoring.graded import Graded
from assay.types import StringThread, Submission
from tests.each import each
from tests.endpoint_servers import serving

if TYPE_CHECKING:
    from fastapi import FastAPI, Request


def grade(
    answer: str, expected: object = None, metadata: dict[str, object] | None = None
) -> object:
    """Whether the answer is the expected one."""
    if answer == "fail":
        raise RuntimeError("cannot judge this")
    if answer == "nan":
        return math.nan
    if answer == "far":
        return 2.0
    return {"score": float(answer == expected), "reason": f"{answer!r} is given", "extra": metadata}


def client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver")


@functools.cache
def plain_app() -> FastAPI:
    return app_for(grade)


async def post(path: str, body: object, app: FastAPI | None = None) -> httpx.Response:
    async with client(app or plain_app()) as http:
        return await http.post(path, json=body)


def problem(response: httpx.Response, status: int) -> dict[str, Json]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = cast("dict[str, Json]", response.json())
    assert body["status"] == status
    return body


TURNS: list[Json] = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "4"}]
NO_REWARDS: Json = {"rewards": [], "scores": [], "extra_logs": {"graded": []}}
UNLIKE: dict[str, list[tuple[Json, str]]] = {
    "/v1/grade": [
        *(({}, ""), ([], ""), ({"items": {}}, "")),
        ({"items": [{"answer": "x"}]}, "items[0].id"),
        ({"items": [3]}, "items[0].id"),
        ({"items": [{"id": True, "answer": "x"}]}, "items[0].id"),
        ({"items": [{"id": "a"}, {"id": "a", "answer": "y"}]}, "items[1].id"),
        ({"items": [{"id": "1"}, {"id": 1, "answer": "y"}]}, "items[1].id"),
    ],
    "/score": [
        ({}, "turns"),
        ({"turns": TURNS, "extra": 1}, "extra"),
        ({"turns": [{"role": "user", "content": [{"type": "image"}]}]}, "turns[0].content"),
        ({"turns": [{"role": "user"}]}, "turns[0].content"),
        ({"turns": TURNS, "id": "12"}, "id"),
        ({"turns": TURNS, "metadata": []}, "metadata"),
    ],
    "/get_reward": [
        *(([], ""), ({}, "query"), ({"query": 3}, "query"), ({"query": [3]}, "query[0]")),
        ({"query": ["a"], "labels": ["x", "y"]}, "labels"),
        ({"query": ["a"], "prompts": [1]}, "prompts[0]"),
    ],
    "/verify": [
        *(([], "responses_create_params"), ({}, "responses_create_params")),
        ({"responses_create_params": {}}, "response.output"),
        ({"responses_create_params": {}, "response": {}}, "response.output"),
        (
            {"responses_create_params": {"input": [{"role": 3}]}, "response": {"output": []}},
            "responses_create_params.input",
        ),
    ],
    "/aggregate_metrics": [({}, "")],
}
"""Bodies of another shape than a form's, and the field that is named."""


@each(("path", "body", "field"), [(path, *row) for path, rows in UNLIKE.items() for row in rows])
async def test_other_shapes_are_refused(path: str, body: Json, field: str) -> None:
    said = problem(await post(path, body), 422)
    errors = cast("list[dict[str, str]]", said["errors"])
    assert [error["field"] for error in errors][:1] == [field]


# assay's own form


async def test_a_grader_describes_itself_and_its_interface() -> None:
    schema: Json = {"type": "object", "required": ["x"]}
    app = app_for(grade, version="3", max_batch=5, metadata_schema=schema)
    said: Json = "Whether the answer is the expected one."
    described: dict[str, Json] = {"name": "grade", "version": "3", "description": said}
    limits: dict[str, Json] = {"max_batch": 5, "score_range": [0.0, 1.0]}
    async with client(app) as http:
        own: dict[str, Json] = {**limits, "metadata_schema": schema, "protocol": "assay/1"}
        assert (await http.get("/v1/info")).json() == {**described, **own}
        assert (await http.get("/info")).json() == described
        assert (await http.get("/metadata_schema")).json() == schema
        paths = (await http.get("/openapi.json")).json()["paths"]
    assert set(paths) == {
        "/v1/info", "/v1/grade", "/info", "/metadata_schema", "/score", "/batch_score",
        "/get_reward", "/verify", "/seed_session", "/close_session", "/reverify_mode",
        "/aggregate_metrics",
    }  # fmt: skip
    body = paths["/v1/grade"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["required"] == ["items"]


async def test_a_batch_is_graded_item_by_item() -> None:
    messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    items: list[Json] = [
        {"id": "right", "answer": "4", "expected": "4", "metadata": {"a": 1}},
        {"id": 7, "messages": cast("Json", messages), "expected": "5"},
        {"id": "fail", "answer": "fail"},
        {"id": "nan", "answer": "nan"},
        {"id": "far", "answer": "far"},
        {"id": "shapeless"},
        {"id": "number", "answer": 4.0},
    ]
    response = await post("/v1/grade", {"items": items})
    assert response.status_code == 200
    results = cast("list[dict[str, Json]]", response.json()["results"])
    assert [r["id"] for r in results] == ["right", 7, "fail", "nan", "far", "shapeless", "number"]
    assert [r["score"] for r in results] == [1.0, 0.0, None, None, None, None, None]
    assert [r["status"] for r in results] == ["scored"] * 2 + ["error"] * 5
    assert results[0] == {
        "id": "right",
        "status": "scored",
        "score": 1.0,
        "reason": "'4' is given",
        "details": {"extra": {"a": 1}},
        "flags": [],
        "assurance": "separate",
        "error": None,
    }
    codes = [cast("dict[str, str]", r["error"])["code"] for r in results[2:]]
    assert codes == ["error", "bad_return", "bad_return", "bad_item", "bad_item"]
    assert "cannot judge this" in json.dumps(results[2]["error"])


@each(
    ("path", "body", "reply"),
    [
        ("/v1/grade", {"items": []}, {"results": []}),
        ("/batch_score", {"requests": []}, {"responses": []}),
        ("/get_reward", {"query": []}, NO_REWARDS),
        ("/get_reward", {"query": [], "prompts": [], "labels": []}, NO_REWARDS),
    ],
)
async def test_an_empty_batch_is_graded(path: str, body: Json, reply: Json) -> None:
    assert (await post(path, body)).json() == reply


async def test_half_a_character_is_answered() -> None:
    async with client(plain_app()) as http:
        response = await http.post(
            "/v1/grade",
            content=b'{"items": [{"id": "a", "answer": "\\ud800", "expected": "\\ud800"}]}',
            headers={"content-type": "application/json"},
        )
    assert response.json()["results"][0]["score"] == 1.0


class Odd:
    """Scorers that break their promises."""

    @staticmethod
    async def too_few(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        return []

    @staticmethod
    async def reversed_(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        return [Graded(id=n, status="scored", score=float(n == "b")) for n, _ in items][::-1]

    @staticmethod
    async def fails(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        raise KeyError("internal detail")

    @staticmethod
    async def says_why(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        raise InputError("judges cannot run yet")

    @staticmethod
    async def skips(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        return [Graded(id=n, status="skipped", reason="no code") for n, _ in items]


TWO: Json = {"items": [{"id": "a", "answer": "x"}, {"id": "b", "answer": "y"}]}


async def test_a_scorer_that_breaks_its_promise_makes_errors_and_no_zeros() -> None:
    async def results(scorer: object) -> list[dict[str, Json]]:
        app = serve_wire(scorer)  # pyright: ignore[reportArgumentType] - one of the odd ones
        return cast("list[dict[str, Json]]", (await post("/v1/grade", TWO, app)).json()["results"])

    assert [r["score"] for r in await results(Odd.reversed_)] == [0.0, 1.0]
    for scorer in (Odd.too_few, Odd.fails, Odd.says_why):
        assert [r["status"] for r in await results(scorer)] == ["error", "error"]
    assert "judges cannot run yet" in json.dumps(await results(Odd.says_why))
    assert "internal detail" not in json.dumps(await results(Odd.fails))


# Adaptive's form


async def test_one_conversation_is_scored_for_adaptive() -> None:
    request: Json = {"turns": TURNS, "metadata": {"expected": "4"}, "id": 12}
    assert (await post("/score", request)).json() == {
        "reward": 1.0,
        "metadata": {
            "reason": "'4' is given",
            "flags": [],
            "details": {"extra": {"expected": "4"}},
        },
        "id": 12,
    }
    for bare in ({"turns": TURNS, "metadata": None, "id": None}, {"turns": TURNS}):
        response = (await post("/score", bare)).json()
        assert (response["reward"], response["id"]) == (0.0, None)


async def test_what_cannot_be_scored_for_adaptive_is_no_reward() -> None:
    bad: Json = {"turns": [{"role": "assistant", "content": "fail"}], "id": 9}
    said = problem(await post("/score", bad), 500)
    assert "item 9: RuntimeError: cannot judge this" in str(said["detail"])
    said = problem(await post("/batch_score", {"requests": [{"turns": TURNS}, bad]}), 500)
    assert cast("list[dict[str, str]]", said["errors"])[0]["field"] == "requests[1]"
    skipping = serve_wire(Odd.skips)
    assert "skipped: no code" in str(problem(await post("/score", {"turns": TURNS}, skipping), 500))


# OpenRLHF's form


async def test_samples_are_rewarded_for_openrlhf() -> None:
    body: Json = {
        "query": ["<s>Q: 4<|im_end|>\n", "Q: 5</s>", "Q: fail"],
        "prompts": ["Q: ", "Q: ", "Q: "],
        "labels": ["4", "4", "4"],
    }
    assert (await post("/get_reward", body)).json() == {
        "rewards": [1.0, 0.0, 0.0],
        "scores": [1.0, 0.0, 0.0],
        "extra_logs": {"graded": [1, 1, 0]},
    }


async def test_rewards_keep_their_scale_and_scores_are_moved_to_one() -> None:
    def number(answer: str) -> float:
        return float(answer)

    app = app_for(number, score_range=(-1.0, 1.0))
    reply = (await post("/get_reward", {"query": ["-1", "0", f"{1 + 1e-12}"]}, app)).json()
    assert (reply["rewards"], reply["scores"]) == ([-1.0, 0.0, 1.0], [0.0, 0.5, 1.0])


async def test_a_sample_that_cannot_be_graded_never_ends_a_training_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for answer in ("fail", "nan", "far"):
        response = await post("/get_reward", {"query": [answer], "prompts": [""], "labels": [None]})
        assert response.status_code == 200
        assert response.json()["extra_logs"] == {"graded": [0]}
    assert caplog.text.count("1 of 1 samples could not be graded and are answered with 0") == 3
    strict = app_for(grade, on_error="fail")
    said = problem(await post("/get_reward", {"query": ["fail"]}, strict), 500)
    assert "cannot judge this" in str(said["detail"])


async def test_a_query_without_its_prompt_is_not_graded_as_a_whole() -> None:
    """Otherwise the answer in the prompt's examples would be the model's."""
    body: Json = {"query": ["4"], "prompts": ["the answer is 4"], "labels": ["4"]}
    assert (await post("/get_reward", body)).json()["extra_logs"] == {"graded": [0]}


async def test_a_flood_of_special_tokens_does_not_hold_up() -> None:
    started = time.process_time()
    pads = "<|a|> " * 5_000 + "</s>" * 4_000
    body: Json = {"query": ["4" + pads, "4" + "<|a|>" * 1_000_000], "labels": ["4", "4"]}
    assert (await post("/get_reward", body)).json()["rewards"] == [1.0, 0.0]
    assert time.process_time() - started < 5


# NeMo Gym's form


def rollout(text: str, **row: Json) -> dict[str, Json]:
    content: Json = [{"type": "output_text", "text": text}]
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "2+2?"}]},
        "response": {
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": content},
            ]
        },
        **row,
    }


async def test_a_rollout_is_verified_for_nemo_gym() -> None:
    body = rollout("4", expected_answer="4", level=3)
    reply = (await post("/verify", body)).json()
    assert reply == {**body, "reward": 1.0, "reason": "'4' is given"}


async def test_what_a_rollout_brings_along_is_no_reward() -> None:
    """A row may hold a reward, or a failure of an earlier verification."""
    body = rollout("5", expected="4", reward=1.0, _ng_failure_class="x", _ng_failure_judge_error=1)
    reply = (await post("/verify", body)).json()
    assert reply["reward"] == 0.0
    assert not any(key.startswith("_ng_failure") for key in reply)


async def test_a_rollout_that_cannot_be_verified_is_marked_and_left_out_of_figures() -> None:
    """Gym 0.7 leaves out what has `mask_sample`, and groups failures by `failure_kind`."""
    failed = (await post("/verify", rollout("fail", reward=1.0))).json()
    assert (failed["reward"], failed["_ng_failure_class"]) == (0.0, "judge_failed")
    assert (failed["mask_sample"], failed["failure_kind"]) == (True, "judge_failed")
    for said in ("_ng_failure_judge_error", "failure_reason"):
        assert "cannot judge this" in failed[said]
    skipped = (await post("/verify", rollout("x"), serve_wire(Odd.skips))).json()
    assert (skipped["reward"], skipped["_ng_failure_class"]) == (0.0, "skipped")
    assert (skipped["mask_sample"], skipped["failure_kind"]) == (True, "assay:skipped")
    graded = (await post("/verify", {**failed, **rollout("4", expected="4")})).json()
    assert graded["reward"] == 1.0
    assert not {"mask_sample", "failure_kind", "failure_reason"} & set(graded)
    theirs = rollout("4", expected="4", mask_sample=True)
    assert (await post("/verify", theirs)).json()["mask_sample"] is True
    problem(await post("/verify", rollout("x"), serve_wire(Odd.skips, on_error="fail")), 500)


async def test_nemo_rl_never_trains_on_what_could_not_be_graded() -> None:
    """NeMo RL masks what has `instance_config.mask_sample`, and looks at no other mark."""
    failed = (await post("/verify", rollout("fail", instance_config={"name": "a"}))).json()
    assert failed["instance_config"] == {"name": "a", "mask_sample": True}
    assert (await post("/verify", rollout("fail"))).json()["instance_config"]["mask_sample"] is True
    again = {**failed, **rollout("4", expected="4")}
    graded = (await post("/verify", again)).json()
    assert (graded["reward"], graded["instance_config"]) == (1.0, {"name": "a"})
    theirs = rollout("4", expected="4", instance_config={"mask_sample": True})
    assert (await post("/verify", theirs)).json()["instance_config"] == {"mask_sample": True}


async def test_the_last_message_is_the_answer() -> None:
    def shown(answer: str, thread: StringThread) -> object:
        return {"score": 1, "answer": answer, "turns": [list(turn) for turn in thread]}

    async def seen(**parts: Json) -> str:
        async with client(app_for(shown, name="x")) as http:
            body = {**rollout("second"), **parts}
            reply = (await http.post("/verify", json=body)).json()
            assert reply["reward"] == 1.0
        served = Served(scorer=scorer_of(shown))
        ((_, submission),) = FORMS["nemo_gym"].decode_request(body, served)
        assert not isinstance(submission, str)
        return str(submission.answer)

    said: Json = {"type": "message", "content": [{"type": "output_text", "text": "first"}]}
    refused: Json = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    call: Json = {"type": "function_call", "name": "f", "arguments": "{}"}
    assert await seen() == "second"
    assert await seen(response={"output": [said, call]}) == "first"
    assert await seen(response={"output": [said, refused]}) == ""
    assert await seen(response={"output": []}) == ""
    assert await seen(responses_create_params={"input": "2+2?", "instructions": "be brief"})


async def test_sessions_and_figures_for_nemo_gym() -> None:
    assert (await post("/seed_session", {"anything": 1})).json() == {}
    named: dict[str, Json] = {"resources_session_id": "s", "episode_id": "e"}  # by Gym 0.7
    for path in ("/seed_session", "/close_session", "/close_session"):
        assert (await post(path, named)).json() == {"resources_session_id": "s"}
    async with client(plain_app()) as http:  # or `gym eval reverify` grades nothing again
        assert (await http.get("/reverify_mode")).json() == "stateless"
    rollouts: list[Json] = [
        {"_ng_task_index": 0, "reward": 1.0},
        {"_ng_task_index": 0, "reward": 0.0},
        {"_ng_task_index": 1, "reward": 1},
        {"_ng_task_index": 1, "reward": 0.0, "_ng_failure_class": "judge_failed"},
        {"_ng_task_index": 1, "reward": 0.0, "mask_sample": True},
        {"_ng_task_index": 1, "reward": True},
        {"reward": 10**400},
        {},
        3,
    ]
    reply = (await post("/aggregate_metrics", {"verify_responses": rollouts})).json()
    assert reply["group_level_metrics"] == [
        {"_ng_task_index": 0, "mean/reward": 0.5, "min/reward": 0.0, "max/reward": 1.0},
        {"_ng_task_index": 1, "mean/reward": 1.0, "min/reward": 1.0, "max/reward": 1.0},
    ]
    assert reply["agent_metrics"]["not_graded"] == 6
    assert reply["key_metrics"] == {"mean/reward": pytest.approx(2 / 3)}
    empty = (await post("/aggregate_metrics", {"verify_responses": []})).json()
    assert empty["key_metrics"] == {}


# Limits


@each(
    ("path", "body"),
    [
        ("/v1/grade", {"items": [{"id": n, "answer": "x"} for n in range(3)]}),
        ("/batch_score", {"requests": [{"turns": TURNS}] * 3}),
        ("/get_reward", {"query": ["x"] * 3}),
    ],
)
async def test_a_batch_that_is_too_large_is_refused(path: str, body: object) -> None:
    said = problem(await post(path, body, app_for(grade, max_batch=2)), 413)
    assert "at most 2" in str(said["detail"])


async def test_a_body_that_is_too_long_is_refused_while_it_comes() -> None:
    app = app_for(grade, max_bytes=10_000)
    async with client(app) as http:
        kind = {"content-type": "application/json"}
        problem(await http.post("/v1/grade", content=b"x" * 10_001, headers=kind), 413)
    with serving(app) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            head = f"POST /v1/grade HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(11):
                connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 413")


@each(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"items": [{"id": "a", "answer": "x", "expected": NaN}]}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"items": [{"id": "a", "answer": "no", "answer": "4"}]}', "application/json", 400),
        (b'{"items": []}', "text/plain", 415),
        (b'{"items": []}', "application/x-www-form-urlencoded", 415),
        (b'{"items": []}', "application/json; charset=utf-8", 200),
    ],
)
async def test_a_body_that_is_not_json_is_refused(content: bytes, kind: str, status: int) -> None:
    async with client(plain_app()) as http:
        for path in ("/v1/grade", "/verify", "/get_reward") if status == 400 else ("/v1/grade",):
            reply = await http.post(path, content=content, headers={"content-type": kind})
            assert reply.status_code == status
        packed = {"content-type": "application/json", "content-encoding": "gzip"}
        problem(await http.post("/v1/grade", content=b"x", headers=packed), 415)


async def test_what_is_not_served_is_a_problem_too() -> None:
    async with client(plain_app()) as http:
        problem(await http.get("/nothing"), 404)
        problem(await http.get("/v1/grade"), 405)


@each(
    ("options", "said"),
    [
        ({"score_range": (1.0, 0.0)}, "score_range"),
        ({"score_range": (0.0, math.inf)}, "score_range"),
        ({"max_batch": 0}, "max_batch"),
        ({"token_env": "NOT_SET"}, "NOT_SET holds no secret"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        app_for(grade, **options)  # pyright: ignore[reportArgumentType] - options of a test


# Who gets in

BODY = json.dumps(TWO).encode()
JSON_TYPE = {"content-type": "application/json"}


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setenv("TOKEN", "right")
    monkeypatch.setenv("SIGNING", "key")
    return app_for(grade, token_env="TOKEN", hmac_env="SIGNING")


@each(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Basic right"}, 401),
        ({"authorization": "right"}, 401),
        ({"authorization": "Bearer wrong"}, 403),
        ({"authorization": "Bearer"}, 403),
        ({"authorization": "Bearer Right"}, 403),
        ({"authorization": "Bearer right"}, 200),
        ({"authorization": "bearer  right"}, 200),
    ],
)
async def test_a_token_opens(locked: FastAPI, headers: dict[str, str], status: int) -> None:
    async with client(locked) as http:
        for reply in (
            await http.post("/v1/grade", content=BODY, headers={**JSON_TYPE, **headers}),
            await http.get("/v1/info", headers=headers),
            await http.get("/metadata_schema", headers=headers),
        ):
            assert reply.status_code == status
            if status != 200:
                problem(reply, status)
            if status == 401:
                assert reply.headers["www-authenticate"] == "Bearer"
            assert "right" not in reply.text


def signed(body: bytes, at: float, key: str = "key") -> dict[str, str]:
    stamp = str(int(at))
    return {**JSON_TYPE, TIMESTAMP: stamp, SIGNATURE: sign(key, stamp, body)}


async def test_a_signature_is_of_one_body_key_and_five_minutes(locked: FastAPI) -> None:
    now = time.time()
    good = signed(BODY, now)
    wrong = [
        {**good, SIGNATURE: good[SIGNATURE][:-1] + "x"},
        {**good, SIGNATURE: "v1="},
        {**good, SIGNATURE: "v0=" + good[SIGNATURE][3:]},
        {**good, SIGNATURE: ""},
        {**good, TIMESTAMP: str(int(now) + 1)},
        {**good, TIMESTAMP: "now"},
        {k: v for k, v in good.items() if k != TIMESTAMP},
        signed(BODY, now, key="other"),
        signed(BODY + b" ", now),
        *(signed(BODY, now + age) for age in (-310, 310, -1e6)),
    ]
    async with client(locked) as http:
        for headers in wrong:
            problem(await http.post("/v1/grade", content=BODY, headers=headers), 403)
        for headers in (good, signed(BODY, now - 290), signed(BODY, now + 290)):
            reply = await http.post("/v1/grade", content=BODY, headers=headers)
            assert reply.status_code == 200
        assert (await http.get("/v1/info", headers=signed(b"", now))).status_code == 200


async def test_a_stranger_is_turned_away_before_the_body_is_read(locked: FastAPI) -> None:
    with serving(locked) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            head = f"POST /v1/grade HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\n"
            connection.sendall(head.encode())  # and nothing of the body
            assert connection.recv(100).startswith(b"HTTP/1.1 401")


# Mounted elsewhere


async def test_routes_are_mounted_for_graders_that_are_looked_up() -> None:
    from fastapi import FastAPI

    async def score(items: Sequence[tuple[str, Submission]]) -> list[Graded]:
        return [Graded(id=n, status="scored", score=0.25) for n, _ in items]

    async def find(request: Request) -> Served:
        key = request.path_params["key"]
        if key != "known":
            raise ProblemError(404, f"there is no grader {key!r}")
        return Served(scorer=score, name=key)

    app = FastAPI()
    app.include_router(router_finding(find), prefix="/serve/{project}/{key}")
    app.include_router(router_for(score, name="fixed"), prefix="/fixed")
    async with client(app) as http:
        reply = await http.post("/serve/p/known/v1/grade", json=TWO)
        assert [r["score"] for r in reply.json()["results"]] == [0.25, 0.25]
        assert (await http.get("/serve/p/known/v1/info")).json()["name"] == "known"
        assert (await http.get("/fixed/v1/info")).json()["name"] == "fixed"
        problem(await http.post("/serve/p/other/v1/grade", json=TWO), 404)


# Both ends; every wire form: test_alike.py


async def test_both_ends_agree_on_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SECRET_SHARED", "k" * 40)
    item = Submission(answer="4", expected="4")
    with serving(app_for(grade, hmac_env="ASSAY_SECRET_SHARED")) as url:
        good = EndpointSettings(
            url=url, allow_internal=True, auth="hmac", secret_env="ASSAY_SECRET_SHARED"
        )
        assert [one.score for one in await grade_remote(good, [item])] == [1.0]
        assert (await probe(good)).name == "grade"
        (refused,) = await grade_remote(EndpointSettings(url=url, allow_internal=True), [item])
        assert (refused.status, refused.outcome) == ("error", "rejected")
        assert "a signature is needed" in refused.error
        assert "check secret_env and auth" in refused.error


@each("protocol", ["assay", "adaptive", "openrlhf", "nemo_gym"])
async def test_many_callers_at_once_are_served_in_every_form(protocol: Protocol) -> None:
    answers = [("4", 1.0), ("5", 0.0), ("fail", None), ("nan", None), ("4 ", 0.0)] * 10
    items = [Submission(answer=text, question="2+2?", expected="4") for text, _ in answers]
    with serving(app_for(grade)) as url:
        settings = EndpointSettings(
            url=url, protocol=protocol, allow_internal=True, batch=4, parallel=16
        )
        for found in await asyncio.gather(*(grade_remote(settings, items) for _ in range(2))):
            assert [outcome.score for outcome in found] == [score for _, score in answers]
        assert (await probe(settings)).online
