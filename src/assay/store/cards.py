"""`Cards`: what calibrations found of graders, and what graders said while they were calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from assay.errors import NotFoundError
from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_evidence
from assay.store.checks import json_text, plain, read_json, valid_text
from assay.store.database import Database, Record
from assay.store.pages import FIRST, NEWEST, Page, Stretch
from assay.store.table import Table, Where

_MAX_BODY = 4 << 20
_MAX_OUTCOME = 1 << 20
_MAX_REASON = 4_096
_MOST_CARDS = 1_000


@frozen(kw_only=True)
class CardRecord(Record):
    """What a calibration found.

    Attributes:
        grader: Name or key of the grader.
        digest: What gave its scores: code, options, judge model, template.
        alias: The digest that the same grader has outside of the registry, or empty.
        labels: Digest of the labels.
        body: The measures; see `assay.eval.calibration.card.Card`.
        id: Set by the store.
        project: Likewise.
        created_at: ISO 8601, UTC; likewise.
    """

    grader: str
    digest: str
    alias: str = ""
    labels: str = ""
    body: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = ""
    project: str = ""
    created_at: str = ""


class Cards:
    """The calibration cards of a database, and the judgements that they rest on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "card", CardRecord)

    def add(self, project: str, record: CardRecord, *, work: str = "") -> CardRecord:
        """Store a card; the judgements of its work become its evidence."""
        from secrets import token_hex

        from assay.store.projects import Projects

        said = {"grader": record.grader, "digest": record.digest}
        said |= {"alias": record.alias, "labels": record.labels}
        texts = {name: valid_text(text, name, most=200) for name, text in said.items()}
        body = json_text(record.body, "the card", most=_MAX_BODY)
        with self._database.writing():
            Projects(self._database).get(project)
            now = self._database.now()
            identity = f"{now[:10].replace('-', '')}-{token_hex(4)}"
            own = {"id": identity, "project": project, "body": body, "created_at": now}
            self._table.insert({**texts, **own})
            self._database.change(
                "UPDATE judgement SET card = ? WHERE project = ? AND work = ? AND card = ''",
                *(identity, project, work),
            )
            return self.get(project, identity)

    def get(self, project: str, ref: str) -> CardRecord:
        """One card."""
        for named in ({"id": ref}, {"grader": ref}, *([{}] if ref == "latest" else [])):
            if found := self._table.find({"project": project, **named}, order="seq DESC"):
                return found
        raise NotFoundError(
            f"there is no calibration card {ref!r:.80} in the project {project!r}",
            hint="`assay calibrate cards` shows them all",
        )

    def page(
        self, project: str | None = None, grader: str | None = None, wanted: Stretch = FIRST
    ) -> Page[CardRecord]:
        """Cards, newest first: of a project, of a grader; of all by default."""
        where: Where = {"project": project, "grader": grader}
        return self._table.page(where, NEWEST, wanted)

    def newest(self, project: str | None = None) -> list[CardRecord]:
        """The newest cards, newest first: as many as anybody compares with."""
        return self._table.select({"project": project}, order="seq DESC", limit=_MOST_CARDS)

    def about(self, project: str, grader: str, digests: Sequence[str]) -> list[CardRecord]:
        """The cards that may say something of a grader, newest first."""
        marks = ", ".join("?" * len(digests))
        alike = f" OR digest IN ({marks}) OR alias IN ({marks})" if digests else ""
        alike_too: Where = {
            "project": project,
            f"(grader = ?{alike})": (grader, *digests, *digests),
        }
        return self._table.select(alike_too, order="seq DESC", limit=_MOST_CARDS)

    def keep(self, project: str, work: str, judged: Sequence[tuple[str, Graded]]) -> None:
        """Keep judgements, all of them or none, so that a calibration can be gone on with."""
        now = self._database.now()
        rows = [(project, work, plain(unit), _outcome(graded), now) for unit, graded in judged]
        with self._database.writing():
            self._database.insert_many(
                "judgement", ("project", "work", "unit", "outcome", "created_at"), rows
            )

    def unfinished(self, project: str, work: str) -> Iterator[tuple[str, Graded]]:
        """The judgements of a work that no card rests on yet; of one asking the last is the one."""
        return self._judgements(project, work, "")

    def evidence(self, card: CardRecord, work: str) -> Iterator[tuple[str, Graded]]:
        """The judgements that a card rests on."""
        return self._judgements(card.project, work, card.id)

    def discard(self, project: str, work: str) -> None:
        """Forget the judgements of a work that no card rests on."""
        with self._database.writing():
            self._database.change(
                "DELETE FROM judgement WHERE project = ? AND work = ? AND card = ''",
                *(project, work),
            )

    def _judgements(self, project: str, work: str, card: str) -> Iterator[tuple[str, Graded]]:
        rows = self._database.rows(
            "SELECT unit, outcome FROM judgement WHERE project = ? AND work = ? AND card = ? "
            "ORDER BY seq",
            *(project, work, card),
        )
        for unit, outcome in rows:
            yield unit, Graded.from_dict(read_json(outcome))


def _outcome(graded: Graded) -> str:
    written = graded.to_dict()
    written["reason"] = graded.reason[:_MAX_REASON]
    written["error"] = graded.error[:_MAX_REASON]
    written["details"] = record_evidence(graded.details)
    return json_text(written, "a judgement", most=_MAX_OUTCOME)
