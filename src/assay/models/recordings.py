"""Recorded replies as JSON Lines: to be reviewed, kept in git, and replayed elsewhere.

One line per reply, by digest, so that the same replies always give the same file::

    {"digest": "9f2c...", "format": 1, "text": "...", "data": {...}, "usage": {...}, ...}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from assay.errors import InputError, Location, NotFoundError, StoreError
from assay.models.reply_file import ReplyFile
from assay.models.stored_reply import RecordError, pack, parse, reply_of, unpack

__all__ = ["export_replies", "import_replies"]

_FORMAT = 1


def export_replies(file: str, out: str) -> int:
    """Write the replies of a cache to a JSONL file, which is replaced whole.

    Returns:
        How many there are.

    Raises:
        NotFoundError: There is no such cache.
        StoreError: The cache is damaged, or the file cannot be written.
    """
    import tempfile

    if not Path(file).exists():
        raise NotFoundError(f"there are no recorded replies at {file}")
    replies = ReplyFile(file, writable=False)
    count = 0
    try:
        handle, draft = tempfile.mkstemp(dir=Path(out).absolute().parent, prefix=".replies-")
        try:
            with open(handle, "w", encoding="ascii") as lines:  # noqa: PTH123 - it is open already
                for digest, value in replies.rows():
                    lines.write(_line(digest.hex(), value, file))
                    count += 1
            os.replace(draft, out)  # noqa: PTH105 - both are strings
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"the replies cannot be written to {out}: {error.strerror}") from error
    finally:
        replies.close()
    return count


def import_replies(jsonl: str, file: str) -> int:
    """Add the replies of an export to a cache: all of them, or none when a line is wrong.

    A reply that the cache has already stays as it is.

    Returns:
        How many were new.

    Raises:
        InputError: The file cannot be read, or a line of it is no reply; names the line.
        StoreError: The cache cannot be written.
    """
    replies = ReplyFile(file, writable=True)
    try:
        return replies.add(_rows(jsonl))
    finally:
        replies.close()


def _line(digest: str, value: bytes, file: str) -> str:
    try:
        record = unpack(value)
        reply_of(record, digest=digest)
    except RecordError as error:
        raise StoreError(
            f"the reply {digest[:12]} recorded in {file} is damaged: {error}",
            hint="move the file away to begin anew",
        ) from None
    assert isinstance(record, dict)
    return json.dumps({"digest": digest, "format": _FORMAT, **record}) + "\n"


def _rows(jsonl: str) -> Iterator[tuple[bytes, bytes]]:
    try:
        with Path(jsonl).open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(line, Location(file=jsonl, line=number))
    except OSError as error:
        raise InputError(
            f"the replies cannot be read: {error.strerror}", location=Location(file=jsonl)
        ) from error


def _row(line: bytes, location: Location) -> tuple[bytes, bytes]:
    try:
        record = parse(line)
        if not isinstance(record, dict) or record.pop("format", None) != _FORMAT:
            raise RecordError(f"it is no reply of format {_FORMAT}")
        digest = record.pop("digest", None)
        if not isinstance(digest, str) or len(digest) != 64:
            raise RecordError("'digest' is not a SHA-256")
        key = bytes.fromhex(digest)
        reply_of(record, digest=digest)
        return key, pack(record)
    except ValueError as error:
        raise InputError(
            f"this line is no recorded reply: {error}",
            location=location,
            hint="export the replies again",
        ) from None
