"""What ``assay graders`` takes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from assay.cli import stored_commands
from assay.cli.options import add_set, positive

_DEFINED = """\
FILE is FILE.py with `async def grade(thread: StringThread) -> float`; a list of graders, as cases
declare them; or KEY.yaml, as `export` writes it. --set gives fields of that file: `kind`, `name`,
`feedback_key` and those of its definition, which docs/functions.md lists for each kind."""
_CREATE = """\
  assay graders create exact exact.py --set range=[-1,1] --sample answers.jsonl
  assay graders create totals graders.yaml --set threshold=0.8
  assay graders create helpful --set kind=binary_judge --set criteria="Answers the question" \\
      --set judge_model=llama-3.1-8b-instruct --set examples=@examples.jsonl
  assay graders create rewards --set kind=external_endpoint --set url=https://rewards.example.com \\
      --set secret_env=ASSAY_SECRET_REWARDS
  assay graders create human --set kind=custom
  assay graders create exact graders/exact.yaml"""
_UPDATE_MORE = f"""\
{_DEFINED}
What nothing mentions stays as it was, where the kind stays the same: a function's range and
isolation, a threshold, a model. With KEY.yaml the whole definition is the file's."""
_UPDATE = """\
  assay graders update exact exact.py --note "ignore case"
  assay graders update exact --set isolation=batch --set range=null
  assay graders update exact graders/exact.yaml --expected 3
  assay graders update exact --description "Equal, whatever the case\""""
_EXPORT_MORE = """\
Each grader is KEY.yaml, a function's source KEY.py beside it. The same grader always gives the
same bytes, so a difference in git is a difference of the grader. Files in the directory of
graders that are not stored are named; --prune removes them. Nothing else there is touched."""
_IMPORT_MORE = """\
All graders are imported, or none. What did not change makes no version; what is locked is not
changed. A KEY.py that defines `grade` needs its KEY.yaml; other files are ignored."""


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay graders``."""
    action = stored_commands.add_verbs(parser, "graders")
    _add_definition(action("create", "store a new grader", _DEFINED, _CREATE))
    about = "store a new version of a grader, or change its description"
    update = action("update", about, _UPDATE_MORE, _UPDATE)
    _add_definition(update)
    newest = "only if N is still the newest version"
    update.add_argument("--expected", type=positive, metavar="N", help=newest)
    export = action(
        "export",
        "write graders as files that can live in git",
        _EXPORT_MORE,
        "  assay graders export\n  assay graders export exact helpful --out evals/graders",
    )
    export.add_argument("keys", nargs="*", metavar="KEY", help="which; all by default")
    export.add_argument("--out", default="graders", metavar="DIR", help="`graders` by default")
    prune = "remove grader files that are not stored"
    export.add_argument("--prune", action="store_true", help=prune)
    import_ = action(
        "import",
        "store the graders that files describe",
        _IMPORT_MORE,
        "  assay graders import graders\n  assay graders import graders/exact.yaml",
    )
    import_.add_argument("path", metavar="PATH", help="a directory of them, or one KEY.yaml")
    no_update = "refuse to change existing graders"
    import_.add_argument("--no-update", action="store_true", help=no_update)


def run(given: Namespace) -> int:
    """Run one of the actions."""
    if stored_commands.is_verb(given):
        return stored_commands.run(given)
    from assay.cli.graders_actions import run_action

    return run_action(given)


def _add_definition(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("key", metavar="KEY", help="lowercase letters, digits, '.', '_' and '-'")
    add("file", nargs="?", metavar="FILE", help="FILE.py, graders.yaml or KEY.yaml")
    add_set(parser, "a field of the grader's file")
    add("--description", metavar="TEXT", help="what it is for")
    add("--note", default="", metavar="TEXT", help="why this version was made")
    add("--sample", action="append", default=[], metavar="DATA", help="rows it must grade")
