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
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path

from assay.errors import InputError
from assay.eval.first_look import look_through
from assay.eval.grades import Tally
from assay.eval.part_directory import SUMMARY, agree, opened_for_parts
from assay.eval.parts import require_columns
from assay.eval.records import graders_digest
from assay.eval.row_grading import ROW_PARTS, computes, is_pure
from assay.eval.shard_rows import Shard, Source, read_shard
from assay.eval.shard_work import PARTS, ShardWork
from assay.eval.stretches import Stretch, Version, survey, version_of
from assay.eval.twins import Twins
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
        todo: Rows of those that are to be graded: of a part with errors, these alone.
        done: What the parts come to that are there, by the numbers of their shards.
        versions: The files as they were when the plan was made, by their paths.
        left_out: Malformed rows that were left out already when the plan was made.
        changed: Paths of files that were found to have changed meanwhile.
    """

    directory: Path
    work: ShardWork
    shards: tuple[Shard, ...]
    missing: tuple[Shard, ...]
    todo: int
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
        found, left_out = _surveyed(data, reading, size, stack)
        sources = tuple(source for source, _, _ in found)
        versions = {source.path: version for source, _, version in found}
        _require_mapped(data, sources, reading)
        if not any(stretches for _, stretches, _ in found):
            raise InputError(f"{reading.name or data} has no rows")
        if form is None:
            form = "parquet" if all(one.is_table for one in sources) else "jsonl"
        if form in TABLE_FORMS:
            for one in sources:
                if one.is_table:
                    with closing(Table(one.path, one.name)) as table:
                        require_columns(table, form)
        listed = tuple(_shards(found))
        may_skip = reading.on_bad_row is not None
        columns, twins = look_through(
            listed,
            for_table=_becomes_table(form, sources),
            has_to_be_sound=not (is_pure(graders) or may_skip),
            may_have_twins=may_skip,
        )
        work = ShardWork(
            graders=graders,
            threshold=threshold,
            directory=str(place.absolute()),
            form=form,
            columns=columns,
            may_skip=may_skip,
            has_tables=form in TABLE_FORMS or any(one.is_table for one in sources),
        )
        decided: dict[str, Json] = {
            "assay": __version__,
            "graders": _digest(graders),
            "options": {
                "threshold": threshold,
                "map": dict[str, Json](reading.mapping),
                "on_bad_row": "skip" if may_skip else "stop",
                "shard_rows": size[1],
                "parts": form,
            },
            "files": [{"name": one.name, "digest": version.digest} for one, _, version in found],
            "columns": None if columns is None else dict[str, Json](columns),
        }
        shards = tuple(_named(shard, twins, versions, decided, form) for shard in listed)
        agree(place, {**decided, "shards": [_listed(shard) for shard in shards]})
        done, missing, todo = _there(place, shards, work, retry_errors=retry_errors)
        if missing:  # what stands there is of other parts than there will be
            (place / SUMMARY).unlink(missing_ok=True)
        plan = ShardPlan(
            directory=place,
            work=work,
            shards=shards,
            missing=missing,
            todo=todo,
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


def _surveyed(
    data: str, reading: Reading, size: tuple[int, int], stack: ExitStack
) -> tuple[list[tuple[Source, tuple[Stretch, ...], Version]], int]:
    """The files of a dataset as whoever grades reads them, and how many rows were left out yet."""
    found: list[tuple[Source, tuple[Stretch, ...], Version]] = []
    before = left_out = 0
    for file in files_of(data) or [data]:
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
        source = Source(
            path=path,
            name=name,
            before=before,
            unit=unit,
            is_table=is_table,
            mapping=mapping,
        )
        stretches, version = _stretches(source, *size)
        found.append((source, stretches, version))
        if stretches:
            before += _last(source, stretches[-1])
    return found, left_out


def _last(source: Source, stretch: Stretch) -> int:
    """The number of the last row, by which those of the next file are counted on."""
    if source.is_table:
        return stretch.start + stretch.rows
    shard = Shard(number=0, source=source, stretch=stretch, part="")
    return max(number for lines, _ in read_shard(shard) for number, _ in lines)


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


def _stretches(source: Source, size: int, rows: int) -> tuple[tuple[Stretch, ...], Version]:
    if not source.is_table:
        return survey(source.path, source.name, rows=rows, size=size)
    with closing(Table(source.path, source.name)) as table:
        total = table.count()
    found = tuple(
        Stretch(start + 1, start, min(rows, total - start), min(rows, total - start))
        for start in range(0, total, rows)
    )
    return found, version_of(source.path, source.name)


def _becomes_table(form: Form, sources: Sequence[Source]) -> bool:
    """Whether rows that are JSON become a table, whose columns are yet to be found."""
    if form not in TABLE_FORMS or all(one.is_table for one in sources):
        return False
    if table := next((one for one in sources if one.is_table), None):
        raise InputError(
            f"{table.name} is a table, and other files of the dataset are not",
            hint="write JSON lines: --parts jsonl",
        )
    return True


def _digest(graders: Sequence[GraderSpec]) -> str:
    made_of = hashlib.sha256("\n".join(map(grader_digest, graders)).encode()).hexdigest()[:16]
    return f"{graders_digest(graders)} {made_of}"


def _shards(
    found: Iterable[tuple[Source, Sequence[Stretch], Version]],
) -> Iterator[Shard]:
    every = ((source, stretch) for source, stretches, _ in found for stretch in stretches)
    for number, (source, stretch) in enumerate(every):
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
) -> tuple[dict[int, Tally], tuple[Shard, ...], int]:
    """What the parts that are there come to, the shards that are to be graded, and their rows."""
    named = {one.name for one in (place / PARTS).iterdir()}
    done: dict[int, Tally] = {}
    missing: list[Shard] = []
    todo = 0
    for shard in shards:
        if shard.part not in named:
            missing.append(shard)
            todo += shard.stretch.rows
            continue
        done[shard.number] = tally = work.tally(shard, place / PARTS / shard.part)
        if retry_errors and tally.errors:
            del done[shard.number]
            missing.append(replace(shard, again=True))
            todo += tally.errors
    return done, tuple(missing), todo
