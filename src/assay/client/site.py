"""``client.projects`` and ``client.keys``: what is around graders, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.client.asking import M_co, Part, ask, ask_all, by_hand
from assay.service import site
from assay.store.pages import Page

if TYPE_CHECKING:
    from assay.service.site import MadeKey
    from assay.store.changes import ChangeRecord
    from assay.store.projects import KeyRole


class ProjectsPart(Part[M_co]):
    """Names under which graders, datasets and scores stand."""

    called = "projects"

    list = ask_all(site.list_projects)
    create = ask(site.create_project)
    limit = ask(site.limit_project)

    @by_hand
    async def changes(
        self,
        project: str = "",
        *,
        what: str | None = None,
        by: str | None = None,
        limit: int = 50,
        offset: int = 0,
        after: str | None = None,
    ) -> Page[ChangeRecord]:
        """A part of the log of changes, newest first: for admins.

        Args:
            project: Of this project; of all by default.
            what: Only this operation.
            by: Only what this one changed.
            limit: Most items of the page, up to 200.
            offset: How many are left out before it.
            after: Where the list goes on: `next` of the page before.
        """
        asked = {"what": what, "by": by, "limit": limit, "offset": offset, "after": after}
        if not project:
            return await self.ask(site.list_all_changes, asked)
        return await self.ask(site.list_changes, {**asked, "project": project})


class Keys(Part[M_co]):
    """Keys of a server, for its admins, and whose key this client has."""

    called = "keys"

    mine = ask(site.show_caller)
    list = ask_all(site.list_keys)
    revoke = ask(site.revoke_key)

    @by_hand
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
        return await self._scope.call(
            site.create_key, name, role, self._scope.project(project), days
        )
