"""Operations on what is around graders: projects, changes, API keys, and who is asking."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated

from assay.errors import NotFoundError
from assay.registry.policy import ForbiddenError
from assay.service.operation import (
    EVERY_PROJECT,
    KEY_PATTERN,
    After,
    Desk,
    Identity,
    InProject,
    Limit,
    Name,
    Offset,
    Section,
    Spec,
)
from assay.store.changes import ChangeRecord, Changes
from assay.store.pages import Page, Stretch, page_of
from assay.store.projects import ApiKeys, KeyRecord, KeyRole, ProjectRecord, Projects

_PATTERN = r"^(\*|[a-z0-9][a-z0-9._-]{0,63})$"
_of_none = Section("", tag="projects")
of_projects = Section("/projects", tag="projects")
of_keys = Section("/keys", tag="keys")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made.

    Attributes:
        token: What its owner sends; it exists nowhere else.
        prefix: The beginning of the token, by which people tell keys apart.
        hashed: What is stored of it.
    """

    token: str
    prefix: str
    hashed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKey(KeyRecord):
    """An API key that was just made; its token is shown this once."""

    token: str


def new_key() -> NewKey:
    """Make a key: ``assay_<8 letters and digits>_<43 letters, digits, - and _>``."""
    prefix = f"assay_{secrets.token_hex(4)}"
    token = f"{prefix}_{secrets.token_urlsafe(32)}"
    return NewKey(token, prefix, hash_secret(token))


def hash_secret(secret: str) -> str:
    """SHA-256 in hex: enough for 256 random bits, which nobody can guess through."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@_of_none("GET", "/me", role="member")
def show_caller(desk: Desk) -> Identity:
    """Who is asking, and what they may do."""
    return desk.who


@of_projects("GET", role="member")
def list_projects(
    desk: Desk, *, limit: Limit = 50, offset: Offset = 0, after: After = None
) -> Page[ProjectRecord]:
    """The projects that the caller may see, by key."""
    own, found = desk.who.project, Projects(desk.database).all()
    seen = [project for project in found if own in (EVERY_PROJECT, project.key)]
    return page_of(seen, Stretch(limit, offset, after))


def _made(_: Desk, project: ProjectRecord) -> dict[str, str]:
    return {"Location": f"/api/v1/projects/{project.key}"}


@of_projects("POST", role="admin", status=201, repeatable=True, headers=_made)
def create_project(
    desk: Desk, key: Annotated[str, Spec(pattern=KEY_PATTERN, example="maths")], name: Name = ""
) -> ProjectRecord:
    """Make a project."""
    return Projects(desk.database).create(key, name)


@of_projects("GET", "/{project}")
def show_project(desk: Desk, project: InProject = None) -> ProjectRecord:
    """One project."""
    return Projects(desk.database).get(desk.project)


_Most = Annotated[int | None, Spec("Without it, no limit.", ge=1, le=1_000_000, example=60)]


@of_projects("PUT", "/{project}/limits", role="admin")
def limit_project(
    desk: Desk,
    project: InProject = None,
    *,
    requests_per_minute: _Most = None,
    gradings_at_once: _Most = None,
) -> ProjectRecord:
    """Limit what a project may ask of each server: both limits are set. For admins of all projects.

    Requests beyond `requests_per_minute` get 429. Of gradings of one sort (comparisons, functions,
    graders that wait for others) and of jobs, those beyond `gradings_at_once` wait.
    """
    if desk.who.project != EVERY_PROJECT:
        raise ForbiddenError("this needs the role admin for all projects")
    return Projects(desk.database).limit(
        desk.project, requests_per_minute=requests_per_minute, gradings_at_once=gradings_at_once
    )


_What = Annotated[str | None, Spec("Only this operation.", max_length=100, example="create_key")]
_By = Annotated[str | None, Spec("Only what this one changed.", max_length=200)]


@of_projects("GET", "/{project}/changes", role="admin")
def list_changes(
    desk: Desk,
    *,
    what: _What = None,
    by: _By = None,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[ChangeRecord]:
    """Who changed what in a project, newest first."""
    own = Projects(desk.database).get(desk.project).key
    wanted = Stretch(limit, offset, after)
    return Changes(desk.database).page(wanted, project=own, operation=what, by=by)


@_of_none("GET", "/changes", role="admin")
def list_all_changes(
    desk: Desk,
    *,
    what: _What = None,
    by: _By = None,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
) -> Page[ChangeRecord]:
    """Who changed what in any project, newest first."""
    return Changes(desk.database).page(Stretch(limit, offset, after), operation=what, by=by)


@of_keys("GET", role="member")
def list_keys(
    desk: Desk, *, limit: Limit = 50, offset: Offset = 0, after: After = None
) -> Page[KeyRecord]:
    """The keys that the caller manages, revoked ones too. A project's admins manage its keys."""
    own = _admin(desk).project
    managed = None if own == EVERY_PROJECT else own
    return ApiKeys(desk.database).page(Stretch(limit, offset, after), project=managed)


@of_keys("POST", role="member", status=201, faults=(404,))
def create_key(
    desk: Desk,
    name: Annotated[str, Spec.text(200, min_length=1, example="ci")],
    role: Annotated[KeyRole, Spec(example="editor")],
    project: Annotated[
        str, Spec("The project it is for; `*` for all.", pattern=_PATTERN, example="default")
    ],
    days: Annotated[
        int | None, Spec("Good for so long; for ever by default.", ge=1, le=3_650)
    ] = None,
) -> MadeKey:
    """Make a key. Its token is in this reply and nowhere else; the same again makes another."""
    if not _admin(desk).may("admin", project):
        raise ForbiddenError(f"this needs the role admin for project {project!r}")
    made = new_key()
    expires = None if days is None else desk.database.clock() + timedelta(days=days)
    stored = ApiKeys(desk.database).create(
        name, role, project, made.hashed, made.prefix, expires=expires
    )
    return MadeKey(**{f.name: getattr(stored, f.name) for f in fields(stored)}, token=made.token)


@of_keys("DELETE", "/{id}", role="member")
def revoke_key(
    desk: Desk,
    key: Annotated[
        str,
        Spec("Id of the key.", alias="id", pattern=r"^[A-Za-z0-9_-]{1,64}$", example="1a2b3c4d"),
    ],
) -> None:
    """Revoke a key, at once."""
    who = _admin(desk)
    if not who.may("admin", ApiKeys(desk.database).get(key).project):
        raise NotFoundError(f"there is no API key {key!r:.80}")  # as if it were not there
    ApiKeys(desk.database).revoke(key)


def _admin(desk: Desk) -> Identity:
    if desk.who.role != "admin":
        raise ForbiddenError("this needs the role admin")
    return desk.who
