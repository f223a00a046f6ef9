"""Rows that are JSON: one on each line, or the items of an array."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import NoReturn, cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json, json_encoding

__all__ = ["MAX_LINE_BYTES", "array_items", "json_lines", "parse_line"]

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
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message, column = "UTF-16, not UTF-8", 1
        else:
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


# ---- arrays ------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\n\r]*")
_SLACK = 16
"""A fault so near to the end of what was read may be the end alone."""
# Only finds where a value ends: what it means is read strictly, later.
_LENIENT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class _Text:
    """The text of a file, as far as it is needed, and where in it we are."""

    CHUNK = 1 << 16

    def __init__(self, source: io.BufferedReader, name: str) -> None:
        self._source, self._name = source, name
        self._decoder: codecs.IncrementalDecoder | None = None
        self._line = self._column = 1  # of the buffer's first character
        self.buffer = ""
        self.at = 0
        self.has_ended = False

    def more(self, size: int = CHUNK) -> None:
        """Read on, and forget what was passed."""
        passed = self.buffer[: self.at]
        self._line, self._column = self._after(passed)
        self.buffer, self.at = self.buffer[self.at :], 0
        data = self._source.read(size)
        if self._decoder is None:
            encoding = "utf-8-sig" if data[:1] in (b"[", b"\xef") else json_encoding(data)
            self._decoder = codecs.getincrementaldecoder(encoding)()
        try:
            self.buffer += self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(error.encoding, "replace")
            self.buffer += before
            self.fail("not UTF-8", len(self.buffer), "save the file as UTF-8")
        self.has_ended = not data

    def _after(self, passed: str) -> tuple[int, int]:
        breaks = passed.count("\n")
        column = len(passed) - passed.rfind("\n") if breaks else self._column + len(passed)
        return self._line + breaks, column

    def fail(self, message: str, at: int, hint: str = "") -> NoReturn:
        """Say what is wrong, and where."""
        line, column = self._after(self.buffer[:at])
        raise InputError(message, location=Location(self._name, line, column), hint=hint)

    def next(self) -> str:
        """The next character that is no space, or nothing at the end; it is not passed."""
        while True:
            self.at = cast("re.Match[str]", _SPACE.match(self.buffer, self.at)).end()
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if self.has_ended:
                return ""
            self.more()

    def value(self) -> str:
        """The text of the value that begins here; it is passed."""
        while True:
            fault = None
            try:
                _, end = cast("tuple[object, int]", _LENIENT.raw_decode(self.buffer, self.at))
                if end < len(self.buffer) or self.has_ended:
                    text, self.at = self.buffer[self.at : end], end
                    return text
            except RecursionError:
                self.fail("it is nested too deeply", self.at)
            except json.JSONDecodeError as error:
                fault = error
                is_cut = error.msg.startswith("Unterminated") or (
                    error.pos >= len(self.buffer) - _SLACK
                )
                if self.has_ended or not is_cut:
                    self.fail(f"not JSON: {_said(error.msg)}", error.pos)
            held = len(self.buffer) - self.at
            if held > MAX_LINE_BYTES:
                self.fail(f"the row is longer than {MAX_LINE_BYTES:,} bytes", self.at)
            self.more(max(self.CHUNK, held))  # so that a long row is not read again too often
            if self.has_ended and fault is not None and fault.msg.startswith("Unterminated"):
                self.fail(f"not JSON: {_said(fault.msg)}", self.at)


def array_items(source: io.BufferedReader, name: str) -> Iterator[tuple[int, bytes]]:
    """The items of an array, each as a line, with their numbers.

    Raises:
        InputError: If it is no array of JSON.
    """
    text, number, may_end = _Text(source, name), 0, True
    if text.next() != "[":
        text.fail("not a JSON array", text.at, "--format json reads an array of objects: [...]")
    text.at += 1
    while True:
        if may_end and text.next() == "]":
            break
        if not text.next():
            text.fail("not JSON: the array has no end", text.at)
        value, number, may_end = text.value(), number + 1, True
        # No string of JSON holds a line break, so these are spaces.
        line = value.replace("\n", " ").replace("\r", " ")
        yield number, line.encode("utf-8", "surrogatepass")
        if text.next() == ",":
            text.at += 1
            may_end = False
        elif text.next() != "]":
            text.fail("not JSON: expecting ',' or ']' after an item", text.at)
    text.at += 1
    if text.next():
        text.fail("not JSON: there is more after the array", text.at)
