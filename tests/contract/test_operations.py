"""Every operation over HTTP: who may ask for it, and that what is wrong is refused with its place.

What is sent wrongly follows from the OpenAPI document: every field of a body and every parameter of
an address is of a wrong type, out of range, too long, missing or unknown in turn.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from syrupy.assertion import SnapshotAssertion

from assay.scoring.json_safe import Json
from assay.service.operation import ROLES
from assay.store.database import Database
from tests.server_app import Site, body_of, faults_of, serving
from tests.wrong_input import Place, mistakes, taker

pytestmark = pytest.mark.asyncio(loop_scope="module")

Part: TypeAlias = "dict[str, Any]"
SHARES = 8
"""Of so many shares each is a test: to name operations, every worker would make the application."""

ABOUT = {"project": "default", "key": "exact", "id": "x", "run": "r", "number": "0"}
HEADERS = {"If-Match": "*", "Content-Type": "application/json"}
TEXTS = {"query": ("", "-1", "9" * 30, "ten\0", "x" * 20_000), "path": ("ten\0",)}


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation, as the document has it.

    Attributes:
        method: Its HTTP method.
        path: Its path.
        says: What the document says of it.
        components: What that refers to.
    """

    method: str
    path: str
    says: Part
    components: Part

    def body(self) -> tuple[Part, Json]:
        """The schema of its JSON and the example of it; neither where there is none."""
        content = self.says.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            return {}, None
        schema = content["application/json"]["schema"]
        named = self.components["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        return {**schema, "components": self.components}, named.get("examples", [None])[0]

    def wrong_texts(self) -> Iterator[tuple[str, str, str]]:
        """Where a parameter stands, its name, and what it may not be, whatever that is read as."""
        yield "query", "nonsense", "3"
        for one in self.says.get("parameters", []):
            takes = taker(one["schema"], {"components": self.components})
            for text in TEXTS.get(one["in"], ()):
                if not any(map(takes, _readings(text))):
                    yield one["in"], one["name"], text


def _readings(text: str) -> Iterator[object]:
    yield from (text, [text])
    with suppress(ValueError):
        yield json.loads(text)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path_factory.mktemp("server") / "home")) as running:
        await running.made()
        yield running


@pytest.fixture(scope="module")
def operations(site: Site) -> list[Asked]:
    document: Part = site.app.openapi()
    return [
        Asked(method, path, says, document["components"])
        for path, found in document["paths"].items()
        for method, says in found.items()
    ]


def _held(database: Database) -> dict[str, int]:
    """How many rows each table has."""
    tables = database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name: database.value(f"SELECT count(*) FROM {name}") for (name,) in tables}


async def test_what_may_be_sent(operations: list[Asked], snapshot: SnapshotAssertion) -> None:
    """What is sent wrongly below follows from this: here it is seen when a bound is gone."""
    told: list[str] = []
    for one in operations:
        told.append(f"{one.method.upper()} {one.path}")
        told += [
            f"  {p['in']} {p['name']}: {_bounds(p['schema'])}"
            for p in one.says.get("parameters", [])
        ]
        for kind, body in one.says.get("requestBody", {}).get("content", {}).items():
            told.append(f"  {kind}: {_bounds(body['schema'])}")
    for name, schema in sorted(operations[0].components["schemas"].items()):
        if name.endswith(("Body", "Row", "Score", "Message", "Given")):
            told.append(name)
            told += [f"  {field}: {_bounds(one)}" for field, one in schema["properties"].items()]
            told.append(f"  … {schema.get('additionalProperties', 'any')} {schema.get('required')}")
    assert "\n".join(told) == snapshot


def _bounds(schema: object) -> str:
    """A schema in one line, without its words."""
    if isinstance(schema, dict):
        found = cast("Part", schema).items()
        kept = {k: v for k, v in found if k not in ("description", "title", "examples")}
        return ", ".join(f"{name}={_bounds(one)}" for name, one in kept.items())
    if isinstance(schema, list):
        return f"[{' | '.join(map(_bounds, cast('list[object]', schema)))}]"
    return str(schema)


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_wrong_body_is_refused_with_its_place(
    site: Site, operations: list[Asked], share: int
) -> None:
    before, failed = await site.with_store(_held), list[object]()
    takers = [(one, *one.body()) for one in operations]
    takers = [taker for taker in takers if taker[2] is not None]
    assert len(takers) > 20
    for one, schema, right in takers[share::SHARES]:
        path = one.path.format(**ABOUT)
        for place, wrong in mistakes(schema, right):
            sent = json.dumps(wrong)
            answer = await site.admin.request(one.method, path, content=sent, headers=HEADERS)
            fields = _places(answer)
            is_named = any(_is_at(field, place, wrong) for field in fields)
            if answer.status_code not in (400, 413, 422) or not is_named:
                failed.append((one.path, sent[:200], answer.status_code, fields))
    assert not failed
    assert await site.with_store(_held) == before


def _places(answer: httpx.Response) -> list[str]:
    """What a refusal names: a problem's fields, or the one of OpenAI's form."""
    if "/fine_tuning/" in answer.request.url.path:
        return [str(cast("Part", body_of(answer)["error"])["param"] or "")]
    return [fault["field"] for fault in faults_of(answer)]


def _is_at(field: str, place: Place, wrong: Json) -> bool:
    """Whether a field is a place or below it; of what is missing, that which should have it."""
    above = wrong
    for step in place[:-1]:
        above = cast("dict[str | int, Json]", above)[step]
    is_missing = place and isinstance(above, dict) and place[-1] not in above
    if field and is_missing and field == _told(place[:-1]):
        return True
    said = _told(place)
    return not said or field == said or field.startswith((f"{said}.", f"{said}["))


def _told(place: Place) -> str:
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place).lstrip(".")


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_wrong_address_is_refused_with_its_parameter(
    site: Site, operations: list[Asked], share: int
) -> None:
    before, failed = await site.with_store(_held), list[object]()
    # What is served in other wire forms has no word for it but that there is no such grader.
    asked = [one for one in operations if not one.path.startswith("/serve/")]
    for one in asked[share::SHARES]:
        for place, name, text in one.wrong_texts():
            about = {**ABOUT, name: quote(text)} if place == "path" else ABOUT
            query = {name: text} if place == "query" else None
            path = one.path.format(**about)
            answer = await site.admin.request(
                one.method, path, params=query, content=b"{}", headers=HEADERS
            )
            is_named = name in answer.text
            if answer.status_code == 422:
                is_named = name in [fault["field"] for fault in faults_of(answer)]
            if answer.status_code not in (400, 422) or not is_named:
                failed.append((one.method, path, name, text[:20], answer.text[:200]))
    assert not failed
    assert await site.with_store(_held) == before


async def test_who_may_ask_for_what(
    site: Site, operations: list[Asked], snapshot: SnapshotAssertion
) -> None:
    """A door that somebody forgot to close, or closed to those who need it, would be seen here."""
    own = await site.in_new_project()
    tokens = {
        "anybody": "",
        "who has a key of another project": await site.key("admin", own.project),
        **{f"{role} of the project": await site.key(role, "default") for role in ROLES},
        "admin of all": await site.key("admin"),
    }
    least: list[str] = []
    for one in operations:
        if one.path == "/api/v1/run-events":
            continue  # it never ends for those who may hear it: tests/server/test_runs.py
        path = one.path.format(**ABOUT)
        for name, token in tokens.items():
            async with site.client(token) as client:
                answer = await client.request(one.method, path, content=b"x")
            assert answer.status_code < 500, (path, answer.text)
            if answer.status_code not in (401, 403):
                least.append(f"{one.method.upper()} {one.path}: {name}")
                break
        else:
            raise AssertionError(f"nobody may ask for {path}")
    assert "\n".join(least) == snapshot
