r"""Whether what a model wrote stands in what it was shown.

A model that quotes does not quote to the letter: it writes ``<`` for ``\u003c``, straight quotes
for curly ones, and leaves out what cannot be seen. So only letters, digits and braces are compared,
and of those what they stand for. All of it takes time in proportion to the texts.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable

from assay.scoring.json_safe import Json

__all__ = ["stands_in"]

_BACKSLASHES = re.compile(r"\\{2,}")
_CHARACTER = re.compile(r"\\u(?:([0-9a-fA-F]{4})|\{0*+([0-9a-fA-F]{1,6})\})")
_ENTITY = re.compile(
    r"&(?:amp;)*+(?:#0*+(\d{1,7})|#[xX]0*+([0-9a-fA-F]{1,6})|lt|gt|quot|apos|nbsp);|&(?:amp;)++"
)
_CONTROL = re.compile(r"\\[nrtbf]")
# Two letters of Hangul that are blank; the others that render as nothing come down to them. Braces
# stay: they say where an object ends, and words alone are none.
_LEFT_OUT = re.compile("(?:[^\\w{}]|[_\u115f\u1160])+")


def stands_in(written: str, data: Json, shown: Iterable[str]) -> bool:
    r"""Whether a JSON object stands in any of the texts.

    Args:
        written: The object as it was written.
        data: What it says; writing it is another way to write it.
        shown: The texts; each is prepared once.
    """
    said = _forms(written) | _forms(json.dumps(data, ensure_ascii=False))
    said.discard("")
    return any(one in form for text in shown for form in _forms(text) for one in said)


def _forms(text: str) -> set[str]:
    r"""The letters, digits and braces of a text.

    A ``\n`` may be a line break, or a backslash and a letter: both are tried.
    """
    if "\\" not in text and "&" not in text:
        return {_letters(text)}
    text = _CHARACTER.sub(_of_hex, _BACKSLASHES.sub(r"\\", text))
    text = _ENTITY.sub(_of_entity, text)
    return {_letters(text), _letters(_CONTROL.sub("", text))}


def _of_hex(found: re.Match[str]) -> str:
    return _chr(int(found[1] or found[2], 16))


def _of_entity(found: re.Match[str]) -> str:
    if found[1]:
        return _chr(int(found[1]))
    return _chr(int(found[2], 16)) if found[2] else " "


def _chr(number: int) -> str:
    return chr(number) if number < 0x110000 else " "


def _letters(text: str) -> str:
    if text.isascii():
        return _LEFT_OUT.sub("", text.lower())
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.translate({ord(each): _letter(each) for each in set(text)})


def _letter(character: str) -> str:
    """What a character stands for: accents aside, whatever its width, case and style."""
    return _LEFT_OUT.sub("", unicodedata.normalize("NFKD", character).casefold())
