"""`Transport`: JSON requests to one endpoint, within a deadline, and never anywhere else.

One deadline covers all tries of a request. Tried again is only what surely was not graded or what
the endpoint asks to repeat: no connection, one that broke before a reply, 429, 502, 503, 504.
Redirects are not followed, proxies and cookies of the environment are not used, and a reply is
counted while it is read, before and after it is unpacked.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from assay.errors import GraderError
from assay.graders.endpoints.guard import Lookup, checking_resolver
from assay.graders.endpoints.settings import EndpointSettings, auth_headers, read_secret
from assay.models.transport import BodyError, connection_cause, new_session, read_body
from assay.scoring.json_safe import Json, plain
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

__all__ = ["CallError", "Timing", "Transport"]

_AGAIN = frozenset({429, 502, 503, 504})
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 8.0
_MOST_TOLD = 300
"""Characters kept of what an endpoint says went wrong."""


class CallError(GraderError):
    """A request to an endpoint gave no usable reply.

    Attributes:
        outcome: ``unreachable`` (no reply in time, also after all tries), ``rejected`` (the
            endpoint refused), or ``bad_reply`` (a malformed reply).
        status: The HTTP status, or 0.
    """

    def __init__(self, message: str, *, outcome: str, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.status = status


class _TryAgainError(Exception):
    """A try that may be repeated; ``pause`` is what the endpoint asks to wait, in seconds."""

    def __init__(self, message: str, *, pause: float = 0.0, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.pause = pause
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where a transport takes time and chance from; tests bring their own.

    Attributes:
        sleep: Waits between tries.
        uniform: A random number between two.
        now: Unix time in seconds, for signatures and for dates in ``Retry-After``.
    """

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform
    now: Callable[[], float] = time.time


@dataclass(slots=True)
class Transport:
    """A session with one endpoint; use it as an async context manager.

    Attributes:
        settings: The endpoint.
        base: Its URL, without the route.
        timing: Clock and chance.
        lookup: Resolves names; the system by default.

    Raises:
        GraderError: On entering, if the secret is not there.
    """

    settings: EndpointSettings
    base: str
    timing: Timing = field(default_factory=Timing)
    lookup: Lookup | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False, repr=False)
    _session: ClientSession | None = field(default=None, init=False, repr=False)
    _secret: str = field(default="", init=False, repr=False)

    async def __aenter__(self) -> Self:
        import aiohttp

        settings = self.settings
        if settings.scheme != "none":
            self._secret = read_secret(settings.secret_env)
        resolver = checking_resolver(allow_internal=settings.allow_internal, lookup=self.lookup)
        connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, limit=0)
        self._session = await self._stack.enter_async_context(new_session(connector))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        await self._stack.aclose()

    async def post(self, route: str, payload: Json) -> Json:
        """Send JSON and read JSON.

        Raises:
            CallError: If there is no usable reply.
            RefusedAddressError: If the endpoint is where nothing may be called.
        """
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
        line = " ".join(str(self.hidden(text)).split())
        return line if len(line) <= _MOST_TOLD else f"{line[: _MOST_TOLD - 3]}..."

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
            longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (number - 1))
            await self.timing.sleep(asked + self.timing.uniform(0.0, longest))
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
            pause = self._asked_pause(response.headers.get("Retry-After", ""))
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

    def _asked_pause(self, header: str) -> float:
        """Seconds that a ``Retry-After`` asks to wait: a number, or a date."""
        from email.utils import parsedate_to_datetime

        if header.isascii() and header.isdecimal():
            return float(header[:9])
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - self.timing.now())
        except (ValueError, TypeError, OverflowError):
            return 0.0


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
