"""No label is lost that the server could not take: it is said, and the item waits with its note."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect
from web.conftest import Opener, Site

ROWS = [{"id": f"q{n}", "question": "Is it so?", "answer": f"Answer {n}."} for n in range(8)]


def test_a_label_for_a_server_that_is_killed_waits_in_the_form(
    site: Site, open_page: Opener
) -> None:
    site.upload("capitals", ROWS)
    page = open_page("/p/default/labels/queue?dataset=capitals&field=killed&rater=cleo")
    done = page.get_by_test_id("done")
    expect(done).to_contain_text("0 of 8")
    answer = page.get_by_role("region", name="answer")
    first = answer.inner_text()
    page.keyboard.press("w")
    page.get_by_label("Note").fill("as it says")
    page.keyboard.press("Enter")
    place = site.server.url
    site.server.kill()
    try:
        page.keyboard.press("p")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The label PASS is not saved")
        expect(done).to_contain_text("0 of 8")
        expect(page.get_by_text("noted: as it says")).to_be_visible()
        assert answer.inner_text() == first
    finally:
        page.context.set_offline(True)  # it is not to ask before it is logged in again
        site.server.start(port=httpx.URL(place).port or 0)
        open_page.be(httpx.get(site.server.link))
        page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()
    expect(done).to_contain_text("1 of 8")
    expect(alert).to_have_count(0)
    page.keyboard.press("f")
    expect(done).to_contain_text("2 of 8")
    asked = {"field": "killed"}
    stored = site.http.get("/api/v1/projects/default/labels/items", params=asked).json()["items"]
    assert sorted((one["label"], one["note"]) for row in stored for one in row["said"]) == [
        ("FAIL", ""),
        ("PASS", "as it says"),
    ]
    open_page.forgive("Failed to load resource")
