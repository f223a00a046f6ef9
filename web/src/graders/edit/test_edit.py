"""Writing a function grader on the page, and trying it before it is saved."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from web.conftest import Opener, Site, no_serious_findings

from assay.types.thread import StringThread

HEAD = "async def grade(thread: StringThread) -> float:\n"
EXACT = f"{HEAD}    return 1.0 if thread.completion() == thread.metadata.get('expected') else 0.0\n"
HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>"
ROWS = [
    {
        "id": f"sum {n}",
        "question": f"What is {n} + 1?",
        "answer": str(n + 1) if n % 3 else HTML,
        "expected": str(n + 1),
        "metadata": {"level": n, "topic": "sums"},
    }
    for n in range(1, 31)
]


@pytest.fixture(scope="module", autouse=True)
def stored(site: Site) -> None:
    site.upload("sums", ROWS)
    for key in ("exact", "locked"):
        site.post("graders", {"key": key, "kind": "function", "definition": {"source": EXACT}})
    where = "/api/v1/projects/default/graders/locked/lock"
    assert site.http.put(where, json={"locked": True}).status_code == 200


def write(page: Page, source: str) -> None:
    """Replace the source, as by pasting."""
    editor = page.get_by_label("Source of the function")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def row_of(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name="Scores").get_by_role("row").filter(has_text=name)


def ran(page: Page, summary: str) -> None:
    expect(page.get_by_text(summary)).to_be_visible()


def test_a_function_is_written_tried_mended_and_saved(open_page: Opener, site: Site) -> None:
    page = open_page("/p/default/graders/new/function")
    checks = page.get_by_role("list", name="Checks")
    save = page.get_by_role("button", name="Create grader")
    expect(save).to_be_disabled()

    write(page, f"{HEAD}    return (1.0\n")
    expect(page.locator(".cm-lintRange-error")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("'(' was never closed")
    expect(checks.get_by_role("listitem").first).to_contain_text("failed")

    write(page, f"{HEAD}    return 'yes'\n")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("it returned str")
    expect(row_of(page, "built-in: right")).to_contain_text("error")

    write(page, f"{HEAD}    print('{HTML}')\n    raise ValueError('{HTML}')\n")
    page.get_by_role("button", name="Run").click()
    right = row_of(page, "built-in: right")
    expect(right).to_contain_text(f"ValueError: {HTML}")
    right.get_by_text("stdout").click()
    expect(right.locator("pre")).to_have_text(f"{HTML}\n")
    right.get_by_role("button", name="line 3").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("raise ValueError")
    expect(page.locator(".cm-gutter-lint .cm-lint-marker-error")).to_be_visible()
    no_serious_findings(page)

    write(page, EXACT)
    page.get_by_role("button", name="Hostile").click()
    expect(page.get_by_text("9 samples", exact=True)).to_be_visible()
    page.keyboard.press("Control+Enter")
    ran(page, "9 samples: 9 scored, 0 not as wanted")
    expect(checks).to_contain_text("Test run")
    no_serious_findings(page)

    key = page.get_by_label("Key (required)")
    page.get_by_label("Name", exact=True).focus()
    save.click()
    expect(key).to_be_focused()  # the form says that it lacks one
    key.fill("Sums right")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.press("Control+s")
    expect(key).to_be_focused()
    key.fill("sums-right")
    page.get_by_label("Description").fill(f"Strict equality {HTML}")
    page.keyboard.press("Control+s")
    expect(page).to_have_url(re.compile("/p/default/graders/sums-right/edit"))
    expect(page.get_by_text("Saved as version 1")).to_be_visible()
    made = site.http.get("/api/v1/projects/default/graders/sums-right").json()
    assert made["latest"]["definition"] == {"source": EXACT}
    assert made["description"] == f"Strict equality {HTML}"
    assert page.evaluate("document.querySelectorAll('main script, main img').length") == 0


def test_a_draft_stands_beside_the_saved_version(open_page: Opener) -> None:
    page = open_page("/p/default/graders/exact/edit?samples=dataset&dataset=sums&take=4")
    write(page, EXACT.replace("1.0 if", "0.5 if"))
    page.get_by_role("button", name="Run").click()
    ran(page, "4 samples: 4 scored, 3 changed since exact@1")
    scores = page.get_by_role("table", name="Scores")
    expect(scores.get_by_role("row").nth(1)).to_contain_text("-0.5")
    expect(scores.get_by_role("row").last).to_contain_text("sum 3")
    expect(scores).to_contain_text(HTML)

    page.get_by_label("Score that sum 1 should get").fill("1")
    expect(row_of(page, "sum 1")).to_contain_text("run again")
    page.keyboard.press("Control+Enter")
    expect(row_of(page, "sum 1")).to_contain_text("wanted 1, got 0.5")

    page.get_by_role("button", name="Changes").click()
    expect(page.locator(".cm-merge-b .cm-changedText").first).to_contain_text("0.5")
    expect(page).to_have_url(re.compile("view=changes"))
    page.get_by_role("button", name="Back to editing").click()

    page.get_by_role("combobox", name="Rows").select_option("chosen")
    page.get_by_role("checkbox").nth(1).check()
    page.get_by_role("button", name="More rows").click()
    page.get_by_role("checkbox", name="10").check()
    expect(page).to_have_url(re.compile(r"rows=2(%2C|,)10"))
    page.get_by_role("button", name="Run").click()
    ran(page, "2 samples: 2 scored, 2 changed since exact@1")

    # What was not saved is asked about, kept, and still there.
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("button", name="Leave and keep them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    page.go_back()
    expect(page.get_by_text("changes that you had not saved")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("0.5 if")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".cm-content")).to_contain_text("1.0 if")


def test_own_samples_completion_and_a_loop_that_is_cut_off(open_page: Opener) -> None:
    page = open_page("/p/default/graders/new/function?samples=own&dataset=sums")
    own = page.get_by_label("JSON, or an object on each line")
    own.fill('{"answer": "4"}\n{"answer": ')
    expect(page.get_by_text("line 2")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    own.fill('{"answer": "stop"}')
    page.get_by_role("button", name="Write one field by field").click()
    page.get_by_label("Answer").fill("loop")
    page.get_by_role("button", name="Add the sample").click()
    expect(page.get_by_text("2 samples", exact=True).first).to_be_visible()

    write(page, f"{HEAD}    while thread.")
    page.keyboard.type("compl")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("completion")
    page.wait_for_timeout(100)  # the list takes no key in its first moment
    page.keyboard.press("Enter")
    page.keyboard.insert_text(" == 'loop': pass\n    return thread.metadata['")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("level")
    loops = "    while thread.completion() == 'loop':\n        time.sleep(1)\n    return 1.0\n"
    write(page, f"import time\n\n{HEAD}{loops}")
    page.get_by_role("button", name="Run").click()
    loop = row_of(page, "own: 2")
    expect(loop).to_contain_text("timed out")
    expect(loop).to_contain_text("it used up its time, twice")
    expect(row_of(page, "own: 1")).to_contain_text("1.00")


def test_who_may_not_change_it_reads_it(open_page: Opener, site: Site) -> None:
    page = open_page("/p/default/graders/locked/edit")
    expect(page.get_by_text("This grader is locked")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("thread.completion()")
    page.get_by_label("Source of the function").click()
    page.keyboard.type("x = 1")
    expect(page.locator(".cm-content")).not_to_contain_text("x = 1")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()

    open_page.log_in("viewer")
    page.goto(f"{site.server.url}/p/default/graders/exact/edit")
    expect(page.get_by_text("changing it needs the role editor")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_disabled()


def test_completion_knows_the_class() -> None:
    """`thread.json` is what `StringThread` has; write it anew from what this test expects."""
    doc = inspect.getdoc(StringThread) or ""
    expected: list[dict[str, str]] = []
    for name in ("turns", "metadata", "pictures"):
        found = re.search(rf"^    {name}: (.*?)(?=^    \w|^\S|\n\n)", doc, re.MULTILINE | re.DOTALL)
        assert found
        detail = f": {StringThread.__annotations__[name]}"
        info = " ".join(found[1].split())
        expected.append({"name": name, "kind": "property", "detail": detail, "info": info})
    for name, member in vars(StringThread).items():
        if name.startswith("_") or name in ("turns", "metadata", "pictures"):
            continue
        function = getattr(member, "__func__", member)
        signature = str(inspect.signature(function)).replace("'", "")
        signature = re.sub(r"\((self|cls)(, )?", "(", signature)
        info = (inspect.getdoc(function) or "").partition("\n")[0]
        expected.append({"name": name, "kind": "method", "detail": signature, "info": info})
    table = json.loads(Path(__file__).with_name("thread.json").read_text("utf-8"))
    assert table == expected


def test_what_is_pressed_the_moment_that_one_has_left_is_not_lost(open_page: Opener) -> None:
    page = open_page("/p/default/graders/exact/edit")
    page.get_by_label("Name", exact=True).fill("Mine.")
    page.get_by_role("link", name="exact", exact=True).click()
    page.evaluate("""() => new MutationObserver((_, watch) => {
        const edit = [...document.querySelectorAll("main a")].find(a => a.textContent === "Edit");
        if (!edit) return;
        watch.disconnect();
        edit.click();
    }).observe(document, {childList: true, subtree: true})""")
    page.get_by_role("button", name="Leave and keep them").click()
    expect(page).to_have_url(re.compile("/edit$"))
    expect(page.get_by_label("Name", exact=True)).to_have_value("Mine.")
