"""Every dialog and menu by keyboard alone: opened, walked through, left, and back where one was."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.command_line import echo_case
from tests.full_case import write_repair
from tests.server_app import EXACT
from web.conftest import Opener, Site

from assay.testing import FakeJudge

SOURCE = "async def grade(thread: StringThread) -> float:\n    return 1.0\n"


def _write(page: Page) -> None:
    page.get_by_label("Source of the function").click()
    page.keyboard.insert_text("# mine\n")


def _save_meanwhile(page: Page) -> None:
    """Somebody else saves; then it is saved here."""
    _write(page)
    answer = page.request.put(
        re.sub(r"/p/(.*)/graders/.*", r"/api/v1/projects/\1/graders/written", page.url),
        data={"kind": "function", "definition": {"source": f"{SOURCE}# theirs\n"}},
        headers={"If-Match": "*", "Origin": re.sub(r"/p/.*", "", page.url)},
    )
    assert answer.ok, answer.text()


@dataclass(frozen=True)
class Opened:
    """Something that stands before the page until it is dealt with.

    Attributes:
        name: Of what opens it.
        item: Of the menu that this opens, what opens the dialog then.
        role: Of what opens it.
        is_menu: Whether it is a menu, and no dialog.
        prepare: What is done before.
    """

    name: str
    item: str = ""
    role: Literal["button", "link"] = "button"
    is_menu: bool = False
    prepare: Callable[[Page], None] = lambda _: None


# By where they are opened, one after the other.
OPENED = {
    "/": [Opened(": admin ", is_menu=True)],
    "/p/default/graders": [
        Opened("Files of graders", is_menu=True), Opened("Files of graders", "Import …"),
    ],
    "/p/default/graders/exact": [
        Opened("More to do", is_menu=True), Opened("More to do", "Delete …"),
    ],
    "/runs/echo": [
        Opened("More about run echo", is_menu=True), Opened("More about run echo", "Delete …"),
    ],
    "/p/default/labels": [Opened("What to do with city", is_menu=True)],
    "/p/default/datasets": [Opened("Upload")],
    "/p/default/datasets/rows": [Opened("Grade with …"), Opened("Delete …")],
    "/p/default/jobs/JOB": [Opened("Delete …")],
    "/settings?tab=projects": [Opened("Limits")],
    "/settings?tab=keys": [Opened("Revoke")],
    "/runs/kit/cell?case=kit&harness=replay&model=cheat&trial=1": [
        Opened("Grade again"), Opened("Keep as recording"), Opened("Copy as"),
    ],
    "/p/default/graders/written/edit": [
        Opened("Runs", role="link", prepare=_write), Opened("Save", prepare=_save_meanwhile),
    ],
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site) -> str:
    """Something of each; the id of a job that has ended."""
    echo_case(site.home, trials=1)
    site.assay("run", "evals", "--name", "echo")
    with FakeJudge() as fake:
        write_repair(site.home / "bug", model=fake.model)
        site.assay("run", "bug/evals", "--name", "kit", code=1)
    site.post("graders", {"key": "exact", "kind": "declared", "definition": EXACT})
    written = {"key": "written", "kind": "function", "definition": {"source": SOURCE}}
    site.post("graders", written)
    rows = [{"id": "a", "answer": "4", "expected": "4"}]
    site.upload("rows", rows)
    site.key("viewer")
    queue = {"dataset": "rows", "field": "city", "limit": 1}
    waiting = site.http.get("/api/v1/projects/default/labels/queue", params=queue)
    assert waiting.status_code == 200, waiting.text
    (item,) = waiting.json()["items"]
    said = {"item": item["item"], "place": item["place"], "label": "PASS"}
    site.post("labels", {"dataset": "rows", "field": "city", **said})
    return str(site.post("jobs", {"grader": "exact", "dataset": "rows"})["id"])


def _reached(page: Page, opened: Opened) -> Locator:
    """What opens it, where the tabulator leads."""
    opener = page.get_by_role(opened.role, name=re.compile(re.escape(opened.name))).first
    expect(opener).to_be_attached()
    opened.prepare(page)
    expect(opener).to_be_enabled()
    opener.focus()
    page.keyboard.press("Shift+Tab")
    expect(opener).not_to_be_focused()
    page.keyboard.press("Tab")
    expect(opener).to_be_focused()
    return opener


@pytest.mark.parametrize("path", OPENED)
def test_it_is_opened_walked_through_and_left_by_keyboard(
    path: str, filled: str, open_page: Opener
) -> None:
    page = open_page(path.replace("JOB", filled))
    for opened in OPENED[path]:
        opener = _reached(page, opened)
        page.keyboard.press("Enter")
        menu = page.get_by_role("menu")
        if opened.item:
            item = menu.get_by_role("menuitem", name=opened.item)
            expect(menu.get_by_role("menuitem").first).to_be_focused()
            while not item.evaluate("one => one === document.activeElement"):
                page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
        shown = menu if opened.is_menu else page.get_by_role("dialog")
        expect(shown).to_be_visible()
        _stays_inside(page, shown)
        page.keyboard.press("Escape")
        expect(shown).to_be_hidden()
        expect(opener).to_be_focused()
    open_page.forgive("status of 412")


def _stays_inside(page: Page, shown: Locator) -> None:
    shown.evaluate(
        """one => {
            one.left = !one.contains(document.activeElement);
            document.addEventListener("focusin", ({target}) => one.left ||= !one.contains(target));
        }"""
    )
    for key in ("Tab", "Shift+Tab"):
        for _ in range(12):
            page.keyboard.press(key)
        assert shown.evaluate("one => !one.left && one.contains(document.activeElement)"), key
