"""Write the C on both sides of a call: a stand-in for the judge, a handler for the submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.graders.c.carrying import Carried, Row, Value

__all__ = ["handlers", "one_of_many", "stand_ins"]

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
        (p.name, way, f"assay_n{n}") for n, (p, way) in enumerate(pairs) if isinstance(way, Row)
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
        if isinstance(way, Row) and way.back:
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
