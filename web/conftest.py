"""The page in a real browser, before a real server, on what was really stored.

`site` is a server with data; `open_page` opens its page as whoever logged in. A page that writes
an error to its console, breaks its content security policy or asks anybody but its server fails
the test that opened it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)
from tests.command_line import assay
from tests.server_process import ServerProcess
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The one that never has windows draws the same, and takes a third less of a processor.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
_NO_CHROMIUM = "there is no chromium: apt-get install chromium"
BUILT = Path(__file__).parent.parent / "src" / "assay" / "server" / "page" / "index.html"

WINDOW: ViewportSize = {"width": 1280, "height": 800}
_AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_SEVERE = ("serious", "critical")

# A machine that does other things is slow, and no page is wrong for that.
_PATIENCE_MS = 120_000
expect.set_options(timeout=_PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them run a browser, which `make real` installs."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.real)


class _Modules(LoadScopeScheduling):
    """Gives whole modules to workers: each fills a server of its own."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Modules | None:
    """Where only these tests are run."""
    here = Path(__file__).parent
    places = (Path(one.partition("::")[0]).resolve() for one in config.args)
    return _Modules(config, log) if all(one.is_relative_to(here) for one in places) else None


def command(home: Path, *args: str, code: int = 0) -> str:
    """Run a command of `assay` on the store of a directory; what it printed."""
    with _without_a_loop():
        done = assay(*args, cwd=home)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


@dataclass
class Site:
    """A server with its store.

    Attributes:
        server: The process.
        http: A client of its API that may do everything.
    """

    server: ServerProcess
    http: httpx.Client
    _sessions: dict[str, httpx.Response] = field(default_factory=dict[str, httpx.Response])

    @property
    def home(self) -> Path:
        """The directory that the server and commands work in."""
        return self.server.home

    def assay(self, *args: str, code: int = 0) -> str:
        """Run a command of `assay` on the same store; what it printed."""
        return command(self.home, *args, code=code)

    def post(self, path: str, body: object) -> Any:
        """Ask the API to do something; a path without a slash is of the project `default`."""
        where = path if path.startswith("/") else f"/api/v1/projects/default/{path}"
        answer = self.http.post(where, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def upload(self, key: str, rows: Sequence[object]) -> None:
        """Store a dataset."""
        answer = self.http.post(
            f"/api/v1/projects/default/datasets/{key}",
            content="".join(json.dumps(row) + "\n" for row in rows),
            headers={"Content-Type": "application/x-ndjson"},
        )
        assert answer.status_code == 201, answer.text

    def session(self) -> httpx.Response:
        """What it told whoever used its one-time link, with a cookie; since it was started."""
        link = self.server.link
        if link not in self._sessions:
            self._sessions[link] = httpx.get(link)
        return self._sessions[link]

    def key(self, role: str, project: str = "default") -> str:
        """A new API key."""
        made = self.post("/api/v1/keys", {"name": role, "role": role, "project": project})
        return cast("str", made["token"])


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    """Of `assay serve`; a module may have others."""
    return ()


@pytest.fixture(scope="module")
def site(options: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """A server on an empty store; a module fills it by a fixture of its own."""
    if CHROMIUM is None:
        pytest.skip(_NO_CHROMIUM)
    if not BUILT.exists():
        pytest.skip("the page was not built: make web")
    with (
        ServerProcess(tmp_path_factory.mktemp("site"), None, *options) as server,
        httpx.Client(base_url=server.url, headers=server.headers, timeout=60) as http,
    ):
        yield Site(server, http)


@dataclass(frozen=True)
class _Started:
    """Chromium, without a window.

    Attributes:
        browser: The browser.
        context: Where nearly all pages are opened.
        loop: The loop of asyncio that Playwright is in.
    """

    browser: Browser
    context: BrowserContext
    loop: asyncio.AbstractEventLoop


@pytest.fixture(scope="package")
def started_browser() -> Generator[_Started]:
    """Chromium, once for all that a worker tests."""
    if CHROMIUM is None:
        pytest.skip(_NO_CHROMIUM)
    # Its shared memory is files that it unlinks at once: killed in between, it leaves one.
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM,
            # One process for all pages: each of its own would have to start. No page lives long
            # enough to win back what it costs to compile its scripts better.
            args=[
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--in-process-gpu",
                "--renderer-process-limit=1",
                "--disable-site-isolation-trials",
                "--js-flags=--no-opt --no-maglev",
            ],
            env={**os.environ, "TMPDIR": scratch},
        )
        loop = asyncio._get_running_loop()
        assert loop is not None
        with _context(found) as context:
            context.new_page()  # stays: with the last page its process would end
            with _without_a_loop():
                yield _Started(found, context, loop)
        found.close()


@contextmanager
def _without_a_loop() -> Generator[None]:
    """Let asyncio run although Playwright, which is asked nothing meanwhile, is in a loop of it."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


@pytest.fixture(scope="module")
def browser(started_browser: _Started) -> Generator[Browser]:
    """Chromium, for a module: what the next one is filled with may need asyncio."""
    asyncio._set_running_loop(started_browser.loop)
    yield started_browser.browser
    asyncio._set_running_loop(None)


@dataclass
class Watch:
    """What a page did that it must not do.

    Attributes:
        faults: What was seen; a test that expects some empties it.
    """

    url: str
    faults: list[str] = field(default_factory=list[str])

    def on(self, page: Page) -> None:
        """Watch a page."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"threw: {error}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type} on the console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.faults.append(f"asked somebody else: {request.url}")


@dataclass
class Opener:
    """Opens pages.

    Attributes:
        watch: What all of them did wrong.
    """

    site: Site
    context: BrowserContext
    watch: Watch

    def log_in(self, role: str, project: str = "default") -> None:
        """Be who has a new key; everything else is that person's as before."""
        key = {"key": self.site.key(role, project)}
        self.be(httpx.post(f"{self.site.server.url}/login", json=key))

    def be(self, told: httpx.Response) -> None:
        """Have the cookie that the server gave to whoever logged in."""
        assert told.is_success or told.is_redirect, told.text
        self.context.clear_cookies()
        ((name, value),) = told.cookies.items()
        self.context.add_cookies([{"name": name, "value": value, "url": self.site.server.url}])

    def log_out(self) -> None:
        """Be nobody; that the server says so is no fault."""
        self.context.clear_cookies()

    def forgive(self, *said: str) -> None:
        """Forget faults that a test brought about, by what they say."""
        self.watch.faults = [
            fault for fault in self.watch.faults if not any(one in fault for one in said)
        ]

    def __call__(self, path: str = "/") -> Page:
        """Open an address of the page, logged in by the server's link."""
        page = self.context.new_page()
        self.watch.on(page)
        page.goto(f"{self.site.server.url}{path}")
        return page


@contextmanager
def _context(browser: Browser) -> Generator[BrowserContext]:
    context = browser.new_context(
        viewport=WINDOW, permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce"
    )
    context.set_default_timeout(_PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def context(started_browser: _Started, browser: Browser) -> BrowserContext:
    """Where the pages of all modules are opened: what the browser has loaded for one, it has."""
    return started_browser.context


def leave(context: BrowserContext, origin: str) -> None:
    """Close what a test opened, and have nothing left of it; the next begins as somebody new."""
    for page in context.pages[1:]:
        of_page = context.new_cdp_session(page)
        asked = {"origin": origin, "storageTypes": "local_storage"}
        of_page.send("Storage.clearDataForOrigin", asked)
        page.close()
    context.clear_cookies()


@pytest.fixture
def open_page(site: Site, context: BrowserContext) -> Generator[Opener]:
    """Opens pages for whoever used the one-time link; at the end none may have done wrong."""
    opener = Opener(site, context, Watch(site.server.url))
    opener.be(site.session())
    yield opener
    leave(context, site.server.url)
    assert opener.watch.faults == []


@pytest.fixture
def open_fresh(tmp_path: Path, context: BrowserContext) -> Generator[Opener]:
    """As `open_page`, on a server of the test's own, whose store is empty."""
    with (
        ServerProcess(tmp_path) as server,
        httpx.Client(base_url=server.url, headers=server.headers, timeout=60) as http,
    ):
        opener = Opener(Site(server, http), context, Watch(server.url))
        opener.be(opener.site.session())
        yield opener
        leave(context, server.url)
    assert opener.watch.faults == []


def findings(page: Page, *rules: str) -> list[str]:
    """What axe finds that is serious: rule, and the elements that break it; all rules, or some."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_AXE.read_text("utf-8"))
    found = cast(
        "list[dict[str, Any]]",
        page.evaluate(
            "async rules => (await axe.run(document, {resultTypes: ['violations'],"
            " ...(rules.length && {runOnly: rules})})).violations",
            list(rules),
        ),
    )
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        if one["impact"] in _SEVERE
        for node in one["nodes"]
    ]


def no_serious_findings(page: Page) -> None:
    """Check a page with axe; in dark only what differs there: its colours."""
    page.emulate_media(color_scheme="light")
    assert findings(page) == [], "light"
    page.emulate_media(color_scheme="dark")
    assert findings(page, "color-contrast") == [], "dark"
    page.emulate_media(color_scheme="light")
