"""Operations on stored graders: list, make, change, lock, compare, carry as files, and grade."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.registry.policy import Permissions
from assay.reports.run_records import Calibration
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.validation import ValidationReport
from assay.service.items import gradable, read_items
from assay.service.operation import (
    After,
    Desk,
    Force,
    GraderKey,
    Host,
    InProject,
    Limit,
    Name,
    Offset,
    Row,
    Section,
    Spec,
    Text,
    ThatGrader,
)
from assay.store.catalog import GraderRecord, GraderVersion
from assay.store.pages import Page, Stretch
from assay.store.scores import ScoreRecord, Scores
from assay.store.uses import GraderUse, Uses

if TYPE_CHECKING:
    from assay.registry.definitions import Definition
    from assay.types.submission import Submission

of_graders = Section("/projects/{project}/graders", tag="graders")
MOST_ITEMS = 1_000
"""Items that one request may have."""
_RESERVED = ("export", "import", "new", "validate")
_SOURCE = (
    "async def grade(thread: StringThread) -> float:\n"
    "    return 1.0 if thread.completion() == '4' else 0.0\n"
)

_Kind = Annotated[str, Spec("What kind it is.", max_length=50, example="function")]
_Definition = Annotated[
    Mapping[str, Json], Spec("What it does; the fields of its kind.", example={"source": _SOURCE})
]
_Samples = Annotated[
    Sequence[Row],
    Spec(
        "Rows it is tried on first.", max_length=20, example=[{"question": "2 + 2?", "answer": "4"}]
    ),
]
VersionNumber = Annotated[int | None, Spec("The latest by default.", ge=1, le=2**31 - 1)]
_Wanted = Annotated[int | None, Spec("The latest by default.", place="query", ge=1, le=2**31 - 1)]


@frozen(kw_only=True)
class GraderDetail(GraderRecord):
    """A grader with one version, what is worth a look in it, and its calibration card.

    Attributes:
        warnings: What is worth a look.
        calibration: The card; null where it was never measured.
    """

    warnings: tuple[str, ...] = ()
    calibration: Calibration | None = None

    @property
    def record(self) -> GraderRecord:
        """The grader alone."""
        return GraderRecord(**_said(self))


@frozen(kw_only=True)
class ListedGrader(GraderRecord):
    """A grader with what depends on it, and its calibration card.

    Attributes:
        use: What depends on it.
        calibration: The card; null where it was never measured.
    """

    use: GraderUse
    calibration: Calibration | None = None


def _said(grader: GraderRecord) -> dict[str, Any]:
    return {f.name: getattr(grader, f.name) for f in fields(GraderRecord)}


@frozen(kw_only=True)
class GradedItems:
    """What came of items, in their order, and the calibration card of what graded them.

    Attributes:
        results: An outcome for each item.
        grader: The grader and its version.
        digest: Of the version.
        calibration: The card; null where it was never measured.
        seconds: How long each item was worked on, without waiting for its turn.
    """

    results: tuple[Graded, ...]
    grader: str = ""
    digest: str = ""
    calibration: Calibration | None = None
    seconds: tuple[float | None, ...] = ()


@frozen
class GraderDiff:
    """Two versions, compared line by line; empty where they do not differ."""

    diff: str


@frozen
class GraderFiles:
    """Graders as files: name to text."""

    files: Mapping[str, str]


@frozen
class GraderList:
    """The graders that were read from files."""

    items: Sequence[GraderRecord]


def _etag(desk: Desk, grader: GraderRecord) -> dict[str, str]:
    """``"KEY@NUMBER-xxxxxxxx"``: the version, and what is said of the grader beside it."""
    card = (
        grader.calibration
        if isinstance(grader, GraderDetail)
        else calibration_of(desk, grader.latest)
    )
    said = [grader.name, grader.description, grader.feedback_key, grader.locked]
    whole = json.dumps([*said, grader.created_at, repr(card)])
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return {"ETag": f'"{grader.key}@{grader.latest.number}-{mark}"'}


def _made(desk: Desk, grader: GraderRecord) -> dict[str, str]:
    place = f"/api/v1/projects/{desk.project}/graders/{grader.key}"
    return {"Location": place, **_etag(desk, grader)}


# It changes nothing for the log: the scores that it stores say themselves what they are.
@of_graders("POST", "/{key}/grade", tag="grading", repeatable=True, lasts=False)
async def grade(
    host: Host,
    grader_key: ThatGrader,
    items: Annotated[
        Sequence[Row],
        Spec(
            "1 to 1,000; more are a dataset. Ids differ.",
            min_length=1,
            max_length=MOST_ITEMS,
            example=[{"id": "1", "question": "What is 2 + 2?", "answer": "4"}],
        ),
    ],
    version: VersionNumber = None,
    deadline: Annotated[
        float | None,
        Spec(
            "Seconds that each item may take once its turn has come; one that is late "
            "is an error. No end by default.",
            ge=0.001,
            le=86_400,
        ),
    ] = None,
    *,
    record: Annotated[bool, Spec("Store the scores, before they are acknowledged.")] = True,
    project: InProject = None,
) -> GradedItems:
    """Grade items. Their scores are stored before they are acknowledged, unless `record` is false.

    Items that cannot be graded are errors among the results, as are those that lack something
    unless all of them do; the others are graded.
    """
    read = gradable(items)
    found = await host.run(lambda desk: version_to_run(desk, grader_key, version))
    name = f"{found.key}@{found.number}"
    fine = [(item, one) for item, one in read if not isinstance(one, Graded)]
    batch = await host.grade(found, fine, deadline)
    done = iter(zip(batch.graded, batch.seconds, strict=True))
    timed = [
        (one.by(name, found.digest), None) if isinstance(one, Graded) else next(done)
        for _, one in read
    ]
    graded = [one for one, _ in timed]

    def store(desk: Desk) -> GradedItems:
        if record:
            scores = [ScoreRecord(project=desk.project, item=g.id, graded=g) for g in graded]
            Scores(desk.database).add(desk.project, scores)
        return GradedItems(
            results=tuple(graded),
            grader=f"{found.key}@{found.number}",
            digest=found.digest,
            calibration=calibration_of(desk, found, graded),
            seconds=tuple(took and round(took, 6) for _, took in timed),
        )

    return await host.finish(store)


@of_graders("GET", "/export")
def export_graders(
    desk: Desk,
    keys: Annotated[
        str | None, Spec("Keys with commas between; all by default.", max_length=20_000)
    ] = None,
    *,
    project: InProject = None,
) -> GraderFiles:
    """Graders as files for git: `KEY.yaml`, and a function's source beside it."""
    wanted = None if keys is None else [key for key in keys.split(",") if key]
    return GraderFiles(desk.graders.files(wanted))


@of_graders("POST", "/import", faults=(423,), repeatable=True)
async def import_graders(
    host: Host,
    files: Annotated[
        Mapping[str, str],
        Spec(
            "File name to text.",
            max_length=500,
            example={"four.yaml": "kind: function\ndefinition: {}\n", "four.py": _SOURCE},
        ),
    ],
    *,
    update: Annotated[bool, Spec("Make new versions of graders that are there already.")] = True,
    project: InProject = None,
) -> GraderList:
    """Store the graders of some files: all of them, or none."""
    from assay.registry.files import GraderFile, read_grader_files
    from assay.registry.imports import validate_import

    async def read_apart() -> Sequence[GraderFile]:
        return read_grader_files(files)

    read = await host.apart(read_apart)
    for file in read:
        host.permissions.require(file.definition.kind, file.definition.to_dict())
    planned = await host.run(lambda desk: desk.graders.planned_import(read, update=update))
    await host.apart(lambda: validate_import(planned, host.permissions))
    return await host.finish(
        lambda desk: GraderList([one.record for one in desk.graders.add_imported(planned)])
    )


@of_graders("GET")
def list_graders(
    desk: Desk,
    *,
    kind: Annotated[str | None, Spec(max_length=50, example="function")] = None,
    query: Annotated[str, Spec("Part of the key, name or description.", max_length=200)] = "",
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[ListedGrader]:
    """The graders of a project by key, with what depends on each and its calibration."""
    found = desk.graders.page(Stretch(limit, offset, after), kind=kind, query=query)
    uses = Uses(desk.database, desk.project).of([one.key for one in found])

    def card(version: GraderVersion) -> Calibration | None:
        with suppress(InputError):  # one that cannot be read any more was never measured as it is
            return calibration_of(desk, version)
        return None

    return found.of(
        lambda one: ListedGrader(**_said(one), use=uses[one.key], calibration=card(one.latest))
    )


@of_graders("POST", status=201, repeatable=True, headers=_made)
async def create_grader(
    host: Host,
    key: GraderKey,
    kind: _Kind,
    definition: _Definition,
    *,
    name: Name = "",
    description: Text = "",
    feedback_key: Name = "",
    note: Text = "",
    samples: _Samples = (),
    project: InProject = None,
) -> GraderDetail:
    """Store a grader, after it was validated: its checks, and a trial on the samples."""
    from assay.registry.validation import validated

    if key in _RESERVED:
        raise InputError(
            "the word has a meaning in addresses",
            location=Location(field="key"),
            hint="choose another",
        )
    wanted, read = await _wanted(host, kind, definition, samples)
    await host.run(lambda desk: desk.graders.require_free(key))
    checked, warnings = await host.apart(lambda: validated(key, wanted, read, host.permissions))
    return await host.finish(
        lambda desk: _detail(
            desk,
            desk.graders.add(
                key, checked, note, name=name, description=description, feedback_key=feedback_key
            ),
            warnings,
        )
    )


@of_graders("POST", "/validate", lasts=False)
async def validate_grader(
    host: Host,
    kind: _Kind,
    definition: _Definition,
    samples: _Samples = (),
    *,
    project: InProject = None,
) -> ValidationReport:
    """Check a definition and try it on samples; nothing is stored."""
    from assay.registry.validation import validate

    wanted, read = await _wanted(host, kind, definition, samples)
    return await host.apart(lambda: validate(wanted, read, host.permissions))


@of_graders("GET", "/{key}", headers=_etag)
def show_grader(
    desk: Desk, grader_key: ThatGrader, version: _Wanted = None, *, project: InProject = None
) -> GraderDetail:
    """A grader with its latest version, or the one that is asked for, also of a deleted grader."""
    return _detail(desk, desk.graders.get(grader_key, version))


@of_graders("PUT", "/{key}", faults=(412, 423, 428), repeatable=True, headers=_etag)
async def update_grader(
    host: Host,
    grader_key: ThatGrader,
    kind: _Kind,
    definition: _Definition,
    *,
    note: Text = "",
    samples: _Samples = (),
    expected: Annotated[int | None, Spec(place="if-match")] = None,
    project: InProject = None,
) -> GraderDetail:
    """Store a new version; the same definition as the latest makes none."""
    from assay.registry.validation import validated

    wanted, read = await _wanted(host, kind, definition, samples)
    present, is_same = await host.run(
        lambda desk: desk.graders.changing(grader_key, wanted, expected)
    )
    if is_same:
        return await host.finish(lambda desk: _detail(desk, present))
    checked, warnings = await host.apart(
        lambda: validated(grader_key, wanted, read, host.permissions)
    )
    number = present.latest.number
    return await host.finish(
        lambda desk: _detail(
            desk, desk.graders.add_version(grader_key, checked, note, expected=number), warnings
        )
    )


@of_graders("PATCH", "/{key}", faults=(423,), headers=_etag)
def describe_grader(
    desk: Desk,
    grader_key: ThatGrader,
    *,
    name: Annotated[str | None, Spec.text(200)] = None,
    description: Annotated[str | None, Spec.text(10_000, example="Only the number counts")] = None,
    feedback_key: Annotated[str | None, Spec.text(200)] = None,
    project: InProject = None,
) -> GraderRecord:
    """Change what people read of a grader; its scores stay what they are."""
    return desk.graders.describe(
        grader_key, name=name, description=description, feedback_key=feedback_key
    )


@of_graders("DELETE", "/{key}", faults=(423,), repeatable=True)
def delete_grader(
    desk: Desk, grader_key: ThatGrader, *, force: Force = False, project: InProject = None
) -> None:
    """Delete a grader; versions that gave scores can still be read by them."""
    desk.graders.delete(grader_key, force=force)


@of_graders("PUT", "/{key}/lock", headers=_etag)
def lock_grader(
    desk: Desk,
    grader_key: ThatGrader,
    *,
    locked: Annotated[bool, Spec(example=True)] = True,
    project: InProject = None,
) -> GraderRecord:
    """Lock a grader against changes, or unlock it."""
    return desk.graders.lock(grader_key, locked=locked)


@of_graders("GET", "/{key}/versions")
def list_versions(
    desk: Desk,
    grader_key: ThatGrader,
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[GraderVersion]:
    """The versions of a grader, newest first."""
    return desk.graders.versions(grader_key, Stretch(limit, offset, after))


@of_graders("GET", "/{key}/diff")
def diff_versions(
    desk: Desk,
    grader_key: ThatGrader,
    older: Annotated[
        int | None, Spec("Before `to` by default.", alias="from", ge=1, le=2**31 - 1)
    ] = None,
    newer: Annotated[
        int | None, Spec("The latest by default.", alias="to", ge=1, le=2**31 - 1)
    ] = None,
    *,
    project: InProject = None,
) -> GraderDiff:
    """What changed between two versions."""
    return GraderDiff(desk.graders.diff(grader_key, older, newer))


def version_to_run(desk: Desk, key: str, number: int | None) -> GraderVersion:
    """Find the version that is to grade; the latest by default."""
    version = desk.graders.get(key).latest  # first, for versions outlive a grader that is deleted
    if number is not None and number != version.number:
        version = desk.graders.version(key, number)
    desk.permissions.require(version.kind, version.definition)
    return version


def calibration_of(
    desk: Desk, version: GraderVersion, graded: Iterable[Graded] = ()
) -> Calibration | None:
    """The calibration card beside scores of a version; None where there is none.

    Args:
        desk: Where it is.
        version: The version.
        graded: What it gave; without any, the card is for what it would give now.
    """
    from assay.reports.grader_cards import stored_standing

    found = stored_standing(desk.database, version, (one.digest for one in graded))
    return None if found is None else found.shown


async def _wanted(
    host: Host, kind: str, data: Mapping[str, Json], samples: Sequence[Mapping[str, Json]]
) -> tuple[Definition, list[tuple[str, Submission]]]:
    """What was sent, read where nobody else waits for it."""

    async def read() -> tuple[Definition, list[tuple[str, Submission]]]:
        return permitted(host.permissions, kind, data), read_items(samples, "samples")

    return await host.apart(read)


def permitted(permissions: Permissions, kind: str, data: Mapping[str, Json]) -> Definition:
    """The definition that was sent, if it is well formed and may be carried out here.

    Raises:
        ForbiddenError: If it may not.
        ShapeError: With every mistake, placed below ``definition``.
    """
    from assay.registry.definitions import definition_from
    from assay.types.codec import ShapeError

    permissions.require(kind, data)
    try:
        return definition_from(kind, data)
    except ShapeError as error:
        placed = [
            problem
            if problem.path == ("kind",)
            else replace(problem, path=("definition", *problem.path))
            for problem in error.problems
        ]
        raise ShapeError(placed) from error


def _detail(desk: Desk, grader: GraderRecord, seen: Sequence[str] = ()) -> GraderDetail:
    """A grader, with what is worth a look in its version, or was seen, and the card of that."""
    from assay.registry.validation import version_warnings

    return GraderDetail(
        **_said(grader),
        warnings=tuple(dict.fromkeys((*version_warnings(grader.latest), *seen))),
        calibration=calibration_of(desk, grader.latest),
    )
