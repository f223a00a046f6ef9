"""How a reply, an error or a fault looks on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal, cast

from assay.scoring.json_safe import Json
from assay.testing.asked import Asked, WireForm
from assay.testing.faults import Fault
from assay.testing.protocols import WireError, error_body, reply_body
from assay.testing.serve import HttpResponse

__all__ = ["error_response", "faulty_response", "overflow", "reply_response"]

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


def reply_response(asked: Asked, text: str, *, seconds: float = 0.0) -> HttpResponse:
    """A reply, sent whole after so many seconds."""
    return HttpResponse(body=_json(reply_body(asked, text)), seconds=seconds)


def error_response(protocol: WireForm, error: WireError) -> HttpResponse:
    """An error."""
    return HttpResponse(error.status, _json(error_body(protocol, error)))


def faulty_response(asked: Asked, fault: Fault, text: str) -> HttpResponse:
    """What a request gets that meets a fault.

    Args:
        asked: The request.
        fault: What goes wrong.
        text: What would have been replied; most faults do not look at it.
    """
    if fault.kind.isdecimal():
        return _refused(asked, fault, int(fault.kind))
    if fault.kind in ("quota", "overflow"):
        quota = WireError(429, "the quota is used up", code="insufficient_quota")
        error = quota if fault.kind == "quota" else overflow(asked)
        return error_response(asked.protocol, error)
    if fault.kind in ("refusal", "length"):
        said = _REFUSAL if fault.kind == "refusal" else text[: len(text) // 2]
        return HttpResponse(body=_json(reply_body(asked, said, ending=fault.kind)))
    if fault.kind == "huge":
        text = "x" * int(fault.megabytes * _MEGABYTE)
    elif fault.kind in _SPOILT:
        text = _SPOILT[fault.kind](asked, text)
    body = _json(reply_body(asked, text))
    if fault.kind == "duplicate_keys" and asked.protocol == "anthropic":
        # As a tool's input it is no text, and its keys were read once.
        body = body.replace(json.dumps(json.loads(text)).encode(), text.encode())
    return _sent(fault, body)


def overflow(asked: Asked) -> WireError:
    """The error of a request longer than the model takes."""
    if asked.protocol == "anthropic":
        return WireError(400, "prompt is too long: more tokens than the maximum")
    message = "This model's maximum context length is less than your messages have tokens"
    return WireError(400, message, code="context_length_exceeded", parameter="messages")


def _refused(asked: Asked, fault: Fault, status: int) -> HttpResponse:
    if status == 400:
        name = fault.parameter
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        if asked.protocol == "anthropic":
            message = f"{name}: `{name}` is not supported with this model."
        error = WireError(400, message, code="unsupported_parameter", parameter=name)
        return error_response(asked.protocol, error)
    code = "rate_limit_exceeded" if status == 429 else ""
    error = WireError(status, _MESSAGES[status], code=code)
    headers: dict[str, str] = {}
    if fault.retry_after != "":
        after = fault.retry_after
        headers["retry-after"] = f"{after:g}" if isinstance(after, float | int) else after
    if fault.retry_after_ms is not None:
        headers["retry-after-ms"] = str(fault.retry_after_ms)
    return HttpResponse(status, _json(error_body(asked.protocol, error)), headers)


def _sent(fault: Fault, body: bytes) -> HttpResponse:
    """A body on its way, where it may meet its fault."""
    if fault.kind == "html":
        return HttpResponse(body=_HTML, content_type="text/html; charset=utf-8")
    if fault.kind == "content_type":
        return HttpResponse(body=body, content_type="text/plain; charset=utf-8")
    if fault.kind == "truncated":
        return HttpResponse(body=body[: len(body) // 2])
    if fault.kind == "slow":
        return HttpResponse(body=body, manner="slow", seconds=fault.seconds)
    manners: dict[str, Literal["never", "half"]] = {"hang": "never", "reset": "half"}
    return HttpResponse(body=body, manner=manners.get(fault.kind, "whole"))


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
    """The JSON object of a reply; a reply that is none is made the verdict of one."""
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
