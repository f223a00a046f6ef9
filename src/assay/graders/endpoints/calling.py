"""Send items to an endpoint in batches, and say what came of each; ask an endpoint what it is.

One deadline covers all tries of a request. Tried again is only what surely was not graded or what
the endpoint asks to repeat: no connection, one that broke before a reply, 429, 502, 503, 504.
Redirects are not followed, proxies and cookies of the environment are not used, and a reply is
counted while it is read, before and after it is unpacked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, cast

from assay.errors import AssayError, GraderError
from assay.graders.endpoints.forms import FORMS, base_url
from assay.graders.endpoints.forms.form import Item, WireForm
from assay.graders.endpoints.guard import Lookup, checking_resolver
from assay.graders.endpoints.settings import EndpointSettings, auth_headers, read_secret
from assay.models.faults import redacted
from assay.models.pace import Timing, asked_pause
from assay.models.transport import BodyError, connection_cause, new_session, read_body
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain, record_parameters
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.turns import queueing
from assay.types.submission import Submission

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


async def grade_remote(
    settings: EndpointSettings,
    submissions: Sequence[Submission],
    *,
    timing: Timing | None = None,
    lookup: Lookup | None = None,
) -> list[Graded]:
    """Have an endpoint grade submissions."""
    items = [(str(number), submission) for number, submission in enumerate(submissions)]
    sent = [item for item in items if item[1].answer is not None or item[1].thread]
    form = FORMS[settings.protocol]
    transport = EndpointTransport(settings, timing or Timing(), lookup)
    try:
        async with transport:
            graded = await _Calls(transport, form).grade(sent)
    except GraderError as error:  # no secret: nothing was sent
        graded = [Graded.failed(item, str(error)) for item, _ in sent]
    found = {outcome.id: outcome for outcome in graded}
    lacking = "the submission has neither an answer nor a conversation to send"
    return [found.get(item) or Graded.failed(item, lacking) for item, _ in items]


class _Calls:
    """The requests of one grading, some of them at once."""

    def __init__(self, transport: EndpointTransport, form: WireForm) -> None:
        self._transport = transport
        self._form = form
        self._turn = asyncio.Semaphore(transport.settings.parallel)

    async def grade(self, items: Sequence[Item]) -> list[Graded]:
        size = min(self._transport.settings.batch, self._form.most)
        batches = [items[start : start + size] for start in range(0, len(items), size)]
        parts = await asyncio.gather(*(self._batch(self._form, batch) for batch in batches))
        return [outcome for part in parts for outcome in part]

    async def _batch(self, form: WireForm, items: Sequence[Item]) -> list[Graded]:
        try:
            with queueing():
                await self._turn.acquire()
            try:
                reply = await self._transport.post(form.route, form.encode_request(items))
            finally:
                self._turn.release()
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
    """What an endpoint says about itself."""

    online: bool
    error: str = ""
    name: str = ""
    version: str = ""
    description: str = ""
    # Everything else it told, bounded.
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
    """
    form = FORMS[settings.protocol]
    transport = EndpointTransport(settings, timing or Timing(), lookup)
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


# Requests

_AGAIN = frozenset({429, 502, 503, 504})
_FIRST, _LONGEST = 0.25, 8.0  # seconds of a pause


class CallError(GraderError):
    """A request to an endpoint gave no usable reply."""

    def __init__(self, message: str, *, outcome: str, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.status = status


class _TryAgainError(CallError):
    """A try that may be repeated; ``pause`` is what the endpoint asks to wait, in seconds."""

    def __init__(self, message: str, *, pause: float = 0.0, status: int = 0) -> None:
        super().__init__(message, outcome="unreachable", status=status)
        self.pause = pause


@dataclass(slots=True)
class EndpointTransport:
    """A session with one endpoint; use it as an async context manager."""

    settings: EndpointSettings
    timing: Timing = field(default_factory=Timing)
    lookup: Lookup | None = None
    base: str = field(default="", init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False, repr=False)
    _session: ClientSession | None = field(default=None, init=False, repr=False)
    _secret: str = field(default="", init=False, repr=False)

    async def __aenter__(self) -> Self:
        import aiohttp

        settings = self.settings
        self.base = base_url(settings.url, FORMS[settings.protocol])
        if settings.scheme != "none":
            self._secret = read_secret(settings.secret_env)
        resolver = checking_resolver(allow_internal=settings.allow_internal, lookup=self.lookup)
        connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, limit=0)
        self._session = await self._stack.enter_async_context(new_session(connector))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def post(self, route: str, payload: Json) -> Json:
        """Send JSON and read JSON."""
        return await self._request("POST", route, json.dumps(plain(payload)).encode())

    async def get(self, route: str) -> Json:
        """Read JSON; raises as `post` does."""
        return await self._request("GET", route, b"")

    def hidden(self, value: Json) -> Json:
        """JSON without the secret, should the endpoint have said it back."""
        if isinstance(value, str):
            return value.replace(self._secret, "[redacted]") if self._secret else value
        if isinstance(value, list):
            return [self.hidden(item) for item in value]
        if isinstance(value, dict):
            return {str(self.hidden(key)): self.hidden(item) for key, item in value.items()}
        return value

    def redacted(self, text: str) -> str:
        """What an endpoint said, on one line, bounded, without the secret."""
        return redacted(text, self._secret)

    async def _request(self, method: str, route: str, body: bytes) -> Json:
        seconds = self.settings.timeout_seconds
        deadline = asyncio.get_running_loop().time() + seconds
        tried: list[_TryAgainError] = []
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        return await self._try(method, route, body)
                    except _TryAgainError as failure:
                        tried.append(failure)
                    await self._pause(tried, deadline)
        except TimeoutError:
            before = f"; before that: {tried[-1].message}" if tried else ""
            message = f"{self.base} gave no reply within {seconds:g} seconds{before}"
            raise CallError(message, outcome="unreachable") from None

    async def _pause(self, tried: list[_TryAgainError], deadline: float) -> None:
        """Wait before the next try, or give up."""
        last, number = tried[-1], len(tried)
        asked = last.pause
        left = deadline - asyncio.get_running_loop().time()
        tries = "1 try" if number == 1 else f"{number} tries"
        if number > self.settings.retries:
            problem = f"{last.message} ({tries})"
        elif asked > left:
            problem = f"{last.message} and asks to wait {asked:.0f} seconds, beyond the deadline"
        else:
            await self.timing.sleep(asked + self.timing.backoff(number, _FIRST, _LONGEST))
            return
        raise CallError(problem, outcome="unreachable", status=last.status)

    async def _try(self, method: str, route: str, body: bytes) -> Json:
        import aiohttp

        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "assay",
            **({"Content-Type": "application/json"} if body else {}),
            **auth_headers(self.settings.scheme, self._secret, body, self.timing.now()),
        }
        session = cast("ClientSession", self._session)
        url = f"{self.base}{route}"
        began = False
        try:
            request = session.request(
                method, url, data=body or None, headers=headers, allow_redirects=False
            )
            async with request as response:
                began = True
                return await self._reply(response)
        except aiohttp.ClientSSLError as error:
            message = f"{self.base} cannot be trusted: {self.redacted(str(error))}"
            raise CallError(message, outcome="unreachable") from None
        except aiohttp.ClientResponseError:
            raise CallError(f"{url} does not speak HTTP", outcome="bad_reply") from None
        except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, OSError) as error:
            if began:  # it may have been graded, and paid for
                raise CallError(f"the reply of {url} broke off", outcome="bad_reply") from None
            raise _TryAgainError(
                f"{self.base} cannot be reached: {connection_cause(error)}"
            ) from None
        except aiohttp.ClientError as error:
            message = f"{url} cannot be called: {type(error).__name__}"
            raise CallError(message, outcome="rejected") from None

    async def _reply(self, response: ClientResponse) -> Json:
        """The JSON of a good reply; what kind of failure any other is."""
        status = response.status
        if status in _AGAIN:
            pause = asked_pause(response.headers, self.timing.now()) or 0.0
            raise _TryAgainError(f"{self.base} answered {status}", pause=pause, status=status)
        where = f"{response.method} {response.url.path}"
        if 300 <= status < 400:
            message = f"{where} answered {status}, a redirect, which is not followed"
            raise CallError(message, outcome="rejected", status=status, hint="name the final URL")
        if not 200 <= status < 300:
            said = self.redacted(_explanation(await self._body(response, lenient=True)))
            message = f"{where} answered {status}" + (f": {said}" if said else "")
            raise CallError(message, outcome="rejected", status=status, hint=_mend(status))
        if not _is_json(response.content_type):
            kind = self.redacted(response.content_type)
            raise CallError(f"{where} answered with {kind}, not JSON", outcome="bad_reply")
        body = await self._body(response)
        try:
            return decode_json(body, nan=True)
        except NotJsonError as error:
            wrong = "broken JSON"
            if error.kind == "repeated key":
                wrong = f"the key {self.redacted(error.path)!r:.100} twice in one object"
            raise CallError(f"{where} answered with {wrong}", outcome="bad_reply") from None

    async def _body(self, response: ClientResponse, *, lenient: bool = False) -> bytes:
        """The unpacked body; with ``lenient`` one that cannot be read is as good as none."""
        try:
            return await read_body(response)
        except BodyError as error:
            if lenient:
                return b""
            message = f"{self.base} {error.message}"
            hint = "lower 'batch'" if error.kind == "long" else ""
            raise CallError(message, outcome="bad_reply", hint=hint) from None


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or content_type.endswith("+json")


def _explanation(body: bytes) -> str:
    """What an error reply says: the detail of a problem, or its beginning."""
    try:
        data = cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        return body[:4_096].decode("utf-8", "replace")
    if isinstance(data, dict):
        for key in ("detail", "message", "title", "error"):
            if isinstance(said := data.get(key), str) and said:
                return said
    return json.dumps(data)[:4_096]


def _mend(status: int) -> str:
    if status in (401, 403):
        return "check secret_env and auth"
    return "check url and protocol" if status in (404, 405, 422) else ""
