"""The kinds that a stored grader may declare, each with what a form needs to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, cast

from assay.graders.from_row import refused
from assay.graders.kinds import KINDS as DECLARED
from assay.graders.kinds import kind_of
from assay.graders.paths import named_paths
from assay.graders.spec import GraderSpec, spec_schema
from assay.registry.definitions import lacking_parts
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.submission import SUBMISSION_PARTS

Family: TypeAlias = Literal["comparison", "judge", "openai", "trace", "code", "other"]

_FAMILIES: Mapping[str, Family] = {
    "comparison": "comparison",
    "openai": "openai",
    "trace": "trace",
    "tool_correctness": "trace",
    "llm_judge": "judge",
    "binary_judge": "judge",
    "faithfulness": "judge",
    "relevancy": "judge",
    "pairwise": "judge",
    "model_judge": "judge",
    "agent_judge": "judge",
    "command": "code",
    "files": "code",
    "tests": "code",
    "c_tests": "code",
    "swebench": "code",
    "implemented": "code",
    "audit": "code",
    "function": "code",
}
"""By the module of ``assay.graders`` that a kind lives in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredKind:
    """A kind of grader that a definition of the kind ``declared`` may name.

    Attributes:
        name: What it is called.
        description: What it does.
        family: What it is listed among.
        needs: Parts of a submission that rows of datasets do not have, and it cannot do without.
        form: JSON Schema of one declaration; of options that a stored grader may have.
        from_rows: Those of the options that may come from the row: ``{from: expected}``.
    """

    name: str
    description: str
    family: Family
    needs: tuple[str, ...]
    form: Mapping[str, Json]
    from_rows: tuple[str, ...]


@cache
def declared_kinds() -> tuple[DeclaredKind, ...]:
    """The kinds that a stored grader may declare, in the order of their table."""
    branches = cast("list[dict[str, Json]]", spec_schema(from_rows=False)["oneOf"])
    found: list[DeclaredKind] = []
    for name, branch in zip(DECLARED, branches, strict=False):
        kind = kind_of(name)
        properties = dict(cast("dict[str, Json]", branch["properties"]))
        for option, parameter in kind.parameters.items():
            part = kind.filled_from.get(option, option)
            is_file = named_paths(parameter.annotation, "a") or named_paths(
                parameter.annotation, ["a"]
            )
            if is_file or (part in SUBMISSION_PARTS and part != "expected"):
                properties.pop(option, None)
            elif option in properties and parameter.default is not None:
                described = cast("dict[str, Json]", properties[option])
                properties[option] = {**described, "default": codec.to_json(parameter.default)}
        module = DECLARED[name].partition(":")[0].removeprefix("assay.graders.")
        found.append(
            DeclaredKind(
                name=name,
                description=kind.description,
                family=_FAMILIES.get(module.partition(".")[0], "other"),
                needs=tuple(sorted({part for _, part in lacking_parts([GraderSpec(type=name)])})),
                form={**branch, "properties": properties},
                from_rows=tuple(
                    name
                    for name in properties
                    if name in kind.parameters and not refused(kind, name)
                ),
            )
        )
    return tuple(found)
