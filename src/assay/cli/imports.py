"""``assay import``: other systems' tasks, graders and results as ours."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import cache_home, explain
from assay.errors import InputError

if TYPE_CHECKING:
    from assay.errors import Location
    from assay.interop.openai_replay import Replay
    from assay.interop.openai_suite import Suite
    from assay.interop.promptfoo_suite import ImportedTests
    from assay.interop.swebench import SweBenchInstance
    from assay.interop.writing import ImportedTask, OneOfSet, WrittenCase
    from assay.reports.page import TextPage
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
    """Write rows of SWE-bench's format as cases: the one that is named, or all.

    Args:
        file: One row as JSON, a list of rows, or JSONL.
        instance_id: Which row; all by default.
        into: Directory of the case, ``evals/ID`` by default; of several, what they are below.
        source: Where the files of the base commit are: a directory, a clone of the repository, its
            URL, or a source distribution as ``name==version``. In it ``{owner}`` and ``{name}``
            stand for those of a row's repository.
        sha256: Hash of the source distribution.

    Returns:
        0 if the case can be run, 1 if something has to be added first or a row is malformed.
    """
    from assay.interop.swebench import pick_instance, placed_rows, read_instances
    from assay.interop.swebench_case import write_case

    if instance_id is None and len(rows := placed_rows(file)) > 1:
        tasks = [_row_of_set(place, row, source, sha256) for place, row in rows]
        return _import_set(tasks, file, into or "evals")
    instance = pick_instance(read_instances(file), instance_id, file=file)
    directory = into or str(Path("evals", instance.instance_id))
    written = write_case(
        instance,
        directory,
        source=_source(source, sha256, instance),
        cache_dir=cache_home(),
    )
    return _told(written)


def import_harbor(folder: str, *, into: str | None = None) -> int:
    """Write a task folder of Harbor or Terminal-Bench, or all below one, as cases in images.

    Args:
        folder: Has a ``task.toml`` or a ``task.yaml``, or folders that have.
        into: Directory of the case, ``evals/NAME`` by default; of several, what they are below.

    Returns:
        0 if the case can be run, 1 if its image has to be built first or a task is malformed.
    """
    from assay.interop.harbor import tasks_below, write_harbor_case

    if tasks := tasks_below(folder):
        return _import_set(tasks, folder, into or "evals")
    directory = into or str(Path("evals", Path(folder).resolve().name))
    return _told(write_harbor_case(folder, directory))


def _row_of_set(
    place: Location, row: Mapping[str, Json] | InputError, where: str | None, sha256: str | None
) -> OneOfSet:
    from assay.interop.swebench import read_placed
    from assay.interop.swebench_case import origin_of, write_case
    from assay.interop.writing import OneOfSet

    try:
        if isinstance(row, InputError):
            raise row
        instance = read_placed(row, place)
        source = _source(where, sha256, instance)
    except InputError as error:
        said = f"{error.message} ({error.hint})" if error.hint else error.message
        return OneOfSet(place=place, said=said)
    write = partial(write_case, instance, source=source, cache_dir=cache_home())
    origin = origin_of(instance, source)
    return OneOfSet(name=instance.instance_id, place=place, origin=origin, write=write)


def _import_set(tasks: Sequence[OneOfSet], given: str, directory: str) -> int:
    """Write every task of a set as a case, and say what became of them; the exit status."""
    from assay.interop.writing import write_set
    from assay.reports.figures import count
    from assay.reports.page import page_on
    from assay.reports.progress import Progress

    done: list[ImportedTask] = []
    with Progress(page_on(sys.stderr), len(tasks), things="tasks") as bar:
        for one in write_set(tasks, directory):
            done.append(one)
            bar.add(["error" if one.case is None else "pass"])
    page = page_on(sys.stdout)
    made = [one for one in done if one.case is not None]
    there = sum(one.was_there for one in made)
    before = f", {there} of them there already" if there else ""
    page.line((given, "bold"), f": {count(len(made), 'case')} in {directory}{before}")
    lacking = [one for one in done if one.case is None]
    if lacking:
        page.blank()
        page.line((f"Not imported: {len(lacking)} of {count(len(done), 'task')}", "bold"))
        page.blank()
    for one in lacking:
        place = str(one.task.place)
        page.line(one.said if one.said.startswith(place) else f"{place}: {one.said}", hanging=2)
    notes: dict[str, list[str]] = {}
    for one in made:
        for note in one.case.notes if one.case else ():
            notes.setdefault(note, []).append(one.task.name)
    for note, names in notes.items():
        whose = names[0] if len(names) == 1 else f"{count(len(names), 'case')}, such as {names[0]}"
        print(f"note: {whose}: {note}", file=sys.stderr)
    if made:
        page.blank()
        page.line(f"Try:  assay selftest {shlex.quote(directory)} --out proofs.jsonl")
    return 0 if all(one.case is not None and one.case.runnable for one in done) else 1


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


def _source(given: str | None, sha256: str | None, instance: SweBenchInstance) -> Source | None:
    from assay.tasks.origin import Source, is_local

    commit = instance.base_commit
    owner, _, name = instance.repo.partition("/")
    if given is not None:
        given = given.replace("{owner}", owner).replace("{name}", name)
    is_package = given is not None and "==" in given and not Path(given).exists()
    if sha256 is not None and not is_package:
        raise InputError(
            "#sha256= is of a source distribution", hint="--source NAME==1.0#sha256=HEX"
        )
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


_FORMS = ("swebench", "harbor", "openai", "promptfoo")
_REPLAYED = ("openai", "promptfoo")
_MOST_SHOWN = 10
_MORE = """\
  swebench  rows of SWE-bench's format: FILE is one row as JSON, a list, or JSONL
  harbor    tasks of Harbor or Terminal-Bench, as cases in container images: FILE is the folder
            with task.toml or task.yaml, or one that has such folders
            Of both, what is malformed is listed, and the others are imported; what is there
            already is left alone, so that an interrupted import goes on
  openai    graders, evals and output items of OpenAI's API: what it gave, as JSON or JSONL. An eval
            and the output items of its runs belong together: give both. What has results is graded
            again, and the agreement reported
  promptfoo a promptfooconfig.yaml, as a case for each test and prompt; a results.json behind it is
            graded again, and every difference explained

exit status: 0 all of it carries over and agrees, 1 something needs you or does not agree,
2 bad input"""
_EXAMPLES = """\
  assay import swebench rows.jsonl --instance psf__requests-2317 --source ~/src/requests
  assay import swebench row.json --source requests==2.31.0#sha256=942c5a75...
  assay import swebench rows.jsonl --source clones/{name}
  assay import harbor tasks/hello-world
  assay import harbor tasks
  assay import openai eval.json items.jsonl --out evals/tickets
  assay import promptfoo promptfooconfig.yaml results.json --out evals"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay import`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("form", choices=_FORMS, metavar="FORMAT", help="whose they are")
    add("files", nargs="+", metavar="FILE", help="what is imported")
    where = "where to; evals/ID, evals/NAME, openai/NAME or promptfoo by default"
    add("--out", metavar="DIR", help=where)
    add("--instance", metavar="ID", help="of swebench: only this row")
    source = (
        "of swebench: a clone, a directory, a URL, or NAME==VERSION[#sha256=HEX]; in it {owner} "
    )
    source += "and {name} stand for those of a row's repository"
    add("--source", metavar="WHERE", help=source)
    no_replay = "of openai, promptfoo: do not grade what has results again"
    add("--no-replay", dest="replay", action="store_false", help=no_replay)
    one_object = "of openai, promptfoo: print one JSON object and nothing else"
    add("--json", action="store_true", help=one_object)


def run(given: Namespace) -> int:
    """Write what other systems gave as cases, or as graders and rows.

    Returns:
        The exit status: 1 if something needs its author first, or does not agree.
    """
    of = {
        ("swebench",): {"instance": given.instance, "source": given.source},
        _REPLAYED: {"no-replay": not given.replay, "json": given.json},
    }
    for forms, options in of.items():
        if given.form not in forms and (wrong := [name for name, said in options.items() if said]):
            raise InputError(f"--{wrong[0]} is of {' and '.join(forms)}, not of {given.form}")
    if given.form == "openai":
        return _import_openai(given)
    if given.form == "promptfoo":
        return _import_promptfoo(given)
    if len(given.files) > 1:
        raise InputError(f"{given.form} takes one FILE, got {len(given.files)}")
    if given.form == "harbor":
        return import_harbor(given.files[0], into=given.out)
    source, _, sha256 = (given.source or "").partition("#sha256=")
    return import_swebench(
        given.files[0],
        instance_id=given.instance,
        into=given.out,
        source=source or None,
        sha256=sha256 or None,
    )


def _import_openai(given: Namespace) -> int:
    from assay.interop.openai_read import read_dump
    from assay.interop.openai_suite import suites_of, write_suites

    suites = suites_of(read_dump(given.files))
    default = Path("openai", suites[0].slug) if len(suites) == 1 else Path("openai")
    directory = Path(given.out) if given.out else default
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
    from assay.reports.page import page_on

    page = page_on(sys.stdout)
    for suite in suites:
        place = directory if len(suites) == 1 else directory / suite.slug
        _print_suite(page, suite, place)
        if done := replays.get(suite.slug):
            _print_replays(page, done)
        _print_next(page, suite, place)


def _print_suite(page: TextPage, suite: Suite, place: Path) -> None:
    from assay.reports.figures import count

    counts = f"{count(len(suite.criteria), 'grader')}, {count(len(suite.rows), 'row')}"
    page.line((suite.name, "bold"), f": {counts} in {place}")
    page.blank()
    styles = {"exact": "green", "approximate": "yellow", "needs you": "bold yellow"}
    rows = [
        [
            criterion.name,
            criterion.type,
            page.text((criterion.fidelity, styles[criterion.fidelity])),
            "; ".join(criterion.notes),
        ]
        for criterion in suite.criteria
    ]
    page.table(("grader", "type", "carries over", "note"), rows, left=4)
    page.blank()


def _print_replays(page: TextPage, replays: Sequence[Replay]) -> None:
    page.line(("Replay against the recorded results", "bold"))
    page.blank()
    titles = ("grader", "recorded", "replayed", "agree", "kappa", "largest difference")
    rows = [
        [
            one.criterion,
            str(one.recorded),
            str(one.replayed),
            f"{one.agreed} of {one.replayed}",
            "-" if one.kappa is None else f"{one.kappa:.2f}",
            "-" if one.largest_difference is None else f"{one.largest_difference:.3g}",
        ]
        for one in replays
    ]
    page.table(titles, rows, left=1)
    page.blank()
    for one in replays:
        for reason, count in one.not_replayed.most_common(_MOST_SHOWN):
            page.line(f"{one.criterion}: {count} not replayed: {reason}", hanging=2)
        for odd in one.disagreements[:_MOST_SHOWN]:
            recorded = _verdict(odd.recorded_score, odd.recorded_passed)
            ours = _verdict(odd.score, odd.passed)
            said = f"{one.criterion}: row {odd.row}: recorded {recorded}, replayed {ours}"
            page.line(f"{said}; {odd.why}" if odd.why else said, hanging=2)
        if (more := len(one.disagreements) - _MOST_SHOWN) > 0:
            page.line(f"{one.criterion}: {more} more do not agree; --json lists them")
    page.blank()


def _verdict(score: float | None, passed: bool | None) -> str:  # noqa: FBT001 - a recorded value
    number = "no score" if score is None else f"{score:g}"
    return number if passed is None else f"{number} ({'passed' if passed else 'failed'})"


def _print_next(page: TextPage, suite: Suite, place: Path) -> None:
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


def _import_promptfoo(given: Namespace) -> int:
    import asyncio

    from assay.interop.promptfoo_read import read_config
    from assay.interop.promptfoo_replay import read_results, replay
    from assay.interop.promptfoo_suite import cases_of, write_cases

    config, *results = given.files
    read = read_config(config)
    directory = given.out or "promptfoo"

    async def work() -> tuple[ImportedTests, list[str]]:
        imported = await cases_of(read)
        recorded = [one for file in results for one in read_results(file, imported, read)]
        written = write_cases(imported, recorded, directory, trials=read.repeat)
        if given.replay:
            await replay(imported, recorded)
        return imported, written

    imported, written = asyncio.run(work())
    if given.json:
        print(json.dumps({"directory": directory, "files": written, **imported.to_dict()}))
    else:
        _print_imported(imported, config, directory)
        if read.results and not results:
            print(f"{read.results} lies beside it: name it, too, to have it graded again")
    agreed = all(one.agreed == one.recorded for one in imported.replays)
    clean = imported.cases and all(one.is_note for one in imported.left) and not imported.not_run
    return 0 if agreed and clean else 1


def _print_imported(imported: ImportedTests, config: str, directory: str) -> None:
    from assay.reports.figures import count
    from assay.reports.page import page_on

    page = page_on(sys.stdout)
    page.line((config, "bold"), f": {count(len(imported.cases), 'case')} in {directory}")
    page.blank()
    styles = {"exact": "green", "approximate": "yellow"}
    rows = [
        [theirs, ours, str(number), page.text((fidelity, styles[fidelity])), note]
        for theirs, ours, number, fidelity, note in imported.table()
    ]
    page.table(("assertion", "grader", "times", "carries over", "note"), rows, left=5, whole=4)
    page.blank()
    if imported.left:
        page.line(("Not carried over", "bold"))
        page.blank()
    for one in imported.left:
        page.line(str(one), hanging=2)
    if imported.left:
        page.blank()
    if imported.replays:
        _print_replays(page, imported.replays)
    for reason, number in imported.not_run.most_common(_MOST_SHOWN):
        page.line(f"{count(number, 'result')} not replayed: {reason}")
    if imported.cases:
        page.line(f"Try:  assay run {shlex.quote(directory)}")
