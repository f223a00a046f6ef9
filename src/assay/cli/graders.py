"""What ``assay graders`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from assay.cli import nouns
from assay.cli.judging import add_judging
from assay.cli.options import (
    AddAction,
    add_trust_authors,
    positive,
)
from assay.cli.rows import add_reading

_CREATE = """\
  assay graders create exact --function exact.py --set range=[-1,1] --sample answers.jsonl
  assay graders create totals --graders graders.yaml --set threshold=0.8
  assay graders create helpful --kind binary_judge --set criteria="Answers the question" \\
      --set judge_model=llama-3.1-8b-instruct --set examples=@examples.jsonl
  assay graders create rewards --kind external_endpoint --set url=https://rewards.example.com \\
      --set secret_env=ASSAY_SECRET_REWARDS
  assay graders create human --kind custom
  assay graders create exact --file graders/exact.yaml"""
_CREATE_MORE = """\
The fields of each kind are in docs/functions.md, and in the files that `export` writes."""
_UPDATE_MORE = """\
What no option mentions stays as it was, where the kind stays the same: a function's range and
isolation, a threshold, a model. With --file the whole definition is the file's."""
_UPDATE = """\
  assay graders update exact --function exact.py --note "ignore case"
  assay graders update exact --set isolation=batch --set range=null
  assay graders update exact --file graders/exact.yaml --expected 3
  assay graders update exact --description "Equal, whatever the case\""""
_VALIDATE_MORE = """\
A function goes through five checks in the sandbox: syntax, structure, signature, execution and a
test run. With --sample it also grades those rows.

exit status: 0 valid, 1 not valid, 2 bad input"""
_EXPORT_MORE = """\
Each grader is KEY.yaml, a function's source KEY.py beside it. The same grader always gives the
same bytes, so a difference in git is a difference of the grader. Files in the directory of
graders that are not stored are named; --prune removes them. Nothing else there is touched."""
_IMPORT_MORE = """\
All graders are imported, or none. What did not change makes no version; what is locked is not
changed. A KEY.py that defines `grade` needs its KEY.yaml; other files are ignored."""


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay graders``."""
    action = nouns.add_verbs(parser, "graders")
    _add_create(action("create", "store a new grader", _CREATE_MORE, _CREATE))
    about = "store a new version of a grader, or change its description"
    _add_update(action("update", about, _UPDATE_MORE, _UPDATE))
    _add_validate(
        action(
            "validate",
            "check a function or a grader's file, and store nothing",
            _VALIDATE_MORE,
            "  assay graders validate exact.py\n"
            "  assay graders validate exact.py --sample answers.jsonl --json\n"
            "  assay graders validate graders/exact.yaml",
        )
    )
    _add_use(action)


def run(given: Namespace) -> int:
    """Run one of the actions."""
    if nouns.is_verb(given):
        return nouns.run(given)
    from assay.cli.graders_actions import run_action

    return run_action(given)


def _add_use(action: AddAction) -> None:
    _add_test(
        action(
            "test",
            "grade rows with a stored grader; nothing is recorded",
            examples="  assay graders test exact answers.jsonl\n"
            "  assay graders test exact answers.jsonl --version 2 --json\n"
            "  assay graders test exact answers.jsonl --fail-under 0.9",
        )
    )
    _add_files(
        action(
            "export",
            "write graders as files that can live in git",
            _EXPORT_MORE,
            "  assay graders export\n  assay graders export exact helpful --into evals/graders",
        ),
        action(
            "import",
            "store the graders that files describe",
            _IMPORT_MORE,
            "  assay graders import graders\n  assay graders import graders/exact.yaml",
        ),
    )


def _add_create(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="lowercase letters, digits, '.', '_' and '-'")
    _add_said(parser)
    _add_definition(parser, update=False)


def _add_update(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY")
    _add_said(parser)
    parser.add_argument(
        "--expected", type=positive, metavar="N", help="only if N is still the newest version"
    )
    _add_definition(parser, update=True)


def _add_said(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", help="name for people; the key by default")
    add("--description", metavar="TEXT", help="what it is for")
    add("--feedback-key", metavar="METRIC", help="where its scores go; the key by default")
    add("--note", default="", metavar="TEXT", help="why this version was made")


def _add_definition(parser: ArgumentParser, *, update: bool) -> None:
    one = parser.add_argument_group("what it is").add_mutually_exclusive_group(required=not update)
    add = one.add_argument
    add("--function", metavar="FILE.py", help="async def grade(thread: StringThread) -> float")
    add("--graders", metavar="FILE.yaml", help="a list of graders, as cases declare them")
    add("--file", metavar="KEY.yaml", help="a grader's file, as `export` writes it")
    add("--kind", help="binary_judge, prebuilt_judge, external_endpoint or custom; with --set")
    _add_set(parser)
    sample = "rows it must grade"
    parser.add_argument("--sample", action="append", default=[], metavar="DATA.jsonl", help=sample)


def _add_set(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of the definition: JSON, else text; @FILE is what is in a file; null removes",
    )


def _add_validate(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="FILE.py, or KEY.yaml as `export` writes it")
    add("--sample", action="append", default=[], metavar="DATA.jsonl", help="rows to grade")
    _add_set(parser)


def _add_test(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("key", metavar="KEY[@N]")
    add("data", metavar="DATA", help="rows of recorded answers; - for stdin")
    add("--version", type=positive, metavar="N", help="the newest by default")
    add_reading(parser, may_skip=True)
    add("--fail-under", type=float, metavar="X", help="exit with 1 if the mean is below")
    add_trust_authors(parser)
    add_judging(parser)


def _add_files(export: ArgumentParser, import_: ArgumentParser) -> None:
    export.add_argument("keys", nargs="*", metavar="KEY", help="which; all by default")
    export.add_argument("--into", default="graders", metavar="DIR", help="`graders` by default")
    export.add_argument(
        "--prune", action="store_true", help="remove grader files that are not stored"
    )
    import_.add_argument("path", metavar="PATH", help="a directory of them, or one KEY.yaml")
    import_.add_argument(
        "--no-update", action="store_true", help="refuse to change existing graders"
    )
