"""Rows with their grades as files: JSONL, also packed, Parquet and Arrow, written and read back.

The same rows and grades are the same bytes, whoever writes them and when: no time, no run and no
process stands in such a file. It is there whole under its name, or not at all.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Self, cast

from assay.errors import InputError, StoreError
from assay.eval.columns import GRADE, GRADE_TYPES, SCORE, Column, is_grades
from assay.eval.grades import RowGrade
from assay.eval.shard_work import Block
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import decode_json
from assay.store.checks import plain
from assay.tasks.formats import TABLE_FORMS, Form
from assay.tasks.json_rows import parse_line
from assay.tasks.packed import unpacked
from assay.tasks.row_files import renamed
from assay.tasks.rows import Row, group_of
from assay.tasks.tables import ColumnFile, arrow, lines_of

_GROUP_ROWS, _GROUP_BYTES = 1 << 15, 64 << 20
"""So many rows, or bytes of them, are written together to a table."""


# ---- writing -----------------------------------------------------------------------------------


class PartWriter:
    """Writes rows with their grades; those of a table keep their columns, as far as they have any.

    Args:
        file: Where to.
        form: As what.
        names: What the scores are called.
        columns: Those of JSON rows that become a table; None where rows have theirs already.
    """

    def __init__(
        self,
        file: IO[bytes],
        form: Form,
        names: Sequence[str],
        columns: Sequence[Column] | None = None,
    ) -> None:
        self._file, self._form, self._names, self._columns = file, form, names, columns
        self._held: list[Any] = []
        self._open = ExitStack()
        self._to: Any = None if form in TABLE_FORMS else _packing(file, form, self._open)

    def write(self, block: Block, grades: Sequence[RowGrade]) -> None:
        """Write rows, each with its grade; rows that are graded alike may share one."""
        if self._form not in TABLE_FORMS:
            said: dict[int, bytes] = {}
            for (row, line), grade in zip(block.rows, grades, strict=True):
                if (rest := said.get(id(grade))) is None:
                    whole = _COMPACT.encode(grade.to_dict(self._names))
                    rest = said[id(grade)] = whole.removeprefix("{").encode()
                self._to.write(_with_grade(row, line, rest))
            return
        if block.batch is not None and self._columns is None:
            given: Any = block.batch
            made = {
                field.name: _undictionaried(given.column(number))
                for number, field in enumerate(given.schema)
                if not is_grades(field.name)
            }
        else:
            made = {
                name: arrow().array(
                    [_cell(row.fields.get(name), kind) for row, _ in block.rows], _type(kind)
                )
                for name, kind in self._columns or ()
            }
        graded = self._graded([row.id for row, _ in block.rows], grades)
        self._keep(arrow().RecordBatch.from_pydict({**made, **graded}))

    def objects(self, rows: Iterable[Mapping[str, Json]]) -> None:
        """Write rows that have their grades already as JSON."""
        for row in rows:
            self._to.write(json.dumps(row).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Write what is held, if nobody has; the file itself is left open."""
        with suppress(OSError) if error else nullcontext():  # what it says has been said
            self.close()

    def close(self) -> None:
        """Write what is held."""
        self._flush()
        if self._form in TABLE_FORMS and self._to is not None:
            self._to.close()
            self._to = None
        self._open.close()

    def _graded(self, ids: Sequence[str], grades: Sequence[RowGrade]) -> dict[str, Any]:
        pa = arrow()
        made: dict[str, Any] = {}
        for name, kind in GRADE_TYPES.items():
            values = ids if name == "id" else [getattr(grade, name) for grade in grades]
            if kind == "list":
                made[GRADE + name] = pa.array([list(one) for one in values], pa.list_(pa.string()))
                continue
            values = [plain(one) if isinstance(one, str) else one for one in values]
            made[GRADE + name] = pa.array(values, getattr(pa, kind)())
        for place, name in enumerate(self._names):
            made[SCORE + name] = pa.array([one.scores[place] for one in grades], pa.float64())
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
                if self._form == "parquet":
                    writer = arrow("pyarrow.parquet").ParquetWriter
                    self._to = writer(self._file, table.schema, compression="zstd")
                else:
                    options = arrow("pyarrow.ipc").IpcWriteOptions(compression="zstd")
                    self._to = pa.ipc.new_file(self._file, table.schema, options=options)
            self._to.write_table(table)
        except pa.ArrowException as error:
            said = str(error).partition("\n")[0][:200]
            raise InputError(
                f"the columns cannot be written as {self._form}: {said}",
                hint="write JSON lines: --parts jsonl",
            ) from error


def require_columns(table: ColumnFile, form: Form) -> None:
    """Refuse a table whose columns cannot be written, before any of its rows is graded.

    Raises:
        InputError: Saying which column.
    """
    for _, batch in table.batches(0, 1):
        with PartWriter(io.BytesIO(), form, ()) as to:
            to.write(Block((), batch.slice(0, 0)), ())


def _packing(file: IO[bytes], form: Form, stack: ExitStack) -> Any:  # noqa: ANN401 - three kinds
    if form == "jsonl.gz":
        import gzip

        # Without a name and a time, which would make other bytes of the same rows.
        return stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
    if form == "jsonl.zst":
        import zstandard

        packer = zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False)
        return stack.enter_context(packer)
    return file


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


def _type(kind: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    names = {"bool": "bool_", "int": "int64", "long": "int64", "float": "float64"}
    return getattr(arrow(), names.get(kind, "string"))()


def _cell(value: Json, kind: str) -> object:
    if value is None:
        return None
    if kind == "json":
        return plain(json.dumps(value, ensure_ascii=False))
    if kind == "float":
        return float(cast("float", value))
    return plain(value) if isinstance(value, str) else value


def _undictionaried(column: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A column of values: the keys of a dictionary may be others in the next batch."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


# ---- reading back ------------------------------------------------------------------------------


def read_part(
    path: Path,
    form: Form,
    mapping: Mapping[str, str] | None = None,
    columns: Sequence[Column] | None = None,
) -> Iterator[tuple[str, RowGrade, str]]:
    """The grades of a file that `PartWriter` wrote, each with the id and the group of its row.

    Args:
        path: The file.
        form: As what it was written.
        mapping: How rows were read, see `assay.tasks.row_files.Reading`.
        columns: Those that it was written with; None for a table that kept its own.

    Raises:
        StoreError: If it is damaged.
    """
    try:
        if form in TABLE_FORMS:
            yield from _of_table(path, mapping or {}, columns)
        else:
            with path.open("rb") as handle:
                source, _ = unpacked(handle, handle.peek(4)[:4], str(path))
                for line in source:
                    row = cast("dict[str, Json]", json.loads(line))
                    grade = cast("dict[str, Json]", row["grade"])
                    yield str(grade["id"]), RowGrade.from_dict(grade), group_of(row.get("group"))
    except (InputError, OSError, ValueError, KeyError, TypeError) as error:
        hint = "remove it, and the same command writes it again"
        raise StoreError(f"{path} is damaged: {error}", hint=hint) from error


def _of_table(
    path: Path, mapping: Mapping[str, str], columns: Sequence[Column] | None
) -> Iterator[tuple[str, RowGrade, str]]:
    # Of rows that were JSON, the names are those of rows already.
    names = {"group": mapping.get("group", "group") if columns is None else "group"}
    is_json = columns is not None and ("group", "json") in map(tuple, columns)
    with closing(ColumnFile(str(path), str(path))) as table:
        own = [one for one in cast("list[str]", table.schema.names) if is_grades(one)]
        for _, batch in table.batches(columns=(*own, names["group"])):
            given: Any = batch
            others = [one for one in given.schema.names if one not in own]
            lines = lines_of(given.select(others), mapping) if others else ()
            groups = [_group_in(line, names, is_json=is_json) for line in lines]
            rows = cast("list[dict[str, Json]]", given.select(own).to_pylist())
            for row, group in zip(rows, groups or [""] * len(rows), strict=True):
                scores = {one[len(SCORE) :]: row[one] for one in own if one.startswith(SCORE)}
                fields = {one: row[GRADE + one] for one in GRADE_TYPES}
                grade = RowGrade.from_dict({**fields, "scores": scores})
                yield str(fields["id"]), grade, group


def _group_in(line: bytes | InputError, names: Mapping[str, str], *, is_json: bool) -> str:
    if isinstance(line, InputError):
        raise line
    group = renamed(parse_line(line), names, set()).get("group")
    return group_of(decode_json(group) if is_json and isinstance(group, str) else group)


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
