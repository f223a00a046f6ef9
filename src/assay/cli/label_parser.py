"""What ``assay label`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

__all__ = ["LABEL_SUMMARY", "LABEL_TEXTS", "add_label"]

LABEL_SUMMARY = "label answers by hand, one at a time, for `assay calibrate`"

LABEL_TEXTS = (
    """\
Each item is shown with its question, its documents and its answer, never with what a grader said
of it. One key labels it; u takes the last label back, s leaves an item for later, m shows all of
a long text, w writes a note, q ends. Labels are kept in the store as they are given, and the same
command goes on where it stopped. Without a terminal, lines of standard input are the keys.

exit status: 0 ended, 2 bad input, 3 the labels could not be kept, 130 interrupted""",
    """\
  assay label answers.jsonl
  assay label answers.jsonl --rater ada --criterion "The answer names the city." --shuffle 7
  assay label answers.jsonl --field tone --classes RUDE,NEUTRAL,KIND
  assay label answers.jsonl --export labelled.jsonl""",
)


def add_label(parser: ArgumentParser) -> None:
    """Add what ``assay label`` takes."""
    add = parser.add_argument
    add("data", metavar="DATA.jsonl", help="rows of recorded answers")
    add("--field", default="label", metavar="NAME", help="what the labels are called; label")
    add("--rater", default="", metavar="NAME", help="who labels; your user name by default")
    add(
        "--classes",
        type=_classes,
        default=("PASS", "FAIL", "NA"),
        metavar="A,B,...",
        help="what an answer can be; PASS,FAIL,NA by default",
    )
    add("--criterion", default="", metavar="TEXT", help="what is asked; shown with every item")
    add("--shuffle", type=_whole, metavar="SEED", help="show the items in a random order")
    add("--limit", type=_whole, metavar="N", help="end after this many labels")
    add("--export", metavar="FILE", help="write the rows that have labels, and end")
    add("--db", metavar="WHERE", help="a directory or postgresql://...; .assay by default")
    add("--project", default="default", metavar="KEY", help="what the labels belong to")


def _classes(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not 2 <= len(names) <= 9 or len(set(names)) < len(names) or not all(names):
        raise ArgumentTypeError(f"{text!r} is not 2 to 9 names such as PASS,FAIL,NA")
    if any(len(name) > 40 or not name.isprintable() for name in names):
        raise ArgumentTypeError(f"{text!r} has a name of more than 40 characters, or unseen ones")
    return names


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)
