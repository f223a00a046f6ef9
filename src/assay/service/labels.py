"""Operations on labels: what people say of answers, one item after the other, blind to graders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from assay.errors import InputError, Location, NotFoundError
from assay.eval.calibration.card import Figure, figure
from assay.eval.calibration.labelled import Item
from assay.eval.calibration.labelling import (
    COMMANDS,
    kept_row,
    key_names,
    labelled_row,
    seen_of,
    shuffled,
    valid_classes,
)
from assay.eval.calibration.sources import DatasetSource, ItemSource, RunSource
from assay.eval.calibration.stored import stored_item
from assay.registry.policy import ForbiddenError
from assay.scoring.json_safe import Json
from assay.service.operation import LOCAL, After, Desk, InProject, Limit, Offset, Section, Spec
from assay.service.runs import show_run
from assay.statistics.classes import krippendorff_alpha
from assay.statistics.intervals import wilson
from assay.store.labels import LabelCount, LabelRecord, Labels
from assay.store.pages import COUNTED, Page, Stretch, page_of, written
from assay.store.runs import Store

of_labels = Section("/projects/{project}/labels", tag="labels")

Field = Annotated[str, Spec.text(200, "What the labels are called.", min_length=1, example="label")]
_Dataset = Annotated[str, Spec.text(64, "Key of a dataset.", example="arithmetic")]
_Run = Annotated[str, Spec.text(200, "A run, where answers are its cells'.")]
_Rater = Annotated[
    str, Spec.text(200, "Who labels: the caller; on a server of one's own any name.")
]
_Seed = Annotated[int, Spec("Of the random order.", ge=0, le=2**31 - 1, example=0)]
_Classes = Annotated[
    str, Spec.text(400, "What an answer can be, with commas between.", example="PASS,FAIL,NA")
]

Which = Literal["all", "several", "disagreed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterCount:
    """What one person labelled.

    Attributes:
        rater: Who it is.
        items: Items that they labelled.
        labels: How often they gave each label.
        last_at: When they labelled last.
    """

    rater: str
    items: int
    labels: Mapping[str, int]
    last_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """The labels of one field.

    Attributes:
        field: What they are called.
        items: Items with a label.
        raters: Who labelled.
        labels: How often each label was given.
        several: Items with labels of several people.
        agreed: Share of them on which all people say the same, with its interval.
        alpha: Krippendorff's alpha of all raters; null where it is undefined.
        last_at: When the newest label was given.
        criterion: What was asked last; empty where nothing was said.
    """

    field: str
    items: int
    raters: tuple[RaterCount, ...]
    labels: Mapping[str, int]
    several: int
    agreed: Figure
    alpha: float | None
    last_at: str
    criterion: str = ""


@dataclass(frozen=True, slots=True)
class SeenPart:
    """One text that a rater sees of an item: question, documents, reference or answer."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """An item to label. Nothing that a grader said is in it.

    Attributes:
        item: Its digest.
        place: Where it stands in the dataset or run.
        id: What people call it.
        parts: What is to be read.
    """

    item: str
    place: str
    id: str
    parts: tuple[SeenPart, ...]


@dataclass(frozen=True, slots=True)
class LabelKey:
    """The key that gives a label."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelQueue(Page[QueueItem]):
    """The next items that a rater has not labelled yet, in an order of their seed.

    Attributes:
        next: Where it goes on; null at the end. What was skipped comes again without it.
        total: Items of the queue.
        done: Items among them that the rater has labelled.
        size: Rows or cells that there are; more than `total` where a sample is labelled.
        rater: Who labels.
        keys: The key of every class.
        commands: What the other keys do.
        criterion: What was asked in this field last.
    """

    done: int
    size: int
    rater: str
    keys: tuple[LabelKey, ...]
    commands: Mapping[str, str]
    criterion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidLabel:
    """What one person said of an item."""

    rater: str
    label: str
    note: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRow:
    """An item and what people said of it.

    Attributes:
        item: Its digest.
        id: What people call it.
        parts: What they read.
        said: What each of them said.
        agreed: Whether all said the same.
    """

    item: str
    id: str
    parts: tuple[SeenPart, ...]
    said: tuple[SaidLabel, ...]
    agreed: bool


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """A labelled row, as `assay calibrate` and `assay grade` read it."""

    row: dict[str, Json]


@of_labels("GET", apart=True)
def list_labels(
    desk: Desk,
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[LabelSet]:
    """What people labelled: the fields, by whom, and how far they agree."""
    labels = Labels(desk.database)
    by_field: dict[str, list[LabelCount]] = {}
    for count in labels.counts(desk.project):
        by_field.setdefault(count.field, []).append(count)
    some = page_of(list(by_field.items()), Stretch(limit, offset, after))
    return some.of(lambda one: _set_of(*one, labels.current(desk.project, one[0])))


@of_labels("GET", "/queue", apart=True)
def next_to_label(
    desk: Desk,
    *,
    dataset: _Dataset = "",
    run: _Run = "",
    field: Field = "label",
    classes: _Classes = "PASS,FAIL,NA",
    seed: _Seed = 0,
    rater: _Rater = "",
    limit: Annotated[int, Spec("Most items.", ge=1, le=50, example=3)] = 3,
    after: After = None,
    project: InProject = None,
) -> LabelQueue:
    """The next items of a dataset or a run that the caller has not labelled yet.

    They come in a random order that is the same for a seed, and without anything that a grader
    said of them.
    """
    source, who = _source(desk, dataset, run, field, seed), _rater(desk, rater)
    places = source.places()
    said = Labels(desk.database).current(desk.project, field)
    mine = {digest for digest, by in said.items() if who in by}
    order = shuffled(list(places), seed)
    (seen,) = COUNTED.place(after) or (0,)
    waiting = [one for one in enumerate(order, 1) if one[0] > int(seen) and one[1] not in mine]
    some = waiting[:limit]
    found = source.items([places[digest] for _, digest in some])
    return LabelQueue(
        [_queued(digest, places[digest], found) for _, digest in some],
        len(order),
        written([some[-1][0]]) if len(waiting) > limit else None,
        done=sum(digest in mine for digest in order),
        size=source.size,
        rater=who,
        keys=tuple(LabelKey(key, name) for key, name in key_names(_names(classes)).items()),
        commands={key: name for key, name in COMMANDS.items() if name != "quit"},
        criterion=_criterion(said),
    )


def _queued(digest: str, place: str, found: Mapping[str, Item]) -> QueueItem:
    if (item := found.get(place)) is None:
        raise NotFoundError("the dataset or run was changed meanwhile", hint="open the queue again")
    return QueueItem(item=digest, place=place, id=item.id, parts=_parts(item))


@of_labels("POST", repeatable=True, lasts=False)
def add_label(
    desk: Desk,
    item: Annotated[str, Spec("Digest of the item.", pattern=r"^[0-9a-f]{32}$", example="0" * 32)],
    label: Annotated[
        str, Spec.text(200, "The label; empty to take back what was said.", example="PASS")
    ],
    *,
    dataset: _Dataset = "",
    run: _Run = "",
    place: Annotated[str, Spec.text(4_000, "As the queue gave it.", example="1")] = "",
    field: Field = "label",
    note: Annotated[str, Spec.text(2_000)] = "",
    criterion: Annotated[str, Spec.text(2_000, "What the rater was asked.")] = "",
    rater: _Rater = "",
    project: InProject = None,
) -> LabelRecord:
    """Keep what a person says of an item. Labels are appended; the last one of a rater counts."""
    source = _source(desk, dataset, run, field, 0)
    found = source.items([place]).get(place)
    if found is None or found.digest != item:
        raise InputError(
            "this place does not hold the item",
            location=Location(field="place"),
            hint="send item and place as the queue gave them",
        )
    record = LabelRecord(
        item=item,
        field=field,
        rater=_rater(desk, rater),
        label=label.strip(),
        note=note,
        criterion=criterion,
    )
    return Labels(desk.database).add(desk.project, record, kept_row(found))


@of_labels("GET", "/items", apart=True)
def list_labelled(
    desk: Desk,
    *,
    field: Field = "label",
    which: Annotated[Which, Spec("All, those of several people, or those they differ on.")] = "all",
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[LabelledRow]:
    """Items with what every rater said of them, in the order in which they were labelled."""
    labels = Labels(desk.database)
    current = labels.current(desk.project, field)
    wanted = {digest: said for digest, said in current.items() if _is_wanted(said, which)}
    return labels.page(desk.project, wanted, Stretch(limit, offset, after)).of(
        lambda row: LabelledRow(
            item=row.digest,
            id=(item := stored_item(row, field)).id,
            parts=_parts(item),
            said=tuple(said_of(record) for record in row.labels.values()),
            agreed=not _differ(row.labels),
        )
    )


@of_labels("GET", "/export", apart=True)
def export_labels(
    desk: Desk,
    *,
    field: Field = "label",
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[ExportedRow]:
    """Labelled rows, as `assay calibrate` reads them: of several people's labels, each by rater."""
    labels = Labels(desk.database)
    current = labels.current(desk.project, field)
    several = len({rater for said in current.values() for rater in said}) > 1
    return labels.page(desk.project, current, Stretch(limit, offset, after)).of(
        lambda row: ExportedRow(
            labelled_row(
                stored_item(row, field),
                field,
                {rater: record.label for rater, record in row.labels.items()},
                by_rater=several,
            )
        )
    )


def _names(classes: str) -> tuple[str, ...]:
    try:
        return valid_classes(classes)
    except InputError as error:
        raise InputError(error.message, location=Location(field="classes")) from error


def _source(desk: Desk, dataset: str, run: str, field: str, seed: int) -> ItemSource:
    if bool(dataset) == bool(run):
        raise InputError(
            "items come from a dataset or from a run",
            location=Location(field="dataset"),
            hint="name one of them",
        )
    if dataset:
        return DatasetSource(desk.database, desk.project, dataset, field, seed)
    if desk.project != "default":
        raise InputError(
            "runs belong to the project default",
            location=Location(field="run"),
            hint="label their answers there",
        )
    return RunSource(Store(desk.database), show_run.function(desk, run), field, seed)


def _rater(desk: Desk, given: str) -> str:
    """Who labels: whoever has a key, under its name; on a machine of one's own, any name."""
    given = given.strip()
    if not given or given == desk.who.name:
        return desk.who.name
    if desk.who.id != LOCAL.id:
        raise ForbiddenError(
            f"labels are kept under the name of the key, {desk.who.name!r:.80}",
            location=Location(field="rater"),
            hint="leave the rater out",
        )
    return given


def _parts(item: Item) -> tuple[SeenPart, ...]:
    return tuple(SeenPart(name, text) for name, text in seen_of(item).items())


def said_of(record: LabelRecord) -> SaidLabel:
    """A label as it is shown."""
    return SaidLabel(
        rater=record.rater, label=record.label, note=record.note, created_at=record.created_at
    )


def _differ(said: Mapping[str, LabelRecord]) -> bool:
    return len({record.label for record in said.values()}) > 1


def _is_wanted(said: Mapping[str, LabelRecord], which: Which) -> bool:
    return which == "all" or (len(said) > 1 if which == "several" else _differ(said))


def _criterion(current: Mapping[str, Mapping[str, LabelRecord]]) -> str:
    told = [one for said in current.values() for one in said.values() if one.criterion]
    return max(told, key=lambda one: one.created_at).criterion if told else ""


def _set_of(
    field: str, counts: Sequence[LabelCount], current: Mapping[str, Mapping[str, LabelRecord]]
) -> LabelSet:
    by_rater: dict[str, list[LabelCount]] = {}
    total: Counter[str] = Counter()
    for count in counts:
        by_rater.setdefault(count.rater, []).append(count)
        total[count.label] += count.items
    several = [said for said in current.values() if len(said) > 1]
    same = sum(not _differ(said) for said in several)
    rated = [[record.label for record in said.values()] for said in several]
    return LabelSet(
        field=field,
        items=len(current),
        raters=tuple(
            RaterCount(
                rater=rater,
                items=sum(one.items for one in own),
                labels={one.label: one.items for one in own},
                last_at=max(one.last_at for one in own),
            )
            for rater, own in by_rater.items()
        ),
        labels=dict(total.most_common()),
        several=len(several),
        agreed=figure(wilson(same, len(several)), "wilson"),
        alpha=krippendorff_alpha(rated).value if rated else None,
        last_at=max(one.last_at for one in counts),
        criterion=_criterion(current),
    )
