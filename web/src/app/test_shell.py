"""The frame of the page: where things are, how one gets in, and what it does without its server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect
from tests.command_line import echo_case
from tests.server_app import EXACT
from web.conftest import WINDOW, Opener, Site, no_serious_findings

PHONE: ViewportSize = {"width": 390, "height": 844}
REFUSED = "status of 401"
GONE = ("ERR_CONNECTION", "status of 401", "ERR_INCOMPLETE", "ERR_EMPTY_RESPONSE")


@pytest.fixture
def strangers(open_page: Opener) -> Opener:
    """Opens pages for who is not logged in."""
    open_page.log_out()
    return open_page


def log_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site) -> None:
    """A run, a grader and a second project."""
    echo_case(site.home, trials=3)
    site.assay("run", "evals", "--name", "<b>first</b>")
    site.post("graders", {"key": "exact", "kind": "declared", "definition": EXACT})
    site.post("/api/v1/projects", {"key": "maths"})


def test_the_overview_says_how_runs_and_graders_stand(open_page: Opener) -> None:
    page = open_page("/")
    row = page.get_by_role("row", name="<b>first</b>")
    expect(row).to_contain_text("3 passed")
    expect(row).to_contain_text("100 %")
    expect(row).to_contain_text("3 of 3")
    expect(page.get_by_role("row", name="exact")).to_contain_text("not measured")
    no_serious_findings(page)


def test_an_empty_store_says_what_to_do_first_and_what_comes_appears(open_fresh: Opener) -> None:
    page = open_fresh("/")
    for title in ("See it work", "Grade what you have", "Write a grader"):
        expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("button", name="Copy assay demo")).to_be_visible()
    expect(page.get_by_label("Project")).to_be_hidden()
    no_serious_findings(page)
    section(page, "Runs")
    expect(page.get_by_role("heading", name="Nothing was run yet")).to_be_visible()
    expect(page.get_by_text("assay run PATH")).to_be_visible()
    no_serious_findings(page)
    page.go_back()
    echo_case(open_fresh.site.home)
    open_fresh.site.assay("run", "evals", "--name", "came")  # of another process
    expect(page.get_by_role("row", name="came")).to_contain_text("1 passed")


def test_every_section_is_reached(open_page: Opener) -> None:
    page = open_page("/")
    for name in ("Graders", "Runs", "Labels", "Data", "Settings"):
        section(page, name)
        title = "Datasets" if name == "Data" else name
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page).to_have_title(f"{title} · assay")
    page.goto(f"{open_page.site.server.url}/p/default/nowhere?x=1")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_a_key_logs_in_where_one_is_and_log_out_leads_back(site: Site, strangers: Opener) -> None:
    page = strangers("/p/default/graders?kind=declared#top")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in to assay")
    no_serious_findings(page)
    log_in(page, "assay_00000000_wrong")
    expect(page.get_by_role("alert")).to_contain_text("unknown or was revoked")
    expect(page).to_have_url(re.compile(r"/p/default/graders\?kind=declared#top$"))
    log_in(page, f"  {site.key('viewer')}  ")
    expect(page.get_by_role("heading", level=1)).to_have_text("Graders")
    expect(page).to_have_url(re.compile(r"graders\?kind=declared"))
    (cookie,) = strangers.context.cookies()
    assert (cookie.get("sameSite"), cookie.get("httpOnly")) == ("Strict", True)
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("Object.values({...localStorage, ...sessionStorage}).join()").find(
        "assay_"
    ) == -1, "no key is kept"  # fmt: skip

    page.get_by_role("button", name="viewer in default").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(page).to_have_url(re.compile(r"/login\?next="))
    log_in(page, site.key("viewer"))
    expect(page).to_have_url(re.compile(r"/p/default/graders\?kind=declared"))

    page.goto(f"{site.server.url}/login?next=https://evil.example/")
    expect(page).to_have_url(f"{site.server.url}/")
    page.goto(f"{site.server.url}/login?next=//evil.example/")
    expect(page).to_have_url(f"{site.server.url}/")
    strangers.forgive(REFUSED)


def test_a_link_that_was_used_says_so(site: Site, strangers: Opener) -> None:
    page = strangers("/login?once=used")
    expect(page.get_by_role("alert")).to_contain_text("was used already")
    expect(page.get_by_label("API key")).to_be_focused()
    strangers.forgive(REFUSED, "status of 403")


def test_a_session_that_ends_amid_work_loses_nothing_of_it(site: Site, strangers: Opener) -> None:
    made = site.post("/api/v1/keys", {"name": "short", "role": "editor", "project": "default"})
    page = strangers("/runs")
    log_in(page, str(made["token"]))
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    search = page.get_by_role("searchbox")

    def end(route: Route) -> None:  # nobody can write any more once the page knows
        site.http.delete(f"/api/v1/keys/{made['id']}")
        route.continue_()

    page.route(re.compile(r"/api/v1/runs\?.*search=first"), end)
    search.fill("first")
    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_be_visible()
    no_serious_findings(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    dialog.get_by_label("API key").fill(site.key("viewer"))
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/runs\?search=first$"))
    expect(search).to_have_value("first")
    strangers.forgive(REFUSED)


def test_a_session_that_ends_before_the_first_answer_leaves_the_page_until_one_is_back(
    site: Site, strangers: Opener
) -> None:
    refused = httpx.get(f"{site.server.url}/api/v1/runs")

    def ended(route: Route) -> None:
        kind = refused.headers["content-type"]
        route.fulfill(status=refused.status_code, content_type=kind, body=refused.text)

    page = strangers("/login?next=/runs")
    page.route("**/api/v1/runs?*", ended)
    log_in(page, site.key("viewer"))
    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_be_visible()
    expect(page.locator("input[type=search]")).to_be_attached()
    page.unroute("**/api/v1/runs?*")  # in another tab one has logged in
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # as one comes back
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("row", name="<b>first</b>")).to_be_visible()
    strangers.forgive(REFUSED)


def test_a_theme_is_chosen_and_remembered(open_page: Opener) -> None:
    page = open_page("/settings")
    seen: list[str] = []
    for said in ("light", "dark", "system"):
        page.get_by_role("button", name=f"change to {said}").click()
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        if said == "dark":
            page.reload()
            expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == seen[-1]
    assert seen[0] == seen[2] != seen[1]


def test_another_project_is_one_choice_away(open_page: Opener) -> None:
    page = open_page("/p/default/datasets")
    page.get_by_label("Project").select_option("maths")
    expect(page).to_have_url(re.compile("/p/maths/datasets$"))
    section(page, "Settings")
    section(page, "Graders")
    expect(page).to_have_url(re.compile("/p/maths/graders$"))
    page.get_by_label("Project").select_option("default")
    expect(page).to_have_url(re.compile("/p/default/graders$"))


def test_a_key_of_one_project_is_offered_nothing_of_others(site: Site, strangers: Opener) -> None:
    page = strangers("/")
    log_in(page, site.key("viewer", "maths"))
    expect(page.get_by_role("heading", name="Graders in maths")).to_be_visible()
    sections = page.get_by_role("navigation", name="Main")
    expect(sections).to_contain_text("Labels")
    expect(sections).not_to_contain_text("Runs")
    expect(page.get_by_label("Project")).to_be_hidden()
    strangers.forgive(REFUSED)


ADDRESSES = sorted(
    {
        re.sub(r":\w+\??", "default", path)
        for path in re.findall(
            r'path: "(/[^"]*)"', Path(__file__).with_name("routes.tsx").read_text("utf-8")
        )
    }
)
WRITES = re.compile(
    r"^(new|create|delete|upload|revoke|save|store|lock|unlock|import|promote|re-?grade|grade with"
    r"|start|cancel|edit|run|pass|fail)\b",
    re.IGNORECASE,
)


def test_no_page_is_wider_than_a_telephone_and_a_viewer_is_offered_nothing_to_write(
    site: Site, open_page: Opener
) -> None:
    site.upload("rows", [{"id": "a", "answer": "4", "expected": "4"}])
    site.post("jobs", {"grader": "exact", "dataset": "rows"})
    open_page.log_in("viewer")
    page = open_page("/")
    disabled: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(ADDRESSES, ()),
        "/p/default/graders/exact": (),
        "/p/default/graders/exact/edit": (),
        "/p/default/datasets/rows": ("Grade with …", "Delete …"),
        "/p/default/datasets?upload=": ("Upload",),
        "/p/default/labels/queue?dataset=rows&field=x": (),
        "/p/default/calibrations?new=1&grader=exact": (),
        f"/runs/{_first_run(site)}": (),
    }
    for address, names in disabled.items():
        page.set_viewport_size(WINDOW)
        _look_at(page, address)
        offered = page.locator("main").get_by_role("button", disabled=False).all_inner_texts()
        assert [name for name in offered if WRITES.search(name.strip())] == [], address
        for name in names:
            expect(page.get_by_role("button", name=name)).to_be_disabled()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
    page.get_by_role("button", name="More about run").click()
    delete = page.get_by_role("menuitem", name="Delete (needs the role editor)")
    expect(delete).to_have_attribute("aria-disabled", "true")
    open_page.forgive("Failed to load resource")


def _first_run(site: Site) -> str:
    return str(site.http.get("/api/v1/runs").json()["items"][-1]["id"])


def _look_at(page: Page, address: str) -> None:
    """Go there within the page, which does not load anew, from where nothing is."""
    title = page.get_by_role("heading", level=1)
    for to in ("/p/default/nowhere", address):
        page.evaluate(
            "to => { history.pushState({}, '', to); dispatchEvent(new PopStateEvent('popstate')) }",
            to,
        )
        if to != address:
            expect(title).to_have_text("There is no such page")
    expect(title.filter(has_text="There is no such page")).to_have_count(0)
    expect(page.locator("main h1, main [role=alert]").first).to_be_visible()
    expect(page.get_by_text("Loading")).to_have_count(0)
    assert page.locator("a:not([href])").count() == 0, "opens in no other tab"


def test_what_an_admin_has_is_no_wider_than_a_telephone_and_names_can_be_read(
    site: Site, open_page: Opener
) -> None:
    page = open_page("/")
    page.set_viewport_size(PHONE)
    tabs = [f"/settings?tab={tab}" for tab in ("keys", "projects", "changes", "server")]
    run = [f"/runs/{_first_run(site)}?tab={tab}" for tab in ("cells", "config")]
    for address in ("/", "/p/default/graders/new/function", *tabs, *run):
        _look_at(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
        if "tab=" in address:
            expect(page.get_by_role("tab", selected=True)).to_be_in_viewport(ratio=0.98)
    page.goto(f"{site.server.url}/p/default/graders")
    link = page.get_by_role("link", name="exact")
    expect(link).to_be_visible()
    assert (link.bounding_box() or {"width": 0})["width"] > 30
    page.goto(f"{site.server.url}/runs")
    outcome = page.get_by_role("row", name="<b>first</b>").get_by_text("3", exact=False).first
    expect(outcome).to_be_in_viewport()


def test_a_server_that_is_lost_is_said_and_the_page_goes_on_when_it_is_back(
    open_page: Opener,
) -> None:
    """Killed as by a power cut; its sessions were in memory, a key lives on."""
    site, page = open_page.site, open_page("/")
    expect(page.get_by_role("row", name="<b>first</b>")).to_be_visible()
    site.server.kill()
    lost = page.get_by_role("status").get_by_text("The server does not answer.")
    expect(lost).to_be_visible()  # though nothing was clicked
    section(page, "Graders")
    expect(page).to_have_url(re.compile("/p/default/graders$"))

    port = site.server.port
    site.server.start(port=port)
    ended = page.get_by_role("dialog", name="Your session has ended")
    expect(ended).to_be_visible()
    expect(lost).to_be_hidden()
    ended.get_by_label("API key").fill(site.key("admin", "*"))
    ended.get_by_role("button", name="Log in").click()
    expect(ended).to_be_hidden()
    expect(page).to_have_url(re.compile("/p/default/graders$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Graders")
    open_page.forgive(*GONE)


_NEWER = "import { of_another_version } from './index.js'; export default of_another_version;"
_LOST: dict[str, tuple[Callable[[Route], None], tuple[str, ...]]] = {
    "another version": (  # the tab is older than the server
        lambda route: route.fulfill(content_type="text/javascript", body=_NEWER),
        ("of_another_version",),
    ),
    "did not arrive": (lambda route: route.abort(), ("ERR_FAILED", "SettingsPage.js")),
}


@pytest.mark.parametrize("said", _LOST)
def test_what_did_not_arrive_or_fit_says_so_and_is_had_by_trying_again(
    open_page: Opener, said: str
) -> None:
    """Instead of loading for ever."""
    answer, forgiven = _LOST[said]
    page = open_page("/")
    page.get_by_role("heading", name="Overview").wait_for()
    page.route("**/assets/SettingsPage.js", answer)
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("alert")).to_contain_text(said)
    page.unroute("**/assets/SettingsPage.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    open_page.forgive(said, *forgiven)
