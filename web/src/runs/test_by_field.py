"""A run, and two, broken down by what their rows have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site

HOSTILE = '<img src=x onerror="window.hacked=1">'
TOPICS = ("algebra", "words", HOSTILE)


@pytest.fixture(scope="module")
def runs(site: Site) -> list[str]:
    """Two runs of 30 rows; in the second one all of `words` are right."""
    (site.home / "g.yaml").write_text("graders: [{type: exact_match}]\n")
    for right in ("algebra", "algebra words"):
        rows = [
            {
                "id": f"r{n}",
                "answer": "yes" if TOPICS[n % 3] in right.split() else "no",
                "expected": "yes",
                "metadata": {"topic": TOPICS[n % 3], "long": "x" * 200},
            }
            for n in range(30)
        ]
        (site.home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        site.assay("grade", "rows.jsonl", "g.yaml", code=1)
    found = site.http.get("/api/v1/runs").json()["items"]
    return [run["id"] for run in reversed(found)]


def test_a_run_is_broken_down_by_a_field_that_its_rows_have(
    runs: list[str], open_page: Opener, no_serious_findings: Callable[[Page], None]
) -> None:
    page = open_page(f"/runs/{runs[0]}")
    field = page.get_by_label("By", exact=True)
    expect(field.locator("option")).to_have_text(
        ["no field", "topic"]
    )  # `long` tells nothing apart
    field.select_option("topic")
    expect(page).to_have_url(re.compile("by=topic"))
    table = page.get_by_role("table", name="Cells by topic")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row").nth(1)).to_contain_text(HOSTILE)
    expect(table.get_by_role("row").nth(3)).to_contain_text("100 % of 10")
    assert page.evaluate("() => window.hacked") is None
    no_serious_findings(page)
    page.reload()
    expect(table.get_by_role("row")).to_have_count(4)
    page.go_back()
    expect(table).to_have_count(0)

    page = open_page(f"/runs/{runs[0]}?by=topik")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'topic'?")
    page.get_by_label("By", exact=True).select_option("topic")
    expect(page.get_by_role("table", name="Cells by topic")).to_be_visible()
    open_page.forgive("status of 422")


def test_two_runs_are_compared_by_a_field(runs: list[str], open_page: Opener) -> None:
    page = open_page(f"/compare?a={runs[0]}&b={runs[1]}")
    page.get_by_label("By", exact=True).select_option("topic")
    first = page.get_by_role("table", name="Cases by topic").get_by_role("row").nth(1)
    expect(first).to_have_text(re.compile(r"^words\s*10\s*0.00\s*1.00\s*\+1.000\+0.383 to \+1"))
    command = f"assay compare {runs[0]} {runs[1]} --by=topic"
    expect(page.get_by_text(command, exact=True)).to_be_visible()


@pytest.mark.usefixtures("runs")
def test_a_run_without_fields_has_nothing_to_choose(site: Site, open_page: Opener) -> None:
    (site.home / "plain.jsonl").write_text('{"id": "1", "answer": "yes", "expected": "yes"}\n')
    site.assay("grade", "plain.jsonl", "g.yaml")
    page = open_page(f"/runs/{site.http.get('/api/v1/runs').json()['items'][0]['id']}")
    expect(page.get_by_text("Mean reward")).to_be_visible()
    expect(page.get_by_label("By", exact=True)).to_have_count(0)
