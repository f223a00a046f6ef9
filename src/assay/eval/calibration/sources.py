"""Where items to label come from: the rows of a stored dataset, or the answers of a run."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Protocol

from assay.errors import InputError, Location
from assay.eval.calibration.labelled import Item, item_of
from assay.scoring.json_safe import Json
from assay.store.checks import plain
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.records import CellKey, RunRecord
from assay.store.runs import Store
from assay.types.run import Run

MOST_ITEMS = 5_000
"""Items of one queue: of a larger dataset a random sample is labelled."""

_MOST_ANSWERS = 1_000
_MOST_TRIALS = 1_000_000


class ItemSource(Protocol):
    """Items to label."""

    @property
    def size(self) -> int:
        """How many there are before a sample is taken."""
        ...

    def places(self) -> Mapping[str, str]:
        """The place of every item of the queue, by its digest; what is seen twice has one."""
        ...

    def items(self, places: Sequence[str]) -> dict[str, Item]:
        """The items at places, by place; what is gone is left out."""
        ...


class DatasetSource:
    """The rows of a stored dataset.

    Args:
        database: Where it is.
        project: Key of its project.
        key: Its key.
        field: What the labels are called: a row's own are hidden.
        seed: Of the sample.
    """

    def __init__(self, database: Database, project: str, key: str, field: str, seed: int) -> None:
        self._datasets = Datasets(database)
        self._project, self._key, self._field, self._seed = project, key, field, seed
        self._record = self._datasets.get(project, key)
        self.size = self._record.rows

    def places(self) -> Mapping[str, str]:
        """The number of every row's item."""
        known = (self._record.digest, self._field, self._seed if self.size > MOST_ITEMS else 0)
        if (found := _KNOWN.get(known)) is None:
            found = dict[str, str]()
            for item in self._read(self._numbers()):
                found.setdefault(item[1].digest, item[0])
            _remember(known, found)
        return found

    def items(self, places: Sequence[str]) -> dict[str, Item]:
        """The rows of numbers."""
        numbers = [int(place) for place in places if place.isascii() and place.isdecimal()]
        return dict(self._read(numbers))

    def _numbers(self) -> Sequence[int]:
        every = range(1, self.size + 1)
        if self.size <= MOST_ITEMS:
            return every
        return random.Random(self._seed).sample(every, MOST_ITEMS)  # noqa: S311 - no secret

    def _read(self, numbers: Sequence[int]) -> list[tuple[str, Item]]:
        read: list[tuple[str, Item]] = []
        most = [number for number in numbers if number <= self.size]
        for row in self._datasets.numbered(self._project, self._key, most):
            try:
                item = item_of(row.data, label=self._field, number=row.number)
            except InputError:  # nothing that could be graded, nor labelled
                continue
            read.append((str(row.number), item))
        return read


class RunSource:
    """The answers of a run's cells, without anything that graders said of them.

    Args:
        store: Where it is.
        run: Its record.
        field: What the labels are called.
        seed: Of the sample.
    """

    def __init__(self, store: Store, run: RunRecord, field: str, seed: int) -> None:
        self._store, self._run, self._field, self._seed = store, run, field, seed

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self._cells)

    @cached_property
    def _cells(self) -> Mapping[str, CellKey]:
        return {_place(cell.key): cell.key for cell in self._store.cells(self._run.id)}

    def places(self) -> Mapping[str, str]:
        """The coordinates of every cell's answer."""
        every = list(self._cells)
        if len(every) > _MOST_ANSWERS:
            every = random.Random(self._seed).sample(every, _MOST_ANSWERS)  # noqa: S311 - no secret
        known = (self._run.id, self._field, self._seed, len(every))
        found = _KNOWN.get(known) if self._run.finished else None
        if found is None:
            found = dict[str, str]()
            for place, item in self.items(every).items():
                found.setdefault(item.digest, place)
            if self._run.finished:
                _remember(known, found)
        return found

    def items(self, places: Sequence[str]) -> dict[str, Item]:
        """The answers of cells; one without an answer has nothing to label."""
        found: dict[str, Item] = {}
        for place in places:
            try:
                key = _key(place)
                row = _row_of(self._store.detail(self._run.id, key), key)
                if row is not None:
                    found[place] = item_of(row, label=self._field)
            except InputError:  # there is no such cell, or nothing in it that could be labelled
                continue
        return found


def _place(key: CellKey) -> str:
    return json.dumps(key, separators=(",", ":"), ensure_ascii=True)


def _key(place: str) -> CellKey:
    """The cell of a place, which comes from whoever labels."""
    with suppress(ValueError, RecursionError):
        match json.loads(place):
            case [str(case), str(harness), str(model), int(given)] if 0 < given <= _MOST_TRIALS:
                key = (case, harness, model, int(given))
                is_text = all(part == plain(part) and "\0" not in part for part in key[:3])
                if is_text and _place(key) == place:  # else a cell would have several places
                    return key
            case _:
                pass
    raise InputError(f"{place!r:.100} is no cell", location=Location(field="place"))


def _row_of(detail: Mapping[str, Json], key: CellKey) -> dict[str, Json] | None:
    """A cell as a row: what was asked and answered, and the row it came from."""
    name = " ".join(str(part) for part in key if part not in ("", 1))
    if isinstance(given := detail.get("row"), dict):
        return {**{k: v for k, v in given.items() if k != "grade"}, "id": name}
    try:
        run = Run.from_dict(detail)
    except InputError:  # of another version
        return None
    if run.trace.content is None:
        return None
    return {"id": name, "question": run.prompt_text or "", "answer": run.trace.content}


_KNOWN: dict[tuple[object, ...], dict[str, str]] = {}
_MOST_KNOWN = 16
_LOCK = Lock()


def _remember(known: tuple[object, ...], found: dict[str, str]) -> None:
    """Rows never change: who labels asks for the same places again and again."""
    with _LOCK:
        while len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[known] = found
