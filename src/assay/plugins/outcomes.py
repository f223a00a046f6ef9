"""What came of grading, for a tool that has words of its own for it: a node of scores, and text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from assay.scoring.graded import Graded
    from assay.scoring.json_safe import Json
    from assay.scoring.results import SubScore

_LINES = 20


def node_of(grader: str, graded: Graded) -> SubScore:
    """An outcome as a node of a tree of scores; a score outside of 0 to 1 is cut to that."""
    from assay.scoring.results import SubScore

    evidence = dict(graded.details)
    nodes = cast("list[dict[str, Json]]", evidence.pop("subscores", None) or [])
    return SubScore(
        grader,
        None if graded.score is None else min(1.0, max(0.0, graded.score)),
        status=graded.status,
        reason=graded.reason or graded.error,
        flags=graded.flags,
        assurance=graded.assurance,
        metadata=evidence or None,
        children=[SubScore.from_dict(node) for node in nodes] or None,
    )


def lines_of(nodes: Sequence[SubScore], *, parameters: bool = False) -> list[str]:
    """What each grader gave, what it read and what it expected."""
    from assay.reports.explain import evidence, heading, walk

    lines: list[str] = []
    for depth, node in walk(nodes):
        lines.append(f"{'  ' * depth}{heading(node)}")
        for fact in evidence(node, lines=_LINES, parameters=parameters):
            lines += [f"{'  ' * depth}  {fact.label}: {line}" for line in fact.lines]
    return lines


def explanation_of(grader: str, graded: Graded) -> str:
    """The same of one outcome, with the options of the graders, as a text."""
    return "\n".join(lines_of([node_of(grader, graded)], parameters=True))
