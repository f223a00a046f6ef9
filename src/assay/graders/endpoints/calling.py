"""Send items to an endpoint in batches, and say what came of each; ask an endpoint what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from assay.errors import AssayError, GraderError
from assay.graders.endpoints.forms import FORMS, base_url
from assay.graders.endpoints.forms.form import Form, Item
from assay.graders.endpoints.guard import Lookup
from assay.graders.endpoints.settings import EndpointSettings
from assay.graders.endpoints.transport import CallError, Timing, Transport
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_parameters
from assay.types.submission import Submission

__all__ = ["EndpointInfo", "grade_remote", "probe"]


async def grade_remote(
    settings: EndpointSettings,
    submissions: Sequence[Submission],
    *,
    timing: Timing | None = None,
    lookup: Lookup | None = None,
) -> list[Graded]:
    """Have an endpoint grade submissions.

    Returns:
        One outcome per submission, in their order, with their places as ids and scores on the
        endpoint's own scale. What could not be graded has ``status="error"``; its ``outcome`` is
        ``unreachable``, ``rejected``, ``bad_reply``, or ``error`` where the endpoint said so.
    """
    items = [(str(number), submission) for number, submission in enumerate(submissions)]
    sent = [item for item in items if _has_answer(item[1])]
    form = FORMS[settings.protocol]
    transport = Transport(settings, base_url(settings.url, form), timing or Timing(), lookup)
    try:
        async with transport:
            graded = await _Calls(transport, form).grade(sent)
    except GraderError as error:  # no secret: nothing was sent
        graded = [Graded.failed(item, str(error)) for item, _ in sent]
    found = {outcome.id: outcome for outcome in graded}
    lacking = "the submission has neither an answer nor a conversation to send"
    return [found.get(item) or Graded.failed(item, lacking) for item, _ in items]


def _has_answer(submission: Submission) -> bool:
    return submission.answer is not None or bool(submission.thread)


class _Calls:
    """The requests of one grading, some of them at once."""

    def __init__(self, transport: Transport, form: Form) -> None:
        self._transport = transport
        self._form = form
        self._turn = asyncio.Semaphore(transport.settings.parallel)

    async def grade(self, items: Sequence[Item]) -> list[Graded]:
        size = min(self._transport.settings.batch, self._form.most)
        batches = [items[start : start + size] for start in range(0, len(items), size)]
        parts = await asyncio.gather(*(self._batch(self._form, batch) for batch in batches))
        return [outcome for part in parts for outcome in part]

    async def _batch(self, form: Form, items: Sequence[Item]) -> list[Graded]:
        try:
            async with self._turn:
                reply = await self._transport.post(form.route, form.encode_request(items))
        except CallError as error:
            # One item that such a server cannot grade fails its whole batch: ask for each alone.
            if form.single is not None and len(items) > 1 and error.status in (422, 500):
                alone = [self._batch(form.single, [item]) for item in items]
                return [outcome for part in await asyncio.gather(*alone) for outcome in part]
            return [Graded.failed(item, str(error), outcome=error.outcome) for item, _ in items]
        except GraderError as error:  # an address that may not be called
            return [Graded.failed(item, str(error), outcome="unreachable") for item, _ in items]
        graded = form.decode_answer(items, reply, self._transport.settings.range)
        return [self._without_secret(outcome) for outcome in graded]

    def _without_secret(self, outcome: Graded) -> Graded:
        hide = self._transport.hidden
        return replace(
            outcome,
            reason=str(hide(outcome.reason)),
            error=str(hide(outcome.error)),
            flags=tuple(str(hide(flag)) for flag in outcome.flags),
            details=cast("dict[str, Json]", hide(dict(outcome.details))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointInfo:
    """What an endpoint says about itself.

    Attributes:
        online: Whether it answered as its protocol asks.
        error: Why not, if it did not.
        name: Its name, if it tells.
        version: Its version, if it tells.
        description: What it grades, if it tells.
        details: Everything else it told, bounded.
    """

    online: bool
    error: str = ""
    name: str = ""
    version: str = ""
    description: str = ""
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def to_dict(self) -> dict[str, Json]:
        """The information as plain JSON."""
        return {
            "online": self.online,
            "error": self.error or None,
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "details": dict(self.details),
        }


async def probe(
    settings: EndpointSettings, *, timing: Timing | None = None, lookup: Lookup | None = None
) -> EndpointInfo:
    """Ask an endpoint what it is, without having anything graded.

    Protocols without a description are asked something empty instead.

    Returns:
        What it said; why it could not be asked is in ``error``, nothing is raised.
    """
    form = FORMS[settings.protocol]
    transport = Transport(settings, base_url(settings.url, form), timing or Timing(), lookup)
    try:
        async with transport:
            if form.info:
                told = await transport.get(form.info)
            elif settings.protocol == "nemo_gym":
                told = await transport.post("/seed_session", {})
            else:
                told = await transport.post(form.route, form.encode_request([]))
    except AssayError as error:
        return EndpointInfo(online=False, error=str(error))
    if not isinstance(told, dict):
        return EndpointInfo(online=False, error=f"{settings.url} does not describe itself")
    info = cast("dict[str, Json]", transport.hidden(record_parameters(told)))
    words = {key: str(info.pop(key, "") or "")[:2_000] for key in _WORDS}
    return EndpointInfo(online=True, details=info, **words)


_WORDS = ("name", "version", "description")
