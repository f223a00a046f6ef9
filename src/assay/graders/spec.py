"""`GraderSpec`: a grader as a case or a grader file declares it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import cast

from assay.errors import InputError, nearest
from assay.frozen import frozen
from assay.graders.base import Grader
from assay.graders.batched import Batched
from assay.graders.from_row import (
    FROM_SCHEMA,
    check_option,
    is_from,
    nearly_from,
    read_from,
    refused,
    value_from,
)
from assay.graders.kinds import KINDS, Kind, kind_of, own_kind
from assay.graders.paths import resolve_paths
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Path, Problem
from assay.types.submission import SUBMISSION_PARTS, Submission

_NEVER_WRITTEN = ("workspace", "trace", "thread")
"""Parts of a submission that no YAML can hold."""

_COMMON: dict[str, type] = {"type": str, "name": str, "weight": float, "gate": bool}


@frozen(kw_only=True)
class GraderSpec(Batched):
    """One declared grader.

    Attributes:
        type: Its kind; see `assay.graders.kinds.KINDS`.
        name: What its score is called; the kind's name by default.
        weight: Relative contribution to the combined score; negative for a penalty.
        gate: A gate adds no credit and disqualifies (score 0) unless it passes fully.
        options: What the kind takes, with paths made absolute.
        from_row: Options that come from the row or the case, each with the place there, such as
            ``metadata.pattern``. Those of a case are among the options as well, once it was read.
        said: What is told in the metadata of its scores, such as why it is graded as it is. It
            changes no score, so it is not part of the digest.
        own: The class that grades, where Python gave it: that of its name may be another one.
    """

    type: str
    name: str = ""
    weight: float = 1.0
    gate: bool = False
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    from_row: Mapping[str, str] = field(default_factory=dict[str, str])
    said: Mapping[str, Json] = field(default_factory=dict[str, Json])
    own: type[Grader] | None = None

    @property
    def label(self) -> str:
        """The name of its score."""
        if self.name:
            return self.name
        return self.type.rpartition(":")[2] if self.type.startswith("python:") else self.type

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return kind_of(self.type) if self.own is None else own_kind(self.type, self.own)

    @property
    def written(self) -> dict[str, Json]:
        """The options as they were written, whatever a row says."""
        written = {name: one for name, one in self.options.items() if name not in self.from_row}
        return {**written, **{name: {"from": place} for name, place in self.from_row.items()}}

    @property
    def open(self) -> dict[str, str]:
        """What has yet to come from a row, by option."""
        return {name: at for name, at in self.from_row.items() if name not in self.options}

    def gives(self, name: str) -> bool:
        """Whether it says what an option is, or where it comes from."""
        return name in self.options or name in self.from_row

    def given_by(self, row: Submission) -> dict[str, object]:
        """The options that a row gives; the one place where this is decided.

        Raises:
            InputError: For a row that lacks one, or has something else there.
        """
        return {name: value_from(self.kind, name, place, row) for name, place in self.open.items()}


def pass_mark(graders: Sequence[GraderSpec]) -> float:
    """The reward that passes where nobody says another: a single grader's own, else 1."""
    parameter = graders[0].kind.parameters.get("pass_threshold") if len(graders) == 1 else None
    if parameter is None or not isinstance(parameter.default, float):
        return 1.0
    given = graders[0].options.get("pass_threshold", parameter.default)
    return float(given) if isinstance(given, int | float) else 1.0


def own_seconds(specs: Iterable[GraderSpec]) -> float:
    """What graders' commands and calls may take by their own limits, one after the other."""
    own = 0.0
    for spec in specs:
        for name in ("timeout_s", "timeout_seconds"):
            parameter = spec.kind.parameters.get(name)
            seconds = spec.options.get(name) or (parameter.default if parameter else 0.0)
            own += float(seconds) if isinstance(seconds, int | float) else 0.0
    return own


def declared(grader: Batched | type[Batched], options: Mapping[str, object] = {}) -> GraderSpec:
    """A grader of Python's as a file would declare it.

    ``grader``: A class, or an object with its options in its fields; or what is declared already.
    """
    if isinstance(grader, GraderSpec):
        kept = {name: at for name, at in grader.from_row.items() if name not in options}
        changed = replace(grader, options={**grader.options, **options}, from_row=kept)
        spec = _checked(_parted(changed))
        _check_values(spec)
        return spec
    made = grader if isinstance(grader, type) else type(grader)
    place = f"{made.__module__}:{made.__qualname__}"
    kind = next((name for name, target in KINDS.items() if target == place), "")
    given = dict(options)
    if not isinstance(grader, type) and is_dataclass(grader):
        fields_of = ((one, getattr(grader, one.name)) for one in fields(grader) if one.init)
        given |= {one.name: value for one, value in fields_of if value != one.default}
    spec = GraderSpec(
        type=kind or f"python:{place}",
        name="" if kind else str(vars(made).get("name", "")),
        options=cast("dict[str, Json]", given),
        own=None if kind else cast("type[Grader]", made),
    )
    return _checked(_parted(spec))


def _parted(spec: GraderSpec) -> GraderSpec:
    """The grader with what comes from rows told apart from its options."""
    problems: list[Problem] = []
    options, from_row = dict(spec.options), dict(spec.from_row)
    for name, option in spec.options.items():
        if is_from(option):
            from_row[name] = read_from(spec.kind, name, option, (spec.label, name), problems)
            del options[name]
    if problems:
        raise codec.ShapeError(problems)
    return replace(spec, options=options, from_row=from_row) if from_row else spec


def _checked(spec: GraderSpec) -> GraderSpec:
    known = spec.kind.parameters
    for name in spec.written:
        if name not in known and not spec.kind.takes_any:
            raise InputError(f"{spec.label} takes no option {name!r}", hint=nearest(name, [*known]))
    filled = {*SUBMISSION_PARTS, *spec.kind.filled_from, *spec.written}
    if lacking := [p.name for p in known.values() if p.required and p.name not in filled]:
        raise InputError(f"{spec.label} needs {', '.join(map(repr, lacking))}")
    return spec


def _check_values(spec: GraderSpec) -> None:
    """Refuse values as those of a file are refused: else every submission would be an error."""
    problems: list[Problem] = []
    for name, value in spec.options.items():
        if (parameter := spec.kind.parameters.get(name)) is not None:
            check_option(parameter.annotation, value, (spec.label, name), problems)
    if problems:
        raise codec.ShapeError(problems)
    if not spec.from_row:
        spec.kind.grader.check_options(spec.options)


def read_spec(
    data: Json,
    path: Path,
    problems: list[Problem],
    *,
    base: str,
    row: Submission | None = None,
) -> GraderSpec | None:
    """Read one declared grader and check everything about it.

    ``row``: What is known of all that it grades, such as what a case expects; options that come
    from there are filled in.
    """
    before = len(problems)
    if not isinstance(data, dict):
        problems.append(Problem(path, "a grader is a mapping with a 'type'"))
        return None
    kind = _read_kind(data, path, problems, base)
    common = {
        key: codec.read(annotation, data[key], (*path, key), problems)
        for key, annotation in _COMMON.items()
        if key in data and key != "type"
    }
    weight = common.get("weight")
    if isinstance(weight, float) and not math.isfinite(weight):
        problems.append(Problem((*path, "weight"), f"a weight must be finite, got {weight}"))
    if common.get("gate") and isinstance(weight, float) and weight < 0.0:
        message = "a gate adds no credit and cannot be a penalty"
        problems.append(Problem((*path, "weight"), message, "remove it"))
    if kind is None:
        return None
    options, from_row = _read_options(kind, data, path, problems, base)
    spec = GraderSpec(
        type=kind.name,
        name=cast("str", common.get("name") or _own_name(kind)),
        weight=cast("float", common.get("weight", 1.0)),
        gate=cast("bool", common.get("gate", False)),
        options=options,
        from_row=from_row,
    )
    if row is not None and len(problems) == before:
        spec = _filled(spec, row, path, problems)
    if len(problems) == before and not spec.open:
        try:
            kind.grader.check_options(spec.options)
        except codec.ShapeError as error:
            problems.extend(replace(found, path=(*path, *found.path)) for found in error.problems)
        except InputError as error:
            named = _named(error, spec.options)
            problems.append(Problem((*path, *named), error.message, error.hint))
    return None if len(problems) > before else spec


def _filled(spec: GraderSpec, row: Submission, path: Path, problems: list[Problem]) -> GraderSpec:
    """The grader with what a case says of it; what was asked is known only when it is."""
    known = {name: at for name, at in spec.from_row.items() if at.partition(".")[0] != "question"}
    options = dict(spec.options)
    for name, place in known.items():
        try:
            alone = replace(spec, from_row={name: place})
            options |= cast("dict[str, Json]", alone.given_by(row))
        except InputError as error:
            problems.append(Problem((*path, name), error.message, error.hint))
    return replace(spec, options=options)


def _own_name(kind: Kind) -> str:
    """What a class of one's own calls itself; "" where it leaves that to us."""
    return str(vars(kind.grader).get("name", "")) if kind.name.startswith("python:") else ""


def _named(error: InputError, options: Mapping[str, object]) -> tuple[str, ...]:
    """The option that a message begins with the name of, else the one whose text it quotes."""
    word = re.match(r"\w*", error.message)
    if word and word[0] in options:
        return (word[0],)
    quoted = [name for name, one in options.items() if one and repr(one) in error.message]
    return (quoted[0],) if len(quoted) == 1 else ()


def _read_kind(
    data: Mapping[str, Json], path: Path, problems: list[Problem], base: str
) -> Kind | None:
    name = data.get("type")
    if not isinstance(name, str):
        message = "'type' is required" if name is None else "'type' must be text"
        hint = "'kind' is called 'type'" if "kind" in data else "one of " + ", ".join(KINDS)
        problems.append(Problem((*path, "type"), message, hint, at_key=name is None))
        return None
    if name.startswith("python:") and name.rpartition(":")[0].endswith(".py"):
        file, _, attribute = name.removeprefix("python:").rpartition(":")
        name = f"python:{os.path.abspath(os.path.join(base, file))}:{attribute}"  # noqa: PTH100, PTH118 - takes a NUL
    try:
        return kind_of(name)
    except InputError as error:
        problems.append(Problem((*path, "type"), error.message, error.hint))
        return None


def _read_options(
    kind: Kind, data: Mapping[str, Json], path: Path, problems: list[Problem], base: str
) -> tuple[dict[str, Json], dict[str, str]]:
    options: dict[str, Json] = {}
    from_row: dict[str, str] = {}
    for key, item in data.items():
        if key in _COMMON:
            continue
        parameter = kind.parameters.get(key)
        if is_from(item) and (parameter is not None or kind.takes_any):
            from_row[key] = read_from(kind, key, item, (*path, key), problems)
            continue
        if parameter is None:
            if kind.takes_any:
                options[key] = item
                continue
            hint = nearest(key, [*_COMMON, *kind.parameters])
            message = f"{kind.name} takes no option {key!r}"
            problems.append(Problem((*path, key), message, hint, at_key=True))
            continue
        before = len(problems)
        if key not in SUBMISSION_PARTS and (near := nearly_from(item)):
            problems.append(Problem((*path, key, near), f"{near!r} is no 'from'", "write 'from'"))
            continue
        check_option(parameter.annotation, item, (*path, key), problems)
        if len(problems) == before:
            options[key] = resolve_paths(
                parameter.annotation, item, base=base, path=(*path, key), problems=problems
            )
    for name, parameter in kind.parameters.items():
        filled = name in SUBMISSION_PARTS or name in kind.filled_from
        if parameter.required and not filled and name not in data:
            message = f"{kind.name} needs {name!r}"
            problems.append(Problem((*path, name), message, at_key=True))
    return options, from_row


def spec_schema(*, from_rows: bool = True) -> dict[str, Json]:
    """The JSON Schema of a declared grader, for editors.

    ``from_rows``: Whether options may come from a row: by ``$defs``, which belong at the root of
    the whole schema.
    """
    common: dict[str, Json] = {
        "name": {"type": "string", "description": "What its score is called."},
        "weight": {"type": "number", "description": "Relative contribution; 1.0 by default."},
        "gate": {"type": "boolean", "description": "Only disqualifies; adds no credit."},
    }
    branches: list[Json] = []
    for name in KINDS:
        kind = kind_of(name)
        docs = codec.field_docs(kind.grader.options_type())
        options = {
            p.name: {**codec.schema(p.annotation), "description": docs.get(p.name, "")}
            for p in kind.parameters.values()
            if p.name not in _NEVER_WRITTEN
        }
        for option in options.values():
            if not option["description"]:
                del option["description"]
        if from_rows:
            options = {
                key: option if refused(kind, key) else _or_from(option)
                for key, option in options.items()
            }
        required = [
            p.name
            for p in kind.parameters.values()
            if p.required and p.name not in SUBMISSION_PARTS and p.name not in kind.filled_from
        ]
        properties: dict[str, Json] = {"type": {"const": name}, **common}
        properties.update({key: cast("Json", option) for key, option in options.items()})
        branches.append(
            {
                "type": "object",
                "description": kind.description,
                "properties": properties,
                "required": ["type", *required],
                "additionalProperties": kind.takes_any,
            }
        )
    own: Json = {
        "type": "object",
        "description": "A Grader class of one's own.",
        "properties": {"type": {"type": "string", "pattern": "^python:"}, **common},
        "required": ["type"],
    }
    defs: dict[str, Json] = {"$defs": {"from": FROM_SCHEMA}} if from_rows else {}
    return {**defs, "oneOf": [*branches, own]}


def _or_from(option: dict[str, Json]) -> dict[str, Json]:
    about = {key: option[key] for key in ("description",) if key in option}
    plain = {key: rule for key, rule in option.items() if key not in about}
    shapes = plain["anyOf"] if plain.keys() == {"anyOf"} else [plain]
    return {"anyOf": [*cast("list[Json]", shapes), {"$ref": "#/$defs/from"}], **about}


def credit_problems(graders: Sequence[GraderSpec], path: codec.Path) -> list[Problem]:
    """What is wrong with well-formed graders whose rewards could only be 0."""
    if any(spec.weight > 0 and not spec.gate for spec in graders):
        return []
    message = "no grader adds credit: all are gates or have no positive weight"
    return [Problem(path, message, "add one with a weight above 0")]
