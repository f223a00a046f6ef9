"""Write the C on both sides of a call: a stand-in for the judge, a handler for the submission.

How each value crosses is decided here: plain values are copied, a pointer is text, a counted row of
values, or a handle that only the submission can look into. What fits none of these, or two of them,
is refused with the function's name, and the author says what it is (``buffers``, ``handles``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.graders.c.declarations import (
    CType,
    Declarations,
    DeclaredFunction,
    DeclaredParameter,
    Field,
)

_LENGTH = re.compile(
    r"(?:\w*_)?(?:len|length|size|sz|cap|capacity|bytes)\d*|(?:len|length|size)_\w+"
)
_COUNT = re.compile(r"(?:\w*_)?(?:n|count|cnt|num)\d*|n[a-z]?|(?:n|num)_?\w+s|nmemb|nelems?")
_NUMBERS = re.compile(r"(?:size_t|ssize_t|u?int\w*_t|(?:un)?signed\b.*|int|long\b.*|short\b.*)")
_DEEPEST = 8


class CannotCarryError(Exception):
    """A value cannot cross; the text says which, why and what the author can do."""


@dataclass(frozen=True, slots=True)
class Value:
    """How one value crosses."""

    how: Literal["raw", "bool", "text", "handle", "struct", "array"]
    text: str = ""
    members: tuple[tuple[str, Value], ...] = ()
    element: Value | None = None
    bits: bool = False


@dataclass(frozen=True, slots=True)
class PointedValues:
    """How what a pointer leads to crosses: so many values, one after the other."""

    element: Value
    count: str
    back: bool


@dataclass(frozen=True, slots=True)
class Carried:
    """How a call of a function crosses."""

    function: DeclaredFunction
    parameters: tuple[Value | PointedValues, ...]
    returns: Value | PointedValues | None


class Carrier:
    """Decides for the functions of one set of headers."""

    def __init__(
        self,
        declared: Declarations,
        buffers: Mapping[str, Mapping[str, str | int]],
        handles: Collection[str] = (),
    ) -> None:
        self._declared = declared
        self._buffers = buffers
        self._handles = frozenset(handles)

    def carried(self, function: DeclaredFunction) -> Carried:
        """How calls of a function cross."""
        if function.variadic:
            raise CannotCarryError("it takes a variable number of arguments")
        named = tuple(
            DeclaredParameter(one.name or f"assay_{n}", one.type, one.size)
            for n, one in enumerate(function.parameters)
        )
        given = self._buffers.get(function.name, {})
        unknown = set(given) - {one.name for one in named} - {"return"}
        if unknown:
            raise CannotCarryError(f"it has no parameter {min(unknown)!r}, which 'buffers' names")
        crossing = tuple(self._parameter(n, named, given) for n in range(len(named)))
        returns = self._returned(function.returns, given.get("return"))
        again = DeclaredFunction(function.name, function.returns, named)
        return Carried(again, crossing, returns)

    def _returned(self, type_: CType, given: str | int | None) -> Value | PointedValues | None:
        if type_.kind == "void":
            return None
        target = type_.target
        if type_.kind != "pointer" or target is None or self._is_handle(target):
            return self._value(type_, "its result")
        if given not in (None, "string"):
            return PointedValues(self._value(target, "its result"), str(given), back=True)
        if _is_char(target):
            return Value("text", type_.text)
        raise CannotCarryError(
            "its result is a pointer; say under 'buffers' how many elements 'return' leads to, or "
            f"name {target.text!r} under 'handles'"
        )

    def _parameter(
        self, number: int, all_: tuple[DeclaredParameter, ...], given: Mapping[str, str | int]
    ) -> Value | PointedValues:
        one = all_[number]
        what, target, count = repr(one.name), one.type.target, given.get(one.name)
        if one.type.kind != "pointer" or target is None:
            return self._value(one.type, what)
        if count == "string":
            return Value("text", one.type.text)
        following = all_[number + 1] if number + 1 < len(all_) else None
        if count is None:
            count = one.size if one.size not in ("", "[]") else None
        if (
            count is None
            and target.kind == "void"
            and not (following and _measures(following, _LENGTH))
        ):
            return Value("handle", one.type.text)
        if count is None and self._is_handle(target) and target.kind != "void":
            return Value("handle", one.type.text)
        if count is None:
            count = _count(one, target, following, all_)
            if count is None:
                return Value("text", one.type.text)
        element = Value("raw", "char") if target.kind == "void" else self._value(target, what)
        if element.how == "text" and not target.const:
            raise CannotCarryError(f"{what} is a row of texts that it could replace")
        return PointedValues(element, str(count), back=not target.const)

    def _is_handle(self, target: CType) -> bool:
        if target.kind == "void" or target.text in self._handles or target.tag in self._handles:
            return True
        return target.kind == "struct" and target.tag not in self._declared.structures

    def _value(self, type_: CType, what: str, depth: int = 0) -> Value:
        if type_.kind == "plain":
            return Value("raw", type_.text)
        if type_.kind == "bool":
            return Value("bool", type_.text)
        target = type_.target
        if type_.kind == "pointer" and target is not None:
            if self._is_handle(target) or {type_.text} & self._handles:
                return Value("handle", type_.text)
            if _is_char(target) and target.const:
                return Value("text", type_.text)
        if type_.kind == "array" and target is not None:
            return Value("array", element=self._value(target, what, depth + 1))
        members = self._declared.structures.get(type_.tag)
        if type_.kind == "struct" and members and depth < _DEEPEST:
            inside = tuple((one.name, self._member(one, what, depth + 1)) for one in members)
            return Value("struct", type_.text, members=inside)
        raise CannotCarryError(f"{what} {_trouble(type_)}")

    def _member(self, member: Field, what: str, depth: int) -> Value:
        if not member.name:
            raise CannotCarryError(f"{what} has a member without a name")
        value = self._value(member.type, f"the member {member.name!r} of {what}", depth)
        if member.bits:
            if value.how == "raw" and not value.text:
                raise CannotCarryError(f"{what} has bits of a type without a name")
            return Value(value.how, value.text, bits=True)
        return value


def _count(
    one: DeclaredParameter,
    target: CType,
    following: DeclaredParameter | None,
    all_: tuple[DeclaredParameter, ...],
) -> str | None:
    """How many elements a pointer leads to, as far as names say it; None: up to a NUL."""
    if following and _measures(following, _LENGTH):
        return following.name
    counted = following is not None and _measures(following, _COUNT)
    hint = f"say under 'buffers' how many elements {one.name!r} leads to"
    if _is_char(target):
        if target.const and counted:
            raise CannotCarryError(f"{one.name!r} is text, or has a length: {hint}, or 'string'")
        if not target.const:
            raise CannotCarryError(f"nothing says how long {one.name!r} may get: {hint}")
        return None
    if following and counted:
        return following.name
    if one.size == "[]" or any(_measures(other, _LENGTH, _COUNT) for other in all_):
        raise CannotCarryError(f"{one.name!r} leads to one value, or to many: {hint}")
    return "1"


def _measures(parameter: DeclaredParameter, *names: re.Pattern[str]) -> bool:
    is_number = parameter.type.kind == "plain" and _NUMBERS.fullmatch(parameter.type.text)
    return bool(is_number) and any(name.fullmatch(parameter.name) for name in names)


def _is_char(type_: CType) -> bool:
    return type_.kind == "plain" and type_.text == "char"


def _trouble(type_: CType) -> str:
    if type_.kind == "function" or (type_.target and type_.target.kind == "function"):
        return "is a pointer to a function"
    if type_.kind == "pointer" and type_.target is not None:
        return (
            f"is a pointer to {type_.target.text or 'something'!r}; if no test looks into it, name "
            "that type under 'handles'"
        )
    return f"is of type {type_.text or type_.kind!r}, which cannot be copied"


_WIRE = "assay_w"


def stand_ins(functions: Sequence[Carried], headers: Sequence[str]) -> str:
    """The source that the judge is linked with: each function asks the submission."""
    lines = _head(headers)
    for number, one in enumerate(functions):
        lines += [*_stand_in(one, number), ""]
    return "\n".join(lines)


def handlers(functions: Sequence[Carried], headers: Sequence[str]) -> str:
    """The source that the submission's process is linked with: each call is made and answered."""
    lines = _head(headers)
    for number, one in enumerate(functions):
        lines += [*_handler(one, number), ""]
    table = ", ".join(f"assay_handler_{number}" for number in range(len(functions)))
    lines.append(f"assay_handler *const assay_handlers[] = {{ {table or '0'} }};")
    lines.append(f"const unsigned assay_handlers_count = {len(functions)};")
    return "\n".join([*lines, ""])


def one_of_many(file: str, tests: Sequence[str]) -> str:
    """A program that runs the one of a file's test functions that its argument names."""
    lines = [f'#include "{file}"', "#include <string.h>", "int main(int count, char **words)", "{"]
    lines += [
        f'    if (count == 2 && !strcmp(words[1], "{name}")) {{ {name}(); return 0; }}'
        for name in tests
    ]
    return "\n".join([*lines, "    return 96;", "}", ""])


def _head(headers: Sequence[str]) -> list[str]:
    included = ['#include "wire.h"', *(f'#include "{header}"' for header in headers)]
    return [*included, "__SIZE_TYPE__ strlen(const char *);", ""]


def _stand_in(one: Carried, number: int) -> list[str]:
    function = one.function
    pairs = [*zip(function.parameters, one.parameters, strict=True)]
    words = ", ".join(f"{p.type.text} {p.name}" for p in function.parameters) or "void"
    lines = [f"{_spelled(one)} ({function.name})({words})", "{"]
    rows = [
        (p.name, way, f"assay_n{n}")
        for n, (p, way) in enumerate(pairs)
        if isinstance(way, PointedValues)
    ]
    lines += [f"    __SIZE_TYPE__ {size} = assay_count({way.count});" for _, way, size in rows]
    lines.append(f"    assay_wire *{_WIRE} = assay_call({number});")
    for n, (parameter, way) in enumerate(pairs):
        if isinstance(way, Value):
            lines += _put(way, parameter.name)
        else:
            lines.append(f"    assay_n{n} = assay_put_row({_WIRE}, {parameter.name}, assay_n{n});")
            lines += _each(way.element, parameter.name, f"assay_n{n}", get=False)
    lines.append(f"    assay_ask({_WIRE});")
    for name, way, size in rows:
        if way.back:
            lines.append(f"    assay_row_back({_WIRE}, {name}, {size});")
            lines += _each(way.element, name, size, get=True)
    if isinstance(one.returns, Value):
        lines += [f"    {_spelled(one)} assay_r;", *_get(one.returns, "assay_r")]
    elif one.returns is not None:
        target = function.returns.text
        lines.append(f"    __SIZE_TYPE__ assay_n = assay_count({one.returns.count});")
        lines.append(f"    {target} assay_r = assay_new_row({_WIRE}, sizeof *assay_r, assay_n);")
        lines.append("    if (!assay_r) assay_n = 0;")
        lines += _each(one.returns.element, "assay_r", "assay_n", get=True)
    lines.append(f"    assay_done({_WIRE});")
    return [*lines, *([] if one.returns is None else ["    return assay_r;"]), "}"]


def _handler(one: Carried, number: int) -> list[str]:
    function = one.function
    pairs = [*zip(function.parameters, one.parameters, strict=True)]
    lines = [
        f"typedef __typeof__(&({function.name})) assay_type_{number};",
        f"static void assay_handler_{number}(assay_wire *{_WIRE})",
        "{",
    ]
    for n, (parameter, way) in enumerate(pairs):
        if isinstance(way, Value):
            lines.append(f"    {parameter.type.text} {parameter.name};")
            lines += _get(way, parameter.name)
            continue
        lines.append(f"    __SIZE_TYPE__ assay_n{n};")
        row = f"assay_get_row({_WIRE}, sizeof *{parameter.name}, &assay_n{n})"
        lines.append(f"    {parameter.type.text} {parameter.name} = {row};")
        lines += _each(way.element, parameter.name, f"assay_n{n}", get=True)
    call = f'((assay_type_{number})assay_symbol("{function.name}"))'
    call += f"({', '.join(p.name for p in function.parameters)});"
    lines.append(f"    {call}" if one.returns is None else f"    {_spelled(one)} assay_r = {call}")
    lines.append(f"    {_WIRE} = assay_reply();")
    for n, (parameter, way) in enumerate(pairs):
        if isinstance(way, PointedValues) and way.back:
            lines.append(f"    assay_put_row({_WIRE}, {parameter.name}, assay_n{n});")
            lines += _each(way.element, parameter.name, f"assay_n{n}", get=False)
    if isinstance(one.returns, Value):
        lines += _put(one.returns, "assay_r")
    elif one.returns is not None:
        count = f"assay_count({one.returns.count})"
        lines.append(f"    __SIZE_TYPE__ assay_n = assay_put_row({_WIRE}, assay_r, {count});")
        lines += _each(one.returns.element, "assay_r", "assay_n", get=False)
    return [*lines, "}"]


def _spelled(one: Carried) -> str:
    returned = one.function.returns
    return (
        f"const {returned.text}" if returned.const and returned.kind != "pointer" else returned.text
    )


def _each(element: Value, row: str, count: str, *, get: bool) -> Iterator[str]:
    """Each value of a row; in one piece where its bytes are all that there is to it."""
    if element.how == "raw":
        call = "assay_get" if get else "assay_put"
        yield f"    {call}({_WIRE}, (void *){row}, {count} * sizeof *{row});"
        return
    yield f"    for (__SIZE_TYPE__ assay_i = 0; assay_i < {count}; assay_i++) {{"
    yield from (_get if get else _put)(element, f"{row}[assay_i]", 1)
    yield "    }"


def _put(value: Value, place: str, depth: int = 0) -> Iterator[str]:
    if value.how == "text":
        yield f"    assay_put_text({_WIRE}, {place});"
    elif value.how == "handle":
        yield f"    assay_put_pointer({_WIRE}, (const void *){place});"
    elif value.how == "bool":
        yield f"    {{ unsigned char assay_t = {place}; assay_put({_WIRE}, &assay_t, 1); }}"
    elif value.bits:
        yield f"    {{ {value.text} assay_t = {place};"
        yield f"      assay_put({_WIRE}, &assay_t, sizeof assay_t); }}"
    elif value.how == "raw":
        yield f"    assay_put({_WIRE}, &{place}, sizeof {place});"
    else:
        yield from _parts(value, place, depth, get=False)


def _get(value: Value, place: str, depth: int = 0) -> Iterator[str]:
    if value.how == "text":
        yield f"    *(char **)&{place} = assay_get_text({_WIRE});"
    elif value.how == "handle":
        yield f"    *(void **)&{place} = assay_get_pointer({_WIRE});"
    elif value.how == "bool":
        # Any other byte would make a _Bool that is true and false at once.
        target = place if value.bits else f"*(_Bool *)&{place}"
        yield f"    {{ unsigned char assay_t; assay_get({_WIRE}, &assay_t, 1);"
        yield f"      {target} = assay_t != 0; }}"
    elif value.bits:
        yield f"    {{ {value.text} assay_t; assay_get({_WIRE}, &assay_t, sizeof assay_t);"
        yield f"      {place} = assay_t; }}"
    elif value.how == "raw":
        yield f"    assay_get({_WIRE}, (void *)&{place}, sizeof {place});"
    else:
        yield from _parts(value, place, depth, get=True)


def _parts(value: Value, place: str, depth: int, *, get: bool) -> Iterator[str]:
    carry = _get if get else _put
    if value.element is None:
        for name, member in value.members:
            yield from carry(member, f"{place}.{name}", depth)
        return
    index = f"assay_i{depth}"
    size = f"sizeof {place} / sizeof {place}[0]"
    yield f"    for (__SIZE_TYPE__ {index} = 0; {index} < {size}; {index}++) {{"
    yield from carry(value.element, f"{place}[{index}]", depth + 1)
    yield "    }"
