"""How a source is read: as Python reads a file, and always as UTF-8.

It is stored, sent and hashed as UTF-8 text. A byte order mark at its beginning says nothing else,
so it is dropped, of a string as of a file. A coding line that names another encoding would have
Python read another program from the same bytes, so it is refused. Standard library only: this file
also runs in the sandbox.
"""

from __future__ import annotations

import codecs
import re

__all__ = ["MARK", "foreign_coding", "without_mark"]

MARK = "\ufeff"
_CODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(r"[ \t\f]*(?:#.*)?$")
_LINE_END = re.compile(r"\r\n|\r|\n")


def without_mark(text: str) -> str:
    """The text without a byte order mark at its beginning."""
    return text.removeprefix(MARK)


def foreign_coding(text: str) -> tuple[int, str] | None:
    """The line and the name of an encoding that is not UTF-8, where a coding line names one.

    Python looks for it (PEP 263) in the first line, and in the second if the first is blank or a
    comment.
    """
    for number, line in enumerate(_LINE_END.split(text, maxsplit=2)[:2], 1):
        if found := _CODING.match(line):
            return None if _is_utf8(found[1], text) else (number, found[1])
        if not _BLANK.match(line):
            return None
    return None


def _is_utf8(name: str, text: str) -> bool:
    """Whether a text is the same in an encoding of this name as in UTF-8."""
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return False
    return known in ("utf-8", "utf-8-sig") or (known == "ascii" and text.isascii())
