"""One HTML file that anybody can open: from disk, in an e-mail, in the artifacts of a build.

It holds the page's own components as one script and one style sheet (`web/src/report`), and what
they show as JSON. Only these two may run: the file's policy names them by their digests, and lets
nothing be asked of any network. Whoever runs no script reads the same as plain text.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import TextIO, cast

from assay.reports.plain import visible
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.shown import Html, element

_COMPRESSED_FROM = 64 * 1024
_UNBUILT = "The part that shows this report was not built with assay; this is its text."
_NO_SCRIPTS = "This is the report's text. Its cells can be opened where scripts may run."


def safe_json(value: object) -> Json:
    """Records as the JSON that the server answers with; each text is safe to show."""
    return as_json(value, _safe)


def _safe(value: object) -> Json:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {visible(str(name)): safe_json(one) for name, one in pairs.items()}
    raise TypeError(f"{type(value).__name__} is not shown")


def write_document(file: TextIO, *, title: str, told: str, data: Json) -> None:
    """Write the file.

    Args:
        file: Where to.
        title: Of the document.
        told: What it says, as plain text.
        data: What its script shows.
    """
    script, style = built("report.js"), built("report.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(style)),
    )
    # No `noscript`: where a policy forbids the script that would stay hidden.
    note = element("p", _NO_SCRIPTS if script else _UNBUILT)
    root = element(
        "div",
        element("div", note, element("pre", told), id="told"),
        id="root",
    )
    file.write(f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{root}\n')
    form, text = _embedded(data)
    block = element("script", Html(text), type="application/json", id="data", data_form=form)
    file.write(f"{block}\n<script>{script}</script>\n</body>\n</html>\n")


def _embedded(data: Json) -> tuple[str, str]:
    """The data's form, and as what it can stand in a document."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    if len(text) >= _COMPRESSED_FROM:
        return "deflate", b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return "json", text


@lru_cache
def built(name: str) -> str:
    """A part that `make web` builds, so that nothing in it ends its element; empty without it."""
    try:
        text = files("assay.reports").joinpath("page", name).read_text("utf-8")
    except OSError:
        return ""
    return text.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
