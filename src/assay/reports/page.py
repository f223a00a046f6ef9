"""A console page on which nothing that is shown can act.

Recorded text brings no markup, no escape sequence and no line of its own, and no command to the
build service whose log the page may end up in: those read ``::command::`` at the start of a line,
and ``##[command]`` anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from assay.reports.figures import DASH, MINUS, TIMES
from assay.reports.outcome import Outcome
from assay.reports.plain import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


Part: TypeAlias = "str | tuple[str, str]"
"""Some text, or text with a style such as ``"bold red"``."""

STYLES: dict[Outcome, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "bold yellow",
    "skipped": "dim",
}

_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)")

_ASCII = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "…": "...",
        "→": "->",
        "│": "|",
        "·": "-",
        "≠": "!=",
        DASH: "-",
        MINUS: "-",
        TIMES: "x",
    }
)


class Page:
    """Writes to a console, in ASCII where its encoding has no more."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._ascii = console.options.ascii_only

    @property
    def width(self) -> int:
        """Columns there are to write on."""
        return max(20, self.console.width)

    def text(self, *parts: Part) -> Text:
        """Parts as one piece of text without line feeds, for a line or a table's cell."""
        from rich.text import Text

        piece = Text(overflow="fold")
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            piece.append(" ".join(self._spelled(words).split("\n")), style=style or None)
        return piece

    def line(self, *parts: Part, indent: int = 0, hanging: int = 0) -> None:
        """Write one line; where it must be wrapped, later lines are indented ``hanging`` more."""
        from rich.text import Text

        first, later = " " * indent, " " * (indent + hanging)
        wrapped = self.text(*parts).wrap(self.console, max(10, self.width - len(later)))
        for number, piece in enumerate(wrapped):
            piece.rstrip()
            start = later if number else first
            if piece.plain.lstrip().startswith("::"):
                start += self._spelled("│ ")
            self._write(Text(start).append_text(piece))

    def quote(self, lines: Iterable[str], *, indent: int = 0) -> None:
        """Write recorded text with a bar before every line, so that it cannot pose as the report's.

        Lines that are too long are broken, and every piece gets its bar.
        """
        from rich.text import Text

        bar = " " * indent + self._spelled("│ ")
        for line in lines:
            for row in plain(line).split("\n"):
                text = self.text(row)
                pieces = text.wrap(self.console, max(10, self.width - len(bar))) if row else [text]
                for piece in pieces:
                    whole = Text(bar, style="dim").append_text(piece)
                    whole.rstrip()
                    self._write(whole)

    def blank(self) -> None:
        """Write an empty line."""
        self.console.print()

    def table(self, header: Sequence[Text], rows: Iterable[Sequence[Text]], *, left: int) -> None:
        """Write a table whose first ``left`` columns hold text, and the others numbers."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for place, title in enumerate(header):
            table.add_column(title, overflow="fold", no_wrap=place >= left)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)

    def _spelled(self, words: str) -> str:
        shown = _COMMAND.sub("# #", plain(words))
        if not self._ascii:
            return shown
        return shown.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def _write(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)
