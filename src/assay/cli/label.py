"""``assay label``: people's labels, one item at a time, kept as they are given."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from rich.console import Console

from assay.cli.options import add_db, check_targets, explain, state_home, user_name, whole
from assay.cli.rows import add_reading, rows_given
from assay.errors import InputError
from assay.eval.calibration.labelled import Item, read_items
from assay.eval.calibration.labelling import (
    CLASSES,
    COMMANDS,
    kept_row,
    key_names,
    labelled_row,
    seen_of,
    shuffled,
    valid_classes,
)
from assay.reports.figures import count
from assay.reports.files import replacing
from assay.reports.page import Page
from assay.reports.plain import first_lines, one_line
from assay.store.database import Database
from assay.store.labels import LabelRecord, Labels

_MORE = """\
Each item is shown with its question, its documents and its answer, never with what a grader said
of it. One key labels it; u takes the last label back, s leaves an item for later, m shows all of
a long text, w writes a note, q ends. Labels are kept in the store as they are given, and the same
command goes on where it stopped. Without a terminal, lines of standard input are the keys.

exit status: 0 ended, 2 bad input, 3 the labels could not be kept, 130 interrupted"""
_EXAMPLES = """\
  assay label answers.jsonl
  assay label answers.jsonl --rater ada --criterion "The answer names the city." --shuffle 7
  assay label answers.jsonl --field tone --classes RUDE,NEUTRAL,KIND
  assay label answers.jsonl --export labelled.jsonl"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay label`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("data", metavar="DATA", help="rows of recorded answers")
    add("--field", default="label", metavar="NAME", help="what the labels are called; label")
    add("--rater", default="", metavar="NAME", help="who labels; your user name by default")
    add(
        "--classes",
        type=_classes,
        default=CLASSES,
        metavar="A,B,...",
        help="what an answer can be; PASS,FAIL,NA by default",
    )
    add("--criterion", default="", metavar="TEXT", help="what is asked; shown with every item")
    add("--shuffle", type=whole, metavar="SEED", help="show the items in a random order")
    add("--limit", type=whole, metavar="N", help="end after this many labels")
    add("--export", metavar="FILE", help="write the rows that have labels, and end")
    add_reading(parser)
    add_db(parser, "what the labels belong to")


def _classes(text: str) -> tuple[str, ...]:
    try:
        return valid_classes(text)
    except InputError as error:
        raise ArgumentTypeError(error.message) from error


_QUIT = "q"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
_MOST_NOTE = 2_000


class Keys(Protocol):
    """What a rater presses."""

    def forget(self) -> None:
        """Drop what was pressed before the item was shown."""
        ...

    def next(self) -> tuple[str, str]:
        """The next key and the note with it; ``q`` at the end."""
        ...

    def note(self, ask: Callable[[], None]) -> str:
        """A line of text, asked for once it can be written."""
        ...


@contextmanager
def opened_keys(classes: Sequence[str]) -> Generator[Keys]:
    """The keys of the terminal that standard input is, which is put back at the end; or lines."""
    if not sys.stdin.isatty():
        yield Lines(sys.stdin, classes)
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield _Terminal(descriptor, before)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Terminal:
    """Single keys, at once. Keys that send sequences, such as arrows, do nothing."""

    def __init__(self, descriptor: int, before: list[object]) -> None:
        self._descriptor = descriptor
        self._before = before
        self._waiting: deque[str] = deque()

    def forget(self) -> None:
        import termios

        self._waiting.clear()
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def next(self) -> tuple[str, str]:
        while not self._waiting:
            pressed = os.read(self._descriptor, 64)
            if not pressed or pressed[:1] == b"\x04":
                return _QUIT, ""
            self._waiting.extend(_SEQUENCE.sub(b"", pressed).decode("ascii", "replace"))
        return self._waiting.popleft().lower(), ""

    def note(self, ask: Callable[[], None]) -> str:
        import termios
        import tty

        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)  # pyright: ignore[reportArgumentType] - what tcgetattr gave
        try:
            ask()
            return sys.stdin.readline(_MOST_NOTE).strip()
        finally:
            tty.setcbreak(self._descriptor)


class Lines:
    """A line for each key: the key or the class, and a note behind it if there is one."""

    def __init__(self, source: TextIO, classes: Sequence[str]) -> None:
        self._source = source
        self._keys = {name.casefold(): key for key, name in key_names(classes).items()}

    def forget(self) -> None:
        """Lines are meant as they stand."""

    def next(self) -> tuple[str, str]:
        """The key of the next line that holds something."""
        for line in self._source:
            key, _, note = line.strip().partition(" ")
            if key:
                known = key.casefold()
                return self._keys.get(known, known), note.strip()[:_MOST_NOTE]
        return _QUIT, ""

    def note(self, ask: Callable[[], None]) -> str:
        """The next line."""
        ask()
        return self._source.readline(_MOST_NOTE).strip()


_LINES: Mapping[str, int] = {"question": 16, "documents": 24, "reference": 12, "answer": 40}
_ALL = 10_000_000
_FIELD = "label"
_WIDTH = 1_000


def run(given: Namespace) -> int:
    """Collect labels, or write those that there are."""
    check_targets((given.export,), inputs=(given.data,))
    if given.data == "-":
        raise InputError("labels are typed on standard input", hint="write the rows to a file")
    items = list(_unique(given).values())
    if not items:
        raise InputError(f"{given.data} has no rows")
    rater = given.rater or user_name("rater")
    with Database.open(given.db or state_home()) as database:
        labels = Labels(database)
        if given.export:
            return _export(given, labels)
        labelled = labels.current(given.project, given.field, rater=rater)
        todo = [item for item in items if item.digest not in labelled]
        if given.shuffle is not None:
            by_digest = {item.digest: item for item in todo}
            order = shuffled([item.digest for item in items], given.shuffle)
            todo = [by_digest[digest] for digest in order if digest in by_digest]
        page = Page(Console(highlight=False))
        work = _Work(given, labels, page, rater, len(items), len(items) - len(todo))
        with opened_keys(given.classes) as keys:
            work.go(todo, keys)
    page.line(f"{work.done:,} of {count(len(items), 'item')} labelled by {one_line(rater, 60)}")
    return 0


def _unique(given: Namespace) -> dict[str, Item]:
    """The items of a file by digest; what is seen twice is labelled once."""
    found: dict[str, Item] = {}
    for item in _read(given):
        found.setdefault(item.digest, item)
    return found


def _read(given: Namespace) -> Iterator[Item]:
    with rows_given(given, given.data, labels=(given.field,)) as rows:
        yield from read_items(rows.path, label=given.field, reading=rows.reading)


@dataclass(slots=True)
class _Work:
    """One rater at work."""

    given: Namespace
    labels: Labels
    page: Page
    rater: str
    total: int
    done: int
    history: list[Item] = field(default_factory=list[Item])

    def go(self, todo: Sequence[Item], keys: Keys) -> None:
        """Show items until the rater quits, or nothing is left."""
        waiting = list(reversed(todo))
        said = 0
        while waiting and (self.given.limit is None or said < self.given.limit):
            item = waiting.pop()
            choice = self._ask(item, keys)
            if choice == "quit":
                return
            if choice == "undo":
                waiting.append(item)
                before = self.history.pop()
                self._keep(before, "", "")
                waiting.append(before)
                self.done, said = self.done - 1, said - 1
            elif choice == "labelled":
                self.history.append(item)
                self.done, said = self.done + 1, said + 1

    def _ask(self, item: Item, keys: Keys) -> str:
        """Show an item until it is labelled or left; says what became of it."""
        classes = key_names(self.given.classes)
        keys.forget()
        self._show(item, _LINES)
        note = ""
        while True:
            key, written = keys.next()
            if key in classes:
                self._keep(item, classes[key], written or note)
                self.page.line((f"→ {classes[key]}", "bold"))
                return "labelled"
            command = COMMANDS.get(key, "")
            if command in ("quit", "skip") or (command == "undo" and self.history):
                return command
            if command == "more":
                self._show(item, dict.fromkeys(_LINES, _ALL), _ALL)
            elif command == "note":
                note = written or keys.note(lambda: self.page.line(("a line for the note:", "dim")))
                self.page.line(("noted; now a label", "dim"))
            elif command == "undo":
                self.page.line(("there is nothing to take back", "yellow"))
            elif key.strip():
                self.page.line((f"{key!r:.20} is not one of the keys", "yellow"))

    def _keep(self, item: Item, label: str, note: str) -> None:
        record = LabelRecord(
            item=item.digest,
            field=self.given.field,
            rater=self.rater,
            label=label,
            note=note,
            criterion=self.given.criterion,
        )
        self.labels.add(self.given.project, record, kept_row(item))

    def _show(self, item: Item, lines: Mapping[str, int], width: int = _WIDTH) -> None:
        page, criterion = self.page, self.given.criterion
        page.blank()
        place = f"  {self.done + 1:,} of {self.total:,}  {visible(item.file, 1)[0]}"
        page.line((f"{one_line(_escaped(item.id), 60)}", "bold"), (place, "dim"))
        if criterion:
            page.line(("criterion  ", "dim"), one_line(_escaped(criterion), 1_000), hanging=11)
        for name, text in seen_of(item).items():
            page.line((name, "dim"))
            page.quote(visible(text, lines[name], width))
        keys = {**key_names(self.given.classes), **COMMANDS}
        page.line(("  ".join(f"[{key}] {name}" for key, name in keys.items()), "cyan"))


def _escaped(text: str) -> str:
    """The text with the characters that begin escape sequences written out.

    A report may leave sequences away. A rater should see that there are some.
    """
    return "".join(f"\\x{ord(c):02x}" if c == "\x1b" or "\x80" <= c <= "\x9f" else c for c in text)


def visible(text: str, lines: int, width: int = _WIDTH) -> list[str]:
    """The first lines of a text that may be hostile to terminals, safe to show."""
    return first_lines(_escaped(text), lines, width=width) or ["(nothing)"]


def _export(given: Namespace, labels: Labels) -> int:
    """Write the rows that have labels: of one rater as they are, of several by rater."""
    current = labels.current(given.project, given.field, rater=given.rater or None)
    if not current:
        by = f" by {given.rater!r:.60}" if given.rater else ""
        is_usual = given.field == _FIELD or not labels.current(given.project, _FIELD)
        raise InputError(
            f"the store has no labels {given.field!r:.60}{by} in the project {given.project!r:.60}",
            hint="`assay label DATA.jsonl` collects them"
            if is_usual
            else f"there are labels for --field {_FIELD}",
        )
    raters = {rater for said in current.values() for rater in said}
    written = 0
    with replacing(given.export) as file:
        for item in _read(given):
            said = current.get(item.digest)
            if said is None:
                continue
            words = {name: one.label for name, one in said.items()}
            row = labelled_row(item, given.field, words, by_rater=len(raters) > 1)
            file.write(f"{json.dumps(row)}\n")
            written += 1
    people = ", ".join(sorted(one_line(name, 40) for name in raters)) or "nobody"
    Page(Console(highlight=False)).line(
        f"{count(written, 'labelled row')} in {given.export}, by {people}"
    )
    return 0
