"""Rows of a dataset with the id of an earlier row, found without holding its ids.

Ids become hashes, eight bytes each in a file that has no name, which are compared some at a time.
Only where a hash stands twice are rows read again. So memory grows with those alone.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TypeAlias

from assay.errors import InputError, StoreError
from assay.eval.rows.shards import Shard, read_row_of, read_shard
from assay.tasks.row_files import ROOM, place_of, unnamed
from assay.tasks.rows import twin

Twins: TypeAlias = "Mapping[int, tuple[int, ...]]"
"""By the numbers of shards, those of the rows in them that have the id of an earlier row."""

_AT_ONCE, _MOST_TIMES = 1 << 16, 128
"""So many hashes are compared together; of more than 8 million, so often that share of them."""
_READ = 1 << 12
_HASHES = 1 << 64


def hashes_of(identities: Iterable[str]) -> array[int]:
    """Those of ids, sorted, as `Hashes` takes them; they hold in this process and its forks."""
    return array("Q", sorted(map(_hash, identities)))


def _hash(identity: str) -> int:
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
    try:
        with unnamed() as (file, _):  # whose end writes what is left
            yield Hashes(file)
    except OSError as error:
        raise StoreError(f"ids cannot be compared: {error}", hint=ROOM) from error


def twins_of(
    shards: Sequence[Shard],
    twice: frozenset[int],
    label: str | None,
    *,
    leave_out: Callable[[InputError], None] | None,
) -> Twins:
    """The well-formed rows with the id of an earlier one.

    Args:
        shards: The dataset in its order, as far as it is to be looked at.
        twice: Hashes of ids that stand twice.
        label: Field that people labelled; None for none.
        leave_out: Told of such rows, which are left out, as malformed ones are; None if the first
            of either ends it.

    Raises:
        InputError: For the first of them, unless they are left out.
    """
    first: dict[str, str] = {}
    twins: dict[int, tuple[int, ...]] = {}
    for shard in shards:
        found: list[int] = []
        for number, line in (one for lines, _ in read_shard(shard) for one in lines):
            try:
                row, _ = read_row_of(line, number, shard.source, label=label)
            except InputError:
                if leave_out is None:
                    raise
                continue
            if _hash(row.id) not in twice:
                continue
            place = place_of(shard.source.name, number, shard.source.unit)
            if first.setdefault(row.id, str(place)) == str(place):
                continue
            error = twin(row.id, first[row.id], place)
            if leave_out is None:
                raise error
            leave_out(error)
            found.append(number)
        if found:
            twins[shard.number] = tuple(found)
    return twins
