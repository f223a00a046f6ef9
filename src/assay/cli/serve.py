"""``assay serve``: the server as a process."""

from __future__ import annotations

import json
import logging
import os
import sys
from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from assay.cli.options import state_home
from assay.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from assay.server.run import Listening

__all__ = ["location", "require_server", "serve"]


def serve(given: Namespace) -> int:
    """Serve until the process is told to end.

    Returns:
        0.

    Raises:
        InputError: If the port cannot be had, or others could reach a server without any key.
        MissingExtraError: Without the extra ``server``.
    """
    require_server()
    from assay.server.run import is_loopback, listen, run
    from assay.server.settings import ServerSettings

    where = location(given.db)
    with listen(given.host, given.port) as opened:
        token = _first_key(where, given.create_key)
        is_local = is_loopback(given.host)
        _require_store(where, given.host, needs_key=not is_local)
        settings = ServerSettings(
            location=where,
            is_local=is_local,
            hosts=(given.host, *given.allow_host),
            endpoint_secrets=dict(given.endpoint_secret),
            allow_custom_code=given.allow_custom_code,
            allow_internal_endpoints=given.allow_internal_endpoints,
        )
        _log(quiet=given.quiet)
        run(settings, opened, given.host, lambda found: _announce(found, token, as_json=given.json))
    return 0


def location(db: str | None) -> str:
    """Where the store is: the option, ``ASSAY_DB``, or the directory of all other commands."""
    return db or os.environ.get("ASSAY_DB") or state_home()


def require_server() -> None:
    """Say what to install where the server's parts are missing.

    Raises:
        MissingExtraError: Naming the extra.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        if find_spec(module) is None:
            raise MissingExtraError("`assay serve`", extra="server")


def _first_key(where: str, name: str | None) -> str:
    if name is None:
        return ""
    from assay.cli.keys import make_key

    return make_key(where, name, "admin", "*")[1]


def _require_store(where: str, host: str, *, needs_key: bool) -> None:
    """Open the store once, so that one that cannot be used is told now and not by each request."""
    from assay.store.api_keys import ApiKeys
    from assay.store.database import Database

    with Database.open(where) as database:
        keys = ApiKeys(database).page(limit=1_000)
    if needs_key and all(key.revoked_at for key in keys):
        raise InputError(
            f"others can reach {host}, and there is no API key yet",
            hint="add --create-key NAME, or make one with `assay keys create`",
        )


def _announce(found: Listening, token: str, *, as_json: bool) -> None:
    link = f"{found.url}/login?once={found.link}" if found.link else ""
    if as_json:
        print(json.dumps({"url": found.url, "login": link or None, "key": token or None}))
    else:
        print(f"assay listens on {found.url}")
        if link:
            print(f"log in, once:    {link}")
        if token:
            print(f"the new key:     {token}   (shown this once)")
    sys.stdout.flush()


def _log(*, quiet: bool) -> None:
    """Short lines on standard error: what failed and, unless it is to be quiet, every request."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("assay")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
