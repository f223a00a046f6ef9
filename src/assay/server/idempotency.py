"""Requests that may be sent again: the same key and the same request give the same reply.

The reply is stored with what it acknowledges wherever that is one transaction, so that a client
whose connection broke can ask again without doing anything twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from starlette.requests import Request
from starlette.responses import Response

from assay.scoring.json_safe import Json
from assay.server.context import Turn, caller, context
from assay.server.problems import Fault, ProblemError, reply
from assay.store.database import Database
from assay.store.replies import Replies

if TYPE_CHECKING:
    from assay.server.context import Context

__all__ = ["Answer", "Keep", "Work", "carry_out"]

HEADER = "Idempotency-Key"
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with.

    Attributes:
        body: As JSON.
        status: HTTP status, 2xx.
        headers: Beside it.
    """

    body: Json
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def reply(self) -> Response:
        """The answer as a reply."""
        return reply(self.body, self.status, self.headers)


Keep = Callable[[Answer], Answer]
"""Stores an answer; called inside the transaction of what it acknowledges, where there is one."""

Work = Callable[[Database, Keep], Awaitable[Answer]]
"""Carries a request out, and calls `Keep` with its answer."""


async def carry_out(
    request: Request, project: str, work: Work, *, digest: str | None = None
) -> Response:
    """Carry a request out, or give the reply of the time it was carried out before.

    Args:
        request: The request; its ``Idempotency-Key`` says whether it may be one that came before.
        project: Where replies are kept.
        work: What is to be done, on the thread of the database.
        digest: Of the body, where that was streamed.

    Raises:
        ProblemError: 409 if the key came with another request; 422 for a malformed key.
    """
    server = context(request)
    given = request.headers.get(HEADER)
    if given is None:
        answer = await server.storage.follow(lambda database: work(database, _as_it_is))
        return answer.reply()
    if not (0 < len(given) <= _LONGEST and given.isascii() and given.isprintable()):
        raise ProblemError(
            422,
            f"{HEADER} is not 1 to {_LONGEST} printable characters",
            faults=[Fault(HEADER, "malformed", "send a UUID")],
        )
    name = hashlib.sha256(f"{caller(request).id}\n{given}".encode()).hexdigest()
    asked = await _fingerprint(request, digest)

    async def once(database: Database) -> tuple[Answer, bool]:
        if (before := Replies(database).get(project, name)) is not None:
            return _again(before, asked), True

        def keep(answer: Answer) -> Answer:
            kept = json.dumps({"body": answer.body, "headers": dict(answer.headers)})
            Replies(database).put(project, name, asked, answer.status, kept)
            return answer

        return await work(database, keep), False

    async with _alone(server, f"{project}\n{name}"):
        answer, is_replay = await server.storage.follow(once)
    found = answer.reply()
    if is_replay:
        found.headers["Idempotent-Replayed"] = "true"
    return found


def _as_it_is(answer: Answer) -> Answer:
    return answer


def _again(before: tuple[str, int, bytes], asked: str) -> Answer:
    digest, status, kept = before
    if digest != asked:
        raise ProblemError(
            409,
            f"this {HEADER} came with another request before",
            faults=[Fault(HEADER, "used for another request", "send a new one")],
        )
    stored = cast("dict[str, Json]", json.loads(kept))
    return Answer(stored["body"], status, cast("dict[str, str]", stored["headers"]))


async def _fingerprint(request: Request, digest: str | None) -> str:
    whole = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    whole.update(digest.encode() if digest is not None else await request.body())
    return whole.hexdigest()


@asynccontextmanager
async def _alone(server: Context, name: str) -> AsyncGenerator[None]:
    """One at a time: the second of two equal requests waits, and gets the first one's reply."""
    turn = server.turns.setdefault(name, Turn())
    turn.users += 1
    try:
        async with turn.lock:
            yield
    finally:
        turn.users -= 1
        if not turn.users:
            server.turns.pop(name, None)
