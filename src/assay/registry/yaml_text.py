"""Plain data as YAML that people read and git compares: one text for one value, always.

Keys are sorted, and a text is quoted unless it is a plain word, so that no reader, of whatever
version of YAML, takes it for a number or a date. A text of several lines is a block of lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    import yaml

__all__ = ["yaml_text"]

_WORD = re.compile(r"(?!NaN$|Infinity$)[A-Za-z]([A-Za-z0-9 _./-]*[A-Za-z0-9])?")
_LINES = re.compile(r"\S[ -~\u00a1-\u167f]*(\n(\S[ -~\u00a1-\u167f]*|[ ]+\S[ -~\u00a1-\u167f]*)?)+")
"""What a block of lines can hold: visible characters, and no white space at its beginning."""


def yaml_text(data: Json) -> str:
    """Write plain data as YAML; `assay.tasks.document` reads the same value back."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts in the styles above, and lists inside their key's indentation."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

    Dumper.add_representer(str, _text)
    return yaml.dump(
        data,
        Dumper=Dumper,
        sort_keys=True,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    import yaml

    del dumper
    if _WORD.fullmatch(text):
        style = None  # PyYAML itself quotes `yes`, `null` and their like
    elif "\n" in text and _LINES.fullmatch(text) and not re.search(r"[ \t]$", text, re.MULTILINE):
        style = "|"
    else:
        style = '"'
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)
