"""What ``assay graders`` does: create, update, validate, test, export, import."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from assay.cli.graders_definition import (
    described,
    grader_of_file,
    opened,
    permitted,
    read_samples,
)
from assay.cli.graders_output import (
    print_imported,
    print_report,
    print_warnings,
)
from assay.errors import InputError
from assay.registry import Definition, ValidationFailedError, definition_from
from assay.registry.files import read_grader_files
from assay.registry.imports import read_folder, stale_files, validate_import, write_folder
from assay.registry.validation import Samples, validated, version_warnings
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.store.catalog import GraderRecord, GraderVersion

_NOT_VALID = 1
_SAY = "give FILE.py, graders.yaml or KEY.yaml; or --set kind=..."
_SAID = ("name", "description", "feedback_key")


def run_action(given: Namespace) -> int:
    """Run one of the actions."""
    try:
        return _ACTIONS[given.action](given)
    except ValidationFailedError as error:
        _invalid(given, error)
        return _NOT_VALID


def _invalid(given: Namespace, error: ValidationFailedError) -> None:
    named = getattr(given, "file", None) or ""
    is_definition = named and not named.endswith(".py")
    file = error.file or (grader_of_file(named).file if is_definition else named)
    if given.json:
        _print({"stored": False, "key": error.key, "file": file, **error.report.to_dict()})
    else:
        print_report(error.report, what=file or error.key, file=file)
        print("nothing was stored", file=sys.stderr)


def _validated(
    key: str, definition: Definition, samples: Samples
) -> tuple[Definition, tuple[str, ...]]:
    return asyncio.run(validated(key, definition, samples, permitted()))


def _print(data: Mapping[str, Json]) -> None:
    print(json.dumps(data))


def _create(given: Namespace) -> int:
    grader, _ = described(given)
    if grader is None:
        raise InputError(
            "no definition of the grader was given",
            hint=_SAY,
        )
    samples = read_samples(given.sample)
    with opened(given, make=True, change="create_grader", key=given.key) as registry:
        registry.require_free(given.key)
        checked, told = _validated(given.key, grader.definition, samples)
        record = registry.add(
            given.key,
            checked,
            given.note,
            name=grader.name,
            description=grader.description,
            feedback_key=grader.feedback_key,
        )
    if given.json:
        found = _warnings(record.latest, told)
        _print({"grader": record.to_dict(), "change": "created", **found})
    else:
        _print_stored(record, "stored", told)
    return 0


def _update(given: Namespace) -> int:
    samples, told = read_samples(given.sample), tuple[str, ...]()
    with opened(given, change="update_grader", key=given.key) as registry:
        before = record = registry.get(given.key)
        grader, kept = described(given, before.latest)
        said: dict[str, str | None] = {
            name: getattr(given if grader is None else grader, name) or None for name in _SAID
        }
        is_said = any(text is not None for text in said.values())
        if grader is None and not is_said:
            raise InputError(
                "no change was given", hint=f"{_SAY}, --set FIELD=VALUE, --description"
            )
        if grader is not None:
            expected = given.expected or (before.latest.number if kept else None)
            record, is_same = registry.changing(given.key, grader.definition, expected)
            if not is_same:
                number = record.latest.number
                checked, told = _validated(given.key, grader.definition, samples)
                record = registry.add_version(given.key, checked, given.note, expected=number)
        if is_said:
            record = registry.describe(given.key, **said)
    return _updated(given, before, record, kept, told)


def _updated(
    given: Namespace,
    before: GraderRecord,
    record: GraderRecord,
    kept: Mapping[str, Json],
    told: Sequence[str],
) -> int:
    is_new = record.latest.number != before.latest.number
    is_described = any(getattr(record, field) != getattr(before, field) for field in _SAID)
    did = {"stored": is_new, "described": is_described}
    what = " and ".join(name for name, done in did.items() if done) or "unchanged"
    change = "updated" if is_new else what
    if given.json:
        found = _warnings(record.latest, told)
        _print({"grader": record.to_dict(), "change": change, "kept": dict(kept), **found})
        return 0
    _print_stored(record, what, told)
    if kept:
        shown = ", ".join(f"{name} {one_line(str(value), 60)}" for name, value in kept.items())
        print(f"kept of version {before.latest.number}: {shown}")
    return 0


def _print_stored(record: GraderRecord, what: str, told: Sequence[str]) -> None:
    latest = record.latest
    print(f"{record.key}@{latest.number} {what}  {latest.kind}  digest {latest.digest[:16]}")
    print_warnings(tuple(dict.fromkeys((*_warned(latest), *told))))


def _warned(version: GraderVersion) -> tuple[str, ...]:
    """What is worth a look in a version, and why a judge would grade nothing here."""
    found = version_warnings(version)
    definition = definition_from(version.kind, version.definition)
    if definition.kind in ("binary_judge", "prebuilt_judge"):
        from assay.registry.grading import Permissions, refusal

        refused = refusal(definition, Permissions(internal=True), version.key)
        return found if refused is None else (*found, str(refused))
    return found


def _warnings(version: GraderVersion, told: Sequence[str] = ()) -> dict[str, Json]:
    return {"warnings": list[Json](dict.fromkeys((*_warned(version), *told)))}


def _export(given: Namespace) -> int:
    """Write graders as files, and name or remove those of graders that are gone."""
    with opened(given) as registry:
        written = write_folder(registry.files(given.keys or None), given.out)
        left_over = stale_files(registry.files(), given.out, remove=given.prune)
    files, stale = list(map(str, written)), list(map(str, left_over))
    removed, left = (stale, []) if given.prune else ([], stale)
    if given.json:
        found: dict[str, Json] = {
            "files": list[Json](files),
            "stale": list[Json](left),
            "removed": list[Json](removed),
        }
        print(json.dumps(found))
        return 0
    for file in files:
        print(f"  {file}")
    for file in removed:
        print(f"  {file} removed")
    if not files:
        print("no graders to export", file=sys.stderr)
    if left:
        names = ", ".join(left)
        print(f"belong to no stored grader: {names} (--prune removes them)", file=sys.stderr)
    return 0


def _import(given: Namespace) -> int:
    """Store the graders of files."""
    files, shown = read_folder(given.path)
    with opened(given, make=True, change="import_graders") as registry:
        read = read_grader_files(files, folder=shown)
        planned = registry.planned_import(read, update=not given.no_update)
        asyncio.run(validate_import(planned, permitted()))
        done = registry.add_imported(planned)
    if given.json:
        rows: list[Json] = [
            {"key": one.record.key, "change": one.change, "version": one.record.latest.number}
            for one in done
        ]
        print(json.dumps({"imported": rows}))
    else:
        print_imported(done)
    return 0


_ACTIONS: Mapping[str, Callable[[Namespace], int]] = {
    "create": _create,
    "update": _update,
    "export": _export,
    "import": _import,
}
