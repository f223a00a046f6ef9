"""What ``assay calibrate`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from assay.cli.judging import add_judging
from assay.cli.options import add_trust_authors

__all__ = ["CALIBRATE_SUMMARY", "CALIBRATE_TEXTS", "add_calibrate"]

CALIBRATE_SUMMARY = "measure how far a grader agrees with people, and keep it on a card"

CALIBRATE_TEXTS = (
    """\
Any grader: a file of graders (several are combined), a stored grader, or a function of a Python
file, which is trusted and runs in this process. LABELS are the rows that `assay grade` takes, with
what people said of each answer: true or false, PASS or FAIL, MET or UNMET, a number from 0 to 1,
or one of --levels; a list or a mapping of them where several people labelled. The grader never
sees a label. What it could not judge is counted apart, and is no FAIL. The card is kept with the
digest of the grader and shown beside its scores; it is stale as soon as anything of the grader
changes.

exit status: 0 measured, 1 kappa is below --min-kappa, 2 bad input, 3 it could not be measured,
130 interrupted; the same command then goes on""",
    """\
  assay calibrate judge.yaml labelled.jsonl
  assay calibrate judge.yaml labelled.jsonl --repeats 3 --attacks builtin --min-kappa 0.6
  assay calibrate helpful@2 labelled.jsonl --label human --cluster question_id --json
  assay calibrate judge.yaml --labels-from-store
  assay calibrate --list
  assay calibrate --show latest""",
)


def add_calibrate(parser: ArgumentParser) -> None:
    """Add what ``assay calibrate`` takes."""
    add = parser.add_argument
    add("grader", nargs="?", metavar="GRADER", help="graders.yaml, KEY[@VERSION], or FILE.py")
    add("labels", nargs="?", metavar="LABELS.jsonl", help="rows with labels")
    add("--label", default="", metavar="FIELD", help="where the labels are; labels or label")
    add(
        "--labels-from-store",
        action="store_true",
        help="what `assay label` collected: of the rows of LABELS.jsonl, or of all",
    )
    add(
        "--levels",
        type=_names,
        default=(),
        metavar="A,B,...",
        help="all levels, lowest first, where labels are levels: 1,2,3,4,5 or POOR,FAIR,GOOD",
    )
    add("--cluster", default="", metavar="FIELD", help="rows that share it are not independent")
    add("--threshold", type=_number, metavar="X", help="score that passes; 0.5 by default")
    add("--repeats", type=_count, default=1, metavar="K", help="ask every row K times: flip rate")
    add(
        "--swap",
        nargs="?",
        const="auto",
        default="",
        metavar="FIELD",
        help="for graders of pairs: also exchange the answer with this field's; write it last, or "
        "as --swap=FIELD",
    )
    add("--attacks", default="", metavar="FILE", help="play attacks on failing answers; or builtin")
    add(
        "--unlabelled", action="store_true", help="also grade rows without a label: their pass rate"
    )
    add("--limit", type=_count, metavar="N", help="only the first N rows")
    add("--min-kappa", type=_kappa, metavar="X", help="fail below this agreement")
    add("--confidence", type=_share, default=0.95, metavar="C", help="of intervals; 0.95")
    add("--seed", type=_count_or_zero, default=0, metavar="N", help="of what is drawn; 0")
    add("--anew", action="store_true", help="do not go on with an interrupted calibration")
    add("--out", metavar="FILE", help="also write the card as JSON")
    add("--json", action="store_true", help="print one JSON object and nothing else")
    add("--list", action="store_true", help="show the cards that there are")
    add("--show", metavar="CARD", help="show a card: its id, a grader's name, or latest")
    add("--db", metavar="WHERE", help="a directory or postgresql://...; .assay by default")
    add("--project", default="default", metavar="KEY", help="of graders, labels and cards")
    add_trust_authors(parser)
    add_judging(parser)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _count(text: str) -> int:
    number = _count_or_zero(text)
    if not number:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return number


def _count_or_zero(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("inf")
    if not -1e9 <= number <= 1e9:
        raise ArgumentTypeError(f"{text!r} is no threshold")
    return number


def _kappa(text: str) -> float:
    number = _number(text)
    if not -1.0 <= number <= 1.0:
        raise ArgumentTypeError(f"{text!r} is no kappa, -1 to 1")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0.5 <= number < 1.0:
        raise ArgumentTypeError(f"{text!r} is no confidence, 0.5 to less than 1")
    return number
