"""Rows with their grades as files: JSON lines or Parquet, written and read back.

The same rows and grades are the same bytes, whoever writes them and when: no time, no run and no
process stands in such a file. It is there whole under its name, or not at all.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Literal, Self, TypeAlias, cast

from assay.errors import InputError, StoreError
from assay.eval.rows.grades import RowGrade
from assay.eval.rows.shard_work import Block
from assay.scoring.json_safe import Json
from assay.store.checks import plain
from assay.tasks.formats import Form
from assay.tasks.json_rows import parse_line
from assay.tasks.pictures import IMAGES
from assay.tasks.row_files import renamed
from assay.tasks.rows import Row, group_of
from assay.tasks.tables import ColumnFile, arrow, lines_of

PartForm: TypeAlias = Literal["jsonl", "parquet"]
"""What parts are written as: tables of columns stay tables."""

_GRADE, _SCORE = "grade_", "grade_score_"
"""What the names of columns begin with that hold a grade, and the scores in it."""

_GRADE_TYPES = {
    "id": "string",
    "status": "string",
    "reward": "float64",
    "passed": "bool_",
    "error": "string",
    "flags": "list",
    "reason": "string",
    "assurance": "string",
    "not_graded": "string",
}
"""What of a grade has a column, and of which type that is to Arrow."""

_GROUP_ROWS, _GROUP_BYTES = 1 << 15, 64 << 20
"""So many rows, or bytes of them, are written together to a table."""


# ---- writing -----------------------------------------------------------------------------------


class PartWriter:
    """Writes rows with their grades: as JSON lines, or as a table that keeps the rows' columns.

    Args:
        file: Where to.
        form: As what.
        names: What the scores are called.
    """

    def __init__(self, file: IO[bytes], form: PartForm, names: Sequence[str]) -> None:
        self._file, self._is_table, self._names = file, form == "parquet", names
        self._held: list[Any] = []
        self._to: Any = None

    def write(self, block: Block, grades: Sequence[RowGrade]) -> None:
        """Write rows, each with its grade; rows that are graded alike may share one."""
        if self._is_table:
            batch: Any = block.batch
            made = {
                field.name: _undictionaried(batch.column(number))
                for number, field in enumerate(batch.schema)
                if not _is_grades(field.name)
            }
            graded = self._graded([row.id for row, _ in block.rows], grades)
            self._keep(arrow().RecordBatch.from_pydict({**made, **graded}))
            return
        said: dict[int, bytes] = {}
        for (row, line), grade in zip(block.rows, grades, strict=True):
            if (rest := said.get(id(grade))) is None:
                whole = _COMPACT.encode(grade.to_dict(self._names))
                rest = said[id(grade)] = whole.removeprefix("{").encode()
            self._file.write(_with_grade(row, line, rest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Write what is held, if nobody has; the file itself is left open."""
        with suppress(OSError) if error else nullcontext():  # what it says has been said
            self.close()

    def close(self) -> None:
        """Write what is held."""
        self._flush()
        if self._to is not None:
            self._to.close()
            self._to = None

    def _graded(self, ids: Sequence[str], grades: Sequence[RowGrade]) -> dict[str, Any]:
        pa = arrow()
        made: dict[str, Any] = {}
        for name, kind in _GRADE_TYPES.items():
            values = ids if name == "id" else [getattr(grade, name) for grade in grades]
            if kind == "list":
                made[_GRADE + name] = pa.array([list(one) for one in values], pa.list_(pa.string()))
                continue
            values = [plain(one) if isinstance(one, str) else one for one in values]
            made[_GRADE + name] = pa.array(values, getattr(pa, kind)())
        for place, name in enumerate(self._names):
            made[_SCORE + name] = pa.array([one.scores[place] for one in grades], pa.float64())
        return made

    def _keep(self, batch: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        self._held.append(batch)
        size = sum(one.nbytes for one in self._held)
        if size >= _GROUP_BYTES or sum(one.num_rows for one in self._held) >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        pa = arrow()
        held, self._held = self._held, []
        try:
            table = pa.Table.from_batches(held).combine_chunks()
            if self._to is None:
                writer = arrow("pyarrow.parquet").ParquetWriter
                self._to = writer(self._file, table.schema, compression="zstd")
            self._to.write_table(table)
        except pa.ArrowException as error:
            said = str(error).partition("\n")[0][:200]
            raise InputError(f"the columns cannot be written as Parquet: {said}") from error


def fits_parquet(table: ColumnFile) -> bool:
    """Whether the columns of a table can be written as Parquet, with grades beside them."""
    try:
        for _, batch in table.batches(0, 1):
            with PartWriter(io.BytesIO(), "parquet", ()) as to:
                to.write(Block((), batch.slice(0, 0)), ())
    except InputError:
        return False
    return True


@contextmanager
def packing(file: IO[bytes], form: Form) -> Generator[IO[bytes]]:
    """A file that packs what is written to it."""
    if form == "jsonl.gz":
        import gzip

        # Without a name and a time, which would make other bytes of the same rows.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield cast("IO[bytes]", packed)
    elif form == "jsonl.zst":
        import zstandard

        with zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False) as packed:
            yield cast("IO[bytes]", packed)
    else:
        yield file


def ungraded(fields: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row without a ``grade`` of its own, in whatever capitals; it itself if it has none."""
    if not any(len(name) == len("grade") and name.casefold() == "grade" for name in fields):
        return fields
    return {name: value for name, value in fields.items() if name.casefold() != "grade"}


def _with_grade(row: Row, line: bytes, rest: bytes) -> bytes:
    """A row's own text, which was read strictly and is an object with a field, and its grade.

    A ``grade`` that the row has already, however it is spelt, is none of ours, and goes.
    """
    text, own = line.strip(), ungraded(row.fields)
    if own is not row.fields or not text.endswith(b"}") or b"\0" in text or text[:1] != b"{":
        text = json.dumps(own).encode()
    name = json.dumps(row.id).encode()
    return b'%b,"grade":{"id":%b,%b}\n' % (text[:-1].rstrip(), name, rest)


_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def _is_grades(name: str) -> bool:
    """Whether grading writes such a column; those of an earlier grading are replaced.

    Capitals do not count, as many readers ignore them and take the first of two columns.
    """
    name = name.casefold()
    is_score = name.startswith(_SCORE)
    return is_score or (name.startswith(_GRADE) and name[len(_GRADE) :] in _GRADE_TYPES)


def _undictionaried(column: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A column of values: the keys of a dictionary may be others in the next batch."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


# ---- reading back ------------------------------------------------------------------------------


def read_part(
    path: Path, form: PartForm, mapping: Mapping[str, str] | None = None
) -> Iterator[tuple[str, RowGrade, str]]:
    """The grades of a file that `PartWriter` wrote, each with the id and the group of its row.

    Args:
        path: The file.
        form: As what it was written.
        mapping: How rows were read, see `assay.tasks.row_files.Reading`.

    Raises:
        StoreError: If it is damaged.
    """
    try:
        if form == "parquet":
            yield from _of_table(path, mapping or {})
            return
        with path.open("rb") as lines:
            for line in lines:
                row = cast("dict[str, Json]", json.loads(line))
                grade = cast("dict[str, Json]", row["grade"])
                yield str(grade["id"]), RowGrade.from_dict(grade), group_of(row.get("group"))
    except (InputError, OSError, ValueError, KeyError, TypeError) as error:
        hint = "remove it, and the same command writes it again"
        raise StoreError(f"{path} is damaged: {error}", hint=hint) from error


def _of_table(path: Path, mapping: Mapping[str, str]) -> Iterator[tuple[str, RowGrade, str]]:
    named, pictures = mapping.get("group", "group"), mapping.get(IMAGES, IMAGES)
    with closing(ColumnFile(str(path), str(path), pictures)) as table:
        own = [one for one in cast("list[str]", table.schema.names) if _is_grades(one)]
        for _, batch in table.batches(columns=(*own, named)):
            given: Any = batch
            others = [one for one in given.schema.names if one not in own]
            lines = lines_of(given.select(others), mapping) if others else ()
            groups = [_group_in(line, named) for line in lines]
            rows = cast("list[dict[str, Json]]", given.select(own).to_pylist())
            for row, group in zip(rows, groups or [""] * len(rows), strict=True):
                scores = {one[len(_SCORE) :]: row[one] for one in own if one.startswith(_SCORE)}
                fields = {one: row[_GRADE + one] for one in _GRADE_TYPES}
                grade = RowGrade.from_dict({**fields, "scores": scores})
                yield str(fields["id"]), grade, group


def _group_in(line: bytes | InputError, named: str) -> str:
    if isinstance(line, InputError):
        raise line
    return group_of(renamed(parse_line(line), {"group": named}, set()).get("group"))


# ---- there or not there ------------------------------------------------------------------------


@contextmanager
def temporary(target: Path) -> Generator[IO[bytes]]:
    """A temporary file beside its target, under a unique name; removed after the block.

    Raises:
        StoreError: If it cannot be written.
    """
    path = target.with_name(f".{target.name}.{token_hex(8)}.tmp")
    try:
        with path.open("xb") as file:
            yield file
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "make room; the same command goes on with what is there" if full else ""
        raise StoreError(f"cannot write {target}: {error.strerror or error}", hint=hint) from error
    finally:
        path.unlink(missing_ok=True)


def commit(file: IO[bytes], target: Path, *, replace: bool = False) -> bool:
    """Give a file of `temporary` its name, once it is on the disk.

    Args:
        file: The temporary file.
        target: Its name.
        replace: Whether a file that already has that name is replaced.

    Returns:
        Whether it has the name now; False if another attempt was first, whose file stays.
    """
    file.flush()
    os.fsync(file.fileno())
    if replace:
        Path(file.name).replace(target)
    else:
        try:
            os.link(file.name, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            Path(file.name).replace(target)  # a file system without links
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system that cannot
            os.fsync(folder)
    finally:
        os.close(folder)
    return True
