"""``assay calibrate label``: the page on some rows, to label them, and rows that have labels."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlencode

from assay.cli.options import add_db, check_targets, explain, store_place, user_name, whole
from assay.cli.rows import add_reading, rows_given
from assay.cli.view import add_page, open_page
from assay.errors import InputError, NotFoundError
from assay.eval.calibration.labelled import Item, read_items
from assay.eval.calibration.labelling import CLASSES, labelled_row, valid_classes
from assay.reports.figures import count
from assay.reports.files import replacing
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.labels import Labels

_MORE = """\
Opens the page on the rows: each item with its question, its documents and its answer, never with
what a grader said of it. One key labels it. Labels are kept as they are given, and the same command
goes on where it stopped. Ctrl-C ends it. From another machine, forward its port (`assay view`).

exit status: 0 ended, 2 bad input, 3 the labels could not be kept, 130 interrupted"""
_EXAMPLES = """\
  assay calibrate label answers.jsonl
  assay calibrate label answers.jsonl --rater ada --criterion "It names the city." --shuffle 7
  assay calibrate label answers.jsonl --label tone --classes RUDE,NEUTRAL,KIND
  assay calibrate label answers.jsonl --out labelled.jsonl"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay calibrate label`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("data", metavar="DATA", help="rows of recorded answers")
    add("--label", default="label", metavar="NAME", help="what the labels are called; label")
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
    add("--out", metavar="FILE", help="write the rows that have labels, and end")
    add_page(parser)
    add_reading(parser)
    add_db(parser, "what the labels belong to")


def _classes(text: str) -> tuple[str, ...]:
    try:
        return valid_classes(text)
    except InputError as error:
        raise ArgumentTypeError(error.message) from error


_FIELD = "label"


def run(given: Namespace) -> int:
    """Open the page on the rows, or write those that have labels."""
    check_targets((given.out,), inputs=(given.data,))
    where = store_place()
    if given.out:
        with Database.open(where) as database:
            return _export(given, Labels(database))
    return open_page(given, where, lambda: _queue(given, where))


def _queue(given: Namespace, where: str) -> str:
    """The address of the page's queue of the rows."""
    with Database.open(where) as database:
        dataset = _stored(given, Datasets(database))
    asked = {
        "dataset": dataset,
        "field": given.label,
        "classes": ",".join(given.classes),
        "criterion": given.criterion,
        "seed": given.shuffle,
        "rater": given.rater or user_name("rater"),
    }
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"/p/{quote(given.project, safe='')}/labels/queue?{query}"


def _stored(given: Namespace, datasets: Datasets) -> str:
    """The key of the dataset that the rows are, which is stored the first time."""
    rows = [dict(item.fields) for item in _read(given)]
    if not rows:
        raise InputError(f"{given.data} has no rows")
    said = json.dumps(rows, sort_keys=True).encode()
    name = re.sub(r"[^a-z0-9]+", "-", Path(given.data).name.partition(".")[0].lower())[:40]
    key = f"{name.strip('-') or 'rows'}-{hashlib.sha256(said).hexdigest()[:8]}"
    with suppress(NotFoundError):
        return datasets.get(given.project, key).key
    return datasets.create(given.project, key, given.data, rows).key


def _read(given: Namespace) -> Iterator[Item]:
    with rows_given(given, given.data, labels=(given.label,)) as rows:
        yield from read_items(rows.path, label=given.label, reading=rows.reading)


def _export(given: Namespace, labels: Labels) -> int:
    """Write the rows that have labels: of one rater as they are, of several by rater."""
    current = labels.current(given.project, given.label, rater=given.rater or None)
    if not current:
        by = f" by {given.rater!r:.60}" if given.rater else ""
        is_usual = given.label == _FIELD or not labels.current(given.project, _FIELD)
        raise InputError(
            f"the store has no labels {given.label!r:.60}{by} in the project {given.project!r:.60}",
            hint="`assay calibrate label DATA.jsonl` collects them"
            if is_usual
            else f"there are labels for --label {_FIELD}",
        )
    raters = {rater for said in current.values() for rater in said}
    written = 0
    with replacing(given.out) as file:
        for item in _read(given):
            said = current.get(item.digest)
            if said is None:
                continue
            words = {name: one.label for name, one in said.items()}
            row = labelled_row(item, given.label, words, by_rater=len(raters) > 1)
            file.write(f"{json.dumps(row)}\n")
            written += 1
    people = ", ".join(sorted(one_line(name, 40) for name in raters)) or "nobody"
    page_on(sys.stdout).line(f"{count(written, 'labelled row')} in {given.out}, by {people}")
    return 0
