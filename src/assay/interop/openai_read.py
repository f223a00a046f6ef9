"""Read what OpenAI's API gave of evals and graders, in whatever file it was kept.

A file is one JSON document or JSONL. In it, at any depth of lists and ``{"data": [...]}``: graders,
evals, runs, a run's output items, fine-tuning jobs with a grader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import InputError, Location
from assay.graders.openai.definitions import TYPES
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

__all__ = ["MAX_BYTES", "Dump", "Found", "read_dump"]

MAX_BYTES = 1 << 30
"""Size of a file."""

_MOST_NESTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One object of a file.

    Attributes:
        data: The object.
        file: The file.
        line: 1-based line, for JSONL.
        path: Where in the document, such as ``data[3].testing_criteria[0]``.
    """

    data: Mapping[str, Json]
    file: str
    line: int | None = None
    path: str = ""

    @property
    def place(self) -> Location:
        """Where it stands, for messages."""
        return Location(file=self.file, line=self.line, field=self.path)

    def inside(self, path: str, data: Mapping[str, Json]) -> Found:
        """A part of it."""
        joined = f"{self.path}.{path}" if self.path else path
        return Found(data=data, file=self.file, line=self.line, path=joined)

    def text(self, name: str) -> str:
        """A field that is text; empty where it is not there."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


@dataclass(slots=True)
class Dump:
    """What some files hold.

    Attributes:
        evals: Objects with ``testing_criteria``.
        graders: Graders that stand alone or in a fine-tuning job.
        items: Output items of runs.
        rows: Rows of a run's data source that were not graded: ``{item, sample?}``.
    """

    evals: list[Found] = field(default_factory=list[Found])
    graders: list[Found] = field(default_factory=list[Found])
    items: list[Found] = field(default_factory=list[Found])
    rows: list[Found] = field(default_factory=list[Found])


def read_dump(files: Sequence[str]) -> Dump:
    """Read some files.

    Raises:
        InputError: For a file that cannot be read, or an object that is none of these, naming file
            and place; or if there is nothing in the files.
    """
    dump = Dump()
    for file in files:
        for found, value in _documents(file):
            _sort(found, value, dump)
    if not (dump.evals or dump.graders or dump.items or dump.rows):
        raise InputError(f"{', '.join(files)}: no grader, eval or output item is in there")
    return dump


def _documents(file: str) -> Iterator[tuple[Found, Json]]:
    try:
        path = Path(file)
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{file} is larger than {MAX_BYTES >> 30} GiB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text") from error
    whole, wrong = _attempt(text)
    if wrong is None:
        yield Found(data={}, file=file), whole
        return
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not lines[0].rstrip().endswith("}"):
        raise InputError(f"{file} is not JSON: {wrong}") from wrong
    # A line ends at a line feed alone: texts in the rows may hold every other separator.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        value, wrong = _attempt(line)
        if wrong is not None:
            place = Location(file=file, line=number)
            raise InputError(f"this is not JSON: {wrong}", location=place) from wrong
        yield Found(data={}, file=file, line=number), value


def _attempt(text: str) -> tuple[Json, Exception | None]:
    try:
        return decode_json(text), None
    except NotJsonError as error:
        return None, error


def _sort(around: Found, value: Json, dump: Dump) -> None:
    if around.path.count("[") + around.path.count("data") > _MOST_NESTED:
        raise InputError("lists are nested too deeply", location=around.place)
    if isinstance(value, list):
        for number, item in enumerate(value):
            path = f"{around.path}[{number}]"
            _sort(Found(data={}, file=around.file, line=around.line, path=path), item, dump)
        return
    if not isinstance(value, dict):
        raise InputError(f"expected an object, got {value!r:.60}", location=around.place)
    found = Found(data=value, file=around.file, line=around.line, path=around.path)
    if (data := value.get("data")) is not None and isinstance(data, list):
        _sort(found.inside("data", {}), data, dump)
    elif "testing_criteria" in value:
        dump.evals.append(found)
    elif "results" in value and not {"datasource_item", "sample"}.isdisjoint(value):
        dump.items.append(found)
    elif value.get("object") == "eval.run":
        _sort_run(found, dump)
    else:
        dump.graders.append(_grader(found))


def _grader(found: Found) -> Found:
    """The grader that an object is, or that it holds somewhere known."""
    data = found.data
    for path in (("method", "reinforcement", "grader"), ("reinforcement", "grader"), ("grader",)):
        here: Json = dict(data)
        for name in path:
            here = here.get(name) if isinstance(here, dict) else None
        if isinstance(here, dict):
            return found.inside(".".join(path), here)
    if "method" in data:
        message = "this fine-tuning job has no method.reinforcement.grader"
        raise InputError(message, location=found.place)
    if isinstance(data.get("type"), str) and not {"input", "source", "graders"}.isdisjoint(data):
        return found
    keys = ", ".join(list(data)[:8]) or "nothing"
    raise InputError(
        f"this is neither a grader nor an eval, an output item or a fine-tuning job: it has {keys}",
        location=found.place,
        hint=f"a grader has a 'type': {', '.join(TYPES)}",
    )


def _sort_run(found: Found, dump: Dump) -> None:
    """Take the rows of a run whose data source holds them itself."""
    source = found.data.get("data_source")
    inner = source.get("source") if isinstance(source, dict) else None
    content = inner.get("content") if isinstance(inner, dict) else None
    for number, row in enumerate(content if isinstance(content, list) else []):
        path = f"data_source.source.content[{number}]"
        if not (isinstance(row, dict) and isinstance(row.get("item"), dict)):
            place = found.inside(path, {}).place
            raise InputError("a row must be an object with an 'item'", location=place)
        run = {"run_id": found.data.get("id"), "eval_id": found.data.get("eval_id")}
        dump.rows.append(found.inside(path, {**run, **row}))
