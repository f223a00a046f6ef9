"""Stands in for the package that examples/repair repairs, so that tests need no network.

It does as much of it as the case asks for, and has the same bug in the same place.
"""

from __future__ import annotations

import re

_TYPES = {"d": None, "n": 10, "x": 16, "o": 8, "b": 2}
_FIELD = re.compile(r"\{(\w*)(?::(\w))?\}")
_PATTERNS = {"f": r"[-+]?\d+\.\d+", "": r".+?"}
_NUMBER = r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9a-fA-F][0-9a-fA-F,.]*)"


class Result:
    def __init__(self) -> None:
        self.fixed: list[object] = []
        self.named: dict[str, object] = {}

    def __getitem__(self, place: int) -> object:
        return self.fixed[place]


class int_convert:  # noqa: N801 - the recordings look for it
    DIGITS = "0123456789abcdef"

    def __init__(self, base: int | None = None) -> None:
        self.base = base

    def __call__(self, string: str) -> int:
        sign = -1 if string[0] == "-" else 1
        number_start = 1 if string[0] in "-+" else 0
        # If base wasn't given, find it out
        if self.base is None:
            prefix = string[number_start : number_start + 2].lower()
            self.base = {"0x": 16, "0o": 8, "0b": 2}.get(prefix, 10)
        kept = "".join(c for c in string.lower() if c in int_convert.DIGITS[: self.base])
        return sign * int(kept, self.base)


class convert_first:  # noqa: N801 - as above
    def __init__(self, pattern: str) -> None:
        fields = _FIELD.findall(pattern)
        self.names: list[str] = [name for name, _ in fields]
        self.converters = [
            int_convert(_TYPES[kind]) if kind in _TYPES else float if kind == "f" else str
            for _, kind in fields
        ]
        literals = [re.escape(text) for text in _FIELD.split(pattern)[::3]]
        groups = [f"({_NUMBER if kind in _TYPES else _PATTERNS[kind]})" for _, kind in fields]
        whole = "".join(a + b for a, b in zip(literals, [*groups, ""], strict=True))
        self.pattern = re.compile(whole)

    def parse(self, text: str) -> Result | None:
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        result = Result()
        for name, convert, said in zip(self.names, self.converters, match.groups(), strict=True):
            if name:
                result.named[name] = convert(said)
            else:
                result.fixed.append(convert(said))
        return result


def compile(pattern: str) -> convert_first:  # noqa: A001 - as in the package
    return convert_first(pattern)
