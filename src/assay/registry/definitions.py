"""What a stored grader is: its kind, what its author gave, and the declared graders that it means.

A definition is plain data that somebody may have sent: texts, numbers and names, never a path of a
machine, a credential or a class that has been imported. `definition_from` reads one from JSON and
reports every problem with its field; `Definition.digest` says what exactly will give the scores.
The fields of a kind follow from the options of the grader that it stands for.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

from assay.errors import InputError, Location, nearest
from assay.graders.base import field_parameters
from assay.graders.from_row import is_from
from assay.graders.kinds import KINDS as DECLARED
from assay.graders.kinds import Kind, kind_of
from assay.graders.paths import named_paths
from assay.graders.spec import GraderSpec, credit_problems, read_spec
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Path, Problem, ShapeError
from assay.types.submission import SUBMISSION_PARTS

if TYPE_CHECKING:
    from assay.store.catalog import GraderVersion

__all__ = [
    "KINDS",
    "MAX_DEFINITION_BYTES",
    "Definition",
    "definition_from",
    "definition_of",
    "definition_schema",
    "form_schema",
    "lacking_parts",
    "read_definition",
    "require_kind",
]

KINDS: Mapping[str, str] = {
    "function": "a Python function that is given the conversation and returns a number",
    "binary_judge": "a language model that says whether a criterion is met",
    "prebuilt_judge": "a judge for answers that rest on documents, of a procedure that assay has",
    "external_endpoint": "a service that grades",
    "custom": "a Grader class of one's own project, or a name for scores that are written in",
    "declared": "graders as a case declares them, combined into one score",
}
"""Every kind of stored grader, and what it is."""

MAX_DEFINITION_BYTES = 1 << 20
"""Size of a whole definition as JSON."""

_REMEMBERED_BYTES = 16_384
"""Size of a definition that is kept in memory when it has been read."""

_MAX_TEXT_BYTES = 65_536
"""Size of one text of a judge: a criterion, a template."""

_MAX_EXAMPLES = 100
_MAX_GRADERS = 100
_MAX_DEPTH = 64
_MOST = 1 << 256
_NOWHERE = "/nonexistent"
"""Where relative paths would start from, if any got that far."""

_ROW_PARTS = frozenset({"answer", "question", "expected", "thread", "metadata", "trace"})
"""Parts of a submission that a row of a dataset may have."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A grader as it is stored; `definition_from` makes one.

    Attributes:
        kind: One of `KINDS`.
        data: The fields of its kind, as JSON; what has its default is left out.
        specs: The declared graders that do the grading; none for a class of one's own, which is
            imported only where that is permitted, and for scores that are written in.
    """

    kind: str
    data: Mapping[str, Json]
    specs: tuple[GraderSpec, ...] = ()

    @property
    def path(self) -> str:
        """The class of one's own that grades, as ``python:module:Class``; "" for none."""
        return cast("str", self.data.get("path", "")) if self.kind == "custom" else ""

    @property
    def graders(self) -> tuple[GraderSpec, ...]:
        """What grades, a class of one's own included: looking at its kind imports it."""
        return (GraderSpec(type=self.path),) if self.path else self.specs

    @property
    def threshold(self) -> float | None:
        """The reward that an item needs to pass, of declared graders."""
        given = cast("float", self.data.get("threshold", 1.0))
        return given if self.kind == "declared" else None

    def to_dict(self) -> dict[str, Json]:
        """The fields as plain JSON."""
        return dict(self.data)

    def is_of(self, version: GraderVersion) -> bool:
        """Whether a stored version is this definition."""
        return (self.kind, self.to_dict()) == (version.kind, dict(version.definition))

    def digest(self) -> str:
        """What exactly gives its scores: the definition, and the code of assay that grades by it.

        Returns:
            64 hexadecimal digits. A custom grader's own code is not part of it: it is not stored.
        """
        from assay.graders.digest import framed, grader_digest

        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        code = [grader_digest(spec).encode() for spec in self.specs]
        whole = hashlib.sha256(b"assay definition 1\0")
        whole.update(framed(self.kind.encode(), text.encode(), *code))
        return whole.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Custom:
    """A `Grader` class of one's own project, or a name for scores that are written in.

    Attributes:
        path: ``python:module:Class``; empty where scores come from elsewhere.
        description: What the scores mean.
    """

    path: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if self.path and not _OWN_CLASS.fullmatch(self.path):
            message = f"{self.path!r:.120} is not python:module:Class"
            hint = "a module that can be imported wherever the grader runs, not a file"
            raise ShapeError([Problem(("path",), message, hint)])


_OWN_CLASS = re.compile(r"python:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """Graders as a case or a grader file declares them, combined into one score.

    Attributes:
        graders: The declarations; see the page on graders. Nothing in them may name a file.
        threshold: Reward that an item needs to pass.
    """

    graders: tuple[Mapping[str, Json], ...]
    threshold: float = 1.0

    def __post_init__(self) -> None:
        problems = _declared_problems(self.graders)
        if not 0 <= self.threshold <= 1:
            problems.append(Problem(("threshold",), "must be from 0 to 1"))
        if problems:
            raise ShapeError(problems)


@lru_cache(maxsize=8)
def _shape(kind: str) -> type:
    """A dataclass with the fields of a kind: the options of its grader, but for files and parts."""
    if kind == "custom":
        return _Custom
    if kind == "declared":
        return _Declared
    if kind == "prebuilt_judge":
        prebuilt = Literal["FAITHFULNESS", "CONTEXT_RELEVANCY", "ANSWER_RELEVANCY"]
        told = "The procedure: FAITHFULNESS, CONTEXT_RELEVANCY or ANSWER_RELEVANCY."
        return _judge_shape(kind, {"type": (prebuilt, field(), told)})
    grader = kind_of(kind).grader
    docs = codec.field_docs(grader.options_type())
    own = {
        name: (one.annotation, field() if one.required else field(default=one.default), docs[name])
        for name, one in field_parameters(grader.options_type()).items()
        if name not in ("feedback_key", "file")
    }
    if kind == "function":
        own["source"] = (str, field(), docs["source"])
    return _judge_shape(kind, own) if kind == "binary_judge" else _dataclass(kind, own)


def _judge_shape(kind: str, own: Mapping[str, tuple[object, object, str]]) -> type:
    from assay.graders.judges.base import JudgeGrader
    from assay.graders.judges.panel import DEFAULT_MODEL

    docs = codec.field_docs(JudgeGrader)
    panel = _dataclass(
        "panel",
        {
            name: (option.annotation, field(default=option.default), docs[name])
            for name, option in field_parameters(JudgeGrader).items()
            if name not in ("model", "models")
        },
    )
    # The model is always stored, so that a version asks the same when the default is another.
    model = (str, field(default=DEFAULT_MODEL), "The model that judges; see the page on models.")
    how = "How often the model is asked and how votes are counted."
    panel_field = (panel, field(default_factory=cast("Callable[[], object]", panel)), how)
    shared = field_parameters(JudgeGrader)
    alone = {name: member for name, member in own.items() if name not in shared}
    return _dataclass(kind, {**alone, "judge_model": model, "panel": panel_field})


def _dataclass(name: str, members: Mapping[str, tuple[object, object, str]]) -> type:
    told = "".join(f"    {member}: {docs}\n" for member, (_, _, docs) in members.items())
    listed = [(member, annotation, default) for member, (annotation, default, _) in members.items()]
    return make_dataclass(
        name,
        cast("list[tuple[str, type]]", listed),
        namespace={"__doc__": f"{KINDS.get(name, name)}\n\nAttributes:\n{told}"},
        frozen=True,
        kw_only=True,
    )


def definition_schema(kind: str) -> dict[str, Json]:
    """The JSON Schema of the fields of a kind."""
    return codec.schema(_shape(kind))


def form_schema(kind: str) -> dict[str, Json]:
    """As `definition_schema`, with the defaults of the fields, for forms.

    Raises:
        InputError: For what is no kind.
    """
    require_kind(kind)
    schema = definition_schema(kind)
    _add_defaults(schema, _shape(kind))
    return schema


def _add_defaults(schema: Mapping[str, Json], shape: type) -> None:
    properties = cast("dict[str, dict[str, Json]]", schema["properties"])
    for one in fields(shape):
        if isinstance(one.default_factory, type) and is_dataclass(one.default_factory):
            _add_defaults(properties[one.name], one.default_factory)
        elif one.default is not MISSING:
            properties[one.name]["default"] = codec.to_json(one.default)


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


def definition_of(version: GraderVersion) -> Definition:
    """The definition of a stored version, read once for all that it grades.

    Raises:
        ShapeError: If this assay cannot read it.
    """
    text = json.dumps(version.definition)
    if len(text) > _REMEMBERED_BYTES:
        return definition_from(version.kind, version.definition)
    return _remembered(version.kind, text)


@lru_cache(maxsize=256)
def _remembered(kind: str, text: str) -> Definition:
    return definition_from(kind, cast("dict[str, Json]", json.loads(text)))


def read_definition(
    kind: Json, data: Json, path: Path, problems: list[Problem]
) -> Definition | None:
    """Read a definition that stands somewhere in a document."""
    if not isinstance(kind, str) or kind not in KINDS:
        message = "'kind' is required" if kind is None else f"unknown kind {kind!r:.100}"
        hint = nearest(str(kind)[:100], list(KINDS))
        if kind is None:
            hint = "valid: " + ", ".join(KINDS)
        problems.append(Problem((*path[:-1], "kind"), message, hint, at_key=kind is None))
        return None
    if wrong := not_plain(data):
        problems.append(Problem(path, wrong))
        return None
    here: list[Problem] = []
    definition = _read(kind, data, here)
    problems.extend(replace(problem, path=(*path, *problem.path)) for problem in here)
    return definition


def _read(kind: str, data: Json, problems: list[Problem]) -> Definition | None:
    if isinstance(data, dict) and kind not in ("custom", "declared"):
        hint = f"store it as the kind 'declared', with graders: [{{type: {kind}, ...}}]"
        said = "only declared graders take it from rows"
        problems += [Problem((name,), said, hint) for name, one in data.items() if is_from(one)]
        if problems:
            return None
    shape = codec.read(_shape(kind), data, (), problems)
    if problems:
        return None
    written = cast("dict[str, Json]", codec.to_json(shape))
    if kind == "custom":
        return Definition(kind, written)
    if kind == "declared":
        listed = cast("Sequence[Mapping[str, Json]]", written["graders"])
        found = [read_spec(dict(g), (), problems, base=_NOWHERE) for g in listed]
        return Definition(kind, written, tuple(spec for spec in found if spec is not None))
    if kind.endswith("_judge"):
        written["judge_model"] = cast("str", getattr(shape, "judge_model"))  # noqa: B009 - a made class
        problems.extend(_judge_problems(written))
    if problems:
        return None
    spec = _spec(kind, written)
    try:
        spec.kind.grader.check_options(spec.options)
    except ShapeError as error:
        problems.extend(error.problems)
    except InputError as error:
        problems.append(_placed(error, shape))
    return Definition(kind, written, (spec,))


def _spec(kind: str, data: Mapping[str, Json]) -> GraderSpec:
    """The declared grader that a definition of one grader means."""
    options = dict(data)
    if kind.endswith("_judge"):
        panel = cast("dict[str, Json]", options.pop("panel", {}))
        options["model"] = options.pop("judge_model")
        options |= panel
    if kind == "prebuilt_judge":
        kind = cast("str", options.pop("type")).lower()
    return GraderSpec(type=kind, options=options)


def _judge_problems(data: dict[str, Json]) -> Iterator[Problem]:
    """What is wrong with a judge that its grader does not say, or not by the stored field."""
    from assay.graders.judges.template_context import read_examples
    from assay.models import parse_reference

    try:
        parse_reference(cast("str", data["judge_model"]))
    except InputError as error:
        yield Problem(("judge_model",), error.message, error.hint)
    for name, text in data.items():
        size = len(text.encode("utf-8", "replace")) if isinstance(text, str) else 0
        if size > _MAX_TEXT_BYTES:
            yield Problem((name,), f"{size} bytes; the limit is {_MAX_TEXT_BYTES}")
    examples = cast("list[Json]", data.get("examples") or [])
    if len(examples) > _MAX_EXAMPLES:
        yield Problem(("examples",), f"{len(examples)} examples; the limit is {_MAX_EXAMPLES}")
        return
    try:
        if examples:
            data["examples"] = [example.to_json() for example in read_examples(examples)]
    except InputError as error:
        yield _placed(error, None)


def _placed(error: InputError, shape: object) -> Problem:
    """What a grader says of its options, at the field that it is about."""
    if place := error.location.field:
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", place)]
        return Problem(tuple(parts), error.message, error.hint)
    said = re.match(r"(\w+)(: )?", error.message)
    name = said[1] if said else ""
    message = error.message[said.end() :] if said and said[2] else error.message
    message = message.removeprefix(f"{name} ") if message.startswith(f"{name} must ") else message
    if name in field_parameters(type(shape)):
        return Problem((name,), message, error.hint)
    panel = cast("object", getattr(shape, "panel", None))
    if name in field_parameters(type(panel)):
        return Problem(("panel", name), message, error.hint)
    return Problem((), error.message, error.hint)


_SECRET_NAME = re.compile(r"ASSAY_SECRET_[A-Z0-9_]{1,100}")


def _secret_problems(name: str) -> Iterator[Problem]:
    """A secret that is not named by a variable meant for it."""
    if name and not _SECRET_NAME.fullmatch(name):
        # Whoever may store a grader chooses the name and where the secret is sent: any other
        # variable of a server's would be theirs for the asking.
        message = "must be the name of a variable that begins with ASSAY_SECRET_"
        hint = "capital letters, digits and _; put the secret itself into that variable"
        yield Problem(("secret_env",), message, hint)


def _declared_problems(graders: Sequence[Mapping[str, Json]]) -> list[Problem]:
    """What is wrong with a list of declared graders that is to be stored."""
    problems: list[Problem] = []
    if not graders:
        problems.append(Problem(("graders",), "there are no graders", "declare at least one"))
    if len(graders) > _MAX_GRADERS:
        problems.append(
            Problem(("graders",), f"{len(graders)} graders; the limit is {_MAX_GRADERS}")
        )
        return problems
    specs: list[GraderSpec | None] = []
    for number, grader in enumerate(graders):
        before = len(problems)
        problems.extend(_foreign(dict(grader), ("graders", number)))
        if len(problems) == before:
            specs.append(read_spec(dict(grader), ("graders", number), problems, base=_NOWHERE))
    return problems or credit_problems([spec for spec in specs if spec], ("graders",))


def lacking_parts(specs: Sequence[GraderSpec]) -> Iterator[tuple[str, str]]:
    """What graders need that no row of a dataset has, as (grader, part)."""
    for spec in specs:
        kind = spec.kind
        for name, parameter in kind.parameters.items():
            part = kind.filled_from.get(name, name)
            given = spec.gives(name) or not parameter.required
            if part in SUBMISSION_PARTS and part not in _ROW_PARTS and not given:
                yield spec.label, part


def _foreign(data: Json, path: codec.Path) -> Iterator[Problem]:
    """Classes, files and other secrets that a declaration names, at any depth."""
    if isinstance(data, dict):
        name = data.get("type")
        if isinstance(name, str) and name.startswith("python:"):
            hint = "store it as a grader of the kind 'custom'"
            yield Problem((*path, "type"), "a stored grader imports no class", hint)
        elif isinstance(name, str):
            yield from _files(name, data, path)
        secret = data.get("secret_env")
        if name == "external_endpoint" and isinstance(secret, str):
            for problem in _secret_problems(secret):
                yield replace(problem, path=(*path, *problem.path))
        for key, item in data.items():
            yield from _foreign(item, (*path, key))
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from _foreign(item, (*path, number))


def _files(name: str, data: Mapping[str, Json], path: codec.Path) -> Iterator[Problem]:
    if name not in DECLARED:
        return  # unknown: `read_spec` says so, or it is no grader's type at all
    kind: Kind = kind_of(name)
    for option, parameter in kind.parameters.items():
        if option in data and named_paths(parameter.annotation, data[option]):
            message = f"{option!r} names a file, and a stored grader has none beside it"
            inline = "give its text as 'source'" if "source" in kind.parameters else ""
            hint = inline or "write the content into the definition, or keep it in a case"
            yield Problem((*path, option), message, hint)


def not_plain(data: Json) -> str:
    """Why data cannot be stored and shown as it is; empty if it can.

    Walks without recursion, for what is nested too deeply is to be found by it.
    """
    size = 0
    waiting: list[tuple[Json, int]] = [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        size += 2 * len(value) if isinstance(value, dict | list) else 2
        if depth > _MAX_DEPTH:
            return f"nested more than {_MAX_DEPTH} levels deep"
        if isinstance(value, str):
            try:
                size += len(value.encode())
            except UnicodeEncodeError:
                return "holds half a character (a lone surrogate)"
        elif isinstance(value, float) and not math.isfinite(value):
            return f"holds {value}, which JSON has no number for"
        elif isinstance(value, int) and abs(value) >= _MOST:
            return f"holds a whole number of {value.bit_length()} bits"
        if size > MAX_DEFINITION_BYTES:
            return f"larger than {MAX_DEFINITION_BYTES} bytes"
        if isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
    return ""
