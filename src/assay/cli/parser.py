"""What the command line takes.

argparse, because it starts in a hundredth of a second: `assay` is called in loops and in CI, and a
parser that imports a validation library would cost more than the grading of fifty cells.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from assay.cli import grade
from assay.cli.calibrate_parser import CALIBRATE_SUMMARY, CALIBRATE_TEXTS, add_calibrate
from assay.cli.endpoint_parser import ENDPOINT_EXAMPLES, ENDPOINT_MORE, add_endpoint
from assay.cli.fake_judge_parser import FAKE_JUDGE_EXAMPLES, FAKE_JUDGE_MORE, add_fake_judge
from assay.cli.graders_parser import GRADERS_TEXTS, add_graders
from assay.cli.import_openai import add_openai
from assay.cli.judging import add_judging
from assay.cli.label_parser import LABEL_SUMMARY, LABEL_TEXTS, add_label
from assay.cli.options import add_json, add_outputs, add_workers, joined_ranges, positive, share
from assay.cli.review_parser import REVIEW_SUMMARY, REVIEW_TEXTS, add_review
from assay.cli.server_parser import KEYS_TEXTS, SERVE_TEXTS, add_keys, add_serve

__all__ = ["build_parser"]

_EXITS = """\
exit status: 0 all passed, 1 some cell did not pass, 2 bad input,
3 something could not be graded, 130 interrupted"""


class _Parser(ArgumentParser):
    """Names the nearest valid word, and where to read on, when it does not understand one."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - of its overloads
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        words = sys.argv[1:] if args is None else args
        self._called = _called(self, words)
        return super().parse_known_args(joined_ranges(words), namespace or Namespace())

    def error(self, message: str) -> NoReturn:
        import difflib
        import re

        hint = ""
        wrong = re.search(r"invalid choice: '([^']+)' \(choose from (.+)\)", message)
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if wrong:
            valid = re.findall(r"[\w-]+", wrong[2])
            word = wrong[1]
        else:
            word = unknown[1].partition("=")[0] if unknown else ""
            valid = [name for name in _option_names(self._called) if name != word]
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


def build_parser() -> ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="assay",
        description="Turn an LLM's answer, or an agent's work, into a reward you can trust.",
        epilog="start with:  assay demo\nyour own:    assay init my-suite",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands"
    )

    def command(name: str, summary: str, more: str = "", examples: str = "") -> ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n{more}",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    _add_run(
        command("run", "run cases: every harness, model and trial, graded and stored", _EXITS, _RUN)
    )
    grade.add(command("grade", grade.SUMMARY, grade.MORE, grade.EXAMPLES))
    _add_report(
        command("report", "show a stored run: failing cells first, every score opened", _EXITS)
    )
    _add_regrade(
        command(
            "regrade",
            "grade a stored run again, without running any agent",
            f"{_REGRADE_MORE}\n{_EXITS}",
            _REGRADE,
        )
    )
    _add_selftest(
        command(
            "selftest",
            "prove that cases grade right: known-good work passes, no work and known-bad does not",
            "No agent is run, and nothing is stored. Exit status: 0 every case is proven,\n"
            "1 a case grades wrong, 2 bad input, 3 something could not be tried,\n"
            "130 interrupted.",
            "  assay selftest evals/\n  assay selftest evals/ --case kit --repeats 5",
        )
    )
    _add_attack(
        command(
            "attack",
            "play the library of cheats against cases and say what pays",
            "Nothing is stored. Exit status: 0 all cases hold, 1 a cheat passes, keeps itself\n"
            "from being graded or gets more than --max-reward, 2 bad input, 3 not everything\n"
            "could be tried, 130 interrupted.",
            "  assay attack evals/\n  assay attack evals/ --cheat in-process --max-reward 0.3\n"
            "  assay attack --list",
        )
    )
    _add_import(command("import", "write other systems' tasks as cases"))
    add_calibrate(command("calibrate", CALIBRATE_SUMMARY, *CALIBRATE_TEXTS))
    add_label(command("label", LABEL_SUMMARY, *LABEL_TEXTS))
    add_review(command("review", REVIEW_SUMMARY, *REVIEW_TEXTS))
    add_graders(command("graders", "store, version, prove and use graders", *GRADERS_TEXTS))
    summary = "serve a grader over HTTP, to trainers and other systems"
    add_endpoint(command("endpoint", summary, ENDPOINT_MORE, ENDPOINT_EXAMPLES))
    summary = "serve a model of this machine that costs nothing, to test judges with"
    add_fake_judge(command("fake-judge", summary, FAKE_JUDGE_MORE, FAKE_JUDGE_EXAMPLES))
    add_serve(command("serve", "serve the registry, jobs and scores over HTTP", *SERVE_TEXTS))
    add_keys(command("keys", "make, list and revoke the server's API keys", *KEYS_TEXTS))
    check = command(
        "validate",
        "check cases and grader files without running anything",
        "Every problem is shown with file, line, field and the nearest valid name.",
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help="cases, or files of graders")
    add_json(check)
    listing = command("list", "list the cases under some paths, or the stored runs")
    listing.add_argument("paths", nargs="*", metavar="PATH", help="cases; stored runs without any")
    add_json(listing)
    start = command("init", "write a starter suite that runs")
    start.add_argument("directory", nargs="?", default="assay-suite", metavar="DIR")
    demo = command(
        "demo",
        "grade the example suite: no key, nothing to configure",
        "It has a real bug of a real package, datasets, an environment and typed answers; and on\n"
        "purpose one failure, one grading error and one gate that disqualifies.",
    )
    demo.add_argument("--directory", metavar="DIR", help="examples of your own instead")
    demo.add_argument("--html", metavar="FILE", help="also write the report as one HTML file")
    add_json(command("doctor", "say what works on this machine, and the mend for what does not"))
    schema = command(
        "schema",
        "print the JSON Schema of a case or a grader file, for editors",
        examples="  assay schema case > case.schema.json\n"
        "  # first line of a case:  # yaml-language-server: $schema=case.schema.json",
    )
    schema.add_argument("kind", nargs="?", default="case", choices=("case", "graders"))
    return parser


_RUN = """\
  assay run evals/
  assay run evals/ --harness replay --model fix --trials 3
  assay run evals/ --json > result.json
  assay run --resume latest"""
_REGRADE = """\
  assay regrade latest
  assay regrade latest --graders stricter.yaml
  assay regrade 20261121-0908 --only tests"""
_REGRADE_MORE = """\
What was kept is graded by the cases as they are now, or by other graders. Results are added to
the run with the digest of what gave them; the report says what changed and why.
"""


def _add_run(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="case files, or directories of cases")
    add("--case", action="append", default=[], metavar="ID", help="only this case")
    add(
        "--harness",
        action="append",
        default=[],
        metavar="NAME",
        help="only this harness; one that no case lists is used instead of theirs",
    )
    add(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="only this model; one that no case lists is used instead of theirs",
    )
    add("--trials", type=positive, metavar="N", help="repeats of every cell")
    add(
        "--resume", metavar="RUN", help="finish a run: its id, a prefix of it, its label, or latest"
    )
    add(
        "--regrade",
        action="store_true",
        help="with --resume: grade what was kept of changed cases again",
    )
    add("--label", default="", help="a name of your own for the run")
    add(
        "--locked",
        action="store_true",
        help="refuse cases whose lock file is missing or stale instead of deciding anew",
    )
    add_workers(parser)
    add_judging(parser)
    add_outputs(parser)


def _add_regrade(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help="a run's id, a prefix of it, its label, or latest")
    add(
        "--graders",
        metavar="FILE",
        help="YAML file: graders to use instead of the cases' own; a dataset's run needs it",
    )
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only this grader; the other scores are taken over",
    )
    add_workers(parser)
    add_judging(parser)
    add_outputs(parser)


def _add_selftest(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="case files, or directories of cases")
    add("--case", action="append", default=[], metavar="ID", help="only this case")
    add("--repeats", type=positive, metavar="N", help="how often the graders run; 3 by default")
    add_workers(parser)
    add_judging(parser)
    add_json(parser)


def _add_attack(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="case files, or directories of cases")
    add("--case", action="append", default=[], metavar="ID", help="only this case")
    add("--cheat", action="append", default=[], metavar="ID", help="only this cheat or family")
    add("--max-reward", type=share, metavar="X", help="also fail where a cheat gets more")
    add("--list", action="store_true", help="show the library and play nothing")
    add_workers(parser)
    add_judging(parser)
    add_json(parser)


def _add_import(parser: ArgumentParser) -> None:
    forms = parser.add_subparsers(dest="form", metavar="FORMAT", required=True)
    summary = "a row of SWE-bench's format"
    add = forms.add_parser("swebench", help=summary, allow_abbrev=False).add_argument
    add("file", metavar="ROWS", help="one row as JSON, a list, or JSONL")
    add("--instance", metavar="ID", help="which row")
    add("--into", metavar="DIR", help="the case's directory; evals/ID by default")
    add("--source", metavar="WHERE", help="a clone, a directory, a URL or NAME==VERSION")
    add("--sha256", metavar="HEX", help="hash of the source distribution")
    add_openai(forms.add_parser)


def _add_report(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help="a run's id, a prefix of it, its label, or latest (the default)",
    )
    add("--all", action="store_true", help="open every failing cell")
    add_outputs(parser)


def _version() -> str:
    from assay.version import __version__

    return f"assay {__version__}"
