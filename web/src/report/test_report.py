"""A report in one file, opened from disk as somebody does it who got it in an e-mail."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.full_case import HOSTILE, write_repair
from web.conftest import Watch, command, leave, no_serious_findings
from web.src.runs.graded_runs import cell, noisy, store_run
from web.src.runs.made_runs import add_run, big_run

from assay.testing import FakeJudge

BUILT = Path(__file__).parents[3] / "src/assay/reports/page/report.js"
DAY = "2026-11-2{}T09:00:00+00:00"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything, a large one, and two to compare, as files."""
    if not BUILT.exists():
        pytest.skip("the report's page was not built: make web")
    home = tmp_path_factory.mktemp("report")
    with FakeJudge() as fake:
        write_repair(home, model=fake.model)
        command(home, "run", "evals", "--name", "kit", code=1)
    command(home, "report", "kit", "--html", "kit.html", code=1)
    add_run(home, *big_run())
    command(home, "report", "big", "--html", "big.html", code=3)
    store_run(home, "20261121-a", noisy(30), label="main", created_at=DAY.format(1))
    worse = [*noisy(30, gain=-0.2), cell(HOSTILE, {HOSTILE: 0.0}, answer=HOSTILE, reason=HOSTILE)]
    store_run(home, "20261122-b", worse, label=HOSTILE, created_at=DAY.format(2))
    command(home, "compare", "20261121-a", "20261122-b", "--html", "both.html")
    return home


@pytest.fixture
def open_file(home: Path, context: BrowserContext) -> Generator[Callable[[str], Page]]:
    """Opens files as somebody else; at the end none may have done wrong."""
    watch = Watch(f"file://{home}")
    yield _opening(home, context, watch)
    leave(context, "file://")
    assert watch.faults == []


def _opening(home: Path, context: BrowserContext, watch: Watch) -> Callable[[str], Page]:
    def opening(name: str) -> Page:
        page = context.new_page()
        watch.on(page)
        page.goto(f"file://{home}/{name}")
        return page

    return opening


def test_a_report_is_read_from_its_verdict_down_to_what_was_done(
    open_file: Callable[[str], Page],
) -> None:
    page = open_file("kit.html")
    expect(page.get_by_role("heading", level=1)).to_have_text("kit ")
    expect(page.locator(".verdict")).to_contain_text("FAIL: ")
    expect(page.get_by_role("button", name="More about")).to_have_count(0)
    no_serious_findings(page)
    page.get_by_role("link", name="kit, replay · fix").click()
    expect(page.get_by_role("tab", name="Cells")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("link", name="kit").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("kit replay · fix · trial 1")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("needs 1.00 → pass")
    expect(page.get_by_role("region", name="Scores")).to_contain_text("clear")
    steps = page.get_by_role("region", name="Steps")
    expect(steps.get_by_role("article", name="Step 7")).to_contain_text(f"no such line {HOSTILE}")
    page.get_by_role("searchbox", name="Search the steps").fill("LINE 39")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("1 step found")
    page.get_by_role("tab", name="Files changed").click()
    expect(page.get_by_role("region", name="Changes of kit.py")).to_contain_text("+x = 2  # done <")
    no_serious_findings(page)
    assert {one.inner_text().split()[0] for one in page.get_by_role("tab").all()} == {
        "Trajectory", "Files", "Prompt", "History",
    }  # fmt: skip
    page.go_back()
    page.go_back()
    expect(page.get_by_role("tab", name="Cells")).to_be_visible()
    assert "owned" not in page.title()


def test_flags_stand_out_and_failures_follow_each_other(open_file: Callable[[str], Page]) -> None:
    page = open_file("kit.html")
    page.get_by_role("link", name="Show the cells").click()
    page.get_by_role("row").nth(1).get_by_role("link").click()
    expect(page.get_by_role("region", name="Signs of tampering")).to_contain_text("__eq__")
    expect(page.locator(".walk")).to_contain_text("3 of 4 to look at")
    page.keyboard.press("j")
    expect(page.locator(".walk")).to_contain_text("4 of 4 to look at")


def test_of_ten_thousand_cells_what_is_left_out_is_said(open_file: Callable[[str], Page]) -> None:
    page = open_file("big.html")
    expect(page.get_by_role("list", name="Left out")).to_contain_text(
        "of 10,000 cells can be looked at"
    )
    expect(page.locator(".verdict")).to_contain_text("of 10,000 cells could not be graded")
    page.get_by_role("tab", name="Scores").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("10,000 cells, 0 graders")
    page.get_by_role("tab", name="Overview").click()
    page.get_by_role("link", name=re.compile("the sandbox ended after")).click()
    expect(page.locator(".total")).to_have_text("104 cells")
    page.get_by_role("searchbox", name="Find cases by name").fill("case-0100")
    expect(page.locator(".total")).to_have_text("0 cells")


def test_a_cell_that_is_not_in_the_file_is_told_without_its_name_in_a_command(
    open_file: Callable[[str], Page],
) -> None:
    page = open_file("kit.html#/runs/kit/cell?case=$(reboot)")
    expect(page.get_by_role("alert")).to_contain_text("This cell is not in this file")
    expect(page.get_by_role("alert")).not_to_contain_text("reboot")
    page.get_by_role("link", name="To the run").click()
    expect(page.locator(".verdict")).to_contain_text("FAIL: ")


def test_a_comparison_is_read_from_disk(open_file: Callable[[str], Page]) -> None:
    page = open_file("both.html")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"main → {HOSTILE}")
    expect(page.locator(".verdict")).to_contain_text("WORSE")
    page.get_by_role("region", name="Worse", exact=True).locator("[data-row]").first.click()
    expect(page.get_by_role("heading", name=re.compile("^Before")).first).to_be_visible()
    no_serious_findings(page)


def test_on_paper_everything_is_unfolded(open_file: Callable[[str], Page]) -> None:
    page = open_file("kit.html")
    expect(page.locator(".verdict")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("article[data-cell]")).to_have_count(6)
    assert page.locator("details:not([open])").count() == 0
    expect(page.locator("article[data-cell]").filter(has_text="fix · trial 1")).to_contain_text(
        "line 39"
    )
    page.emulate_media(media="screen")
    expect(page.get_by_role("tab", name="Cells")).to_be_visible()


def test_without_scripts_the_verdict_and_the_cells_are_read(home: Path, browser: Browser) -> None:
    watch = Watch(f"file://{home}")
    context = browser.new_context(java_script_enabled=False)
    page = _opening(home, context, watch)("kit.html")
    expect(page.locator("#told")).to_contain_text("✗ FAIL: ")
    expect(page.locator("#told")).to_contain_text("kit · replay · fix · trial 1")
    expect(page.get_by_text("where scripts may run")).to_be_visible()
    context.close()
    assert watch.faults == []
