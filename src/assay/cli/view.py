"""``assay view``: the web page on the store of this directory, for whoever sits here."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from assay.cli.options import RUN, add_db, explain, port, store_there
from assay.cli.serve import announce, log_changes, log_requests, login_link, require_server

if TYPE_CHECKING:
    from assay.server.app import Listening

_HOST = "127.0.0.1"
_GRACE_SECONDS = 5.0

_MORE = """\
A server for you alone: on a free port that only this machine can reach, with a link that logs in
once, which your browser opens. Ctrl-C ends it. From another machine, forward its port:
ssh -L 8400:127.0.0.1:8400 HOST assay view --port 8400
"""
_EXAMPLES = """\
  assay view
  assay view latest
  assay view nightly --no-open"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay view`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help=f"open this run: {RUN}; by default all of them")
    add_db(parser)
    add_page(parser)
    add("--json", action="store_true", help="say where it listens as one JSON object")


def add_page(parser: ArgumentParser) -> None:
    """Add how the page is opened; see `open_page`."""
    add = parser.add_argument
    add("--port", type=port, default=0, metavar="N", help="a free one by default")
    add("--no-open", action="store_true", help="open no browser, print the link alone")


def run(given: Namespace) -> int:
    """Serve the page until the process is told to end.

    Raises:
        InputError: For an unknown run, or a port that is taken.
    """
    where = store_there()
    return open_page(given, where, lambda: _place(where, given.run), as_json=given.json)


def open_page(
    given: Namespace, where: str, place_of: Callable[[], str], *, as_json: bool = False
) -> int:
    """Serve the page on a store until the process is told to end, and open an address of it.

    Raises:
        InputError: For a port that is taken.
    """
    require_server(f"assay {given.command}")
    place = place_of()
    from assay.endpoint.listening import ListeningLimits
    from assay.server.app import run as run_server
    from assay.server.context import ServerSettings
    from assay.sockets import listen

    def start(found: Listening) -> None:
        announce(found, place=place, as_json=as_json)
        if not given.no_open and not as_json and _has_screen():
            _open(login_link(found, place))

    with listen(_HOST, given.port) as opened:
        settings = ServerSettings(
            location=where, hosts=(_HOST,), limits=ListeningLimits(grace_seconds=_GRACE_SECONDS)
        )
        log_requests(quiet=True)
        log_changes(None)
        run_server(settings, opened, _HOST, start)
    return 0


def _place(where: str, ref: str | None) -> str:
    """The address of a run's page; of the overview without one."""
    from assay.store.database import Database
    from assay.store.runs import Store

    with Database.open(where) as database:  # also without a run: a store that fails is told now
        if ref is None:
            return ""
        store = Store(database)
        found = store.run(ref)
        if not found.finished:
            from assay.eval.journals import salvage

            salvage(store, found.id)
        return f"/runs/{quote(found.id, safe='')}"


def _has_screen() -> bool:
    """Whether a browser would have a window; without one, those of terminals would be started."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(link: str) -> None:
    """Show the link in the browser, which may take its time."""
    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
