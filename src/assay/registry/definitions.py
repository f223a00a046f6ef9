"""What a stored grader is: one frozen class for each kind, checked when it is made.

A definition is plain data that somebody may have sent: texts, numbers and names, never a path of a
machine, a credential or a class that has been imported. `definition_from` reads one from JSON and
reports every problem with its field; `Definition.digest` says what exactly will give the scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

from assay.errors import InputError, Location, nearest
from assay.graders.spec import GraderSpec
from assay.registry.declared import declared_problems, read_declared
from assay.registry.definition import (
    Definition,
    not_plain,
    range_problems,
    refuse,
    renamed,
    secret_problems,
)
from assay.registry.judges import (
    BinaryJudgeDefinition,
    JudgeExample,
    Message,
    PrebuiltJudgeDefinition,
)
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem, ShapeError

__all__ = [
    "KINDS",
    "BinaryJudgeDefinition",
    "CustomDefinition",
    "DeclaredDefinition",
    "Definition",
    "EndpointDefinition",
    "FunctionDefinition",
    "JudgeExample",
    "Message",
    "PrebuiltJudgeDefinition",
    "definition_from",
    "read_definition",
    "require_kind",
]

Range: TypeAlias = "tuple[float, float] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDefinition(Definition):
    """A Python function that is given the conversation and returns a number.

    Attributes:
        source: The program: ``async def grade(thread: StringThread) -> float`` and what it needs.
        isolation: ``call`` for a fresh process for each call, ``batch`` to share one.
        range: Lowest and highest score; none by default.
    """

    kind: ClassVar[str] = "function"

    source: str
    isolation: Literal["call", "batch"] = "call"
    range: Range = None

    def __post_init__(self) -> None:
        refuse(range_problems(self.range))

    def with_source(self, text: str) -> FunctionDefinition:
        """Another program that runs and is bounded as this one: what an update means."""
        return replace(self, source=text)

    def specs(self) -> tuple[GraderSpec, ...]:
        """The one grader of the kind ``function``."""
        return (GraderSpec(type=self.kind, options=self.to_dict()),)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDefinition(Definition):
    """A service that grades: a reward server of one's own.

    Attributes:
        url: Where it is: http or https, without credentials.
        protocol: What it speaks.
        secret_env: Name of the environment variable that holds the secret, such as
            ``ASSAY_SECRET_REWARDS``; none where the service asks for none. The secret itself is
            never stored.
        auth: How the secret is used; ``bearer`` where there is one.
        timeout_seconds: Time for one answer, repeats included.
        batch: Items in one request, at most.
        allow_internal: Whether it may be on this machine or a private network.
        range: Lowest and highest score that it gives; [0, 1] by default.
    """

    kind: ClassVar[str] = "external_endpoint"

    url: str
    protocol: Literal["assay", "adaptive", "openrlhf", "nemo_gym"] = "assay"
    secret_env: str = ""
    auth: Literal["bearer", "hmac", "none"] | None = None
    timeout_seconds: float = 60.0
    batch: int = 32
    allow_internal: bool = False
    range: Range = None

    def __post_init__(self) -> None:
        problems = [*range_problems(self.range), *secret_problems(self.secret_env)]
        refuse(problems or self._settings_problems())

    def _settings_problems(self) -> list[Problem]:
        """What the caller of endpoints would refuse, so that nothing is stored that cannot run."""
        from assay.graders.endpoints.settings import EndpointSettings

        settings: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.range is None:
            del settings["range"]
        try:
            EndpointSettings(**settings)
        except InputError as error:
            name = error.message.split(" ", 1)[0]
            at = (name,) if name in settings else ()
            return [Problem(at, error.message, error.hint)]
        return []

    def specs(self) -> tuple[GraderSpec, ...]:
        """The one grader of the kind ``external_endpoint``."""
        return (GraderSpec(type=self.kind, options=self.to_dict()),)


_OWN_CLASS = re.compile(r"python:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomDefinition(Definition):
    """A `Grader` class of one's own project, or a name for scores that are written in.

    Attributes:
        path: ``python:module:Class``; empty where scores come from elsewhere.
        description: What the scores mean.
    """

    kind: ClassVar[str] = "custom"

    path: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if self.path and not _OWN_CLASS.fullmatch(self.path):
            message = f"{self.path!r:.120} is not python:module:Class"
            hint = "a module that can be imported wherever the grader runs, not a file"
            raise ShapeError([Problem(("path",), message, hint)])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDefinition(Definition):
    """Graders as a case or a grader file declares them, combined into one score.

    Attributes:
        graders: The declarations; see the page on graders. Nothing in them may name a file.
        threshold: Reward that an item needs to pass.
    """

    kind: ClassVar[str] = "declared"

    graders: tuple[Mapping[str, Json], ...]
    threshold: float = 1.0

    def __post_init__(self) -> None:
        problems = declared_problems(self.graders)
        if not 0 <= self.threshold <= 1:
            problems.append(Problem(("threshold",), "must be from 0 to 1"))
        refuse(problems)

    def specs(self) -> tuple[GraderSpec, ...]:
        """The declared graders, in their order."""
        return read_declared(self.graders, [])


KINDS: Mapping[str, type[Definition]] = {
    kind.kind: kind
    for kind in (
        FunctionDefinition,
        BinaryJudgeDefinition,
        PrebuiltJudgeDefinition,
        EndpointDefinition,
        CustomDefinition,
        DeclaredDefinition,
    )
}
"""Every kind of stored grader, by name."""


def require_kind(kind: str) -> None:
    """Refuse what is not a kind.

    Raises:
        InputError: Naming the nearest.
    """
    if kind not in KINDS:
        raise InputError(
            f"unknown kind {kind!r:.100}",
            location=Location(field="kind"),
            hint=nearest(kind[:100], list(KINDS)),
        )


def definition_from(kind: str, data: Mapping[str, Json]) -> Definition:
    """Read a definition.

    Args:
        kind: One of `KINDS`.
        data: Its fields.

    Raises:
        ShapeError: With every problem, each with the path of its field.
    """
    problems: list[Problem] = []
    definition = read_definition(kind, dict(data), (), problems)
    if problems or definition is None:
        raise ShapeError(problems)
    return definition


def read_definition(
    kind: Json, data: Json, path: codec.Path, problems: list[Problem]
) -> Definition | None:
    """Read a definition that stands somewhere in a document."""
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        message = "'kind' is required" if kind is None else f"unknown kind {kind!r:.100}"
        hint = (
            nearest(str(kind)[:100], list(KINDS))
            if kind is not None
            else "valid: " + ", ".join(KINDS)
        )
        problems.append(Problem((*path[:-1], "kind"), message, hint, at_key=kind is None))
        return None
    if wrong := not_plain(data):
        problems.append(Problem(path, wrong))
        return None
    here: list[Problem] = []
    definition = codec.read(found, _with_passes(data), (), here)
    problems.extend(_located(problem, path) for problem in here)
    return cast("Definition | None", definition)


def _located(problem: Problem, path: codec.Path) -> Problem:
    """A problem where its reader looks for it; in JSON an example's ``passes`` is ``pass``."""
    inner = problem.path
    message = problem.message
    if inner[:1] == ("examples",) and inner[-1] == "passes":
        inner, message = (*inner[:-1], "pass"), message.replace("'passes'", "'pass'")
    return Problem((*path, *inner), message, problem.hint, problem.at_key)


def _with_passes(data: Json) -> Json:
    """An example's ``pass`` by the field's name; a question alone is a message of the user's."""
    examples = data.get("examples") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(examples, list):
        return data
    return {**data, "examples": [_example(example) for example in examples]}


def _example(data: Json) -> Json:
    if isinstance(data, dict) and isinstance(said := data.get("input"), str):
        data = {**data, "input": [{"role": "user", "content": said}]}
    return renamed(data, "pass", "passes")
