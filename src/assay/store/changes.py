"""`Changes`: who changed what, when and from where; on a server, on the command line, in Python."""

from __future__ import annotations

from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.database import Database, Record
from assay.store.pages import FIRST, NEWEST, Page, Stretch
from assay.store.table import Table


@frozen(kw_only=True)
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
        self._table = Table(database, "change", ChangeRecord, by="who")

    def add(self, change: ChangeRecord) -> None:
        """Note a change, inside the transaction that makes it."""
        self._table.insert(self._table.written(change))

    def page(
        self,
        wanted: Stretch = FIRST,
        *,
        project: str | None = None,
        operation: str | None = None,
        by: str | None = None,
    ) -> Page[ChangeRecord]:
        """Changes, newest first; None stands for all."""
        where = {"project": project, "operation": operation, "who": by}
        return self._table.page(where, NEWEST, wanted)
