"""``client.projects`` and ``client.keys``: what is around graders, and who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.client.scope import Scope, checked_calls, every
from assay.service import site
from assay.service.pages import Page

if TYPE_CHECKING:
    from assay.service.operation import Identity
    from assay.service.site import MadeKey
    from assay.store import ProjectRecord
    from assay.store.changes import ChangeRecord
    from assay.store.projects import KeyRecord, KeyRole


@checked_calls("projects")
class AsyncProjects:
    """Names under which graders, datasets and scores stand."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self) -> Sequence[ProjectRecord]:
        """All projects, by key."""
        backend = self._scope.backend
        return await every(
            lambda cursor: backend.call(site.list_projects, "", limit=200, cursor=cursor)
        )

    async def limit(
        self,
        key: str,
        *,
        requests_per_minute: int | None = None,
        gradings_at_once: int | None = None,
    ) -> ProjectRecord:
        """Say how much of each server a project may have: both limits are set.

        Args:
            key: The project.
            requests_per_minute: None for as many as come.
            gradings_at_once: Of one sort, and jobs; None for its fair share.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.backend.call(
            site.limit_project, key, requests_per_minute, gradings_at_once
        )

    async def create(self, key: str, *, name: str = "") -> ProjectRecord:
        """Make a project.

        Raises:
            ConflictError: There is one of that key.
        """
        return await self._scope.backend.call(site.create_project, "", key, name)

    async def get(self, key: str) -> ProjectRecord:
        """A project.

        Raises:
            NotFoundError: There is none.
        """
        return await self._scope.backend.call(site.show_project, key)

    async def changes(
        self,
        key: str = "",
        *,
        what: str | None = None,
        by: str | None = None,
        limit: int = 100,
        cursor: str = "",
    ) -> Page[ChangeRecord]:
        """A part of the log of changes, newest first: for admins.

        Args:
            key: Of this project; of all by default.
            what: Only this operation.
            by: Only what this one changed.
            limit: Most of them, up to 200.
            cursor: Where it goes on: `next_cursor` of the part before.
        """
        asked = site.list_changes if key else site.list_all_changes
        return await self._scope.backend.call(
            asked, key, what=what, by=by, limit=limit, cursor=cursor or None
        )


@checked_calls("keys")
class AsyncKeys:
    """Keys of a server, for its admins, and whose key this client has."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def mine(self) -> Identity:
        """Who is asking, and what they may do."""
        return await self._scope.backend.call(site.show_caller, "")

    async def list(self) -> Sequence[KeyRecord]:
        """The keys that the caller manages, revoked ones too."""
        backend = self._scope.backend
        return await every(
            lambda cursor: backend.call(site.list_keys, "", limit=200, cursor=cursor)
        )

    async def create(
        self, name: str, role: KeyRole, *, project: str | None = None, days: int | None = None
    ) -> MadeKey:
        """Make a key. Its token is told this once.

        Args:
            name: Whose it is.
            role: What they may do.
            project: Where: a project's key, or ``*``; the client's by default.
            days: Good for so long; for ever by default.

        Raises:
            NotFoundError: There is no such project.
        """
        return await self._scope.backend.call(
            site.create_key, "", name, role, self._scope.project(project), days
        )

    async def revoke(self, key: str) -> None:
        """Revoke a key, by its id, at once.

        Raises:
            NotFoundError: There is none.
        """
        await self._scope.backend.call(site.revoke_key, "", key)
