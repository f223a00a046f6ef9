"""The ledger of a served environment: who may do what in which session. Plain data; no I/O.

A session belongs to whoever knows its id, which nobody can guess. Its connection may break and be
made again; a task that was started in it stays, and is graded once.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from assay.environment.channel.frames import BUSY, INVALID_REQUEST, SESSION_LOST
from assay.errors import ChannelError
from assay.frozen import frozen
from assay.scoring.json_safe import Json

Ending = Literal["graded", "error", "cancelled", "replaced", "abandoned", "never started"]
"""How an attempt ended."""


@frozen(kw_only=True)
class ChannelLimits:
    """What a server bears. Times are in seconds."""

    sessions: int = 1024
    # Connections that have not said hello yet; beyond that the oldest is closed.
    strangers: int = 1024
    starts: int = 64
    moves: int = 10_000
    hello: float = 10.0
    frame: float = 60.0
    idle: float = 900.0
    parked: float = 900.0
    total: float = 86_400.0
    start: float = 600.0
    grading: float = 1800.0
    held_bytes: int = 512 << 20
    kept_bytes: int = 64 << 20


@frozen
class Move:
    """Something that an agent did in a task."""

    method: str
    said: dict[str, Json]
    result: dict[str, Json]


@dataclass(slots=True)
class StartedTask:
    """One task that was started."""

    number: int
    task: str
    args: dict[str, Json]
    # What the client calls this start, so that sending it again is no second one.
    key: str
    started: float
    prompt: Json = None
    moves: list[Move] = field(default_factory=list[Move])
    moving: tuple[str, dict[str, Json]] | None = None
    answer: str | None = None
    grade: dict[str, Json] | None = None
    fault: ChannelError | None = None
    deaths: int = 0
    kept_bytes: int = 0

    def keep(self, size: int, most: int) -> None:
        """Note that more has to be kept."""
        if self.kept_bytes + size > most:
            raise ChannelError(
                f"a task keeps at most {most:,} bytes of what it is told",
                code=BUSY,
                kind="TaskEndedError" if self.kept_bytes else "",
            )
        self.kept_bytes += size

    @property
    def is_over(self) -> bool:
        """Whether it has been decided what comes of it."""
        return self.grade is not None or self.fault is not None

    def claim(self, answer: str | None) -> bool:
        """Say what answer is graded; whether this is the first time."""
        digest = hashlib.sha256(json.dumps(answer).encode()).hexdigest()
        if self.answer is not None and self.answer != digest:
            raise ChannelError(
                "already graded" if self.is_over else "it is being graded already",
                code=INVALID_REQUEST,
                hint="a start has one grade; start the task again",
            )
        if self.fault is not None:
            raise self.fault
        is_first = self.answer is None
        self.answer = digest
        return is_first


@dataclass(slots=True)
class ServedSession:
    """What one client does, over any number of connections, one at a time."""

    id: str
    peer: str
    started: float
    parked: float | None = None
    starts: int = 0
    attempt: StartedTask | None = None

    @property
    def name(self) -> str:
        """What logs call it: its id is a secret."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:12]

    def begun(self) -> StartedTask:
        """The task in progress."""
        if self.attempt is None:
            raise ChannelError(
                "no task in progress",
                code=INVALID_REQUEST,
                hint="tasks.start, or hello with the session_id in which one was started",
            )
        return self.attempt


class SessionLedger:
    """The sessions of one server."""

    def __init__(self, limits: ChannelLimits) -> None:
        self._limits = limits
        self._sessions: dict[str, ServedSession] = {}
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ServedSession]:
        return iter(list(self._sessions.values()))

    def open(self, peer: str, now: float) -> ServedSession:
        """Begin a session."""
        if self.is_full:
            raise ChannelError(
                f"this server has {len(self._sessions):,} sessions, and takes no more",
                code=BUSY,
                hint="try again later, or serve it with a higher --set sessions=N",
            )
        session = ServedSession(f"sess-{secrets.token_hex(16)}", peer, now)
        self._sessions[session.id] = session
        return session

    def resume(self, session_id: str) -> ServedSession:
        """The session of an id."""
        session = self._sessions.get(session_id)
        if session is None:
            raise ChannelError(
                "unknown session", code=SESSION_LOST, hint="it has ended, or was parked too long"
            )
        return session

    def knows(self, session_id: str) -> bool:
        """Whether there is such a session."""
        return session_id in self._sessions

    def remove(self, session: ServedSession) -> None:
        """End a session."""
        self._sessions.pop(session.id, None)

    def start(
        self, session: ServedSession, task: str, args: dict[str, Json], key: str, now: float
    ) -> StartedTask:
        """Note that a session starts a task."""
        if session.starts >= self._limits.starts:
            raise ChannelError(
                f"a session may start {self._limits.starts} tasks", code=BUSY, hint="open another"
            )
        session.starts += 1
        self._numbers += 1
        session.attempt = StartedTask(self._numbers, task, args, key, now)
        return session.attempt

    def expired(self, now: float) -> list[ServedSession]:
        """Sessions whose time is up."""
        return [
            session
            for session in self._sessions.values()
            if now - session.started > self._limits.total
            or (session.parked is not None and now - session.parked > self._limits.parked)
        ]

    @property
    def is_full(self) -> bool:
        """Whether no session can be opened."""
        return len(self._sessions) >= self._limits.sessions

    def spare(self) -> ServedSession | None:
        """The session that can best be done without: it is parked, and has no task in progress."""
        parked = [session for session in self._sessions.values() if session.parked is not None]
        idle = [session for session in parked if session.attempt is None]
        over = [session for session in parked if session.attempt and session.attempt.is_over]
        return next(iter([*idle, *over]), None)
