"""A console page on which nothing that is shown can act.

Recorded text brings no markup, no escape sequence and no line of its own, and no command to the
build service whose log the page may end up in: those read ``::command::`` at the start of a line,
and ``##[command]`` anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, TextIO, TypeAlias

from assay.reports.figures import DASH, MINUS, TIMES
from assay.reports.outcome import Ended
from assay.reports.plain import plain

if TYPE_CHECKING:
    from rich.console import Console

Part: TypeAlias = "str | tuple[str, str]"
"""Some text, or text with a style such as ``"bold red"``."""

Span: TypeAlias = "tuple[str, str]"
"""Text of one line, and its style."""

Line: TypeAlias = "Sequence[Span]"

Cell: TypeAlias = "tuple[Line, ...]"
"""What a page makes of parts for a table: lines."""

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
_NARROW = re.compile(f"[ -~{''.join(_ASCII_FORMS)}]*")
"""Text of which each character takes one column."""
_CODES = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "magenta": 35,
    "cyan": 36,
}
"""What a terminal is told for each style (ECMA-48)."""
_COLOURS = 30
"""From here they are colours."""
_WIDTH = 80
_BETWEEN = 2  # columns of a table


class TextPage:
    """Writes to a stream, in ASCII where its encoding has no more."""

    def __init__(self, stream: TextIO, *, width: int | None = None, styled: bool = False) -> None:
        """Begin.

        Args:
            stream: Where to.
            width: Columns there are to write on; those of the terminal by default.
            styled: Whether styles are shown, and what was written can be redrawn.
        """
        self._stream = stream
        self._ascii = not (stream.encoding or "utf-8").lower().startswith("utf")
        self._codes = _CODES if styled else {}
        if "NO_COLOR" in os.environ:
            self._codes = {name: code for name, code in self._codes.items() if code < _COLOURS}
        self.is_live = styled
        self.width = max(20, _columns() if width is None else width)

    @property
    def console(self) -> Console:
        """What rich draws on; loads it, which takes as long as to run thirty cells."""
        from rich.console import Console

        return Console(file=self._stream, force_terminal=self.is_live, width=self.width)

    def text(self, *parts: Part) -> Cell:
        """Parts as one piece of text without line feeds, for a line or a table's cell."""
        return (tuple(map(self._span, parts)),)

    def stacked(self, *lines: str) -> Cell:
        """Texts below each other in one cell of a table."""
        return tuple((self._span(line),) for line in lines)

    def line(self, *parts: Part, indent: int = 0, hanging: int = 0) -> None:
        """Write one line; where it must be wrapped, later lines are indented ``hanging`` more."""
        ((*spans,),) = self.text(*parts)
        for number, piece in enumerate(_wrapped(spans, max(10, self.width - indent - hanging))):
            start = " " * (indent + hanging if number else indent)
            if "".join(words for words, _ in piece).lstrip().startswith("::"):
                start += self._spelled("│ ")
            self._put([(start, ""), *piece])

    def quote(self, lines: Iterable[str], *, indent: int = 0) -> None:
        """Write recorded text with a bar before every line, so that it cannot pose as the report's.

        Lines that are too long are broken, and every piece gets its bar.
        """
        bar = " " * indent + self._spelled("│ ")
        for line in lines:
            for row in plain(line).split("\n"):
                for piece in _wrapped([self._span((row, "dim"))], max(10, self.width - len(bar))):
                    self._put([(bar if piece else bar.rstrip(), "dim"), *piece])

    def blank(self) -> None:
        """Write an empty line."""
        self._put([])

    def table(
        self,
        header: Sequence[Cell | str],
        rows: Iterable[Sequence[Cell | str]],
        *,
        left: int,
        whole: int = 0,
    ) -> None:
        """Write a table whose first ``left`` columns hold text, and the others numbers.

        Where it is too wide, the widest texts give way, but for those of the first ``whole``
        columns and for numbers.
        """
        titles = [_dimmed(self._cell(cell)) for cell in header]
        high = max(map(len, titles), default=0)
        titles = [((),) * (high - len(title)) + title for title in titles]
        table = [titles, *([self._cell(cell) for cell in row] for row in rows)]
        widths = [
            max(columns_of("".join(words for words, _ in line)) for cell in column for line in cell)
            for column in zip(*table, strict=True)
        ]
        room = self.width - _BETWEEN * (len(widths) - 1)
        while sum(widths) > room and max(widths) > 1:
            yielding = [at for at in range(whole, left) if widths[at] > 1] or range(len(widths))
            widths[max(yielding, key=widths.__getitem__)] -= 1
        for row in table:
            self._put_row(row, widths)

    def _put_row(self, row: Sequence[Cell], widths: Sequence[int]) -> None:
        broken = [
            [piece for line in cell for piece in _wrapped(line, width)]
            for cell, width in zip(row, widths, strict=True)
        ]
        for pieces in zip_longest(*broken, fillvalue=()):
            line: list[Span] = []
            for piece, width in zip(pieces, widths, strict=True):
                room = width + _BETWEEN - columns_of("".join(words for words, _ in piece))
                line += [*piece, (" " * room, "")]
            line[-1] = (line[-1][0][:-_BETWEEN], "")
            self._put(line)

    def _cell(self, cell: Cell | str) -> Cell:
        return self.text(cell) if isinstance(cell, str) else cell

    def _span(self, part: Part) -> Span:
        words, style = (part, "") if isinstance(part, str) else part
        return " ".join(self._spelled(words).split("\n")), style

    def _spelled(self, words: str) -> str:
        shown = _COMMAND.sub("# #", plain(words)).expandtabs(8)
        if not self._ascii:
            return shown
        return shown.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")

    def _put(self, line: Line) -> None:
        try:
            self._stream.write("".join(self._shown(*span) for span in line) + "\n")
        except BrokenPipeError:
            raise SystemExit(1) from None  # whoever read it has gone

    def _shown(self, words: str, style: str) -> str:
        codes = [str(self._codes[name]) for name in style.split() if name in self._codes]
        return f"\x1b[{';'.join(codes)}m{words}\x1b[0m" if codes and words else words


def page_on(stream: TextIO) -> TextPage:
    """The page of a stream: with styles where it shows them, or is made to."""
    is_asked = os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return TextPage(stream, styled=bool(is_asked or stream.isatty()) and not is_dumb)


def _columns() -> int:
    """How wide a page is: as the terminal that it was started from, if any."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns)
    for descriptor in range(3):
        try:
            return os.get_terminal_size(descriptor).columns or _WIDTH
        except OSError:  # no terminal
            continue
    return _WIDTH


def _dimmed(cell: Cell) -> Cell:
    return tuple([(words, style or "dim") for words, style in line] for line in cell)


def columns_of(text: str) -> int:
    """Columns that a text takes."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _wrapped(line: Line, width: int) -> list[Line]:
    """A line in pieces of at most a width, broken between words; words too long are folded."""
    text = "".join(words for words, _ in line)
    begins, filled = [0], 0
    for match in _WORD.finditer(text):
        length = columns_of(match[0].rstrip())
        if length > width:
            for place, letter in enumerate(match[0].rstrip(), match.start()):
                wide = columns_of(letter)
                if (place == match.start() and filled) or filled + wide > width:
                    begins, filled = [*begins, place], 0
                filled += wide
            filled += len(match[0]) - len(match[0].rstrip())
        elif filled + length > width and match.start():
            begins, filled = [*begins, match.start()], columns_of(match[0])
        else:
            filled += columns_of(match[0])
    return [
        list(_sliced(line, begin, begin + len(text[begin:end].rstrip())))
        for begin, end in pairwise([*begins, len(text)])
    ]


def _sliced(line: Line, begin: int, end: int) -> Iterator[Span]:
    for words, style in line:
        if part := words[max(0, begin) : max(0, end)]:
            yield part, style
        begin, end = begin - len(words), end - len(words)
