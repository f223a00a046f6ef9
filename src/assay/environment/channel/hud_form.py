"""Grades in HUD's form, whose readers refuse what they do not know."""

from __future__ import annotations

from collections.abc import Mapping

from assay.scoring.json_safe import Json


def for_hud(grade: Mapping[str, Json]) -> dict[str, Json]:
    """A grade in that form, which has a score in every frame: one without a reward is an error."""
    score = grade.get("score")
    content = grade.get("content")
    nodes = grade.get("subscores")
    return {
        "score": score if score is not None else 0.0,
        "done": grade.get("done") is not False,
        "content": content if score is not None or content else "nothing applied",
        "info": grade.get("info") or {},
        "isError": score is None,
        "subscores": _hud_nodes(nodes) if isinstance(nodes, list) else None,
    }


def _hud_nodes(nodes: list[Json]) -> list[Json]:
    """Nodes that have a value; their own fields beyond HUD's go into ``info``."""
    found: list[Json] = []
    for node in nodes:
        if not isinstance(node, dict) or node.get("status", "scored") != "scored":
            continue
        metadata, children = node.get("metadata"), node.get("children")
        more = {key: node.get(key) for key in ("gate", "reason", "flags", "assurance")}
        info = {**(metadata if isinstance(metadata, dict) else {})}
        info.update({key: value for key, value in more.items() if value})
        found.append(
            {
                "name": node.get("name"),
                "weight": node.get("weight"),
                "value": node.get("value"),
                "children": _hud_nodes(children) if isinstance(children, list) else None,
                "info": info or None,
            }
        )
    return found
