"""What goes wrong with models, on purpose: a plan that says which requests meet which fault."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias, cast

from assay.conversation.protocols import Codec, ProtocolError, codec_of
from assay.errors import InputError, nearest
from assay.scoring.json_safe import Json
from assay.testing.asked import Asked, WireForm

Ending: TypeAlias = Literal["stop", "length", "refusal"]

FAULTS: dict[str, str] = {
    "400": "a parameter is refused: parameter=NAME, temperature by default",
    "401": "the key is refused",
    "402": "nothing is left to pay with",
    "403": "the key may not do this",
    "408": "the provider waited too long",
    "429": "too many requests: retry_after=SECONDS or a date, retry_after_ms=N, or neither",
    "500": "an internal error",
    "502": "a bad gateway",
    "503": "not available",
    "529": "overloaded",
    "quota": "the quota is used up: OpenAI's 429 that waiting does not cure",
    "overflow": "more text than the model takes",
    "hang": "no reply, ever",
    "reset": "the connection is reset in the middle of the body",
    "truncated": "a body whose JSON ends early",
    "html": "a page of HTML instead of JSON, status 200",
    "content_type": "the right body under the wrong content type",
    "slow": "the body comes in pieces over seconds=S, 1 by default",
    "huge": "a reply of megabytes=N, 32 by default",
    "empty": "a reply without text",
    "length": "the reply is cut in half: its length was used up",
    "refusal": "the model, or its content filter, refuses",
    "prose": "the verdict in words, without JSON",
    "off_menu": "a verdict that was not on offer",
    "duplicate_keys": "the reply's keys twice, with different verdicts",
    "nan": "NaN where a number belongs",
    "missing": "the last of the verdicts asked for is left out",
}
"""Every kind of fault, and what it is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way of going wrong.

    Attributes:
        kind: One of `FAULTS`.
        times: How many requests meet it, one after the other.
        at: The first of them, counted from 0; None for the next that no other fault is for.
        probability: Above 0: any request meets it, by chance, 0 to 1.
        retry_after: Of a 429, 503 or 529: seconds, or an HTTP date. "" for no such header.
        retry_after_ms: Likewise in milliseconds, as ``retry-after-ms``.
        parameter: Of a 400: what is refused.
        seconds: Of a slow reply.
        megabytes: Of a huge one.
    """

    kind: str
    times: int = 1
    at: int | None = None
    probability: float = 0.0
    retry_after: float | str = ""
    retry_after_ms: int | None = None
    parameter: str = "temperature"
    seconds: float = 1.0
    megabytes: float = 32.0

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            hint = nearest(self.kind, list(FAULTS))
            raise InputError(f"unknown fault {self.kind!r}", hint=hint)
        if self.times < 1 or not 0 <= self.probability <= 1:
            raise InputError(f"fault {self.kind}: times from 1 up, probability from 0 to 1")
        if not all(map(math.isfinite, (self.seconds, self.megabytes))):
            raise InputError(f"fault {self.kind}: its numbers have to be finite")
        if min(self.at or 0, self.seconds, self.megabytes, self.retry_after_ms or 0) < 0:
            raise InputError(f"fault {self.kind}: no number of it is below 0")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a fault as it is written on a command line.

        Args:
            text: ``KIND``, ``KIND:name=value,name=value``, and ``xN`` after either for N times,
                such as ``429:retry_after=1x2`` or ``500:probability=0.1``.

        Raises:
            InputError: If there is no such fault, or it has no such setting.
        """
        head, by, count = text.rpartition("x")
        is_counted = bool(by) and count.isascii() and count.isdecimal()
        kind, _, settings = (head if is_counted else text).partition(":")
        fault = cls(kind.strip(), times=int(count) if is_counted else 1)
        for setting in filter(None, (part.strip() for part in settings.split(","))):
            name, equals, value = setting.partition("=")
            fault = fault._with(name.strip(), value.strip() if equals else "", text)
        return fault

    def _with(self, name: str, value: str, text: str) -> Fault:
        names = [one.name for one in fields(self) if one.name != "kind"]
        if name not in names:
            raise InputError(
                f"fault {text!r} has a setting {name!r}",
                hint=nearest(name, names),
            )
        read: float | str = value
        if name != "parameter":
            try:
                read = int(value) if name in ("times", "at", "retry_after_ms") else float(value)
            except ValueError:
                if name != "retry_after" or not value:  # which may be a date
                    told = f"fault {text!r}: {name}={value!r} is not a number"
                    raise InputError(told) from None
        return replace(self, **{name: read})


Faults: TypeAlias = "Iterable[Fault | str | None] | Callable[[Asked], Fault | None] | None"
"""A list of faults, met in order (None lets a request through), or who says for each request."""


class FaultPlan:
    """Says for each request what goes wrong with it.

    Args:
        faults: See `Faults`. A text is read by `Fault.parse`.
        seed: Of the chance of those with a probability.

    Raises:
        InputError: For a text that is not a fault.
    """

    def __init__(self, faults: Faults, *, seed: int = 0) -> None:
        self._decide = faults if callable(faults) else None
        given: Sequence[Fault | str | None] = (
            () if faults is None or callable(faults) else tuple(faults)
        )
        listed = [Fault.parse(fault) if isinstance(fault, str) else fault for fault in given]
        self._by_chance = [fault for fault in listed if fault and fault.probability]
        self._placed: dict[int, Fault] = {}
        self._in_order: list[Fault | None] = []
        for fault in listed:
            if fault is None:
                self._in_order.append(None)
            elif fault.at is not None:
                self._placed |= {fault.at + more: fault for more in range(fault.times)}
            elif not fault.probability:
                self._in_order += [fault] * fault.times
        self._in_order.reverse()
        self._chance = random.Random(seed)  # noqa: S311 - chance that can be repeated

    def next(self, asked: Asked) -> Fault | None:
        """What goes wrong with this request; None for nothing."""
        if self._decide is not None:
            return self._decide(asked)
        if asked.index in self._placed:
            return self._placed[asked.index]
        if self._in_order:
            return self._in_order.pop()
        # One number for each fault and request, so that a plan does not depend on what was hit.
        drawn = [(self._chance.random(), fault) for fault in self._by_chance]
        return next((fault for number, fault in drawn if number < fault.probability), None)


_JSON = "application/json"
_MEGABYTE = 1_048_576
_HTML = b"<!doctype html><html><body><h1>It works!</h1></body></html>"
_NO_CHOICE = "PERHAPS"
_REFUSAL = "I cannot help with that."
_MESSAGES = {
    401: "the API key is not valid",
    402: "nothing is left to pay with",
    403: "the API key may not use this model",
    408: "the request took too long",
    429: "too many requests",
    500: "an internal error",
    502: "bad gateway",
    503: "not available",
    529: "overloaded",
}


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response, and how it is sent.

    Attributes:
        status: The HTTP status.
        body: What is sent.
        headers: More headers; the length is added.
        content_type: Of the body.
        manner: ``whole``; ``half`` and then a reset of the connection; ``slow``, in pieces over
            ``seconds``; or ``never``.
        seconds: To wait before a whole one; or what a slow one takes.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = _JSON
    manner: Literal["whole", "half", "slow", "never"] = "whole"
    seconds: float = 0.0


def spoken(protocol: WireForm) -> Codec:
    """The codec of a wire form."""
    return codec_of("chat" if protocol == "openai" else protocol)


def error_body(protocol: WireForm, error: ProtocolError) -> dict[str, Json]:
    """Write an error, as this provider would."""
    return spoken(protocol).write_error(error)


def error_response(protocol: WireForm, error: ProtocolError) -> HttpResponse:
    """An error."""
    return HttpResponse(error.status, _json(error_body(protocol, error)))


def refusing_response(asked: Asked, fault: Fault) -> HttpResponse | None:
    """The error that a fault is; None for one that a reply meets."""
    if fault.kind.isdecimal():
        return _refused(asked, fault, int(fault.kind))
    if fault.kind in ("quota", "overflow"):
        quota = ProtocolError(429, "the quota is used up", code="insufficient_quota")
        error = quota if fault.kind == "quota" else overflow(asked)
        return error_response(asked.protocol, error)
    return None


def spoilt(asked: Asked, fault: Fault, text: str) -> tuple[str, Ending]:
    """The text of a reply that meets a fault, and why it ends."""
    if fault.kind == "refusal":
        return _REFUSAL, "refusal"
    if fault.kind == "length":
        return text[: len(text) // 2], "length"
    if fault.kind == "huge":
        return "x" * int(fault.megabytes * _MEGABYTE), "stop"
    return (_SPOILT[fault.kind](asked, text) if fault.kind in _SPOILT else text), "stop"


def overflow(asked: Asked) -> ProtocolError:
    """The error of a request longer than the model takes."""
    if asked.protocol == "anthropic":
        return ProtocolError(400, "prompt is too long: more tokens than the maximum")
    message = "This model's maximum context length is less than your messages have tokens"
    return ProtocolError(400, message, code="context_length_exceeded", parameter="messages")


def _refused(asked: Asked, fault: Fault, status: int) -> HttpResponse:
    if status == 400:
        name = fault.parameter
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        if asked.protocol == "anthropic":
            message = f"{name}: `{name}` is not supported with this model."
        error = ProtocolError(400, message, code="unsupported_parameter", parameter=name)
        return error_response(asked.protocol, error)
    code = "rate_limit_exceeded" if status == 429 else ""
    error = ProtocolError(status, _MESSAGES[status], code=code)
    headers: dict[str, str] = {}
    if fault.retry_after != "":
        after = fault.retry_after
        headers["retry-after"] = f"{after:g}" if isinstance(after, float | int) else after
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    return HttpResponse(status, _json(error_body(asked.protocol, error)), headers)


def sent(fault: Fault, body: bytes, *, content_type: str = _JSON) -> HttpResponse:
    """A body on its way, where it may meet its fault."""
    if fault.kind == "html":
        return HttpResponse(body=_HTML, content_type="text/html; charset=utf-8")
    if fault.kind == "content_type":
        return HttpResponse(body=body, content_type="text/plain; charset=utf-8")
    if fault.kind == "truncated":
        return HttpResponse(body=body[: len(body) // 2], content_type=content_type)
    if fault.kind == "slow":
        return HttpResponse(
            body=body, content_type=content_type, manner="slow", seconds=fault.seconds
        )
    manners: dict[str, Literal["never", "half"]] = {"hang": "never", "reset": "half"}
    return HttpResponse(
        body=body, content_type=content_type, manner=manners.get(fault.kind, "whole")
    )


def _off_menu(asked: Asked, text: str) -> str:
    return _respoken(asked, text, _no_choice)


def _no_choice(given: Json, menu: Sequence[Json]) -> Json:
    del given, menu
    return _NO_CHOICE


def _contrary(given: Json, menu: Sequence[Json]) -> Json:
    """Another verdict than the one given, and as good in form."""
    if isinstance(given, bool):
        return not given
    if isinstance(given, int | float):
        return 0.0 if given else 1.0
    return next((choice for choice in menu if choice != given), _NO_CHOICE)


def _respoken(asked: Asked, text: str, change: Callable[[Json, Sequence[Json]], Json]) -> str:
    """A reply whose verdicts are changed; without a schema, what stands last in it is one."""
    found = _object(text)
    spoilt = _chosen(found, dict(asked.schema or {}), change)
    if spoilt == found and isinstance(spoilt, dict):
        last = next(reversed(found), "verdict")
        items = found.get(last)
        each = items if isinstance(items, list) else []
        entries = [entry for entry in each if isinstance(entry, dict) and entry]
        for entry in entries:
            name = next(reversed(entry))
            entry[name] = change(entry[name], [])
        spoilt[last] = list[Json](entries) if entries else change(items, [])
    return json.dumps(spoilt)


def _chosen(value: Json, schema: Json, change: Callable[[Json, Sequence[Json]], Json]) -> Json:
    """A value in which what a schema leaves a choice of is changed; numbers of items stay."""
    part = schema if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        inner = part.get("properties")
        known = inner if isinstance(inner, dict) else {}
        return {name: _chosen(one, known.get(name), change) for name, one in value.items()}
    if isinstance(value, list):
        return [_chosen(one, part.get("items"), change) for one in value]
    menu = part.get("enum")
    if isinstance(menu, list) or part.get("type") in ("boolean", "number"):
        return change(value, menu if isinstance(menu, list) else [])
    return value


def _nan(asked: Asked, text: str) -> str:
    del asked
    is_number = False

    def spoil(value: Json) -> Json:
        nonlocal is_number
        if not isinstance(value, int | float) or isinstance(value, bool):
            return value
        is_number = True
        return float("nan")

    found = _object(text)
    spoilt = _mapped(found, spoil)
    if not is_number and isinstance(spoilt, dict):
        spoilt[next(reversed(spoilt), "verdict")] = float("nan")
    return json.dumps(spoilt)


def _duplicate_keys(asked: Asked, text: str) -> str:
    # Both verdicts are on the menu: only the doubled keys are wrong.
    first, second = _respoken(asked, text, _contrary), json.dumps(_object(text))
    return f"{first[:-1]}, {second[1:]}" if second != "{}" else f"{first[:-1]}, {first[1:]}"


def _missing(asked: Asked, text: str) -> str:
    del asked
    found = _object(text)
    for value in found.values():
        last = value[-1] if isinstance(value, list) and value else None
        if isinstance(value, list) and isinstance(last, dict) and last:
            # A verdict has the number of what it is on. Of a list without any, which may be of
            # any length, the last entry is left unfinished.
            is_numbered = any(isinstance(one, int) for one in last.values())
            value[-1:] = [] if is_numbered else [dict(list(last.items())[:-1])]
            return json.dumps(found)
    return json.dumps(dict(list(found.items())[:-1]))


def _prose(asked: Asked, text: str) -> str:
    del asked
    values = list(_object(text).values())
    return f"I have thought about it. The verdict is {values[-1] if values else 'MET'}."


def _empty(asked: Asked, text: str) -> str:
    del asked, text
    return ""


_SPOILT: dict[str, Callable[[Asked, str], str]] = {
    "duplicate_keys": _duplicate_keys,
    "empty": _empty,
    "missing": _missing,
    "nan": _nan,
    "off_menu": _off_menu,
    "prose": _prose,
}


def _object(text: str) -> dict[str, Json]:
    """The JSON object of a reply; a reply of another form is turned into a verdict of one."""
    try:
        found = cast("Json", json.loads(text))
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"reasoning": "", "verdict": text}


def _mapped(value: Json, change: Callable[[Json], Json]) -> Json:
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value)


def _json(value: dict[str, Json]) -> bytes:
    return json.dumps(value).encode()
