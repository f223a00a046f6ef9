"""Trying a grader before it is stored, over HTTP and in the sandbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio

from assay.graders.functions import checks
from assay.sandbox import functions
from assay.sandbox.functions import FunctionLimits
from assay.scoring.json_safe import Json
from assay.service import trials
from assay.store.datasets import Datasets
from tests.server_app import EXACT, FOUR, Site, body_of, faults_of, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS: list[dict[str, Json]] = [
    {"id": f"r{n}", "question": "2 + 2?", "answer": str(n), "expected": "4"} for n in range(1, 9)
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path_factory.mktemp("server"))) as one:
        rows = [*ROWS, {"id": "broken", "question": "no answer"}]
        await one.with_store(lambda base: Datasets(base).create("default", "sums", "", rows))
        made = await one.post(
            "graders", {"key": "four", "kind": "function", "definition": {"source": FOUR}}
        )
        assert made.status_code == 201
        yield one


async def _try(site: Site, source: str, **more: Json) -> dict[str, Any]:
    answer = await _asked(site, source, **more)
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", body_of(answer))


async def _asked(site: Site, source: str, **more: Json) -> httpx.Response:
    body: Json = {"kind": "function", "definition": {"source": source}, **more}
    return await site.post("graders/try", body)


async def test_a_draft_is_tried_beside_the_stored_version_and_changes_stand_first(
    site: Site,
) -> None:
    draft = (
        "async def grade(thread: StringThread) -> float:\n"
        "    print('saw', thread.completion())\n"
        "    return 0.5 if thread.completion() == '4' else 0.0\n"
    )
    trial = await _try(
        site,
        draft,
        samples=[{"id": "mine", "question": "2 + 2?", "answer": "four"}],
        dataset="sums",
        rows=[4],
        take=2,
        saved="four",
        wanted={"r4": 1, "mine": 0.0},
    )
    assert (trial["valid"], trial["saved"]) == (True, "four@1")
    assert [one["id"] for one in trial["samples"]] == ["r4", "mine", "r1", "r2"]
    first, mine, *_ = trial["samples"]
    assert (first["row"], first["answer"], first["expected"]) == (4, "4", "4")
    assert (first["draft"]["score"], first["saved"]["score"]) == (0.5, 1.0)
    assert (first["change"], first["miss"]) == ("-0.5", "wanted 1, got 0.5")
    assert first["draft"]["output"] == "saw 4\n"
    assert first["draft"]["milliseconds"] > 0
    assert (mine["row"], mine["change"], mine["miss"]) == (None, "", "")
    assert trial["summary"] == ("4 samples: 4 scored, 1 changed since four@1, 1 not as wanted")
    listed = body_of(await site.get("graders"))
    assert [one["key"] for one in cast("Any", listed)["items"]] == ["four"], "nothing is stored"


async def test_what_has_a_line_is_marked_there(site: Site) -> None:
    head = "async def grade(thread: StringThread) -> float:\n"
    syntax = await _try(site, f"{head}    return (1.0\n", runs=False)
    assert (syntax["valid"], syntax["ran"]) == (False, False)
    (mark,) = syntax["marks"]
    assert (mark["line"], mark["column"], mark["source"]) == (2, 12, "syntax")
    assert mark["message"].startswith("'(' was never closed")
    assert syntax["checks"][-1]["column"] == 12

    warned = await _try(site, f"{head}    return 1.0 if 1 is 1 else 0.0\n", runs=False)
    assert warned["valid"]
    assert {(m["line"], m["severity"]) for m in warned["marks"]} == {(2, "warning")}

    raises = (
        f"{head}    if thread.completion() == '2':\n"
        "        raise ValueError('<b>x</b>')\n"
        "    return 1\n"
    )
    raised = await _try(site, raises, dataset="sums", take=3)
    assert [one["draft"]["status"] for one in raised["samples"]] == ["scored", "error", "scored"]
    assert raised["samples"][1]["draft"]["line"] == 3
    assert "<b>x</b>" in raised["samples"][1]["draft"]["reason"]
    assert [(m["line"], m["source"]) for m in raised["marks"]] == [(3, "test_run")]

    wrong = await _try(site, f"{head}    return 'yes'\n", dataset="sums", take=1)
    assert (wrong["samples"][0]["draft"]["outcome"], wrong["marks"][0]["line"]) == ("bad_return", 2)


async def test_reading_alone_runs_nothing(site: Site) -> None:
    hangs = "while True: pass\nasync def grade(thread: StringThread) -> float:\n    return 1.0\n"
    assert (await _try(site, hangs, runs=False, dataset="sums", take=3))["samples"] == []


@pytest.mark.slow
async def test_a_loop_is_cut_off_and_those_after_it_are_not_tried(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = partial(FunctionLimits, cpu_seconds=0.5, wall_seconds=60.0)
    monkeypatch.setattr(functions, "FunctionLimits", limits)
    monkeypatch.setattr(trials, "SECONDS", 0.8)  # it is tried twice
    source = (
        "async def grade(thread: StringThread) -> float:\n"
        "    while thread.completion() == '1':\n"
        "        pass\n"
        "    return 1.0\n"
    )
    trial = await _try(site, source, dataset="sums", take=8)
    first, _, _, _, *rest = (one["draft"] for one in trial["samples"])
    assert first["outcome"] == "cpu_timeout"
    assert (first["score"], first["flags"]) == (0, ["timed_out"])
    assert {(one["status"], one["reason"]) for one in rest} == {("skipped", checks.LATE)}
    assert trial["summary"] == "8 samples: 4 scored, 4 skipped"


async def test_other_kinds_are_tried_alike_and_a_bad_row_is_an_error_of_its_own(site: Site) -> None:
    body: Json = {"kind": "declared", "definition": EXACT, "dataset": "sums", "take": 200}
    trial = cast("dict[str, Any]", body_of(await site.post("graders/try", body)))
    *_, broken = [one["draft"] for one in trial["samples"]]
    assert (broken["status"], broken["outcome"]) == ("error", "bad_item")
    assert trial["summary"] == "9 samples: 8 scored, 1 error"
    assert trial["samples"][0]["draft"]["milliseconds"] is None


async def test_what_cannot_be_tried_is_refused(site: Site) -> None:
    twice: dict[str, Json] = {"dataset": "sums", "take": 1, "samples": [{"id": "r1", "answer": ""}]}
    wrong: list[tuple[dict[str, Json], int, str]] = [
        ({"dataset": "sums", "rows": [99]}, 422, "rows[0]"),
        ({"saved": "none"}, 404, ""),
        (twice, 422, "rows[1]"),
        ({"samples": [{"question": "x"}]}, 422, "samples[0]"),
    ]
    for more, status, field in wrong:
        answer = await _asked(site, FOUR, **more)
        assert answer.status_code == status, answer.text
        assert not field or faults_of(answer)[0]["field"].startswith(field)
