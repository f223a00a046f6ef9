"""Runs as people watch them: the list, a run that goes on, ten thousand cells, deletion."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect
from tests.children import Children
from tests.command_line import COMMAND, environment, write_case
from web.conftest import Opener, Site, no_serious_findings
from web.src.runs.frames import FRAMES, busy
from web.src.runs.made_runs import HOSTILE, add_long_run, add_run, big_run, mixed_run

from assay.conversation.turns import AssistantTurn, Turn
from assay.eval.journals import journal_of, label_of
from assay.gateway.journal import Answered, AskedEvent, Begun, append, encoded
from assay.store.decisions import Decision, decide
from assay.store.records import CellKey
from assay.store.runs import Store

MOST_MS = 70.0
"""35 are aimed at, and 33 were seen; beside other programs it is up to twice as much."""
MIXED, BIG = "20261121-090830-ab12", "20261120-020000-b1b1"


@pytest.fixture(scope="module")
def stored(site: Site) -> Site:
    """The server with four runs that have ended."""
    add_run(site.home, *mixed_run())
    before, cells = mixed_run("20261114-090830-ab11")
    add_run(site.home, replace(before, label="last-week", created_at="2026-11-14T09:08:30Z"), cells)
    add_run(site.home, *big_run())
    add_long_run(site.home)
    return site


@pytest.fixture
def children() -> Generator[Children]:
    with Children() as found:
        yield found


def _rows(page: Page) -> list[str]:
    """The cases of the rows that are there, from the top."""
    return page.get_by_role("grid").locator("a").all_inner_texts()


def test_a_run_is_read_from_its_verdict_down_to_its_cells(stored: Site, open_page: Opener) -> None:
    page = open_page("/runs")
    row = page.locator("tr", has_text=MIXED)
    expect(row).to_contain_text("nightly")
    expect(row).to_contain_text("1 flagged")
    expect(row).to_contain_text("24 cells unknown")
    no_serious_findings(page)
    row.get_by_role("link", name="nightly").click()
    expect(page.locator(".verdict")).to_contain_text(
        "NO VERDICT: 4 of 48 cells could not be graded; 16 of 41 graded cells failed"
    )
    expect(page.get_by_text("95 % interval").first).to_be_visible()
    expect(page.get_by_text("1 reward outside 0 to 1 cut to that").first).to_be_visible()
    expect(page.locator(".trials").first).to_be_visible()
    assert page.title() == "nightly · assay", "what an agent wrote did not run"
    assert page.locator("main img").count() == 0
    no_serious_findings(page)
    # A cell of the matrix opens its trials.
    page.get_by_role("link", name="plan-route, codex · gpt-6-mini").click()
    expect(page.locator(".total")).to_have_text("3 cells")
    assert set(_rows(page)) == {"plan-route"}
    assert "case=plan-route" in page.url
    # All columns, what is sought first and how it ended second, each with its unit.
    grid = page.get_by_role("grid")
    there = re.compile("/cell[?]case=plan-route&harness=codex")
    expect(grid.get_by_role("link", name="plan-route").last).to_have_attribute("href", there)
    expect(grid.get_by_role("columnheader")).to_have_text(
        ["Case", "Outcome", "Why", "Agent", "Trial", "Cost", "Tokens", "Time"]
    )
    expect(grid.get_by_role("row").last.get_by_role("gridcell")).to_have_text(
        ["plan-route", "1.00 pass", " tests 1.00", "codex · gpt-6-mini", "3", "unknown", "17,930",
         "1 min 2 s"]
    )  # fmt: skip
    page.go_back()
    # What is most probably wanted next is a link, which opens in another tab, too.
    page.get_by_role("link", name="Read the failures").click()
    expect(page.locator(".total")).to_have_text("16 cells")
    page.go_back()
    # A cause opens its cells, as many as it says.
    page.locator(".causes li a").click()
    expect(page.locator(".total")).to_have_text("4 cells")
    page.get_by_role("button", name=re.compile("Take this filter away")).click()
    # Errors are all errors, whatever number stands in them; the toggle is pressed in the address.
    expect(page.get_by_role("button", name="4 errors")).to_have_attribute("aria-pressed", "true")
    for said in ("25 passed", "16 failed", "3 skipped"):
        expect(page.get_by_role("button", name=said)).to_have_attribute("aria-pressed", "false")
    no_serious_findings(page)
    page.get_by_role("tab", name="Config").click()
    expect(page.locator("pre")).to_contain_text('"trials": 3')
    expect(page.get_by_text(f"assay regrade {MIXED}", exact=True)).to_be_visible()
    no_serious_findings(page)


def test_the_trend_of_a_suite_has_its_intervals(stored: Site, open_page: Opener) -> None:
    """They rest on cases, of which each has three trials here."""
    rate = r"\d+ % \(\d+.\d+ %\)"
    said = re.compile(f"^Pass rate of evals: {rate}, {rate}")
    expect(open_page("/").get_by_role("img", name=said)).to_be_visible()


def test_the_address_says_what_is_looked_at(stored: Site, open_page: Opener) -> None:
    page = open_page("/runs/nightly?tab=cells&flagged=true")
    expect(page.get_by_role("grid").get_by_role("row").last).to_contain_text("flagged")
    expect(page.locator(".total")).to_have_text("1 cell")
    page = open_page("/runs/nightly?tab=cells&outcome=fail&harness=codex&model=gpt-6-mini")
    expect(page.get_by_label("Agent")).to_have_value('["codex","gpt-6-mini"]')
    expect(page.locator(".total")).to_have_text("9 cells")
    page.get_by_label("Find cases by name").fill("UNICODE")
    expect(page.locator(".total")).to_have_text("1 cell")
    assert "search=UNICODE" in page.url
    page.get_by_label("Find cases by name").fill("nothing like it")
    expect(page.get_by_role("heading", name="No cell is like that")).to_be_visible()


def test_ten_thousand_cells_are_a_few_rows_at_a_time(stored: Site, open_page: Opener) -> None:
    page = open_page("/runs/big?tab=cells")
    expect(page.locator(".total")).to_have_text("10,000 cells")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", "10001")
    most = 0
    for index in (90, 2_650, 5_900, 10_000):
        grid.evaluate("(one, to) => { one.scrollTop = to }", index * 36)
        expect(grid.locator(f'[aria-rowindex="{index + 1}"] a')).to_be_visible()
        most = max(most, grid.get_by_role("row").count())
    assert most < 60
    assert page.locator("*").count() < 1_500
    expect(grid.get_by_role("row").last).to_contain_text("case-0999")
    # By keys, to the other end and back, and into a cell.
    grid.focus()
    page.keyboard.press("Home")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    chosen = grid.locator('[aria-selected="true"]')
    expect(chosen).to_have_attribute("aria-rowindex", "3")
    page.keyboard.press("End")
    expect(chosen).to_have_attribute("aria-rowindex", "10001")
    expect(chosen).to_contain_text("case-0999")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/cell\?case=case-0999&harness=codex&model=gpt-6-mini&trial=5"))
    page.go_back()
    expect(chosen).to_contain_text("case-0999")
    page.get_by_role("button", name="Cost").click()
    expect(page.get_by_role("columnheader", name="Cost")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(grid.get_by_role("row").nth(1)).to_contain_text("$0.0060")


@pytest.mark.parametrize(
    ("path", "role", "name"),
    [
        ("/runs/big?tab=cells", "grid", "Cells"),
        ("/runs/long/cell?case=c&trial=1", "region", "Steps"),
    ],
    ids=["cells", "steps"],
)
def test_a_frame_of_scrolling_is_little_work(
    stored: Site,
    open_page: Opener,
    record_property: Callable[[str, object], None],
    path: str,
    role: Literal["grid", "region"],
    name: str,
) -> None:
    box = open_page(path).get_by_role(role, name=name)
    expect(box.locator("[role=gridcell] a, article").first).to_be_visible()
    # Down, where rows are asked for as they come into sight, and up again, where all are there.
    worked = sorted(busy(box, 400) + busy(box, -400))
    assert len(worked) > FRAMES
    p95 = worked[int(0.95 * len(worked))]
    record_property(f"{name}: milliseconds a frame, p95", round(p95, 1))
    assert p95 <= MOST_MS


def test_a_run_of_another_process_is_followed_while_it_goes_on(
    stored: Site, open_page: Opener, children: Children
) -> None:
    page = open_page("/runs")
    expect(page.locator("tr", has_text=BIG)).to_be_visible()
    process = children.start(
        [*COMMAND, "run", _waiting_case(stored.home), "--name", "live", "--workers", "6"],
        cwd=stored.home,
        env=environment(stored.home),
    )
    page.get_by_role("button", name="1 new run").click()
    row = page.locator("tr", has_text="live")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("3 of 6")
    row.get_by_role("link", name="live").click()
    expect(page.locator(".verdict")).to_have_text("Running: 3 of 6 cells have a result.")
    page.get_by_role("tab", name="Cells").click()
    expect(page.locator(".total")).to_have_text("3 cells")
    with Store.open(str(stored.home / ".assay")) as store:
        run = store.run("live").id
        first = next(iter(store.cells(run)))
        store.add_cell(replace(first, case="aaa"), {})
    # What somebody looks at stays where it is until they ask for what is new.
    expect(page.locator(".counts")).to_contain_text("4 of 6 cells")
    chip = page.get_by_role("button", name="1 new cell")
    expect(chip).to_be_visible()
    assert "aaa" not in _rows(page)
    chip.click()
    expect(page.locator(".total")).to_have_text("4 cells")
    assert _rows(page)[0] == "aaa"
    _is_seen_at_work(page, stored.home, run, ("waits", "patient", "slow", 1))
    process.send_signal(signal.SIGINT)
    process.communicate()
    expect(page.locator("h1")).to_contain_text("interrupted")
    expect(page.get_by_text(f"assay run --resume {run}", exact=True)).to_be_visible()


def _is_seen_at_work(page: Page, home: Path, run: str, cell: CellKey) -> None:
    """What an agent does is there as it does it, in a list and in steps."""
    at = datetime.now(UTC).isoformat()
    journal = Path(journal_of(str(home / ".assay"), run, cell))
    journal.parent.mkdir(parents=True)
    append(journal, encoded(Begun(of=label_of(cell), at=at)))
    asked = Turn.of("user", f"Mend it. {HOSTILE}")
    append(journal, encoded(AskedEvent(number=1, at=at, line=0, kept=0, turns=(asked,))))
    page.get_by_role("tab", name="Overview").click()
    page.get_by_role("table", name="Cells under way").get_by_role("link", name="waits").click()
    expect(page.get_by_text("The agent is at work: 1 step so far.")).to_be_visible()
    expect(page.get_by_role("article", name="Step 1", exact=True)).to_contain_text("Mend it.")
    said = Turn.of("assistant", "I look at the parser first.")
    append(journal, encoded(Answered(number=1, at=at, reply=AssistantTurn(turn=said))))
    expect(page.get_by_role("article", name="Step 2")).to_contain_text("I look at the parser")
    journal.unlink()
    page.go_back()


def _waiting_case(home: Path) -> str:
    """A case of which three cells are done at once, and three wait to be interrupted."""
    write_case(
        home,
        """
        id: waits
        task: {prompt: "hello"}
        matrix: {harnesses: [patient], models: [quick, slow], trials: 3}
        graders: [{type: contains, substring: "done"}]
        """,
    )
    script = 'echo done; [ "$1" = quick ] || sleep 600'
    argv = ["/bin/sh", "-c", script, "sh", "{model}"]
    (home / "harnesses.yaml").write_text(json.dumps({"patient": {"argv": argv}}), "utf-8")
    return "evals"


def test_a_run_is_deleted_after_its_consequences_are_read(stored: Site, open_page: Opener) -> None:
    doomed = "20261119-010101-dead"
    run, cells = mixed_run(doomed)
    add_run(stored.home, replace(run, label="doomed", finished=False), cells)
    other = open_page(f"/runs/{doomed}")  # as a colleague has it open
    expect(other.locator("h1")).to_contain_text("doomed")
    page = open_page(f"/runs/{doomed}")
    page.get_by_role("button", name="More about run doomed").click()
    page.get_by_role("menuitem", name="Delete …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("48 results")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    # And all of it by keyboard.
    page.get_by_role("button", name="More about run doomed").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Keep the files")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    expect(page.locator("tr", has_text=doomed)).to_have_count(0)
    expect(other.get_by_role("heading", name="This run was deleted")).to_be_visible()
    other.close()
    # What the colleague's page asked for in that moment is not there: the browser notes it.
    open_page.watch.faults[:] = [one for one in open_page.watch.faults if "404" not in one]


def test_two_runs_are_chosen_and_compared(stored: Site, open_page: Opener) -> None:
    older = "20261117-010101-0cd0"
    run, cells = mixed_run(older)
    add_run(stored.home, replace(run, label="before"), cells)
    page = open_page("/runs")
    expect(page.get_by_role("button", name="Compare two")).to_be_disabled()
    page.get_by_label("Choose nightly to compare").click()
    page.get_by_label("Choose before to compare").click()
    page.get_by_role("link", name="Compare 2 of 2").click()
    page.wait_for_url(re.compile(rf"/compare\?a={older}&b={MIXED}"))
    page = open_page("/runs?search=nightly")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Find runs").fill("no such")
    expect(page.get_by_role("heading", name="No run is like that")).to_be_visible()


def test_a_decision_and_hostile_names_count_and_are_text(stored: Site, open_page: Opener) -> None:
    run, cells = mixed_run("20261118-010101-de1d")
    add_run(stored.home, replace(run, label="decided"), cells)
    page = open_page("/runs/decided?tab=cells&flagged=true")
    expect(page.locator(".total")).to_have_text("1 cell")
    with Store.open(str(stored.home / ".assay")) as store:
        flagged = next(cell for cell in store.cells(run.id) if cell.flags)
        decide(store, flagged, Decision(ruling="zero", by=HOSTILE, note=HOSTILE))
    page.reload()
    row = page.get_by_role("grid").get_by_role("row").last
    expect(row).to_contain_text("decided: zero")
    expect(row).to_contain_text("0.00")
    expect(row).to_contain_text("fail")
    page.get_by_role("tab", name="Overview").click()
    expect(page.locator(".verdict")).to_contain_text("17 of 41 graded cells failed")
    assert page.title() == "decided · assay"


def test_an_unknown_run_is_a_page_that_says_so(stored: Site, open_page: Opener) -> None:
    page = open_page("/runs/none")
    expect(page.get_by_role("heading", name="There is no such run")).to_be_visible()
    open_page.watch.faults[:] = [one for one in open_page.watch.faults if "404" not in one]
