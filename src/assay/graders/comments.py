"""Code without its comments: what a file says to a machine, and not to a reader.

Light lexers, the same on every machine; Python has a reader of its own. Where one is in doubt it
keeps text: a comment that is taken for code costs less than code that is taken for a comment.
"""

from __future__ import annotations

import re

from assay.graders.languages import comment_style

__all__ = ["squeezed", "without_comments"]

# Each alternative takes text until it ends or the line does, closed or not, and gives none of it
# back: so a hostile file is read in linear time, as `re` promises by itself for no expression.
_QUOTED = r"""
    "(?:[^"\\\n]|\\.)*+"? | `(?:[^`\\]|\\.)*+`?
"""
_TEXT = rf"{_QUOTED} | '(?:[^'\\\n]|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,8})'"  # in Rust, 'a alone is a lifetime
_SLASHED = r"(?P<comment> //[^\n]* | /\*.*?(?:\*/|\Z) )"
_REGEX = r"(?<=[=(,:;!&|?{}\[+>])[ ]*+/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)*+/?"
_DASHED = r"--[^\n]*"


_IMPORTS = re.compile(r"^\s*(?:\#\s*include|import|use|require|from)\b|\brequire\(\s*$|\bfrom\s*$")


def _lexer(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.VERBOSE | re.DOTALL | re.MULTILINE)


_LEXERS = {
    "slashes": _lexer(_SLASHED, _TEXT, _REGEX),
    "rust": _lexer(_SLASHED, _QUOTED, _CHARACTER),
    "hashes": _lexer(
        r"(?P<comment> (?<![^\s;(){}])\#[^\n]* | ^=begin\b.*?(?:^=end\b[^\n]*|\Z) )", _TEXT
    ),
    "dashes": _lexer(rf"(?P<comment> --\[\[.*?(?:\]\]|\Z) | {_DASHED} | /\*.*?(?:\*/|\Z) )", _TEXT),
    "haskell": _lexer(rf"(?P<comment> \{{-.*?(?:-\}}|\Z) | {_DASHED} )", _QUOTED, _CHARACTER),
}


def without_comments(text: str, language: str, *, texts: bool = True) -> str:
    """Blank the comments of a source file, keeping lines and columns.

    Args:
        text: A source file.
        language: A name that `assay.graders.languages.language_of` gives, but ``python``.
        texts: Whether to keep what stands in strings; the names of what is imported are kept.
    """
    lexer = _LEXERS[comment_style(language)]
    if texts:
        return lexer.sub(_blank_comment, text)
    return lexer.sub(lambda match: _blank_text(match, text), text)


def squeezed(code: str) -> str:
    """Code without its spaces, to tell whether anything but comments and layout changed."""
    return "".join(code.split())


def _blank_comment(match: re.Match[str]) -> str:
    return match[0] if match["comment"] is None else _blank(match[0])


def _blank_text(match: re.Match[str], whole: str) -> str:
    """Blank a comment or a string, but for what a template computes and imports name."""
    if match["comment"] is not None:
        return _blank(match[0])
    line = whole[whole.rfind("\n", 0, match.start()) + 1 : match.start()]
    if _IMPORTS.search(line):
        return match[0]
    if not match[0].startswith("`"):
        return _blank(match[0])
    pieces = re.split(r"(\$\{[^{}]*\})", match[0])
    return "".join(piece if piece.startswith("${") else _blank(piece) for piece in pieces)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
