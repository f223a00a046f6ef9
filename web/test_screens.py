"""Every screen of the sheet, as axe sees it in light and in dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from web import pictures
from web.conftest import Opener, Site

filled = pictures.filled


@pytest.mark.parametrize("screen", pictures.SCREENS, ids=lambda one: one.name)
def test_axe_finds_nothing_serious_on_a_screen(
    filled: Site,
    open_page: Opener,
    screen: pictures.Picture,
    no_serious_findings: Callable[[Page], None],
) -> None:
    no_serious_findings(pictures.shown(filled, open_page, screen, "light"))
