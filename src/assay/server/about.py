"""What a server is: version, database, sandboxes and limits, for those who use and mend it."""

from __future__ import annotations

import asyncio
import os
import platform

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from assay.server.context import caller, context
from assay.server.door import Door, needs
from assay.server.problems import reply
from assay.service.operation import EVERY_PROJECT
from assay.version import __version__

router = APIRouter(route_class=Door, tags=["server"])


class CheckShown(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(extra="forbid")

    name: str
    ok: bool
    detail: str
    fix: str


class LimitShown(BaseModel):
    """One limit."""

    model_config = ConfigDict(extra="forbid")

    name: str
    value: str
    about: str


class ServerShown(BaseModel):
    """What a server is."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "version": "0.1.0",
                    "python": "3.11.7",
                    "platform": "Linux-6.1",
                    "is_local": True,
                    "database": "SQLite",
                    "location": "/home/ada/.assay",
                    "commands": "bwrap",
                    "functions": "bwrap",
                    "checks": [{"name": "bubblewrap", "ok": True, "detail": "0.8.0", "fix": ""}],
                    "allowed": ["custom code: no"],
                    "limits": [{"name": "rows of a dataset", "value": "1,000,000", "about": ""}],
                }
            ]
        },
    )

    version: str
    python: str
    platform: str
    is_local: bool
    database: str
    location: str
    commands: str
    functions: str
    checks: list[CheckShown]
    allowed: list[str]
    limits: list[LimitShown]


@router.get("/api/v1/server", response_model=ServerShown, openapi_extra=needs("member"))
async def show_server(request: Request) -> Response:
    """Version, database, sandboxes and limits; where the store is, for admins of all projects."""
    from assay.sandbox import probe
    from assay.sandbox.functions.tiers import function_tiers

    settings, who = context(request).settings, caller(request)
    is_postgres = settings.location.startswith(("postgres://", "postgresql://"))
    sees_all = who.role == "admin" and who.project == EVERY_PROJECT
    commands, functions = await asyncio.gather(
        asyncio.to_thread(probe), asyncio.to_thread(function_tiers)
    )
    checks = [("commands: ", one) for one in commands.checks]
    checks += [("functions: ", one) for one in functions.checks]
    allowed = settings.permissions
    return reply(
        {
            "version": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "is_local": settings.is_local,
            "database": "PostgreSQL" if is_postgres else "SQLite",
            # An address of PostgreSQL holds a password.
            "location": os.path.abspath(settings.location)  # noqa: PTH100 - text, not looked at
            if sees_all and not is_postgres
            else "",
            "commands": commands.tier or "",
            "functions": functions.tier or "",
            "checks": [
                {
                    "name": sort + one.name,
                    "ok": one.ok,
                    "detail": one.detail,
                    "fix": one.fix if sees_all else "",
                }
                for sort, one in checks
            ],
            "allowed": [
                f"graders that are classes of installed packages: {_yes(allowed.custom_code)}",
                f"endpoints on this machine or its network: {_yes(allowed.internal)}",
                f"secrets that endpoints may be sent: {len(allowed.secrets or ())}",
            ],
            "limits": [
                {"name": name, "value": value, "about": about}
                for name, value, about in (
                    ("rows of a dataset", f"{settings.max_rows:,}", ""),
                    ("size of a dataset", _bytes(settings.max_dataset_bytes), ""),
                    ("a row", _bytes(settings.max_line_bytes), "its line of JSON"),
                    ("another request", _bytes(settings.max_body_bytes), ""),
                    ("jobs at once", f"{settings.job_slots:,}", "a project has half of the rest"),
                    (
                        "gradings that wait",
                        f"{settings.max_waiting:,}",
                        "of a project and sort",
                    ),
                    ("connections", f"{settings.limits.connections:,}", ""),
                    ("traces of a project", f"{settings.traces.traces:,}", ""),
                )
            ],
        }
    )


def _yes(value: bool) -> str:  # noqa: FBT001 - a word for it
    return "yes" if value else "no"


def _bytes(number: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= size:
            return f"{number / size:,.4g} {unit}"
    return f"{number:,} bytes"
