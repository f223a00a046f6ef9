"""From what OpenAI's API gave to graders and rows of ours, and their files."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from assay.errors import InputError, SandboxError
from assay.graders.openai.base import OpenAIDefinition
from assay.graders.openai.comparisons import TextSimilarity
from assay.graders.openai.definitions import (
    declaration,
    judges_of,
    lacking,
    models_needed,
    parts_of,
    read_definition,
)
from assay.graders.openai.python import OpenAIPython
from assay.interop.openai_read import Dump, Found, RecordedRow, read_item, read_row
from assay.interop.writing import files_below, new_directory
from assay.registry.files import yaml_text
from assay.scoring.json_safe import Json
from assay.tasks.grader_files import load_graders
from assay.types.codec import ShapeError

Fidelity = Literal["exact", "approximate", "needs you"]
"""How a criterion carries over."""

_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_MOST_SLUG = 60
_SCORES = ("text_similarity", "openai_python", "score_model", "multi")
"""Our types of criteria that give a number, of which a threshold makes a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGrader:
    """One grader of a suite.

    Attributes:
        name: Its name, unique in the suite.
        type: As OpenAI calls it.
        fidelity: How it carries over.
        notes: What its author should know or do.
        declaration: As our YAML declares it; None where it could not be understood.
        definition: Likewise.
        aliases: What results may call it: its name and id over there.
        origin: Where its definition stands.
    """

    name: str
    type: str
    fidelity: Fidelity
    notes: tuple[str, ...] = ()
    declaration: Mapping[str, Json] | None = None
    definition: OpenAIDefinition | None = None
    aliases: tuple[str, ...] = ()
    origin: str = ""


@dataclass(slots=True, kw_only=True)
class Suite:
    """Criteria that belong together, and the rows that they grade.

    Attributes:
        name: What it is called.
        slug: A name for its directory.
        criteria: In the order of the files.
        rows: What was graded, or is to be.
        is_eval: Whether it was an eval there.
    """

    name: str
    slug: str
    criteria: list[SuiteGrader] = field(default_factory=list[SuiteGrader])
    rows: list[RecordedRow] = field(default_factory=list[RecordedRow])
    is_eval: bool = False

    @property
    def has_verdicts(self) -> bool:
        """Whether its criteria pass or fail, as those of an eval; else they give rewards."""
        return self.is_eval or any(row.results for row in self.rows)

    def criterion_of(self, result: str) -> SuiteGrader | None:
        """The criterion that a result's name means: its name, its id, or its name with an id."""
        for name in (result, _UUID.sub("", result)):
            found = [c for c in self.criteria if name in c.aliases]
            if len(found) == 1:
                return found[0]
        return None


def suites_of(dump: Dump) -> list[Suite]:
    """Put graders and rows together: a suite for each eval, and one for graders that stand alone.

    Rows of an eval that is not in the dump go to the only suite there is, or else to one of their
    own, whose criteria are known by name alone. Sources are looked at in the sandbox, and waited
    for.

    Raises:
        InputError: For a malformed eval or output item, naming file and place.
    """
    suites: dict[str, Suite] = {}
    for found in dump.evals:
        identity = found.text("id") or f"eval {len(suites) + 1}"
        name = found.text("name") or identity
        made = Suite(name=name, slug=_slug(name, suites.values()), is_eval=True)
        suite = suites.setdefault(identity, made)
        _add(suite, _criteria_of(found))
    if dump.graders:
        suite = Suite(name="graders", slug=_slug("graders", suites.values()))
        _add(suite, dump.graders)
        suites[""] = suite
    known = list(suites.values())
    seen: dict[tuple[str, str], list[RecordedRow]] = {}
    for found in (*dump.items, *dump.rows):
        identity = found.text("eval_id")
        suite = suites.get(identity)
        if suite is None and len(known) == 1 and (not identity or "" in suites):
            suite = known[0]
        if suite is None:
            name = identity or "output items"
            suite = suites[identity] = Suite(name=name, slug=_slug(name, suites.values()))
        row = read_item(found) if "results" in found.data else read_row(found, len(suite.rows) + 1)
        _add_row(suite, row, seen.setdefault((suite.slug, row.id), []))
    for suite in suites.values():
        _add_unknown(suite)
    return list(suites.values())


def _criteria_of(found: Found) -> Iterable[Found]:
    criteria = found.data.get("testing_criteria")
    if not isinstance(criteria, list):
        place = found.inside("testing_criteria", {}).place
        raise InputError("expected a list of graders", location=place)
    for number, criterion in enumerate(criteria):
        path = f"testing_criteria[{number}]"
        if not isinstance(criterion, dict):
            raise InputError("a grader is an object", location=found.inside(path, {}).place)
        yield found.inside(path, criterion)


def _add(suite: Suite, graders: Iterable[Found]) -> None:
    for grader in graders:
        given = grader.text("name") or grader.text("type") or "grader"
        name = _unique(given, {c.name for c in suite.criteria})
        criterion = _criterion(grader, name)
        declared = criterion.declaration or {}
        if suite.is_eval and declared.get("type") in _SCORES and "pass_threshold" not in declared:
            note = "it has no pass_threshold: here it passes at 1.0"
            criterion = replace(criterion, notes=(*criterion.notes, note))
        suite.criteria.append(criterion)


def _criterion(grader: Found, name: str) -> SuiteGrader:
    kind = grader.text("type") or "?"
    aliases = tuple(n for n in (grader.text("name"), grader.text("id")) if n) or (name,)
    origin = str(grader.place)
    try:
        definition = read_definition(dict(grader.data))
        needs = [f"needs {need}" for need in _needs(definition)]
    except ShapeError as error:
        notes = [f"{grader.inside(p.field, {}).place}: {p.message}" for p in error.problems]
        return SuiteGrader(
            name=name,
            type=kind,
            fidelity="needs you",
            notes=("not understood", *notes),
            aliases=aliases,
            origin=origin,
        )
    doubts = _doubts(definition)
    fidelity: Fidelity = "needs you" if needs else "approximate" if doubts else "exact"
    return SuiteGrader(
        name=name,
        type=kind,
        fidelity=fidelity,
        notes=tuple(needs or doubts),
        declaration={**declaration(grader.data), "name": name},
        definition=definition,
        aliases=aliases,
        origin=origin,
    )


def _doubts(definition: OpenAIDefinition) -> list[str]:
    """Why a grader that can run here may not give the same results."""
    doubts: list[str] = []
    if any(isinstance(part, TextSimilarity) for part in parts_of(definition)):
        doubts.append("tokens and smoothing over there are not documented")
    if judges := judges_of(definition):
        doubts.append(f"{', '.join(judges)} may judge otherwise when it is asked again")
    return doubts


def _needs(definition: OpenAIDefinition) -> list[str]:
    """What `_checked` says, also where an event loop runs already: on a thread of its own."""
    if not any(isinstance(part, OpenAIPython) for part in parts_of(definition)):
        return models_needed(definition)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(_checked(definition))).result()


async def _checked(definition: OpenAIDefinition) -> list[str]:
    """What a grader needs, once its sources have been looked at."""
    try:
        await definition.check()
        return await lacking(definition)
    except SandboxError as error:
        return [*models_needed(definition), f"a sandbox: {error}"]


def _add_row(suite: Suite, row: RecordedRow, same: list[RecordedRow]) -> None:
    """Add a row unless it is there already, as where the pages of a dump overlap.

    Another row of that id gets an id of its own.
    """
    if any(other.data == row.data for other in same):
        return
    same.append(row)
    suite.rows.append(row.named(f"{row.id}#{len(same)}") if len(same) > 1 else row)


def _add_unknown(suite: Suite) -> None:
    """A criterion for each result whose grader is in none of the files."""
    named = {result.name: result.type for row in suite.rows for result in row.results}
    for name, kind in named.items():
        if suite.criterion_of(name) is None:
            missing = "its definition is in none of the files: import the eval together with it"
            suite.criteria.append(
                SuiteGrader(
                    name=_unique(name, {c.name for c in suite.criteria}),
                    type=kind or "?",
                    fidelity="needs you",
                    notes=(missing,),
                    aliases=(name,),
                )
            )


def _unique(name: str, taken: Iterable[str]) -> str:
    known, number, found = set(taken), 1, name
    while found in known:
        number += 1
        found = f"{name} {number}"
    return found


def _slug(name: str, suites: Iterable[Suite]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_MOST_SLUG].strip("-") or "suite"
    taken = {suite.slug for suite in suites}
    return _unique(plain, taken).replace(" ", "-")


GRADERS = "graders.yaml"
"""What can be run."""

NEEDS_YOU = "needs-you.yaml"
"""What needs something before it can be run."""

ROWS = "data.jsonl"
"""The rows."""

_HEAD = """\
# Imported from OpenAI: {name}
# Grade the rows:  assay grade {rows} {file}
"""
_HEAD_NEEDS = """\
# Imported from OpenAI: {name}
# These graders cannot run yet. What each of them needs stands above it.
"""


def write_suites(suites: Sequence[Suite], files: Sequence[str], directory: str) -> list[str]:
    """Write suites: one into the directory itself, several below it.

    Returns:
        Paths of what was written, relative to the directory, sorted.

    Raises:
        InputError: If the directory is not empty or cannot be written.
    """
    with new_directory(directory) as whole:
        for suite in suites:
            _write_suite(suite, whole if len(suites) == 1 else whole / suite.slug)
        _keep(files, whole / "origin")
        return files_below(whole)


def _write_suite(suite: Suite, place: Path) -> None:
    place.mkdir(exist_ok=True)
    runs = [c for c in suite.criteria if c.declaration is not None and c.fidelity != "needs you"]
    waits = [c for c in suite.criteria if c.declaration is not None and c.fidelity == "needs you"]
    name = _comment(suite.name)
    if runs:
        head = _HEAD.format(name=name, rows=ROWS, file=GRADERS)
        _write_graders(runs, suite, place / GRADERS, head)
    if waits:
        _write_graders(waits, suite, place / NEEDS_YOU, _HEAD_NEEDS.format(name=name))
    if suite.rows:
        with (place / ROWS).open("w", encoding="utf-8", newline="\n") as rows:
            for row in suite.rows:
                rows.write(json.dumps({"id": row.id, **row.data}) + "\n")


def _write_graders(criteria: Sequence[SuiteGrader], suite: Suite, file: Path, head: str) -> None:
    parts = [head]
    for criterion in criteria:
        notes = "".join(f"# {_comment(note)}\n" for note in criterion.notes)
        parts.append(f"\n{notes}{yaml_text([_declared(criterion, suite)])}")
    file.write_text("".join(parts), encoding="utf-8", newline="\n")
    load_graders(str(file))  # nothing is written that could not be read


def _declared(criterion: SuiteGrader, suite: Suite) -> dict[str, Json]:
    """The declaration; in a suite of verdicts it is worth 1 where it passes and 0 where not."""
    declared = dict(criterion.declaration or {})
    if suite.has_verdicts and "pass_threshold" in declared:
        declared["pass_fail"] = True
    return declared


def _keep(files: Sequence[str], place: Path) -> None:
    place.mkdir(parents=True)
    for number, file in enumerate(files, 1):
        name = Path(file).name
        shutil.copyfile(file, place / (f"{number}-{name}" if (place / name).exists() else name))


def _comment(text: str) -> str:
    """A text that stays in its comment, whatever it holds."""
    return json.dumps(text)[1:-1].replace('\\"', '"')
