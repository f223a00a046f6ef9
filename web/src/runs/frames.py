"""How long a page works for a frame while it is scrolled.

Measured is how long the page's thread is busy, by its own clock: with scripts, layout and painting.
By the clock on the wall a frame is as late as what else the machine does.
"""

from __future__ import annotations

from bisect import bisect
from typing import Any, cast

from playwright.sync_api import Locator

__all__ = ["FRAMES", "busy"]

FRAMES = 120
_SCROLL = """async (box, [pixels, frames]) => {
    for (let number = 0; number < frames; number += 1) {
        box.scrollTop += pixels;
        await new Promise(requestAnimationFrame);
    }
}"""


def busy(box: Locator, pixels: int) -> list[float]:
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
