"""Bad input over HTTP: each gets its status, the place and the fix, and nothing is stored."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import httpx
import pytest
import pytest_asyncio

from assay.scoring.json_safe import Json
from assay.server.context import ServerSettings
from tests.each import each
from tests.server_app import Site, body_of, faults_of, items_of, jsonl, serving

JSON = {"Content-Type": "application/json"}
GRADE = "/api/v1/projects/default/graders/exact/grade"
DATASET = "/api/v1/projects/default/datasets/d"
LINES = {"Content-Type": "application/x-ndjson"}
SMALL = ServerSettings(
    location="",
    poll_seconds=0.02,
    max_body_bytes=2_000,
    max_dataset_bytes=4_000,
    max_line_bytes=500,
    max_rows=100,
)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(running: Site) -> Site:
    """One for all: what is refused leaves nothing behind."""
    await running.made()
    return running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def small(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    """A server that takes little."""
    async with serving(str(tmp_path_factory.mktemp("small")), SMALL) as one:
        await one.made()
        yield one


async def _parts(body: bytes, size: int) -> AsyncGenerator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@each(
    "sent, status, field, said",
    [
        (b"", 400, "", "a body is needed"),
        (b'{"version": 1, "version": 2}', 400, "", "'version' stands twice"),
        (b'{"items": [', 400, "", "not JSON"),
        (b"\xff\xfe{}", 400, "", "byte 0 is not UTF-8"),
        (b'{"items": [{"answer": "4", "expected": -Infinity}]}', 400, "items[0].expected", "NaN"),
        (b'{"items": [{"metadata": {"x": [1e999]}}]}', 400, "items[0].metadata.x[0]", "NaN"),
        (b'{"items": [{"answer": "4", "expected": ' + b"9" * 5_000 + b"}]}", 400, "", "digits"),
        (b'{"items": [{"expected": ' + b"[" * 80 + b"]" * 80 + b"}]}", 400, "", "deeper"),
        (b"[" * 200_000, 400, "", "deeper"),
        (b'{"items": [{"input": "2+2?"}]}', 422, "items[0]", "needs 'answer' or 'messages'"),
        (
            b'{"items": [{"answer": "4", "expected": "4", "metadata": {"expected": "5"}}]}',
            422,
            "items[0]",
            "'expected' is '4', and 'metadata.expected' is '5'",
        ),
        (b'{"items": [{"id": "\\ud800", "answer": ""}]}', 422, "items[0].id", "unable to parse"),
        (b'{"items": [{"answer": ""}, {"answer": "", "id": "1"}]}', 422, "items[1].id", "also"),
        (b'{"items": [{"answer": "4"}], "verzion": 1}', 422, "verzion", "unknown field"),
        (b'{"items": [{"answer": "4"}], "version": 7}', 404, "", "no version 7"),
    ],
)  # fmt: skip
async def test_a_body_that_is_wrong_is_refused_with_its_place(
    site: Site, sent: bytes, status: int, field: str, said: str
) -> None:
    answer = await site.admin.post(GRADE, content=sent, headers=JSON)
    faults = faults_of(answer)
    assert answer.status_code == status, answer.text
    assert any(f["field"] == field and said in f["message"] for f in faults), answer.text
    assert items_of(await site.get("scores")) == []


async def test_an_unknown_name_comes_with_the_nearest_valid_one(site: Site) -> None:
    wrong: list[tuple[str, Json, str]] = [
        (GRADE, {"items": [{"anser": "4"}]}, "did you mean 'answer'?"),
        (GRADE, {"itemz": [{"answer": "4"}]}, "did you mean 'items'?"),
        (f"{GRADE}?vresion=1", {"items": [{"answer": "4"}]}, ""),
        ("graders", {"key": "x", "kind": "functoin", "definition": {}}, "function"),
        (
            "graders/validate",
            {"kind": "declared", "definition": {"graderz": []}},
            "did you mean 'graders'?",
        ),
    ]
    for path, sent, hint in wrong:
        answer = await site.post(path, sent)
        assert answer.status_code == 422
        assert any(hint in fault["hint"] for fault in faults_of(answer)), answer.text


async def test_a_body_of_another_media_type_is_refused(site: Site) -> None:
    """A form of another page is not JSON, and JSON is no dataset."""
    body = b'{"items":[{"answer":"4"}]}'
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for path, headers in ((GRADE, {}), (GRADE, form), (DATASET, JSON)):
        answer = await site.admin.post(path, content=body, headers=headers)
        assert (answer.status_code, faults_of(answer)[0]["field"]) == (415, "Content-Type")


@each(
    "method, path, status",
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v1/projects/other/graders", 404),
        ("GET", "/api/v1/projects/default/graders/none", 404),
        ("GET", "/api/v1/projects/default/graders/..%2F..%2Fetc", 404),
        ("DELETE", "/api/v1/projects/default/graders", 405),
        ("TRACE", "/api/v1/projects/default/graders", 405),
    ],
)
async def test_what_is_not_there_is_a_problem_too(
    site: Site, method: str, path: str, status: int
) -> None:
    answer = await site.admin.request(method, path)
    faults_of(answer)
    assert answer.status_code == status
    assert bool(answer.headers.get("allow")) is (status == 405)


async def test_an_answer_of_half_characters_is_graded_and_comes_back_as_it_was(site: Site) -> None:
    items: Json = [{"id": "1", "answer": "\ud800", "expected": "\ud800"}, {"answer": "\udfff\0"}]
    answer = await site.post("graders/exact/grade", {"items": items, "record": False})
    results = items_of(answer, "results")
    assert [one["status"] for one in results] == ["scored", "error"]
    assert results[0]["score"] == 1.0


async def test_a_body_that_is_too_large_is_refused_however_its_size_is_told(small: Site) -> None:
    large = json.dumps({"items": [{"answer": "a" * 3_000}]}).encode()
    for body in (large, _parts(large, 100)):
        answer = await small.admin.post(GRADE, content=body, headers=JSON)
        assert answer.status_code == 413
        assert "2000 bytes" in str(body_of(answer)["detail"])
    assert items_of(await small.get("scores")) == []


async def test_a_thousand_items_are_graded_and_one_more_is_refused(site: Site) -> None:
    items: list[Json] = [{"answer": "4", "expected": "4"} for _ in range(1_000)]
    answer = await site.post("graders/exact/grade", {"items": items, "record": False})
    assert len(items_of(answer, "results")) == 1_000
    more = await site.post("graders/exact/grade", {"items": [*items, {"answer": "4"}]})
    assert (more.status_code, faults_of(more)[0]["field"]) == (422, "items")


EMPTY: list[Json] = [{}]


async def test_a_body_of_very_many_values_is_refused_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> None:
        raise AssertionError("every value is being looked at")

    monkeypatch.setattr("assay.server.routes._of_validation", slow)
    bodies: list[tuple[Json, int]] = [
        ({"items": EMPTY * 200_000}, 413),
        ({"items": EMPTY * 20_000}, 422),
        ({"items": EMPTY, **{f"u{n}": 1 for n in range(20_000)}}, 422),
    ]
    for body, status in bodies:
        answer = await site.post("graders/exact/grade", body)
        assert answer.status_code == status
        assert len(faults_of(answer)) <= 100


@each(
    "lines, status, place, said",
    [
        (b"", 422, "rows", "at least one row"),
        (b"\n \n", 422, "rows", "at least one row"),
        (b'{"answer": "a"}\nnot json\n', 400, "line 2", "not JSON"),
        (b'{"answer": "a"}\n[1]\n', 400, "line 2", "must be a JSON object"),
        (b'{"answer": "a"}\n{"answer": NaN}\n', 400, "line 2: answer", "NaN"),
        (b'{"answer": "a"}\n\n{"question": "?"}\n', 422, "line 3", "needs 'answer'"),
        (b'{"answer": "a", "id": "1"}\n{"answer": "b", "id": "1"}', 422, "rows[1]", "also that of"),
        (b'{"answer": "a"}\n{"answer": "' + b"x" * 600 + b'"}\n', 413, "line 2", "500 bytes"),
        (b'{"answer": "' + b"x" * 3_000, 413, "line 1", "500 bytes"),
        (b'{"answer": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}\n' * 90, 413, "", "too large"),
        (b'{"answer": "a"}\n' * 101, 413, "line 101", ""),
        (b'{"answer": "a", "id": "\\u0000"}', 422, "line 1", "zero character"),
        (b'{"answer": ' + b"[" * 70 + b"]" * 70 + b"}", 400, "line 1", "deeper"),
    ],
)
async def test_a_dataset_with_one_wrong_line_is_refused_whole(
    small: Site, lines: bytes, status: int, place: str, said: str
) -> None:
    answer = await small.admin.post(DATASET, content=_parts(lines, 7), headers=LINES)
    faults = faults_of(answer)
    assert answer.status_code == status, answer.text
    assert any(f["field"] == place and said in f["message"] for f in faults), answer.text
    assert items_of(await small.get("datasets")) == []


@each(
    "wrong, more, told",
    [(3, b"", 3), (20, b"", 20), (21, b"", 20), (2, b'{"answer": "' + b"x" * 600, 3)],
)
async def test_all_wrong_lines_of_a_dataset_are_told_at_once(
    small: Site, wrong: int, more: bytes, told: int
) -> None:
    lines = b'{"answer": "a"}\n{"anser": "b"}\n' * wrong + more
    answer = await small.admin.post(DATASET, content=lines, headers=LINES)
    assert answer.status_code == 422
    places = [fault["field"] for fault in faults_of(answer)]
    assert places == [f"line {2 * n + 2 if n < wrong else 2 * n + 1}" for n in range(told)]
    assert faults_of(answer)[0]["hint"] == "'anser': did you mean 'answer'?"
    said = str(body_of(answer)["detail"])
    assert said.startswith("line 2: a row needs 'answer' or 'messages'")
    assert said.endswith(f"(and {told - 1} more)")
    assert items_of(await small.get("datasets")) == []


async def test_a_row_is_data_whichever_way_it_comes(site: Site) -> None:
    """What the command line and datasets take was refused here, field by field."""
    row: Json = {
        "answer": "4",
        "expected": "4",
        "item": {"a": "\ud800"},
        "sample": {"output_text": "4"},
        "split": "test",
        "recorded": None,
    }
    source = "async def grade(thread):\n    return float(sorted(thread.metadata) == KEYS)\n"
    source += "KEYS = ['expected', 'item', 'recorded', 'sample', 'split']\n"
    sent: Json = {"kind": "function", "definition": {"source": source}, "samples": [row]}
    checked = await site.post("graders/validate", sent)
    assert checked.status_code == 200, checked.text
    (sample,) = items_of(checked, "samples")
    assert sample["score"] == 1.0
    talk: list[Json] = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    items: list[Json] = [row, {"input": talk, "expected": "4"}]
    answer = await site.post("graders/exact/grade", {"items": items, "record": False})
    assert answer.status_code == 200, answer.text
    assert [one["score"] for one in items_of(answer, "results")] == [1.0, 1.0]


async def test_rows_of_other_systems_are_stored_under_our_names(site: Site) -> None:
    site = await site.in_new_project()

    async def sent(rows: list[dict[str, Json]], key: str, *names: str) -> httpx.Response:
        return await site.admin.post(
            site.at(f"datasets/{key}"), params={"map": names}, content=jsonl(rows), headers=LINES
        )

    theirs: list[dict[str, Json]] = [{"output": "4", "target": "4"}, {"output": "\ud800 é"}]
    stored = await sent(theirs, "theirs", "answer=output", "expected=target")
    assert stored.status_code == 201, stored.text
    kept = items_of(await site.get("datasets/theirs/rows", whole=True))
    assert [row["data"] for row in kept] == [
        {"answer": "4", "expected": "4"},
        {"answer": "\ud800 é"},
    ]
    refused = await sent(theirs, "x", "answer=")
    assert (refused.status_code, faults_of(refused)[0]["field"]) == (422, "map")
    refused = await sent([{"answer": "4", "output": "5"}], "x", "answer=output")
    assert (refused.status_code, faults_of(refused)[0]["field"]) == (422, "line 1")


async def test_a_server_says_what_it_is_and_to_few_where_its_store_is(site: Site) -> None:
    own = body_of(await site.get("/api/v1/server"))
    assert (own["database"], own["functions"]) == ("SQLite", "bwrap")
    assert str(own["location"]).startswith("/")
    low = site.client(await site.key("admin", "default"))
    shown = body_of(await low.get("/api/v1/server"))
    assert (shown["location"], shown["version"]) == ("", own["version"])
    assert (await site.client().get("/api/v1/server")).status_code == 401
