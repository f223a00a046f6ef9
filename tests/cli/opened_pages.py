"""Commands that open the page, without its server, of which tests/cli/test_view.py has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from assay.server import app
from tests.command_line import assay

__all__ = ["SILENT", "opened_place"]

SILENT = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}
"""Variables of a machine without a screen, where no browser is opened."""


def opened_place(home: Path, *words: str) -> str:
    """The address of the page that the link of a command leads to."""

    def run(
        _settings: object, _opened: object, _host: str, announce: Callable[[app.Listening], None]
    ) -> None:
        announce(app.Listening("http://site", "once"))

    with mock.patch.object(app, "run", run):
        done = assay(*words, cwd=home, env=SILENT)
    assert done.returncode == 0, done.stderr
    link = done.stdout.splitlines()[1].rpartition(" ")[2]
    (place,) = parse_qs(urlsplit(link).query)["next"]
    return place
