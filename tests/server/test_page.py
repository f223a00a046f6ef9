"""The web page as the server gives it: its addresses, headers and files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from assay.server import page
from tests.each import each
from tests.server_app import Site, faults_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/assay/server/page"
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip"}
FIRST_PAGE_BYTES = 250_000


@pytest.fixture
def built() -> None:
    if not (BUILT / "index.html").exists():
        pytest.skip("the page was not built: make web")


def _addresses() -> list[str]:
    """An address for each route of the page, as its sources list them."""
    said = (ROOT / "web/src/app/routes.tsx").read_text("utf-8")
    paths: list[str] = re.findall(r'path: "(/[^"]*)"', said)
    assert len(paths) > 5
    return [re.sub(r":\w+\??|\*", "x", path) for path in paths]


@pytest.mark.usefixtures("built")
async def test_every_address_of_the_page_gives_the_page_whatever_stands_behind_it(
    site: Site,
) -> None:
    async with site.client() as stranger:
        for path in [*_addresses(), "/login", "/runs/r1/cell?case=a%2Fb&trial=2&x=1"]:
            answer = await stranger.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            head = await stranger.head(path) if path != "/login" else answer
            assert head.status_code == 200, path


@pytest.mark.usefixtures("built")
async def test_the_page_runs_nothing_but_its_own_and_each_has_a_nonce_of_its_own(
    site: Site,
) -> None:
    seen: set[str] = set()
    for _ in range(2):
        answer = await site.admin.get("/", headers=BROWSER)
        headers = answer.headers
        policy = dict(part.strip().split(" ", 1) for part in
                      headers["content-security-policy"].split(";"))  # fmt: skip
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        (nonce,) = re.findall(r'name="csp-nonce" content="([\w-]{20,})"', answer.text)
        assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
        seen.add(nonce)
        assert headers["cache-control"] == "no-store", "a nonce is used once"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert not re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", answer.text)
        assert not re.findall(r"(?:src|href)=\"(?!/)", answer.text)
    assert len(seen) == 2


@pytest.mark.usefixtures("built")
async def test_files_are_sent_compressed_and_once(site: Site) -> None:
    refusing = {"Accept-Encoding": "gzip;q=0, identity"}
    plain = await site.admin.get("/assets/index.js", headers=refusing)
    zipped = await site.admin.get("/assets/index.js", headers=BROWSER)
    assert plain.content == zipped.content == (BUILT / "assets/index.js").read_bytes()
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert plain.headers["etag"] != zipped.headers["etag"]
    assert len({plain.headers["vary"], zipped.headers["vary"], "Accept-Encoding"}) == 1
    assert zipped.headers["content-type"].startswith("text/javascript")
    assert zipped.headers["cache-control"] == "no-cache"
    for given in (zipped.headers["etag"], f'"x", W/{zipped.headers["etag"]}', "*"):
        answer = await site.admin.get(
            "/assets/index.js", headers={**BROWSER, "If-None-Match": given}
        )
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == zipped.headers["etag"]
    changed = await site.admin.get("/assets/index.js", headers={**BROWSER, "If-None-Match": '"x"'})
    assert changed.status_code == 200


@pytest.mark.usefixtures("built")
async def test_what_a_browser_loads_first_is_small(site: Site) -> None:
    """All that the document names, with what that loads before anything is shown."""
    document = (await site.admin.get("/", headers=BROWSER)).text
    names = set(re.findall(r"/assets/([\w.-]+\.(?:js|css))", document))
    assert "index.js" in names
    read: set[str] = set()
    while more := names - read:
        for name in more:
            read.add(name)
            text = (BUILT / "assets" / name).read_text("utf-8")
            names |= set(re.findall(r'^import[^"\']*["\']\./([\w.-]+)["\']', text, re.MULTILINE))
    names |= {"Overview.js"} & {one.name for one in (BUILT / "assets").iterdir()}
    sent = sum(len(gzip.compress((BUILT / "assets" / name).read_bytes())) for name in names)
    assert sent <= FIRST_PAGE_BYTES, f"{sent} bytes of {sorted(names)}"
    assert len(names) <= 6, "at each visit a browser asks for each of them anew"


@each(
    "name",
    ["..%2findex.html", "%2e%2e%2fpage.py", "%2e%2e", ".js", "..js", "x.js%00.css",
     "index.html", "index.js/", "%5c..%5cindex.js", "a" * 90 + ".js", "none.js", "page.py", ""],
)  # fmt: skip
async def test_only_built_files_are_given(site: Site, name: str) -> None:
    answer = await site.admin.get(f"/assets/{name}", headers=BROWSER)
    assert answer.status_code == 404
    faults_of(answer)


@pytest.mark.usefixtures("built")
async def test_who_is_lost_with_a_browser_sees_the_page_and_a_program_json(site: Site) -> None:
    lost = await site.admin.get("/nowhere/at?all=1", headers=BROWSER)
    assert (lost.status_code, lost.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert 'id="root"' in lost.text
    for path, accept in (
        ("/nowhere", "*/*"),
        ("/nowhere", "application/json"),
        ("/api/v1/nowhere", BROWSER["Accept"]),
        ("/serve/default/none/x", BROWSER["Accept"]),
    ):
        answer = await site.admin.get(path, headers={"Accept": accept})
        assert answer.status_code == 404
        assert "json" in answer.headers["content-type"], path
    posted = await site.admin.post("/nowhere", headers=BROWSER)
    assert "json" in posted.headers["content-type"]
    used = await site.admin.get("/login", params={"once": "used"}, headers=BROWSER)
    assert (used.status_code, used.headers["content-type"]) == (403, "text/html; charset=utf-8")


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """An installation whose built files were lost."""
    forget = page._file.cache_clear
    forget()
    monkeypatch.setattr(page.resources, "files", lambda _: tmp_path)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    yield
    forget()


@pytest.mark.usefixtures("no_files")
async def test_where_the_files_are_missing_it_says_what_to_do(site: Site) -> None:
    for path in ("/", "/runs", "/nowhere"):
        answer = await site.admin.get(path, headers=BROWSER)
        assert answer.status_code == 503
        assert "make web" in answer.text
    assert (await site.get("/api/v1/me")).status_code == 200
