"""Reports in one file, read as a browser's parser would read them."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_VOID = {"meta"}


class ReportFile(HTMLParser):
    """The elements, the plain text and the data of a report; each element is closed in order.

    Attributes:
        source: The file.
        tags: Its elements with their attributes.
        text: What it says without a script.
        data: What its script shows.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text("utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.inside: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._open: list[str] = []
        self.feed(self.source)
        self.close()
        assert not self._open
        (block,) = [attributes for _, attributes in self.tags if attributes.get("id") == "data"]
        told = self.inside["script"][0]
        if block["data-form"] == "deflate":
            told = zlib.decompress(base64.b64decode(told)).decode("ascii")
        self.data: dict[str, Any] = json.loads(told)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in self.inside:
            self.inside[self._open[-1]][-1] += data
        else:
            self.text += data

    @property
    def said(self) -> str:
        """All texts of the data, one a line."""
        return "\n".join(_texts(self.data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element of a name."""
        return [attributes for name, attributes in self.tags if name == tag]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.items() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]
    return [text for one in inner for text in _texts(list(one) if isinstance(one, tuple) else one)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
