"""Keys, projects, the log of changes and the server, as admins and others see them."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import expect
from web.conftest import Opener, Site, no_serious_findings

XSS = "<img src=x onerror=document.title='pwned'>"


def test_a_key_is_shown_once_used_and_revoked(site: Site, open_page: Opener) -> None:
    page = open_page("/settings")
    expect(page.get_by_text("whoever used this server's one-time link")).to_be_visible()
    no_serious_findings(page)
    page.get_by_role("tab", name="Keys").click()
    page.get_by_label("Name").fill(XSS)
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("form", name="New key").get_by_label("Project").select_option("default")
    page.get_by_label("Good for").select_option("30")
    page.get_by_role("button", name="Make a key").click()
    shown = page.get_by_role("region", name="The new key")
    token = shown.locator("code").inner_text()
    assert token.startswith("assay_")
    expect(shown).to_contain_text("shown this once")
    row = page.get_by_role("row").filter(has_text=token[:14])
    expect(row).to_contain_text("until")
    expect(row).to_contain_text(XSS)
    no_serious_findings(page)

    me = f"{site.server.url}/api/v1/me"
    used = httpx.get(me, headers={"Authorization": f"Bearer {token}"})
    assert (used.status_code, used.json()["role"]) == (200, "viewer")
    page.reload()
    expect(page.get_by_text(token)).to_have_count(0)
    expect(row).not_to_contain_text("never")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("dialog")).to_contain_text("refused from now on")
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("revoked")
    assert httpx.get(me, headers={"Authorization": f"Bearer {token}"}).status_code == 401

    page.get_by_role("tab", name="Changes").click()
    page.get_by_role("button", name="revoke key").first.click()
    expect(page).to_have_url(re.compile("what=revoke_key"))
    expect(page.get_by_role("button", name="create key")).to_have_count(0)
    no_serious_findings(page)
    assert "pwned" not in page.title()


def test_projects_are_made_and_limited_and_the_server_says_what_it_is(open_page: Opener) -> None:
    page = open_page("/settings?tab=projects")
    page.get_by_role("textbox", name="Key").fill("maths")
    page.get_by_role("button", name="Make a project").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="maths"))
    row.get_by_role("button", name="Limits").click()
    no_serious_findings(page)
    page.get_by_label("Requests a minute").fill("600")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("600")
    expect(row).to_contain_text("no limit")
    page.get_by_role("tab", name="This server").click()
    expect(page.get_by_text("SQLite")).to_be_visible()
    expect(page.get_by_text("1,000,000")).to_be_visible()
    no_serious_findings(page)


def test_whoever_may_not_is_told_so_and_sees_no_secret(site: Site, open_page: Opener) -> None:
    open_page.log_in("editor")
    page = open_page("/settings")
    for tab, said in (("keys", "managed by admins"), ("changes", "for admins")):
        page.goto(f"{site.server.url}/settings?tab={tab}")
        expect(page.get_by_text(said)).to_be_visible()
    page.goto(f"{site.server.url}/settings?tab=projects")
    expect(page.get_by_role("link", name="default")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Limits|Make"))).to_have_count(0)
    page.goto(f"{site.server.url}/settings?tab=server")
    expect(page.get_by_text("SQLite")).to_be_visible()
    expect(page.get_by_text(str(site.home))).to_have_count(0)
    # An admin of one project manages its keys alone.
    open_page.log_in("admin")
    page = open_page("/settings?tab=keys")
    expect(page.get_by_role("cell", name="editor").first).to_be_visible()
    expect(page.get_by_role("cell", name="all projects")).to_have_count(0)
    expect(page.get_by_role("form").get_by_role("option", name="all projects")).to_have_count(0)
