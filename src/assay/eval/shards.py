"""Plan how a dataset of any size becomes a directory of parts, each row exactly once.

A dataset is cut into shards by a plan, ``manifest.json``. Each becomes one file in ``parts/``,
named by its number and by a digest of everything that decides what stands in it. After an
interruption the same plan goes on and gives the same bytes; another plan is refused. Workers
(`assay.eval.shard_work`) are sent only paths and places of rows, and send back only tallies, so
that neither side holds more than a few rows.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import cast

from assay.errors import InputError
from assay.eval.grades import Tally
from assay.eval.part_directory import SUMMARY, agree, opened_for_parts
from assay.eval.parts import Column, add_kinds, column_kinds, columns_of, require_columns
from assay.eval.records import graders_digest
from assay.eval.row_grading import ROW_PARTS, computes, is_pure
from assay.eval.shard_rows import Shard, Source, read_shard
from assay.eval.shard_work import PARTS, ShardWork
from assay.eval.stretches import Stretch, Version, survey, version_of
from assay.eval.twins import Twins, each_shard, twins_of
from assay.frozen import frozen
from assay.graders.apply import require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.tasks.formats import TABLE_FORMS, Form
from assay.tasks.json_rows import parse_line
from assay.tasks.row_files import MOST_NAMES, Reading, no_field, opened, renamed
from assay.tasks.row_sets import files_of
from assay.tasks.rows import as_json_lines
from assay.tasks.tables import Table
from assay.version import __version__

__all__ = ["OURS", "ShardPlan", "plan_shards", "shard_rows"]

_ROWS, _COMPUTED_ROWS, _COSTLY_ROWS = 5_000, 2_000, 1_000
"""Rows of a shard by default: tenths of a second of work, so that its files cost little beside
it (5 ms on a disk; a cluster's actor takes another to be asked), and few enough that all cores of
a machine have a share of 100,000. A death may lose them."""
_BYTES = 64 << 20
OURS = "/proc/self/"
"""Where files of this process alone are."""


@frozen(kw_only=True)
class ShardPlan:
    """What there is to do, and what is done.

    Attributes:
        directory: Where the parts are.
        work: Grades a shard.
        shards: All of them, in the order of the rows.
        missing: Those that have no part yet, or have errors that are to be graded again.
        done: What the parts come to that are there, by the numbers of their shards.
        versions: The files as they were when the plan was made, by their paths.
        left_out: Malformed rows that were left out already when the plan was made.
        changed: Paths of files that were found to have changed meanwhile.
    """

    directory: Path
    work: ShardWork
    shards: tuple[Shard, ...]
    missing: tuple[Shard, ...]
    done: dict[int, Tally]
    versions: Mapping[str, Version]
    left_out: int = 0
    changed: set[str] = field(default_factory=set[str])

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.stretch.rows for shard in self.shards)

    def tally(self) -> Tally:
        """What the parts that are there come to."""
        whole = Tally(left_out=self.left_out)
        for number in sorted(self.done):
            whole.include(self.done[number])
        return whole


def shard_rows(graders: Sequence[GraderSpec]) -> int:
    """Rows of a shard, where nobody says how many."""
    if is_pure(graders):
        return _ROWS
    return _COMPUTED_ROWS if computes(graders) else _COSTLY_ROWS


@contextmanager
def plan_shards(
    data: str,
    graders: Sequence[GraderSpec],
    directory: str,
    *,
    form: Form | None = None,
    reading: Reading | None = None,
    threshold: float = 1.0,
    rows: int | None = None,
    retry_errors: bool = False,
) -> Generator[ShardPlan]:
    """Plan how a dataset is graded into a directory, which is nobody else's until the block ends.

    Args:
        data: The path of a dataset, of whatever form; see `assay.tasks.row_files.opened`.
        graders: What every row goes through.
        directory: Where to; it is made, or has what an earlier grading of the same left.
        form: As what parts are written; by default Parquet where all files are tables.
        reading: How rows are read; with ``on_bad_row``, malformed ones are left out.
        threshold: Reward that a row needs to pass.
        rows: How many a shard has.
        retry_errors: Whether rows that could not be graded are graded again.

    Raises:
        InputError: For rows that cannot be read, graders that cannot run, or a directory that holds
            something else; then it says what differs.
        StoreError: If the directory cannot be written.
    """
    require_parts(graders, ROW_PARTS | {"trace"})
    reading, graders = reading or Reading(), tuple(graders)
    size = (sys.maxsize, rows) if rows else (_BYTES, shard_rows(graders))
    with ExitStack() as stack:
        place = Path(directory)
        stack.enter_context(opened_for_parts(place))
        sources, left_out = _sources(data, reading, stack)
        _require_mapped(data, sources, reading)
        versions: dict[str, Version] = {}
        stretches = {one.path: _stretches(one, versions, *size) for one in sources}
        if not any(stretches.values()):
            raise InputError(f"{reading.name or data} has no rows")
        if form is None:
            form = "parquet" if all(one.is_table for one in sources) else "jsonl"
        if form in TABLE_FORMS:
            for one in sources:
                if one.is_table:
                    with closing(Table(one.path, one.name)) as table:
                        require_columns(table, form)
        listed = tuple(_shards(sources, stretches))
        columns = _columns(form, sources, listed)
        work = ShardWork(
            graders=graders,
            threshold=threshold,
            directory=str(place.absolute()),
            form=form,
            columns=columns,
            may_skip=reading.on_bad_row is not None,
            has_tables=form in TABLE_FORMS or any(one.is_table for one in sources),
        )
        decided: dict[str, Json] = {
            "assay": __version__,
            "graders": _digest(graders),
            "options": {
                "threshold": threshold,
                "map": dict[str, Json](reading.mapping),
                "on_bad_row": "skip" if work.may_skip else "stop",
                "shard_rows": size[1],
                "parts": form,
            },
            "files": [{"name": one.name, "digest": versions[one.path].digest} for one in sources],
            "columns": None if columns is None else dict[str, Json](columns),
        }
        if not (is_pure(graders) or work.may_skip):
            _require_well_formed(listed, work)
        twins = twins_of(listed, may_have=work.may_skip)
        shards = tuple(_named(shard, twins, versions, decided, form) for shard in listed)
        agree(place, {**decided, "shards": [_listed(shard) for shard in shards]})
        done, missing = _there(place, shards, work, retry_errors=retry_errors)
        if missing:  # what stands there is of other parts than there will be
            (place / SUMMARY).unlink(missing_ok=True)
        plan = ShardPlan(
            directory=place,
            work=work,
            shards=shards,
            missing=missing,
            done=done,
            versions=versions,
            left_out=left_out,
        )
        stack.callback(_disown, plan)  # once nobody writes any more
        yield plan


def _disown(plan: ShardPlan) -> None:
    """Remove parts that may be of other rows: the file changed before they were looked at."""
    for shard in plan.missing:
        if shard.source.path in plan.changed and shard.number not in plan.done:
            (plan.directory / PARTS / shard.part).unlink(missing_ok=True)


# ---- the plan ----------------------------------------------------------------------------------


def _sources(data: str, reading: Reading, stack: ExitStack) -> tuple[list[Source], int]:
    """The files of a dataset as whoever grades reads them, and how many rows were left out yet."""
    found: list[Source] = []
    before = left_out = 0
    files = files_of(data) or [data]
    for file in files:
        one = replace(reading, mapping={}, on_bad_row=None)
        with opened(file, one) as rows:
            name, unit, is_plain = rows.name, rows.unit, rows.is_plain
        path = file if file.startswith(OURS) else str(Path(file).absolute())
        mapping, is_table = reading.mapping, False
        if unit == "row" and not is_plain:
            is_table = Path(path).is_file()
        if not (is_plain or is_table):
            # Packed, an array, a table of text: nobody can begin in the middle of it.
            lines = stack.enter_context(as_json_lines(file, reading=reading))
            path, unit, mapping = lines.path, lines.unit, dict[str, str]()
            left_out += lines.left_out
        found.append(
            Source(
                path=path,
                name=name,
                before=before,
                unit=unit,
                is_table=is_table,
                mapping=mapping,
            )
        )
        before += _count(found[-1]) if len(files) > 1 else 0
    return found, left_out


def _require_mapped(data: str, sources: Sequence[Source], reading: Reading) -> None:
    """Refuse names of fields that no row has; most often, the first row has them.

    Of files that became JSON lines, the names were checked there.
    """
    wanted, found = set(reading.mapping.values()), set[str]()
    if not all(one.mapping for one in sources):
        return
    others: dict[str, None] = {}
    for source in sources:
        as_named = replace(reading, name=source.name, mapping={}, on_bad_row=None)
        with opened(source.path, as_named) as rows:
            for _, line in rows.lines:
                with suppress(InputError):  # which is told where it is graded
                    if isinstance(line, bytes):
                        row = parse_line(line)
                        others.update(dict.fromkeys(islice(row, MOST_NAMES - len(others))))
                        renamed(row, reading.mapping, found)
                if wanted <= found:
                    return
    raise no_field(min(wanted - found), reading.name or data, others)


def _count(source: Source) -> int:
    """Lines or rows of a file, by which those of the next are counted on."""
    if source.is_table:
        table = Table(source.path, source.name)
        try:
            return table.count()
        finally:
            table.close()
    with Path(source.path).open("rb") as handle:
        return max((n for n, line in enumerate(handle, 1) if not line.isspace()), default=0)


def _stretches(
    source: Source, versions: dict[str, Version], size: int, rows: int
) -> tuple[Stretch, ...]:
    if not source.is_table:
        found, versions[source.path] = survey(source.path, source.name, rows=rows, size=size)
        return found
    versions[source.path] = version_of(source.path, source.name)
    total = _count(source)
    return tuple(
        Stretch(start + 1, start, min(rows, total - start), min(rows, total - start))
        for start in range(0, total, rows)
    )


def _require_well_formed(shards: Sequence[Shard], work: ShardWork) -> None:
    """Refuse a dataset with a malformed row, before anything is paid for."""
    faults: dict[int, InputError] = {}

    def keep(shard: Shard, fault: object) -> None:
        if isinstance(fault, InputError):
            faults[shard.number] = fault

    work.prepare()
    each_shard(shards, work.fault, keep)
    if faults:
        raise faults[min(faults)]


def _columns(
    form: Form, sources: Sequence[Source], shards: Sequence[Shard]
) -> tuple[Column, ...] | None:
    """The columns of a table that is made of JSON rows, as all rows together need them."""
    if form not in TABLE_FORMS or all(one.is_table for one in sources):
        return None
    if table := next((one for one in sources if one.is_table), None):
        raise InputError(
            f"{table.name} is a table, and other files of the dataset are not",
            hint="write JSON lines: --parts jsonl",
        )
    known: dict[str, str] = {}

    def keep(_: object, kinds: object) -> None:
        add_kinds(known, cast("dict[str, str]", kinds))

    each_shard(shards, _kinds, keep)
    return columns_of(known)


def _kinds(shard: Shard) -> dict[str, str]:
    """What the columns of its rows hold; malformed rows are told of where they are graded."""
    known: dict[str, str] = {}
    for lines, _ in read_shard(shard):
        for _, line in lines:
            if isinstance(line, bytes):
                with suppress(InputError):
                    row = renamed(parse_line(line), shard.source.mapping, set())
                    column_kinds(row, known)
    return known


def _digest(graders: Sequence[GraderSpec]) -> str:
    made_of = hashlib.sha256("\n".join(map(grader_digest, graders)).encode()).hexdigest()[:16]
    return f"{graders_digest(graders)} {made_of}"


def _shards(
    sources: Sequence[Source], stretches: Mapping[str, Sequence[Stretch]]
) -> Iterator[Shard]:
    found = ((source, stretch) for source in sources for stretch in stretches[source.path])
    for number, (source, stretch) in enumerate(found):
        yield Shard(number=number, source=source, stretch=stretch, part="")


def _named(
    shard: Shard,
    twins: Twins,
    versions: Mapping[str, Version],
    decided: Mapping[str, Json],
    form: Form,
) -> Shard:
    """With the name of its part, and the rows that it leaves out."""
    same = {name: value for name, value in decided.items() if name != "files"}
    version, left_out = versions[shard.source.path].digest, twins.get(shard.number, ())
    stretch = shard.stretch
    key: list[Json] = [same, version, shard.source.before, stretch.start, stretch.size]
    if left_out:
        key.append(list(left_out))
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8)
    part = f"{shard.number:05d}-{digest.hexdigest()}.{form}"
    return replace(shard, part=part, twins=left_out)


def _listed(shard: Shard) -> Json:
    stretch = shard.stretch
    return {
        "part": shard.part,
        "file": shard.source.name,
        "first": stretch.number,
        "rows": stretch.rows,
        "start": stretch.start,
        "size": stretch.size,
    }


def _there(
    place: Path, shards: Sequence[Shard], work: ShardWork, *, retry_errors: bool
) -> tuple[dict[int, Tally], tuple[Shard, ...]]:
    """What the parts that are there come to, and the shards that are yet to be graded."""
    named = {one.name for one in (place / PARTS).iterdir()}
    done: dict[int, Tally] = {}
    missing: list[Shard] = []
    for shard in shards:
        if shard.part not in named:
            missing.append(shard)
            continue
        done[shard.number] = tally = work.tally(shard, place / PARTS / shard.part)
        if retry_errors and tally.errors:
            del done[shard.number]
            missing.append(replace(shard, again=True))
    return done, tuple(missing)
