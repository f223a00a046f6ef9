"""What commands share that read rows: the options, standard input, rows that are left out."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from assay.errors import InputError, StoreError
from assay.tasks.packed import name_inside
from assay.tasks.row_files import ROOM, RowReading, unnamed
from assay.tasks.row_sets import HUB, files_of, holds_rows
from assay.tasks.text_tables import is_moved

ROWS = """\
Rows are JSONL, a JSON array, or a CSV or TSV table whose first row names the columns, also packed
by gzip or zstd; Parquet or Arrow; a directory or a quoted pattern of such files; hf:OWNER/NAME of
the Hugging Face Hub. The cells of CSV and TSV are text, except those of --label.
"""
_SHOWN = 5
_STDIN = "-"
_STDIN_NAME = "stdin"


def add_reading(parser: ArgumentParser, *, may_skip: bool = False) -> None:
    """Add how rows are read; `may_skip` where the others may count without the malformed ones."""
    group = parser.add_argument_group("rows")
    group.add_argument(
        "--map",
        action="extend",
        type=_pairs,
        default=[],
        metavar="OURS=THEIRS,...",
        help="what fields are called in the file: answer=response,expected=target",
    )
    if may_skip:
        group.add_argument(
            "--on-bad-row",
            choices=("stop", "skip"),
            default="stop",
            help="a malformed row ends the command (stop), or is left out and counted (skip)",
        )


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(ours.strip() and theirs.strip() for ours, _, theirs in pairs):
        raise ArgumentTypeError(f"{text!r} is not OURS=THEIRS, such as answer=response")
    return [(ours.strip(), theirs.strip()) for ours, _, theirs in pairs]


@dataclass(slots=True)
class RowsGiven:
    """The rows that a command was given.

    Attributes:
        path: Where they are.
        reading: How they are read.
        left_out: Malformed rows that were left out until now.
        first_left_out: What is wrong with the first of them.
    """

    path: str
    reading: RowReading
    left_out: int = 0
    first_left_out: str = ""

    def leave_out(self, error: InputError) -> None:
        """Tell of a malformed row."""
        self.left_out += 1
        self.first_left_out = self.first_left_out or str(error)
        if self.left_out <= _SHOWN:
            print(f"left out: {error}", file=sys.stderr)


@contextmanager
def rows_given(
    given: Namespace, file: str, *more: str, labels: tuple[str, ...] = (), may_record: bool = False
) -> Generator[RowsGiven]:
    """The rows that are given; those that were left out are counted on standard error.

    With `may_record` they may also be recordings of agents, in several files: each run is a row.
    """
    require_rows(file)
    is_stdin = file == _STDIN
    reading = RowReading(
        mapping=_mapping(cast("list[tuple[str, str]]", given.map)),
        name=_STDIN_NAME if is_stdin else "",
        labels=labels,
    )
    with ExitStack() as stack:
        path = file
        if is_stdin:
            scratch, path = stack.enter_context(unnamed())
            _keep(scratch)
        rows = RowsGiven(path, reading)
        if getattr(given, "on_bad_row", "stop") == "skip":
            rows.reading = replace(reading, on_bad_row=rows.leave_out)
        if may_record and (recorded := _recorded((path, *more), rows.reading)):
            written, kept = stack.enter_context(unnamed())
            shown = f"{file} and {len(more)} more" if more else file
            _as_rows(rows, recorded, written, kept, shown)
        yield rows
        if rows.left_out > _SHOWN:
            print(f"left out: {rows.left_out:,} malformed rows in all", file=sys.stderr)


_HEAD = 1 << 16


def _recorded(given: Sequence[str], reading: RowReading) -> Sequence[str]:
    """The files and directories of recordings that were given, or that a pattern names."""
    named = given
    if len(given) == 1 and not given[0].startswith(HUB):
        named = (not Path(given[0]).is_dir() and files_of(given[0])) or given
    first = next((one for one in named if not _may_record(one, reading)), None)
    if first is None:
        return named
    if len(given) > 1:
        raise InputError(
            f"{first} holds no recordings of agents, and several files of rows are one pattern",
            hint="quote it, so that the shell leaves it as it is: 'data/*.jsonl'",
        )
    return ()


def _may_record(path: str, reading: RowReading) -> bool:
    """Whether a path holds recordings of agents; rows are told from them without any reader."""
    place = Path(path)
    if place.is_dir():
        return not (holds_rows(path) or _begins_with_rows(place))
    if _is_table(path) or not place.is_file():  # a pipe may be silent for ever
        return False
    try:
        with place.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # which is told where the rows are read
        return False
    if not head.startswith(b"PK") and ("answer" in reading.mapping or _begins_with_a_row(head)):
        return False
    from assay.agents.transcripts.rows import holds_recordings

    return holds_recordings(path)


def _begins_with_rows(place: Path) -> bool:
    """Whether the first JSONL file in a directory has rows: recordings are called so, too."""
    from assay.agents.transcripts.rows import holds_recordings

    named = (one for one in place.iterdir() if name_inside(one.name).endswith(".jsonl"))
    files = sorted(one for one in named if one.is_file())  # a pipe may be silent for ever
    return bool(files) and not holds_recordings(str(files[0]))


def _begins_with_a_row(head: bytes) -> bool:
    """Whether a file begins with an answer: recordings may speak of one, inside."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff[ \t\r\n")
    if not text.startswith("{") or '"answer"' not in text:
        return False
    try:
        first = cast("object", json.JSONDecoder().raw_decode(text)[0])
    except (ValueError, RecursionError):  # it is longer than that, or broken, which is told later
        return True
    return isinstance(first, dict) and "answer" in first


def _is_table(path: str) -> bool:
    """Whether a file is a table by its name: nothing else is called so."""
    return name_inside(path.lower()).endswith((".csv", ".tsv"))


def _as_rows(
    rows: RowsGiven, recorded: Sequence[str], scratch: IO[bytes], path: str, name: str
) -> None:
    """Write recordings down as rows, and read those instead."""
    from assay.agents.transcripts.rows import recorded_rows

    for row in recorded_rows(*recorded):
        if isinstance(row, InputError):
            if rows.reading.on_bad_row is None:
                raise row
            rows.reading.on_bad_row(row)
            continue
        _write(scratch, json.dumps(row).encode() + b"\n")
    _write(scratch, b"")
    rows.path = path
    shown = _STDIN_NAME if name == _STDIN else name
    rows.reading = replace(rows.reading, name=shown)


def _write(scratch: IO[bytes], line: bytes) -> None:
    try:
        scratch.write(line)
        if not line:
            scratch.flush()
    except OSError as error:
        raise StoreError(f"recordings cannot be kept as rows: {error}", hint=ROOM) from error


def _mapping(pairs: list[tuple[str, str]]) -> dict[str, str]:
    mapping = dict(pairs)
    moved = [theirs for ours, theirs in pairs if is_moved(ours, theirs)]
    if len(mapping) < len(pairs) or len(set(moved)) < len(moved):
        raise InputError("--map names a field twice", hint="give each field once")
    return mapping


def _keep(scratch: IO[bytes]) -> None:
    """Standard input as a file: rows are read more than once."""
    import shutil

    if sys.stdin.isatty():
        print("reading rows from the terminal; Ctrl-D ends them", file=sys.stderr)
    try:
        shutil.copyfileobj(sys.stdin.buffer, scratch)
        scratch.flush()
    except OSError as error:
        raise StoreError(f"standard input cannot be kept: {error}", hint=ROOM) from error


_NO_ROWS = (".yaml", ".yml", ".py")


def require_rows(file: str) -> None:
    """Refuse what by its name can be no file of rows.

    Raises:
        InputError: Most often graders and rows are in each other's place.
    """
    if Path(file).suffix.lower() in _NO_ROWS:
        raise InputError(
            f"{file} is not a file of rows",
            hint="rows are JSONL, JSON, CSV, TSV, Parquet or Arrow; "
            "are they in the place of the graders?",
        )
