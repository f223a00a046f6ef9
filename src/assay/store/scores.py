"""`Scores`: outcomes of items, appended by jobs, people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import record_evidence
from assay.scoring.results import assurance_from
from assay.store.checks import encode_json, is_sprawling, plain, read_json, valid_text
from assay.store.database import Database, Record, Row, Scalar, moment
from assay.store.pages import FIRST, OLDEST, Page, Stretch
from assay.store.projects import Projects
from assay.store.table import Table, Where

_MAX_REASON = 4_096
_MAX_FLAGS = 64
_MAX_EVIDENCE = 262_144

ScoreSource: TypeAlias = Literal["grader", "user", "sdk"]


@frozen(kw_only=True)
class ScoreRecord(Record):
    """The outcome of one item; it never changes.

    Attributes:
        seq: Place in the order in which scores were stored; 0 before.
        project: Key of the project.
        item: Id of what was graded.
        job: Id of the job that graded it, or empty.
        number: Number of the row that the job graded; null where there is no job.
        source: Where it is from: a stored grader, a person, or a program.
        graded: The outcome; ``graded.grader`` is ``key@version``.
        created_at: ISO 8601, UTC; the time it was stored.
    """

    seq: int = 0
    project: str = ""
    item: str
    job: str = ""
    number: int | None = None
    source: ScoreSource = "grader"
    graded: Graded
    created_at: str = ""


class ScoreRows(Table[ScoreRecord]):
    """The table of scores."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, "score", ScoreRecord)
        self.columns = (
            "seq, project, item, job, number, source, grader_key, version, digest, status, score, "
            "evidence, created_at"
        )
        self._wide = ["evidence"]

    def read(self, row: Row) -> ScoreRecord:
        """The record behind the values of `columns`."""
        seq, project, item, job, number, source, key, *more = row
        version, digest, status, score, kept, created = more
        evidence: dict[str, Any] = read_json(kept)
        graded = Graded(
            id=item,
            status=status,
            score=score,
            outcome=evidence["outcome"],
            reason=evidence["reason"],
            error=evidence["error"],
            flags=tuple(evidence["flags"]),
            details=evidence["details"],
            grader=key if version is None else f"{key}@{version}",
            digest=digest,
            assurance=assurance_from(evidence.get("assurance")),
        )
        return ScoreRecord(
            seq=seq,
            project=project,
            item=item,
            job=job or "",
            number=number,
            source=source,
            graded=graded,
            created_at=created,
        )


def score_row(
    record: ScoreRecord,
    project: str,
    now: str,
    *,
    job: str | None = None,
    number: int | None = None,
) -> dict[str, Scalar]:
    """How a score is stored, by column."""
    graded = record.graded
    key, version = _split(graded.grader)
    return {
        "project": project,
        "item": valid_text(record.item, "item", most=512),
        "job": job,
        "number": number,
        "source": record.source,
        "grader_key": valid_text(key, "grader", most=200),
        "version": version,
        "digest": valid_text(graded.digest, "digest", most=200),
        "status": graded.status,
        "score": graded.score,
        "evidence": _evidence(graded),
        "created_at": now,
    }


class Scores:
    """The scores of a database; never changed once they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = ScoreRows(database)

    def add(self, project: str, records: Sequence[ScoreRecord]) -> int:
        """Append scores, all of them or none.

        Args:
            project: Key of the project; what the records say of it, of a job, of their place and
                of their time is not looked at.
            records: The scores. A reason of more than 4,096 characters is shortened, and details of
                more than 256 KiB are.

        Returns:
            How many there were.
        """
        now = self._database.now()
        rows = [score_row(record, project, now) for record in records]
        with self._database.writing():
            Projects(self._database).get(project)
            self._table.insert_many(rows)
        return len(rows)

    def delete(self, project: str, before: datetime, grader: str | None = None) -> int:
        """Remove old scores of a project, or of a grader there (``key``, or ``key@version``).

        Those of a job go with the job.

        Returns:
            How many there were.
        """
        Projects(self._database).get(project)
        old: Where = {"project": project, "job IS NULL": (), "created_at <": moment(before)}
        with self._database.writing():
            return self._table.delete({**old, **_of_grader(grader)})

    def page(
        self,
        project: str,
        grader: str | None = None,
        item: str | None = None,
        wanted: Stretch = FIRST,
    ) -> Page[ScoreRecord]:
        """Scores of a project, oldest first; of ``key`` or ``key@version`` of a grader.

        They are not counted: there may be as many as requests ever were.
        """
        Projects(self._database).get(project)
        where: Where = {"project": project, "item": item, **_of_grader(grader)}
        return self._table.page(where, OLDEST, wanted, counted=False)


def error_of(evidence: str) -> str:
    """Why an item could not be graded, of what is stored of it."""
    return str(read_json(evidence).get("error") or "")


def _evidence(graded: Graded) -> str:
    """What else is known of an outcome, as JSON."""
    evidence: dict[str, object] = {
        "outcome": graded.outcome[:_MAX_REASON],
        "reason": _shortened(graded.reason),
        "error": _shortened(graded.error),
        "flags": [_shortened(flag) for flag in graded.flags[:_MAX_FLAGS]],
        "details": graded.details,
        "assurance": graded.assurance,
    }
    try:
        text = encode_json(evidence)
        is_fine = len(text) <= _MAX_EVIDENCE and not is_sprawling(text, graded.details)
    except (TypeError, ValueError, RecursionError):  # not JSON: a grader may return anything
        text, is_fine = "", False
    if not is_fine:
        evidence["details"] = record_evidence(graded.details)
        text = encode_json(evidence)
    return text


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_REASON else f"{text[: _MAX_REASON - 1]}…"


def _of_grader(grader: str | None) -> Where:
    """What the scores of a grader are like: of ``key``, or of ``key@version``."""
    if grader is None:
        return {}
    key, version = _split(grader)
    return {"grader_key": key} if version is None else {"grader_key": key, "version": version}


def _split(grader: str) -> tuple[str, int | None]:
    """A grader's key, and the version behind its last ``@`` if there is one."""
    key, at, number = grader.rpartition("@")
    if at and number.isascii() and number.isdigit() and len(number) < 10 and number[0] != "0":
        return plain(key), int(number)
    return plain(grader), None
