"""``assay import openai``: OpenAI's graders, evals and recorded results as ours, with a replay."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, BooleanOptionalAction, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.interop.openai_replay import Replay
    from assay.interop.openai_suite import Suite
    from assay.reports.page import Page
    from assay.scoring.json_safe import Json

__all__ = ["add_openai", "import_openai"]

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


def add_openai(add_parser: Callable[..., ArgumentParser]) -> None:
    """Add the format to the parsers below ``assay import``.

    Args:
        add_parser: What makes a parser there.
    """
    summary = "graders, evals and output items of OpenAI's API"
    parser = add_parser(
        "openai",
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n{_MORE}",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="what the API gave, as JSON or JSONL")
    add("--into", metavar="DIR", help="where to; openai/NAME by default")
    add(
        "--replay",
        action=BooleanOptionalAction,
        default=True,
        help="grade rows that have results again, and report agreement (the default)",
    )
    add("--json", action="store_true", help="print one JSON object and nothing else")


def import_openai(files: Sequence[str], *, into: str | None, replay: bool, as_json: bool) -> int:
    """Write what OpenAI's API gave as graders and rows of ours.

    Args:
        files: Files of JSON or JSONL.
        into: Directory; ``openai/NAME`` by default.
        replay: Whether rows with recorded results are graded again.
        as_json: Whether to print JSON.

    Returns:
        0 if all of it carries over and agrees, 1 if something needs its author.

    Raises:
        InputError: For a malformed file, or a directory that is there.
    """
    from assay.interop.openai_read import read_dump
    from assay.interop.openai_suite import suites_of
    from assay.interop.openai_write import write_suites

    suites = suites_of(read_dump(files))
    default = Path("openai", suites[0].slug) if len(suites) == 1 else Path("openai")
    directory = Path(into) if into else default
    written = write_suites(suites, files, str(directory))
    replays = _replays(suites) if replay else {}
    if as_json:
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
    counts = f"{len(suite.criteria)} graders, {len(suite.rows)} rows"
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
    from assay.interop.openai_write import GRADERS, NEEDS_YOU, ROWS

    if (place / NEEDS_YOU).exists():
        page.line(f"{place / NEEDS_YOU} has what cannot run yet, and what it needs.")
    unknown = [c.name for c in suite.criteria if c.declaration is None]
    if unknown:
        page.line(f"Kept in origin/ only: {', '.join(unknown)}", hanging=2)
    if (place / GRADERS).exists():
        graders = shlex.quote(str(place / GRADERS))
        rows = shlex.quote(str(place / ROWS)) if suite.rows else "YOUR_ROWS.jsonl"
        page.line(f"Try:  assay grade {rows} --graders {graders}")
    page.blank()
