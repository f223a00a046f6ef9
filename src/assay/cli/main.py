"""The ``assay`` command: find the module of the command that is named, and nothing else.

argparse, because it starts in a hundredth of a second: `assay` is called in loops and in CI, and a
parser that imports a validation library would cost more than the grading of fifty cells.
"""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, NoReturn, cast

from assay.cli.options import BAD_INPUT, INTERRUPTED, NOT_GRADED, let_go_of_output, store_named
from assay.errors import AssayError, InputError

COMMANDS = {
    "init": ("demo:init", "write a starter suite that runs"),
    "run": ("run", "run cases and tasks: every harness, model and trial, graded and stored"),
    "grade": ("grade", "grade recorded answers"),
    "report": ("report", "show a stored run, failing cells first, or a case of it, opened"),
    "view": ("view", "open the web page on the stored runs: one command, nothing to set up"),
    "compare": ("compare", "compare two runs, or two agents of one, cell by cell"),
    "selftest": (
        "prove:selftest",
        "prove that cases grade right: known-good work passes, no work and known-bad does not",
    ),
    "calibrate": (
        "calibrate",
        "measure how far a grader agrees with people, and keep it on a card",
    ),
    "calibrate cards": ("calibrate:cards", "list the calibration cards, or show one"),
    "calibrate label": ("label", "open the page to label answers"),
    "serve": ("serve", "serve the registry, jobs and scores over HTTP"),
    "serve env": ("env", "serve the tasks of a Python environment to agents and trainers"),
    "serve grader": ("endpoint", "serve a grader over HTTP, to trainers and other systems"),
    "validate": ("check:validate", "check cases and grader files without running anything"),
    "list": ("list", "list cases, and the templates and tasks of Python environments"),
    "import": ("imports", "write other systems' tasks as cases"),
    "demo": ("demo", "grade the example suite: no key, nothing to configure"),
    "regrade": ("run:regrade", "grade a stored run again, without running any agent"),
    "runs": ("runs", "list, export, import and delete stored runs"),
    "runs review": ("review", "open the page on the cells that are held or flagged, or decide"),
    "runs promote": ("promote", "keep the work of a cell as a recording of its case"),
    "runs trainability": (
        "trainability",
        "show whether a run's groups of trials would teach a trainer anything",
    ),
    "attack": ("prove:attack", "play the library of cheats against cases and show which ones pay"),
    "graders": ("graders", "store, version, prove and use graders"),
    "fake": (
        "fake_judge",
        "run a local fake LLM that costs nothing, to test agents or judges",
    ),
    "doctor": ("doctor", "say what works on this machine, and how to fix what does not"),
    "server": (
        "stored_commands:server",
        "list and change what servers store: datasets, jobs, scores, projects, keys and so on",
    ),
}
"""The module of every command, after a colon its part of it, and what the command does.

The module has ``add(parser)`` and ``run(given)``; ``add_PART`` and ``run_PART`` for a part. A name
of two words stands below the command that its first word is.
"""

_GROUPS = {
    "every day": "init run grade report view compare selftest calibrate serve",
    "write": "validate list import demo",
    "run and look again": "regrade runs",
    "prove": "attack graders fake",
    "administer": "doctor server",
}
"""The commands as help shows them."""

_LISTED = ("runs", "graders")
"""Commands that list what there is where no action is named."""

_STORED = ("audit", "datasets", "jobs", "keys", "projects", "scores", "traces")
_MEANT = {
    "endpoint": "serve grader",
    "env": "serve env",
    "eval": "run",
    "evaluate": "run",
    "fake judge": "fake --judge",
    "fake-judge": "fake --judge",
    "fake-model": "fake",
    "harnesses": "doctor agents",
    "help": "--help",
    "images": "doctor images",
    "label": "calibrate label",
    "promote": "runs promote",
    "review": "runs review",
    "schema": "validate --schema",
    "score": "grade",
    "tasks": "list",
    "test": "selftest",
    "trainability": "runs trainability",
    "graders test": "grade DATA KEY",
    "graders validate": "validate FILE",
    "graders versions": "graders list KEY",
    "runs workspace": "report RUN --case CASE --workspace DIR",
    "workspace": "report RUN --case CASE --workspace DIR",
    **{thing: f"server list {thing}" for thing in _STORED},
    **{f"server {thing}": f"server ACTION {thing}" for thing in _STORED},
}
"""What people type who know other tools, or what a command was called; and what they mean."""


def main(
    argv: Sequence[str] | None = None, *, is_loaded: Callable[[], None] = lambda: None
) -> NoReturn:
    """Run the command line; the process's exit status is the verdict.

    Args:
        argv: The words after ``assay``; by default those of the process.
        is_loaded: Called when the command has been found and understood, before it runs.

    Raises:
        SystemExit: Always, with the exit status.
    """
    sys.exit(_exit_status(lambda: _call(parse(argv), is_loaded)))


class _Unheard(FileIO):
    """Standard error: whoever stops reading it misses what is said, and ends no work by that."""

    def write(self, said: Any, /) -> int:  # noqa: ANN401 - whatever holds bytes
        with suppress(BrokenPipeError):
            super().write(said)
        return memoryview(said).nbytes


def speak_to_whoever_reads() -> None:
    """Let this process go on, and have its exit status, where nobody reads its progress."""
    sys.stdout = sys.stdout or TextIOWrapper(BufferedWriter(FileIO(os.devnull, "w")), "utf-8")
    if sys.stderr:  # none where it was closed from the first
        out = BufferedWriter(_Unheard(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = TextIOWrapper(out, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)


def _call(given: Namespace, is_loaded: Callable[[], None]) -> int:
    run = cast("Callable[[Namespace], int]", _function("run", given.command))
    is_loaded()
    with store_named(getattr(given, "db", None)):
        if not hasattr(given, "max_cost"):
            return run(given)
        from assay.cli.judging import judging

        with judging(given):
            return run(given)


def _function(does: str, command: str) -> Callable[..., object]:
    module, _, part = COMMANDS[command][0].partition(":")
    name = f"{does}_{part}" if part else does
    return cast("Callable[..., object]", getattr(import_module(f"assay.cli.{module}"), name))


def _exit_status(command: Callable[[], int]) -> int:
    """What a command returns; 2 for bad input, 3 for a fault of ours or of the machine."""
    status = 0
    try:
        try:
            status = command()
        except SystemExit as left:  # a parser's
            status = cast("int", left.code)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        let_go_of_output()  # whoever read it has gone; there is nobody to tell
    except PermissionError as error:
        return _failed(f"{error.filename or 'a file'}: {error.strerror}", BAD_INPUT)
    except OSError as error:  # such as a full disk
        let_go_of_output()
        return _failed(str(error), NOT_GRADED)
    except AssayError as error:
        return _failed(str(error), BAD_INPUT if isinstance(error, InputError) else NOT_GRADED)
    return status


def _failed(why: str, status: int) -> int:
    """Say why nothing came of it; an error may have words of what was graded."""
    from assay.shown import visible

    print(f"error: {visible(why)}", file=sys.stderr)
    return status


def parse(argv: Sequence[str] | None = None) -> Namespace:
    """What a command line asks for, with ``command``.

    Raises:
        SystemExit: For help, and for arguments that are wrong.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for length in (2, 1):
        called = " ".join(words[:length])
        if (meant := _MEANT.get(called)) is not None:
            message = f"error: there is no `assay {called}`: it is `assay {meant}`\n"
            _whole_parser().exit(BAD_INPUT, message)
        command, given = " ".join(words[:length]), words[length:]
        if len(words) >= length and command in COMMANDS:
            break
    else:
        return _without_command(words)
    if words[:2] == ["runs", "show"]:  # the word that all stored things have for it
        command, given = "report", given[1:]
    names_action = given and (given[0] in ("-h", "--help") or not given[0].startswith("-"))
    if command in _LISTED and not names_action:
        given = ["list", *given]
    return command_parser(command).parse_args(given, Namespace(command=command))


def _without_command(words: Sequence[str]) -> Namespace:
    """Help, or what is wrong with a command line that begins with no command."""
    parser = _whole_parser()
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(BAD_INPUT)
    return parser.parse_args(words)


def _below(name: str) -> dict[str, str]:
    """The commands below one, and what each does."""
    return {one: said for one, (_, said) in COMMANDS.items() if one.startswith(f"{name} ")}


def command_parser(command: str) -> ArgumentParser:
    """What a command takes."""
    summary = COMMANDS[command][1]
    parser = _Parser(
        prog=f"assay {command}",
        description=f"{summary[0].upper()}{summary[1:]}.\n",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _function("add", command)(parser)
    if below := _below(command):
        also = "\n".join(f"  assay {name:<18} {said}" for name, said in below.items())
        parser.epilog = "\n\n".join(filter(None, (f"also:\n{also}", parser.epilog)))
    return parser


def _whole_parser() -> ArgumentParser:
    """Names every command; for help, and for a command line that begins with none."""
    from assay.version import __version__

    about = {name: said for name, (_, said) in COMMANDS.items()}
    listed = "\n\n".join(
        "\n".join([f"{group}:", *(f"  {name:<11} {about[name]}" for name in names.split())])
        for group, names in _GROUPS.items()
    )
    parser = _Parser(
        prog="assay",
        usage="assay [-h] [--version] COMMAND ...",
        description="Turn an LLM's answer, or an agent's work, into a reward you can trust.",
        epilog=f"{listed}\n\nstart with:  assay demo\nyour own:    assay init my-suite",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"assay {__version__}")
    names = [name for name in about if " " not in name]
    parser.add_argument("command", choices=names, help=SUPPRESS)
    return parser


class _Once(Action):
    """Keeps a value; the same option given again would be a value that nobody sees."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if option_string and self in cast("_Parser", parser).given:
            parser.error(f"{option_string} is given twice")
        cast("_Parser", parser).given.add(self)
        setattr(namespace, self.dest, values)


class _Parser(ArgumentParser):
    """Names the nearest valid word, and where to read on, when it does not understand one."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**options)
        self.given: set[Action] = set()
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - of its overloads
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        self.given.clear()
        words = sys.argv[1:] if args is None else args
        self._called, self._words = _called(self, words), words
        return super().parse_known_args(words, namespace or Namespace())

    def error(self, message: str) -> NoReturn:
        import difflib
        import re

        from assay.cli.moved import meant_by

        command = self._called.prog.removeprefix("assay ")
        valid_options = _option_names(self._called)
        for word in self._words:
            option = word.partition("=")[0]
            if option not in valid_options and (meant := meant_by(command, option)):
                self.exit(2, f"error: `assay {command}` has no {option}: {meant}\n")

        hint = ""
        wrong = re.search(r"invalid choice: '([^']+)' \(choose from (.+)\)", message)
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if wrong:
            below = _below(self._called.prog.removeprefix("assay "))
            valid = re.findall(r"[\w-]+", wrong[2]) + [one.rpartition(" ")[2] for one in below]
            word = wrong[1]
        else:
            valid = _option_names(self._called)
            if " required" in message:  # perhaps it is there, and misspelt
                strange = (one for one in self._words if one.startswith("--"))
                word = next((one for one in strange if one.partition("=")[0] not in valid), "")
            else:
                word = unknown[1] if unknown else ""
            word = word.partition("=")[0]
            valid = [name for name in valid if name != word]
        if close := difflib.get_close_matches(word, valid, n=1):
            hint = f"did you mean {close[0]}?\n"
        self.exit(2, f"error: {message}\n{hint}try: {self._called.prog} --help\n")


def _called(parser: ArgumentParser, words: Sequence[str]) -> ArgumentParser:
    """The parser of the command that is called: unknown options are told by the outermost one."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        choices = cast("object", action.choices)
        if not isinstance(choices, Mapping):
            continue
        below = cast("Mapping[str, object]", choices)
        for place, word in enumerate(words):
            found = below.get(word)
            if isinstance(found, ArgumentParser):
                return _called(found, words[place + 1 :])
    return parser


def _option_names(parser: ArgumentParser) -> list[str]:
    """The options of a parser and of the commands below it."""
    names: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        names.extend(action.option_strings)
        choices = cast("object", action.choices)
        if isinstance(choices, Mapping):
            for below in cast("Mapping[str, object]", choices).values():
                names.extend(_option_names(below) if isinstance(below, ArgumentParser) else [])
    return names
