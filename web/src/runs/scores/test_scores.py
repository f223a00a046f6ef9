"""How the scores of a run lie, as a person looks at them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site
from web.src.runs.graded_runs import cell, noisy, store_run

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

RUN, BROKEN, EVIL, BIG = "20261121-aaaa", "20261121-bbbb", "20261121-cccc", "20261121-dddd"


@pytest.fixture(scope="module", autouse=True)
def _runs(site: Site) -> None:
    store_run(site.home, RUN, noisy(120), label="main")
    store_run(site.home, BROKEN, [cell(f"c{n}", {"judge": None}) for n in range(3)])
    evil = [
        cell(f"{HOSTILE}{n}", {"tests": n % 2, HOSTILE: 0.9 if n else 0.0}, model=HOSTILE,
             answer=HOSTILE, reason=HOSTILE)
        for n in range(8)
    ]  # fmt: skip
    evil.append(cell("long", {"tests": 0.0, HOSTILE: 1.0}, answer="word " * 200_000))
    store_run(site.home, EVIL, evil, prompt=lambda _: HOSTILE * 50)
    store_run(site.home, BIG, noisy(10_000))


def test_histograms_have_errors_beside_them_and_are_a_table_too(
    open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page(f"/runs/{RUN}?tab=scores")
    cards = page.get_by_role("tabpanel").get_by_role("listitem")
    expect(cards).to_have_count(4)
    judge = cards.filter(has_text="judge")
    expect(judge).to_contain_text("3 errors")  # beside the histogram, whose n they are no part of
    expect(judge).to_contain_text("n 117")
    no_serious_findings(page)
    page.get_by_role("button", name="Show as a table").click()
    expect(page.get_by_role("row", name=re.compile("^judge 117"))).to_be_visible()
    page.go_back()
    expect(judge).to_be_visible()


def test_a_run_of_errors_has_no_zeros(open_page: Opener) -> None:
    page = open_page(f"/runs/{BROKEN}?tab=scores")
    card = page.get_by_role("tabpanel").get_by_role("listitem").first
    expect(card).to_contain_text("no scores")
    expect(card).to_contain_text("3 errors")
    expect(page.get_by_role("img", name=re.compile("^Scores: "))).to_have_count(0)


def test_what_was_graded_is_never_more_than_text(open_page: Opener) -> None:
    page = open_page(f"/runs/{EVIL}?tab=scores")
    expect(page.get_by_text("onerror").first).to_be_visible()
    page.get_by_role("button", name="Show as a table").click()
    expect(page.get_by_role("cell").filter(has_text="onerror")).to_be_visible()
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_ten_thousand_cells_are_counted_on_the_server(open_page: Opener) -> None:
    page = open_page(f"/runs/{BIG}?tab=scores")
    expect(page.get_by_text("10,000 cells, 3 graders")).to_be_visible()
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1_500
