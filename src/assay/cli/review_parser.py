"""What ``assay review`` takes."""

from __future__ import annotations

from argparse import ArgumentParser

__all__ = ["REVIEW_SUMMARY", "REVIEW_TEXTS", "add_review"]

REVIEW_SUMMARY = "decide about the cells of a run that are held or flagged"

REVIEW_TEXTS = (
    """\
Each cell is shown with its signs, where they stand, and its reward. o lets the reward stand (a
held cell gets it), z makes it 0, s leaves the cell for later, w writes a note, q ends. Decisions
are kept beside the scores, which stay as they are; reports follow them. The same command goes on
where it stopped. Without a terminal, lines of standard input are the keys.

exit status: 0 ended, 2 bad input, 3 the decisions could not be kept, 130 interrupted""",
    """\
  assay review latest
  assay review latest --json
  assay review latest --decide 1f2e3d4c=ok --note "ctypes is what the task asks for\"""",
)


def add_review(parser: ArgumentParser) -> None:
    """Add what ``assay review`` takes."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a run's id, a prefix of it, its label, or latest")
    add(
        "--decide",
        action="append",
        default=[],
        metavar="CELL=ok|zero",
        help="decide without asking; the cell's id, or its case where no other has it",
    )
    add("--note", default="", metavar="TEXT", help="what to write beside the decisions")
    add("--by", default="", metavar="NAME", help="who decides; your user name by default")
    add("--again", action="store_true", help="also show what was decided before")
    add("--json", action="store_true", help="print the cells with their signs and decisions")
