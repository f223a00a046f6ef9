"""Render Handlebars templates over plain data, within bounds.

A template comes from whoever writes a judge, its values from whoever is judged. A value is looked
up by its key and written; it is never called, walked by attribute, escaped, or read as a template
again. A value that comes from outside can be written into a fence of its own, wherever the template
puts it, so that no word of it stands where the template's own words stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from assay.errors import InputError, nearest
from assay.graders.judges.fence import FencedText
from assay.graders.judges.template_syntax import (
    MAX_TEMPLATE_BYTES,
    BlockNode,
    Expression,
    Literally,
    Lookup,
    Node,
    Path,
    Put,
    parse,
    place_of,
)
from assay.scoring.json_safe import Json

__all__ = [
    "MAX_OUTPUT",
    "MAX_STEPS",
    "MAX_TEMPLATE_BYTES",
    "Rendered",
    "check_template",
    "names_used",
    "render",
    "render_fenced",
]

MAX_OUTPUT = 1 << 20
"""Most characters that a template may become."""

MAX_STEPS = 100_000
"""Most tags and texts that are carried out, each as often as it is."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A template with its values."""

    text: str
    volatile: tuple[str, ...]
    material: int


class _Value(NamedTuple):
    value: Json
    source: str
    """The fence that it goes into; empty for trusted text."""


_NOTHING = _Value(None, "")
_PLAIN = json.JSONEncoder(allow_nan=False)


def render(template: str, context: Mapping[str, Json]) -> str:
    """Render a template: every value byte for byte as it is, without fences.

    ``template``: Handlebars: ``{{x}}``, which is the same as ``{{{x}}}``, paths, ``#if``,
    ``#unless``, ``#each``, ``#with``, ``else if``, ``lookup``, comments and ``~``.
    ``context``: Plain JSON. Lists have ``length``; a list or a mapping is written as JSON.
    """
    return render_fenced(template, context, {}).text


def render_fenced(
    template: str, context: Mapping[str, Json], untrusted: Mapping[str, str]
) -> Rendered:
    """Render a template, and put each text of an untrusted variable into a fence.

    ``untrusted``: Variables of the context whose texts are material, at any depth, with the name of
    the fence. A fence begins and ends on lines of its own.
    """
    if not template:
        return Rendered("", (), 0)
    nodes = parse(template)
    try:
        plain = cast("dict[str, Json]", json.loads(_PLAIN.encode(dict(context))))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the variables of a template must be plain JSON: {error}") from error
    output = _Output()
    scope = _Scope(_Value(plain, ""), None, {}, untrusted)
    _Renderer(output, scope).all(nodes, scope)
    return Rendered(str(output.text), tuple(output.text.volatile), output.material)


@dataclass(slots=True)
class _Output:
    text: FencedText = field(default_factory=FencedText)
    material: int = 0
    steps: int = 0

    def step(self, line: int, many: int = 1) -> None:
        self.steps += many
        if self.steps > MAX_STEPS:
            raise InputError(
                f"the template takes more than {MAX_STEPS:,} steps",
                location=place_of(line),
                hint="loops in loops over long lists do that",
            )

    def add(self, text: str, line: int, fence: str = "") -> None:
        self._check_room(len(text), line)
        if fence:
            self.material += len(text)
            self.text.add_fence(fence, text)
        else:
            self.text.add(text)
        self._check_room(0, line)

    def _check_room(self, more: int, line: int) -> None:
        if self.text.size + more > MAX_OUTPUT:
            raise InputError(
                f"the template becomes more than {MAX_OUTPUT:,} characters",
                location=place_of(line),
                hint="a judge reads all of it or nothing: show it less",
            )


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean: the value, the names and ``@`` data given on the way, and what is around."""

    value: _Value
    around: _Scope | None
    data: Mapping[str, _Value]
    untrusted: Mapping[str, str] = field(default_factory=dict[str, str])
    named: Mapping[str, _Value] = field(default_factory=dict[str, _Value])

    def find(self, path: Path) -> _Value:
        if path.is_data:
            return self._data(path)
        scope: _Scope | None = self
        if path.up == 0 and path.steps:
            while scope is not None:
                if path.steps[0] in scope.named:
                    return _walk(scope.named[path.steps[0]], path.steps[1:])
                scope = scope.around
            scope = self
        for _ in range(path.up):
            scope = scope and scope.around
        return _NOTHING if scope is None else scope.step(path.steps)

    def step(self, steps: Sequence[str]) -> _Value:
        if not steps or self.around is not None:
            return _walk(self.value, steps)
        # The outermost scope: its variables are material or not, each for itself.
        top = _walk(self.value, steps[:1])
        return _walk(_Value(top.value, self.untrusted.get(steps[0], "")), steps[1:])

    def _data(self, path: Path) -> _Value:
        scope: _Scope = self
        if path.steps[:1] == ("root",):
            while scope.around is not None:
                scope = scope.around
            return scope.step(path.steps[1:])
        # `@../index` is that of the loop around.
        wanted, left = path.steps[0] if path.steps else "", path.up
        place: _Scope | None = self
        while place is not None:
            if place.data:
                if left == 0:
                    return _walk(place.data.get(wanted, _NOTHING), path.steps[1:])
                left -= 1
            place = place.around
        return _NOTHING


def _walk(start: _Value, steps: Iterable[str]) -> _Value:
    return _Value(_step_into(start.value, steps), start.source)


def _step_into(value: Json, steps: Iterable[str]) -> Json:
    """What keys lead to; None where there is none. Lists have ``length``, and nothing else does."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step == "length":
            value = len(value)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


@dataclass(frozen=True, slots=True)
class _Renderer:
    output: _Output
    outermost: _Scope

    def all(self, nodes: Sequence[Node], scope: _Scope) -> None:
        for node in nodes:
            if isinstance(node, str):
                self.output.step(0)
                self.output.add(node, 0)
                continue
            self.output.step(node.line)
            found = self._value(node.value, scope)
            if isinstance(node, Put):
                self._put(found, node.line, _key(node.value))
            elif node.name == "each":
                self._each(node, found, scope)
            else:
                self._choose(node, found, scope)

    def _choose(self, node: BlockNode, found: _Value, scope: _Scope) -> None:
        is_with = node.name == "with"
        shows = _is_shown(found.value, takes_zero=node.takes_zero or is_with)
        if shows is (node.name == "unless"):
            self.all(node.otherwise, scope)
        elif is_with:
            named = dict(zip(node.names, (found,), strict=False))
            self.all(node.body, _Scope(found, scope, {}, {}, named))
        else:
            self.all(node.body, scope)

    def _each(self, node: BlockNode, found: _Value, scope: _Scope) -> None:
        if isinstance(found.value, list | dict):
            self.output.step(node.line, len(found.value))
        pairs = list(_pairs(found))
        if not pairs:
            self.all(node.otherwise, scope)
        for index, (key, item) in enumerate(pairs):
            data = {
                "index": _Value(index, ""),
                "key": key,
                "first": _Value(index == 0, ""),
                "last": _Value(index == len(pairs) - 1, ""),
            }
            named = dict(zip(node.names, (item, key), strict=False))
            self.all(node.body, _Scope(item, scope, data, {}, named))

    def _value(self, expression: Expression, scope: _Scope) -> _Value:
        if isinstance(expression, Path):
            found = scope.find(expression)
            # All variables at once would be material and trusted words in one.
            return _NOTHING if found.value is self.outermost.value.value else found
        if isinstance(expression, Literally):
            return _Value(expression.value, "")
        return self._lookup(expression, scope)

    def _lookup(self, expression: Lookup, scope: _Scope) -> _Value:
        key = self._value(expression.key, scope).value
        if isinstance(key, bool) or not isinstance(key, str | int):
            return _NOTHING
        of = expression.of
        if isinstance(of, Path) and not of.steps and not of.is_data:
            return scope.find(Path(of.up, (str(key),), is_data=False, text=of.text))
        return _walk(self._value(of, scope), [str(key)])

    def _put(self, found: _Value, line: int, key: str) -> None:
        text = _text(found.value)
        is_material = found.source and isinstance(found.value, str | list | dict)
        if is_material and text and text not in _harmless(found.source, key):
            self.output.add(text, line, fence=found.source)
        else:
            self.output.add(text, line)


_ROLES = frozenset({"system", "user", "assistant", "tool", "document"})
_LABELS = frozenset({"PASS", "FAIL"})


def _harmless(source: str, key: str) -> frozenset[str]:
    """Words of material that need no fence: who spoke, and what people decided."""
    if key == "role":
        return _ROLES
    return _LABELS if (source, key) == ("examples", "label") else frozenset()


def _key(expression: Expression) -> str:
    return expression.steps[-1] if isinstance(expression, Path) and expression.steps else ""


def _pairs(found: _Value) -> Iterator[tuple[_Value, _Value]]:
    """Keys and items; the keys of material are material."""
    if isinstance(found.value, dict):
        for key, item in found.value.items():
            yield _Value(key, found.source), _Value(item, found.source)
    elif isinstance(found.value, list):
        for number, item in enumerate(found.value):
            yield _Value(number, ""), _Value(item, found.source)


def _is_shown(value: Json, *, takes_zero: bool = False) -> bool:
    if isinstance(value, bool) or value is None:
        return value is True
    if isinstance(value, int | float):
        return takes_zero or value != 0
    return isinstance(value, dict) or len(value) > 0


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def check_template(template: str, known: Mapping[str, Json]) -> list[str]:
    """What is worth a look in a template: variables that do not exist.

    ``known``: A sample of the variables. Of a list its first item says what the others are like; an
    empty mapping may hold anything.
    """
    warnings: list[str] = []
    for line, path, scope in _uses(parse(template), [dict(known)]):
        if isinstance(scope, dict) and scope and path.steps[0] not in scope:
            hint = nearest(path.steps[0], list(scope))
            warnings.append(f"line {line}: unknown variable {path.text!r} ({hint})")
    return list(dict.fromkeys(warnings))


def names_used(template: str) -> frozenset[str]:
    """The first names of all paths in a template."""
    return frozenset(path.steps[0] for _, path, _ in _uses(parse(template), [{}]))


def _uses(nodes: Sequence[Node], scopes: list[Json]) -> Iterator[tuple[int, Path, Json]]:
    """Every path with a name, its line, and a sample of what it is looked up in."""
    for node in nodes:
        if isinstance(node, str):
            continue
        for path in _paths(node.value):
            if path.is_data or not path.steps:
                continue
            scope = scopes[-1 - path.up] if path.up < len(scopes) else {}
            yield node.line, path, scope
        if isinstance(node, Put):
            continue
        inside = scopes
        if node.name in ("each", "with"):
            # What names of one's own stand for is not followed.
            is_item = node.name == "each"
            inner = {} if node.names else _sample(node.value, scopes, is_item=is_item)
            inside = [*scopes, inner]
        yield from _uses(node.body, inside)
        yield from _uses(node.otherwise, scopes)


def _paths(expression: Expression) -> Iterator[Path]:
    if isinstance(expression, Path):
        yield expression
    elif isinstance(expression, Lookup):
        yield from _paths(expression.of)
        yield from _paths(expression.key)


def _sample(expression: Expression, scopes: Sequence[Json], *, is_item: bool) -> Json:
    if not isinstance(expression, Path) or expression.is_data or expression.up >= len(scopes):
        return {}
    found = _step_into(scopes[-1 - expression.up], expression.steps)
    if is_item:
        found = found[0] if isinstance(found, list) and found else None
    return found if isinstance(found, dict) else {}
