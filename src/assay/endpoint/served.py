"""`Served`: a grader as it stands behind the routes; `Access`: who may use it."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypedDict

from assay.endpoint.problems import ProblemError
from assay.errors import AssayError, GraderError, InputError
from assay.graders.endpoints.forms.form import Asked
from assay.graders.endpoints.settings import (
    SIGNATURE,
    TIMESTAMP,
    read_secret,
    same_secret,
    signature_problem,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import unrounded
from assay.types.submission import Submission

Scorer: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[Sequence[Graded]]]"
"""Grades items, each with an id that is unique among them."""

OnError: TypeAlias = Literal["zero", "fail"]

_log = logging.getLogger("assay.endpoint")


class ServedOptions(TypedDict, total=False):
    """How a grader is served; the fields of `Served` but for the scorer."""

    name: str
    version: str
    description: str
    score_range: tuple[float, float] | None
    metadata_schema: Mapping[str, Json]
    max_batch: int
    max_bytes: int
    on_error: OnError


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A grader and what its callers are told and allowed.

    Attributes:
        scorer: Grades items.
        name: What it is called.
        version: Its version, free text.
        description: What it grades, for people.
        score_range: Lowest and highest score; one outside is an error of its item. None where
            any finite number is a score.
        metadata_schema: JSON Schema of the metadata it expects.
        max_batch: Items in one request.
        max_bytes: Length of a request's body.
        on_error: What the forms of OpenRLHF and NeMo Gym answer for what cannot be graded:
            ``zero`` with a mark beside it, or ``fail``.

    Raises:
        InputError: For an invalid range, or limits below 1.
    """

    scorer: Scorer
    name: str = "grader"
    version: str = ""
    description: str = ""
    score_range: tuple[float, float] | None = (0.0, 1.0)
    metadata_schema: Mapping[str, Json] = field(default_factory=dict[str, Json])
    max_batch: int = 256
    max_bytes: int = 16 << 20
    on_error: OnError = "zero"

    def __post_init__(self) -> None:
        low, high = self.score_range or (0.0, 1.0)
        if not 0.0 < high - low < float("inf"):
            raise InputError(f"score_range must be the lower score, then the higher: {low}, {high}")
        if self.max_batch < 1 or self.max_bytes < 1:
            raise InputError("max_batch and max_bytes must be at least 1")

    def unit(self, score: float) -> float:
        """A score moved from its range to [0, 1]; cut to it where there is no range."""
        low, high = self.score_range or (0.0, 1.0)
        return min(1.0, max(0.0, (score - low) / (high - low)))

    def read_item(self, row: Mapping[str, Json], number: int) -> Submission:
        """What a dataset row asks to have graded; raises `InputError`."""
        from assay.tasks.rows import read_row

        return read_row(row, number).submission

    async def grade(self, asked: Sequence[Asked]) -> list[Graded]:
        """Grade items; whatever goes wrong is an error of the items it concerns.

        Returns:
            One outcome per item, in their order.
        """
        items = [(name, part) for name, part in asked if isinstance(part, Submission)]
        graded = {outcome.id: outcome for outcome in await self._scored(items)} if items else {}
        return [
            Graded.failed(name, part, outcome="bad_item")
            if isinstance(part, str)
            else self._checked(name, graded.get(name))
            for name, part in asked
        ]

    async def _scored(self, items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        try:
            return await self.scorer(items)
        except AssayError as error:
            failure = str(error)
        except Exception as error:  # whatever is behind the routes: said to whoever asked
            _log.exception("the grader %r failed", self.name)
            failure = f"the grader failed: {type(error).__name__}"
        return [Graded.failed(name, failure) for name, _ in items]

    def _checked(self, name: str, graded: Graded | None) -> Graded:
        if graded is None:
            return Graded.failed(name, "the grader said nothing about this item")
        low, high = self.score_range or (-math.inf, math.inf)
        if graded.score is None or low <= graded.score <= high:
            return graded
        score = unrounded(graded.score, low, high)
        if low <= score <= high:
            return replace(graded, score=score)
        said = f"the score {score:g} is not from {low:g} to {high:g}, the range"
        return Graded.failed(name, said, outcome="bad_return")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The secrets that open an endpoint; any of them will do, and without any it is open."""

    token: str = field(default="", repr=False)
    # Requests may be signed with it instead; see `assay.graders.endpoints.settings`.
    secret: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, *, token_env: str = "", hmac_env: str = "") -> Access:
        """Take the secrets from environment variables."""
        try:
            return cls(
                token=read_secret(token_env) if token_env else "",
                secret=read_secret(hmac_env) if hmac_env else "",
            )
        except GraderError as error:
            raise InputError(error.message, hint=error.hint) from None

    @property
    def is_open(self) -> bool:
        """Whether anybody may use the endpoint."""
        return not (self.token or self.secret)

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Turn away who has no credentials, or a wrong token, before anything else is read."""
        if self.is_open or self._is_signed(headers):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self.token and scheme.lower() == "bearer":
            if not same_secret(given.strip(), self.token):
                raise ProblemError(403, "the token is wrong")
            return
        ways = ["a bearer token"] * bool(self.token) + ["a signature"] * bool(self.secret)
        challenge = {"WWW-Authenticate": "Bearer" if self.token else "Assay-HMAC"}
        raise ProblemError(401, f"{' or '.join(ways)} is needed", headers=challenge)

    def check_body(self, headers: Mapping[str, str], body: bytes, now: float) -> None:
        """Turn away a signed request whose signature is wrong."""
        if self._is_signed(headers):
            signature, timestamp = headers.get(SIGNATURE, ""), headers.get(TIMESTAMP, "")
            if wrong := signature_problem(self.secret, timestamp, signature, body, now):
                raise ProblemError(403, wrong)

    def _is_signed(self, headers: Mapping[str, str]) -> bool:
        return bool(self.secret) and SIGNATURE in headers
