"""`Replies`: what was answered to a request, for when the same request comes again."""

from __future__ import annotations

from datetime import timedelta

from assay.store.checks import plain, valid_text
from assay.store.database import Database, moment

_KEPT = timedelta(hours=24)


class Replies:
    """Replies of the last 24 hours, by the key that the client gave its request."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, project: str, key: str) -> tuple[str, int, bytes] | None:
        """The reply to a request, if there was one: digest of the request, status and body."""
        rows = self._database.rows(
            "SELECT request, status, body FROM reply "
            "WHERE project = ? AND key = ? AND created_at > ?",
            *(plain(project), plain(key), moment(self._database.clock() - _KEPT)),
        )
        return rows[0] if rows else None

    def put(self, project: str, key: str, request: str, status: int, body: str | bytes) -> bool:
        """Keep a reply, and forget those that are older than 24 hours.

        Returns:
            Whether it is kept; otherwise there is one for that key already, which stays.
        """
        key = valid_text(key, "Idempotency-Key", most=255)
        body = body.encode() if isinstance(body, str) else body
        now = self._database.clock()
        with self._database.writing():
            self._database.change("DELETE FROM reply WHERE created_at <= ?", moment(now - _KEPT))
            added = self._database.change(
                "INSERT INTO reply (project, key, request, status, body, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (project, key) DO NOTHING",
                *(plain(project), key, plain(request), status, body, moment(now)),
            )
        return bool(added)

    def probe(self) -> None:
        """Write something and forget it by the next time: whether anything can be kept now."""
        with self._database.writing():
            self._database.change("DELETE FROM reply WHERE project = '*' AND key = 'probe'")
            self.put("*", "probe", "", 200, "")
