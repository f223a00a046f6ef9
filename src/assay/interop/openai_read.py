"""Read what OpenAI's API gave: graders, evals, output items and their recorded results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.documents import read_text
from assay.errors import InputError, Location, ScoreError
from assay.graders.openai.definitions import TYPES
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number
from assay.scoring.strict_json import NotJsonError, decode_json

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
        InputError: For a file that cannot be read, or an object of another kind, naming file
            and place; or if there is nothing in the files.
    """
    dump = Dump()
    for file in files:
        for found, value in documents_of(file):
            _sort(found, value, dump)
    if not (dump.evals or dump.graders or dump.items or dump.rows):
        raise InputError(f"{', '.join(files)}: no grader, eval or output item is in there")
    return dump


def documents_of(file: str) -> Iterator[tuple[Found, Json]]:
    """The document of a file of JSON, or those on the lines of one of JSONL."""
    text = read_text(file, MAX_BYTES)
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


_TEXTS = ("output", "output_text", "output_json", "choices")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult:
    """What a grader over there made of a row.

    Attributes:
        name: The grader, as the result calls it.
        type: Its type, likewise.
        score: Its score; None where there is none.
        passed: Whether that was a pass; None where it is not said.
    """

    name: str
    type: str = ""
    score: float | None = None
    passed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRow:
    """One row.

    Attributes:
        id: Its id over there.
        data: The row of the dataset, without the id.
        results: What was recorded.
    """

    id: str
    data: Mapping[str, Json]
    results: tuple[RecordedResult, ...] = ()

    def named(self, identity: str) -> RecordedRow:
        """The same row under another id."""
        return replace(self, id=identity)


def read_item(found: Found) -> RecordedRow:
    """Read an output item.

    Raises:
        InputError: For a malformed one, naming file and place.
    """
    item = found.data.get("datasource_item") or {}
    if not isinstance(item, dict):
        place = found.inside("datasource_item", {}).place
        raise InputError("expected an object", location=place)
    sample = found.data.get("sample") or {}
    if not isinstance(sample, dict):
        raise InputError("expected an object", location=found.inside("sample", {}).place)
    inner, said = item.get("item"), item.get("sample")
    if isinstance(inner, dict) and set(item) <= {"item", "sample"}:
        item = inner
        sample = sample or (said if isinstance(said, dict) else {})
    results = _results(found)
    verdicts = [result.passed for result in results]
    row = _row(item, sample)
    if verdicts and None not in verdicts:
        row["passed"] = all(verdicts)
    row["recorded"] = {r.name: {"score": r.score, "passed": r.passed} for r in results}
    if run := found.text("run_id"):
        row["run"] = run
    identity = found.data.get("id") or found.data.get("datasource_item_id")
    return RecordedRow(id=str(identity or found.place), data=row, results=results)


def read_row(found: Found, number: int) -> RecordedRow:
    """Read a row of a data source: ``item`` and, if it was sampled before, ``sample``."""
    item, sample = found.data.get("item"), found.data.get("sample")
    row = _row(item if isinstance(item, dict) else {}, sample if isinstance(sample, dict) else {})
    return RecordedRow(id=f"row {number}", data=row)


def _row(item: Mapping[str, Json], sample: Mapping[str, Json]) -> dict[str, Json]:
    answer, calls = _said(sample)
    kept = {name: value for name, value in sample.items() if name not in _TEXTS}
    if calls:
        kept["output_tools"] = calls
    row: dict[str, Json] = {"answer": answer, "item": dict(item)}
    if question := _question(sample):
        row["question"] = question
    if kept:
        row["sample"] = kept
    return row


def _said(sample: Mapping[str, Json]) -> tuple[str | None, Json]:
    """The text of a sample, and its tool calls; no text where nothing was sampled."""
    text = sample.get("output_text")
    output, choices = sample.get("output"), sample.get("choices")
    last: Json = None
    if isinstance(output, list) and output:
        last = output[-1]
    elif isinstance(choices, list) and choices and isinstance(choices[0], dict):
        last = choices[0].get("message")
    message = last if isinstance(last, dict) else {}
    calls = message.get("tool_calls") or sample.get("output_tools")
    if isinstance(text, str):
        return text, calls
    return (_text(message.get("content")) if message else None), calls


def _question(sample: Mapping[str, Json]) -> str:
    asked = sample.get("input")
    turns = [m for m in asked if isinstance(m, dict)] if isinstance(asked, list) else []
    said = [_text(turn.get("content")) for turn in turns if turn.get("role") == "user"]
    return said[-1] if said else ""


def _text(content: Json) -> str:
    """The text of a message: as it is, or its parts one after the other."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _results(found: Found) -> tuple[RecordedResult, ...]:
    listed = found.data.get("results") or []
    if not isinstance(listed, list):
        raise InputError("expected a list of results", location=found.inside("results", {}).place)
    results: list[RecordedResult] = []
    for place_in_list, result in enumerate(listed):
        place = found.inside(f"results[{place_in_list}]", {}).place
        name = result.get("name") if isinstance(result, dict) else None
        if not (isinstance(result, dict) and isinstance(name, str)):
            raise InputError("a result is an object with a 'name'", location=place)
        score, passed, kind = result.get("score"), result.get("passed"), result.get("type")
        try:
            number = None if score is None else finite_number(score, what="score")
        except ScoreError as error:
            raise InputError(error.message, location=place) from error
        results.append(
            RecordedResult(
                name=name,
                type=kind if isinstance(kind, str) else "",
                score=number,
                passed=passed if isinstance(passed, bool) else None,
            )
        )
    return tuple(results)
