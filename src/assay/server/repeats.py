"""Requests that are sent again: the same key and the same request give the same reply.

It is stored with what it acknowledges wherever that is one transaction, so that a client whose
connection broke can ask again without doing anything twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from assay.endpoint.problems import ProblemError
from assay.errors import ConflictError
from assay.scoring.json_safe import Json
from assay.server.context import caller, context
from assay.server.replies import reply
from assay.store.database import Database
from assay.store.replies import Replies
from assay.types.codec import Problem

HEADER = "Idempotency-Key"
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class StoredReply:
    """What a request is answered with.

    Attributes:
        body: As JSON; nothing for 204 and 304.
        status: HTTP status.
        headers: Beside it.
    """

    body: Json
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def reply(self) -> Response:
        """The answer as a reply."""
        if self.status in (204, 304):
            return Response(status_code=self.status, headers=dict(self.headers))
        return reply(self.body, self.status, self.headers)


Keep = Callable[[Database, StoredReply], None]
"""Stores an answer; called inside the transaction of what it acknowledges, where there is one."""


class _AnsweredError(Exception):
    """Another server of the database has carried the same request out meanwhile."""


async def carry_out(
    request: Request,
    project: str,
    work: Callable[[Keep | None], Awaitable[StoredReply]],
    *,
    digest: str | None = None,
) -> Response:
    """Carry a request out, or give the reply of the time it was carried out before.

    Raises:
        ProblemError: 409 if the key came with another request; 422 for a malformed key.
    """
    server = context(request)
    given = request.headers.get(HEADER)
    if given is None:
        return (await work(None)).reply()
    if not (0 < len(given) <= _LONGEST and given.isascii() and given.isprintable()):
        raise ProblemError(
            422,
            f"{HEADER} is not 1 to {_LONGEST} printable characters",
            errors=[Problem((HEADER,), "malformed", "send a UUID")],
        )
    name = hashlib.sha256(f"{caller(request).id}\n{given}".encode()).hexdigest()
    asked = await _fingerprint(request, digest)

    def keep(database: Database, answer: StoredReply) -> None:
        kept = json.dumps({"body": answer.body, "headers": dict(answer.headers)})
        if not Replies(database).put(project, name, asked, answer.status, kept):
            raise _AnsweredError  # and what this server did is rolled back

    def get(database: Database) -> tuple[str, int, bytes] | None:
        return Replies(database).get(project, name)

    # The second of two equal requests waits, and gets the first one's reply.
    async with server.turns.setdefault(f"{project}\n{name}", asyncio.Lock()):
        before = await server.storage.run(get)
        if before is None:
            try:
                return (await work(keep)).reply()
            except (_AnsweredError, ConflictError, ProblemError):
                # Refused perhaps only because another server was quicker.
                if (before := await server.storage.run(get)) is None:
                    raise
        found = _again(before, asked).reply()
    found.headers["Idempotent-Replayed"] = "true"
    return found


def _again(before: tuple[str, int, bytes], asked: str) -> StoredReply:
    digest, status, kept = before
    if digest != asked:
        raise ProblemError(
            409,
            f"this {HEADER} came with another request before",
            errors=[Problem((HEADER,), "used for another request", "send a new one")],
        )
    stored = cast("dict[str, Json]", json.loads(kept))
    return StoredReply(stored["body"], status, cast("dict[str, str]", stored["headers"]))


async def _fingerprint(request: Request, digest: str | None) -> str:
    whole = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    if (tag := request.headers.get("If-Match")) is not None:
        whole.update(f"{tag}\n".encode())
    whole.update(digest.encode() if digest is not None else await request.body())
    return whole.hexdigest()
