"""How records are written as rows of the database, and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.scoring.results import assurance_from
from assay.store.records import CellRecord, CellStatus, RunRecord

if TYPE_CHECKING:
    import zstandard

__all__ = [
    "CELL_COLUMNS",
    "RUN_COLUMNS",
    "CellRow",
    "Packer",
    "RunRow",
    "StoredCell",
    "as_mapping",
    "cell_row",
    "plain",
    "read_cell",
    "read_run",
    "run_row",
]

RUN_COLUMNS = "id, created_at, label, config, digests, planned, finished"
RunRow: TypeAlias = tuple[str, str, str, str, str, int, int]

CELL_COLUMNS = (
    "run_id, case_id, harness, model, trial, status, reward, passed, threshold, seconds, cost_usd, "
    "tokens, digest, error, flags, file, content, answer, subscores, notes"
)
CellRow: TypeAlias = tuple[
    str,
    str,
    str,
    str,
    int,
    CellStatus,
    float | None,
    int | None,
    float,
    float,
    float | None,
    int | None,
    str,
    str,
    str,
    str,
    str,
    str,
    str,
    str,
]

StoredCell: TypeAlias = "tuple[CellRow, str, bytes]"
"""A cell as it is stored: its columns, the digest of its snapshot, and its packed detail."""

_LARGEST_INTEGER = 2**63 - 1


def run_row(run: RunRecord) -> RunRow:
    """The values of `RUN_COLUMNS`.

    Raises:
        StoreError: If its configuration is not JSON.
    """
    return (
        run.id,
        run.created_at,
        plain(run.label),
        _encode(run.config, f"the configuration of run {run.id}"),
        _encode(run.digests, f"the digests of run {run.id}"),
        run.planned,
        int(run.finished),
    )


def read_run(row: RunRow) -> RunRecord:
    """The run behind the values of `RUN_COLUMNS`."""
    run_id, created_at, label, config, digests, planned, finished = row
    return RunRecord(
        id=run_id,
        created_at=created_at,
        label=label,
        config=cast("dict[str, Json]", json.loads(config)),
        digests=cast("dict[str, str]", json.loads(digests)),
        planned=planned,
        finished=bool(finished),
    )


def cell_row(cell: CellRecord) -> CellRow:
    """The values of `CELL_COLUMNS`, with nothing in them that a column cannot hold.

    Raises:
        InputError: For a key that is not valid Unicode.
        StoreError: If the subscores are not JSON.
    """
    for part in (cell.case, cell.harness, cell.model):
        if not part.isascii() and part != plain(part):
            raise InputError(
                f"{part!r} cannot name a cell: it is not valid Unicode", hint="rename it"
            )
    return (
        cell.run_id,
        cell.case,
        cell.harness,
        cell.model,
        cell.trial,
        cell.status,
        cell.reward,
        None if cell.passed is None else int(cell.passed),
        cell.threshold,
        _measured(cell.seconds) or 0.0,
        _measured(cell.cost_usd),
        None if cell.tokens is None or abs(cell.tokens) > _LARGEST_INTEGER else cell.tokens,
        cell.digest,
        plain(cell.error),
        _encode(cell.flags, f"the flags of cell {cell.key}") if cell.flags else "[]",
        plain(cell.file),
        plain(cell.content),
        plain(cell.answer),
        _encode(cell.subscores, f"the subscores of cell {cell.key}"),
        _notes(cell),
    )


def read_cell(row: CellRow) -> CellRecord:
    """The cell behind the values of `CELL_COLUMNS`."""
    notes = {} if row[19] == "{}" else cast("dict[str, Json]", json.loads(row[19]))
    return CellRecord(
        run_id=row[0],
        case=row[1],
        harness=row[2],
        model=row[3],
        trial=row[4],
        status=row[5],
        reward=row[6],
        passed=None if row[7] is None else bool(row[7]),
        threshold=row[8],
        assurance=assurance_from(notes.pop("assurance", None)),
        min_assurance=assurance_from(notes.pop("min_assurance", None)),
        seconds=row[9],
        cost_usd=row[10],
        tokens=row[11],
        digest=row[12],
        error=row[13],
        flags=() if row[14] == "[]" else tuple(cast("list[str]", json.loads(row[14]))),
        file=row[15],
        content=row[16],
        answer=row[17],
        subscores=()
        if row[18] == "[]"
        else tuple(cast("list[dict[str, Json]]", json.loads(row[18]))),
        notes=notes,
    )


def _notes(cell: CellRecord) -> str:
    """The notes of a cell, with its words of assurance among them; older cells have none."""
    if not cell.notes and cell.min_assurance is None:
        return "{}" if cell.assurance is None else f'{{"assurance":"{cell.assurance}"}}'
    words = {"assurance": cell.assurance, "min_assurance": cell.min_assurance}
    said = {name: word for name, word in words.items() if word is not None}
    return _encode({**cell.notes, **said}, f"the notes of cell {cell.key}")


class Packer:
    """JSON to compressed bytes and back; one of these serves one thread.

    Args:
        level: How hard to compress, as zstd counts.
    """

    def __init__(self, level: int = 3) -> None:
        self._level = level
        self._compressor: zstandard.ZstdCompressor | None = None

    def pack(self, detail: Mapping[str, Json], what: str) -> bytes:
        """Compress a detail.

        Raises:
            StoreError: If it is not JSON; ``what`` names it in the message.
        """
        return self.compress(_encode(detail, what).encode("ascii"))

    def compress(self, written: bytes) -> bytes:
        """Compress a detail that is JSON already."""
        if self._compressor is None:
            import zstandard

            self._compressor = zstandard.ZstdCompressor(level=self._level)
        return self._compressor.compress(written)

    def unpack(self, body: bytes, what: str) -> dict[str, Json]:
        """Read back what `pack` wrote.

        Raises:
            StoreError: If it is damaged; ``what`` names it in the message.
        """
        import zstandard

        try:
            return cast("dict[str, Json]", json.loads(zstandard.decompress(body)))
        except (zstandard.ZstdError, ValueError, MemoryError) as error:
            raise StoreError(f"{what} is damaged: {error}", hint="run the cell again") from error


def plain(text: str) -> str:
    """The text with unpaired surrogates, which no database can hold, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _encode(value: object, what: str) -> str:
    """Write JSON in ASCII, so that even unpaired surrogates come back as they were."""
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} cannot be written as JSON: {error}") from error


def as_mapping(value: object) -> dict[str, Json]:
    """For `json.dumps`: any mapping is written like a dictionary.

    Raises:
        TypeError: For anything else.
    """
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Json]", value))
    raise TypeError(f"a {type(value).__name__} is not JSON")


_JSON = json.JSONEncoder(separators=(",", ":"), default=as_mapping)
"""Made once: `json.dumps` makes one for each call that asks for anything."""


def _measured(value: float | None) -> float | None:
    """A measurement, or None where it is not one: an agent's trace may claim an infinite cost."""
    return value if value is not None and math.isfinite(value) else None
