"""Calibrating what is stored: stored graders, labels that people gave, cards that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.errors import InputError
from assay.eval.calibration.asking import Target
from assay.eval.calibration.card import Card
from assay.eval.calibration.labelled import Item, LabelledSet, item_of, labelled_set
from assay.graders.digest import grader_digest, parts_digest
from assay.graders.spec import GraderSpec
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_parameters
from assay.store.cards import CardRecord, Cards
from assay.store.catalog import GraderVersion
from assay.store.labels import LabelledItem as StoredItem
from assay.store.labels import Labels
from assay.types.submission import Submission


def stored_target(version: GraderVersion, permissions: Permissions) -> Target:
    """A stored grader as what is calibrated.

    Raises:
        InputError: If it cannot grade here, as where its model cannot be asked.
    """
    from assay.registry.definitions import definition_of
    from assay.registry.grading import grade_version, refusal

    definition = definition_of(version)
    if refused := refusal(definition, permissions, version.key):
        named = f"{version.key}@{version.number}"
        raise InputError(f"{named} cannot grade: {refused.message}", hint=refused.hint)

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        return await grade_version(version, items, permissions)

    specs, declared = definition.graders, definition.to_dict()
    return Target(
        name=version.key,
        kind=version.kind,
        digest=definition.digest(),
        alias=parts_digest((grader_digest(s), s.weight, s.gate) for s in specs) if specs else "",
        made_of={**record_parameters(declared), "version": version.number},
        models=models_of(specs, declared),
        threshold=1.0 if definition.threshold is None else definition.threshold,
        score=score,
    )


def models_of(
    specs: Sequence[GraderSpec], declared: Mapping[str, Json] | None = None
) -> tuple[str, ...]:
    """The models that graders name, and those that they ask where they name none."""
    found = [] if declared is None else _named(declared)
    for spec in specs:
        named = _named(spec.options)
        default = spec.kind.parameters.get("model")
        if not named and default is not None and isinstance(default.default, str):
            named = [default.default]
        found += named
    return tuple(dict.fromkeys(found))


def _named(options: Mapping[str, Json]) -> list[str]:
    from assay.registry.policy import models_in

    return [model for _, model in models_in(options)]


def stored_item(one: StoredItem, field: str) -> Item:
    """The item of a row that the store has, by the digest under which it was labelled."""
    item = item_of(one.row, label=field)
    return replace(item, id=item.id if "id" in one.row else one.digest[:8], digest=one.digest)


def collected(
    labels: Labels, project: str, field: str, *, cluster: str = "", levels: Sequence[str] = ()
) -> LabelledSet:
    """All that people labelled in a field.

    Raises:
        InputError: If there is no label, or one that cannot be compared.
    """
    read: list[tuple[Item, Json]] = [
        (stored_item(one, field), {rater: said.label for rater, said in one.labels.items()})
        for one in labels.items(project, field)
    ]
    if not any(value for _, value in read):
        raise InputError(
            f"the store has no labels {field!r} in the project {project!r}",
            hint="`assay calibrate label DATA.jsonl` collects them; --label names another field",
        )
    return labelled_set(read, name="the store", label=field, cluster=cluster, levels=levels)


def work_of(target: Target, labelled: LabelledSet) -> str:
    """What names the asking of a grader about labelled items: it can be gone on with."""
    return f"{target.digest}:{labelled.digest}"


def record_of(card: Card) -> CardRecord:
    """A card as it is stored."""
    return CardRecord(
        grader=card.grader,
        digest=card.digest,
        alias=card.alias,
        labels=card.labels.digest,
        body=card.to_dict(),
    )


def said_before(cards: Cards, project: str, found: Card) -> CardRecord | None:
    """The newest card that says the same, where nothing was asked anew."""
    if not found.cost.is_of_cache:
        return None
    for record in cards.about(project, found.grader, [found.digest]):
        try:
            is_same = found.says_as(Card.from_dict(record.body))
        except InputError:  # of a newer version
            continue
        if is_same:
            return record
    return None
