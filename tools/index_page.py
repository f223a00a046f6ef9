"""The README as a package index shows it: hatchling asks this when it builds.

On an index the README stands alone, so that a link to another page of the repository leads nowhere.
Where the project says which repository is its own (``urls.Repository``), such links lead there, to
the tag of the version; else their words stay and the links go. Pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\[\]]+)\]\((?![a-z]+:|#)([^()\s]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)


def for_index(text: str, base: str = "") -> str:
    """The README without pictures, and with links to the repository or none.

    Args:
        text: The README.
        base: Where the files of the repository are; empty where nobody says so.
    """

    def linked(match: re.Match[str]) -> str:
        return f"[{match[1]}]({base}/{match[2]})" if base else match[1]

    return _LINK.sub(linked, _PICTURE.sub("", text))


class IndexPage(MetadataHookInterface):
    """Gives the project its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme``."""
        urls = cast("dict[str, str]", metadata.get("urls") or {})
        tag = f"/blob/v{metadata['version']}" if metadata.get("version") else "/blob/main"
        base = urls["Repository"].rstrip("/") + tag if "Repository" in urls else ""
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, base)}
