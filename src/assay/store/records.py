"""What the store keeps: runs, and the cells of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from assay.errors import InputError, StoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance, assurance_from
from assay.store.checks import as_mapping, plain
from assay.store.database import Database, Row, Scalar
from assay.store.pages import Order
from assay.store.table import Table, Where

if TYPE_CHECKING:
    import zstandard

CellStatus = Literal["graded", "error", "skipped"]

NOT_GRADED, MIN_COVERAGE = "not_graded", "min_coverage"
"""Where the notes of a cell have what was skipped of its weight, and what its case asks for."""

ABOUT = "about"
"""Where they have what is short in the metadata of its case."""

RATES = "rates"
"""Where they have the pass rates that its case asks of all its trials: the least, by name."""

GROUP = "group"
"""Where the notes of a dataset's row have which rows are tries at the same thing."""

UNCLAMPED = "unclamped"
"""Where they have a reward that lay outside of [0, 1]."""

_ROUNDING = 1e-9

CellKey: TypeAlias = tuple[str, str, str, int]
"""Case, harness, model and trial: what makes a cell unique in its run."""


@frozen(kw_only=True)
class RunRecord:
    """One launch: what was asked for, so that it can be resumed and explained.

    Attributes:
        id: Sortable and unique, such as ``20261121-090830-ab12``.
        created_at: ISO 8601, UTC.
        label: The user's own name for it.
        config: Everything that decides what is run, as plain JSON.
        digests: Case id to the digest of the case as it was when the run started.
        finished: Whether every planned cell was stored.
        planned: Number of cells the launch consists of.
        assay: The version of assay that began it; empty where none was noted.
    """

    id: str
    created_at: str
    label: str = ""
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    finished: bool = False
    planned: int = 0
    assay: str = ""

    @property
    def are_apart(self) -> bool:
        """Whether each cell is a case of its own: a row of a dataset, and no trial of a test."""
        return self.config.get("kind") == "dataset" and not self.config.get("has_trials")

    @property
    def suite(self) -> str:
        """What was run: the paths of cases, or the file of rows."""
        if isinstance(named := self.config.get("suite"), str):
            return named
        request = self.config.get("request")
        paths = request.get("paths") if isinstance(request, dict) else None
        listed = paths if isinstance(paths, list) else [self.config.get("file")]
        return ", ".join(str(path) for path in listed if path)


@frozen(kw_only=True)
class CellRecord:
    """The result of one cell (case, harness, model, trial), or of one graded dataset row.

    Attributes:
        run_id: The run it belongs to.
        case: Case id, task slug, or row id.
        harness: What did the work.
        model: The model it was asked to use; empty where there is none.
        trial: 1-based repeat.
        status: ``graded``, ``error`` (could not be graded) or ``skipped`` (nothing applied).
        reward: In [0, 1] where graded, else None.
        passed: Whether the reward reached the threshold, and the assurance its minimum; None
            unless graded.
        threshold: The reward needed to pass.
        assurance: How far the reward can be trusted; None where nothing says.
        min_assurance: The assurance needed to pass, if one is.
        error: Why it could not be graded; empty otherwise.
        flags: Signs of tampering.
        seconds: Wall time of agent and grading.
        cost_usd: Price of the agent's model calls; None is unknown.
        tokens: Tokens the agent used; None is unknown.
        digest: Digest of what graded it: case, graders and assay's version.
        subscores: The score tree as plain JSON (see `SubScore.to_dict`).
        content: One line that explains the reward, if there is one.
        answer: The final answer, shortened.
        file: The case file or dataset row it came from, for people.
        notes: What was done to the submission before it was graded: ``dropped`` and ``restored``
            list the changes that were left out, and why; ``held`` has the reward that waits for a
            person's decision, ``review`` that decision. Of the grading: ``not_graded`` has the
            share of the weight that was skipped, and why by grader, ``min_coverage`` the share that
            must have been graded, ``rates`` the pass rates that are asked of all trials;
            ``unclamped`` has a template's reward that is not in [0, 1].
            Of a case: ``about``, what is short in its metadata. Of a row: ``label``, and the
            ``group`` of which it is.
    """

    run_id: str
    case: str
    harness: str = ""
    model: str = ""
    trial: int = 1
    status: CellStatus
    reward: float | None = None
    passed: bool | None = None
    threshold: float = 1.0
    assurance: Assurance | None = None
    min_assurance: Assurance | None = None
    error: str = ""
    flags: tuple[str, ...] = ()
    seconds: float = 0.0
    cost_usd: float | None = None
    tokens: int | None = None
    digest: str = ""
    subscores: tuple[Mapping[str, Json], ...] = ()
    content: str = ""
    answer: str = ""
    file: str = ""
    notes: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def key(self) -> CellKey:
        """What makes the cell unique in its run: the coordinates themselves, never joined text."""
        return (self.case, self.harness, self.model, self.trial)

    @property
    def group(self) -> str:
        """Of a dataset's row: what the tries at the same thing have in common; empty for none."""
        noted = self.notes.get(GROUP)
        return noted if isinstance(noted, str) else ""

    @property
    def not_graded(self) -> tuple[float, Mapping[str, str]]:
        """The share of the weight that was skipped, and why by grader."""
        noted = self.notes.get(NOT_GRADED)
        if not isinstance(noted, dict):
            return 0.0, {}
        share, graders = noted.get("share"), noted.get("graders")
        said = graders if isinstance(graders, dict) else {}
        number = float(share) if isinstance(share, int | float) else 0.0
        return number, {name: str(why) for name, why in said.items()}

    @property
    def min_coverage(self) -> float | None:
        """The share of the weight that must have been graded to pass, if the case says one."""
        noted = self.notes.get(MIN_COVERAGE)
        return float(noted) if isinstance(noted, int | float) else None

    @property
    def rates(self) -> dict[str, float]:
        """The pass rates that its case asks for: ``pass rate``, ``pass@5``, ``pass^5``."""
        noted = self.notes.get(RATES)
        rates = noted.items() if isinstance(noted, dict) else ()
        return {what: float(least) for what, least in rates if isinstance(least, int | float)}

    @property
    def is_covered(self) -> bool:
        """Whether as much was graded as is needed to pass."""
        share, graders = self.not_graded
        return not graders or covers(share, self.min_coverage)


def covers(skipped: float, least: float | None) -> bool:
    """Whether enough of the weight was graded where some of it was skipped."""
    return least is None or (least < 1.0 and 1.0 - skipped >= least - _ROUNDING)


class CellColumns(NamedTuple):
    """A cell as it is stored: the fields are the columns; see `CellRecord`."""

    run_id: str
    case_id: str
    harness: str
    model: str
    trial: int
    status: CellStatus
    reward: float | None
    passed: int | None
    threshold: float
    seconds: float
    cost_usd: float | None
    tokens: int | None
    digest: str
    error: str
    flags: str
    file: str
    content: str
    answer: str
    subscores: str
    notes: str


CELL_KEY = "case_id, harness, model, trial"
"""The columns of a `CellKey`."""

BY_CELL = Order(CELL_KEY, (str, str, str, int))

_WIDE = ("error", "flags", "content", "answer", "subscores", "notes")
UNREAD = {"answer": "''", "subscores": "'[]'"}
"""What lists do not show of a cell, for `Cells`: its widest columns."""

StoredCell: TypeAlias = "tuple[CellColumns, str, bytes]"
"""A cell as it is stored: its columns, the digest of its snapshot, and its packed detail."""

_LARGEST_INTEGER = 2**63 - 1


def run_json(run: RunRecord) -> dict[str, str]:
    """What a run has of JSON, as it is stored."""
    return {
        "config": _encode(run.config, f"the configuration of run {run.id}"),
        "digests": _encode(run.digests, f"the digests of run {run.id}"),
    }


def cell_row(cell: CellRecord) -> CellColumns:
    """A cell as it is stored, with nothing in it that a column cannot hold.

    Raises:
        InputError: For a key that is not valid Unicode.
        StoreError: If the subscores are not JSON.
    """
    for part in (cell.case, cell.harness, cell.model):
        if not part.isascii() and part != plain(part):
            raise InputError(
                f"{part!r} cannot name a cell: it is not valid Unicode", hint="rename it"
            )
    return CellColumns(
        run_id=cell.run_id,
        case_id=cell.case,
        harness=cell.harness,
        model=cell.model,
        trial=cell.trial,
        status=cell.status,
        reward=cell.reward,
        passed=None if cell.passed is None else int(cell.passed),
        threshold=cell.threshold,
        seconds=_measured(cell.seconds) or 0.0,
        cost_usd=_measured(cell.cost_usd),
        tokens=None if cell.tokens is None or abs(cell.tokens) > _LARGEST_INTEGER else cell.tokens,
        digest=cell.digest,
        error=plain(cell.error),
        flags=_encode(cell.flags, f"the flags of cell {cell.key}") if cell.flags else "[]",
        file=plain(cell.file),
        content=plain(cell.content),
        answer=plain(cell.answer),
        subscores=_encode(cell.subscores, f"the subscores of cell {cell.key}"),
        notes=_notes(cell),
    )


def read_cell(row: Sequence[Any]) -> CellRecord:
    """The cell behind the columns of a `CellColumns`."""
    run_id, case, harness, model, trial, status, reward, passed, threshold, seconds = row[:10]
    cost_usd, tokens, digest, error, flags, file, content, answer, subscores, noted = row[10:]
    notes: dict[str, Json] = {} if noted == "{}" else json.loads(noted)
    return CellRecord(
        run_id=run_id,
        case=case,
        harness=harness,
        model=model,
        trial=trial,
        status=status,
        reward=reward,
        passed=None if passed is None else bool(passed),
        threshold=threshold,
        assurance=assurance_from(notes.pop("assurance", None)),
        min_assurance=assurance_from(notes.pop("min_assurance", None)),
        seconds=seconds,
        cost_usd=cost_usd,
        tokens=tokens,
        digest=digest,
        error=error,
        flags=() if flags == "[]" else tuple(json.loads(flags)),
        file=file,
        content=content,
        answer=answer,
        subscores=() if subscores == "[]" else tuple(json.loads(subscores)),
        notes=notes,
    )


class Cells(Table[CellRecord]):
    """Results of cells: of each the newest.

    Args:
        database: Where they are.
        source: Where else to read than the newest ones.
        shown: What is read in place of some columns.
        bound: The values of places in these and the source.
    """

    def __init__(
        self,
        database: Database,
        source: str = "newest",
        *,
        shown: Mapping[str, str] | None = None,
        bound: Sequence[Scalar] = (),
    ) -> None:
        super().__init__(database, source, CellRecord)
        self.columns = ", ".join((shown or {}).get(name, name) for name in CellColumns._fields)
        self._wide = [name for name in _WIDE if name not in (shown or {})]
        self._bound = bound

    def read(self, row: Row) -> CellRecord:
        """The cell behind the values of `columns`."""
        return read_cell(row)


def of_cell(run: str, key: CellKey) -> Where:
    """The results of a cell."""
    return {"run_id": run, **dict(zip(CELL_KEY.split(", "), key, strict=True))}


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
        """Compress a detail."""
        return self.compress(_encode(detail, what).encode("ascii"))

    def compress(self, written: bytes) -> bytes:
        """Compress a detail that is JSON already."""
        if self._compressor is None:
            import zstandard

            self._compressor = zstandard.ZstdCompressor(level=self._level)
        return self._compressor.compress(written)

    def unpack(self, body: bytes, what: str) -> dict[str, Json]:
        """Read back what `pack` wrote."""
        import zstandard

        try:
            return cast("dict[str, Json]", json.loads(zstandard.decompress(body)))
        except (zstandard.ZstdError, ValueError, MemoryError) as error:
            raise StoreError(f"{what} is damaged: {error}", hint="run the cell again") from error


def _encode(value: object, what: str) -> str:
    """Write JSON in ASCII, so that even unpaired surrogates come back as they were."""
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{what} cannot be written as JSON: {error}") from error


_JSON = json.JSONEncoder(separators=(",", ":"), default=as_mapping)
"""Made once: `json.dumps` makes one for each call that asks for anything."""


def _measured(value: float | None) -> float | None:
    """A measurement, or None where it is not one: an agent's trace may claim an infinite cost."""
    return value if value is not None and math.isfinite(value) else None
