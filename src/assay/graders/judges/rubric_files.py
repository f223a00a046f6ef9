"""Read rubrics from files: YAML, JSON, and JSON lines of which one is picked.

A file is data from anyone. It may hold text, numbers, lists and mappings and nothing else, no key
twice, and nothing that stands for other parts of it: what is small stays small when it is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.errors import InputError, Location, nearest
from assay.graders.judges.criteria import Criterion, read_criteria
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    import yaml

__all__ = ["CRITERIA_FILES", "load_rubric", "preset_file", "read_words"]

MAX_CRITERIA = 5_000
"""Criteria of one rubric: each is a question to a judge."""

MAX_GROUPS = 50
"""How deep groups stand in each other."""

_TOLD = ("name", "title", "description", "version", "source", "license", "author", "id")
"""What may stand beside ``criteria``: words for people."""
_EXAMPLE_IDS = ("prompt_id", "id")
_NODE = (
    *("id", "requirements", "weight", "sub_tasks"),
    *("task_category", "finegrained_task_category", "task_type"),
)


def criteria_of(data: Json) -> tuple[Criterion, ...]:
    """The criteria of one rubric.

    ``data``: A list of criteria or a mapping with ``criteria`` (see `read_criteria`); an example of
    HealthBench: ``rubrics`` with ``criterion`` and ``points``, negative for a fault; or a tree of
    PaperBench: ``requirements``, ``weight`` and ``sub_tasks``, where a group is worth the mean of
    its parts by their weights.
    """
    if isinstance(data, list):
        read = read_criteria(data)
    elif not isinstance(data, dict):
        raise InputError("criteria: expected a list of criteria", hint="texts, or [text, weight]")
    elif is_example(data):
        read = _of_health_bench(data)
    elif "sub_tasks" in data or "requirements" in data:
        read = (_of_paper_bench(data, "", 0),)
    else:
        read = _of_ours(data)
    _check_size(read)
    return read


def is_example(data: Json) -> bool:
    """Whether it is one example of HealthBench."""
    return isinstance(data, dict) and "rubrics" in data


def examples_in(data: Sequence[Json]) -> list[tuple[str, Json]]:
    """Examples of HealthBench, each with its id; "" where it has none."""
    return [(_id_of(example), example) for example in data]


def _id_of(example: Json) -> str:
    given = example if isinstance(example, dict) else {}
    return next((one for key in _EXAMPLE_IDS if isinstance(one := given.get(key), str)), "")


def _of_ours(data: Mapping[str, Json]) -> tuple[Criterion, ...]:
    if "criteria" not in data:
        hint = nearest(next(iter(data), ""), ["criteria"])
        raise InputError("criteria: is required", hint=hint or "a list of requirements")
    for key in data:
        if key not in ("criteria", *_TOLD):
            raise InputError(
                f"{key}: a rubric has no such field",
                hint="options of a judge stand beside the rubric, where the grader is declared",
            )
    return read_criteria(data["criteria"])


def _of_health_bench(example: Mapping[str, Json]) -> tuple[Criterion, ...]:
    listed = example["rubrics"]
    if not isinstance(listed, list) or not listed:
        raise InputError("rubrics: must be a list, and not empty")
    return tuple(_of_points(item, f"rubrics[{place}]") for place, item in enumerate(listed))


def _of_points(item: Json, where: str) -> Criterion:
    if not isinstance(item, dict):
        raise InputError(f"{where}: expected a mapping with 'criterion' and 'points'")
    return _criterion(item, where, text="criterion", weight="points")


def _of_paper_bench(node: Json, where: str, depth: int) -> Criterion:
    dot = f"{where}." if where else ""
    if not isinstance(node, dict):
        raise InputError(f"{where}: expected a mapping with 'requirements'")
    if depth > MAX_GROUPS:
        raise InputError(f"{where}: groups stand in each other more than {MAX_GROUPS} deep")
    for key in node:
        if key not in _NODE:
            raise InputError(f"{dot}{key}: a node has no such field", hint=nearest(key, [*_NODE]))
    parts = node.get("sub_tasks") or []
    if not isinstance(parts, list):
        raise InputError(f"{dot}sub_tasks: must be a list")
    weight = node.get("weight")
    if isinstance(weight, int | float) and weight < 0:
        raise InputError(f"{dot}weight: must be 0 or more, got {weight}")
    children = tuple(
        _of_paper_bench(part, f"{dot}sub_tasks[{place}]", depth + 1)
        for place, part in enumerate(parts)
    )
    return _criterion(node, where, text="requirements", weight="weight", children=children)


def _criterion(
    item: Mapping[str, Json],
    where: str,
    *,
    text: str,
    weight: str,
    children: tuple[Criterion, ...] = (),
) -> Criterion:
    dot = f"{where}." if where else ""
    said, worth = item.get(text), item.get(weight)
    if not isinstance(said, str) or not said.strip():
        raise InputError(f"{dot}{text}: a criterion needs words")
    if isinstance(worth, bool) or not isinstance(worth, int | float) or not math.isfinite(worth):
        raise InputError(f"{dot}{weight}: must be a finite number, got {worth!r}")
    try:
        return Criterion(requirement=said, weight=float(worth), children=children)
    except InputError as error:
        raise InputError(f"{dot}{error.message}", hint=error.hint) from None


def _check_size(criteria: Sequence[Criterion]) -> None:
    level: list[Criterion] = list(criteria)
    depth = total = 0
    while level:
        total, depth = total + sum(not one.children for one in level), depth + 1
        if total > MAX_CRITERIA:
            raise InputError(f"criteria: there are more than {MAX_CRITERIA:,}")
        if depth > MAX_GROUPS + 1:
            raise InputError(f"criteria: groups stand in each other more than {MAX_GROUPS} deep")
        level = [child for one in level for child in one.children]


CRITERIA_FILES = frozenset({".yaml", ".yml", ".json", ".jsonl"})
"""Endings of files that hold criteria; any other file is a rubric in words."""

MAX_BYTES = 4 * 1024 * 1024
"""Size of a rubric; in a file of many, of each line."""

_MOST_LINES = 100_000
_MAX_DEPTH = 2 * MAX_GROUPS + 10  # a group is a mapping in a list
_MAX_VALUES = 200_000
_MAX_WORDS = 100_000
_Lines: TypeAlias = dict[str, int]
"""The line in which the field of a path begins, such as ``criteria[0].weight``."""


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
    HealthBench, or a tree of PaperBench; or examples of HealthBench, a list of them or one to a
    line.
    """
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        raise InputError(_why(error), location=Location(file=path)) from error
    return _loaded(path, example, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _loaded(path: str, example: str, *stamp: int) -> tuple[Criterion, ...]:
    del stamp
    if Path(path).suffix.lower() == ".jsonl":
        listed = [_from_json(text, path, line) for line, text in _lines(path)]
        return _criteria(_picked(listed, example, path), path, {})
    text = _text(path, MAX_BYTES)
    lines: _Lines = {}
    if Path(path).suffix.lower() == ".json":
        data = _from_json(text, path, 1)
    else:
        data = _from_yaml(text, path, lines)
    if isinstance(data, list) and any(map(is_example, data)):
        return _criteria(_picked(data, example, path), path, {})
    if example:
        message = f"is one rubric: there is no example {example!r} to be picked"
        raise InputError(message, location=Location(file=path))
    return _criteria(data, path, lines)


def read_words(path: str) -> str:
    """Read a rubric that is written in words."""
    text = _text(path, 4 * _MAX_WORDS)
    if len(text) > _MAX_WORDS:
        raise _fault(path, f"is longer than {_MAX_WORDS:,} characters")
    if not text.strip():
        raise _fault(path, "is empty", hint="say in words what is asked")
    return text


def _criteria(data: Json, path: str, lines: Mapping[str, int]) -> tuple[Criterion, ...]:
    try:
        return criteria_of(data)
    except InputError as error:
        field, _, message = error.message.partition(": ")
        if not re.fullmatch(r"[\w.\[\]-]+", field):
            field, message = error.message.split()[0], error.message
        place = Location(file=path, line=_line_of(field, lines), field=field)
        raise InputError(message, location=place, hint=error.hint) from error


def _line_of(field: str, lines: Mapping[str, int]) -> int | None:
    """The line of a field, or of the nearest one around it."""
    while field:
        for name in (field, field.removeprefix("criteria")):  # a list has no key to begin with
            if name in lines:
                return lines[name]
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return None


def _picked(examples: Sequence[Json], wanted: str, path: str) -> Json:
    """The one example that is meant."""
    known = examples_in(examples)
    if not wanted:
        if len(known) == 1:
            return known[0][1]
        raise _fault(
            path,
            f"holds {len(known):,} rubrics, and nothing says which is meant",
            hint="give the id of one, such as " + ", ".join([name for name, _ in known[:3]]),
        )
    found = [example for name, example in known if name == wanted]
    if len(found) != 1:
        raise _fault(path, f"holds {len(found) or 'no'} rubrics with the id {wanted!r}")
    return found[0]


def _text(path: str, limit: int) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise _fault(path, _why(error)) from error
    if len(content) > limit:
        raise _fault(path, f"is larger than {limit:,} bytes")
    return _decoded(content, path, 1)


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
                if text := _decoded(line, path, number).strip():
                    yield number, text
    except OSError as error:
        raise _fault(path, _why(error)) from error


def _decoded(content: bytes, path: str, line: int) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        raise _fault(path, "is not UTF-8 text", at, hint="save it as UTF-8") from error


def _why(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"cannot be read: {reason or error}"


def _fault(path: str, message: str, line: int | None = None, *, hint: str = "") -> InputError:
    return InputError(message, location=Location(file=path, line=line), hint=hint)


def _from_json(text: str, path: str, line: int) -> Json:
    try:
        data = decode_json(text)
    except NotJsonError as error:
        if error.kind == "depth":
            raise _fault(path, f"is nested more than {_MAX_DEPTH} deep", line) from error
        place = line + max(error.line - 1, 0)
        raise _fault(path, f"is not JSON that can be read: {error}", place) from error
    _check_depth(data, path, line)
    return data


def _check_depth(data: Json, path: str, line: int) -> None:
    level, depth, total = [data], 0, 0
    while level:
        total, depth = total + len(level), depth + 1
        if depth > _MAX_DEPTH:
            raise _fault(path, f"is nested more than {_MAX_DEPTH} deep", line)
        if total > _MAX_VALUES:
            raise _fault(path, f"holds more than {_MAX_VALUES:,} values", line)
        inside: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                inside.extend(value.values())
            elif isinstance(value, list):
                inside.extend(value)
        level = inside


def _from_yaml(text: str, path: str, lines: _Lines) -> Json:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Looked through before anything is built of it.
        _check_events(yaml.parse(text, Loader=loader), path)
        node = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = cast("yaml.Mark | None", getattr(error, "problem_mark", None))
        what = cast("str | None", getattr(error, "problem", None)) or "it cannot be parsed"
        at = None if mark is None else mark.line + 1
        raise _fault(path, f"is not valid YAML: {what}", at) from error
    if node is None:
        raise _fault(path, "is empty", hint="a list of criteria")
    return _built(node, path, "", lines)


def _check_events(events: Iterator[yaml.Event], path: str) -> None:
    import yaml

    depth = documents = 0
    for total, event in enumerate(events, 1):
        line = cast("yaml.Mark", event.start_mark).line + 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise _fault(path, "holds more than one document", line)
        if depth > _MAX_DEPTH:
            raise _fault(path, f"is nested more than {_MAX_DEPTH} deep", line)
        if total > _MAX_VALUES:
            raise _fault(path, f"holds more than {_MAX_VALUES:,} values", line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _fault(path, "anchors and aliases are not read here", line, hint="write it out")
        if isinstance(event, yaml.NodeEvent) and (tag := getattr(event, "tag", None)):
            raise _fault(path, f"the tag {tag} is not read here", line, hint="plain data only")


def _built(node: yaml.Node, path: str, where: str, lines: _Lines) -> Json:
    import yaml

    lines.setdefault(where, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        items = cast("list[yaml.Node]", node.value)
        return [_built(item, path, f"{where}[{n}]", lines) for n, item in enumerate(items)]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Json] = {}
        for key_node, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _fault(path, "a key must be text", line)
            key = cast("str", key_node.value)
            if key in found:
                raise _fault(path, f"the key {key!r} is there twice", line)
            inside = f"{where}.{key}" if where else key
            lines[inside] = line
            found[key] = _built(value, path, inside, lines)
        return found
    text = cast("str", node.value)
    return text if getattr(node, "style", None) else _plain(text)


_WORDS: Mapping[str, Json] = {
    **dict.fromkeys(("", "~", "null")),
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
}
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,300}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")


def _plain(text: str) -> Json:
    """A scalar without quotes, as YAML 1.2 reads it."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) is None:
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)
