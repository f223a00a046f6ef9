"""What ``assay endpoint`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from assay.cli.options import add_trust_authors, bounds

__all__ = ["ENDPOINT_EXAMPLES", "ENDPOINT_MORE", "add_endpoint"]

ENDPOINT_MORE = """\
What is served is a function of a Python file, which is trusted and runs in this process; a file
of graders; or the key of a stored grader. It answers /v1/grade, and in the forms of Adaptive's
reward server, OpenRLHF's remote reward model and NeMo Gym's verify. Ctrl-C ends it.

exit status: 0 ended, 2 bad input, 3 it could not be served"""

ENDPOINT_EXAMPLES = """\
  assay endpoint reward.py
  assay endpoint reward.py:grade --port 8080 --token-env REWARD_TOKEN
  assay endpoint graders.yaml --host 0.0.0.0 --token-env REWARD_TOKEN
  assay endpoint exact@3"""


def add_endpoint(parser: ArgumentParser) -> None:
    """Add what ``assay endpoint`` takes."""
    add = parser.add_argument
    add(
        "grader",
        metavar="GRADER",
        help="FILE.py or FILE.py:FUNCTION, a graders.yaml, or KEY or KEY@VERSION of a stored one",
    )
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; only this machine")
    add("--port", type=_port, default=8000, metavar="N", help="8000 by default; 0 takes a free one")
    add("--token-env", default="", metavar="NAME", help="variable with the bearer token to ask for")
    add("--hmac-env", default="", metavar="NAME", help="variable with the secret of signatures")
    add(
        "--without-auth",
        action="store_true",
        help="let others in without a secret, where callers can send none",
    )
    add("--name", default="", help="what it is called; the grader's name by default")
    add(
        "--range",
        dest="score_range",
        type=bounds,
        metavar="LOW,HIGH",
        help="scores that a function may give; 0,1 by default",
    )
    add("--max-batch", type=_positive, default=256, metavar="N", help="items in one request")
    add(
        "--on-error",
        choices=("zero", "fail"),
        default="zero",
        help="what OpenRLHF is told of a sample that cannot be graded: 0 and graded=0, or 500",
    )
    add("--db", metavar="WHERE", help="a directory or postgresql://...; .assay by default")
    add("--project", default="default", metavar="KEY", help="of the stored grader")
    add_trust_authors(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)
