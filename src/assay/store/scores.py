"""`Scores`: outcomes of items, appended by jobs, people and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_evidence
from assay.scoring.results import Status, assurance_from
from assay.store.checks import (
    encode_json,
    is_sprawling,
    plain,
    valid_limit,
    valid_number,
    valid_text,
)
from assay.store.database import Database, Record, Row, Scalar, moment
from assay.store.projects import Projects

_MAX_REASON = 4_096
_MAX_FLAGS = 64
_MAX_EVIDENCE = 262_144

INSERT_SCORES = (
    "INSERT INTO score (project, item, job, number, source, grader_key, version, digest, status, "
    "score, evidence, created_at)"
)
SELECT_SCORES = (
    "SELECT seq, project, item, job, source, grader_key, version, digest, status, score, evidence, "
    "created_at FROM score"
)
_COUNT = "SELECT count(*) FROM score"
_DELETE = "DELETE FROM score"

ScoreSource: TypeAlias = Literal["grader", "user", "sdk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord(Record):
    """The outcome of one item; it never changes.

    Attributes:
        seq: Place in the order in which scores were stored; 0 before.
        project: Key of the project.
        item: Id of what was graded.
        job: Id of the job that graded it, or empty.
        source: Where it is from: a stored grader, a person, or a program.
        graded: The outcome; ``graded.grader`` is ``key@version``.
        created_at: ISO 8601, UTC; the time it was stored.
    """

    seq: int = 0
    project: str = ""
    item: str
    job: str = ""
    source: ScoreSource = "grader"
    graded: Graded
    created_at: str = ""


class Scores:
    """The scores of a database; never changed once they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, project: str, records: Sequence[ScoreRecord]) -> int:
        """Append scores, all of them or none.

        Args:
            project: Key of the project; what the records say of it, of a job, of their place and
                of their time is not looked at.
            records: The scores. A reason of more than 4,096 characters is shortened, and details of
                more than 256 KiB are.

        Returns:
            How many there were.

        Raises:
            InputError: For an item's id of more than 512 characters.
        """
        now = self._database.now()
        rows = [score_row(record, project, None, None, now) for record in records]
        with self._database.writing():
            Projects(self._database).get(project)
            self._database.insert_many(INSERT_SCORES, rows)
        return len(rows)

    def older(self, project: str, before: datetime, grader: str | None = None) -> int:
        """How many scores of no job are older; see `delete`."""
        where, values = self._older(project, before, grader)
        return int(cast("int", self._database.rows(f"{_COUNT}{where}", *values)[0][0]))

    def delete(self, project: str, before: datetime, grader: str | None = None) -> int:
        """Remove old scores; those of a job go with the job.

        Args:
            project: Key of the project.
            before: Those that were stored before.
            grader: Only those of this grader: ``key``, or ``key@version``.

        Returns:
            How many there were.
        """
        where, values = self._older(project, before, grader)
        with self._database.writing():
            return self._database.change(f"{_DELETE}{where}", *values)

    def _older(
        self, project: str, before: datetime, grader: str | None
    ) -> tuple[str, list[Scalar]]:
        Projects(self._database).get(project)
        whose, values = _of_grader(grader)
        conditions = ["project = ?", "job IS NULL", "created_at < ?", *whose]
        return f" WHERE {' AND '.join(conditions)}", [project, moment(before), *values]

    def page(
        self,
        project: str,
        grader: str | None = None,
        item: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[ScoreRecord]:
        """Scores of a project, oldest first.

        Args:
            project: Key of the project.
            grader: Only those of this grader: ``key``, or ``key@version``.
            item: Only those of the item with this id.
            after: ``seq`` of the last one seen.
            limit: Most to return, up to 1,000.
        """
        whose, wanted = _of_grader(grader)
        conditions = ["project = ? AND seq > ?", *whose]
        values: list[Scalar] = [project, valid_number(after, "after"), *wanted]
        if item is not None:
            conditions.append("item = ?")
            values.append(plain(item))
        Projects(self._database).get(project)
        rows = self._database.rows(
            f"{SELECT_SCORES} WHERE {' AND '.join(conditions)} ORDER BY seq LIMIT ?",
            *(*values, valid_limit(limit)),
        )
        return [read_score(row) for row in rows]


def score_row(
    record: ScoreRecord, project: str, job: str | None, number: int | None, now: str
) -> tuple[Scalar, ...]:
    """The values of `INSERT_SCORES`.

    Raises:
        InputError: For an item's id of more than 512 characters.
    """
    graded = record.graded
    key, version = _split(graded.grader)
    return (
        project,
        valid_text(record.item, "item", most=512),
        job,
        number,
        record.source,
        valid_text(key, "grader", most=200),
        version,
        valid_text(graded.digest, "digest", most=200),
        graded.status,
        graded.score,
        _evidence(graded),
        now,
    )


def read_score(row: Row) -> ScoreRecord:
    """The record behind the columns of `SELECT_SCORES`."""
    seq, project, item, job, source, key, version, digest, status, score, evidence, created_at = row
    kept = cast("dict[str, Json]", json.loads(cast("str", evidence)))
    name = cast("str", key) if version is None else f"{key}@{version}"
    graded = Graded(
        id=cast("str", item),
        status=cast("Status", status),
        score=cast("float | None", score),
        outcome=cast("str", kept["outcome"]),
        reason=cast("str", kept["reason"]),
        error=cast("str", kept["error"]),
        flags=tuple(cast("list[str]", kept["flags"])),
        details=cast("dict[str, Json]", kept["details"]),
        grader=name,
        digest=cast("str", digest),
        assurance=assurance_from(kept.get("assurance")),
    )
    return ScoreRecord(
        seq=cast("int", seq),
        project=cast("str", project),
        item=graded.id,
        job=cast("str | None", job) or "",
        source=cast("ScoreSource", source),
        graded=graded,
        created_at=cast("str", created_at),
    )


def error_of(evidence: str) -> str:
    """Why an item could not be graded, of what is stored of it."""
    return str(cast("dict[str, Json]", json.loads(evidence)).get("error") or "")


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


def _of_grader(grader: str | None) -> tuple[list[str], list[Scalar]]:
    """Conditions for the scores of a grader, ``key`` or ``key@version``, and their values."""
    if grader is None:
        return [], []
    key, version = _split(grader)
    if version is None:
        return ["grader_key = ?"], [key]
    return ["grader_key = ?", "version = ?"], [key, version]


def _split(grader: str) -> tuple[str, int | None]:
    """A grader's key, and the version behind its last ``@`` if there is one."""
    key, at, number = grader.rpartition("@")
    if at and number.isascii() and number.isdigit() and len(number) < 10 and number[0] != "0":
        return plain(key), int(number)
    return plain(grader), None
