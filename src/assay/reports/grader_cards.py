"""What is known of the graders behind scores: their calibration cards, or that they are stale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from assay.errors import InputError
from assay.eval.calibration.card import Card
from assay.graders.digest import parts_digest
from assay.reports.calibration_card import card_line
from assay.reports.explain import digest_in
from assay.reports.plain import one_line
from assay.reports.run_records import Calibration
from assay.scoring.json_safe import Json, record_parameters
from assay.store.cards import CardRecord, Cards
from assay.store.records import CellRecord
from assay.version import __version__

if TYPE_CHECKING:
    from assay.store.catalog import GraderVersion
    from assay.store.database import Database


_MOST_NAMED = 6
_MAX_VALUE = 40
_NOT_DECLARED = frozenset({"version", "name", "weight", "gate"})

Part = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Standing:
    """A grader that gave scores, and its card.

    Attributes:
        grader: What its score is called.
        digest: Of what gave the scores.
        card: Of the cards of that digest the one with the most rows compared, the newest of
            equals; where there is none, that of the newest card of its name.
        card_id: Where it is stored.
        changed: What of the grader differs from what the card was made with; empty for a card of
            the very same digest.
    """

    grader: str
    digest: str
    card: Card
    card_id: str
    changed: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether the card was made with another state of the grader."""
        return bool(self.changed)

    @property
    def line(self) -> str:
        """The card in one line."""
        return card_line(self.card, self.changed)

    @property
    def shown(self) -> Calibration:
        """What stands beside scores; the whole card is in the store."""
        kappa = self.card.kappa
        low, high = kappa.low, kappa.high
        return Calibration(
            grader=self.grader,
            digest=self.digest,
            card=self.card_id,
            kappa=kappa.value,
            kappa_interval=None if low is None or high is None else (low, high),
            n=self.card.coverage.compared,
            errors=self.card.coverage.errors,
            stale=self.is_stale,
            changed=self.changed,
            line=self.line,
        )


class Shelf:
    """The card of every digest and of every name.

    Of the cards of one digest the one that compared the most rows counts, the newest of equals: a
    quick look at a few rows takes no measurement's place. By its name only a grader is found that
    has one of its own; what is called like its kind may be any grader of the kind.

    Args:
        records: Cards, newest first. One that cannot be read, as of a newer version, is left out.
    """

    def __init__(self, records: Iterable[CardRecord]) -> None:
        self._by_digest: dict[str, tuple[Card, str]] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._combined: dict[frozenset[str], str] = {}
        self._known: dict[object, Standing | None] = {}
        for record in records:
            try:
                card = Card.from_dict(record.body)
            except InputError:
                continue
            if not record.digest:
                continue
            for digest in filter(None, (record.digest, record.alias)):
                best = self._by_digest.get(digest)
                if best is None or best[0].coverage.compared < card.coverage.compared:
                    self._by_digest[digest] = card, record.id
            if card.is_named:
                self._by_name.setdefault((card.grader, card.kind), record.digest)
            if card.kind == "combined":
                self._combined.setdefault(frozenset(card.made_of), record.digest)

    def __bool__(self) -> bool:
        return bool(self._by_digest)

    def of_cell(self, cell: CellRecord) -> list[Standing]:
        """The standing of every grader behind a cell that has a card, the combination first."""
        if not self:
            return []
        parts = [self.of_part(part) for part in cell.subscores]
        return [*self._whole(cell.subscores), *(one for one in parts if one is not None)]

    def of_part(self, part: Part) -> Standing | None:
        """The standing of the grader that gave one score; None where there is no card."""
        metadata = part.get("metadata")
        name, digest = part.get("name"), digest_in(metadata)
        if not isinstance(metadata, dict) or not digest:
            return None
        key = (name, digest)
        if key not in self._known:
            declared = metadata.get("_parameters")
            declared = declared if isinstance(declared, dict) else {}
            kind = str(declared.get("type"))
            own = str(name) if _is_own(name, kind) else ""
            found = self.standing(own, kind, digest, declared)
            self._remember(key, None if found is None else replace(found, grader=str(name)))
        return self._known.get(key)

    def standing(self, name: str, kind: str, digest: str, declared: Part) -> Standing | None:
        """The standing of a grader."""
        if (found := self._by_digest.get(digest)) is not None:
            return Standing(name, digest, *found)
        if (other := self._by_name.get((name, kind))) is None:
            return None
        found = self._by_digest[other]
        changed = differences(found[0].made_of, declared, found[0].assay)
        return Standing(name, digest, *found, changed)

    def _whole(self, parts: Sequence[Part]) -> list[Standing]:
        """The standing of graders that were calibrated together."""
        digested = [(part, digest) for part in parts if (digest := digest_in(part.get("metadata")))]
        if len(digested) < 2 or not self._combined:
            return []
        key = tuple(
            (digest, _weight_of(part), part.get("gate") is True) for part, digest in digested
        )
        if key not in self._known:
            names = [str(part.get("name")) for part, _ in digested]
            whole = parts_digest(key)
            found = self._by_digest.get(whole)
            standing = None if found is None else Standing(found[0].grader, whole, *found)
            other = self._combined.get(frozenset(names)) if _are_own(digested) else None
            if found is None and other is not None:
                stale = self._by_digest[other]
                changed = tuple(
                    f"{name}: {change}"
                    for name, (part, _) in zip(names, digested, strict=True)
                    for change in self._change_of(stale[0], name, part)
                )
                told = changed or ("weights, or assay's own code",)
                standing = Standing(stale[0].grader, whole, *stale, told[:_MOST_NAMED])
            self._remember(key, standing)
        standing = self._known.get(key)
        return [] if standing is None else [standing]

    def _change_of(self, card: Card, name: str, part: Part) -> tuple[str, ...]:
        was = card.made_of.get(name)
        metadata = cast("Mapping[str, Json]", part["metadata"])
        now = metadata.get("_parameters")
        return _changes(was if isinstance(was, dict) else {}, now if isinstance(now, dict) else {})

    def _remember(self, key: object, standing: Standing | None) -> None:
        if len(self._known) >= 1_000:  # names and digests may come from anywhere
            self._known.clear()
        self._known[key] = standing


def stored_standing(
    database: Database, version: GraderVersion, digests: Iterable[str] = ()
) -> Standing | None:
    """The calibration card of a stored grader, as it stands beside scores of one of its versions.

    Args:
        database: Where the grader is; cards of its project alone are looked at.
        version: The version that gave the scores.
        digests: Of what gave them, as the scores say it; by default what would give them now.
            There may be several, for assay's own code may have changed between two scores.

    Returns:
        The standing, a stale one where it is stale for any of the scores; None where some of them
        have no card.
    """
    from assay.registry.definitions import definition_of

    wanted = list(dict.fromkeys(filter(None, digests))) or [definition_of(version).digest()]
    shelf = Shelf(Cards(database).about(version.project, version.key, wanted))
    if not shelf:
        return None
    declared = {**record_parameters(definition_of(version).to_dict()), "version": version.number}
    found = [shelf.standing(version.key, version.kind, digest, declared) for digest in wanted]
    stale = [one for one in found if one is not None and one.is_stale]
    return stale[0] if stale else None if None in found else found[0]


def differences(was: Part, now: Part, version: str = "") -> tuple[str, ...]:
    """What of a grader differs from what a card was made with, in words; never empty."""
    changed = _changes(was, now)
    if changed:
        return changed
    if version and version != __version__:
        return (f"assay {version} → {__version__}",)
    return ("its files, or assay's own code",)


def _changes(was: Part, now: Part) -> tuple[str, ...]:
    names = sorted((set(was) | set(now)) - _NOT_DECLARED)
    changed = [
        f"{one_line(name, _MAX_VALUE)} {_change(was.get(name), now.get(name))}"
        for name in names
        if was.get(name) != now.get(name)
    ]
    if not changed and was.get("version") != now.get("version") and "version" in now:
        changed = [f"version {_change(was.get('version'), now.get('version'))}"]
    more = len(changed) - _MOST_NAMED
    return tuple([*changed[:_MOST_NAMED], f"{more} more"] if more > 0 else changed)


def _change(was: Json, now: Json) -> str:
    if isinstance(was, list | dict) or isinstance(now, list | dict):
        return "changed"
    return f"{_shown(was)} → {_shown(now)}"


def _shown(value: Json) -> str:
    return "nothing" if value is None else one_line(str(value), _MAX_VALUE)


def _is_own(name: Json, kind: str) -> bool:
    """Whether a score is not just called like the kind of its grader."""
    return name not in (kind, kind.rpartition(":")[2])


def _are_own(digested: Sequence[tuple[Part, str]]) -> bool:
    """Whether every part of a combination has a name of its own."""
    for part, _ in digested:
        metadata = cast("Mapping[str, Json]", part["metadata"])
        declared = metadata.get("_parameters")
        kind = declared.get("type") if isinstance(declared, dict) else None
        if not _is_own(part.get("name"), str(kind)):
            return False
    return True


def _weight_of(part: Part) -> float:
    weight = part.get("weight", 1.0)
    return float(weight) if isinstance(weight, int | float) else 1.0
