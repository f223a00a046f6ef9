r"""Text from answers, outputs and case files, made safe to show.

What is shown was written by someone who may want the reader to see another verdict. On a terminal,
escape sequences can recolour, overwrite or hide what was printed before, links can point elsewhere
than they say, and direction overrides can reverse a line. So sequences are removed, and every
other character that acts without being seen is written out, as in ``\u202e``.
"""

from __future__ import annotations

import re

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


def shorten(text: str, limit: int) -> str:
    """The beginning and the end of a long text, with a note of what is left out between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters cut]\n{text[-half:]}"


def natural(name: str) -> list[tuple[int, str]]:
    """A key to sort names by as people do: 2 before 10."""
    parts = re.split("([0-9]+)", name)
    # Between the numbers stands text, and never beside another; a number goes by its length first.
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if number % 2 else (0, part)
        for number, part in enumerate(parts)
    ]


def first_lines(text: str, lines: int, *, width: int = 500) -> list[str]:
    """The first lines of a text, with a note of how many were left out."""
    every = _lines(text)
    kept = [_cut(line, width) for line in every[:lines]]
    return [*kept, f"… {_counted(len(every) - lines)} more"] if len(every) > lines else kept


def last_lines(text: str, lines: int, *, width: int = 500) -> list[str]:
    """The last lines of a text, where the outcome of a command stands; as `first_lines`."""
    every = _lines(text)
    kept = [_cut(line, width) for line in every[-lines:]]
    return [f"… {_counted(len(every) - lines)} before", *kept] if len(every) > lines else kept


def _lines(text: str) -> list[str]:
    stripped = plain(text).strip("\n").expandtabs(4)
    return [line.rstrip() for line in stripped.split("\n")] if stripped.strip() else []


def _counted(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}… {len(line) - width} characters more"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
