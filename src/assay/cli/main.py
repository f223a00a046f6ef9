"""The ``assay`` command: parse, call, print. Everything heavy is imported when it is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assay.cli.judging import judging
from assay.cli.options import Outputs
from assay.cli.parser import build_parser
from assay.cli.report_errors import reported

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; the process's exit status is the verdict.

    Args:
        argv: The arguments; those of the process by default.

    Raises:
        SystemExit: Always, with the exit status.
    """
    sys.exit(reported(lambda: _call(argv)))


def _call(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    with judging(arguments):
        return _COMMANDS[arguments.command](arguments)


def _run(given: Namespace) -> int:
    from assay.cli.run_cases import run_cases

    return run_cases(
        given.paths,
        cases=given.case,
        harnesses=given.harness,
        models=given.model,
        trials=given.trials,
        workers=given.workers,
        resume_ref=given.resume,
        regrade=given.regrade,
        label=given.label,
        locked=given.locked,
        outputs=Outputs.of(given),
    )


def _grade(given: Namespace) -> int:
    from assay.cli.grade import run

    return run(given)


def _regrade(given: Namespace) -> int:
    from assay.cli.regrade import regrade_run

    return regrade_run(
        given.run,
        graders_file=given.graders,
        only=given.only,
        workers=given.workers,
        outputs=Outputs.of(given),
    )


def _selftest(given: Namespace) -> int:
    from assay.cli.prove import selftest_cases

    return selftest_cases(
        given.paths,
        cases=given.case,
        repeats=given.repeats,
        workers=given.workers,
        as_json=given.json,
    )


def _attack(given: Namespace) -> int:
    from assay.cli.prove import attack_cases

    return attack_cases(
        given.paths,
        cases=given.case,
        cheats=given.cheat,
        max_reward=given.max_reward,
        workers=given.workers,
        listing=given.list,
        as_json=given.json,
    )


def _import(given: Namespace) -> int:
    if given.form == "openai":
        from assay.cli.import_openai import import_openai

        return import_openai(given.files, into=given.into, replay=given.replay, as_json=given.json)
    from assay.cli.import_cases import import_swebench

    return import_swebench(
        given.file,
        instance_id=given.instance,
        into=given.into,
        source=given.source,
        sha256=given.sha256,
    )


def _endpoint(given: Namespace) -> int:
    from assay.cli.endpoint import serve_grader

    return serve_grader(given)


def _calibrate(given: Namespace) -> int:
    from assay.cli.calibrate import calibrate_grader

    return calibrate_grader(given)


def _label(given: Namespace) -> int:
    from assay.cli.label import label_rows

    return label_rows(given)


def _review(given: Namespace) -> int:
    from assay.cli.review import review_run

    return review_run(given)


def _fake_judge(given: Namespace) -> int:
    from assay.cli.fake_judge import serve_fake_judge

    return serve_fake_judge(given)


def _graders(given: Namespace) -> int:
    from assay.cli.graders_commands import run_graders

    return run_graders(given)


def _serve(given: Namespace) -> int:
    from assay.cli.serve import serve

    return serve(given)


def _keys(given: Namespace) -> int:
    from assay.cli.keys import manage_keys

    return manage_keys(given)


def _report(given: Namespace) -> int:
    from assay.cli.show import show_run

    return show_run(given.run, everything=given.all, outputs=Outputs.of(given))


def _validate(given: Namespace) -> int:
    from assay.cli.check import validate_paths

    return validate_paths(given.paths, as_json=given.json)


def _list(given: Namespace) -> int:
    from assay.cli.check import list_cases, list_runs

    if given.paths:
        return list_cases(given.paths, as_json=given.json)
    return list_runs(as_json=given.json)


def _init(given: Namespace) -> int:
    from assay.cli.starter import write_starter

    return write_starter(given.directory)


def _demo(given: Namespace) -> int:
    from assay.cli.demo import run_demo

    return run_demo(given.directory, html=given.html)


def _doctor(given: Namespace) -> int:
    from assay.cli.doctor import examine

    return examine(as_json=given.json)


def _schema(given: Namespace) -> int:
    from assay.cli.check import print_schema

    return print_schema(given.kind)


_COMMANDS: dict[str, Callable[[Namespace], int]] = {
    "run": _run,
    "grade": _grade,
    "regrade": _regrade,
    "report": _report,
    "selftest": _selftest,
    "attack": _attack,
    "import": _import,
    "calibrate": _calibrate,
    "label": _label,
    "review": _review,
    "graders": _graders,
    "endpoint": _endpoint,
    "fake-judge": _fake_judge,
    "serve": _serve,
    "keys": _keys,
    "validate": _validate,
    "list": _list,
    "init": _init,
    "demo": _demo,
    "doctor": _doctor,
    "schema": _schema,
}
