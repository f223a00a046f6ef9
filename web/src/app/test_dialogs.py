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
CELL = "/runs/kit/cell?case=kit&harness=replay&model=cheat&trial=1"


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
        path: Where it is opened.
        opener: Role and name of what opens it.
        item: Of the menu that this opens, what opens it then.
        prepare: What is done before.
    """

    path: str
    opener: tuple[Literal["button", "link"], str]
    item: str = ""
    prepare: Callable[[Page], None] = lambda _: None

    def __str__(self) -> str:
        return f"{self.item or self.opener[1]} {self.path.partition('?')[0]}"


MENUS = (
    Opened("/", ("button", ": admin ")),
    Opened("/p/default/graders", ("button", "Files of graders")),
    Opened("/p/default/graders/exact", ("button", "More to do")),
    Opened("/runs/echo", ("button", "More about run echo")),
    Opened("/p/default/labels", ("button", "What to do with city")),
)
DIALOGS = (
    Opened("/p/default/graders", ("button", "Files of graders"), "Import …"),
    Opened("/p/default/graders/exact", ("button", "More to do"), "Delete …"),
    Opened("/runs/echo", ("button", "More about run echo"), "Delete …"),
    Opened("/p/default/datasets", ("button", "Upload")),
    Opened("/p/default/datasets/rows", ("button", "Grade with …")),
    Opened("/p/default/datasets/rows", ("button", "Delete …")),
    Opened("/p/default/jobs/JOB", ("button", "Delete …")),
    Opened("/settings?tab=projects", ("button", "Limits")),
    Opened("/settings?tab=keys", ("button", "Revoke")),
    Opened(CELL, ("button", "Grade again")),
    Opened(CELL, ("button", "Keep as recording")),
    Opened(CELL, ("button", "Copy as")),
    Opened("/p/default/graders/written/edit", ("link", "Runs"), prepare=_write),
    Opened("/p/default/graders/written/edit", ("button", "Save"), prepare=_save_meanwhile),
)


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
    role, name = opened.opener
    opener = page.get_by_role(role, name=re.compile(re.escape(name))).first
    expect(opener).to_be_attached()
    opened.prepare(page)
    expect(opener).to_be_enabled()
    page.evaluate("document.activeElement.blur()")
    found = opener.element_handle()  # roles and names are computed anew at each look by them
    for _ in range(80):
        page.keyboard.press("Tab")
        if found.evaluate("one => one === document.activeElement"):
            return opener
    raise AssertionError(f"the tabulator does not lead to {name!r}")


@pytest.mark.parametrize("opened", [*MENUS, *DIALOGS], ids=str)
def test_it_is_opened_walked_through_and_left_by_keyboard(
    opened: Opened, filled: str, open_page: Opener
) -> None:
    page = open_page(opened.path.replace("JOB", filled))
    opener = _reached(page, opened)
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu")
    if opened.item:
        item = menu.get_by_role("menuitem", name=opened.item)
        expect(menu.get_by_role("menuitem").first).to_be_focused()
        while not item.evaluate("one => one === document.activeElement"):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    shown = menu if opened in MENUS else page.get_by_role("dialog")
    expect(shown).to_be_visible()
    _stays_inside(page, shown)
    page.keyboard.press("Escape")
    expect(shown).to_be_hidden()
    expect(opener).to_be_focused()
    open_page.forgive("status of 412")


def _stays_inside(page: Page, shown: Locator) -> None:
    found = shown.element_handle()
    for key in ("Tab", "Shift+Tab"):
        for _ in range(12):
            assert found.evaluate("one => one.contains(document.activeElement)"), key
            page.keyboard.press(key)
