"""A cell opened, as a person does it: read, walked through, decided, graded again, promoted."""

from __future__ import annotations

import json
import re
from collections.abc import Generator

import pytest
from playwright.sync_api import Request, expect
from tests.full_case import HOSTILE, write_repair
from web.conftest import Opener, Site, no_serious_findings
from web.src.runs.made_runs import add_long_run

from assay.testing import FakeJudge

FIX = "/runs/kit/cell?case=kit&harness=replay&model=fix&trial=1"
CHEAT = FIX.replace("model=fix", "model=cheat")
LONG = "/runs/long/cell?case=c&trial=1"


@pytest.fixture(scope="module", autouse=True)
def runs(site: Site) -> Generator[None]:
    """A run with everything, judged by a fake judge, and one with a trajectory of 5,000 steps."""
    with FakeJudge() as fake:
        write_repair(site.home, model=fake.model)
        site.assay("run", "evals", "--name", "kit", code=1)
        add_long_run(site.home)
        yield


def test_a_cell_is_read_and_nothing_recorded_acts(open_page: Opener) -> None:
    page = open_page(FIX)
    expect(page.get_by_role("heading", level=1)).to_contain_text("kit replay · fix · trial 1")
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("needs 1.00 → pass")
    expect(page.get_by_text("tokens 2,500")).to_be_visible()
    expect(page.get_by_text("cost $0.01")).to_be_visible()
    scores = page.get_by_role("region", name="Scores")
    scores.get_by_text("solved", exact=True).click()
    expect(scores.get_by_text("x = 2 # done <img")).to_be_visible()
    scores.get_by_text("clear", exact=True).click()
    expect(scores.get_by_text("MET", exact=True).first).to_be_visible()
    steps = page.get_by_role("region", name="Steps")
    expect(steps.get_by_role("article", name="Step 7")).to_contain_text(f"no such line {HOSTILE}")
    expect(steps.get_by_role("article", name="Step 10")).to_have_attribute("data-nested", "")
    result = steps.get_by_role("article", name="Step 5")
    result.get_by_role("button", name="Show all 40 lines").click()
    expect(result.get_by_role("button", name="Fold")).to_be_visible()
    no_serious_findings(page)
    page.get_by_role("tab", name="Files changed").click()
    expect(page.get_by_text("notes <b>.txt")).to_be_visible()
    expect(page.get_by_label("Changes of kit.py")).to_contain_text(HOSTILE)
    no_serious_findings(page)
    page.get_by_role("tab", name="Prompt and answer").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(f"It says 2 now. {HOSTILE}")
    page.get_by_role("tab", name="Raw JSON").click()
    expect(page.get_by_role("tabpanel")).to_contain_text('"trace"')
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_role("tabpanel").get_by_role("row")).to_have_count(2)
    assert "tab=history" in page.url
    assert page.evaluate("document.title").startswith("kit · replay · fix")
    assert page.locator("img[src=x], #main script").count() == 0
    page.get_by_text("Copy as", exact=True).click()
    expect(
        page.get_by_text(re.compile(r"^assay report \S+ --case kit --harness replay .*--workspace"))
    ).to_be_visible()


def test_nothing_of_a_cell_is_wider_than_a_narrow_page(open_page: Opener) -> None:
    page = open_page(CHEAT)
    page.set_viewport_size({"width": 390, "height": 900})
    page.get_by_role("tab", name="History").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_keys_walk_through_cells_and_steps(open_page: Opener) -> None:
    page = open_page(CHEAT)
    expect(page.get_by_text("1 of 4 to look at")).to_be_visible()
    for expected in ("cheat · trial 2", "lazy · trial 1"):
        page.keyboard.press("j")
        expect(page.get_by_role("heading", level=1)).to_contain_text(expected)
    page.keyboard.press("k")
    expect(page.get_by_role("heading", level=1)).to_contain_text("cheat · trial 2")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("lazy · trial 1")
    page = open_page(FIX)
    expect(page.get_by_role("article", name="Step 1", exact=True)).to_be_visible()
    for key, step in (("t", 4), ("t", 6), ("e", 7), ("t", 9)):
        page.keyboard.press(key)
        expect(page.locator("article[aria-current=step]")).to_have_attribute(
            "aria-label", f"Step {step}"
        )
        assert f"step={step}" in page.url
    page.keyboard.press("/")
    page.keyboard.type("KIT.PY:1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 step found")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("article[aria-current=step]")).to_have_attribute("aria-label", "Step 10")
    again = open_page(page.url.removeprefix(open_page.site.server.url))
    expect(again.locator("article[aria-current=step]")).to_have_attribute("aria-label", "Step 10")


def test_five_thousand_steps_open_and_scroll_in_parts(open_page: Opener) -> None:
    page = open_page()
    asked: list[str] = []

    def hear(request: Request) -> None:
        if "/cells/steps" in request.url:
            asked.append(request.url)

    page.on("request", hear)
    page.goto(f"{open_page.site.server.url}{LONG}")
    steps = page.get_by_role("region", name="Steps")
    expect(steps.get_by_role("article", name="Step 1", exact=True)).to_contain_text("thought 0")
    assert len(asked) == 1
    assert page.locator("#main *").count() < 1_500
    page.keyboard.press("e")
    expect(page.locator("article[aria-current=step]")).to_contain_text("failed with")
    expect(steps.get_by_text("thought 1501")).to_be_visible()
    steps.evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(steps.get_by_text(re.compile("thought 2[34]")).first).to_be_visible()
    page.goto(f"{open_page.site.server.url}{LONG}&step=6251")
    expect(page.locator("article[aria-current=step]")).to_contain_text("answered")
    assert page.locator("#main *").count() < 1_500
    assert len(asked) <= 12
    scores = page.get_by_role("region", name="Scores")
    expect(scores).to_contain_text("31 of 34 tests on plain values")
    expect(scores).to_contain_text("Not decided, so counted as failed:")
    expect(scores).to_contain_text("test_c: result == 4")
    page.get_by_role("tab", name="Prompt and answer").click()
    page.get_by_role("button", name="Show the rest: 998,000 more characters").click()
    expect(page.get_by_role("button", name="Show the rest: 900,000 more")).to_be_visible()


def test_a_flagged_cell_is_decided_about(open_page: Opener) -> None:
    page = open_page(CHEAT)
    flags = page.get_by_role("region", name="Signs of tampering")
    expect(flags).to_contain_text("kit.py:2")
    expect(flags).to_contain_text("def __eq__(self, other):")
    no_serious_findings(page)
    page.get_by_label("Note beside the decision").fill(f"a liar {HOSTILE}")
    page.get_by_role("button", name="Make it 0").click()
    expect(page.get_by_role("region", name="Decision")).to_contain_text("decided: 0")
    expect(page.get_by_role("region", name="Decision")).to_contain_text(HOSTILE)
    expect(page.get_by_role("heading", level=1)).to_contain_text("fail")
    page.get_by_role("button", name="Let the reward stand").click()
    expect(page.get_by_role("region", name="Decision")).to_contain_text("the reward stands")
    expect(page.get_by_role("heading", level=1)).to_contain_text("pass")
    # What is refused is said, and nothing looks as if it had been done.
    page.route(
        "**/cells/decide",
        lambda route: route.fulfill(
            status=409,
            content_type="application/problem+json",
            body=json.dumps({"title": "Conflict", "detail": "It was graded again meanwhile."}),
        ),
    )
    page.get_by_role("button", name="Make it 0").click()
    expect(page.get_by_role("alert")).to_contain_text("graded again meanwhile")
    expect(page.get_by_role("heading", level=1)).to_contain_text("pass")
    open_page.forgive("status of 409")


def test_a_cell_is_graded_again_and_kept_as_a_recording(open_page: Opener) -> None:
    site = open_page.site
    site.assay("run", "evals", "--name", "again", code=1)
    page = open_page(FIX.replace("/kit/", "/again/"))
    page.get_by_text("Keep as recording").click()
    page.get_by_label("Name of the recording").fill("kept")
    page.get_by_role("button", name="Write it").click()
    expect(page.get_by_text("assay run evals/kit --harness replay --model kept")).to_be_visible()
    assert (site.home / "evals/kit/recordings/kept/files/kit.py").exists()
    page.get_by_role("button", name="Write it").click()
    expect(page.get_by_role("alert")).to_contain_text("already a recording")
    page.keyboard.press("Escape")
    case = site.home / "evals/kit/case.yaml"
    before = case.read_text("utf-8")
    case.write_text(before.replace('patterns: ["x = 2"]', 'patterns: ["x = 3"]'), "utf-8")
    page.get_by_text("Grade again").click()
    page.get_by_role("button", name="This cell").click()
    expect(page.get_by_text("1 cell graded again.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", level=1)).to_contain_text("fail")
    expect(page.get_by_role("tab", name="History 2")).to_be_visible()
    moved = case.rename(case.with_name("gone.yaml"))
    page.get_by_text("Grade again").click()
    page.get_by_role("button", name="This cell").click()
    expect(page.get_by_role("alert")).to_contain_text("It was not graded again")
    moved.rename(case)
    case.write_text(before, "utf-8")
    assert len(open_page.watch.faults) == 1
    assert "422" in open_page.watch.faults.pop()


def test_a_viewer_reads_and_is_told_what_needs_another_role(open_page: Opener) -> None:
    open_page.log_in("viewer")
    page = open_page(CHEAT)
    expect(page.get_by_role("button", name="Make it 0")).to_be_disabled()
    page.get_by_text("Grade again").click()
    expect(page.get_by_role("button", name="This cell")).to_be_disabled()
    page.keyboard.press("Escape")
    page.get_by_text("Keep as recording").click()
    expect(page.get_by_text(re.compile(r"^assay runs promote \S+ kit")).first).to_be_visible()


def test_a_cell_that_is_not_there_is_said(open_page: Opener) -> None:
    page = open_page(FIX.replace("model=fix", "model=other"))
    expect(page.get_by_role("alert")).to_contain_text("has no cell")
    expect(page.get_by_role("link", name="To the run")).to_be_visible()
    open_page.watch.faults = [one for one in open_page.watch.faults if "404" not in one]
