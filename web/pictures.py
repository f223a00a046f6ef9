"""Takes the pictures of the page for the README and the documentation: `make docs` runs it.

A picture is taken where there is none: `rm -r docs/images && make docs` takes all of them anew. On
them is what was really run, graded and labelled here; times are made up and
ids replaced, so that pictures taken again are the same.

`make sheet` shows every screen instead, in each width and scheme, on one page for who reviews it.
"""

from __future__ import annotations

import html
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.command_line import assay_process

from web.conftest import Opener, Site
from web.pictured.desk import CASES, write_cases

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SHEET = ROOT / "build" / "sheet"
WIDTHS = (390, 768, 1280)
NOW = "2026-11-20T10:24:00+00:00"
_POLITE = re.sub(r"  # noqa.*", "", (ROOT / "web" / "pictured" / "polite.py").read_text("utf-8"))
_CARD = re.compile(r"/calibrations/[0-9a-f-]+$")
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
_TIME = re.compile(r'"20\d\d-\d\d-\d\dT[0-9:.]+(?:\+00:00|Z)"')


@dataclass(frozen=True)
class Picture:
    """One to be taken.

    Attributes:
        name: Of its file.
        path: What is opened.
        shows: Text that is there when all is.
        prepare: What a person does before.
    """

    name: str
    path: str
    shows: str
    prepare: Callable[[Page], None] = lambda _: None


def _try(page: Page) -> None:
    page.get_by_label("Source of the function").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(_POLITE)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text(re.compile(r"\d+ samples: "))).to_be_visible()


def _down(page: Page) -> None:
    page.get_by_role("heading", name=re.compile("^Agents")).evaluate(
        "one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 64)"
    )


PICTURES = (
    Picture("graders", "/p/default/graders", "polite"),
    Picture("editor", "/p/default/graders/polite/edit?samples=dataset&dataset=replies&take=8",
            "PLEASANT", _try),
    Picture("run", "/runs/main?tab=matrix", "refund-fee"),
    Picture("matrix", "/runs/main?tab=matrix", "refund-fee", _down),
    Picture("scores", "/runs/main?tab=scores", "amount"),
    Picture("cell", "/runs/repair/cell?case=parse-number-base&harness=replay&model=fix&trial=1",
            "detected base"),
    Picture("compare", "/compare?a=main&b=shorter-prompt", "Worse"),
    Picture("labels", "/p/default/labels/queue?dataset=replies&field=kind&rater=ada"
            "&criterion=The+reply+is+kind.", " of "),
    Picture("calibration", "/p/default/calibrations", "polite",
            lambda page: page.get_by_role("link", name="polite").first.click()),
)  # fmt: skip
SCREENS = (
    Picture("overview", "/", "Newest verdicts"),
    Picture("runs", "/runs", "shorter-prompt"),
    *(one for one in PICTURES if one.name != "matrix"),
    Picture("cells", "/runs/main?tab=cells", "48 of 48 cells",
            lambda page: expect(page.get_by_role("row").nth(1)).to_be_visible()),
    Picture("training", "/runs/main?tab=training", "What groups would teach"),
    Picture("config", "/runs/main?tab=config", "Commands"),
    Picture("grader", "/p/default/graders/polite", "Pleasant, and no shouting."),
    Picture("new-grader", "/p/default/graders/new", "Any built-in grader, as a form"),
    Picture("new-judge", "/p/default/graders/new/binary_judge", "Test Payload"),
    Picture("label-sets", "/p/default/labels", "labels"),
    Picture("calibrations", "/p/default/calibrations", "polite"),
    Picture("datasets", "/p/default/datasets", "replies"),
    Picture("dataset", "/p/default/datasets/replies", "r00"),
    Picture("jobs", "/p/default/jobs", "Jobs"),
    Picture("traces", "/p/default/traces", "Traces"),
    Picture("settings", "/settings", "Settings"),
)  # fmt: skip


_JUDGE = {
    "criteria": "The reply says what the customer gets back, and why.",
    "judge_model": "claude-haiku-4-5",
}
GRADERS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("polite", "function", "Pleasant, and no shouting.",
     {"source": _POLITE.replace("0.5 + 0.5 * pleasant", "1.0 * pleasant")}),
    ("explains", "binary_judge", "Whether the customer learns why.", _JUDGE),
    ("amount", "declared", "The last number is the amount.",
     {"graders": [{"type": "numeric_match", "pick": "last"}]}),
    ("grounded", "prebuilt_judge", "Every claim rests on a document.", {"type": "FAITHFULNESS"}),
    ("reviewers", "custom", "What people said who read it.",
     {"description": "What reviewers said."}),
)  # fmt: skip


def _wanted() -> list[tuple[Picture, Scheme]]:
    return [
        (one, scheme) for one in PICTURES for scheme in SCHEMES if not _file(one, scheme).exists()
    ]


def _file(picture: Picture, scheme: str) -> Path:
    return IMAGES / f"{picture.name}-{scheme}.png"


@pytest.fixture(scope="module")
def filled(site: Site) -> Site:
    """A site with two runs of a desk, one of a real bug, and a grader measured on labels."""
    home = site.home
    write_cases(home)
    shutil.copy(ROOT / "web" / "pictured" / "agents.py", home)
    shutil.copytree(ROOT / "examples" / "repair", home / "repair")
    agents = ("--harness", "agents.py:careful", "--harness", "agents.py:hasty", "--trials", "3")
    _run(site, "repair", "20261119-161200-3f1c", "repair")
    _run(site, "main", "20261120-083010-a41e", "evals", *agents)
    _run(site, "shorter-prompt", "20261120-101500-7c02", "evals", *agents, DESK_SKILL="0.5")

    token = site.post("/api/v1/keys", {"name": "ada", "role": "admin", "project": "*"})["token"]
    site.http.headers["Authorization"] = f"Bearer {token}"
    for key, kind, about, definition in GRADERS:
        made = {"key": key, "kind": kind, "description": about, "definition": definition}
        site.post("graders", made)
    rows = _replies()
    site.upload("replies", rows)
    site.post("graders/amount/grade", {"items": rows})
    site.post("graders/polite/grade", {"items": rows})
    _label(site)
    site.assay("calibrate", "polite", "labels.jsonl", "--trust-authors", "--threshold", "0.75")
    return site


def _run(site: Site, label: str, run: str, *args: str, **variables: str) -> None:
    """Run cases, and give the run an id and times that are always the same."""
    env = {"PYTHONPATH": str(ROOT), **variables}
    asked = ("run", *args, "--workers", "1", "--name", label)
    done = assay_process(*asked, cwd=site.home, env=env)
    assert done.returncode in (1, 3), done.stdout + done.stderr
    site.assay("runs", "export", label, "--out", run)
    site.assay("runs", "delete", label, "--yes")
    head = site.home / run / "run.json"
    body = cast("dict[str, Any]", json.loads(head.read_text("utf-8")))
    old = str(body["run"]["id"])
    day, hour = run.split("-")[:2]
    begun = f"{day[:4]}-{day[4:6]}-{day[6:]}T{hour[:2]}:{hour[2:4]}:{hour[4:]}+00:00"
    body["run"].update(id=run, created_at=begun)
    head.write_text(json.dumps(body), "utf-8")
    results = site.home / run / "results.jsonl"
    text = results.read_text("utf-8").replace(old, run).replace(f"{site.home}/", "")
    text = _TIME.sub(f'"{begun}"', text)
    rng, lines = random.Random(run), list[str]()
    for line in sorted(text.splitlines()):
        row = cast("dict[str, Any]", json.loads(line))
        row["cell"]["seconds"] = round(rng.lognormvariate(1.2, 0.5), 2)
        lines.append(json.dumps(row) + "\n")
    results.write_text("".join(lines), "utf-8")
    site.assay("runs", "import", run)


def _replies() -> list[dict[str, Any]]:
    begins = (
        "I am sorry about the {}.",
        "That is how it is.",
        "Thank you for waiting, it was about the {}.",
        "THE {} IS NOT OUR FAULT!",
        "We are glad to help with the {}.",
    )
    rows: list[dict[str, Any]] = []
    for number in range(48):
        asked, amount, word = list(CASES.values())[number % len(CASES)]
        told = amount if number % 7 else amount + 10
        begin = begins[number % 5].format(word)
        answer = f"{begin} For order {1040 + number} you get back:\n{told:.2f}"
        answer = answer.upper() if number % 5 == 3 else answer
        row = {"id": f"r{number:02}", "question": asked, "answer": answer, "expected": amount}
        rows.append(row)
    return rows


def _label(site: Site) -> None:
    """What somebody said of each reply, who does not always agree with the grader."""
    lines: list[str] = []
    for number, row in enumerate(_replies()):
        kind = any(word in row["answer"] for word in ("sorry", "Thank", "glad"))
        lines.append(json.dumps({**row, "label": kind != (number % 11 == 1)}) + "\n")
    (site.home / "labels.jsonl").write_text("".join(lines), "utf-8")


def _steady(context: BrowserContext) -> None:
    """Have the page told the same times and ids by each server; those of the runs are anyway."""

    def answer(route: Route) -> None:
        asked = route.request
        if "events" in asked.url or (asked.method != "GET" and not asked.url.endswith("/try")):
            route.continue_()
            return
        got = route.fetch()
        body = _TIME.sub(lambda found: found[0] if found[0] < f'"{NOW}' else f'"{NOW}"', got.text())
        body = re.sub(r'("milliseconds":) ?[0-9.e-]+', r"\1 0.6", body)
        if _CARD.search(asked.url):
            body = body.replace(asked.url.rpartition("/")[2], "20261120-5ad1e0c4")
        route.fulfill(response=got, body=body)

    context.route("**/api/v1/**", answer)


@pytest.mark.parametrize(
    ("picture", "scheme"), _wanted(), ids=lambda one: getattr(one, "name", one)
)
def test_a_picture_is_taken(
    filled: Site, open_page: Opener, picture: Picture, scheme: Scheme
) -> None:
    page = shown(filled, open_page, picture, scheme)
    IMAGES.mkdir(exist_ok=True)
    page.screenshot(path=_file(picture, scheme), animations="disabled", caret="hide")


@pytest.mark.parametrize("screen", SCREENS, ids=lambda one: one.name)
def test_a_screen_is_put_on_the_sheet(filled: Site, open_page: Opener, screen: Picture) -> None:
    page = shown(filled, open_page, screen, "light")
    SHEET.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        # As high as all that is in it: what stands at the bottom of a screen stays there.
        height = int(page.evaluate("document.documentElement.scrollHeight"))
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(250)
            file = SHEET / f"{screen.name}-{width}-{scheme}.png"
            page.screenshot(path=file, animations="disabled", caret="hide")
    (SHEET / "index.html").write_text("".join(_sheet()), "utf-8")


def shown(filled: Site, open_page: Opener, picture: Picture, scheme: Scheme) -> Page:
    """The page of a picture when all is there."""
    _steady(open_page.context)
    page = open_page.context.new_page()
    open_page.watch.on(page)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.clock.set_fixed_time(NOW)
    page.goto(f"{filled.server.url}{picture.path}")
    expect(page.get_by_text(picture.shows).first).to_be_visible()
    picture.prepare(page)
    page.wait_for_timeout(400)
    return page


def _sheet() -> Iterator[str]:
    """The page with all of them: a row for a screen in a scheme, half as large as they are."""
    yield '<!doctype html><html lang="en"><meta charset="utf-8"><title>Every screen</title><style>'
    yield "body{font:14px system-ui;background:#888;margin:16px}"
    yield "div{display:flex;gap:16px;align-items:start;margin-bottom:16px}</style>"
    for one in SCREENS:
        yield f"<h2>{one.name} <code>{html.escape(one.path)}</code></h2>"
        for scheme in SCHEMES:
            names = [(f"{one.name}-{width}-{scheme}.png", width) for width in WIDTHS]
            yield "<div>"
            for name, width in names:
                image = f'<img loading="lazy" width="{width // 2}" src="{name}" alt="{name}">'
                yield f'<a href="{name}">{image}</a>'
            yield "</div>"
