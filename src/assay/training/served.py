"""A stored grader as a reward: batches are split, and a server that is busy or away is asked again.

If a server does not answer in time, or answers with something else, the outcome has no score and
says why. What waiting cannot mend stops the training: a wrong key, project or grader, or a server
whose version is not the one that graded earlier batches.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from assay.client.errors import (
    ApiError,
    AuthError,
    ServerError,
    TooLargeError,
    UnreachableError,
    UnreadableError,
)
from assay.errors import ConflictError, InputError, NotFoundError
from assay.eval.batch import in_batches, run_batches
from assay.scoring.graded import Graded
from assay.service.graders import MOST_ITEMS
from assay.turns import current_turn, queueing
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.client import AsyncClient

Items: TypeAlias = "Sequence[tuple[str, Submission]]"
Timed: TypeAlias = "tuple[Graded, float]"

_LOG = logging.getLogger("assay.training")
_AT_ONCE = 4
_FEWEST = 64
"""Items of a request, unless there are fewer: a smaller one costs more than it saves."""
_SPLITS = 32
"""How often a refused request is halved, to find the items that are the reason."""
_FIRST_SECONDS = 10.0


class ServedReward:
    """Grades with one version of a stored grader, of a server or a store. Safe after a fork.

    ``given``: ``key@3``; or ``key`` for the version that is newest at the first request.
    ``url``: Address of the server; by default ``ASSAY_URL``, else the store is used.
    """

    def __init__(
        self, given: str, url: str | None, store: str | None, project: str, patience: float
    ) -> None:
        self._key, at, number = given.partition("@")
        if at and not (number.isascii() and number.isdecimal()):
            raise InputError(f"{given!r} has no valid version", hint="KEY or KEY@NUMBER")
        self._version = int(number) if at else None
        self._digest = ""
        self.threshold = 1.0
        self._url, self._store, self._project = url, store, project
        self._patience = patience
        self._clients: dict[int, AsyncClient] = {}  # of each process; they belong to its loop

    @property
    def name(self) -> str:
        """The grader, with its version as soon as that is known."""
        return self._key if self._version is None else f"{self._key}@{self._version}"

    async def check(self) -> None:
        """Check once that the grader exists; a server that is away may come back later."""
        async with self._client(timeout=_FIRST_SECONDS, patience=0.0) as client:
            try:
                await self._pin(client)
            except ApiError as error:
                if not _may_pass(error):
                    raise
                _LOG.warning("%s cannot be asked yet: %s", self._key, error)

    async def __call__(self, items: Items) -> list[Graded]:
        """Grade items; their outcomes, in order.

        The deadline of the current turn holds for each item, and is enforced where it is graded.
        """
        ends = asyncio.get_running_loop().time() + self._patience
        turn, timed = current_turn(), dict[str, Timed]()
        deadline = None if turn is None else turn.limit

        async def grade(part: Items) -> list[Timed]:
            try:
                async with asyncio.timeout_at(ends):
                    return await self._grade(part, [_SPLITS], deadline)
            except TimeoutError:
                late = f"it was not graded within {self._patience:g} seconds"
                return [(Graded.failed(item, late, outcome="late"), 0.0) for item, _ in part]

        def keep(_: Items, done: Sequence[Timed]) -> None:
            timed.update({one[0].id: one for one in done})

        size = min(max(math.ceil(len(items) / _AT_ONCE), _FEWEST), MOST_ITEMS)
        with queueing():
            await run_batches(in_batches(items, size), grade, keep, at_once=_AT_ONCE)
        if turn is not None:
            turn.each = [timed[item][1] for item, _ in items]
        return [timed[item][0] for item, _ in items]

    async def _grade(self, items: Items, splits: list[int], deadline: float | None) -> list[Timed]:
        """Ask for a part; if it is refused because of an item, ask for its halves."""
        try:
            return await self._asked(items, deadline)
        except (TooLargeError, UnreadableError) as error:
            why: Exception = error
        except (AuthError, NotFoundError, ConflictError):
            raise
        except ApiError as error:
            why = error
            if error.status != 500:  # of 500 one item may be the reason
                splits[0] = 0
        except InputError as error:
            if not error.location.field.startswith("items["):
                raise
            why = error
        if len(items) > 1 and splits[0] > 0:
            splits[0] -= 1
            half = len(items) // 2
            return [
                *await self._grade(items[:half], splits, deadline),
                *await self._grade(items[half:], splits, deadline),
            ]
        return [(Graded.failed(item, str(why), outcome=_outcome(why)), 0.0) for item, _ in items]

    async def _asked(self, items: Items, deadline: float | None) -> list[Timed]:
        process = os.getpid()
        if (client := self._clients.get(process)) is None:
            client = self._client(timeout=self._patience, patience=self._patience)
            self._clients[process] = client
        if self._version is None:
            await self._pin(client)
        answers = [one for _, one in items]
        some = await client.graders.grade(
            self._key, answers, version=self._version, deadline=deadline
        )
        if wrong := {some.grader, *(one.grader for one in some)} - {self.name}:
            raise ServerError(f"the server graded with {wrong.pop()!r:.100}, not {self.name!r}")
        self._is(some.digest)
        took = some.seconds if len(some.seconds) == len(some) else [None] * len(some)
        return [
            (replace(one, id=item), seconds or 0.0)
            for one, seconds, (item, _) in zip(some, took, items, strict=True)
        ]

    async def _pin(self, client: AsyncClient) -> None:
        if self._version is None:
            record = await client.graders.get(self._key)
            if record is None:
                raise NotFoundError(
                    f"project {self._project!r} has no grader {self._key!r}",
                    hint="check project, server and store; names of files end in .yaml or .py",
                )
            found = record.latest
        else:
            found = await client.graders.version(self._key, self._version)
        self._is(found.digest)
        self._version = found.number
        threshold = found.definition.get("threshold", 1.0)
        self.threshold = threshold if isinstance(threshold, float) else 1.0

    def _is(self, digest: str) -> None:
        """Make sure that one training never gets rewards of two definitions."""
        if self._digest and digest != self._digest:
            raise ConflictError(
                f"grader {self.name} is not the one that graded earlier batches: its digest was "
                f"{self._digest:.12} and is {digest:.12}",
                hint="is it another server, or another store?",
            )
        self._digest = digest

    def _client(self, *, timeout: float, patience: float) -> AsyncClient:
        from assay.client import AsyncClient

        return AsyncClient(
            self._url, store=self._store, project=self._project, timeout=timeout, patience=patience
        )


def _may_pass(error: ApiError) -> bool:
    """Whether a server that answers so may answer better later."""
    is_busy = error.status == 429 or error.status >= 500
    return isinstance(error, UnreachableError) or (isinstance(error, ServerError) and is_busy)


def _outcome(error: Exception) -> str:
    if isinstance(error, InputError):
        return "bad_item"
    return "unreachable" if isinstance(error, UnreachableError) else "error"
