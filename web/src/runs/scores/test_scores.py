"""How the scores of a run lie and agree, as a person looks at them."""

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


def test_two_graders_are_picked_and_their_worst_disagreement_is_read(
    open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page(f"/runs/{RUN}?tab=scores")
    cards = page.locator(".score-card")
    expect(cards).to_have_count(4)
    judge = page.get_by_role("button", name=re.compile("judge"))
    expect(judge).to_contain_text("3 errors")  # beside the histogram, whose n they are no part of
    expect(judge).to_contain_text("n 117")
    expect(page.get_by_text("Pick two graders above")).to_be_visible()

    page.get_by_role("button", name=re.compile("^tests")).click()
    judge.click()
    expect(page).to_have_url(re.compile("x=%2Ftests&y=%2Fjudge"))
    expect(page.locator(".pair-said")).to_contain_text("Same verdict on")
    expect(page.locator(".pair-said")).to_contain_text("of 117 cells")
    expect(
        page.get_by_role("row", name=re.compile("Cohen's kappa 0\\.\\d\\d 0\\.\\d\\d to"))
    ).to_be_visible()
    worst = page.get_by_role("region", name="Worst disagreements")
    expect(worst.locator("[data-row]")).to_have_count(15)
    worst.locator("[data-row]").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(worst.get_by_text("tests: 1.00 of what it asks for")).to_be_visible()
    expect(worst.get_by_text(re.compile("What is asked in case-"))).to_be_visible()
    expect(worst.get_by_role("link", name="Open the cell")).to_have_attribute(
        "href",
        re.compile(f"/runs/{RUN}/cell\\?case=case-\\d+&harness=assistant&model=small&trial=1"),
    )
    no_serious_findings(page)

    page.get_by_label("Second").select_option(label="Cost in dollars")
    expect(page.get_by_text("Cost in dollars: 5 without it.")).to_be_visible()
    expect(worst).to_have_count(0)
    page.get_by_role("button", name="Show as a table").first.click()
    expect(page.get_by_role("row", name=re.compile("^judge 117"))).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile("y=%2Fjudge"))
    expect(judge).to_have_attribute("aria-pressed", "true")


def test_a_run_of_errors_has_no_zeros_and_an_unknown_score_is_a_problem(open_page: Opener) -> None:
    page = open_page(f"/runs/{BROKEN}?tab=scores&x=&y=/judge")
    expect(page.locator(".score-card").first).to_contain_text("no scores")
    expect(page.locator(".score-card").first).to_contain_text("3 errors")
    expect(page.locator(".histogram")).to_have_count(0)
    expect(page.get_by_text("No cell has both numbers.")).to_be_visible()
    page.goto(page.url.replace("judge", "none"))
    expect(page.get_by_role("alert")).to_contain_text("no cell has the score '/none'")
    open_page.watch.faults.clear()  # the console tells of the refusal too


def test_what_was_graded_is_never_more_than_text(open_page: Opener) -> None:
    page = open_page(f"/runs/{EVIL}?tab=scores")
    name = HOSTILE.replace("~", "~0").replace("/", "~1")
    page.get_by_label("First").select_option("=/tests")
    page.get_by_label("Second").select_option(f"=/{name}")
    worst = page.get_by_role("region", name="Worst disagreements")
    expect(worst.locator("[data-row]")).to_have_count(8)
    for row in worst.locator("[data-row]").all():
        row.click()
    expect(worst.get_by_text("onerror").first).to_be_visible()
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_ten_thousand_cells_are_counted_on_the_server(open_page: Opener) -> None:
    page = open_page(f"/runs/{BIG}?tab=scores&x=/tests&y=/judge")
    expect(page.get_by_text("10,000 cells, 3 graders")).to_be_visible(timeout=30_000)
    expect(page.locator(".pair-said")).to_contain_text("of 9,750 cells", timeout=30_000)
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1_500
