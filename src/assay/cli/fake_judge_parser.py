"""What ``assay fake-judge`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

__all__ = ["FAKE_JUDGE_EXAMPLES", "FAKE_JUDGE_MORE", "add_fake_judge"]

FAKE_JUDGE_MORE = """\
A model on this machine, for tests of what asks models: OpenAI's chat completions and Anthropic's
messages. It prints its address and the variables that lead programs to it. Without answers it is a
judge that grades by simple rules and obeys every order outside fences. Ctrl-C ends it.

exit status: 0 ended, 2 bad input"""

FAKE_JUDGE_EXAMPLES = """\
  assay fake-judge
  assay fake-judge --port 8001 --fault 429:retry_after=1x2 --fault 500:probability=0.1
  assay fake-judge --answers replies.jsonl
  assay fake-judge --answers recorded.jsonl --record https://models.example.com/v1"""


def add_fake_judge(parser: ArgumentParser) -> None:
    """Add what ``assay fake-judge`` takes."""
    add = parser.add_argument
    add("--port", type=_port, default=0, metavar="N", help="a free one by default")
    add(
        "--answers",
        metavar="FILE",
        help="JSON lines: replies in order (a text, or JSON that is the reply), or a recording",
    )
    add(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="KIND, KIND:name=value,... and xN for N requests, in order: 429:retry_after=1x2; "
        "any word that is none lists them",
    )
    add(
        "--record",
        metavar="URL",
        help="send requests on to the model at this base URL, and keep its replies in --answers",
    )
    add("--model", default="fake-judge", metavar="NAME", help="what the model is called")
    add("--seed", type=int, default=0, metavar="N", help="of faults with a probability")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)
