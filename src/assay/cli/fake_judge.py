"""``assay fake``: a model for tests, until Ctrl-C."""

from __future__ import annotations

import json
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import explain, port
from assay.conversation.turns import Call, Part, Text, Thought
from assay.errors import InputError, Location
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge, FakeModel, Fault, calls, says, solver

if TYPE_CHECKING:
    from argparse import Namespace


_MORE = """\
A model on this machine, for tests of agents: OpenAI's chat completions and responses and
Anthropic's messages, streamed and not, with tool calls. It prints its address and the variables
that lead programs to it. Without a script it repairs the case of examples/repair through any
agent's shell. Ctrl-C ends it.

A line of a script is what the model does in one turn: a text in quotes; an object with any of
"thought", "text" and "calls", a list of {"name": TOOL, "arguments": {...}}, or with "input" for a
tool that takes text; {"fault": SPEC}, as --fault takes it; or any other JSON, which is a reply.

With --judge it is one for tests of judges: a line of FILE is a reply, in order (a text, or JSON
that is the reply). Without FILE it grades by simple rules and obeys every order outside fences.

exit status: 0 ended, 2 bad input"""

_EXAMPLES = """\
  assay fake
  assay fake turns.jsonl --each --fault 529x2
  assay fake --judge
  assay fake --judge --port 8001 --fault 429:retry_after=1x2 --fault 500:probability=0.1
  assay fake --judge replies.jsonl"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay fake`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="JSON lines: what it does or replies, in order")
    add("--judge", action="store_true", help="a model for judges, instead of one for agents")
    each = "each conversation goes through the script for itself"
    add("--each", action="store_true", help=each)
    add("--port", type=port, default=0, metavar="N", help="a free one by default")
    add(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="KIND, KIND:name=value,... and xN for N requests, in order: 429:retry_after=1x2; "
        "an unknown word lists them all",
    )


def run(given: Namespace) -> int:
    """Serve a fake model, or a fake judge."""
    if given.judge:
        replies = None if given.file is None else [value for value, _ in _lines(given.file)]
        return _serve(FakeJudge(replies, faults=given.fault, port=given.port), given)
    move = solver if given.file is None else [_move(*line) for line in _lines(given.file)]
    each = given.each and given.file is not None
    return _serve(FakeModel(move, each=each, faults=given.fault, port=given.port), given)


def _move(value: Json, where: Location) -> object:
    """What one line of a script says."""
    if not isinstance(value, dict) or not value:
        return value
    if set(value) == {"fault"}:
        return Fault.parse(str(value["fault"]))
    if not set(value) <= {"thought", "text", "calls"}:
        return value
    said = [value[name] for name in ("thought", "text") if name in value]
    listed = value.get("calls", [])
    if not all(isinstance(one, str) for one in said) or not isinstance(listed, list):
        raise _not_a_turn(where)
    thought, text = value.get("thought"), value.get("text")
    parts: list[Part] = [Thought(thought)] if isinstance(thought, str) else []
    parts += [Text(text)] if isinstance(text, str) else []
    return says(*parts, *(_called(one, where) for one in listed))


def _called(value: Json, where: Location) -> Call:
    match value:
        case {"name": str(name), "input": str(text), **rest} if not rest:
            return calls(name, text)
        case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
            return calls(name, **arguments)
        case _:
            raise _not_a_turn(where)


def _not_a_turn(where: Location) -> InputError:
    return InputError(
        f"line {where.line} is not a turn",
        hint='write {"text": "...", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}',
        location=where,
    )


def _serve(fake: FakeModel, given: Namespace) -> int:
    try:
        fake.start()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot listen on port {given.port}: {reason}") from None
    try:
        print(f"serving {fake.model_name} at {fake.base_url} (Ctrl-C ends it)")
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


def _lines(file: str) -> list[tuple[Json, Location]]:
    """The values of a file of JSON lines, and where they stand."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    return [
        (_reply(line, file, number), Location(file, number))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _reply(line: str, file: str, number: int) -> Json:
    try:
        return cast("Json", json.loads(line))
    except ValueError as error:
        raise InputError(
            f"line {number} is not JSON: {error}",
            hint='a reply that is text is written "in quotes"',
            location=Location(file, number),
        ) from None
