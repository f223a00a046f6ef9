"""A run broken down by a field of its cases' metadata, or of its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TypeAlias

from assay.errors import InputError, nearest
from assay.graders.from_row import value_at
from assay.reports.plain import natural, one_line
from assay.reports.run_records import Breakdown, Slice
from assay.reports.totals import Groups
from assay.scoring.json_safe import Json
from assay.store.records import ABOUT, CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.rows import read_row

NONE = "(none)"
"""What stands for cells without the field."""

_MOST_SLICES = 200
_MOST_VALUES = 10_000
_MOST_NAMES = 200
_LOOKED_AT = 20
"""Cells of which the names of fields are told: one alone may lack some."""

_LONGEST = 100
_LONGEST_VALUE = 60
"""As much as tables show of one."""

Values: TypeAlias = "Callable[[CellRecord], tuple[str, ...]]"
"""Gives the slices that a cell belongs to: one, or of a list such as tags one for each."""


class Grouping:
    """What a field says of each cell of a run."""

    def __init__(self, store: Store, run: RunRecord, field: str) -> None:
        """Begin.

        Args:
            store: Where the run is.
            run: The run.
            field: The field: ``topic``, ``about.topic``, ``tags``.
        """
        self._store, self._run = store, run
        self.field = field.removeprefix("metadata.")
        self._are_rows = run.config.get("kind") == "dataset"
        self._names: dict[str, None] = {}
        self._is_known = False

    def values(self, cell: CellRecord) -> tuple[str, ...]:
        """The values of a cell."""
        metadata = self.metadata(cell)
        if len(self._names) < _MOST_NAMES:
            self._names.update(dict.fromkeys(list(metadata)[:_MOST_NAMES]))
        texts = _values_in(metadata, self.field)
        self._is_known |= bool(texts)
        return texts or (NONE,)

    def require(self) -> None:
        """Refuse a field that no cell had.

        Raises:
            InputError: Naming those that there are.
        """
        if not self._is_known:
            raise _unknown(f"no cell of run {self._run.id}", self.field, self._names)

    def metadata(self, cell: CellRecord) -> Mapping[str, Json]:
        """All fields of a cell."""
        if not self._are_rows:
            about = cell.notes.get(ABOUT)
            return about if isinstance(about, dict) else {}
        row = self._store.detail(self._run.id, cell.key).get("row")
        try:
            return read_row(row).submission.metadata if isinstance(row, dict) else {}
        except InputError:
            return {}


def fields_of(store: Store, run: RunRecord) -> tuple[str, ...]:
    """Fields of the first cells of a run by which it may be broken down."""
    grouping, found = Grouping(store, run, ""), dict[str, None]()
    for cell in islice(store.cells(run.id), _LOOKED_AT):
        fields = grouping.metadata(cell).items()
        found.update(dict.fromkeys(name for name, value in fields if _is_short(value)))
    return tuple(name for name in found if len(name) <= _LONGEST)[:_MOST_NAMES]


def _is_short(value: Json) -> bool:
    values = value if isinstance(value, list) else [value]
    return all(
        isinstance(one, str | int | float) and len(str(one)) <= _LONGEST_VALUE for one in values
    )


def require_field(field: str, rows: Iterable[Mapping[str, Json]], *, who: str = "no row") -> None:
    """Refuse a field that nothing has, before any of it is graded.

    Args:
        field: The field.
        rows: The metadata of each row or case.
        who: Has none, as the message begins.

    Raises:
        InputError: Naming those that there are.
    """
    field, names, is_any = field.removeprefix("metadata."), dict[str, None](), False
    for metadata in rows:
        if _values_in(metadata, field):
            return
        if len(names) < _MOST_NAMES:
            names.update(dict.fromkeys(list(metadata)[:_MOST_NAMES]))
        is_any = True
    if is_any:  # that there is no row at all is told where they are planned
        raise _unknown(who, field, names)


def _unknown(who: str, field: str, names: Iterable[str]) -> InputError:
    near = nearest(field, [name for name in names if len(name) <= _LONGEST])
    hint = near or "rows and the metadata of cases may have some"
    return InputError(f"{who} has a field {field!r:.100}", hint=hint)


def _values_in(metadata: Mapping[str, Json], field: str) -> tuple[str, ...]:
    try:
        value = value_at(dict(metadata), field, "metadata")
    except InputError:
        return ()
    found = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_text(one) for one in found if one not in (None, "")))


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if len(text) <= _LONGEST_VALUE:
        return one_line(text, _LONGEST_VALUE)
    # Values that begin alike stay apart, and begin with what tells them apart where they are cut.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{digest} {one_line(text, _LONGEST_VALUE - 9)}"


def breakdown_of(store: Store, run: RunRecord, field: str) -> Breakdown:
    """Read the cells of a run, and say what those of each value come to.

    Raises:
        InputError: If no cell has the field.
    """
    grouping, slices = Grouping(store, run, field), dict[str, Groups]()
    for cell in store.cells(run.id):
        for value in grouping.values(cell):
            if value not in slices and len(slices) >= _MOST_VALUES:
                raise InputError(
                    f"{field!r:.100} has more than {_MOST_VALUES:,} values",
                    hint="name a field whose cells have something in common",
                )
            slices.setdefault(value, Groups(apart=run.are_apart)).add(cell)
    if slices:  # else no cell is there yet, of a run that has just begun
        grouping.require()
    found = [Slice(value=value, totals=groups.totals()) for value, groups in slices.items()]
    found.sort(key=_rank)
    return Breakdown(by=field, slices=tuple(found[:_MOST_SLICES]), more=len(found[_MOST_SLICES:]))


def _rank(one: Slice) -> tuple[float, list[tuple[int, str]]]:
    mean = one.totals.reward.mean
    return 2.0 if mean is None else mean, natural(one.value)
