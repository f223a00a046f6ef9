"""Read rubrics from files: YAML, JSON, and JSON lines of which one is picked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from assay.documents import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    decoded,
    parse_document,
    read_text,
    unreadable,
)
from assay.errors import InputError, Location, nearest
from assay.frozen import frozen
from assay.graders.judges.criteria import MOST, Criterion, leaves, read_criteria
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.codec import Path as Place
from assay.types.codec import Problem, ShapeError

CRITERIA_FILES = frozenset({".yaml", ".yml", ".json", ".jsonl"})
"""Endings of files that hold criteria; any other file is a rubric in words."""

_TOLD = ("name", "title", "description", "version", "source", "license", "author", "id")
"""What may stand beside ``criteria``: words for people."""
_EXAMPLE_IDS = ("prompt_id", "id")
_HEALTH_BENCH = {"requirement": "criterion", "weight": "points"}
_PAPER_BENCH = {"requirement": "requirements", "weight": "weight", "children": "sub_tasks"}
"""What fields of a criterion are called over there."""
_NODE = ("id", "task_category", "finegrained_task_category", "task_type", *_PAPER_BENCH.values())
_MOST_LINES = 100_000
_MAX_WORDS = 100_000


def preset_file(name: str) -> str:
    """The file of a rubric that comes with assay, such as ``solves_or_games``."""
    files = {file.stem: str(file) for file in (Path(__file__).parent / "presets").glob("*.yaml")}
    if name not in files:
        hint = nearest(name, sorted(files)) or f"one of {', '.join(sorted(files))}"
        raise InputError(f"preset: there is no rubric {name!r}", hint=hint)
    return files[name]


def load_rubric(path: str, *, example: str = "") -> tuple[Criterion, ...]:
    """Read the criteria in a file.

    ``path``: A YAML or JSON file: a list of criteria, a mapping with ``criteria``, an example of
    HealthBench (``rubrics`` with ``criterion`` and ``points``, negative for a fault), or a tree of
    PaperBench (``requirements``, ``weight`` and ``sub_tasks``, where a group is worth the mean of
    its parts by their weights); or examples of HealthBench, a list of them or one to a line.
    """
    stamp: tuple[int, ...] = ()
    with suppress(OSError, ValueError):  # to be told where it is read
        stamp = (Path(path).stat().st_mtime_ns, Path(path).stat().st_size)
    return _loaded(path, example, *stamp)


@lru_cache(maxsize=256)
def _loaded(path: str, example: str, *stamp: int) -> tuple[Criterion, ...]:
    del stamp
    found = _picked(list(_rubrics(path)), example, path)
    try:
        return rubric_of(found.data)
    except ShapeError as error:
        first = error.problems[0]
        place = found.document.locate(replace(first, path=(*found.path, *first.path)))
        raise InputError(first.message, location=place, hint=first.hint) from error


def read_words(path: str) -> str:
    """Read a rubric that is written in words."""
    text = read_text(path)
    if (error := wrong_words(text)) is not None:
        raise _fault(path, error.message, hint=error.hint)
    return text


def wrong_words(text: str) -> InputError | None:
    """Why a text is no rubric in words; None where it is one."""
    if len(text) > _MAX_WORDS:
        return InputError(f"is longer than {_MAX_WORDS:,} characters")
    return None if text.strip() else InputError("is empty", hint="say in words what is asked")


@frozen
class _Rubric:
    """A rubric, the document that it is in, and where."""

    data: Json
    document: Document
    path: Place = ()


def _rubrics(path: str) -> Iterator[_Rubric]:
    """What a file holds: one rubric, or examples of HealthBench."""
    if Path(path).suffix.lower() == ".jsonl":
        for line, text in _lines(path):
            data = _from_json(text, path, line)
            yield _Rubric(data, Document(file=path, data=data, values={(): (line, 1)}))
        return
    document = parse_document(read_text(path), file=path)
    data = document.data
    if isinstance(data, list) and any(map(_is_example, data)):
        yield from (_Rubric(one, document, (place,)) for place, one in enumerate(data))
    else:
        yield _Rubric(data, document)


def _picked(rubrics: Sequence[_Rubric], wanted: str, path: str) -> _Rubric:
    """The one rubric that is meant."""
    named = [(_id_of(rubric.data), rubric) for rubric in rubrics]
    if not wanted and len(named) == 1:
        return rubrics[0]
    if not wanted:
        hint = "give the id of one, such as " + ", ".join([name for name, _ in named[:3]])
        said = f"holds {len(named):,} rubrics, and nothing says which is meant"
        raise _fault(path, said, hint=hint)
    found = [rubric for name, rubric in named if name == wanted]
    if len(found) != 1:
        raise _fault(path, f"holds {len(found) or 'no'} rubrics with the id {wanted!r}")
    return found[0]


def _is_example(data: Json) -> bool:
    return isinstance(data, dict) and "rubrics" in data


def _id_of(example: Json) -> str:
    given = example if isinstance(example, dict) else {}
    return next((one for key in _EXAMPLE_IDS if isinstance(one := given.get(key), str)), "")


def rubric_of(data: Json) -> tuple[Criterion, ...]:
    """Read what a file holds, or a row, in any of the forms of `load_rubric`.

    Raises `ShapeError`, whose paths begin in ``data``.
    """
    if isinstance(data, list):
        read = read_criteria(data, path=())
    elif not isinstance(data, dict):
        raise _wrong(("criteria",), "expected a list of criteria", "texts, or [text, weight]")
    elif "rubrics" in data:
        read = _of_others(data["rubrics"], _HEALTH_BENCH, ("rubrics",))
    elif "sub_tasks" in data or "requirements" in data:
        read = _of_others([data], _PAPER_BENCH, ())
    else:
        read = _of_ours(data)
    if sum(1 for _ in leaves(read)) > MOST:
        raise _wrong(("criteria",), f"there are more than {MOST:,}")
    return read


def _of_ours(data: Mapping[str, Json]) -> tuple[Criterion, ...]:
    if "criteria" not in data:
        hint = nearest(next(iter(data), ""), ["criteria"])
        raise _wrong(("criteria",), "is required", hint or "a list of requirements")
    for key in data:
        if key not in ("criteria", *_TOLD):
            hint = "options of a judge stand beside the rubric, where the grader is declared"
            raise _wrong((key,), "a rubric has no such field", hint)
    return read_criteria(data["criteria"])


def _of_others(listed: Json, names: Mapping[str, str], path: Place) -> tuple[Criterion, ...]:
    """Criteria with fields of other names; without a path, of the one that the file is."""
    if not isinstance(listed, list) or not listed:
        raise _wrong(path, "must be a list, and not empty")
    ours: list[Json] = [
        _translated(item, names, (*path, place) if path else ())
        for place, item in enumerate(listed)
    ]
    try:
        return read_criteria(ours, path=path)
    except ShapeError as error:
        found = error.problems[0]
        theirs = [names.get(part, part) if isinstance(part, str) else part for part in found.path]
        where = tuple(theirs if path else theirs[1:])
        raise ShapeError([replace(found, path=where)]) from None


def _translated(node: Json, names: Mapping[str, str], path: Place) -> Json:
    text, weight = names["requirement"], names["weight"]
    if not isinstance(node, dict):
        raise _wrong(path, f"expected a mapping with {text!r} and {weight!r}")
    for field in (text, weight):
        if field not in node:
            raise _wrong((*path, field), "is required")
    found = {ours: node[theirs] for ours, theirs in names.items() if theirs in node}
    if names is _PAPER_BENCH:
        for key in node:
            if key not in _NODE:
                raise _wrong((*path, key), "a node has no such field", nearest(key, [*_NODE]))
        if isinstance(worth := node[weight], int | float) and worth < 0:
            raise _wrong((*path, weight), f"must be 0 or more, got {worth}")
        parts = found.pop("children", None)
        if not isinstance(parts, list | None):
            raise _wrong((*path, "sub_tasks"), "must be a list")
        if parts:
            inside = (*path, "sub_tasks")
            found["children"] = [
                _translated(part, names, (*inside, n)) for n, part in enumerate(parts)
            ]
    return found


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, by their numbers."""
    try:
        with Path(path).open("rb") as file:
            number = 0
            while line := file.readline(MAX_BYTES + 1):
                number += 1
                if len(line) > MAX_BYTES or number > _MOST_LINES:
                    most = f"{MAX_BYTES:,} bytes in a line, {_MOST_LINES:,} lines"
                    raise _fault(path, f"is too large (at most {most})", number)
                if text := decoded(line, path, number).strip():
                    yield number, text
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _from_json(text: str, path: str, line: int) -> Json:
    try:
        return decode_json(text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except NotJsonError as error:
        raise _fault(path, f"is not JSON that can be read: {error}", line) from error


def _wrong(path: Place, message: str, hint: str = "") -> ShapeError:
    return ShapeError([Problem(path, message, hint)])


def _fault(path: str, message: str, line: int | None = None, *, hint: str = "") -> InputError:
    return InputError(message, location=Location(file=path, line=line), hint=hint)
