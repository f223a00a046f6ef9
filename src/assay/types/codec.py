"""Plain data to JSON and back, checked against the annotations of dataclasses.

One codec serves traces, runs, YAML cases and grader options, so that all of them refuse the same
mistakes with the same words. `from_json` reports every problem at once, each with its path, and
names the nearest valid field for an unknown one.

Supported annotations: ``str``, ``bool``, ``int``, ``float``, ``None``, ``Literal``, unions,
``list``/``tuple[T, ...]``/``Sequence``, ``dict``/``Mapping`` with string keys, dataclasses, and
``Json`` or ``object`` for anything. ``Annotated`` with `Within` or `Filled` says what of a type is
taken. A union of dataclasses is told apart by the key ``type``,
which must equal the class's ``TAG``.
"""

from __future__ import annotations

import dataclasses
import sys
import types as python_types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast

from assay.errors import AssayError, InputError, Location, nearest
from assay.frozen import frozen
from assay.scoring.json_safe import Json, json_safe

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Path = tuple[str | int, ...]


class _AnyJson:
    """Stands for ``Json`` while annotations are resolved: its recursion needs no unfolding."""


@frozen
class Problem:
    """One thing that is wrong in some data.

    Attributes:
        path: Keys and indices from the root to the place.
        message: What is wrong there.
        hint: How to fix it, or empty.
        at_key: Whether the key itself is at fault, not the value behind it.
    """

    path: Path
    message: str
    hint: str = ""
    at_key: bool = False

    @property
    def field(self) -> str:
        """The path as people write it, such as ``graders[1].weight``."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


class ShapeError(InputError):
    """Data does not have the shape that was asked for.

    Attributes:
        problems: Every problem found, in order of appearance.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            first.message + more, location=Location(field=first.field), hint=first.hint
        )
        self.problems = tuple(problems)


@frozen
class Within:
    """How large a number may be; none may be infinite.

    Attributes:
        least: The least, which it may be itself unless it must be ``above``.
        most: The most.
        above: Whether it must be more than the least.
    """

    least: float = 0.0
    most: float = float("inf")
    above: bool = False

    def fault(self, value: object) -> str:
        """What is wrong with a value, or ""."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"must be a number, got {value!r}"
        above = value > self.least if self.above else value >= self.least
        if above and value <= self.most and value < float("inf"):
            return ""
        if self.most == float("inf"):
            said = f"more than {self.least:g}" if self.above else f"{self.least:g} or more"
        elif self.above:
            said = f"above {self.least:g} and at most {self.most:g}"
        else:
            said = f"in [{self.least:g}, {self.most:g}]"
        return f"must be {said}, got {value!r}"

    def schema(self) -> dict[str, Json]:
        """It in JSON Schema."""
        least: dict[str, Json] = {"exclusiveMinimum" if self.above else "minimum": self.least}
        return least if self.most == float("inf") else {**least, "maximum": self.most}


@frozen
class Filled:
    """That a text is not blank, or a list not empty."""

    hint: str = ""

    def fault(self, value: object) -> str:
        """What is wrong with a value, or ""."""
        if isinstance(value, str):
            return "" if value.strip() else "must not be blank"
        return "" if value else "must not be empty"

    def schema(self) -> dict[str, Json]:
        """Nothing: how much there must be is called otherwise for a text and for a list."""
        return {}


Share: TypeAlias = Annotated[float, Within(0, 1)]
Seconds: TypeAlias = Annotated[float, Within(0, above=True)]
Count: TypeAlias = Annotated[int, Within(0)]


@frozen
class Reading:
    """How data is read that another version of assay may have written.

    Attributes:
        passes_over: Whether fields that nobody knows here are passed over.
        forms: How classes are read that have a form of their own.
    """

    passes_over: bool = False
    forms: Mapping[type, Callable[[Mapping[str, Json]], object]] = field(
        default_factory=dict[type, Any]
    )


_STRICT = Reading()


def to_json(value: object) -> Json:
    """Turn dataclasses, tuples and mappings into plain JSON, losslessly.

    A class with a ``TAG`` is written with ``"type": TAG``; fields that hold their default are
    left out. Values that no annotation of ours can hold are written by `json_safe`.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {str(key): to_json(item) for key, item in entries.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in cast("Sequence[object]", value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(item) for name, item in _written(value).items()}
    return json_safe(value)


def json_level(value: object) -> Json:
    """One level of `to_json`: the ``default`` of a JSON encoder, which goes on below by itself."""
    if hasattr(type(value), "__dataclass_fields__"):
        return cast("Json", _written(cast("DataclassInstance", value)))
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, Json]", value)
        return {str(key): item for key, item in entries.items()}
    return json_safe(value)


def from_json(annotation: type[T], data: Json, how: Reading = _STRICT) -> T:
    """Read JSON into a type.

    Raises:
        ShapeError: With every problem found.
    """
    problems: list[Problem] = []
    try:
        value = read(annotation, data, (), problems, how)
    except RecursionError:
        raise ShapeError([Problem((), "nested too deeply")]) from None
    if problems:
        raise ShapeError(problems)
    return cast("T", value)


def read(  # noqa: PLR0911 - one return per kind of annotation
    annotation: object, data: Json, path: Path, problems: list[Problem], how: Reading = _STRICT
) -> object:
    """Read JSON at a path, adding to ``problems`` instead of raising."""
    if annotation is float and isinstance(data, int) and not isinstance(data, bool):
        if abs(data) > sys.float_info.max:
            return _wrong(path, problems, "a number that a float can hold", data)
        return float(data)
    if isinstance(annotation, type) and annotation in _SCALARS:
        if type(data) is annotation or (annotation is str and isinstance(data, str)):
            return data
        return _wrong(path, problems, _SCALARS[annotation], data)
    if annotation in _ANYTHING:
        return data
    if annotation is None or annotation is type(None):
        return None if data is None else _wrong(path, problems, "null", data)
    if dataclasses.is_dataclass(typing.get_origin(annotation) or annotation):
        return _read_dataclass(cast("type", annotation), data, path, problems, how)
    return _read_generic(annotation, data, path, problems, how)


_ANYTHING: tuple[object, ...] = (_AnyJson, object, typing.Any)
_LISTS = (list, tuple, Sequence, Iterable)
_SCALARS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def _read_generic(  # noqa: PLR0911 - one return per kind of annotation
    annotation: object, data: Json, path: Path, problems: list[Problem], how: Reading
) -> object:
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        before = len(problems)
        value = read(arguments[0], data, path, problems, how)
        if len(problems) == before:
            problems.extend(_faults(annotation, data, path))
        return value
    if origin in (Union, python_types.UnionType):
        return _read_union(arguments, data, path, problems, how)
    if origin is Literal:
        if data in arguments and any(type(data) is type(a) for a in arguments):
            return data
        given = f"{data!r} is not valid here"
        problems.append(Problem(path, given, nearest(str(data), [str(a) for a in arguments])))
        return None
    if origin in _LISTS:
        if not isinstance(data, list):
            return _wrong(path, problems, "a list", data, "such as [a, b]")
        read_items = [read(arguments[0], d, (*path, i), problems, how) for i, d in enumerate(data)]
        return tuple(read_items) if origin is tuple else read_items
    if origin in (dict, Mapping):
        if not isinstance(data, dict):
            shape = f"such as {{NAME: {_describe(arguments[1])}}}"
            return _wrong(path, problems, "a mapping", data, shape)
        return {k: read(arguments[1], d, (*path, k), problems, how) for k, d in data.items()}
    raise TypeError(f"the codec cannot read {annotation!r}")


def check_fields(made: object) -> None:
    """Refuse an object of a dataclass if a field is not what `Within` or `Filled` says of it."""
    problems: list[Problem] = []
    for name, annotation in _made_of(type(made)).items():
        problems += _faults(annotation, getattr(made, name), (name,))
    if problems:
        raise ShapeError(problems)


@lru_cache(maxsize=256)
def _made_of(kind: type) -> dict[str, object]:
    """The annotations of a dataclass that are made of others."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True, localns={"Json": _AnyJson})
    except (NameError, AttributeError, TypeError):  # not importable: nothing is said of them
        return {}
    known = [one.name for one in dataclasses.fields(kind)]
    return {name: hints[name] for name in known if typing.get_origin(hints[name]) is not None}


def _faults(annotation: object, value: object, path: Path) -> list[Problem]:
    """What `Within` and `Filled` in an annotation have against a value, whatever its type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        found = ((check, check.fault(value)) for check in _checks(annotation))
        return [Problem(path, fault, getattr(check, "hint", "")) for check, fault in found if fault]
    if origin in (Union, python_types.UnionType):
        # Python may give what fits none, such as infinity for a whole number: no option excuses it.
        fitting = [one for one in arguments if _fits(one, cast("Json", value))] or arguments
        return [problem for option in fitting for problem in _faults(option, value, path)]
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return [one for key, item in items for one in _faults(arguments[1], item, (*path, key))]
    return []


def _checks(annotation: object) -> list[Within | Filled]:
    said = getattr(annotation, "__metadata__", ())
    return [one for one in said if isinstance(one, Within | Filled)]


def _read_union(
    options: tuple[object, ...], data: Json, path: Path, problems: list[Problem], how: Reading
) -> object:
    if data is None and type(None) in options:
        return None
    fitting = [o for o in options if _fits(o, data)]
    if len(fitting) == 1:
        return read(fitting[0], data, path, problems, how)
    tagged = {getattr(o, "TAG", None): o for o in fitting}
    if fitting and None not in tagged and isinstance(data, dict):
        tag = data.get("type")
        if isinstance(tag, str) and tag in tagged:
            return read(tagged[tag], data, path, problems, how)
        names = [str(name) for name in tagged]
        problems.append(Problem((*path, "type"), f"{tag!r} is unknown", nearest(str(tag), names)))
        return None
    for option in fitting:
        tried: list[Problem] = []
        value = read(option, data, path, tried, how)
        if not tried:
            return value
    return _wrong(path, problems, " or ".join(_describe(o) for o in options), data)


def _fits(option: object, data: Json) -> bool:  # noqa: PLR0911 - one return per kind
    """Whether an option of a union can be what the data's JSON kind means."""
    if typing.get_origin(option) is Annotated:
        return _fits(typing.get_args(option)[0], data)
    kind = typing.get_origin(option) or option
    if kind in _ANYTHING:
        return True
    if isinstance(data, Mapping):
        return kind in (dict, Mapping) or dataclasses.is_dataclass(kind)
    if isinstance(data, list | tuple):
        return kind in _LISTS
    if kind is Literal:  # also where it is none of the words: reading it names the nearest one
        return any(type(data) is type(word) for word in typing.get_args(option))
    if kind is float:
        return isinstance(data, int | float) and not isinstance(data, bool)
    return isinstance(data, str) if kind is str else type(data) is kind


def _read_dataclass(
    kind: type, data: Json, path: Path, problems: list[Problem], how: Reading
) -> object:
    shape = _shape(kind)
    if not isinstance(data, dict):
        keys = shape.required or tuple(shape.annotations)[:1]
        written = ", ".join(f"{key}: ..." for key in keys)
        return _wrong(path, problems, "a mapping", data, f"such as {{{written}}}" if keys else "")
    if own := how.forms.get(kind):
        try:
            return own(data)
        except AssayError as error:
            problems.append(Problem(path, error.message, error.hint))
            return None
    before = len(problems)
    values: dict[str, object] = {}
    for key, item in data.items():
        if key in shape.annotations:
            values[key] = read(shape.annotations[key], item, (*path, key), problems, how)
        elif not (how.passes_over or (key == "type" and item == shape.tag)):
            message = f"unknown field {key!r}"
            hint = nearest(key, list(shape.annotations))
            problems.append(Problem((*path, key), message, hint, at_key=True))
    problems.extend(
        Problem((*path, name), f"{name!r} is required", at_key=True)
        for name in shape.required
        if name not in data
    )
    if len(problems) > before:
        return None
    try:
        return cast("Callable[..., object]", typing.get_origin(kind) or kind)(**values)
    except ShapeError as error:
        problems.extend(dataclasses.replace(p, path=(*path, *p.path)) for p in error.problems)
    except InputError as error:
        where = (*path, error.location.field) if error.location.field else path
        problems.append(Problem(where, error.message, error.hint))
    return None


@frozen
class _Shape:
    annotations: dict[str, object]
    required: tuple[str, ...]
    tag: str | None


def field_types(kind: type) -> Mapping[str, object]:
    """The types of the fields of a dataclass, with what stands for the variables of a generic."""
    return _shape(kind).annotations


@lru_cache(maxsize=256)
def _shape(kind: type) -> _Shape:
    whole = cast("Any", typing.get_origin(kind) or kind)
    hints = typing.get_type_hints(whole, localns={"Json": _AnyJson}, include_extras=True)
    meant = _meant(kind)
    fields = [f for f in dataclasses.fields(whole) if f.init]
    missing = dataclasses.MISSING
    return _Shape(
        annotations={f.name: _filled(hints[f.name], meant) for f in fields},
        required=tuple(
            f.name for f in fields if f.default is missing and f.default_factory is missing
        ),
        tag=getattr(kind, "TAG", None),
    )


def _meant(kind: object) -> dict[object, object]:
    """What stands for the variables of a generic, or of the generics that a class is made of."""
    whole = typing.get_origin(kind) or kind
    variables: tuple[object, ...] = getattr(whole, "__parameters__", ())
    found = dict(zip(variables, typing.get_args(kind), strict=False))
    for base in getattr(whole, "__orig_bases__", ()):
        found |= _meant(base)
    return found


def _filled(hint: Any, meant: Mapping[object, object]) -> object:  # noqa: ANN401 - any annotation
    variables = getattr(hint, "__parameters__", ())
    return hint[tuple(meant[one] for one in variables)] if variables else hint


def _written(value: DataclassInstance) -> dict[str, object]:
    """What is written of an object: its tag, and the fields that do not hold their default."""
    tag, fields = _writing(type(value))
    written: dict[str, object] = {} if tag is None else {"type": tag}
    for name, usual in fields:
        item = cast("object", getattr(value, name))
        if item is usual:
            continue
        if usual is dataclasses.MISSING or item != usual or type(item) is not type(usual):
            written[name] = item
    return written


@lru_cache(maxsize=256)
def _writing(kind: type[DataclassInstance]) -> tuple[str | None, tuple[tuple[str, object], ...]]:
    """A class's tag, and what is written of it: each field with its default, or ``MISSING``."""
    tag = getattr(kind, "TAG", None)
    missing = dataclasses.MISSING
    fields = tuple(
        (f.name, f.default if f.default_factory is missing else f.default_factory())
        for f in dataclasses.fields(kind)
        if f.init
    )
    return tag if isinstance(tag, str) else None, fields


def _wrong(path: Path, problems: list[Problem], expected: str, data: Json, hint: str = "") -> None:
    if expected == "text" and isinstance(data, int | float):
        hint = "quote it"
    problems.append(Problem(path, f"expected {expected}, got {_show(data)}", hint))


def _show(data: Json) -> str:
    if data is None:
        return "null"
    if isinstance(data, dict):
        return "a mapping"
    if isinstance(data, list):
        return "a list"
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _describe(annotation: object) -> str:
    if typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if annotation in _ANYTHING:
        return "..."
    if annotation is type(None):
        return "null"
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return " or ".join(repr(a) for a in typing.get_args(annotation))
    return "a list" if origin in _LISTS else "a mapping"


def schema(  # noqa: PLR0911 - one return per kind
    annotation: object, of_record: Callable[[type], dict[str, Json]] | None = None
) -> dict[str, Json]:
    """The JSON Schema (draft 2020-12, without ``$schema``) of an annotation.

    Field descriptions are taken from the ``Attributes:`` section of a class's docstring.

    Args:
        annotation: The annotation.
        of_record: The schema of a dataclass in it; by default all of it.
    """
    scalar: dict[object, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if annotation in scalar:
        return {"type": scalar[annotation]}
    if annotation is type(None):
        return {"type": "null"}
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return (of_record or _dataclass_schema)(annotation)
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        checks = (check.schema() for check in _checks(cast("object", annotation)))
        return schema(arguments[0], of_record) | {k: v for one in checks for k, v in one.items()}
    if origin in (Union, python_types.UnionType):
        return {"anyOf": [schema(a, of_record) for a in arguments]}
    if origin is Literal:
        return {"enum": [cast("Json", a) for a in arguments]}
    if origin in _LISTS:
        return {"type": "array", "items": schema(arguments[0], of_record)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema(arguments[1], of_record)}
    return {}


def _dataclass_schema(kind: type) -> dict[str, Json]:
    shape = _shape(kind)
    descriptions = field_docs(kind)
    properties: dict[str, Json] = {}
    for name, annotation in shape.annotations.items():
        described = schema(annotation)
        if name in descriptions:
            described["description"] = descriptions[name]
        properties[name] = described
    if shape.tag is not None:
        properties = {"type": {"const": shape.tag}, **properties}
    return {
        "type": "object",
        "properties": properties,
        "required": [*(["type"] if shape.tag is not None else []), *shape.required],
        "additionalProperties": False,
    }


def field_docs(kind: type) -> dict[str, str]:
    """What the ``Attributes:`` of a class and of its bases say of each field."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        docs |= _own_docs(base)
    return docs


def _own_docs(kind: type) -> dict[str, str]:
    docs: dict[str, str] = {}
    name = ""
    indent = -1
    _, _, attributes = (kind.__doc__ or "").partition("Attributes:")
    for line in attributes.splitlines():
        head, colon, rest = line.strip().partition(": ")
        deep = len(line) - len(line.lstrip())
        if colon and head.isidentifier() and indent in (-1, deep):
            indent = deep
            name, docs[head] = head, rest
        elif name and line.strip():
            docs[name] += " " + line.strip()
        elif docs:
            name = ""
    return docs
