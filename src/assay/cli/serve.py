"""``assay serve``: the server as a process."""

from __future__ import annotations

import json
import logging
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import quote

from assay.cli.options import (
    add_db,
    add_engine,
    add_set,
    explain,
    port,
    read_or_not,
    store_place,
)
from assay.errors import InputError, MissingExtraError
from assay.store.projects import KeyRole

if TYPE_CHECKING:
    from io import TextIOWrapper

    from assay.server.app import Listening


_SERVE_MORE = """\
Graders, datasets, jobs and scores over HTTP, from the same store as the command line. Where only
this machine can reach it, it prints a link that logs in once; others need a key, which
`assay server create key NAME` makes.
Ctrl-C or SIGTERM ends it when the batches in flight are stored.
"""
_SERVE = """\
  assay serve
  assay serve --db postgresql://assay@db.internal/assay --host 0.0.0.0 --create-key first
  assay serve --engine ray://10.0.0.1:6379
  assay serve --set endpoint_secrets.ASSAY_SECRET_REWARDS=rewards.example.com --set @server.yaml"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay serve`` takes."""
    explain(parser, _SERVE_MORE, _SERVE)
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen; by default for this machine only",
    )
    add("--port", type=port, default=8400, metavar="N", help="8400 by default; 0 takes a free one")
    add_db(parser)
    add("--create-key", metavar="NAME", help="make an admin's key for all projects, and print it")
    add_engine(parser, "where jobs are graded")
    add_set(parser, "a setting, or @FILE.yaml with several (docs/server.md)")
    add("--json", action="store_true", help="say where it listens as one JSON object")


def run(given: Namespace) -> int:
    """Serve until the process is told to end."""
    require_server("assay serve")
    from assay.cli.fields import settings_of
    from assay.server.app import run as run_server
    from assay.server.context import ServerSettings
    from assay.sockets import is_loopback, listen

    where = store_place()

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Settings(ServerSettings):
        """Those of the server, and of its process."""

        audit_log: str | None = None
        quiet: bool = False

    settings = settings_of(
        Settings, given.set, location=where, engine=given.engine, is_local=is_loopback(given.host)
    )
    is_local = settings.is_local and not settings.limits.proxies
    settings = replace(settings, is_local=is_local, hosts=(given.host, *settings.hosts))
    _check_secrets(settings.endpoint_secrets)
    with listen(given.host, given.port) as opened:
        key = given.create_key
        token = make_key(where, key, "admin", "*") if key is not None else ""
        _require_store(where, given.host, needs_key=not is_local)
        log_requests(quiet=settings.quiet)
        log_changes(settings.audit_log)
        run_server(
            settings, opened, given.host, lambda found: announce(found, token, as_json=given.json)
        )
    return 0


def _check_secrets(secrets: Mapping[str, str]) -> None:
    for name, host in secrets.items():
        if not name.startswith("ASSAY_SECRET_") or not host or "/" in host:
            raise InputError(
                f"--set endpoint_secrets.{name:.80}={host:.80} is no secret of a host",
                hint="such as endpoint_secrets.ASSAY_SECRET_REWARDS=rewards.example.com",
            )


def require_server(command: str) -> None:
    """Say what to install where the server's parts are missing."""
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(module) is None:
            raise MissingExtraError(f"`{command}`", extra="server")


def _require_store(where: str, host: str, *, needs_key: bool) -> None:
    """Open the store once, so that one that cannot be used is told now and not by each request."""
    from assay.store.database import Database
    from assay.store.pages import every
    from assay.store.projects import ApiKeys

    with Database.open(where) as database:
        is_open = any(key.is_good(database.now()) for key in every(ApiKeys(database).page))
    if needs_key and not is_open:
        raise InputError(
            f"others can reach {host}, and there is no API key yet",
            hint="add --create-key NAME, or make one with `assay server create keys`",
        )


def login_link(found: Listening, place: str = "") -> str:
    """The link that logs in once, and goes on to a place of the page; empty where there is none."""
    if not found.link:
        return ""
    after = f"&next={quote(place, safe='/')}" if place else ""
    return f"{found.url}/login?once={found.link}{after}"


def announce(found: Listening, token: str = "", place: str = "", *, as_json: bool) -> None:
    """Print where a server listens, and what lets people in; it serves also if nobody reads."""
    link = login_link(found, place)
    if as_json:
        said = json.dumps({"url": found.url, "login": link or None, "key": token or None})
    else:
        said = f"assay listens on {found.url}"
        said += f"\nlog in, once:    {link}" if link else ""
        said += f"\nthe new key:     {token}   (shown this once)" if token else ""
    with read_or_not():
        print(said)


def log_requests(*, quiet: bool) -> None:
    """Short lines on standard error: what failed and, unless it is to be quiet, every request."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("assay")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


def log_changes(file: str | None) -> None:
    """Append a line to a file for each change; without one, to none."""
    audit = logging.getLogger("assay.audit")
    audit.propagate = False  # the log of requests tells them, too
    if file is None:
        audit.addHandler(logging.NullHandler())
        return
    from logging.handlers import WatchedFileHandler  # which goes on when the file was moved away

    class PrivateFileHandler(WatchedFileHandler):
        def _open(self) -> TextIOWrapper:
            return open(
                self.baseFilename, "a", encoding="utf-8", opener=partial(os.open, mode=0o600)
            )

    try:
        handler = PrivateFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to {file}: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(message)s"))
    audit.addHandler(handler)
    audit.setLevel(logging.INFO)


def make_key(where: str, name: str, role: KeyRole, project: str) -> str:
    """Make a key; its token."""
    from assay.service.local import do, local_desk
    from assay.service.site import create_key
    from assay.store.database import Database

    with Database.open(where) as database:
        return do(create_key, local_desk(database), name, role, project).token
