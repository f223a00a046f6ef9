"""The ``assay`` command: parse, call, print. Everything heavy is imported when it is needed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from assay.cli.options import (
    Cases,
    FailUnder,
    Html,
    Json,
    Junit,
    Label,
    Outputs,
    Workers,
)

__all__ = ["app", "main"]

app = typer.Typer(
    name="assay",
    help="Turn an LLM's answer, or an agent's work, into a reward you can trust.",
    epilog="Start with: assay demo    Make your own suite: assay init my-suite",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; the process's exit status is the verdict."""
    from assay.cli.report_errors import reported

    sys.exit(reported(app))


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    if version:
        from assay import __version__

        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.command()
def run(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Case files or directories.")
    ] = None,
    case: Cases = None,
    harness: Annotated[
        list[str] | None,
        typer.Option(help="Only this harness; one that no case lists is used instead."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Only this model; one that no case lists is used instead."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Repeats of every cell.", min=1)] = None,
    workers: Workers = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Finish a run: its id, a prefix, its label, or latest."),
    ] = None,
    regrade: Annotated[
        bool, typer.Option(help="With --resume: grade kept work of changed cases again.")
    ] = False,
    label: Label = "",
    json: Json = False,
    junit: Junit = None,
    html: Html = None,
    fail_under: FailUnder = None,
) -> None:
    """Run cases: every harness, model and trial of the matrix, graded and stored.

    Exit status: 0 all passed, 1 some cell did not pass, 2 bad input, 3 something could not be
    graded, 130 interrupted.

    \b
    assay run evals/
    assay run evals/ --harness replay --model fix --trials 3
    assay run --resume latest
    """
    from assay.cli.run_cases import run_cases

    outputs = Outputs(json=json, junit=junit, html=html, fail_under=fail_under)
    code = run_cases(
        paths or [],
        cases=case or [],
        harnesses=harness or [],
        models=model or [],
        trials=trials,
        workers=workers,
        resume_ref=resume,
        regrade=regrade,
        label=label,
        outputs=outputs,
    )
    raise typer.Exit(code)


@app.command()
def grade(
    data: Annotated[str, typer.Argument(metavar="DATA.jsonl", help="Rows of recorded answers.")],
    graders: Annotated[str, typer.Option("--graders", "-g", help="YAML file: a list of graders.")],
    label: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Compare the grades with this true/false or number."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Reward that a row needs to pass.", min=0.0, max=1.0)
    ] = 1.0,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write every row with its grade as JSONL.")
    ] = None,
    workers: Workers = None,
    json: Json = False,
    junit: Junit = None,
    html: Html = None,
    fail_under: FailUnder = None,
) -> None:
    """Grade recorded answers.

    A row has `answer` or `messages`, and may have `id`, `question`, `expected`, `metadata`. With
    --label the verdict is compared with what people said: confusion, accuracy, kappa.

    \b
    assay grade answers.jsonl --graders graders.yaml
    assay grade answers.jsonl -g graders.yaml --label correct --json
    """
    from assay.cli.grade_rows import grade_rows

    outputs = Outputs(json=json, junit=junit, html=html, fail_under=fail_under)
    code = grade_rows(
        data,
        graders_file=graders,
        label=label,
        threshold=threshold,
        out=out,
        workers=workers,
        outputs=outputs,
    )
    raise typer.Exit(code)


@app.command()
def report(
    ref: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id, a prefix, its label, or latest.")
    ] = "latest",
    everything: Annotated[bool, typer.Option("--all", help="Open every failing cell.")] = False,
    json: Json = False,
    junit: Junit = None,
    html: Html = None,
    fail_under: FailUnder = None,
) -> None:
    """Show a stored run again: failing cells first, every score opened down to its evidence.

    The exit status is the verdict, as `assay run` gives it.
    """
    from assay.cli.show import show_run

    outputs = Outputs(json=json, junit=junit, html=html, fail_under=fail_under)
    raise typer.Exit(show_run(ref, everything=everything, outputs=outputs))


@app.command()
def validate(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Cases, or files of graders.")
    ],
    json: Json = False,
) -> None:
    """Check cases and grader files without running anything.

    Every problem is shown with file, line, field and the nearest valid name.
    """
    from assay.cli.check import validate_paths

    raise typer.Exit(validate_paths(paths, as_json=json))


@app.command("list")
def list_(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH...]", help="Cases to list; stored runs without any."),
    ] = None,
    json: Json = False,
) -> None:
    """List the cases under a path, or the stored runs."""
    from assay.cli.check import list_cases, list_runs

    raise typer.Exit(list_cases(paths, as_json=json) if paths else list_runs(as_json=json))


@app.command()
def init(
    directory: Annotated[str, typer.Argument(help="Directory to make.")] = "assay-suite",
) -> None:
    """Write a starter suite that runs: a case, a dataset and an environment."""
    from assay.cli.starter import write_starter

    raise typer.Exit(write_starter(directory))


@app.command()
def demo(
    directory: Annotated[
        str | None, typer.Option(help="Directory of examples; the shipped ones by default.")
    ] = None,
    html: Html = None,
) -> None:
    """Grade the example suite: no key, nothing to configure.

    It has a real bug of a real package, a dataset, an environment and typed answers; and on
    purpose one failure, one grading error and one gate that disqualifies.
    """
    from assay.cli.demo import run_demo

    raise typer.Exit(run_demo(directory, html=html))


@app.command()
def doctor(json: Json = False) -> None:
    """Say what works on this machine, what each missing part costs, and the mend."""
    from assay.cli.doctor import examine

    raise typer.Exit(examine(as_json=json))


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="case or graders.")] = "case",
) -> None:
    """Print the JSON Schema of a case file or a grader file, for editors.

    \b
    assay schema > case.schema.json
    # then, as the first line of a case: # yaml-language-server: $schema=case.schema.json
    """
    from assay.cli.check import print_schema

    raise typer.Exit(print_schema(kind))
