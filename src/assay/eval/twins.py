"""Rows of a dataset with the id of an earlier row, found without holding its ids.

Ids become hashes, eight bytes each in a file that has no name, which are compared some at a time.
Only rows whose hash stands twice are read again. So memory grows with those alone.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TypeAlias, cast

from assay.errors import InputError, StoreError
from assay.eval.shard_rows import Shard, Source, read_row_of, read_shard
from assay.scoring.json_safe import Json
from assay.tasks.json_rows import parse_line
from assay.tasks.row_files import ROOM, place_of, renamed, unnamed
from assay.tasks.rows import twin

__all__ = ["Hashes", "Twins", "hashes_of", "identified", "identity_of", "kept_hashes", "twins_of"]

Twins: TypeAlias = "Mapping[int, tuple[int, ...]]"
"""By the numbers of shards, those of the rows in them that have the id of an earlier row."""

_AT_ONCE, _MOST_TIMES = 1 << 16, 128
"""So many hashes are compared together; of more than 8 million, so often that share of them."""
_READ = 1 << 12
_HASHES = 1 << 64


# ---- ids ---------------------------------------------------------------------------------------


def identity_of(given: Json, number: int, source: Source) -> bytes:
    """The id of a row: what is given, or where it stands."""
    text = str(number + source.before if given is None else given)
    return text.encode("utf-8", "surrogatepass")


def identified(
    lines: Iterable[tuple[int, bytes | InputError]], source: Source
) -> Iterator[tuple[int, bytes, bytes]]:
    """Rows of a file that nobody has read: number, id and text, as far as they are there.

    A malformed row, which is told elsewhere, may have an id.
    """
    names = source.mapping
    is_renamed = "id" in names or "id" in names.values()
    for number, line in lines:
        if isinstance(line, InputError):
            continue
        identity = b"" if is_renamed else _plain_id(line)
        if identity is None:
            identity = identity_of(None, number, source)
        elif not identity:
            try:
                given = renamed(parse_line(line), names, set()).get("id")
            except InputError:
                continue
            identity = identity_of(given, number, source)
        yield number, identity, line


_VALUE = rb'"id"\s*:\s*(?:"([^"\\\x00-\x1f]*)"|(0|-?[1-9][0-9]{0,17}))\s*'
_FIRST = re.compile(rb"\s*\{\s*" + _VALUE + rb"[,}]")
_LAST = re.compile(_VALUE + rb"\}\s*$")


def _plain_id(line: bytes) -> bytes | None:
    """The id of a row of JSON, where no reading is needed: None for none, else empty.

    What is the first member of all, or the last, is the row's own; and a row has no second one.
    """
    if found := _FIRST.match(line):
        return cast("bytes", found[2] or found[1])
    if b'"id"' not in line:  # unless a letter of it is written as its number, or all in UTF-16
        return b"" if b"\0" in line or (b"\\" in line and b"\\u006" in line) else None
    place = line.rfind(b'"id"')
    found = _LAST.match(line, place)
    is_own = found is not None and line[:place].rstrip().endswith(b",")
    return cast("bytes", found[2] or found[1]) if found and is_own else b""


# ---- hashes ------------------------------------------------------------------------------------


def hashes_of(identities: Iterable[bytes]) -> array[int]:
    """Those of ids, sorted, as `Hashes` takes them; they hold in this process and its forks."""
    return array("Q", sorted(map(_hash, identities)))


def _hash(identity: bytes) -> int:
    return hash(identity) % _HASHES


@dataclass(slots=True)
class _Block:
    """Hashes in a file, smallest first.

    Attributes:
        at: Where the first stands that was not compared yet.
        end: Where they end.
    """

    at: int
    end: int

    def below(self, limit: int, file: IO[bytes]) -> Iterator[int]:
        """Those below a limit that were not compared yet."""
        while self.at < self.end:
            file.seek(self.at)
            some = array("Q", file.read(min(self.end - self.at, _READ)))
            cut = bisect_left(some, limit)
            self.at += cut * some.itemsize
            yield from some[:cut]
            if cut < len(some):
                return


class Hashes:
    """Hashes of ids, on the disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._blocks: list[_Block] = []

    def add(self, hashes: array[int]) -> None:
        """Keep some, which are sorted."""
        begin = self._file.tell()
        self._file.write(hashes.tobytes())
        self._blocks.append(_Block(begin, self._file.tell()))

    def twice(self) -> frozenset[int]:
        """Those that were added twice; so many are compared together as memory has room for."""
        self._file.flush()
        twice: set[int] = set()
        count = sum(block.end - block.at for block in self._blocks) // 8
        parts = min(_MOST_TIMES, 1 + count // _AT_ONCE)
        for part in range(1, parts + 1):
            seen: set[int] = set()
            for block in self._blocks:
                for one in block.below(part * _HASHES // parts, self._file):
                    (twice if one in seen else seen).add(one)
        return frozenset(twice)


@contextmanager
def kept_hashes() -> Generator[Hashes]:
    """Room for hashes.

    Raises:
        StoreError: If they find none on the disk.
    """
    with unnamed() as (file, _):
        try:
            yield Hashes(file)
        except OSError as error:
            raise StoreError(f"ids cannot be compared: {error}", hint=ROOM) from error


# ---- rows --------------------------------------------------------------------------------------


def twins_of(shards: Sequence[Shard], twice: frozenset[int], *, may_have: bool) -> Twins:
    """The well-formed rows with the id of an earlier one.

    Args:
        shards: The whole dataset, in its order.
        twice: Hashes of ids that stand twice.
        may_have: Whether it may have such rows, which are left out then.

    Raises:
        InputError: For the first of them, where it may not.
    """
    first: dict[str, str] = {}
    twins: dict[int, tuple[int, ...]] = {}
    for shard in shards if twice else ():
        found: list[int] = []
        rows = (one for lines, _ in read_shard(shard) for one in identified(lines, shard.source))
        for number, identity, line in rows:
            if _hash(identity) not in twice:
                continue
            try:
                row, _ = read_row_of(line, number, shard.source)
            except InputError:  # malformed, and told where it is graded
                continue
            place = place_of(shard.source.name, number, shard.source.unit)
            if first.setdefault(row.id, str(place)) == str(place):
                continue
            if not may_have:
                raise twin(row.id, first[row.id], place)
            found.append(number)
        if found:
            twins[shard.number] = tuple(found)
    return twins
