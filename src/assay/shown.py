r"""How anything is shown to people: texts made safe, numbers as they are, elements of HTML.

What is shown was written by someone who may want the reader to see another verdict. On a terminal,
escape sequences can recolour, overwrite or hide what was printed before, links can point elsewhere
than they say, and direction overrides can reverse a line. So sequences are removed, and every
other character that acts without being seen is written out, as in ``\u202e``.
"""

from __future__ import annotations

import re
from html import escape
from math import floor
from shlex import quote
from typing import Literal, TypeAlias

DASH = "\N{EN DASH}"

Ended: TypeAlias = Literal["fail", "error", "skipped", "pass", "scored"]
"""An outcome as it is shown: ``scored`` where nothing says which score passes."""

GLYPHS: dict[Ended, str] = {
    "pass": "✓",
    "fail": "✗",
    "error": "!",
    "skipped": DASH,
    "scored": "·",
}

WORDS: dict[Ended, str] = {
    "pass": "passed",
    "fail": "failed",
    "scored": "scored",
    "error": "errors",
    "skipped": "skipped",
}

_LARGEST = 200_000
"""Characters looked at, at most; the rest could not be shown anyway."""

# ECMA-48: CSI, then OSC, DCS, SOS, PM and APC with their terminator, then two-character escapes.
# A string without a terminator loses only its introducer: nothing may swallow the rest of a text.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)

# Control characters but tab and line feed; line and paragraph separators; marks, overrides and
# isolates of direction; invisible format characters and tags; surrogates; noncharacters.
_UNSEEN = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """Remove escape sequences and write out what else cannot be seen.

    Line feeds and tabs stay; carriage returns become line feeds, so that no line overwrites
    another. Of more than 200,000 characters only the head and the tail are kept.
    """
    return visible(shorten(text, _LARGEST))


def visible(text: str) -> str:
    """As `plain`, of a text however long."""
    if text.isprintable():  # most are, and have none of what follows
        return text
    text = re.sub(_SEQUENCE, "", text).replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(_UNSEEN, _written_out, text)


def one_line(text: str, limit: int = 120) -> str:
    """The text on one line of at most ``limit`` characters, white space collapsed."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: max(0, limit - 1)] + "…"


def command(*words: str) -> str:
    """A command that can be copied: each word stays one, and what it is made of can be seen.

    A terminal obeys control characters of what is pasted, also inside quotes: there they are
    written as Bash and Zsh read them.
    """
    return " ".join(quote(word) if word.isprintable() else _dollar_quoted(word) for word in words)


def _dollar_quoted(word: str) -> str:
    def escaped(letter: str) -> str:
        if letter in "\\'":
            return f"\\{letter}"
        if letter.isprintable():
            return letter
        code = ord(letter)
        return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"

    return f"$'{''.join(map(escaped, word))}'"


def shorten(text: str, limit: int) -> str:
    """The beginning and the end of a long text, with a note of what is left out between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters cut]\n{text[-half:]}"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def score(value: float | None) -> str:
    """A score with two digits, or more where two would make it a 0 or a 1; a dash for None."""
    if value is None:
        return DASH
    short = f"{value:.2f}"
    if short.lstrip("-") not in ("0.00", "1.00") or value in (0.0, 1.0):
        return short
    if abs(value) < 0.005:
        return f"{value:.4f}" if abs(value) >= 0.0001 else f"{value:.0e}"
    return f"{floor(value * 10_000) / 10_000:.4f}" if value < 1 else f"{value:.4f}"


# ---- HTML ----

Attribute: TypeAlias = "str | float | bool | None"
"""The value of an attribute; True is one without a value, None and False leave it out."""

_VOID = frozenset({"br", "meta", "rect", "circle", "line"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: Attribute) -> Html:
    """One element."""
    opened = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{opened}>") if name in ("br", "meta") else Html(f"<{opened}/>")
    return Html(f"<{opened}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Html:
    """Several children in a row."""
    return Html("".join(_safe(child) for child in children if child is not None))


def _safe(child: str) -> str:
    return child if isinstance(child, Html) else escape(plain(child), quote=True)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(plain(text), quote=True)}"'
