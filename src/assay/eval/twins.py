"""Rows of a dataset with the id of an earlier row, found without holding its ids.

Ids become hashes, eight bytes each in a file that has no name, which are compared some at a time.
Only rows whose hash stands twice are read again. So memory grows with those alone.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TypeAlias, cast

from assay.cores import cores
from assay.errors import InputError, StoreError
from assay.eval.batch import Processes, run_batches
from assay.eval.shard_rows import Shard, read_row_of, read_shard
from assay.tasks.json_rows import parse_line
from assay.tasks.row_files import ROOM, place_of, renamed, unnamed
from assay.tasks.rows import twin

__all__ = ["Twins", "each_shard", "twins_of"]

Twins: TypeAlias = "Mapping[int, tuple[int, ...]]"
"""By the numbers of shards, those of the rows in them that have the id of an earlier row."""

_AT_ONCE, _MOST_TIMES = 1 << 16, 128
"""So many hashes are compared together; of more than 8 million, so often that share of them."""
_READ = 1 << 12
_FEW = 10_000
"""Rows that are looked at in this process."""
_HASHES = 1 << 64


def twins_of(shards: Sequence[Shard], *, may_have: bool) -> Twins:
    """Find the well-formed rows with the id of an earlier one.

    Args:
        shards: The whole dataset, in its order.
        may_have: Whether it may have such rows, which are left out then.

    Raises:
        InputError: For the first of them, where it may not.
        StoreError: If the hashes find no room on the disk.
    """
    with unnamed() as (file, _):
        blocks: list[_Block] = []

        def keep(_: Shard, hashes: object) -> None:
            data = cast("array[int]", hashes).tobytes()
            blocks.append(_Block(file.tell(), file.tell() + len(data)))
            file.write(data)

        try:
            each_shard(shards, _hashes, keep)
            file.flush()
        except OSError as error:
            raise StoreError(f"ids cannot be compared: {error}", hint=ROOM) from error
        twice = _twice(file, blocks)
    return _looked_up(shards, twice, may_have=may_have) if twice else {}


def each_shard(
    shards: Sequence[Shard],
    work: Callable[[Shard], object],
    keep: Callable[[Shard, object], None],
) -> None:
    """Do something with every shard, by as many processes as are worth it.

    Args:
        shards: Which.
        work: What is done, in this process or in forks of it.
        keep: Told what came of each, in the order in which they end.
    """
    if sum(shard.stretch.rows for shard in shards) <= _FEW:
        for shard in shards:
            keep(shard, work(shard))
        return
    with Processes(work, count := min(cores(), len(shards))) as pool:
        asyncio.run(run_batches(shards, pool, keep, at_once=count))


# ---- hashes ------------------------------------------------------------------------------------


def _hashes(shard: Shard) -> array[int]:
    """Those of the ids of a shard, sorted; a malformed row, which is told elsewhere, may have one.

    They hold in this process and its forks.
    """
    names = {"id", *shard.source.mapping.values()}
    return array("Q", sorted(_hash(one) for _, one, _ in _ids(shard, names)))


def _hash(identity: bytes) -> int:
    return hash(identity) % _HASHES


_VALUE = rb'"id"\s*:\s*(?:"([^"\\\x00-\x1f]*)"|(0|-?[1-9][0-9]{0,17}))\s*'
_FIRST = re.compile(rb"\s*\{\s*" + _VALUE + rb"[,}]")
_LAST = re.compile(_VALUE + rb"\}\s*$")


def _ids(shard: Shard, columns: Collection[str] = ()) -> Iterator[tuple[int, bytes, bytes]]:
    """The rows of a shard: number, id and text, as far as those columns of a table go."""
    source, names = shard.source, shard.source.mapping
    is_renamed = "id" in names or "id" in names.values()
    for lines, _ in read_shard(shard, columns):
        for number, line in lines:
            if isinstance(line, InputError):
                continue
            identity = b"" if is_renamed else _plain_id(line)
            if identity is None:
                identity = str(number + source.before).encode()
            elif not identity:
                try:
                    given = renamed(parse_line(line), names, set()).get("id")
                except InputError:
                    continue
                text = str(number + source.before if given is None else given)
                identity = text.encode("utf-8", "surrogatepass")
            yield number, identity, line


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


def _twice(file: IO[bytes], blocks: Sequence[_Block]) -> frozenset[int]:
    """The hashes that stand twice; so many are compared together as memory has room for."""
    twice: set[int] = set()
    count = sum(block.end - block.at for block in blocks) // 8
    parts = min(_MOST_TIMES, 1 + count // _AT_ONCE)
    for part in range(1, parts + 1):
        seen: set[int] = set()
        for block in blocks:
            for one in block.below(part * _HASHES // parts, file):
                (twice if one in seen else seen).add(one)
    return frozenset(twice)


# ---- rows --------------------------------------------------------------------------------------


def _looked_up(shards: Sequence[Shard], twice: frozenset[int], *, may_have: bool) -> Twins:
    first: dict[str, str] = {}
    twins: dict[int, tuple[int, ...]] = {}
    for shard in shards:
        found: list[int] = []
        source = shard.source
        for number, identity, line in _ids(shard):
            if _hash(identity) not in twice:
                continue
            try:
                row, _ = read_row_of(line, number, source)
            except InputError:  # malformed, and told where it is graded
                continue
            place = place_of(source.name, number, source.unit)
            if first.setdefault(row.id, str(place)) == str(place):
                continue
            if not may_have:
                raise twin(row.id, first[row.id], place)
            found.append(number)
        if found:
            twins[shard.number] = tuple(found)
    return twins
