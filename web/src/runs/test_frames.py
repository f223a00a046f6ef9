"""Scrolling is smooth, however much there is: 10,000 cells and 5,000 steps.

What is measured is how long the page's thread is busy for a frame, by its own clock: with scripts,
layout and painting. By the clock on the wall a frame is as late as what else the machine does.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from typing import Any, Literal, cast

import pytest
from playwright.sync_api import Locator, expect
from web.conftest import Opener, Site
from web.src.runs.made_runs import add_long_run, add_run, big_run

MOST_MS = 35.0
FRAMES = 120
_SCROLL = """async (box, [pixels, frames]) => {
    for (let number = 0; number < frames; number += 1) {
        box.scrollTop += pixels;
        await new Promise(requestAnimationFrame);
    }
}"""


@pytest.fixture(scope="module", autouse=True)
def runs(site: Site) -> None:
    add_run(site.home, *big_run())
    add_long_run(site.home)


@pytest.mark.parametrize(
    ("path", "role", "name"),
    [
        ("/runs/big?tab=cells", "grid", "Cells"),
        ("/runs/long/cell?case=c&trial=1", "region", "Steps"),
    ],
    ids=["cells", "steps"],
)
def test_a_frame_of_scrolling_is_little_work(
    open_page: Opener,
    record_property: Callable[[str, object], None],
    path: str,
    role: Literal["grid", "region"],
    name: str,
) -> None:
    box = open_page(path).get_by_role(role, name=name)
    expect(box.locator("[role=gridcell] a, article").first).to_be_visible()
    # Down, where rows are asked for as they come into sight, and up again, where all are there.
    busy = sorted(_busy(box, 400) + _busy(box, -400))
    assert len(busy) > FRAMES
    p95 = busy[int(0.95 * len(busy))]
    record_property(f"{name}: milliseconds a frame, p95", round(p95, 1))
    assert p95 <= MOST_MS


def _busy(box: Locator, pixels: int) -> list[float]:
    """How long the page's thread worked for each frame while so many pixels went by in each."""
    chrome = box.page.context.new_cdp_session(box.page)
    events, ended = list[dict[str, Any]](), list[object]()

    def hear(told: dict[str, Any]) -> None:
        events.extend(cast("list[dict[str, Any]]", told["value"]))

    def end(told: object) -> None:
        ended.append(told)

    chrome.on("Tracing.dataCollected", hear)
    chrome.on("Tracing.tracingComplete", end)
    config = {"includedCategories": ["toplevel", "devtools.timeline"]}
    chrome.send("Tracing.start", {"traceConfig": config, "transferMode": "ReportEvents"})
    box.evaluate(_SCROLL, [pixels, FRAMES])
    chrome.send("Tracing.end")
    while not ended:
        box.page.wait_for_timeout(50)
    chrome.detach()
    fired = [one for one in events if one["name"] == "FireAnimationFrame"]
    begun = sorted(one["ts"] for one in fired)
    busy = [0.0] * (len(begun) + 1)
    for one in events:
        is_task = one["name"].endswith("::RunTask") and "tdur" in one
        if is_task and (one["pid"], one["tid"]) == (fired[0]["pid"], fired[0]["tid"]):
            busy[bisect(begun, one["ts"] + one["dur"])] += one["tdur"] / 1_000
    return busy[1:-1]
