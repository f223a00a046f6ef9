"""Labels and calibrations, as people give and read them."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, cast

import httpx
import pytest
from playwright.sync_api import Page, expect
from web.conftest import Opener, Site, no_serious_findings

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
DOCUMENTS = ["Paris is the capital of France and its largest city.", "It lies on the Seine."]
ROWS: list[dict[str, Any]] = [
    {
        "id": f"q{n:02}",
        "question": f"What is the capital of France? ({n})",
        "documents": DOCUMENTS,
        "answer": f"{'Yes, it is Paris.' if n % 2 else 'It is Lyon.'} Answer {n}.",
        "grade": {"score": 0.875, "reason": "a secret verdict"},
    }
    for n in range(24)
]
HOSTILE_ROWS: list[dict[str, Any]] = [
    {"id": HOSTILE, "question": HOSTILE, "answer": f"{HOSTILE}\u202e\n" + "long line " * 100_000}
]


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    """A site with answers to label and a grader to calibrate."""
    site.upload("capitals", ROWS)
    site.upload("hostile", HOSTILE_ROWS)
    definition = {"graders": [{"type": "contains", "substring": "Yes"}]}
    site.post("graders", {"key": "says-yes", "kind": "declared", "definition": definition})
    return site


@pytest.fixture
def here(site: Site) -> Generator[httpx.Client]:
    """Whoever used the one-time link: on a machine of one's own, anybody labels."""
    origin, cookies = {"Origin": site.server.url}, site.session().cookies
    with httpx.Client(base_url=site.server.url, cookies=cookies, headers=origin) as client:
        yield client


def label_all(here: httpx.Client, rater: str, *, field: str, wrong: int = 3) -> None:
    """Label every row of the dataset by whether it says yes, some of them otherwise."""
    at = "/api/v1/projects/default/labels"
    asked = {"dataset": "capitals", "limit": "50", "field": field, "rater": rater}
    queue = here.get(f"{at}/queue", params=asked).json()
    for number, item in enumerate(queue["items"]):
        says = any("Yes" in part["text"] for part in item["parts"] if part["name"] == "answer")
        said = "PASS" if says != (number < wrong) else "FAIL"
        body = {"dataset": "capitals", "field": field, "label": said, "rater": rater}
        told = {"item": item["item"], "place": item["place"], "note": "as I see it"}
        assert here.post(at, json={**body, **told}).status_code == 200


def answer_of(page: Page) -> str:
    return page.get_by_role("region", name="answer").inner_text()


def test_a_queue_is_worked_through_by_keys_alone(filled: Site, open_page: Opener) -> None:
    page = open_page("/p/default/labels/queue")
    page.get_by_label("What is asked of every answer").fill("It names the capital.")
    page.get_by_label("Answers").select_option("d:capitals")
    page.get_by_label("Your name").fill("ada")
    no_serious_findings(page)
    sent: list[str] = []
    page.on("response", lambda reply: sent.append(reply.text()) if "/queue?" in reply.url else None)
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_test_id("done")).to_contain_text("0 of 24")
    expect(page.get_by_text("It names the capital.")).to_be_visible()
    expect(page.get_by_text("Paris is the capital of France")).to_be_visible()
    no_serious_findings(page)

    first = answer_of(page)
    page.keyboard.press("p")
    expect(page.get_by_test_id("done")).to_contain_text("1 of 24")
    second = answer_of(page)
    assert second != first
    page.keyboard.press("s")
    expect(page.get_by_text("1 left for later")).to_be_visible()
    page.keyboard.press("w")
    page.get_by_label("Note").fill("p is no label while a note is written")
    page.keyboard.press("Enter")
    page.keyboard.press("f")
    expect(page.get_by_test_id("done")).to_contain_text("2 of 24")
    page.keyboard.press("u")
    expect(page.get_by_test_id("done")).to_contain_text("1 of 24")
    page.keyboard.press("f")
    expect(page.get_by_test_id("done")).to_contain_text("2 of 24")

    assert sent
    for reply in sent:  # blind: no verdict travels
        assert "secret" not in reply
        assert "0.875" not in reply
    page.reload()
    expect(page.get_by_test_id("done")).to_contain_text("2 of 24")  # it goes on where it stopped
    assert answer_of(page) == second, "what was left for later comes again"
    asked = {"field": "label", "limit": "50"}
    stored = filled.http.get("/api/v1/projects/default/labels/items", params=asked).json()["items"]
    said = [(one["rater"], one["label"]) for row in stored for one in row["said"]]
    assert said == [("ada", "PASS"), ("ada", "FAIL")]
    for _ in range(22):
        before = answer_of(page)
        page.keyboard.press("p")
        page.wait_for_function(
            "was => document.querySelector('[aria-label=answer]')?.innerText !== was", arg=before
        )
    expect(page.get_by_role("heading", name="24 items labelled")).to_be_visible()
    no_serious_findings(page)


def test_what_is_labelled_is_text_whatever_it_holds(filled: Site, open_page: Opener) -> None:
    page = open_page("/p/default/labels/queue?dataset=hostile&field=hostile&rater=ada")
    expect(page.get_by_test_id("done")).to_contain_text("0 of 1")
    expect(page.get_by_role("region", name="question")).to_contain_text("<img src=x")
    expect(page.get_by_role("region", name="answer")).to_contain_text("\\u{202e}")
    assert len(answer_of(page)) < 10_000
    page.keyboard.press("m")
    page.wait_for_function(
        "document.querySelector('[aria-label=answer]').innerText.length > 900000"
    )
    page.keyboard.press("w")
    page.get_by_label("Note").fill(HOSTILE)
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="1 item labelled")).to_be_visible()
    page.get_by_role("link", name="Read the labels").click()
    expect(page.get_by_text(f"“{HOSTILE}”")).to_be_visible()
    page.get_by_role("button", name="People differ").click()
    expect(page).to_have_url(
        f"{filled.server.url}/p/default/labels/set?field=hostile&which=disagreed"
    )
    expect(page.get_by_role("heading", name="People say the same of every item")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert "owned" not in page.title()


def test_a_grader_is_calibrated_and_its_card_is_what_the_command_line_says(
    filled: Site, here: httpx.Client, open_page: Opener
) -> None:
    label_all(here, "ada", field="city")
    label_all(here, "bo", field="city", wrong=4)
    page = open_page("/p/default/labels")
    row = page.get_by_role("row", name="city")
    expect(row).to_contain_text("96 %")
    expect(row).to_contain_text("of 24 items")
    no_serious_findings(page)
    with page.expect_download() as saving:
        row.get_by_role("button").click()
        page.get_by_role("menuitem", name="Export").click()
    exported = filled.home / "exported.jsonl"
    saving.value.save_as(exported)

    row.get_by_role("button").click()
    entry = page.get_by_role("menuitem", name="Calibrate")
    expect(entry).to_have_attribute("href", "/p/default/calibrations?new=1&field=city")
    entry.click()
    expect(page.get_by_text("24 judgements of 24 labelled rows")).to_be_visible()
    expect(page.get_by_text("This grader asks no model: it costs nothing.")).to_be_visible()
    no_serious_findings(page)
    page.get_by_role("button", name="Calibrate", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("says-yes")
    no_serious_findings(page)

    text = filled.assay(
        "calibrate", "says-yes", "exported.jsonl", "--label", "city", "--trust-authors", "--json"
    )
    card = cast("dict[str, Any]", json.loads(text))
    kappa = card["measures"]["kappa"]
    expect(page.get_by_role("definition").first).to_have_text(f"{kappa['value']:.2f}")
    told = f"{kappa['value']:.2f} [{kappa['low']:.2f}, {kappa['high']:.2f}]"
    expect(page.get_by_role("row", name="kappa")).to_contain_text(told)
    shown = (
        page.get_by_role("table", name="Where they differ")
        .locator("td")
        .evaluate_all("cells => cells.map(one => parseInt(one.firstChild.textContent))")
    )
    assert shown == [count for line in card["confusion"] for count in line]
    rows = page.locator("article")
    expect(rows).to_have_count(len(card["worst"]))
    expect(rows.first).to_contain_text("ada:")
    expect(rows.first).to_contain_text("as I see it")
    rows.first.focus()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()

    page.goto(f"{filled.server.url}/p/default/calibrations")
    expect(page.get_by_role("row", name="says-yes")).to_have_count(2)
    no_serious_findings(page)
    page.get_by_role("link", name="says-yes").first.click()
    expect(page.get_by_test_id("comparison")).to_contain_text("the difference may be chance")


def test_who_may_only_read_labels_nothing(
    filled: Site, here: httpx.Client, open_page: Opener
) -> None:
    label_all(here, "ada", field="mine")
    open_page.log_in("viewer")
    page = open_page("/p/default/labels/queue?dataset=capitals&field=viewed")
    expect(page.get_by_text("Labelling needs a key of the role editor.")).to_be_visible()
    expect(page.get_by_role("button", name="PASS")).to_be_disabled()
    page.keyboard.press("p")
    expect(page.get_by_test_id("done")).to_contain_text("0 of 24")
    page.goto(f"{filled.server.url}/p/default/calibrations?new=1&field=mine")
    expect(page.get_by_role("button", name="Calibrate", exact=True)).to_be_disabled()


def test_where_nothing_is_yet_the_next_step_is_said(filled: Site, open_page: Opener) -> None:
    filled.post("/api/v1/projects", {"key": "empty"})
    page = open_page("/p/empty/labels")
    expect(page.get_by_role("heading", name="Nobody has labelled anything yet")).to_be_visible()
    expect(page.get_by_text("assay calibrate label answers.jsonl", exact=True)).to_be_visible()
    no_serious_findings(page)
    page.get_by_role("link", name="Label answers").click()
    expect(page.get_by_role("heading", name="There is nothing to label yet")).to_be_visible()
    page.goto(f"{filled.server.url}/p/empty/calibrations")
    expect(page.get_by_role("heading", name="No grader was measured")).to_be_visible()
    page.get_by_role("button", name="Calibrate a grader").click()
    expect(page.get_by_role("heading", name="There is no stored grader")).to_be_visible()
    page.goto(f"{filled.server.url}/p/empty/calibrations/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("there is no calibration card 'nowhere'")
    open_page.watch.faults[:] = [one for one in open_page.watch.faults if "404" not in one]


def test_twenty_examples_are_labelled_for_a_grader_that_was_never_measured(
    filled: Site, open_page: Opener
) -> None:
    filled.post("/api/v1/projects", {"key": "fresh"})
    definition = {"graders": [{"type": "contains", "substring": "Yes"}]}
    made = {"key": "fresh-one", "kind": "declared", "definition": definition}
    filled.post("/api/v1/projects/fresh/graders", made)
    page = open_page("/p/fresh/calibrations?new=1&grader=fresh-one")
    page.get_by_role("link", name="Label 20 examples").click()
    expect(page).to_have_url(f"{filled.server.url}/p/fresh/labels/queue?goal=20&grader=fresh-one")
    page.goto(
        f"{filled.server.url}/p/default/labels/queue?"
        "dataset=capitals&field=goal&goal=2&grader=says-yes&rater=ada&classes=GOOD,SAD"
    )
    expect(page.get_by_test_id("done")).to_contain_text("0 of 2")
    page.keyboard.press("1")  # SAD would take the key of skip: all have numbers
    expect(page.get_by_test_id("done")).to_contain_text("1 of 2")
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="2 items labelled")).to_be_visible()
    page.get_by_role("link", name="Calibrate says-yes").click()
    expect(page.get_by_role("alert")).to_contain_text("--levels")
    page.get_by_label("Levels, lowest first").fill("SAD,GOOD")
    expect(page.get_by_text("2 judgements")).to_be_visible()
    open_page.watch.faults[:] = [one for one in open_page.watch.faults if "422" not in one]


def test_a_label_for_a_server_that_is_killed_waits_in_the_form(
    filled: Site, open_page: Opener
) -> None:
    site = filled
    page = open_page("/p/default/labels/queue?dataset=capitals&field=killed&rater=cleo")
    done = page.get_by_test_id("done")
    expect(done).to_contain_text("0 of 24")
    first = answer_of(page)
    page.keyboard.press("w")
    page.get_by_label("Note").fill("as it says")
    page.keyboard.press("Enter")
    port = site.server.port
    site.server.kill()
    page.keyboard.press("p")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The label PASS is not saved")
    expect(done).to_contain_text("0 of 24")
    expect(page.get_by_text("noted: as it says")).to_be_visible()
    assert answer_of(page) == first
    page.context.set_offline(True)  # it is not to ask before it is logged in again
    site.server.start(port=port)
    open_page.be(site.session())
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()
    expect(done).to_contain_text("1 of 24")
    expect(alert).to_have_count(0)
    page.keyboard.press("f")
    expect(done).to_contain_text("2 of 24")
    asked = {"field": "killed"}
    stored = site.http.get("/api/v1/projects/default/labels/items", params=asked).json()["items"]
    assert sorted((one["label"], one["note"]) for row in stored for one in row["said"]) == [
        ("FAIL", ""),
        ("PASS", "as it says"),
    ]
    open_page.forgive("Failed to load resource")


def test_a_label_that_is_refused_says_why_and_another_may_be_given(
    filled: Site, open_page: Opener
) -> None:
    filled.upload("gone", ROWS[:8])
    page = open_page("/p/default/labels/queue?dataset=gone&field=refused&rater=cleo")
    done = page.get_by_test_id("done")
    expect(done).to_contain_text("0 of 8")
    page.keyboard.press("p")
    expect(done).to_contain_text("1 of 8")
    at = "/api/v1/projects/default/datasets/gone"
    assert filled.http.delete(at).status_code == 204
    page.keyboard.press("u")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The last label is not taken back")
    expect(done).to_contain_text("1 of 8")
    page.keyboard.press("f")
    expect(alert).to_contain_text("The label FAIL is not saved")
    expect(alert).to_contain_text("gone")
    filled.upload("gone", ROWS[:8])
    page.keyboard.press("n")
    expect(done).to_contain_text("2 of 8")
    expect(alert).to_have_count(0)
    open_page.forgive("Failed to load resource")
