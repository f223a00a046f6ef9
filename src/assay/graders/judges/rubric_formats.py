"""Rubrics as criteria, however they are written: our own lists, HealthBench, PaperBench.

Whatever is wrong is said with the path of the field before it, such as ``criteria[2].weight``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.errors import InputError, nearest
from assay.graders.judges.criteria import Criterion, read_criteria
from assay.scoring.json_safe import Json

__all__ = ["MAX_CRITERIA", "MAX_GROUPS", "criteria_of", "examples_in", "is_example"]

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

    Args:
        data: A list of criteria or a mapping with ``criteria`` (see `read_criteria`); an example of
            HealthBench: ``rubrics`` with ``criterion`` and ``points``, negative for a fault; or a
            tree of PaperBench: ``requirements``, ``weight`` and ``sub_tasks``, where a group is
            worth the mean of its parts by their weights.

    Raises:
        InputError: Naming the field.
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
