"""The words a test runner says to us: numbered, authenticated lines of JSON.

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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from assay.graders.testing.outcomes import OUTCOMES, Outcome, TestOutcome
from assay.scoring.json_safe import Json

__all__ = ["LONGEST_LINE", "MOST_BYTES", "FrameReader", "Heard"]

LONGEST_LINE = 1024 * 1024
"""Bytes of one line, its end included."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of all lines of a run."""

_LONGEST_MESSAGE = 4_000
_MOST_SIGNS = 50


@dataclass(slots=True)
class Heard:
    """What a runner has said so far.

    Attributes:
        collected: Ids that it found, in its order.
        errors: What could not be collected: id to message.
        started: The last test that started and has no result yet; None between tests.
        outcomes: Results by id. Of two for one id the worse counts.
        marked: Tests that a mark of theirs left out, or expected to fail.
        canaries: What became of planted tests: name to outcome and message.
        tampering: What the runner noticed.
        undecided: Classes of the submission that would have had to decide.
        ready: Whether it came so far that code of the submission could run.
        exit: The exit status it announced as its last word; None while there was none.
    """

    collected: list[str] = field(default_factory=list[str])
    errors: dict[str, str] = field(default_factory=dict[str, str])
    started: str | None = None
    outcomes: dict[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    marked: set[str] = field(default_factory=set[str])
    canaries: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    tampering: list[str] = field(default_factory=list[str])
    undecided: list[str] = field(default_factory=list[str])
    ready: bool = False
    exit: int | None = None


class FrameReader:
    """Checks lines as they arrive and keeps what they say.

    Attributes:
        heard: What was said by lines that were genuine.
        forged: Why the report cannot be genuine; empty while it can.
    """

    def __init__(self, key: bytes) -> None:
        self.heard = Heard()
        self.forged = ""
        self._key = key
        self._next = 0
        self._total = 0
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take what arrived.

        Returns:
            Whether to go on reading: false once the report is known to be forged.
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
                planted, outcome = event.get("name"), event.get("outcome")
                if not isinstance(planted, str) or not isinstance(outcome, str):
                    return False
                heard.canaries[planted] = (outcome, _text(event.get("message")))
            case "tamper" | "undecided" as kind:
                said = heard.tampering if kind == "tamper" else heard.undecided
                if len(said) < _MOST_SIGNS:
                    said.append(_text(event.get("what"))[:200] or "unnamed")
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
