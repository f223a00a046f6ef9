"""Labels are never lost: the server is killed while somebody labels."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect
from web.conftest import Opener, Site

ROWS = [{"id": f"q{n}", "question": "Is it so?", "answer": f"Answer {n}."} for n in range(8)]


def test_a_label_outlives_a_server_that_is_killed(site: Site, open_page: Opener) -> None:
    site.upload("capitals", ROWS)
    page = open_page("/p/default/labels/queue?dataset=capitals&field=killed&rater=cleo")
    expect(page.locator(".queue-count")).to_contain_text("0 of 8")
    place = site.server.url
    site.server.kill()
    try:
        page.keyboard.press("p")
        page.keyboard.press("f")
        expect(page.get_by_test_id("waiting")).to_have_text(
            "2 labels kept here until the server is back"
        )
        expect(page.locator(".queue-count")).to_contain_text("2 of 8")
    finally:
        site.server.start(port=httpx.URL(place).port or 0)
        ((name, value),) = httpx.get(site.server.link).cookies.items()
        open_page.context.add_cookies([{"name": name, "value": value, "url": place}])
    expect(page.get_by_test_id("waiting")).to_have_count(0)
    asked = {"field": "killed"}
    stored = site.http.get("/api/v1/projects/default/labels/items", params=asked).json()["items"]
    assert [one["label"] for row in stored for one in row["said"]] == ["PASS", "FAIL"]
    page.reload()
    expect(page.locator(".queue-count")).to_contain_text("2 of 8")
    page.keyboard.press("p")
    expect(page.locator(".queue-count")).to_contain_text("3 of 8")
    open_page.watch.faults[:] = [
        fault for fault in open_page.watch.faults if "Failed to load resource" not in fault
    ]
