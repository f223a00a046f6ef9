"""`Changes`: who changed what, when and from where; on a server, on the command line, in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from assay.scoring.json_safe import Json
from assay.store.checks import plain, valid_limit
from assay.store.database import Database, Record, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord(Record):
    """A change that was made.

    Attributes:
        seq: Its number; later ones have higher ones.
        time: ISO 8601, UTC.
        operation: What was done, such as ``delete_grader``.
        project: Where; ``*`` for what is in no project.
        what: To what: keys and ids, never what stands in them.
        by: Name of the API key, or of the user of the machine.
        key: Id of the API key; ``local`` without one.
        role: The role that it was done with.
        address: Where the request came from; empty where no server was asked.
    """

    seq: int = 0
    time: str
    operation: str
    project: str
    what: dict[str, Json]
    by: str
    key: str
    role: str
    address: str = ""


class Changes:
    """The changes of a database: appended, never rewritten."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, change: ChangeRecord) -> None:
        """Note a change, inside the transaction that makes it."""
        self._database.insert(
            "INSERT INTO change (time, operation, project, what, who, key, role, address) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(change.time, change.operation, plain(change.project)),
            *(json.dumps(change.what), plain(change.by), change.key, change.role, change.address),
        )

    def page(
        self,
        *,
        project: str = "",
        operation: str = "",
        by: str = "",
        limit: int = 50,
        before: int = 0,
    ) -> list[ChangeRecord]:
        """Changes, newest first.

        Args:
            project: Only those of this project; empty for all of them.
            operation: Only this operation; empty for all of them.
            by: Only what this one changed; empty for everybody.
            limit: How many, at most.
            before: Number of the change to go on below; 0 for the newest.
        """
        rows = self._database.rows(
            "SELECT seq, time, operation, project, what, who, key, role, address FROM change "
            "WHERE (project = ? OR ? = '') AND (operation = ? OR ? = '') AND (who = ? OR ? = '') "
            "AND (seq < ? OR ? = 0) ORDER BY seq DESC LIMIT ?",
            *(value for name in (project, operation, by) for value in [plain(name)] * 2),
            *(before, before, valid_limit(limit)),
        )
        return [_record(row) for row in rows]


def _record(row: Row) -> ChangeRecord:
    seq, time, operation, project, what, *rest = row
    return ChangeRecord.from_row(
        (seq, time, operation, project, json.loads(cast("str", what)), *rest)
    )
