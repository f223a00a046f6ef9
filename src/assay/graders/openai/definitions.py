"""Read the JSON of OpenAI's graders, and write it as the declarations of this project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from assay.errors import InputError, nearest
from assay.graders.openai.base import Definition, OpenAIGrader
from assay.graders.openai.judges import LabelModel, ModelDefinition, ScoreModel
from assay.graders.openai.multi import Multi
from assay.graders.openai.python import OpenAIPython
from assay.graders.openai.string_check import StringCheck
from assay.graders.openai.text_similarity import TextSimilarity
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.types.codec import Problem, ShapeError, from_json

__all__ = [
    "TYPES",
    "check_declared",
    "declaration",
    "judges_of",
    "lacking",
    "models_needed",
    "parts_of",
    "read_definition",
]

_DEFINITIONS: Mapping[str, type[Definition]] = {
    "string_check": StringCheck,
    "text_similarity": TextSimilarity,
    "score_model": ScoreModel,
    "label_model": LabelModel,
    "python": OpenAIPython,
    "multi": Multi,
}

TYPES = tuple(_DEFINITIONS)
"""OpenAI's types of graders."""

_OURS = {"python": "openai_python"}
_THEIRS_ALONE = ("id",)  # what the API says of a stored criterion, and no grader is made of
_NOT_THEIRS = ("file", "compat", "pass_fail", "fence")


def declaration(grader: Mapping[str, Json]) -> dict[str, Json]:
    """A grader as our YAML declares it: the same fields, without those that are null.

    Only the type ``python`` is called otherwise, ``openai_python``. Nothing is checked.
    """
    kept = {k: v for k, v in grader.items() if v is not None and k not in _THEIRS_ALONE}
    kind = kept.get("type")
    written: dict[str, Json] = {"type": kind, **kept}
    if isinstance(kind, str):
        written["type"] = _OURS.get(kind, kind)
    parts = kept.get("graders")
    if isinstance(parts, dict):
        # The API's own client types a single grader here, where every example has a mapping.
        alone, name = isinstance(parts.get("type"), str), parts.get("name")
        keyed = {name: parts} if alone and isinstance(name, str) else parts
        written["graders"] = {
            key: declaration(part) if isinstance(part, dict) else part
            for key, part in keyed.items()
        }
    return written


def read_definition(grader: Json) -> Definition:
    """Read one grader of the API.

    Raises:
        ShapeError: With everything that is wrong in it, by its path in the JSON.
    """
    if not isinstance(grader, dict):
        raise ShapeError([Problem((), "a grader is an object with a 'type'")])
    kind = grader.get("type")
    definition = _DEFINITIONS.get(kind) if isinstance(kind, str) else None
    if definition is None:
        message = f"unknown type of grader {kind!r}" if kind else "'type' is required"
        raise ShapeError([Problem(("type",), message, nearest(str(kind or ""), list(TYPES)))])
    declared = declaration(grader)
    _refuse_ours(declared, ())
    parts = declared.get("graders")
    for key, part in parts.items() if isinstance(parts, dict) else ():
        _refuse_ours(part, ("graders", key))
    return from_json(definition, declared)


def _refuse_ours(declared: Json, path: tuple[str, ...]) -> None:
    """Refuse what only our YAML has: a body from elsewhere names no file and no address of ours."""
    for name in _NOT_THEIRS:
        if isinstance(declared, dict) and name in declared:
            raise ShapeError([Problem((*path, name), f"unknown field {name!r}", at_key=True)])
    model = declared.get("model") if isinstance(declared, dict) else None
    if isinstance(model, str) and "://" in model:
        message = "a model is a name here, and no address"
        raise ShapeError([Problem((*path, "model"), message, "declare the grader in YAML")])


async def check_declared(specs: Iterable[GraderSpec]) -> None:
    """Check the sources of declared graders of OpenAI's kinds; others are passed over.

    Raises:
        InputError: Naming the grader, and what is wrong in its source.
        SandboxError: If the sandbox fails, or this machine has none.
    """
    for spec in specs:
        grader = spec.kind.grader
        if issubclass(grader, OpenAIGrader):
            try:
                await grader.defined(spec.options).check()
            except ShapeError as error:
                said = f"grader {spec.label!r}: {error.location.field}: {error.message}"
                raise InputError(said, hint=error.hint) from error


def parts_of(definition: Definition) -> Iterator[Definition]:
    """The graders that a definition is made of: itself, or those that its formula combines."""
    if isinstance(definition, Multi):
        yield from cast("Mapping[str, Definition]", definition.graders).values()
    else:
        yield definition


async def lacking(definition: Definition) -> list[str]:
    """What a grader needs that is not there, for people; nothing if it runs as it is.

    Raises:
        SandboxError: If a source cannot be looked at, as that is done in the sandbox.
    """
    needs = models_needed(definition)
    for part in parts_of(definition):
        if isinstance(part, OpenAIPython) and (foreign := (await part.examined()).foreign):
            needs.append(f"packages that its source imports: {', '.join(foreign)}")
    return list(dict.fromkeys(needs))


def judges_of(definition: Definition) -> list[str]:
    """The models that a grader asks, as it names them."""
    parts = (part for part in parts_of(definition) if isinstance(part, ModelDefinition))
    return list(dict.fromkeys(part.model for part in parts))


def models_needed(definition: Definition) -> list[str]:
    """The models a grader needs that cannot be asked on this machine, for people, and why not."""
    needs: list[str] = []
    for part in parts_of(definition):
        if isinstance(part, ModelDefinition):
            from assay.graders.openai.asking import why_not

            if why := why_not(part.model):
                needs.append(f"a judge model in place of {part.model}: {why}")
        elif isinstance(part, TextSimilarity) and part.evaluation_metric == "cosine":
            needs.append("an embedding model for cosine")
    return list(dict.fromkeys(needs))
