"""The server's application in this process, as a client over ASGI sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar, cast

import httpx
from fastapi import FastAPI

from assay.scoring.json_safe import Json
from assay.server.app import context_of, create_app
from assay.server.context import ServerSettings
from assay.service.site import new_key
from assay.store.database import Database
from assay.store.projects import ApiKeys
from assay.store.projects import KeyRole as Role

__all__ = [
    "EXACT",
    "FOUR",
    "HERE",
    "Site",
    "body_of",
    "faults_of",
    "items_of",
    "jsonl",
    "scope_of",
    "serving",
]

T = TypeVar("T")

HERE = "http://127.0.0.1:8400"
EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
FOUR = "async def grade(thread):\n    return 1.0 if thread.completion() == '4' else 0.0\n"


@dataclass(frozen=True, slots=True)
class Site:
    """A running application.

    Attributes:
        app: The application.
        admin: A client with a key for everything.
        project: What paths are below, unless they begin with ``/``.
    """

    app: FastAPI
    admin: httpx.AsyncClient
    project: str = "default"

    def at(self, path: str) -> str:
        """A path below the project, unless it begins with ``/``."""
        return path if path.startswith("/") else f"/api/v1/projects/{self.project}/{path}"

    async def in_new_project(self) -> Site:
        """The same application, with a project of one's own."""
        key = f"p{next(_NUMBERS)}"
        answer = await self.post("/api/v1/projects", {"key": key})
        assert answer.status_code == 201, answer.text
        return replace(self, project=key)

    async def with_store(self, work: Callable[[Database], T]) -> T:
        """Do something with its database."""
        return await context_of(self.app).storage.run(work)

    def client(
        self, token: str = "", headers: Mapping[str, str] | None = None
    ) -> httpx.AsyncClient:
        """A client with a key, or without any."""
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url=HERE, headers=sent)

    async def key(self, role: Role, project: str = "*") -> str:
        """A new key."""
        made = new_key()
        await self.with_store(
            lambda database: ApiKeys(database).create(role, role, project, made.hashed, made.prefix)
        )
        return made.token

    async def post(self, path: str, body: Json, **headers: str) -> httpx.Response:
        """Send JSON as the admin."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.admin.post(
            self.at(path), content=json.dumps(body), headers={"Content-Type": JSON, **named}
        )

    async def get(self, path: str, **query: str | int) -> httpx.Response:
        """Ask as the admin."""
        return await self.admin.get(self.at(path), params=query or None)

    async def made(self, key: str = "exact", definition: Mapping[str, Json] = EXACT) -> None:
        """Store a declared grader."""
        body: Json = {"key": key, "kind": "declared", "definition": dict(definition)}
        answer = await self.post("graders", body)
        assert answer.status_code == 201, answer.text

    async def uploaded(self, key: str, rows: Sequence[Mapping[str, Json]]) -> None:
        """Store a dataset."""
        answer = await self.admin.post(
            self.at(f"datasets/{key}"), content=jsonl(rows), headers={"Content-Type": JSONL}
        )
        assert answer.status_code == 201, answer.text

    async def ended(self, job: httpx.Response | str) -> dict[str, Json]:
        """A job once it has ended, of the reply that made it or of its address."""
        path = job if isinstance(job, str) else job.headers["location"]
        await asyncio.wait_for(self.admin.get(f"{path}/events"), 60)
        return body_of(await self.get(path))


_NUMBERS = count()
JSON = "application/json"
JSONL = "application/x-ndjson"


def jsonl(rows: Sequence[Mapping[str, Json]]) -> bytes:
    """Rows as the body of an upload."""
    return b"".join(json.dumps(dict(row)).encode() + b"\n" for row in rows)


def body_of(answer: httpx.Response) -> dict[str, Json]:
    """The JSON object of a reply."""
    return cast("dict[str, Json]", answer.json())


def items_of(answer: httpx.Response, name: str = "items") -> list[dict[str, Json]]:
    """A list of objects in a reply."""
    assert answer.status_code < 300, answer.text
    return cast("list[dict[str, Json]]", body_of(answer)[name])


def faults_of(answer: httpx.Response) -> list[dict[str, str]]:
    """What a problem says is wrong; checks that it is one."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = body_of(answer)
    assert problem["status"] == answer.status_code
    assert {"type", "title", "detail", "instance", "errors"} <= set(problem)
    return cast("list[dict[str, str]]", problem["errors"])


def scope_of(request: httpx.Request, spec: str = "2.3") -> dict[str, object]:
    """A request as ASGI has it, for who reads the reply as it comes: httpx waits for its end.

    Args:
        request: The request.
        spec: From 2.4 on a stream ends where it cannot be sent, before when `receive` says so.
    """
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": spec},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path,
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": ("127.0.0.1", 8400),
        "client": ("127.0.0.1", 1),
    }


@asynccontextmanager
async def serving(location: str, settings: ServerSettings | None = None) -> AsyncGenerator[Site]:
    """Run an application on a database.

    Args:
        location: The database.
        settings: Of the server; its location is not looked at.
    """
    chosen = replace(
        settings or ServerSettings(location=location, poll_seconds=0.02), location=location
    )
    app = create_app(chosen)
    async with app.router.lifespan_context(app):
        bare = Site(app, httpx.AsyncClient())
        token = await bare.key("admin")
        await bare.admin.aclose()
        async with bare.client(token) as admin:
            yield Site(app, admin)
