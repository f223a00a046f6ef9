"""``assay serve``: the server as a process."""

from __future__ import annotations

import json
import logging
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import quote

from assay.cli.options import (
    add_db,
    add_engine,
    explain,
    number_between,
    port,
    positive,
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
`assay server list keys` makes.
Ctrl-C or SIGTERM ends it when the batches in flight are stored.
"""
_SERVE = """\
  assay serve
  assay serve --db postgresql://assay@db.internal/assay --host 0.0.0.0 --create-key first
  assay serve --engine ray://10.0.0.1:6379
  assay serve --endpoint-secret ASSAY_SECRET_REWARDS=rewards.example.com"""


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
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name by which others reach this server",
    )
    add(
        "--proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a reverse proxy through which others reach this server; its X-Forwarded-For counts",
    )
    add("--create-key", metavar="NAME", help="make an admin's key for all projects, and print it")
    add(
        "--endpoint-secret",
        action="append",
        default=[],
        type=_secret,
        metavar="VARIABLE=HOST",
        help="let external endpoints send the secret in VARIABLE to HOST, and only there",
    )
    add(
        "--allow-internal-endpoints",
        action="store_true",
        help="let external endpoints be on this machine or its network",
    )
    add(
        "--allow-custom-code",
        action="store_true",
        help="run graders that are classes of installed packages, outside of any sandbox",
    )
    add(
        "--max-connections",
        type=positive,
        default=1_000,
        metavar="N",
        help="connections open at once; one more closes the one that is idle longest",
    )
    add(
        "--job-slots",
        type=positive,
        default=8,
        metavar="N",
        help="jobs worked on at once, 8 by default; no project has all of them",
    )
    add_engine(parser, "where jobs are graded")
    add(
        "--max-waiting",
        type=positive,
        default=512,
        metavar="N",
        help="requests of a project that may wait for graders of one sort before it gets 429; "
        "512 by default",
    )
    add(
        "--grace",
        type=number_between(0, 3_600, "seconds"),
        default=20.0,
        metavar="SECONDS",
        help="in which requests and batches under way must end when it is told to; 20 by default",
    )
    add(
        "--audit-log",
        metavar="FILE",
        help="append a line of JSON for each change, too; `assay server list audit` shows them",
    )
    add("--quiet", action="store_true", help="no line for each request")
    add("--json", action="store_true", help="say where it listens as one JSON object")


def _secret(text: str) -> tuple[str, str]:
    name, equals, host = text.partition("=")
    if not (name.startswith("ASSAY_SECRET_") and equals and host) or "/" in host:
        raise ArgumentTypeError(f"{text!r} is not ASSAY_SECRET_...=HOST")
    return name, host.lower()


def run(given: Namespace) -> int:
    """Serve until the process is told to end."""
    require_server("assay serve")
    from assay.endpoint.listening import Limits
    from assay.server.app import run as run_server
    from assay.server.context import ServerSettings
    from assay.sockets import is_loopback, listen

    where = store_place()
    with listen(given.host, given.port) as opened:
        token = _first_key(where, given.create_key)
        is_local = is_loopback(given.host) and not given.proxy
        _require_store(where, given.host, needs_key=not is_local)
        settings = ServerSettings(
            location=where,
            is_local=is_local,
            hosts=(given.host, *given.allow_host),
            endpoint_secrets=dict(given.endpoint_secret),
            allow_custom_code=given.allow_custom_code,
            allow_internal_endpoints=given.allow_internal_endpoints,
            job_slots=given.job_slots,
            engine=given.engine,
            max_waiting=given.max_waiting,
            limits=Limits(
                connections=given.max_connections,
                proxies=tuple(given.proxy),
                grace_seconds=given.grace,
            ),
        )
        log_requests(quiet=given.quiet)
        log_changes(given.audit_log)
        run_server(
            settings, opened, given.host, lambda found: announce(found, token, as_json=given.json)
        )
    return 0


def require_server(command: str) -> None:
    """Say what to install where the server's parts are missing."""
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(module) is None:
            raise MissingExtraError(f"`{command}`", extra="server")


def _first_key(where: str, name: str | None) -> str:
    return "" if name is None else make_key(where, name, "admin", "*")


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
    try:
        print(said, flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # where Python writes the rest to at its end
        os.close(nowhere)


def log_requests(*, quiet: bool) -> None:
    """Short lines on standard error: what failed and, unless it is to be quiet, every request."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("assay")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


def _made_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


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
            return open(self.baseFilename, "a", encoding="utf-8", opener=_made_private)

    try:
        handler = PrivateFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to {file}: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(message)s"))
    audit.addHandler(handler)
    audit.setLevel(logging.INFO)


def make_key(where: str, name: str, role: KeyRole, project: str) -> str:
    """Make a key; its token."""
    from assay.service.here import do, local_desk
    from assay.service.site import create_key
    from assay.store.database import Database

    with Database.open(where) as database:
        return do(create_key, local_desk(database), name, role, project).token
