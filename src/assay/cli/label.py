"""``assay label``: people's labels, one item at a time, kept as they are given."""

from __future__ import annotations

import getpass
import json
import random
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rich.console import Console

from assay.cli.label_keys import COMMANDS, Keys, key_names, opened_keys
from assay.cli.options import check_targets, state_home
from assay.errors import InputError
from assay.eval.calibration.items import Item, read_items
from assay.eval.calibration.scale import as_label
from assay.reports.figures import count
from assay.reports.files import replacing
from assay.reports.page import Page
from assay.reports.plain import first_lines, one_line
from assay.scoring.json_safe import Json
from assay.store.database import Database
from assay.store.labels import LabelRecord, Labels

__all__ = ["label_rows"]

_LINES: Mapping[str, int] = {"question": 16, "documents": 24, "reference": 12, "answer": 40}
_ALL = 10_000_000
_FIELD = "label"
_WIDTH = 1_000


def label_rows(given: Namespace) -> int:
    """Collect labels, or write those that there are.

    Returns:
        The exit status.

    Raises:
        InputError: For a malformed dataset, or one without rows.
    """
    check_targets((given.export,), inputs=(given.data,))
    items = _unique(given.data, given.field)
    rater = given.rater or _user()
    with Database.open(given.db or state_home()) as database:
        labels = Labels(database)
        if given.export:
            return _export(given, labels)
        labelled = labels.current(given.project, given.field, rater=rater)
        todo = [item for item in items if item.digest not in labelled]
        if given.shuffle is not None:
            todo = _shuffled(items, given.shuffle, set(labelled))
        page = Page(Console(highlight=False))
        work = _Work(given, labels, page, rater, len(items), len(items) - len(todo))
        with opened_keys(given.classes) as keys:
            work.go(todo, keys)
    page.line(f"{work.done:,} of {count(len(items), 'item')} labelled by {one_line(rater, 60)}")
    return 0


def _unique(file: str, label: str) -> list[Item]:
    """The items of a file; what is seen twice is labelled once."""
    found: dict[str, Item] = {}
    for item in read_items(file, label=label):
        found.setdefault(item.digest, item)
    if not found:
        raise InputError(f"{file} has no rows")
    return list(found.values())


def _shuffled(items: Sequence[Item], seed: int, labelled: set[str]) -> list[Item]:
    """A random order that is the same after every interruption."""
    order = sorted(items, key=lambda item: item.digest)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, no secret
    return [item for item in order if item.digest not in labelled]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "rater"


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
                self.page.line((f"{key!r:.20} is no key here", "yellow"))

    def _keep(self, item: Item, label: str, note: str) -> None:
        record = LabelRecord(
            item=item.digest,
            field=self.given.field,
            rater=self.rater,
            label=label,
            note=note,
            criterion=self.given.criterion,
        )
        row = {key: value for key, value in item.fields.items() if key != "grade"}
        self.labels.add(self.given.project, record, row)

    def _show(self, item: Item, lines: Mapping[str, int], width: int = _WIDTH) -> None:
        page, criterion = self.page, self.given.criterion
        page.blank()
        place = f"  {self.done + 1:,} of {self.total:,}  {visible(item.file, 1)[0]}"
        page.line((f"{one_line(_escaped(item.id), 60)}", "bold"), (place, "dim"))
        if criterion:
            page.line(("criterion  ", "dim"), one_line(_escaped(criterion), 1_000), hanging=11)
        for name, text in _parts(item).items():
            page.line((name, "dim"))
            page.quote(visible(text, lines[name], width))
        keys = {**key_names(self.given.classes), **COMMANDS}
        page.line(("  ".join(f"[{key}] {name}" for key, name in keys.items()), "cyan"))


def _parts(item: Item) -> dict[str, str]:
    """What a rater sees of an item; no score, verdict or metadata."""
    submission = item.submission
    thread = submission.thread
    turns = list(thread.turns) if thread is not None else []
    asked = submission.question or ""
    if len(turns) > 2:  # a conversation is more than its last question
        asked = "\n".join(f"{t.role}: {t.content}" for t in turns[:-1] if t.role != "document")
    documents = [turn.content for turn in turns if turn.role == "document"]
    for name in ("documents", "context"):
        found = submission.metadata.get(name)
        documents += [
            _text(one) for one in (found if isinstance(found, list) else [found] if found else [])
        ]
    expected = submission.expected
    parts = {
        "question": asked,
        "documents": "\n\n".join(documents),
        "reference": "" if expected is None else _text(expected),
        "answer": submission.answer or "",
    }
    return {name: text for name, text in parts.items() if text or name == "answer"}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
            else f"there are some of --field {_FIELD}",
        )
    raters = {rater for said in current.values() for rater in said}
    written = 0
    with replacing(given.export) as file:
        for item in read_items(given.data, label=given.field):
            said = current.get(item.digest)
            if said is None:
                continue
            by_rater: dict[str, Json] = {name: _plain(one.label) for name, one in said.items()}
            value = by_rater if len(raters) > 1 else next(iter(by_rater.values()))
            row = {key: v for key, v in item.fields.items() if key != "labels"}
            file.write(f"{json.dumps({**row, 'id': item.id, given.field: value})}\n")
            written += 1
    people = ", ".join(sorted(one_line(name, 40) for name in raters)) or "nobody"
    Page(Console(highlight=False)).line(
        f"{count(written, 'labelled row')} in {given.export}, by {people}"
    )
    return 0


def _plain(label: str) -> Json:
    """A verdict as true, false or null, which other commands read too; a level as it is.

    Also a level that is called NONE: as null it could no longer be told from no label.
    """
    said = None if label == "NA" else as_label(label, (label,))
    return cast("Json", said if isinstance(said, bool) or said is None else label)
