"""Grading over HTTP: what is acknowledged is stored, and the same request is carried out once."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from assay import turns
from assay.registry import files
from assay.scoring.json_safe import Json
from assay.server import admission, limits
from assay.server.app import context_of
from assay.server.storage import Storage
from assay.store.database import Database
from tests.server_app import Site, body_of, faults_of, items_of, serving

ITEMS: list[Json] = [
    {"id": "right", "answer": "4", "expected": "4"},
    {"id": "wrong", "answer": "5", "expected": "4"},
    {"id": "nothing to compare with", "answer": "5"},
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def site(running: Site) -> Site:
    """A project of the test's own, on the server of all of them."""
    own = await running.in_new_project()
    await own.made()
    return own


async def test_a_batch_keeps_its_order_and_one_bad_item_spoils_no_other(location: str) -> None:
    async with serving(location) as site:
        await site.made()
        answer = await site.post("graders/exact/grade", {"items": ITEMS})
        results = items_of(answer, "results")
        assert [one["id"] for one in results] == [cast("dict[str, Json]", i)["id"] for i in ITEMS]
        assert [(one["status"], one["score"]) for one in results] == [
            ("scored", 1.0),
            ("scored", 0.0),
            ("error", None),
        ]
        assert body_of(answer)["grader"] == "exact@1"
        stored = items_of(await site.get("scores"))
        assert [score["graded"] for score in stored] == results
        (one,) = items_of(await site.get("scores", item="wrong"))
        assert (one["source"], one["job"]) == ("grader", "")


async def test_an_item_of_a_wrong_type_fails_alone(site: Site) -> None:
    wrong: list[tuple[Json, str]] = [
        ({"answer": 4.0}, "items[1]: 'answer' must be text, got float"),
        (None, "items[1]: a row must be an object"),
        ({"messages": [{"content": "4"}]}, "items[1]: messages[0] needs a 'role'"),
        ({"anser": "4", "id": "2"}, "did you mean 'answer'?"),
    ]
    for item, said in wrong:
        answer = await site.post("graders/exact/grade", {"items": [ITEMS[0], item]})
        right, failed = items_of(answer, "results")
        assert (right["score"], failed["score"], failed["status"]) == (1.0, None, "error")
        assert (failed["outcome"], said in str(failed["error"])) == ("bad_item", True), failed
        assert (failed["id"], failed["grader"]) == ("2", "exact@1")
        assert failed["digest"] == body_of(answer)["digest"]
        alone = await site.post("graders/exact/grade", {"items": [item]})
        assert alone.status_code == 422


async def test_each_item_of_a_batch_has_its_own_seconds(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of all together would make every item late."""
    ticks = itertools.count()
    monkeypatch.setattr(turns, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    items: list[Json] = [{"answer": "4", "expected": "4"}] * 20
    answer = await site.post("graders/exact/grade", {"items": items, "deadline": 10.0})
    assert body_of(answer)["seconds"] == [1.0] * 20
    assert [one["score"] for one in items_of(answer, "results")] == [1.0] * 20


async def test_the_same_request_is_carried_out_once(location: str) -> None:
    async with serving(location) as site:
        await site.made()
        both = await asyncio.gather(
            *(
                site.post("graders/exact/grade", {"items": ITEMS}, Idempotency_Key="k1")
                for _ in "12"
            )
        )
        again = await site.post("graders/exact/grade", {"items": ITEMS}, Idempotency_Key="k1")
        assert {answer.text for answer in (*both, again)} == {again.text}
        assert again.headers["idempotent-replayed"] == "true"
        assert len(items_of(await site.get("scores"))) == len(ITEMS)

        other = await site.post("graders/exact/grade", {"items": ITEMS[:1]}, Idempotency_Key="k1")
        assert (other.status_code, faults_of(other)[0]["field"]) == (409, "Idempotency-Key")
        async with site.client(await site.key("editor")) as somebody:
            theirs = await somebody.post(
                site.at("graders/exact/grade"),
                json={"items": ITEMS[:1]},
                headers={"Idempotency-Key": "k1"},
            )
        assert theirs.status_code == 200, "a key is its sender's own"


async def test_the_same_request_to_two_servers_of_a_database_is_carried_out_once(
    location: str,
) -> None:
    async with serving(location) as one, serving(location) as two:
        await one.made()
        await one.uploaded("d", [{"answer": "4", "expected": "4"}])
        token = one.admin.headers["Authorization"].removeprefix("Bearer ")
        async with two.client(token) as admin:
            sites = [one, replace(two, admin=admin)] * 2
            graded = await asyncio.gather(
                *(
                    site.post("graders/exact/grade", {"items": ITEMS}, Idempotency_Key="k")
                    for site in sites
                )
            )
            job: Json = {"grader": "exact", "dataset": "d"}
            made = await asyncio.gather(
                *(site.post("jobs", job, Idempotency_Key="j") for site in sites)
            )
        assert len({answer.text for answer in graded}) == 1
        assert len(items_of(await one.get("scores"))) <= len(ITEMS) + 1  # one may be the job's
        assert len({answer.text for answer in made}) == 1, [answer.text for answer in made]
        assert len(items_of(await one.get("jobs"))) == 1


async def test_what_was_made_is_answered_again_with_its_place(site: Site) -> None:
    body: Json = {"key": "human", "kind": "custom", "definition": {}}
    first = await site.post("graders", body, Idempotency_Key="make")
    again = await site.post("graders", body, Idempotency_Key="make")
    assert (first.status_code, again.status_code) == (201, 201)
    for name in ("location", "etag"):
        assert first.headers[name] == again.headers[name]
    assert (await site.post("graders", body)).status_code == 409
    for key in ("", "k" * 201, "a\tb"):
        bad = await site.post("graders", body, Idempotency_Key=key)
        assert (bad.status_code, faults_of(bad)[0]["field"]) == (422, "Idempotency-Key")


async def test_scores_from_elsewhere_go_to_graders_made_for_them(site: Site) -> None:
    await site.post("graders", {"key": "human", "kind": "custom", "definition": {}})
    good: Json = {"grader": "human", "item": "1", "score": 2.5, "reason": "better than asked"}
    mixed = await site.post("scores", {"scores": [good, {**good, "grader": "exact"}]})
    assert (mixed.status_code, faults_of(mixed)[0]["field"]) == (422, "scores[1].grader")
    unknown = await site.post("scores", {"scores": [good, {**good, "grader": "none"}]})
    assert unknown.status_code == 404
    assert items_of(await site.get("scores")) == [], "all of them, or none"

    assert (await site.post("scores", {"scores": [good]})).status_code == 201
    (score,) = items_of(await site.get("scores", grader="human@1"))
    graded = cast("dict[str, Json]", score["graded"])
    assert (score["source"], graded["score"], graded["grader"]) == ("user", 2.5, "human@1")


async def test_stored_graders_speak_the_forms_of_trainers(site: Site) -> None:
    info = body_of(await site.get(f"/serve/{site.project}/exact/v1/info"))
    assert (info["name"], info["version"]) == ("exact", "1")
    items: Json = [{"id": "a", "answer": "4", "expected": "4"}]
    graded = await site.post(f"/serve/{site.project}/exact/v1/grade", {"items": items})
    assert items_of(graded, "results")[0]["score"] == 1.0
    for path in (f"/serve/{site.project}/none/v1/info", "/serve/default/..%2Fx/v1/info"):
        assert (await site.get(path)).status_code == 404
    wrong = await site.admin.post(f"/serve/{site.project}/exact/v1/grade", content=b"{")
    assert wrong.status_code in (400, 415)
    faults_of(wrong)


async def test_openai_s_graders_run_here(site: Site) -> None:
    grader: Json = {
        "type": "string_check",
        "name": "same",
        "input": "{{sample.output_text}}",
        "reference": "{{item.reference}}",
        "operation": "eq",
    }
    sample: Json = {"grader": grader, "model_sample": "4", "item": {"reference": "4"}}
    run = await site.post("/v1/fine_tuning/alpha/graders/run", sample)
    assert body_of(run)["reward"] == 1.0
    valid = await site.post("/v1/fine_tuning/alpha/graders/validate", {"grader": grader})
    assert valid.status_code == 200


async def test_refusals_are_those_that_openai_s_clients_catch(site: Site) -> None:
    """`except openai.BadRequestError` looks for 400 and for an object `error`."""
    body: Json = {"grader": {"type": "strang_check"}, "model_sample": "4"}
    answer = await site.post("/v1/fine_tuning/alpha/graders/run", body)
    error = cast("dict[str, Json]", body_of(answer)["error"])
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error["param"], bool(error["message"])) == ("grader.type", True)
    strange = await site.client("no key").post("/v1/fine_tuning/alpha/graders/run", json=body)
    assert strange.status_code == 401
    assert strange.json()["error"]["type"] == "authentication_error"
    headers = {"Host": "elsewhere.example"}  # refused before it comes to any route
    other = await site.admin.post("/v1/fine_tuning/alpha/graders/run", json=body, headers=headers)
    assert (other.status_code, other.json()["error"]["type"]) == (421, "invalid_request_error")


async def test_what_is_not_here_of_openai_says_what_is(site: Site) -> None:
    for path, status in (("/v1/models", 404), ("/v1/fine_tuning/alpha/graders/run", 405)):
        answer = await site.get(path)
        error = cast("dict[str, Json]", body_of(answer)["error"])
        assert (answer.status_code, error["type"]) == (status, "invalid_request_error")
        said = str(error["message"])
        assert path in said
        assert "/v1/fine_tuning/alpha/graders/validate" in said
        assert (answer.headers.get("allow") == "POST") is (status == 405)


@pytest.mark.sandbox
async def test_functions_grade_in_the_sandbox_and_what_they_break_stays_there(site: Site) -> None:
    source = (
        "import os\n"
        "async def grade(thread):\n"
        "    text = thread.completion()\n"
        "    if text == 'read':\n"
        "        return float(len(open('/etc/passwd').read()))\n"
        "    if text == 'raise':\n"
        "        raise ValueError('\\ud800\\0')\n"
        "    return os._exit(0) if text == 'exit' else 1.0\n"
    )
    function: Json = {"key": "f", "kind": "function", "definition": {"source": source}}
    assert (await site.post("graders", function)).status_code == 201
    items: list[Json] = [{"id": one, "answer": one} for one in ("fine", "read", "raise", "exit")]
    results = items_of(await site.post("graders/f/grade", {"items": items}), "results")
    fine, read, raised, ended = results
    assert (fine["score"], read["score"], raised["status"]) == (1.0, None, "error")
    assert ended["score"] in (0.0, None)
    assert len(items_of(await site.get("scores"))) == 4
    ready = body_of(await site.get("/readyz"))
    assert (ready["status"], ready["database"]) == ("ready", "ok")
    assert ready["sandbox"] in ("bwrap", "landlock")
    counts = (await site.get("/metrics")).text
    assert 'assay_grades_total{kind="function",outcome="ok"}' in counts


async def test_one_thread_has_the_database_nobody_else_waits_and_what_is_given_up_is_not_begun(
    site: Site,
) -> None:
    """A slow write must not hold up an answer that needs no database."""
    started, go_on, done = threading.Event(), threading.Event(), list[str]()

    def slow(_: Database) -> str:
        started.set()
        go_on.wait(10)
        return threading.current_thread().name

    storage = context_of(site.app).storage
    waiting = asyncio.create_task(storage.run(slow))
    await asyncio.to_thread(started.wait, 10)
    left = asyncio.create_task(storage.run(lambda _: done.append("left")))
    stayed = asyncio.create_task(storage.run(lambda _: done.append("stayed")))
    assert (await site.get("/healthz")).status_code == 200
    assert not waiting.done()
    left.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert (await waiting).startswith("assay-store")
    await stayed
    assert done == ["stayed"]


async def test_one_short_item_wakes_one_other_thread_and_that_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It woke three, which cost more CPU than all that they did."""
    for part in (
        admission,
        limits,
    ):  # a busy machine is slower than what is remembered for a moment
        monkeypatch.setattr(part, "_REMEMBERED_SECONDS", 3_600.0)
    body: Json = {"items": [{"answer": "4", "expected": "4"}]}
    assert (await site.post("graders/exact/grade", body)).status_code == 200  # the key is known now
    real, asked = Storage.run, list[str]()
    is_ours = ContextVar("is_ours", default=False)  # the workers look for jobs meanwhile
    is_ours.set(True)

    async def run(storage: Storage, work: Callable[[Database], Any], **more: Any) -> object:
        if is_ours.get():
            asked.append("the database")
        return await real(storage, work, **more)

    monkeypatch.setattr(Storage, "run", run)
    assert (await site.post("graders/exact/grade", body)).status_code == 200
    assert asked == ["the database"]


async def test_files_of_graders_are_read_where_they_hold_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Much YAML takes long, and held up the loop."""
    real, read_by = files.read_grader_files, list[str]()

    def read(given: Mapping[str, str]) -> list[files.GraderFile]:
        read_by.append(threading.current_thread().name)
        return real(given)

    monkeypatch.setattr(files, "read_grader_files", read)
    text = "kind: declared\ndefinition: {graders: [{type: exact_match}]}\n"
    assert (await site.post("graders/import", {"files": {"a.yaml": text}})).status_code == 200
    assert [name.rpartition("_")[0] for name in read_by] == ["assay-functions"]
