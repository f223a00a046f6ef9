"""What is said of runs in numbers: their scores, their groups, by a field, and two compared."""

from __future__ import annotations

import json
import re
from typing import Any, cast
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from web.conftest import Opener, Site, no_serious_findings
from web.src.runs.graded_runs import cell, noisy, store_run

from assay.reports.comparing.comparison import signed

IMAGE = '<img src=x onerror="window.hacked=1">'
HOSTILE = f"{IMAGE}<script>window.hacked=1</script>"
DAY = "2026-11-2{}T09:00:00+00:00"
TOPICS = ("algebra", "words", IMAGE)
MAIN, GROUPS, FLOOR, LONE = "20261121-a", "20261116-k", "20261116-l", "20261116-m"
REWARDS: dict[str, list[float | None]] = {
    "alike": [0.5, 0.5],
    "half-broken": [1.0, None, 0.25],
    "learns": [1.0, 0.0, 0.5],
    "right": [1.0, 1.0],
    "wrong": [0.0, 0.0],
}


@pytest.fixture(scope="module", autouse=True)
def _runs(site: Site) -> None:
    store_run(site.home, MAIN, noisy(60), label="main", created_at=DAY.format(1))
    worse = noisy(60, gain=-0.2)
    store_run(site.home, "20261122-b", worse, label="change", created_at=DAY.format(2))
    same = noisy(60, seed=2)
    store_run(site.home, "20261123-c", same, label="again", created_at=DAY.format(3))
    two = [*noisy(30, model="large", gain=0.2), *noisy(30)]
    store_run(site.home, "20261120-d", two, label="both", created_at=DAY.format(0))
    for run, value in (("20261119-e", 1.0), ("20261119-f", 0.0)):
        cells = [
            cell(f"{HOSTILE}{n}", {HOSTILE: value}, model=HOSTILE, reason=HOSTILE,
                 answer=HOSTILE if n else f"{HOSTILE}{'word ' * 200_000}")
            for n in range(8)
        ]  # fmt: skip
        store_run(site.home, run, cells, label=f"{HOSTILE}{value}", created_at=DAY.format(0))
    for run, gain in (("20261118-g", 0.0), ("20261118-h", -0.1)):
        store_run(site.home, run, noisy(5_000, gain=gain), created_at=DAY.format(0))
    broken = [cell(f"case-{n // 2:04}", {"judge": None}, trial=1 + n % 2) for n in range(6)]
    store_run(site.home, "20261117-i", broken, created_at=DAY.format(0))
    cells = [
        cell(case, {HOSTILE: reward}, trial=trial, seconds=trial * 9.0, grader_seconds=trial * 2.0)
        for case, rewards in REWARDS.items()
        for trial, reward in enumerate(rewards, 1)
    ]
    store_run(site.home, GROUPS, cells, created_at=DAY.format(0))
    floor = [cell(case, {"tests": 0.5}) for case in REWARDS]
    store_run(site.home, FLOOR, floor, label="noop", created_at=DAY.format(0))
    store_run(site.home, LONE, [cell("c", {"tests": 1.0})], created_at=DAY.format(0))


@pytest.fixture(scope="module")
def graded(site: Site) -> tuple[str, str]:
    """Two runs of 30 rows; in the second one all of `words` are right."""
    return _graded(site, "algebra"), _graded(site, "algebra words")


def _graded(site: Site, right: str) -> str:
    """Grade rows that have topics, of which some are right; the run's id."""
    rows = [
        {
            "id": f"r{n}",
            "answer": "yes" if TOPICS[n % 3] in right.split() else "no",
            "expected": "yes",
            "metadata": {"topic": TOPICS[n % 3], "long": "x" * 200},
        }
        for n in range(30)
    ]
    (site.home / "g.yaml").write_text("graders: [{type: exact_match}]\n")
    (site.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = set(_ids(site))
    site.assay("grade", "rows.jsonl", "g.yaml", code=1)
    (made,) = set(_ids(site)) - before
    return made


def _ids(site: Site) -> list[str]:
    """The runs that there are, the newest first."""
    return [run["id"] for run in site.http.get("/api/v1/runs").json()["items"]]


def test_a_run_without_a_reward_has_no_zeros_and_no_empty_bars(open_page: Opener) -> None:
    page = open_page("/runs/20261117-i?tab=scores")
    card = page.get_by_role("tabpanel").get_by_role("listitem").first
    expect(card).to_contain_text("no scores")
    expect(card).to_contain_text("6 errors")
    expect(page.get_by_role("img", name=re.compile("^Scores: "))).to_have_count(0)
    page.get_by_role("tab", name="Trainability").click()
    expect(page.get_by_role("heading", name="No cell has a reward")).to_be_visible()
    expect(page.get_by_role("heading", name="There is nothing to compare")).to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("^Graded cells by reward"))).to_have_count(0)


def test_histograms_have_errors_beside_them_and_are_a_table_too(open_page: Opener) -> None:
    page = open_page(f"/runs/{MAIN}?tab=scores")
    cards = page.get_by_role("tabpanel").get_by_role("listitem")
    expect(cards).to_have_count(4)
    judge = cards.filter(has_text="judge")
    expect(judge).to_contain_text("2 errors")  # beside the histogram, whose n they are no part of
    expect(judge).to_contain_text("n 58")
    no_serious_findings(page)
    page.get_by_role("button", name="Show as a table").click()
    expect(page.get_by_role("row", name=re.compile("^judge 58"))).to_be_visible()
    page.go_back()
    expect(judge).to_be_visible()


def test_what_was_graded_is_never_more_than_text_in_a_histogram(open_page: Opener) -> None:
    page = open_page("/runs/20261119-e?tab=scores")
    expect(page.get_by_text("onerror").first).to_be_visible()
    page.get_by_role("button", name="Show as a table").click()
    expect(page.get_by_role("cell").filter(has_text="onerror")).to_be_visible()
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_thousands_of_cells_are_counted_on_the_server(open_page: Opener) -> None:
    page = open_page("/runs/20261118-g?tab=scores")
    expect(page.get_by_text("5,000 cells, 3 graders")).to_be_visible()
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1_500


def test_groups_are_told_apart_and_a_floor_is_chosen(open_page: Opener) -> None:
    page = open_page(f"/runs/{GROUPS}")
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
    open_page.forgive("Failed to load resource")


def test_the_sentence_the_numbers_and_the_regressions_are_those_of_the_command(
    site: Site, open_page: Opener
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


def test_what_chance_explains_is_called_no_clear_difference(site: Site, open_page: Opener) -> None:
    page = open_page("/compare")
    page.get_by_role("button", name="Compare the two newest").click()
    newest, older = _ids(site)[:2]
    expect(page).to_have_url(re.compile(f"a={older}&b={newest}"))
    for side, run in (("Before", "main"), ("After", "20261123-c")):
        page.get_by_role("group", name=side).get_by_label("Run").fill(run)
        page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Finding")).to_contain_text("No clear difference")
    open_page.forgive("status of 422")  # where only one side was chosen yet
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


def test_what_was_graded_is_never_more_than_text_beside_another_run(open_page: Opener) -> None:
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


def test_a_run_is_broken_down_by_a_field_that_its_rows_have(
    graded: tuple[str, str], open_page: Opener
) -> None:
    page = open_page(f"/runs/{graded[0]}")
    field = page.get_by_label("By", exact=True)
    expect(field.locator("option")).to_have_text(
        ["no field", "topic"]
    )  # `long` tells nothing apart
    field.select_option("topic")
    expect(page).to_have_url(re.compile("by=topic"))
    table = page.get_by_role("table", name="Cells by topic")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row").nth(1)).to_contain_text(IMAGE)
    expect(table.get_by_role("row").nth(3)).to_contain_text("100 % of 10")
    assert page.evaluate("() => window.hacked") is None
    no_serious_findings(page)
    page.reload()
    expect(table.get_by_role("row")).to_have_count(4)
    page.go_back()
    expect(table).to_have_count(0)

    page = open_page(f"/runs/{graded[0]}?by=topik")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'topic'?")
    page.get_by_label("By", exact=True).select_option("topic")
    expect(page.get_by_role("table", name="Cells by topic")).to_be_visible()
    open_page.forgive("status of 422")


def test_two_runs_are_compared_by_a_field(graded: tuple[str, str], open_page: Opener) -> None:
    page = open_page(f"/compare?a={graded[0]}&b={graded[1]}")
    page.get_by_label("By", exact=True).select_option("topic")
    first = page.get_by_role("table", name="Cases by topic").get_by_role("row").nth(1)
    expect(first).to_have_text(re.compile(r"^words\s*10\s*0.00\s*1.00\s*\+1.000\+0.383 to \+1"))
    command = f"assay compare {graded[0]} {graded[1]} --by=topic"
    expect(page.get_by_text(command, exact=True)).to_be_visible()


def test_a_run_without_fields_has_nothing_to_choose(open_page: Opener) -> None:
    page = open_page(f"/runs/{LONE}")
    expect(page.get_by_text("Mean reward")).to_be_visible()
    expect(page.get_by_label("By", exact=True)).to_have_count(0)
