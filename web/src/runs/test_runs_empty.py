"""The list of runs where there are none."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from web.conftest import Opener


def test_an_empty_store_says_what_to_do(
    open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page("/runs")
    expect(page.get_by_role("heading", name="Nothing was run yet")).to_be_visible()
    expect(page.get_by_text("assay run PATH")).to_be_visible()
    no_serious_findings(page)
