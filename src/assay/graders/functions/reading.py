"""How a source is read: as Python reads a file, and always as UTF-8.

It is stored, sent and hashed as UTF-8 text. A byte order mark at its beginning says nothing else,
so it is dropped, of a string as of a file. A coding line that names another encoding would have
Python read another program from the same bytes, so it is refused. Standard library only: this file
also runs in the sandbox.
"""

from __future__ import annotations

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
            name = found[1].lower().replace("_", "-")
            is_utf8 = name in ("utf8", "utf-8") or name.startswith("utf-8-")
            return None if is_utf8 else (number, found[1])
        if not _BLANK.match(line):
            return None
    return None
