"""Two runs compared, as a person does it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site
from web.src.runs.graded_runs import cell, noisy, store_run

from assay.reports.comparing.comparison import signed

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


DAY = "2026-11-2{}T09:00:00+00:00"


@pytest.fixture(scope="module", autouse=True)
def _runs(site: Site) -> None:
    store_run(site.home, "20261121-a", noisy(60), label="main", created_at=DAY.format(1))
    worse = noisy(60, gain=-0.2)
    store_run(site.home, "20261122-b", worse, label="change", created_at=DAY.format(2))
    same = noisy(60, seed=2)
    store_run(site.home, "20261123-c", same, label="again", created_at=DAY.format(3))
    two = [*noisy(30, model="large", gain=0.2), *noisy(30)]
    store_run(site.home, "20261120-d", two, label="both", created_at=DAY.format(0))
    for run, value in (("20261119-e", 1.0), ("20261119-f", 0.0)):
        cells = [
            cell(f"{HOSTILE}{n}", {HOSTILE: value}, model=HOSTILE, answer=HOSTILE, reason=HOSTILE)
            for n in range(8)
        ]
        store_run(site.home, run, cells, label=f"{HOSTILE}{value}", created_at=DAY.format(0))
    for run, gain in (("20261118-g", 0.0), ("20261118-h", -0.1)):
        store_run(site.home, run, noisy(5_000, gain=gain), created_at=DAY.format(0))
    broken = [cell(f"case-{n:04}", {"judge": None}) for n in range(5)]
    store_run(site.home, "20261117-i", broken, created_at=DAY.format(0))


def test_the_sentence_the_numbers_and_the_regressions_are_those_of_the_command(
    site: Site, open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    said = cast("dict[str, Any]", json.loads(site.assay("compare", "main", "change", "--json")))
    page = open_page("/compare?a=main&b=change")
    sentence = page.get_by_role("region", name="Finding")
    expect(sentence).to_contain_text("Worse, by more than chance would explain: mean reward")
    expect(sentence).to_contain_text(f"over {said['cases']} cases")
    expect(sentence).to_contain_text(signed(said["difference"]["mean"]))
    expect(sentence).to_contain_text(f"{said['worse']} worse")
    expect(sentence).to_contain_text(f"{said['same']} the same")
    expect(page.get_by_role("row", name=re.compile("^Agent cost"))).to_contain_text(
        "3 cells unknown"
    )
    lost = page.get_by_role("region", name="Worse", exact=True)
    first = lost.locator("[data-row]").first
    expect(first).to_contain_text(said["worsened"][0]["case"])
    first.click()
    expect(lost.get_by_text("Before", exact=False).first).to_be_visible()
    expect(lost.get_by_text("the same grader gave another score").first).to_be_visible()
    links = lost.get_by_role("link", name="Open the cell")
    expect(links.nth(0)).to_have_attribute("href", re.compile("/runs/20261121-a/cell"))
    expect(links.nth(1)).to_have_attribute("href", re.compile("/runs/20261122-b/cell"))
    no_serious_findings(page)

    expect(page.get_by_role("heading", name="Unchanged")).to_have_count(0)
    page.get_by_label("only changed").uncheck()
    expect(page).to_have_url(re.compile("all=true"))
    expect(page.get_by_role("heading", name="Unchanged")).to_be_visible()
    page.get_by_placeholder("Filter cases").fill(said["worsened"][1]["case"])
    expect(page.locator("[data-row]")).to_have_count(1)
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)


def test_what_chance_explains_is_called_no_clear_difference(open_page: Opener) -> None:
    page = open_page("/compare")
    page.get_by_role("button", name="Compare the two newest").click()
    expect(page).to_have_url(re.compile("a=20261122-b&b=20261123-c"))
    page.get_by_role("group", name="Before").get_by_label("Run").fill("main")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Finding")).to_contain_text("No clear difference")
    page.get_by_role("button", name="Swap").click()
    expect(page).to_have_url(re.compile("a=20261123-c&b=main"))
    expect(page.get_by_text("assay compare 20261123-c main")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("group", name="Before").get_by_label("Run")).to_have_value("main")


def test_two_models_of_one_run(site: Site, open_page: Opener) -> None:
    page = open_page("/compare?a=both")
    expect(page.get_by_text("Choose another run for one of the sides")).to_be_visible()
    page.get_by_role("group", name="Before").get_by_label("Model").select_option("small")
    page.get_by_role("group", name="After").get_by_label("Model").select_option("large")
    expect(page.get_by_role("region", name="Finding")).to_contain_text(
        "Better, by more than chance"
    )
    command = page.locator("code", has_text="assay compare").inner_text()
    assert command == "assay compare both --model=small --model=large"
    assert "BETTER" in site.assay(*command.split()[1:])


def test_what_cannot_be_compared_says_why(open_page: Opener) -> None:
    page = open_page("/compare?a=none&b=main")
    expect(page.get_by_role("alert")).to_contain_text(
        "no run, or more than one, is meant by 'none'"
    )
    page.goto(page.url.replace("none", "20261119-e"))
    expect(page.get_by_role("alert")).to_contain_text("no cell in common")
    page.goto(page.url.replace("20261119-e", "20261117-i"))
    expect(page.get_by_role("region", name="Finding")).to_contain_text(
        "no cell has a reward on both sides"
    )
    open_page.watch.faults.clear()  # the console tells of the refusals too


def test_an_address_writes_no_options_into_the_command(open_page: Opener) -> None:
    page = open_page("/compare?a=20261119-e&b=20261119-f&a_model=x&b_model=y")
    expect(page.get_by_role("alert")).to_contain_text("no model 'x'")
    page.goto(page.url.replace("_model=x", f"_model={quote('<img src=x>')}"))
    expect(page.get_by_role("alert")).to_contain_text("no model '<img src=x>'")
    assert page.locator("main img").count() == 0
    model = quote(HOSTILE)
    page.goto(
        page.url.replace("_model=%3Cimg%20src%3Dx%3E", f"_model={model}").replace(
            "_model=y", f"_model={model}"
        )
    )
    expect(page.locator("code", has_text="assay compare")).to_have_text(
        f"assay compare 20261119-e 20261119-f '--model={HOSTILE}'"
    )
    open_page.watch.faults.clear()  # the console tells of the refusal too


def test_what_was_graded_is_never_more_than_text(open_page: Opener) -> None:
    page = open_page("/compare?a=20261119-e&b=20261119-f")
    expect(page.get_by_role("region", name="Finding")).to_contain_text("Worse")
    for row in page.locator("[data-row]").all():
        row.click()
    expect(page.locator("pre").first).to_contain_text("onerror")
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "onerror" in page.evaluate("navigator.clipboard.readText()")
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_ten_thousand_cells_show_the_first_cases_only(open_page: Opener) -> None:
    page = open_page("/compare?a=20261118-g&b=20261118-h")
    expect(page.get_by_text("the first 200 are here")).to_be_visible()
    expect(
        page.get_by_role("region", name="Worse", exact=True).locator("[data-row]")
    ).to_have_count(20)
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1_500
