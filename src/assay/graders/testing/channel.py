"""The host's end of the private channel over which a test runner in the sandbox reports.

A Unix socket that one process of the command may use: the first that connects. It is told a
*brief* (the key to sign with, the hidden sources, the canary to plant), which is why runners
connect before they load anything else. What else connects is refused. A nested run of tests, below
the process that is served, is no more than that; a refused process elsewhere was the real runner,
come too late, and whatever was served in its place is an impostor.

A line is ``HMAC NUMBER PAYLOAD``: the hexadecimal HMAC-SHA256 of ``NUMBER newline PAYLOAD`` under
the run's key, the count of lines so far, and one JSON object. The key is told to the runner before
any code of the submission is loaded, so a submission that finds the socket can break a run, which
voids it, but not speak in the runner's name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import socket
import struct
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.frozen import frozen
from assay.graders.testing.outcomes import OUTCOMES, Outcome, TestOutcome
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

LONGEST_LINE = 1024 * 1024
"""Bytes of one line, its end included."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of all lines of a run."""

_LONGEST_MESSAGE = 4_000
_MOST_SIGNS = 50


@dataclass(slots=True)
class RunnerReport:
    """What a runner has said so far."""

    collected: list[str] = field(default_factory=list[str])
    errors: dict[str, str] = field(default_factory=dict[str, str])
    # The last test that started and has no result yet; None between tests.
    started: str | None = None
    outcomes: dict[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    marked: set[str] = field(default_factory=set[str])
    canaries: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    tampering: list[str] = field(default_factory=list[str])
    # Classes of the submission that would have had to decide.
    undecided: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    # What the reference needed, by test function; told while it is proven.
    needs: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    ready: bool = False
    # The exit status it announced as its last word; None while there was none.
    exit: int | None = None


class FrameReader:
    """Checks lines as they arrive and keeps what they say."""

    def __init__(self, key: bytes) -> None:
        self.heard = RunnerReport()
        self.forged = ""
        self._key = key
        self._next = 0
        self._total = 0
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take what arrived.

        Returns whether to go on reading: false once the report is known to be forged.
        """
        self._total += len(chunk)
        self._rest += chunk
        *lines, rest = self._rest.split(b"\n")
        for line in lines:
            if self.forged:
                return False
            self.forged = self._take(bytes(line))
        self._rest = bytearray(rest)
        if not self.forged and len(rest) >= LONGEST_LINE:
            self.forged = "a line of the report is too long"
        if not self.forged and self._total > MOST_BYTES:
            self.forged = "the report is too long"
        return not self.forged

    def _take(self, line: bytes) -> str:
        """Check one line and keep what it says; returns what is wrong with it."""
        if len(line) >= LONGEST_LINE:
            return "a line of the report is too long"
        code, _, signed = line.partition(b" ")
        number, _, payload = signed.partition(b" ")
        if number != b"%d" % self._next:
            return "a line of the report has a wrong number"
        genuine = hmac.new(self._key, number + b"\n" + payload, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(code, genuine.encode()):
            return "a line of the report is not the runner's"
        if self.heard.exit is not None:
            return "the report goes on after its end"
        self._next += 1
        event = _object(payload)
        known = event is not None and self._keep(event)
        return "" if known else "a line of the report makes no sense"

    def _keep(self, event: Mapping[str, Json]) -> bool:
        heard, name = self.heard, event.get("id")
        match event.get("event"):
            case "collected":
                return self._keep_collected(event.get("ids"), event.get("errors", []))
            case "start" if isinstance(name, str):
                heard.started = name
            case "result" if isinstance(name, str):
                return self._keep_result(name, event)
            case "canary":
                return self._keep_canary(event.get("name"), event.get("outcome"), event)
            case "tamper" | "undecided" | "note" as kind:
                kept = {"tamper": heard.tampering, "undecided": heard.undecided}
                said = kept.get(kind, heard.notes)
                if len(said) < _MOST_SIGNS:
                    said.append(_text(event.get("what"))[:200] or "unnamed")
            case "needs":
                heard.needs.setdefault(_text(event.get("test")), []).append(
                    _text(event.get("what"))
                )
            case "ready":
                heard.ready = True
            case "end":
                status = event.get("exit")
                if not isinstance(status, int) or isinstance(status, bool):
                    return False
                heard.exit = status
            case _:
                return False
        return True

    def _keep_collected(self, ids: Json, errors: Json) -> bool:
        if not isinstance(ids, list) or not isinstance(errors, list):
            return False
        for name in ids:
            if not isinstance(name, str):
                return False
            self.heard.collected.append(name)
        for error in errors:
            name = error.get("id") if isinstance(error, dict) else None
            if not isinstance(error, dict) or not isinstance(name, str):
                return False
            self.heard.errors[name] = _text(error.get("message"))
        return True

    def _keep_canary(self, planted: Json, outcome: Json, event: Mapping[str, Json]) -> bool:
        if not isinstance(planted, str) or not isinstance(outcome, str):
            return False
        self.heard.canaries[planted] = (outcome, _text(event.get("message")))
        return True

    def _keep_result(self, name: str, event: Mapping[str, Json]) -> bool:
        outcome, seconds = event.get("outcome"), event.get("seconds")
        if not isinstance(outcome, str) or outcome not in OUTCOMES:
            return False
        if self.heard.started == name:
            self.heard.started = None
        if event.get("marked") is True:
            self.heard.marked.add(name)
        before = self.heard.outcomes.get(name)
        if before is not None and before.outcome != "passed":
            return True
        self.heard.outcomes[name] = TestOutcome(
            id=name,
            outcome=cast("Outcome", outcome),
            seconds=_seconds(seconds),
            message=_text(event.get("message")),
        )
        return True


def _object(payload: bytes) -> dict[str, Json] | None:
    try:
        event: object = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Json]", event) if isinstance(event, dict) else None


def _text(given: Json) -> str:
    return given[:_LONGEST_MESSAGE] if isinstance(given, str) else ""


def _seconds(given: Json) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        seconds = float(given)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


_CHUNK = 256 * 1024
_LONGEST_PATH = 100
"""Of a Unix socket; the kernel takes 107 bytes."""

_MOST_REFUSED = 1000
_REFUSAL = b'{"refused": "this run is already reported by another process"}\n'


@frozen(kw_only=True)
class Brief:
    """What a runner is told."""

    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    shuffle: bool = True
    skip: Sequence[str] = ()
    loose: Sequence[str] = ()
    settle: float = 20.0
    # For a judge: what it is told of the boundary. None for a runner in one process.
    apart: Mapping[str, Json] | None = None


class RunnerChannel:
    """One run's channel; made by `open_channel`.

    ``canary``: Name of the test that must fail, and the value it must fail with.
    """

    def __init__(
        self,
        brief: Brief,
        path: str,
        loop: AbstractEventLoop,
        handed: socket.socket | None = None,
    ) -> None:
        key = secrets.token_bytes(32)
        self._loop = loop
        self.path = path
        self.canary = (f"c{secrets.token_hex(8)}", secrets.token_hex(16))
        self.seed = secrets.randbelow(2**32)
        self.connected = False
        self.nested = 0
        self.rivals = 0
        self._reader = FrameReader(key)
        self._unsent = memoryview(_line(brief, key, self.canary, self.seed))
        self._served: socket.socket | None = None
        self._handed = handed
        self._pid = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(path)
        os.chmod(path, 0o666)  # noqa: PTH101, S103 - the directory around it is ours alone
        self._listener.listen(16)
        self._loop.add_reader(self._listener, self._accept)

    @property
    def heard(self) -> RunnerReport:
        """What the runner has said."""
        return self._reader.heard

    @property
    def forged(self) -> str:
        """Why the report cannot be genuine; empty while it can."""
        return self._reader.forged

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        if self._served is not None:
            self._refuse(connection)
            return
        self.connected = True
        self._served, self._pid = connection, _peer(connection)
        self._loop.add_writer(connection, self._tell, connection)
        self._loop.add_reader(connection, self._listen, connection)

    def _tell(self, connection: socket.socket) -> None:
        """Send what the connection takes of the brief."""
        try:
            if self._handed is not None:
                sent = socket.send_fds(connection, [self._unsent[:1]], [self._handed.fileno()])
                self._handed = None
            else:
                sent = connection.send(self._unsent)
            self._unsent = self._unsent[sent:]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._loop.remove_writer(connection)

    def _listen(self, connection: socket.socket) -> None:
        """Take what has arrived; at its end, or once it is forged, no more."""
        try:
            chunk = connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk or not self._reader.feed(chunk):
            self._loop.remove_reader(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _refuse(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if _descends(_peer(connection), self._pid):
                self.nested += 1
            else:
                self.rivals += 1
            connection.send(_REFUSAL)
        if self.nested + self.rivals >= _MOST_REFUSED:  # whoever floods it is not answered any more
            self._loop.remove_reader(self._listener)

    def finish(self) -> None:
        """Take what the ended command left in the socket, waiting for nobody."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._served is None:
            return
        self._loop.remove_writer(self._served)
        self._loop.remove_reader(self._served)
        with self._served, suppress(OSError):
            while (chunk := self._served.recv(_CHUNK)) and self._reader.feed(chunk):
                pass


@asynccontextmanager
async def open_channel(
    brief: Brief, *, handed: socket.socket | None = None
) -> AsyncGenerator[RunnerChannel]:
    """Listen while a command runs.

    On leaving, what the command left in the socket has been read; nothing is awaited.
    """
    import asyncio

    parent = tempfile.gettempdir()
    if len(parent) > _LONGEST_PATH - 30:
        parent = "/tmp"  # noqa: S108 - mkdtemp makes a directory that is ours alone
    with tempfile.TemporaryDirectory(prefix="assay-", dir=parent) as directory:
        loop = asyncio.get_running_loop()
        channel = RunnerChannel(brief, str(Path(directory, "channel")), loop, handed)
        try:
            yield channel
        finally:
            channel.finish()


def _line(brief: Brief, key: bytes, canary: tuple[str, str], seed: int) -> bytes:
    content: dict[str, Json] = {
        "v": 1,
        "key": key.hex(),
        "hidden": dict(brief.hidden),
        "canary": {"name": canary[0], "planted": canary[1]},
        "seed": seed,
        "shuffle": brief.shuffle,
        "skip": list(brief.skip),
        "loose": list(brief.loose),
        "settle": brief.settle,
        "apart": None if brief.apart is None else dict(brief.apart),
    }
    return json.dumps(content).encode() + b"\n"


def _peer(connection: socket.socket) -> int:
    """The process at the other end, as the kernel knows it; 0 if it is not visible from here."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", packed)
    return pid


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a living process stands below another in the tree of processes."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        # The name, in parentheses, may itself hold anything.
        pid = int(stat.rpartition(")")[2].split()[1])
    return False
