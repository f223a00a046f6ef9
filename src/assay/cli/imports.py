"""``assay import``: other systems' tasks, graders and results as ours."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import add_json, state_home
from assay.errors import InputError

if TYPE_CHECKING:
    from assay.interop.openai_replay import Replay
    from assay.interop.openai_suite import Suite
    from assay.interop.swebench_case import WrittenCase
    from assay.reports.page import Page
    from assay.scoring.json_safe import Json
    from assay.tasks.origin import Source


def import_swebench(
    file: str,
    *,
    instance_id: str | None = None,
    into: str | None = None,
    source: str | None = None,
    sha256: str | None = None,
) -> int:
    """Write one row of SWE-bench's format as a case.

    Args:
        file: One row as JSON, a list of rows, or JSONL.
        instance_id: Which row; needed where there are several.
        into: Directory of the case; ``evals/ID`` by default.
        source: Where the files of the base commit are: a directory, a clone of the repository, its
            URL, or a source distribution as ``name==version``.
        sha256: Hash of the source distribution.

    Returns:
        0 if the case can be run, 1 if something has to be added first.
    """
    from assay.interop.swebench import pick_instance, read_instances
    from assay.interop.swebench_case import write_case

    instance = pick_instance(read_instances(file), instance_id, file=file)
    directory = into or str(Path("evals", instance.instance_id))
    written = write_case(
        instance,
        directory,
        source=_source(source, sha256, instance.base_commit),
        cache_dir=str(Path(state_home(), "cache")),
    )
    return _told(written)


def import_harbor(folder: str, *, into: str | None = None) -> int:
    """Write a task folder of Harbor or Terminal-Bench as a case in a container image.

    Args:
        folder: Has a ``task.toml`` or a ``task.yaml``.
        into: Directory of the case; ``evals/NAME`` by default.

    Returns:
        0 if the case can be run, 1 if its image has to be built first.
    """
    from assay.interop.harbor import write_harbor_case

    directory = into or str(Path("evals", Path(folder).resolve().name))
    return _told(write_harbor_case(folder, directory))


def _told(written: WrittenCase) -> int:
    """Say what was written; the exit status."""
    directory = written.directory
    for name in written.files:
        if not name.startswith("source/"):  # a clone's: there may be thousands
            print(f"  {directory}/{name}")
    if copied := sum(name.startswith("source/") for name in written.files):
        print(f"  {directory}/source/ ({copied} files)")
    for note in written.notes:
        print(f"note: {note}", file=sys.stderr)
    if written.runnable:
        print(f"\nTry:  assay run {shlex.quote(directory)}")
    return 0 if written.runnable else 1


def _source(given: str | None, sha256: str | None, commit: str) -> Source | None:
    from assay.tasks.origin import Source, is_local

    is_package = given is not None and "==" in given and not Path(given).exists()
    if sha256 is not None and not is_package:
        raise InputError("--sha256 is the hash of a source distribution", hint="--source NAME==1.0")
    if given is None:
        return None
    if is_package:
        return Source(pypi=given, sha256=sha256)
    if not is_local(given):
        return Source(git=given, commit=commit)
    path = Path(given)
    if not path.is_dir():
        raise InputError(
            f"there is no directory {given!r}", hint="a directory, a clone, a URL or name==version"
        )
    if (path / ".git").exists() or ((path / "objects").is_dir() and (path / "HEAD").is_file()):
        return Source(git=given, commit=commit)
    return Source(path=given)


_MOST_SHOWN = 10
_MORE = """\
A FILE is JSON or JSONL: a grader, an eval or a list of them, the output items of a run, or a
fine-tuning job. An eval and the output items of its runs belong together: give both.
Exit status: 0 all of it carries over and agrees, 1 something needs you or does not agree, 2 bad
input."""
_EXAMPLES = """\
examples:
  assay import openai eval.json items.jsonl --into evals/tickets
  assay import openai grader.json --json"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay import`` takes."""
    forms = parser.add_subparsers(dest="form", metavar="FORMAT", required=True)
    summary = "a row of SWE-bench's format"
    option = forms.add_parser("swebench", help=summary, allow_abbrev=False).add_argument
    option("file", metavar="ROWS", help="one row as JSON, a list, or JSONL")
    option("--instance", metavar="ID", help="which row")
    option("--into", metavar="DIR", help="the case's directory; evals/ID by default")
    option("--source", metavar="WHERE", help="a clone, a directory, a URL or NAME==VERSION")
    option("--sha256", metavar="HEX", help="hash of the source distribution")
    summary = "a task folder of Harbor or Terminal-Bench, as a case in a container image"
    option = forms.add_parser("harbor", help=summary, allow_abbrev=False).add_argument
    option("folder", metavar="TASK", help="the folder with task.toml or task.yaml")
    option("--into", metavar="DIR", help="the case's directory; evals/NAME by default")
    summary = "graders, evals and output items of OpenAI's API"
    openai = forms.add_parser(
        "openai",
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n{_MORE}",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = openai.add_argument
    option("files", nargs="+", metavar="FILE", help="what the API gave, as JSON or JSONL")
    option("--into", metavar="DIR", help="where to write; openai/NAME by default")
    option(
        "--replay",
        action=BooleanOptionalAction,
        default=True,
        help="grade rows that have results again, and report agreement (the default)",
    )
    add_json(openai)


def run(given: Namespace) -> int:
    """Write what other systems gave as cases, or as graders and rows.

    Returns:
        The exit status: 1 if something needs its author first, or does not agree.
    """
    if given.form == "openai":
        return _import_openai(given)
    if given.form == "harbor":
        return import_harbor(given.folder, into=given.into)
    return import_swebench(
        given.file,
        instance_id=given.instance,
        into=given.into,
        source=given.source,
        sha256=given.sha256,
    )


def _import_openai(given: Namespace) -> int:
    from assay.interop.openai_read import read_dump
    from assay.interop.openai_suite import suites_of, write_suites

    suites = suites_of(read_dump(given.files))
    default = Path("openai", suites[0].slug) if len(suites) == 1 else Path("openai")
    directory = Path(given.into) if given.into else default
    written = write_suites(suites, given.files, str(directory))
    replays = _replays(suites) if given.replay else {}
    if given.json:
        shown: dict[str, Json] = {
            "directory": str(directory),
            "files": [*written],
            "suites": [_suite_dict(suite, replays.get(suite.slug)) for suite in suites],
        }
        print(json.dumps(shown))
    else:
        _print(suites, directory, replays)
    clean = all(c.fidelity != "needs you" for suite in suites for c in suite.criteria)
    agreed = all(one.agreed == one.recorded for done in replays.values() for one in done)
    return 0 if clean and agreed else 1


def _replays(suites: Sequence[Suite]) -> dict[str, list[Replay]]:
    import asyncio

    from assay.interop.openai_replay import replay

    async def every() -> dict[str, list[Replay]]:
        return {suite.slug: await replay(suite) for suite in suites}

    return {slug: done for slug, done in asyncio.run(every()).items() if done}


def _suite_dict(suite: Suite, replays: Sequence[Replay] | None) -> dict[str, Json]:
    return {
        "name": suite.name,
        "slug": suite.slug,
        "rows": len(suite.rows),
        "criteria": [
            {
                "name": criterion.name,
                "type": criterion.type,
                "fidelity": criterion.fidelity,
                "notes": [*criterion.notes],
                "origin": criterion.origin,
            }
            for criterion in suite.criteria
        ],
        "replay": None if replays is None else [one.to_dict() for one in replays],
    }


def _print(
    suites: Sequence[Suite], directory: Path, replays: Mapping[str, Sequence[Replay]]
) -> None:
    from rich.console import Console

    from assay.reports.page import Page

    page = Page(Console(highlight=False))
    for suite in suites:
        place = directory if len(suites) == 1 else directory / suite.slug
        _print_suite(page, suite, place)
        if done := replays.get(suite.slug):
            _print_replays(page, done)
        _print_next(page, suite, place)


def _print_suite(page: Page, suite: Suite, place: Path) -> None:
    from assay.reports.figures import count

    counts = f"{count(len(suite.criteria), 'grader')}, {count(len(suite.rows), 'row')}"
    page.line((suite.name, "bold"), f": {counts} in {place}")
    page.blank()
    styles = {"exact": "green", "approximate": "yellow", "needs you": "bold yellow"}
    header = [page.text(title) for title in ("grader", "type", "carries over", "note")]
    rows = [
        [
            page.text(criterion.name),
            page.text(criterion.type),
            page.text((criterion.fidelity, styles[criterion.fidelity])),
            page.text("; ".join(criterion.notes)),
        ]
        for criterion in suite.criteria
    ]
    page.table(header, rows, left=4)
    page.blank()


def _print_replays(page: Page, replays: Sequence[Replay]) -> None:
    page.line(("Replay against the recorded results", "bold"))
    page.blank()
    titles = ("grader", "recorded", "replayed", "agree", "kappa", "largest difference")
    rows = [
        [
            page.text(one.criterion),
            page.text(str(one.recorded)),
            page.text(str(one.replayed)),
            page.text(f"{one.agreed} of {one.replayed}"),
            page.text("-" if one.kappa is None else f"{one.kappa:.2f}"),
            page.text("-" if one.largest_difference is None else f"{one.largest_difference:.3g}"),
        ]
        for one in replays
    ]
    page.table([page.text(title) for title in titles], rows, left=1)
    page.blank()
    for one in replays:
        for reason, count in one.not_replayed.most_common(_MOST_SHOWN):
            page.line(f"{one.criterion}: {count} not replayed: {reason}", hanging=2)
        for odd in one.disagreements[:_MOST_SHOWN]:
            recorded = _verdict(odd.recorded_score, odd.recorded_passed)
            ours = _verdict(odd.score, odd.passed)
            page.line(
                f"{one.criterion}: row {odd.row}: recorded {recorded}, replayed {ours}", hanging=2
            )
        if (more := len(one.disagreements) - _MOST_SHOWN) > 0:
            page.line(f"{one.criterion}: {more} more do not agree; --json lists them")
    page.blank()


def _verdict(score: float | None, passed: bool | None) -> str:  # noqa: FBT001 - a recorded value
    number = "no score" if score is None else f"{score:g}"
    return number if passed is None else f"{number} ({'passed' if passed else 'failed'})"


def _print_next(page: Page, suite: Suite, place: Path) -> None:
    from assay.interop.openai_suite import GRADERS, NEEDS_YOU, ROWS

    if (place / NEEDS_YOU).exists():
        page.line(f"{place / NEEDS_YOU} lists what cannot run yet and what it needs.")
    unknown = [c.name for c in suite.criteria if c.declaration is None]
    if unknown:
        page.line(f"Kept in origin/ only: {', '.join(unknown)}", hanging=2)
    if (place / GRADERS).exists():
        graders = shlex.quote(str(place / GRADERS))
        rows = shlex.quote(str(place / ROWS)) if suite.rows else "YOUR_ROWS.jsonl"
        page.line(f"Try:  assay grade {rows} {graders}")
    page.blank()
