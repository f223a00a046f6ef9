"""OTLP's requests in protobuf as what their JSON says, and its replies.

Exporters send protobuf unless they are told otherwise. Of the format only what spans need is read,
by the field numbers of opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto: so a
server needs no library of generated code, and what a stranger sends is bounded while it is read.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from assay.errors import InputError
from assay.scoring.json_safe import Json

_Kind: TypeAlias = Literal["text", "hex", "base64", "bool", "int", "enum", "double", "time"]

_FIELDS: Mapping[str, Mapping[int, tuple[str, _Kind | str, bool]]] = {
    "ExportTraceServiceRequest": {1: ("resourceSpans", "ResourceSpans", True)},
    "ResourceSpans": {2: ("scopeSpans", "ScopeSpans", True)},
    "ScopeSpans": {2: ("spans", "Span", True)},
    "Span": {
        1: ("traceId", "hex", False),
        2: ("spanId", "hex", False),
        4: ("parentSpanId", "hex", False),
        5: ("name", "text", False),
        7: ("startTimeUnixNano", "time", False),
        8: ("endTimeUnixNano", "time", False),
        9: ("attributes", "KeyValue", True),
        11: ("events", "Event", True),
        15: ("status", "Status", False),
    },
    "Event": {
        1: ("timeUnixNano", "time", False),
        2: ("name", "text", False),
        3: ("attributes", "KeyValue", True),
    },
    "Status": {2: ("message", "text", False), 3: ("code", "enum", False)},
    "KeyValue": {1: ("key", "text", False), 2: ("value", "AnyValue", False)},
    "AnyValue": {
        1: ("stringValue", "text", False),
        2: ("boolValue", "bool", False),
        3: ("intValue", "int", False),
        4: ("doubleValue", "double", False),
        5: ("arrayValue", "ArrayValue", False),
        6: ("kvlistValue", "KeyValueList", False),
        7: ("bytesValue", "base64", False),
    },
    "ArrayValue": {1: ("values", "AnyValue", True)},
    "KeyValueList": {1: ("values", "KeyValue", True)},
}
"""Of each message its fields by number: the name in JSON, what it is, whether it is a list."""

_WIRE: Mapping[str, int] = {"bool": 0, "int": 0, "enum": 0, "double": 1, "time": 1}
_DEEPEST, _MOST_VALUES, _LENGTH = 64, 2_000_000, 4
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def decode_request(body: bytes, *, max_depth: int, max_values: int) -> Json:
    """An ``ExportTraceServiceRequest`` as its JSON.

    Raises:
        InputError: If it is not protobuf, nested too deeply, or of too many values.
    """
    return _Reader(body, max_depth, max_values).message("ExportTraceServiceRequest", 0, len(body))


def requests_in(data: bytes) -> Iterator[Json]:
    """The requests that a file holds: one as it was sent, or any number with lengths before them.

    The latter is what the Collector writes to a file.

    Raises:
        InputError: If it holds anything else.
    """
    if data[:1] == b"\n":  # the first part of a request
        yield decode_request(data, max_depth=_DEEPEST, max_values=_MOST_VALUES)
        return
    at = 0
    while at < len(data):
        start = at + _LENGTH
        at = start + int.from_bytes(data[at:start], "big")
        if at > len(data):
            raise _broken("ends in the middle of a part")
        yield decode_request(data[start:at], max_depth=_DEEPEST, max_values=_MOST_VALUES)


class _Reader:
    def __init__(self, body: bytes, max_depth: int, max_values: int) -> None:
        self._body = body
        self._left = max_values
        self._most = max_depth
        self._depth = 0

    def message(self, kind: str, at: int, end: int) -> dict[str, Json]:
        """What stands between two places, as a message of a kind."""
        self._depth += 1
        if self._depth > self._most:
            raise _broken(f"is nested deeper than {self._most} levels")
        found: dict[str, Json] = {}
        lists: dict[str, list[Json]] = {}
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise _broken("holds too many values")
            tag, at = self._varint(at, end)
            number, wire = tag >> 3, tag & 7
            value, start, at = self._part(wire, at, end)
            name, what, is_list = _FIELDS[kind].get(number, ("", "", False))
            if not name or wire != _WIRE.get(what, _BYTES):
                continue  # of a newer version
            if what in _FIELDS:
                read: Json = self.message(what, start, at)
            else:
                read = _scalar(what, value, self._body[start:at])
            if is_list:
                lists.setdefault(name, []).append(read)
            else:
                found[name] = read
        self._depth -= 1
        return {**found, **lists}

    def _part(self, wire: int, at: int, end: int) -> tuple[int, int, int]:
        """The number that stands at a place, and where a part begins and ends."""
        value = 0
        start = at
        if wire == _VARINT:
            value, at = self._varint(at, end)
        elif wire == _EIGHT:
            at += 8
        elif wire == _BYTES:
            length, start = self._varint(at, end)
            at = start + length
        elif wire == _FOUR:
            at += 4
        else:
            raise _broken(f"has a part of the unknown type {wire}")
        if at > end:
            raise _broken("ends in the middle of a part")
        return value, start, at

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise _broken("ends in the middle of a number")
            byte = self._body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, at
        raise _broken("has a number of more than ten bytes")


def _scalar(what: str, number: int, given: bytes) -> Json:
    if what == "text":
        return given.decode("utf-8", "replace")
    if what == "hex":
        return given.hex()
    if what == "base64":
        return base64.b64encode(given).decode()
    if what == "double":
        return struct.unpack("<d", given)[0]
    if what in ("bool", "enum"):
        return bool(number) if what == "bool" else number
    # Whole numbers are texts in JSON, as some of its readers have only floats.
    return str(_whole(what, number, given))


def _whole(what: str, number: int, given: bytes) -> int:
    if what == "time":
        return int.from_bytes(given, "little")
    return number - (1 << 64) if number >> 63 else number


def _broken(why: str) -> InputError:
    return InputError(f"the body is no ExportTraceServiceRequest: it {why}")


def encode(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A message of protobuf: its fields by number; those that are 0 or empty are left out."""
    written = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            written += _number(number << 3) + _number(value) if value else b""
        elif value:
            given = value.encode("utf-8", "replace") if isinstance(value, str) else value
            written += _number(number << 3 | _BYTES) + _number(len(given)) + given
    return bytes(written)


def _number(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
