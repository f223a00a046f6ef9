"""``assay fake judge`` and ``assay fake``: a model for tests, until Ctrl-C."""

from __future__ import annotations

import json
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.options import explain, port
from assay.errors import InputError, Location
from assay.models.conversation import Call, Part, Text, Thought
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge, FakeModel, Fault, calls, says, solver
from assay.testing.serving import FakeServer

if TYPE_CHECKING:
    from argparse import Namespace


_MORE = """\
A model on this machine, for tests of what asks models: OpenAI's chat completions and Anthropic's
messages. It prints its address and the variables that lead programs to it. Without answers it is a
judge that grades by simple rules and obeys every order outside fences. Ctrl-C ends it.

exit status: 0 ended, 2 bad input"""

_EXAMPLES = """\
  assay fake judge
  assay fake judge --port 8001 --fault 429:retry_after=1x2 --fault 500:probability=0.1
  assay fake judge --answers replies.jsonl"""


_MODEL_MORE = """\
A model on this machine, for tests of agents: OpenAI's chat completions and responses and
Anthropic's messages, streamed and not, with tool calls. It prints its address and the variables
that lead programs to it. Ctrl-C ends it.

A line of a script is what the model does in one turn: a text in quotes; an object with any of
"thought", "text" and "calls", a list of {"name": TOOL, "arguments": {...}}, or with "input" for a
tool that takes text; {"fault": SPEC}, as --fault takes it; or any other JSON, which is a reply.

exit status: 0 ended, 2 bad input"""

_MODEL_EXAMPLES = """\
  assay fake --solver
  assay fake --script turns.jsonl --each --fault 529x2"""


def add_model(parser: ArgumentParser) -> None:
    """Say what ``assay fake`` takes."""
    explain(parser, _MODEL_MORE, _MODEL_EXAMPLES)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--script", metavar="FILE", help="JSON lines: what it does, turn by turn")
    chosen.add_argument(
        "--solver",
        action="store_true",
        help="repair the case of examples/repair through any agent's shell",
    )
    parser.add_argument(
        "--each", action="store_true", help="each conversation goes through the script for itself"
    )
    _add_common(parser, "fake-model")


def run_model(given: Namespace) -> int:
    """Serve a fake model."""
    move = solver if given.solver else [_move(*line) for line in _lines(given.script)]
    fake = FakeModel(
        move,
        each=given.each and not given.solver,
        faults=given.fault,
        model=given.model,
        port=given.port,
        seed=given.seed,
    )
    return _serve(fake, given)


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


def add(parser: ArgumentParser) -> None:
    """Say what ``assay fake judge`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add(
        "--answers",
        metavar="FILE",
        help="JSON lines: replies in order (a text, or JSON that is the reply)",
    )
    _add_common(parser, "fake-judge")


def _add_common(parser: ArgumentParser, model: str) -> None:
    add = parser.add_argument
    add("--port", type=port, default=0, metavar="N", help="a free one by default")
    add(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="KIND, KIND:name=value,... and xN for N requests, in order: 429:retry_after=1x2; "
        "an unknown word lists them all",
    )
    add("--model", default=model, metavar="NAME", help="name of the model")
    add(
        "--seed", type=int, default=0, metavar="N", help="random seed for faults with a probability"
    )


def run(given: Namespace) -> int:
    """Serve a fake judge."""
    fake = FakeJudge(
        None if given.answers is None else [value for value, _ in _lines(given.answers)],
        faults=given.fault,
        model=given.model,
        port=given.port,
        seed=given.seed,
    )
    return _serve(fake, given)


def _serve(fake: FakeServer, given: Namespace) -> int:
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
