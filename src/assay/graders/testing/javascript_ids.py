"""The tests that a JavaScript source declares, for node's own runner, Jest, Vitest and Mocha.

A test counts as left out by its author only where no code has a say in it: ``it.skip``, ``xit``,
``test.todo``, a name without a function, an options object with the literal ``skip: true``, or a
suite with one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.graders.testing.lexing import C_LIKE, blank, closing, pieces

__all__ = ["computed_names", "read_javascript"]

_CALL = re.compile(
    r"(?<![\w$.])(?:(?P<context>(?!(?:test|it)\.)[A-Za-z_$][\w$]*)\.(?=test\b))?"
    r"(?P<word>test|it|describe|suite|context|xit|xtest|xdescribe|xcontext|fit|fdescribe)"
    r"(?P<variant>(?:\.\w+)*)\s*\(\s*(?P<quote>[\"'`])"
)
_SUITES = frozenset({"describe", "suite", "context", "xdescribe", "xcontext", "fdescribe"})
_SKIPPED = frozenset({"skip", "todo"})
_OTHER = frozenset({"each", "for", "step", "use", "extend", "skipIf", "runIf"})
_KEY = re.compile(r"\s*(?P<key>[\w$]+)\s*:\s*(?P<value>.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Call:
    """A test or suite; `sub` for one that a test declares by its own context."""

    start: int
    end: int
    name: str
    suite: bool
    skipped: bool
    sub: bool


def read_javascript(text: str) -> Iterator[tuple[str, bool]]:
    """The full names of the tests, and whether the author leaves each out.

    Subtests (``t.test``) are told only if they are left out: whether the others come to be
    declared is up to the code around them.

    Args:
        text: The source.
    """
    code = blank(text, C_LIKE)
    calls = [call for match in _CALL.finditer(code) if (call := _read(match, text, code))]
    subtests: dict[str, bool] = {}
    for call in calls:
        if call.suite:
            continue
        around = [one for one in calls if one.start < call.start < one.end]
        # Node gives a subtest the name of the test around it; others have no such thing.
        outer = around if call.sub else [one for one in around if one.suite]
        name = " > ".join([*(one.name for one in outer), call.name])
        skipped = call.skipped or any(one.skipped for one in outer)
        if not call.sub:
            yield name, skipped
        elif any(not one.suite for one in around):
            subtests[name] = subtests.get(name, True) and skipped
    yield from ((name, True) for name, skipped in subtests.items() if skipped)


def _read(match: re.Match[str], text: str, code: str) -> _Call | None:
    variants = match["variant"].split(".")[1:]
    word = match["word"]
    if _OTHER.intersection(variants):
        return None
    begin = match.end()
    end = code.find(match["quote"], begin)
    name = text[begin:end]
    rest = code[end + 1 : end + 200].lstrip()
    if end < 0 or "${" in name or rest[:1] not in (",", ")"):
        return None  # computed
    opening = code.index("(", match.end("variant"))
    closes = closing(code, opening, "()")
    arguments = list(pieces(code, opening + 1, closes))
    return _Call(
        start=match.start(),
        end=closes,
        name=re.sub(r"\\(.)", r"\1", name),
        suite=bool(_SUITES.intersection([word, *variants])),
        skipped=word.startswith("x")
        or rest[0] == ")"  # a name without a test
        or bool(_SKIPPED.intersection(variants))
        or _options_skip(arguments[1:2], text, code),
        sub=match["context"] is not None,
    )


def _options_skip(arguments: Sequence[tuple[int, int]], text: str, code: str) -> bool:
    """Whether a test's second argument is an object that says so, whatever else happens."""
    for start, end in arguments:
        inside = code[start:end]
        opening = start + len(inside) - len(inside.lstrip())
        if code[opening : opening + 1] != "{" or not inside.rstrip().endswith("}"):
            return False
        values: dict[str, str] = {}
        for begin, stop in pieces(code, opening + 1, start + len(inside.rstrip()) - 1):
            entry = code[begin:stop].strip()
            if entry.startswith(("...", "[", "'", '"')):
                return False  # it may say something else
            if found := _KEY.fullmatch(code, begin, stop):
                values[found["key"]] = text[found.start("value") : found.end("value")]
        return any(_is_true(values.get(key, "")) for key in _SKIPPED)
    return False


def _is_true(value: str) -> bool:
    """Whether a value is ``true`` or a reason: one string that is not empty."""
    return value == "true" or bool(re.fullmatch(r"'[^'\\]+'|\"[^\"\\]+\"|`[^`\\$]+`", value))


_ANY = re.compile(
    r"(?<![\w$.])(?P<word>test|it|specify|describe|suite|context)(?P<variant>(?:\.\w+)*)\s*"
    r"(?P<opening>[(`])"
)
_DECLARING = re.compile(r"(?:function|class)\s+$")
_FILLED = re.compile(r"%[a-zA-Z#$]|\$\{[^}]*\}|\$#?[\w.]+")


def computed_names(text: str) -> tuple[tuple[str, ...], bool]:
    """What is known of names that are not literal.

    Args:
        text: The source.

    Returns:
        Patterns of the ends of such names, and whether a test may have any name.
    """
    code = blank(text, C_LIKE)
    parts: dict[str, None] = {}
    anything = suites = False
    leaves: list[str] = []
    for match in _ANY.finditer(code):
        if _DECLARING.search(code, max(0, match.start() - 20), match.start()):
            continue
        variants = match["variant"].split(".")[1:]
        opening = match.start("opening")
        many = bool({"each", "for"}.intersection(variants))
        if many:
            opening = _after_table(code, opening)
        elif code[opening] == "`":
            continue
        name = _name_at(text, code, opening + 1) if opening >= 0 else None
        if _SUITES.intersection([match["word"], *variants]):
            suites = suites or many or name is None or "${" in name
        elif name is None:
            anything = anything or _takes_function(code, opening)
        else:
            leaves.append(_as_pattern(name))
            if many or "${" in name:
                parts[leaves[-1]] = None
    if suites:
        parts.update(dict.fromkeys(leaves))
    return tuple(part for part in parts if part != ".*"), anything or ".*" in parts


def _after_table(code: str, opening: int) -> int:
    """Where the bracket of ``each(table)(...)`` or ``each`table`(...)`` opens; -1 if none does."""
    end = closing(code, opening, "()") if code[opening] == "(" else code.find("`", opening + 1)
    rest = code[end + 1 :]
    after = end + 1 + len(rest) - len(rest.lstrip())
    return after if end >= 0 and code[after : after + 1] == "(" else -1


def _name_at(text: str, code: str, begin: int) -> str | None:
    """The string that is the whole of the first argument; None if that is something else."""
    begin += len(code[begin:]) - len(code[begin:].lstrip())
    quote = code[begin : begin + 1]
    if quote not in ("'", '"', "`"):
        return None
    end = code.find(quote, begin + 1)
    rest = code[end + 1 : end + 200].lstrip()
    return text[begin + 1 : end] if end >= 0 and rest[:1] in (",", ")") else None


def _takes_function(code: str, opening: int) -> bool:
    """Whether a call without a literal name hands over a function, as one of a test does."""
    return opening < 0 or bool(
        re.search(r"=>|\bfunction\b", code[opening : closing(code, opening, "()")])
    )


def _as_pattern(name: str) -> str:
    plain = re.sub(r"\\(.)", r"\1", name)
    return ".*".join(re.escape(part) for part in _FILLED.split(plain))
