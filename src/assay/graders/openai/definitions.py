"""Read the JSON of OpenAI's graders, and write it as the declarations of this project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, cast

from assay.errors import InputError, ScoreError, nearest
from assay.graders.openai.base import (
    OpenAIDefinition,
    OpenAIGrader,
    Ranged,
    wrong,
)
from assay.graders.openai.comparisons import StringCheck, TextSimilarity
from assay.graders.openai.formula import parse_formula
from assay.graders.openai.judges import LabelModel, ModelDefinition, ScoreModel
from assay.graders.openai.python import OpenAIPython
from assay.graders.openai.rewards import FaultError, GivenReward, SubmissionFaultError
from assay.graders.openai.template import TemplateScope
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance, weakest
from assay.types.codec import Problem, ShapeError, from_json

Part: TypeAlias = "StringCheck | TextSimilarity | OpenAIPython | ScoreModel | LabelModel"
_MOST_PARTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Multi(Ranged):
    """Combines graders by a formula over their rewards.

    Attributes:
        graders: The graders, by the names that the formula uses.
        calculate_output: The formula (see `assay.graders.openai.formula`).
        range: What is worth 0 and what is worth 1; ``[0, 1]`` by default.
        pass_threshold: Reward from which it passes.
        pass_fail: Whether it is worth 1 where it passes and 0 where it does not; its reward stays
            in the evidence.
        name: What it is called.
    """

    TAG: ClassVar[str] = "multi"

    graders: Mapping[str, Part]
    calculate_output: str
    range: tuple[float, ...] | None = None
    pass_threshold: float | None = None
    pass_fail: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        self.check_scale()
        if not 0 < len(self.graders) <= _MOST_PARTS:
            raise wrong("graders", f"there are {len(self.graders)}", "from 1 to 100")
        for key, part in self.graders.items():
            if not key.isidentifier():
                raise wrong(f"graders.{key}", "this key cannot be a variable", "use letters and _")
            if isinstance(part, OpenAIPython) and part.file is not None:
                raise wrong(f"graders.{key}.file", "no file can be named here", "write its source")
            if part.is_verdict:
                raise wrong(f"graders.{key}.pass_fail", "only the whole can be pass or fail")
        for name in parse_formula(self.calculate_output).names:
            if name not in self.graders:
                known = ", ".join(self.graders)
                message = f"names {name!r}, which is not one of the graders"
                raise wrong("calculate_output", message, f"they are {known}")

    @property
    def assurance(self) -> Assurance:
        """The weakest of its parts."""
        return weakest(part.assurance for part in self.graders.values()) or "separate"

    async def check(self) -> None:
        """Check the parts."""
        problems: list[Problem] = []
        for key, part in self.graders.items():
            try:
                await part.check()
            except ShapeError as error:
                inside = ("graders", key)
                problems += [replace(p, path=(*inside, *p.path)) for p in error.problems]
        if problems:
            raise ShapeError(problems)

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """The formula over the rewards of the parts, all of which are asked.

        A part that could not be graded makes the whole an error; one that the submission made
        worthless makes the whole worthless, whatever its sign in the formula.
        """
        import asyncio

        asked = [_asked(part, scope) for part in self.graders.values()]
        answers = dict(zip(self.graders, await asyncio.gather(*asked), strict=True))
        rewards = {key: found for key, found in answers.items() if isinstance(found, GivenReward)}
        parts = {key: found.value for key, found in rewards.items()}
        for fault in _worst_first(answers):
            fault.parts = parts
            raise fault
        try:
            value = parse_formula(self.calculate_output)(parts)
        except ScoreError as error:
            fault = FaultError(error.message, flag="other_error")
            fault.parts = parts
            raise fault from error
        return GivenReward(
            value=value,
            passed=self.passed(value),
            details={key: dict(found.details) for key, found in rewards.items()},
            flags=tuple(dict.fromkeys(flag for found in rewards.values() for flag in found.flags)),
            parts=parts,
        )


async def _asked(part: Part, scope: TemplateScope) -> GivenReward | FaultError:
    try:
        return await part.reward(scope)
    except FaultError as fault:
        return fault


def _worst_first(answers: Mapping[str, GivenReward | FaultError]) -> Iterator[FaultError]:
    """The faults, each with the key of its grader: what we or the author did wrong comes first."""
    faults = [(key, found) for key, found in answers.items() if isinstance(found, FaultError)]
    faults.sort(key=lambda pair: isinstance(pair[1], SubmissionFaultError))
    for key, fault in faults:
        fault.message = f"{key}: {fault.message}"
        yield fault


class MultiGrader(OpenAIGrader):
    """Several graders, combined by a formula (OpenAI's ``multi``)."""

    name: ClassVar[str] = "multi"
    definition: ClassVar[type[OpenAIDefinition]] = Multi


_DEFINITIONS: Mapping[str, type[OpenAIDefinition]] = {
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


def read_definition(grader: Json) -> OpenAIDefinition:
    """Read one grader of the API."""
    if not isinstance(grader, dict):
        raise ShapeError([Problem((), "a grader is an object with a 'type'")])
    kind = grader.get("type")
    definition = _DEFINITIONS.get(kind) if isinstance(kind, str) else None
    if definition is None:
        message = f"unknown type of grader {kind!r}" if kind else "'type' is required"
        raise ShapeError([Problem(("type",), message, nearest(str(kind or ""), list(TYPES)))])
    several = grader.get("graders")
    if isinstance(several, dict) and len(several) > _MOST_PARTS:  # before a look at each
        fault = Problem(("graders",), f"there are {len(several)}", f"from 1 to {_MOST_PARTS}")
        raise ShapeError([fault])
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
    """Check the sources of declared graders of OpenAI's kinds; others are passed over."""
    for spec in specs:
        grader = spec.kind.grader
        if issubclass(grader, OpenAIGrader):
            try:
                await grader.defined(spec.options).check()
            except ShapeError as error:
                said = f"grader {spec.label!r}: {error.location.field}: {error.message}"
                raise InputError(said, hint=error.hint) from error


def parts_of(definition: OpenAIDefinition) -> Iterator[OpenAIDefinition]:
    """The graders that a definition is made of: itself, or those that its formula combines."""
    if isinstance(definition, Multi):
        yield from cast("Mapping[str, OpenAIDefinition]", definition.graders).values()
    else:
        yield definition


async def lacking(definition: OpenAIDefinition) -> list[str]:
    """What a grader needs that is not there, for people; nothing if it runs as it is."""
    needs = models_needed(definition)
    for part in parts_of(definition):
        if isinstance(part, OpenAIPython) and (foreign := (await part.examined()).foreign):
            needs.append(f"packages that its source imports: {', '.join(foreign)}")
    return list(dict.fromkeys(needs))


def judges_of(definition: OpenAIDefinition) -> list[str]:
    """The models that a grader asks, as it names them."""
    parts = (part for part in parts_of(definition) if isinstance(part, ModelDefinition))
    return list(dict.fromkeys(part.model for part in parts))


def models_needed(definition: OpenAIDefinition) -> list[str]:
    """The models a grader needs that cannot be asked on this machine, for people, and why not."""
    needs: list[str] = []
    for part in parts_of(definition):
        if isinstance(part, ModelDefinition):
            from assay.graders.openai.messages import why_not

            if why := why_not(part.model):
                needs.append(f"a judge model in place of {part.model}: {why}")
        elif isinstance(part, TextSimilarity) and part.evaluation_metric == "cosine":
            needs.append("an embedding model for cosine")
    return list(dict.fromkeys(needs))
