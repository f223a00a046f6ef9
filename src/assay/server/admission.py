"""Who may ask: the server's name, the page that asks, keys, links, sessions, and their roles."""

from __future__ import annotations

import ipaddress
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from assay.endpoint.problems import ProblemError
from assay.errors import StoreError
from assay.server.context import address_of, caller, context
from assay.server.limits import Failures, trim
from assay.service.operation import KEY_PATTERN, LOCAL, Entrance, Identity
from assay.service.site import hash_secret
from assay.store.projects import ApiKeys, KeyRecord
from assay.types.codec import Problem

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

    from assay.server.storage import Storage

COOKIE: Final = "assay_session"
"""The cookie of a session, where the address has no port; see `cookie_name`."""

_SESSION_SECONDS = 30 * 24 * 3600.0
_MOST_SESSIONS = 1_000
_MOST_OF_KEY = 50  # one key must not end the sessions of all others
_REMEMBERED_SECONDS = 2.0
_TOUCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Session:
    """A browser that logged in.

    Attributes:
        ends: When it is over, whatever happens.
        key: Hash of the key that it is bound to, and ends with; empty for the one-time link's.
    """

    ends: float
    key: str


class Admission:
    """Keys, one-time links and sessions. Belongs to the server's loop.

    Args:
        storage: Where keys are.
        most_failures: In a minute and from one address, before the next ones are told to wait.
        clock: Seconds that only grow.
    """

    def __init__(
        self, storage: Storage, *, most_failures: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._failures = Failures(most_failures, clock)
        self._clock = clock
        self._links: set[str] = set()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._remembered: OrderedDict[str, tuple[KeyRecord, float]] = OrderedDict()
        self._touched: dict[str, float] = {}

    def new_link(self) -> str:
        """The secret of a link that logs in once."""
        secret = secrets.token_urlsafe(32)
        self._links.add(hash_secret(secret))
        return secret

    def exchange(self, secret: str, address: str) -> str:
        """Use up a one-time link."""
        hashed = hash_secret(secret)
        if hashed not in self._links:
            self._failures.add(address)
            hint = "restart the server for a new link, or send an API key"
            raise ProblemError(
                403,
                "this link was used, or is unknown",
                errors=[Problem(("once",), "not valid", hint)],
            )
        self._links.discard(hashed)
        return self._begin("")

    async def log_in(self, token: str, address: str) -> str:
        """Begin a session that is worth what a key is worth, and no longer."""
        await self.of_key(token, address)
        return self._begin(hash_secret(token))

    def _begin(self, key: str) -> str:
        own = [hashed for hashed, found in self._sessions.items() if found.key == key]
        for oldest in own[: max(0, len(own) + 1 - _MOST_OF_KEY)]:
            del self._sessions[oldest]
        session = secrets.token_urlsafe(32)
        self._sessions[hash_secret(session)] = _Session(self._clock() + _SESSION_SECONDS, key)
        trim(self._sessions, _MOST_SESSIONS)
        return session

    def end(self, session: str) -> None:
        """Log a session out."""
        self._sessions.pop(hash_secret(session), None)

    async def of_session(self, session: str) -> Identity | None:
        """Who a cookie stands for; a key is looked at again each time."""
        found = self._sessions.get(hash_secret(session))
        if found is None or self._clock() >= found.ends:
            return None
        if not found.key:
            return LOCAL
        record = await self._known(found.key)
        if record is None:
            self.end(session)
            return None
        return _identity(record)

    async def of_key(self, token: str, address: str) -> Identity:
        """Whose key this is."""
        record = await self._known(hash_secret(token))
        if record is None:
            self._failures.add(address)
            raise unauthorized("the API key is unknown or was revoked, or it has expired")
        return _identity(record)

    def forget(self) -> None:
        """Ask the database again about every key: one was revoked."""
        self._remembered.clear()

    async def _known(self, hashed: str) -> KeyRecord | None:
        """The key of that hash, if it is good."""
        record, ends = self._remembered.get(hashed, (None, 0.0))
        if self._clock() < ends:
            return record
        record = await self._storage.run(lambda database: ApiKeys(database).find(hashed))
        if record is not None:
            self._remembered[hashed] = (record, self._clock() + _REMEMBERED_SECONDS)
            trim(self._remembered, _MOST_SESSIONS)
            await self._touch(record.id)
        return record

    async def _touch(self, key: str) -> None:
        """Note that a key is used, once a minute: a write for every request would be dear."""
        now = self._clock()
        if now - self._touched.get(key, -_TOUCH_SECONDS) >= _TOUCH_SECONDS:
            self._touched[key] = now
            with suppress(StoreError):  # a database that cannot be written can still be read
                await self._storage.run(lambda database: ApiKeys(database).touch(key))


def _identity(record: KeyRecord) -> Identity:
    return Identity(record.id, record.name, record.role, record.project)


def cookie_name(request: Request) -> str:
    """The cookie of sessions at this address.

    Browsers do not tell a host's ports apart, and several servers may be on one machine.
    """
    port = request.url.port
    return f"{COOKIE}_{port}" if port else COOKIE


def unauthorized(detail: str, header: str = "Authorization") -> ProblemError:
    """401, saying how to authenticate.

    Args:
        detail: What is wrong.
        header: What of the request.
    """
    return ProblemError(
        401,
        detail,
        errors=[Problem((header,), detail, "send `Authorization: Bearer assay_...`")],
        headers={"WWW-Authenticate": 'Bearer realm="assay"'},
    )


async def admit(request: Request, role: Entrance, where: str = "") -> None:
    """Find out who asks, and whether they may."""
    if role == "anyone":
        return
    identity = await _identify(request)
    request.state.identity = identity
    # What the path says is a stranger's word: only the route itself may ask for "own".
    is_own = role == "member" or where == "own"
    project = identity.project if is_own else str(request.path_params.get("project", where))
    if role != "member" and not identity.may(role, project or None):
        place = f"in project {project!r}" if project else "for all projects"
        theirs = "all projects" if identity.project == "*" else f"project {identity.project!r}"
        raise ProblemError(
            403,
            f"this needs the role {role} {place}",
            errors=[
                Problem(
                    ("",),
                    f"this needs the role {role} {place}, and the key {identity.name!r} is "
                    f"{identity.role} of {theirs}",
                    f"use a key that is {role}; `assay server create keys --role {role}` makes one",
                )
            ],
        )
    if role != "admin":  # who sets limits is never kept out by one
        await spend(request, project)


async def spend(request: Request, project: str) -> None:
    """Count a request of a project that there is; its reply tells what is left."""
    allowances = context(request).allowances
    found = await allowances.find(project) if re.search(KEY_PATTERN, project) else None
    if found is not None:
        request.state.project = found.key
        request.state.allowance = allowances.spend(found)


async def is_still_known(request: Request) -> bool:
    """Whether who was let in would be let in now: keys are revoked, sessions end."""
    try:
        return await _identify(request) == caller(request)
    except ProblemError:
        return False


async def _identify(request: Request) -> Identity:
    access, address = context(request).access, address_of(request)
    given = request.headers.get("authorization")
    if given is not None:
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("the Authorization header is not `Bearer` and a key")
        return await access.of_key(token.strip(), address)
    session = request.cookies.get(cookie_name(request))
    if not session:
        raise unauthorized("send an API key, or open the link that the server printed")
    identity = await access.of_session(session)
    if identity is None:
        ended = (
            "this session has ended, as all do with the server: log in again, or send an API key"
        )
        raise unauthorized(ended, "Cookie")
    if request.method not in ("GET", "HEAD") and request.headers.get("origin") is None:
        # Other origins were refused; without one it may be anybody's form.
        raise ProblemError(403, "a session may write only from a page of this server")
    return identity


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_strangers(method: str, headers: Headers, hosts: Container[str]) -> None:
    """Refuse what names another server, and what a page of another origin would change.

    Args:
        method: HTTP method.
        headers: Of the request.
        hosts: Names of this server, beside every address.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    name = _host_name(host)
    if name is None or not (name in hosts or _is_address(name)):
        raise ProblemError(
            421,
            f"this server is not known as {host!r:.200}",
            errors=[Problem(("Host",), "not a name of this server", "it is --set hosts=NAME")],
        )
    if origin is not None and method not in _SAFE and not _is_same(origin, host):
        raise ProblemError(
            403,
            "the request comes from a page of another origin",
            errors=[Problem(("Origin",), "not this server's origin")],
        )


@lru_cache(maxsize=64)
def _host_name(host: str) -> str | None:
    """The name in a ``Host`` header, without its port; None if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.netloc != host or "@" in host:
        return None
    return parts.hostname.rstrip(".")


@lru_cache(maxsize=64)
def _is_address(name: str) -> bool:
    """Whether it is a number, which no name server can turn into another one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Whether a page's origin is this server: the scheme may be a proxy's."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"{urlsplit(origin).scheme}://{host}")
        usual = {"http": 80, "https": 443}.get(theirs.scheme)
        same_port = (theirs.port or usual) == (ours.port or usual)
    except ValueError:
        return False
    if usual is None or "@" in theirs.netloc or theirs.hostname is None:
        return False
    return theirs.hostname == ours.hostname and same_port
