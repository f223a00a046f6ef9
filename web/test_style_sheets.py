"""Sheets come one by one as pages are opened, and all of them stay: none may reach another's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_SOURCE = Path(__file__).parent / "src"
_SHARED = ("app/theme.css", "app/shell.css", "parts/")


def _selectors(sheet: Path) -> Iterator[str]:
    """The selectors of a sheet that are in no other rule."""
    inside: list[bool] = []
    head = ""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf-8"), flags=re.DOTALL)
    for part in re.split(r"([{}])", text):
        if part == "{":
            is_condition = head.startswith("@")
            if not any(inside) and not is_condition:
                yield from (one.strip() for one in re.split(r",(?![^(]*\))", head))
            inside.append(not is_condition)
        elif part == "}":
            inside.pop()
        else:
            head = part.rpartition(";")[2].strip()


def _first(selector: str) -> frozenset[str]:
    """The classes and ids of a selector's outermost element."""
    return frozenset(re.findall(r"[.#][\w-]+", re.split(r"[\s>+~]+", selector)[0]))


def test_a_class_is_styled_by_the_folder_it_belongs_to() -> None:
    sheets = {path.relative_to(_SOURCE).as_posix(): path for path in _SOURCE.rglob("*.css")}
    found = {name: [(one, _first(one)) for one in _selectors(sheets[name])] for name in sheets}
    shared = {
        css
        for name, rules in found.items()
        if name.startswith(_SHARED)
        for _, classes in rules
        for css in classes
    }
    owners: dict[str, str] = {}
    faults: list[str] = []
    for name, rules in sorted(found.items()):
        if name.startswith(_SHARED):
            continue
        for selector, classes in rules:
            own = classes - shared
            if not own:
                faults.append(f"{name}: {selector} changes what other pages show")
            faults += [
                f"{css}: styled by {owners[css]} and {name}"
                for css in own
                if owners.setdefault(css, name) != name
            ]
    assert faults == []
