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

__all__ = ["read_javascript"]

_CALL = re.compile(
    r"(?<![\w$.])(?:(?P<context>[A-Za-z_$][\w$]*)\.)?"
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
    word, sub = match["word"], match["context"] is not None
    if _OTHER.intersection(variants) or (sub and word != "test"):
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
        sub=sub,
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
