"""Rows that are JSON: one on each line, or the items of an array."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json, json_encoding

MAX_LINE_BYTES = 64 << 20
"""Longest row of a dataset; a longer one is refused rather than filling the memory."""


def json_lines(source: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Lines that hold something, with their numbers."""
    for number, line in enumerate(iter(partial(source.readline, MAX_LINE_BYTES + 1), b""), 1):
        if not line.isspace():
            yield number, line


def parse_line(line: bytes) -> dict[str, Json]:
    """Read the JSON of one row.

    Raises:
        InputError: If it is none, with the column where that is known.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"the row is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        data = decode_json(line)
    except NotJsonError as error:
        raise _not_json(error, line) from None
    if not isinstance(data, dict):
        raise InputError("a row must be a JSON object")
    return data


def _not_json(error: NotJsonError, line: bytes) -> InputError:
    message, hint, column = f"not a JSON object: {_said(str(error))}", "", None
    if error.kind == "repeated key":
        message, hint = str(error), "keep one of them"
    elif error.kind == "digits":
        message, hint = str(error), "write it as text"
    elif error.kind == "encoding":
        message, column = "not UTF-8", len(line[: error.offset].decode("utf-8", "replace")) + 1
        hint = "save the file as UTF-8"
    elif error.kind == "syntax":
        end = len(line.decode(errors="replace").rstrip())
        column = min(error.offset, end) + 1
        if error.offset == 0 and line[:1] != b"{":
            hint = "a row is one JSON object on one line; a table is called .csv or .tsv"
        elif error.offset >= end:
            hint = "a row is one object on one line; rows of several lines stand in an array: [...]"
    return InputError(message, location=Location(column=column), hint=hint)


def _said(message: str) -> str:
    """What a decoder says, without the "at" before a place that it does not say."""
    return message.removesuffix(" starting at").removesuffix(" at")


_SPACE = re.compile(r"[ \t\n\r]*")
# Only finds where a value ends: what it means is read strictly, later.
_LENIENT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def array_items(source: io.BufferedReader, name: str) -> Iterator[tuple[int, bytes]]:
    """The items of what begins with "[", each as a line with its number; all are in memory.

    Raises:
        InputError: If it is no array of JSON, or longer than `MAX_LINE_BYTES`.
    """
    data = source.read(MAX_LINE_BYTES + 1)
    if len(data) > MAX_LINE_BYTES:
        raise InputError(
            f"{name} is an array of more than {MAX_LINE_BYTES:,} bytes",
            hint="write each row on a line of its own, which is called .jsonl",
        )
    encoding = "utf-8-sig" if data[:1] in (b"[", b"\xef") else json_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = error.object[: error.start].decode(error.encoding, "replace")
        hint = "save the file as UTF-8"
        raise _array_fault(text, name, len(text), "not UTF-8", hint) from None
    at = _after_space(text, text.index("[") + 1)
    number, ended = 0, text[at : at + 1] == "]"
    while not ended:
        if at == len(text):
            raise _array_fault(text, name, at, "not JSON: the array has no end")
        try:
            _, end = cast("tuple[object, int]", _LENIENT.raw_decode(text, at))
        except RecursionError:
            raise _array_fault(text, name, at, "it is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise _array_fault(text, name, error.pos, f"not JSON: {_said(error.msg)}") from None
        number += 1
        # No string of JSON holds a line break, so these are spaces.
        line = text[at:end].replace("\n", " ").replace("\r", " ")
        yield number, line.encode("utf-8", "surrogatepass")
        at = _after_space(text, end)
        if text[at : at + 1] not in (",", "]"):
            raise _array_fault(text, name, at, "not JSON: expecting ',' or ']' after an item")
        if not (ended := text[at] == "]"):
            at = _after_space(text, at + 1)
    if (at := _after_space(text, at + 1)) < len(text):
        raise _array_fault(text, name, at, "not JSON: there is more after the array")


def _after_space(text: str, at: int) -> int:
    return cast("re.Match[str]", _SPACE.match(text, at)).end()


def _array_fault(text: str, name: str, at: int, message: str, hint: str = "") -> InputError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InputError(message, location=Location(name, line, column), hint=hint)
