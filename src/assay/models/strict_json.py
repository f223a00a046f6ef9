"""JSON that a model wrote: what can mean one thing only is put right, the rest is refused."""

from __future__ import annotations

import json
import re
from typing import cast

from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

__all__ = ["STRING", "NotJsonError", "parse", "parse_mended"]

STRING: str = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""Pattern of a string; linear: what follows a quote is consumed to its end or the text's."""

_STRING_OR_LAST_COMMA = re.compile(STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> Json:
    """Parse JSON.

    Raises:
        NotJsonError: It is not JSON; says where.
    """
    try:
        # Small models write line breaks into strings, which can mean one thing only.
        data = decode_json(text, line_breaks=True)
    except NotJsonError as error:
        if error.line:
            where = f"line {error.line}, column {error.column}"
            raise NotJsonError(f"{error} at {where}", "syntax") from None
        raise
    if not text.isascii() or _HALF_CHARACTER.search(text):
        # Half of a character cannot be stored, sent or compared: it is shown as such.
        whole = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        try:
            data = cast("Json", json.loads(whole))
        except RecursionError:
            raise NotJsonError("it is nested too deeply", "depth") from None
    return data


def parse_mended(text: str) -> Json:
    """Parse JSON; a comma before a closing bracket is left out.

    Raises:
        NotJsonError: It is none.
    """
    try:
        return parse(text)
    except NotJsonError:
        mended = _STRING_OR_LAST_COMMA.sub(_without_comma, text)
        if len(mended) == len(text):
            raise
        return parse(mended)


def _without_comma(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found == "," else found
