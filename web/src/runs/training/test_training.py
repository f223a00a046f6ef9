"""What a run's groups would teach a trainer, as a person looks at it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site
from web.src.runs.graded_runs import cell, store_run

HOSTILE = '<img src=x onerror="window.hacked=1">'
RUN, FLOOR, LONE, BROKEN = (f"20261122-{letter * 4}" for letter in "abcd")
GROUPS: dict[str, list[float | None]] = {
    "alike": [0.5, 0.5],
    "half-broken": [1.0, None, 0.25],
    "learns": [1.0, 0.0, 0.5],
    "right": [1.0, 1.0],
    "wrong": [0.0, 0.0],
}


@pytest.fixture(scope="module", autouse=True)
def _runs(site: Site) -> None:
    cells = [
        cell(case, {HOSTILE: reward}, trial=trial, seconds=trial * 9.0, grader_seconds=trial * 2.0)
        for case, rewards in GROUPS.items()
        for trial, reward in enumerate(rewards, 1)
    ]
    store_run(site.home, RUN, cells, label="main")
    store_run(site.home, FLOOR, [cell(case, {"tests": 0.5}) for case in GROUPS], label="noop")
    store_run(site.home, LONE, [cell("c", {"tests": 1.0})])
    store_run(site.home, BROKEN, [cell("c", {"tests": None}, trial=n) for n in (1, 2)])


def test_groups_are_told_apart_and_a_floor_is_chosen(
    open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page(f"/runs/{RUN}")
    page.get_by_role("tab", name="Trainability").click()
    expect(page).to_have_url(re.compile(r"tab=training"))
    picture = page.get_by_role("img", name=re.compile("^learnable: 2; all right: 1; all wrong: 1"))
    expect(picture.locator("rect")).to_have_count(4)
    expect(page.get_by_text("1 of 12 cells, in 1 group: left out, never a 0")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Groups that teach by spread"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^a whole cell 18 s 27 s"))).to_be_visible()
    expect(page.get_by_role("row", name=f"{HOSTILE} 4.0 s 6.0 s")).to_be_visible()
    assert page.evaluate("() => window.hacked") is None
    no_serious_findings(page)

    page.get_by_label("Floor").select_option(FLOOR)
    expect(page).to_have_url(re.compile(f"floor={FLOOR}"))
    expect(page.get_by_text("2 of 5 groups never beat it")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("never beat it")).to_have_count(0)


def test_a_run_without_repeats_says_what_to_do_and_an_unknown_floor_is_a_problem(
    open_page: Opener,
) -> None:
    page = open_page(f"/runs/{LONE}?tab=training")
    expect(page.get_by_role("heading", name="There is nothing to compare")).to_be_visible()
    page.goto(f"{page.url}&floor=nothing")
    expect(page.get_by_role("alert")).to_contain_text("no run, or more than one, is meant by")
    page.get_by_label("Floor").select_option("none")
    expect(page.get_by_role("heading", name="There is nothing to compare")).to_be_visible()
    open_page.watch.faults.clear()  # the console tells of the refusal too


def test_a_run_without_a_reward_says_so_and_draws_no_empty_bars(open_page: Opener) -> None:
    page = open_page(f"/runs/{BROKEN}?tab=training")
    expect(page.get_by_role("heading", name="No cell has a reward")).to_be_visible()
    expect(page.get_by_role("heading", name="There is nothing to compare")).to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("^Graded cells by reward"))).to_have_count(0)
