"""The frame of the page: where things are, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site


def test_every_section_is_reached_and_none_has_a_fault(
    open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page("/")
    no_serious_findings(page)
    for name in ("Graders", "Runs", "Labels", "Data", "Settings"):
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        title = "Datasets" if name == "Data" else name
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page).to_have_title(f"{title} · assay")
        no_serious_findings(page)


def test_the_page_allows_no_script_but_its_own(site: Site) -> None:
    answer = httpx.get(f"{site.server.url}/runs")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self';" in policy
    assert answer.headers["x-frame-options"] == "DENY"
