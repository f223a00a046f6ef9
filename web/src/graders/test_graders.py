"""Graders in the page: found, read, compared, locked, made by forms, deleted knowing what of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.calibrated_graders import calibrated
from tests.endpoint_servers import answering, faulty
from web.conftest import Opener, Site, no_serious_findings

NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"
SOURCE = '''"""Says four."""

async def grade(thread: StringThread) -> float:
    answer = thread.completion() or ""
    return 1.0 if answer.strip() == "4" else 0.0
'''
EXACT = {"graders": [{"type": "exact_match"}]}


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    return ("--set", "allow_internal_endpoints=true")


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site) -> None:
    """Graders of every kind, versions, scores, a job and a calibration card."""
    add(site, "says-four", "function", {"source": SOURCE}, description="Whether it is four.")
    put(site, "says-four", "function", {"source": SOURCE.replace("strip()", "strip('. ')")})
    judge = {
        "criteria": "The response directly answers the question.",
        "judge_model": "local-judge",
        "examples": [
            {"input": "Capital of France?", "output": "Paris.", "pass": True, "reasoning": "It is."}
        ],
    }
    add(site, "helpful", "binary_judge", judge, name="Helpful")
    add(site, "exact", "declared", EXACT)
    add(site, "human", "custom", {"description": "What reviewers said."})
    add(site, "faithful", "prebuilt_judge", {"type": "FAITHFULNESS"})
    nasty = {**judge, "criteria": NASTY, "user_template": f"{NASTY} {{{{completion}}}}"}
    nasty["examples"] = [{"input": NASTY, "output": NASTY, "pass": False, "reasoning": NASTY}]
    add(site, "nasty", "binary_judge", nasty, name=NASTY, description=NASTY, note=NASTY)
    site.upload("rows", [{"id": str(n), "answer": str(n), "expected": "4"} for n in range(9)])
    items = [{"id": str(n), "answer": str(n % 6), "expected": "4"} for n in range(30)]
    site.post("graders/exact/grade", {"items": items})
    calibrated(site.server.location, "exact")


def add(site: Site, key: str, kind: str, definition: object, **said: str) -> None:
    site.post("graders", {"key": key, "kind": kind, "definition": definition, **said})


def put(site: Site, key: str, kind: str, definition: object) -> None:
    answer = site.http.put(
        f"/api/v1/projects/default/graders/{key}",
        params={"force": True},
        json={"kind": kind, "definition": definition, "note": "dots do not count"},
    )
    assert answer.status_code == 200, answer.text


def created(page: Page, key: str) -> None:
    page.get_by_role("button", name="Create grader").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(key)
    expect(page.get_by_text("Saved as version 1")).to_be_visible()


def more(page: Page, deed: str) -> None:
    """Do what stands behind the three dots."""
    page.get_by_role("button", name="More to do").click()
    page.get_by_role("menuitem", name=deed, exact=True).click()


def stored(site: Site, key: str) -> dict[str, Any]:
    found = site.http.get(f"/api/v1/projects/default/graders/{key}").json()
    return dict(found["latest"])


def test_the_list_is_searched_walked_and_shared_by_its_address(open_page: Opener) -> None:
    page = open_page("/p/default/graders")
    row = page.get_by_role("row").filter(has_text="exact")
    expect(row).to_contain_text("Declared")
    expect(row).to_contain_text("κ")
    expect(row).to_contain_text("n = 20")
    expect(row).to_contain_text("30 scores")
    expect(page.get_by_text(NASTY).first).to_be_visible()
    no_serious_findings(page)

    page.keyboard.press("/")
    page.keyboard.type("four")
    expect(page.get_by_role("link", name="says-four")).to_be_visible()
    expect(page.get_by_role("link", name="exact")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"\?q=four$"))
    page.reload()
    expect(page.get_by_role("link", name="exact")).to_have_count(0)
    page.get_by_label("Search graders").fill("")
    expect(page.get_by_role("link", name="exact")).to_be_visible()
    page.get_by_label("Kind").select_option("custom")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_label("Kind").select_option("")

    page.get_by_role("link", name="exact").focus()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="faithful")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("exact")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Graders")


def test_a_grader_is_read_compared_locked_renamed_and_exported(
    site: Site, open_page: Opener
) -> None:
    page = open_page("/p/default/graders/says-four")
    expect(page.get_by_role("region", name="Source").first).to_contain_text("async def grade")
    page.get_by_label("Compare from version 1").click()
    difference = page.get_by_label("From version 1 to 2")
    expect(difference.locator("ins")).to_contain_text("strip('. ')")
    expect(page).to_have_url(re.compile("from=1&to=2"))
    no_serious_findings(page)
    page.get_by_role("link", name="Version 1", exact=True).click()
    expect(page.get_by_text("This is version 1 of 2.")).to_be_visible()
    page.get_by_role("link", name="Show the newest").click()

    page.get_by_role("link", name="Calibrate", exact=True).click()
    expect(page).to_have_url(re.compile(r"/calibrations\?new=1&grader=says-four"))
    page.go_back()
    page.get_by_role("link", name="Label 20 examples").click()
    expect(page).to_have_url(re.compile(r"/labels/queue\?goal=20&grader=says-four"))
    page.go_back()

    more(page, "Lock")
    edit = page.get_by_role("button", name="Edit")
    expect(edit).to_be_disabled()
    page.get_by_role("button", name="More to do").click()
    delete = page.get_by_role("menuitem", name="Delete (unlock it first)")
    expect(delete).to_have_attribute("aria-disabled", "true")
    page.get_by_role("menuitem", name="Unlock", exact=True).click()

    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Name", exact=True).fill("Says four")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()  # a name makes no version
    page.get_by_role("link", name="says-four", exact=True).click()
    expect(page.get_by_text("Says four", exact=True)).to_be_visible()

    with page.expect_download() as got:
        more(page, "Export")
    assert got.value.suggested_filename == "says-four.zip"
    import zipfile

    with zipfile.ZipFile(got.value.path()) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["says-four.py", "says-four.yaml"]
        assert "strip('. ')" in archive.read("says-four.py").decode()
    page.get_by_role("button", name="curl").click()
    expect(page.get_by_text(f"curl {site.server.url}/api/v1")).to_be_visible()


def test_a_judge_is_written_with_its_prompt_beside_it(site: Site, open_page: Opener) -> None:
    page = open_page("/p/default/graders/new")
    no_serious_findings(page)
    page.get_by_role("link", name="AI judge").click()
    page.get_by_label("Key (required)").fill("on-topic")
    preview = page.get_by_role("region", name="What the judge is sent")
    page.get_by_label("Criterion").fill("The answer stays on topic.")
    expect(preview.get_by_label("User prompt")).to_contain_text("stays on topic")
    preview.get_by_label("Answer to try").fill(NASTY)
    expect(preview.locator("mark").last).to_contain_text("onerror")

    page.get_by_text("More options").first.click()
    template = page.get_by_label("User template")
    template.fill("{{completion}}\n{{#if metadata.x}}")
    expect(preview).to_contain_text("user_template line 2: {{#if}} is not closed")
    page.get_by_role("button", name="Create grader").click()
    expect(template).to_have_accessible_description(re.compile(r"{{#if}} is not closed"))
    template.fill("{{completon}}")
    expect(preview).to_contain_text("unknown variable 'completon'")
    template.fill("Look at {{completion}}")
    expect(preview.get_by_label("User prompt")).to_contain_text("Look at")

    page.get_by_role("button", name="Add a failing example").click()
    page.keyboard.press("Control+s")  # an example of nothing would teach it something wrong
    expect(page.get_by_label("Answer (required)", exact=True)).to_be_focused()
    page.get_by_label("Question", exact=True).fill("Capital of France?")
    page.get_by_label("Answer", exact=True).fill("I like trains.")
    page.get_by_label("Why", exact=True).fill("It is about something else.")
    no_serious_findings(page)
    created(page, "on-topic")
    definition = stored(site, "on-topic")["definition"]
    assert definition["user_template"] == "Look at {{completion}}"
    assert definition["examples"][0]["pass"] is False

    # What is written is kept when one leaves; somebody else saves meanwhile.
    page.get_by_label("Criterion").fill("Mine.")
    page.get_by_role("link", name="on-topic").click()
    page.get_by_role("button", name="Leave and keep them").click()
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_role("textbox", name="Criterion")).to_have_value("Mine.")
    put(site, "on-topic", "binary_judge", {**definition, "criteria": "Theirs."})
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Version 2 was saved meanwhile")
    expect(dialog).to_contain_text("Theirs.")
    dialog.get_by_role("button", name="Save mine as version 3").click()
    expect(page.get_by_text("Saved as version 3")).to_be_visible()
    assert stored(site, "on-topic")["definition"]["criteria"] == "Mine."
    open_page.forgive("status of 412", "status of 422")


def test_a_pre_built_judge_and_an_endpoint_are_made(site: Site, open_page: Opener) -> None:
    page = open_page("/p/default/graders/new/prebuilt_judge")
    page.get_by_label("Key (required)").fill("relevant")
    page.get_by_text("Answer relevancy").click()
    created(page, "relevant")
    assert stored(site, "relevant")["definition"] == {
        "type": "ANSWER_RELEVANCY",
        "judge_model": "claude-haiku-4-5",
    }

    page = open_page("/p/default/graders/new/external_endpoint")
    page.get_by_label("Key (required)").fill("rewards")
    test = page.get_by_role("button", name="Test the connection")
    with faulty(answering(lambda _: {"name": NASTY, "version": "1.2"})) as endpoint:
        page.get_by_label("URL").fill(endpoint.url)
        test.click()
        expect(page.get_by_role("alert")).to_contain_text("internal")
        page.get_by_label("Allow internal").check()
        test.click()
        expect(page.get_by_text("It answers", exact=False)).to_be_visible()
        expect(page.get_by_text(NASTY)).to_be_visible()
    test.click()
    expect(page.get_by_text("It does not answer", exact=False)).to_be_visible()
    created(page, "rewards")
    open_page.forgive("status of 422")


def test_a_declared_grader_is_made_by_a_form_that_places_its_mistakes(
    site: Site, open_page: Opener
) -> None:
    page = open_page("/p/default/graders/new")
    page.get_by_label("Search built-in graders").fill("number")
    page.get_by_role("link", name="numeric_match").click()
    page.get_by_label("Key (required)").fill("has-number")
    page.get_by_text("Options").first.click()
    page.get_by_label("Tolerance", exact=True).fill("little")
    page.get_by_role("button", name="Create grader").click()
    tolerance = page.get_by_label("Tolerance", exact=True)
    expect(tolerance).to_have_accessible_description(re.compile("expected a number"))
    no_serious_findings(page)
    page.get_by_label("Tolerance", exact=True).fill("0.5")
    page.get_by_role("button", name="Add grader").click()
    page.get_by_label("Grader 2 (required)").select_option(label="contains")
    page.get_by_label("Substring").fill("four")
    page.keyboard.press("Control+Enter")
    payload = page.get_by_label("Test payload")
    expect(payload.get_by_role("row").nth(2)).to_be_visible()
    created(page, "has-number")
    assert stored(site, "has-number")["definition"] == {
        "graders": [
            {"type": "numeric_match", "tolerance": 0.5},
            {"type": "contains", "substring": "four"},
        ]
    }
    open_page.forgive("status of 422")


def test_a_judge_of_each_turn_is_made_by_a_form(site: Site, open_page: Opener) -> None:
    page = open_page("/p/default/graders/new/declared?type=llm_judge")
    page.get_by_label("Key (required)").fill("each-turn")
    page.get_by_text("Options").first.click()
    page.get_by_label("Model", exact=True).fill("fake")
    page.get_by_label("Turns", exact=True).select_option(index=1)
    page.get_by_label("Aggregate (required)").select_option("min")
    page.get_by_label("Criteria").fill('["Says sorry"]')
    created(page, "each-turn")
    (grader,) = stored(site, "each-turn")["definition"]["graders"]
    assert (grader["turns"], grader["per_turn"]) == ("all", {"aggregate": "min"})


def test_an_option_comes_from_the_row(site: Site, open_page: Opener) -> None:
    site.upload("golds", [{"answer": "Bern", "metadata": {"city": "Bern"}}])
    page = open_page("/p/default/graders/new/declared?type=contains&samples=dataset&dataset=golds")
    page.get_by_label("Key (required)").fill("names-city")
    page.get_by_role("button", name="From the row for Substring").click()
    place = page.get_by_role("combobox", name="Substring")
    expect(place).to_have_value("expected")
    place.fill("answer")
    page.get_by_role("button", name="Create grader").click()
    expect(place).to_have_accessible_description(re.compile("it may not say how it is graded"))
    open_page.forgive("status of 422")
    place.fill("meta")
    page.get_by_role("option", name="metadata.city").click()  # which a row of the dataset has
    no_serious_findings(page)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Test payload").get_by_role("row").nth(1)).to_contain_text("1.00")
    created(page, "names-city")
    one: dict[str, Any] = {"type": "contains", "substring": {"from": "metadata.city"}}
    assert stored(site, "names-city")["definition"] == {"graders": [one]}

    page.get_by_role("link", name="names-city").click()
    shown = page.get_by_role("region", name="Graders")
    expect(shown).to_contain_text("from the row: metadata.city")
    page.get_by_role("link", name="Edit").click()
    expect(place).to_have_value("metadata.city")
    page.get_by_text("More options").first.click()
    page.get_by_label("Case sensitive").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version 2")).to_be_visible()
    one["case_sensitive"] = True
    assert stored(site, "names-city")["definition"] == {"graders": [one]}
    page.get_by_role("button", name="Write it here for Substring").click()
    expect(page.get_by_label("Substring (required)")).to_have_value("")


def test_what_is_used_is_deleted_only_by_who_types_its_key(site: Site, open_page: Opener) -> None:
    add(site, "unwanted", "declared", EXACT)
    site.post("graders/unwanted/grade", {"items": [{"id": "1", "answer": "4", "expected": "4"}]})
    page = open_page("/p/default/graders/unwanted")
    expect(page.get_by_label("Use", exact=True)).to_contain_text("1 score")
    more(page, "Delete …")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 score that it gave stay")
    delete = dialog.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    dialog.get_by_label("Type the key").fill("unwanted")
    delete.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Graders")
    expect(page.get_by_role("link", name="unwanted")).to_have_count(0)


def test_graders_come_and_go_as_files(site: Site, open_page: Opener, tmp_path: Path) -> None:
    (tmp_path / "files-one.yaml").write_text("kind: custom\ndescription: of a file\n")
    (tmp_path / "files-bad.yaml").write_text("kind: nothing\n")
    site.post("/api/v1/projects", {"key": "files"})
    page = open_page("/p/files/graders")
    page.get_by_role("button", name="Files of graders").click()
    page.get_by_role("menuitem", name="Import …").click()
    dialog = page.get_by_role("dialog")
    chooser = dialog.locator("input[type=file]")
    chooser.set_input_files([tmp_path / "files-one.yaml", tmp_path / "files-bad.yaml"])
    dialog.get_by_role("button", name="Import").click()
    expect(dialog.get_by_role("alert")).to_contain_text("files-bad.yaml")
    chooser.set_input_files([tmp_path / "files-one.yaml"])
    dialog.get_by_role("button", name="Import").click()
    expect(page.get_by_text("1 grader stored")).to_be_visible()
    expect(page.get_by_role("link", name="files-one")).to_be_visible()
    open_page.forgive("status of 422")


def test_texts_of_a_grader_are_texts_wherever_they_are_shown(open_page: Opener) -> None:
    page = open_page("/p/default/graders/nasty")
    expect(page.get_by_role("region", name="Criterion")).to_contain_text(NASTY)
    expect(page.get_by_label("User prompt")).to_contain_text("onerror")
    page.get_by_role("button", name="Few-shot examples").click()
    no_serious_findings(page)
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_role("textbox", name="Criterion")).to_have_value(NASTY)
    assert page.evaluate("document.querySelectorAll('img[src=x], main script').length") == 0


def test_a_viewer_reads_and_is_told_what_they_may_not(site: Site, open_page: Opener) -> None:
    open_page.log_in("viewer")
    page = open_page("/p/default/graders")
    expect(page.get_by_role("link", name="helpful")).to_be_visible()
    expect(page.get_by_text("storing one needs the role editor")).to_be_visible()
    expect(page.get_by_role("link", name="New grader")).to_have_count(0)
    page.get_by_role("button", name="Files of graders").click()
    importing = page.get_by_role("menuitem", name="Import …")
    expect(importing).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="helpful").click()
    expect(page.get_by_label("User prompt")).to_contain_text("directly answers")
    expect(page.get_by_role("button", name="Edit")).to_be_disabled()
    page.goto(f"{site.server.url}/p/default/graders/helpful/edit")
    expect(page.get_by_text("changing it needs the role editor")).to_be_visible()
    page.goto(f"{site.server.url}/p/default/graders/new/declared?type=exact_match")
    expect(page.get_by_text("Storing a grader needs the role editor")).to_be_visible()
    expect(page.get_by_role("button", name="Create grader")).to_be_disabled()


def test_hundreds_of_graders_are_scrolled_through(site: Site, open_page: Opener) -> None:
    site.post("/api/v1/projects", {"key": "many"})
    files = {f"g{n:04}.yaml": f"kind: custom\ndescription: number {n}\n" for n in range(250)}
    site.post("/api/v1/projects/many/graders/import", {"files": files, "update": True})
    page = open_page("/p/many/graders")
    expect(page.get_by_role("link", name="g0000")).to_be_visible()
    page.wait_for_function(  # what is further down is asked for as one comes there
        """() => {
            window.scrollTo(0, document.body.scrollHeight);
            return [...document.links].some(one => one.textContent.includes("g0249"));
        }"""
    )
    expect(page.get_by_role("link", name="g0249")).to_be_visible()
    page = open_page("/p/nothing-here/graders")
    expect(page.get_by_role("alert")).to_be_visible()
    open_page.forgive("status of 404")
    site.post("/api/v1/projects", {"key": "bare"})
    page = open_page("/p/bare/graders")
    expect(page.get_by_text("No graders yet")).to_be_visible()
    expect(page.get_by_text("assay graders create")).to_be_visible()
