"""Datasets, jobs and traces, as a person uses them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from web.conftest import Opener, Site, no_serious_findings

XSS = "<img src=x onerror=document.title='pwned'><script>document.title='pwned'</script>"
EXACT = {"graders": [{"type": "exact_match"}]}
LOOSE = {"graders": [{"type": "exact_match", "normalize_text": False}]}
FUNCTION = (
    "async def grade(thread):\n"
    "    if thread.completion() == 'broken':\n"
    "        raise ValueError('no ' + str(thread['metadata'].get('n')))\n"
    "    return 1.0 if thread.completion() == '4' else 0.25\n"
)


@pytest.fixture(scope="module", autouse=True)
def graders(site: Site) -> None:
    site.post("graders", {"key": "exact", "kind": "declared", "definition": EXACT})
    site.post("graders", {"key": "four", "kind": "function", "definition": {"source": FUNCTION}})


def upload(page: Page, file: Path) -> None:
    page.goto(re.sub(r"(//[^/]+)/.*", r"\1/p/post/datasets", page.url))
    page.get_by_role("button", name="Upload").click()
    page.get_by_label("File of JSON lines").set_input_files(file)


def test_a_file_is_looked_at_mended_and_stored(
    site: Site, open_page: Opener, tmp_path: Path
) -> None:
    site.post("/api/v1/projects", {"key": "post"})
    page = open_page("/p/post/datasets")
    expect(page.get_by_text("No datasets yet")).to_be_visible()
    no_serious_findings(page)

    file = tmp_path / "From Elsewhere.jsonl"
    rows = [{"prompt": "2 + 2?", "output": "4", "target": "4", "extra": XSS} for _ in range(3)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    upload(page, file)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("3 of the first 3 rows cannot be stored")).to_be_visible()
    expect(dialog.get_by_text("rename 'output'").first).to_be_visible()
    dialog.get_by_label("answer is called").select_option("output")
    dialog.get_by_role("button", name="Take target as expected, prompt as question").click()
    expect(dialog.get_by_text("the first 3 rows can be stored")).to_be_visible()
    no_serious_findings(page)
    expect(dialog.get_by_label("Key")).to_have_value("from-elsewhere")
    dialog.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("from-elsewhere")
    expect(page.get_by_role("grid", name="Rows")).to_contain_text("2 + 2?")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "from-elsewhere.jsonl"
    read = Path(saved.value.path()).read_text("utf-8").splitlines()
    assert [json.loads(line)["answer"] for line in read] == ["4"] * 3

    # A table is no dataset yet: how to make one of it is said.
    table = tmp_path / "answers.csv"
    table.write_text("question,answer\n2 + 2?,4\n")
    upload(page, table)
    expect(dialog.get_by_text("This is a table")).to_be_visible()
    expect(dialog.get_by_text("csv.DictReader")).to_be_visible()
    expect(dialog.get_by_role("button", name="Store")).to_be_disabled()
    for path in ("/p/post/jobs", "/p/post/traces"):
        page.goto(f"{site.server.url}{path}")
        main = page.get_by_role("navigation", name="Main")
        expect(main.get_by_role("link", name="Data")).to_have_attribute("aria-current", "page")
        no_serious_findings(page)

    # A mistake beyond what is looked at: told with its line, and nothing is stored.
    lines = ['{"answer": "4"}'] * 60 + ['{"answer": 5.0}', "{]"]
    file.write_text("\n".join(lines))
    upload(page, file)
    page.get_by_role("textbox", name="Key").fill("bad")
    with page.expect_response(lambda answer: "datasets/bad" in answer.url) as answered:
        page.get_by_role("button", name="Store").click()
    assert answered.value.status in (400, 422)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("line 61")
    expect(alert).to_contain_text("line 62")
    open_page.watch.faults.clear()  # a browser writes refused requests to its console
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("link", name="bad")).to_have_count(0)
    no_serious_findings(page)
    page.get_by_role("link", name="from-elsewhere").click()
    page.get_by_role("button", name="Delete …").click()
    expect(page.get_by_role("dialog")).to_contain_text("3 rows will be gone for good")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No datasets yet")).to_be_visible()


def test_rows_are_read_by_keyboard_however_many_and_whatever_they_say(
    site: Site, open_page: Opener
) -> None:
    rows: list[object] = [{"id": f"r{n}", "answer": str(n), "expected": "4"} for n in range(10_000)]
    rows[1] = {"id": XSS, "question": XSS, "answer": XSS, "expected": {"x": XSS}, "m": XSS}
    rows[2] = {"id": "long", "answer": "y" * 1_000_000}
    rows[3] = {"messages": [{"role": "user", "content": XSS}, {"role": "assistant", "content": ""}]}
    site.upload("many", rows)
    page = open_page("/p/default/datasets/many")
    grid = page.get_by_role("grid", name="Rows")
    expect(grid).to_contain_text("r0")
    grid.focus()
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile(r"row=2$"))
    opened = page.get_by_role("complementary")
    expect(opened).to_contain_text("onerror=document.title")
    no_serious_findings(page)
    page.keyboard.press("j")
    expect(opened).to_contain_text("characters cut")
    page.keyboard.press("j")
    expect(opened).to_contain_text("(empty)")
    page.keyboard.press("End")
    expect(opened).to_contain_text("r9999")
    expect(grid).to_contain_text("r9999")
    assert grid.get_by_role("row").count() < 80
    page.go_back()
    expect(opened).to_have_count(0)
    assert page.title() == "many · assay"
    assert page.locator("img[src=x]").count() == 0


def test_a_job_is_begun_watched_and_read(site: Site, open_page: Opener) -> None:
    rows: list[object] = [
        {"id": f"n{n}", "answer": "broken" if n % 20 == 7 else str(4 + n % 2), "expected": "4"}
        for n in range(200)
    ]
    rows[0] = {"id": XSS, "answer": XSS, "expected": "4"}
    site.upload("sums", rows)
    page = open_page("/p/default/datasets/sums")
    page.get_by_role("button", name="Grade with …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Grader")).to_contain_text("exact@1")
    no_serious_findings(page)
    dialog.get_by_label("Grader").select_option("four")
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("four@1 on sums")
    # Told by events: nothing is asked for in between.
    said = page.get_by_role("main").get_by_role("status").first
    expect(said).to_contain_text("Finished: 200 of 200")
    expect(said).to_contain_text("10 could not be graded")
    expect(page.get_by_text("; 190 rows")).to_be_visible()
    expect(page.get_by_role("region", name="Why rows could not")).to_contain_text("10")
    expect(page.get_by_text("never measured")).to_be_visible()

    page.get_by_role("region", name="Why rows could not").get_by_role("link").click()
    expect(page).to_have_url(re.compile("status=error"))
    expect(page.get_by_role("tab", name="error 10")).to_have_attribute("aria-selected", "true")
    grid = page.get_by_role("grid", name="Results")
    expect(grid).to_have_attribute("aria-rowcount", "11")
    grid.focus()
    page.keyboard.press("j")
    expect(page.get_by_role("complementary")).to_contain_text("ValueError")
    page.get_by_role("tab", name="all 200").click()
    page.get_by_label("Order").select_option("score")
    expect(grid).to_contain_text("0.25")
    grid.focus()
    page.keyboard.press("j")
    expect(page.get_by_role("complementary")).to_contain_text("onerror=document.title")
    no_serious_findings(page)

    site.upload("others", [{"answer": "4", "expected": "4"}])
    other = site.post("jobs", {"grader": "exact", "dataset": "others"})
    made = site.post("jobs", {"grader": "exact", "dataset": "sums"})

    def at_work(route: Route) -> None:
        """As it stands a moment before its end."""
        answer = route.fetch()
        route.fulfill(response=answer, body=re.sub('"finished"', '"running"', answer.text()))

    page.route("**/default/jobs?*", at_work)
    page.goto(f"{site.server.url}/p/default/jobs")
    row = page.get_by_role("row").filter(has_text=made["id"])
    expect(row).to_contain_text("running")
    page.unroute("**/default/jobs?*")
    expect(row).to_contain_text("finished")  # by itself
    expect(page.get_by_role("row").filter(has_text=other["id"])).to_be_visible()
    no_serious_findings(page)
    page.goto(f"{site.server.url}/p/default/datasets/sums?tab=jobs")
    expect(page.get_by_role("row").filter(has_text=other["id"])).to_have_count(0)
    row.get_by_role("link", name="exact@1 on sums").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("exact@1 on sums")
    page.get_by_role("button", name="Delete …").click()  # the dataset's page has one, too
    expect(page.get_by_role("dialog")).to_contain_text("200 results will be gone")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(row).to_have_count(0)
    assert "pwned" not in page.title()
