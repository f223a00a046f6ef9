"""A console page on which nothing that is shown can act.

Recorded text brings no markup, no escape sequence and no line of its own, and no command to the
build service whose log the page may end up in: those read ``::command::`` at the start of a line,
and ``##[command]`` anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO, TypeAlias

from assay.reports.figures import DASH, MINUS, TIMES
from assay.reports.outcome import Ended
from assay.reports.plain import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Part: TypeAlias = "str | tuple[str, str]"
"""Some text, or text with a style such as ``"bold red"``."""

Cell: TypeAlias = "Text | str"
"""What a page makes of parts: with their styles, or without on one that shows none."""

STYLES: dict[Ended, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "bold yellow",
    "skipped": "dim",
    "scored": "",
}

_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)")

_ASCII_FORMS = {
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
_ASCII = str.maketrans(_ASCII_FORMS)
_WORD = re.compile(r"\s*\S+\s*")
_WIDTH = 80
_BETWEEN = 2  # columns of a table


class Page:
    """Writes to a console, in ASCII where its encoding has no more."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ascii = console.options.ascii_only

    @classmethod
    def on(cls, console: Console | Page) -> Page:
        """The page of a console; a page is its own."""
        return console if isinstance(console, Page) else cls(console)

    @property
    def console(self) -> Console:
        """The console that is written to."""
        return self._console

    @property
    def is_live(self) -> bool:
        """Whether what was written can be redrawn."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    @property
    def width(self) -> int:
        """Columns there are to write on."""
        return max(20, self._console.width)

    def text(self, *parts: Part) -> Cell:
        """Parts as one piece of text without line feeds, for a line or a table's cell."""
        return self._styled(parts)

    def stacked(self, *lines: str) -> Cell:
        """Texts below each other in one cell of a table."""
        from rich.text import Text

        return Text("\n").join(self._styled([line]) for line in lines)

    def _styled(self, parts: Sequence[Part]) -> Text:
        from rich.text import Text

        piece = Text(overflow="fold")
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            piece.append(self._one_line(words), style=style or None)
        return piece

    def line(self, *parts: Part, indent: int = 0, hanging: int = 0) -> None:
        """Write one line; where it must be wrapped, later lines are indented ``hanging`` more."""
        from rich.text import Text

        first, later = " " * indent, " " * (indent + hanging)
        wrapped = self._styled(parts).wrap(self._console, max(10, self.width - len(later)))
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
                text = self._styled([row])
                pieces = text.wrap(self._console, max(10, self.width - len(bar))) if row else [text]
                for piece in pieces:
                    whole = Text(bar, style="dim").append_text(piece)
                    whole.rstrip()
                    self._write(whole)

    def blank(self) -> None:
        """Write an empty line."""
        self._console.print()

    def table(
        self, header: Sequence[Cell], rows: Iterable[Sequence[Cell]], *, left: int, whole: int = 0
    ) -> None:
        """Write a table whose first ``left`` columns hold text, and the others numbers.

        Numbers are never broken, nor are the texts of the first ``whole`` columns.
        """
        from rich.table import Table
        from rich.text import Text

        def unread(cell: Cell) -> Text:  # of a plain text, rich would read the markup
            return Text(cell, overflow="fold") if isinstance(cell, str) else cell

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for place, title in enumerate(header):
            table.add_column(unread(title), overflow="fold", no_wrap=not whole <= place < left)
        for row in rows:
            table.add_row(*map(unread, row))
        self._console.print(table)

    def _one_line(self, words: str) -> str:
        return " ".join(self._spelled(words).split("\n"))

    def _spelled(self, words: str) -> str:
        shown = _COMMAND.sub("# #", plain(words))
        if not self._ascii:
            return shown
        return shown.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def _write(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


_PLAIN = re.compile(f"[ -~{''.join(_ASCII_FORMS)}]*")
"""Text of which each character takes one column."""


class PlainPage(Page):
    """A page that shows no styles, as in a file or a log.

    It writes what `Page` would write there, and loads rich only for text that has to be measured:
    to load it takes as long as to run thirty cells.
    """

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        self._stream = stream
        self._ascii = not (stream.encoding or "utf-8").lower().startswith("utf")
        self._width = max(20, _columns() if width is None else width)

    @cached_property
    def _measuring(self) -> Page:
        from rich.console import Console

        return Page(Console(file=self._stream, width=self._width, highlight=False))

    @property
    def console(self) -> Console:
        """The console that is written to; loads rich."""
        return self._measuring.console

    @property
    def is_live(self) -> bool:
        """Nothing is redrawn here."""
        return False

    @property
    def width(self) -> int:
        """Columns there are to write on."""
        return self._width

    def text(self, *parts: Part) -> str:
        """Parts as one piece of text without line feeds, for a line or a table's cell."""
        return "".join(self._one_line(p if isinstance(p, str) else p[0]) for p in parts)

    def stacked(self, *lines: str) -> str:
        """Texts below each other in one cell of a table."""
        return "\n".join(map(self._one_line, lines))

    def line(self, *parts: Part, indent: int = 0, hanging: int = 0) -> None:
        """Write one line; where it must be wrapped, later lines are indented ``hanging`` more."""
        pieces = _wrapped(self.text(*parts), max(10, self.width - indent - hanging))
        if pieces is None:
            self._measuring.line(*parts, indent=indent, hanging=hanging)
            return
        for number, piece in enumerate(pieces):
            start = " " * (indent + hanging if number else indent)
            if piece.lstrip().startswith("::"):
                start += self._spelled("│ ")
            self._put(start + piece)

    def quote(self, lines: Iterable[str], *, indent: int = 0) -> None:
        """Write recorded text with a bar before every line; see `Page.quote`."""
        bar = " " * indent + self._spelled("│ ")
        for line in lines:
            for row in plain(line).split("\n"):
                pieces = _wrapped(self._one_line(row), max(10, self.width - len(bar)))
                if pieces is None:
                    self._measuring.quote([row], indent=indent)
                for piece in pieces or ():
                    self._put(f"{bar}{piece}".rstrip())

    def blank(self) -> None:
        """Write an empty line."""
        self._put("")

    def table(
        self, header: Sequence[Cell], rows: Iterable[Sequence[Cell]], *, left: int, whole: int = 0
    ) -> None:
        """Write a table whose first ``left`` columns hold text, and the others numbers."""
        lines = [[str(cell) for cell in row] for row in (header, *rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        fits = sum(widths) + _BETWEEN * (len(widths) - 1) <= self.width
        if not fits or not all(_PLAIN.fullmatch(cell) for line in lines for cell in line):
            self._measuring.table(lines[0], lines[1:], left=left, whole=whole)
            return
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self._put((" " * _BETWEEN).join(cells))

    def _put(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
        except BrokenPipeError:
            raise SystemExit(1) from None  # as rich does: whoever read it has gone


def page_on(stream: TextIO) -> Page:
    """The page of a stream: with styles where it shows them, or is made to."""
    if stream.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE"):
        from rich.console import Console

        return Page(Console(file=stream, highlight=False))
    return PlainPage(stream)


def _columns() -> int:
    """How wide a page is that shows no styles: as the terminal that it was started from, if any."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns)
    for descriptor in range(3):
        try:
            return os.get_terminal_size(descriptor).columns or _WIDTH
        except OSError:  # no terminal
            continue
    return _WIDTH


def _wrapped(text: str, width: int) -> list[str] | None:
    """A text in lines of at most a width, as rich wraps it; None where it has to be measured."""
    if not _PLAIN.fullmatch(text):
        return None
    lines, begun, filled = list[str](), 0, 0
    for match in _WORD.finditer(text):
        length = len(match[0].rstrip())
        if length > width:
            return None  # it is folded
        if filled + length > width:
            lines.append(text[begun : match.start()].rstrip())
            begun, filled = match.start(), 0
        filled += len(match[0])
    return [*lines, text[begun:].rstrip()]
