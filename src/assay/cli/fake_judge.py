"""``assay fake-judge``: a model for tests, until Ctrl-C."""

from __future__ import annotations

import json
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import explain, port
from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.testing import Answer, FakeJudge, Recording

if TYPE_CHECKING:
    from argparse import Namespace


_MORE = """\
A model on this machine, for tests of what asks models: OpenAI's chat completions and Anthropic's
messages. It prints its address and the variables that lead programs to it. Without answers it is a
judge that grades by simple rules and obeys every order outside fences. Ctrl-C ends it.

exit status: 0 ended, 2 bad input"""

_EXAMPLES = """\
  assay fake-judge
  assay fake-judge --port 8001 --fault 429:retry_after=1x2 --fault 500:probability=0.1
  assay fake-judge --answers replies.jsonl
  assay fake-judge --answers recorded.jsonl --record https://models.example.com/v1"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay fake-judge`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("--port", type=port, default=0, metavar="N", help="a free one by default")
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
        "an unknown word lists them all",
    )
    add(
        "--record",
        metavar="URL",
        help="send requests on to the model at this base URL, and keep its replies in --answers",
    )
    add("--model", default="fake-judge", metavar="NAME", help="name of the model")
    add(
        "--seed", type=int, default=0, metavar="N", help="random seed for faults with a probability"
    )


def run(given: Namespace) -> int:
    """Serve a fake judge."""
    if given.record is not None and given.answers is None:
        raise InputError("--record needs --answers FILE, where the replies are kept")
    fake = FakeJudge(
        _answers(given.answers, is_recorded=given.record is not None),
        faults=given.fault,
        record=given.record,
        model=given.model,
        port=given.port,
        seed=given.seed,
    )
    try:
        fake.start()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot listen on port {given.port}: {reason}") from None
    try:
        print(f"serving {given.model} at {fake.base_url} (Ctrl-C ends it)")
        for name, value in fake.environment().items():
            if name.endswith("_URL"):
                print(f"export {name}={value}")
        print(end="", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:  # how it is meant to end
        pass
    finally:
        fake.stop()
    return 0


def _answers(file: str | None, *, is_recorded: bool) -> Answer:
    if file is None:
        return None
    if is_recorded:
        _check_can_be_written(Path(file))
        return Recording(file)
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    script: list[Json] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            script.append(_reply(line, file, number))
    first = script[0] if script else None
    if isinstance(first, dict) and {"key", "status", "body"} <= set(first):
        return Recording(file)
    return script


def _check_can_be_written(file: Path) -> None:
    """Refuse, before anything is asked and paid, a file that no reply can be kept in."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"replies cannot be kept in {file}: {reason}") from None


def _reply(line: str, file: str, number: int) -> Json:
    try:
        return cast("Json", json.loads(line))
    except ValueError as error:
        raise InputError(
            f"line {number} is not JSON: {error}",
            hint='a reply that is text is written "in quotes"',
            location=Location(file, number),
        ) from None
