"""The HTML report, read as a browser's parser would read it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError
from assay.reports.html import write_html
from assay.reports.markup import Html, element, joined
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord

RUN = RunRecord(id="r1", created_at="2026-11-21T09:08:30Z", label="nightly", config={"trials": 2})
VOID = {"meta", "rect", "circle", "br"}


class Page(HTMLParser):
    """The elements and the text of a page; refuses elements that are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def cell(case: str = "sort", **more: Any) -> CellRecord:
    fields: dict[str, Any] = {
        "harness": "echo",
        "model": "small",
        "status": "graded",
        "reward": 1.0,
        "passed": True,
        **more,
    }
    return CellRecord(run_id="r1", case=case, **fields)


def failing(case: str = "sort", **more: Any) -> CellRecord:
    node = SubScore(
        "tests",
        0.25,
        metadata={"exit_code": 1, "stdout": "3 failed", "_parameters": {"cmd": "pytest"}},
        children=[SubScore("test_a", 0.0, reason="assert 1 == 2"), SubScore("test_b", 1.0)],
    )
    fields: dict[str, Any] = {"reward": 0.25, "passed": False, "subscores": (node.to_dict(),)}
    return cell(case, **{**fields, **more})


def test_cells_that_could_not_fail_are_scored_and_not_passed(tmp_path: Path) -> None:
    free = [cell(case, reward=0.5, threshold=0.0) for case in ("a", "b")]
    write_html(tmp_path / "r.html", review(RUN, iter(free)))
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert "2 scored" in page.text
    for word in ("Pass rate", "Passed", "✓ pass", "2/2", "2 passed"):
        assert word not in page.text, word
    assert all("pass" not in (one.get("class") or "") for one in page.all("details"))
    write_html(tmp_path / "m.html", review(RUN, iter([*free, cell("c")])))
    mixed = Page((tmp_path / "m.html").read_text("utf-8")).text
    assert "1 passed, 0 failed, 2 scored" in mixed
    assert "2 scored without a threshold count as passed" in mixed
    assert "Passed or scored" in mixed


def errored(case: str = "e", **more: Any) -> CellRecord:
    return cell(case, **{"status": "error", "reward": None, "error": "judge: 503", **more})


def source(
    tmp_path: Path,
    *cells: CellRecord,
    run: RunRecord = RUN,
    limit: int | None = 200,
    labels: dict[str, bool | float] | None = None,
    **options: Any,
) -> str:
    path = tmp_path / "report.html"
    write_html(path, review(run, iter(cells), limit=limit, labels=labels), **options)
    return path.read_text("utf-8")


def test_one_file_without_script_or_outside_resource(tmp_path: Path) -> None:
    page = Page(source(tmp_path, failing(), cell("b"), errored()))
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "style", "onclick", "onload"} & set(attributes), tag
        assert str(attributes.get("href", "#")).startswith("#")
    assert "http" not in re.sub(r"http-equiv", "", source(tmp_path, failing()))


def test_the_policy_admits_this_style_sheet_and_nothing_else(tmp_path: Path) -> None:
    text = source(tmp_path, cell())
    style = text.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    metas = {m.get("http-equiv"): m.get("content") for m in Page(text).all("meta")}
    policy = metas["Content-Security-Policy"]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style


def test_every_score_opens_down_to_its_evidence(tmp_path: Path) -> None:
    page = Page(source(tmp_path, failing(answer="Paris?", digest="sha256:12", flags=("odd",))))
    for fact in (
        "0.25 = 1.00\N{MULTIPLICATION SIGN}0.25 tests; needs 1.00 → fail",
        "exit code",
        "3 failed",
        "cmd: pytest",
        "test_a",
        "assert 1 == 2",
        "Paris?",
        "sha256:12",
        "odd",
    ):
        assert fact in page.text
    opened = [d.get("class") for d in page.all("details") if "open" in d]
    assert opened == ["cell fail", "node fail", "node fail"]


def test_numbers_stand_beside_what_they_rest_on(tmp_path: Path) -> None:
    text = Page(source(tmp_path, cell("a"), failing("b"), errored())).text
    assert "1 of 2 graded cells" in text
    assert "2 of 3 cells graded" in text
    assert "95 % interval" in text
    assert "1 could not be graded" in text
    assert "unknown" in text
    assert "$0" not in text


def test_failing_cells_come_before_errors_before_passes(tmp_path: Path) -> None:
    page = Page(source(tmp_path, cell("a"), errored(), failing("b")))
    kinds = [
        str(d["class"]) for d in page.all("details") if str(d.get("class")).startswith("cell ")
    ]
    assert kinds == ["cell fail", "cell error", "cell pass"]


def test_the_matrix_links_to_cells_that_are_there(tmp_path: Path) -> None:
    page = Page(source(tmp_path, failing(), cell("b"), errored(), limit=1))
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [str(a["href"])[1:] for a in page.all("a")]
    assert len(links) == 3
    assert set(links) <= ids


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    cells = [failing(f"c{n}") for n in range(5)]
    assert "… and 3 more, left out of this page" in Page(source(tmp_path, *cells, limit=2)).text
    cut = Page(source(tmp_path, *cells, max_characters=5_000)).text
    assert re.search(r"… and [1-5] more, left out", cut)
    assert "left out" not in Page(source(tmp_path, *cells)).text


def test_a_page_of_huge_cells_stays_within_bounds(tmp_path: Path) -> None:
    wide = SubScore("w", 0.0, children=[SubScore(f"n{n}", 0.0) for n in range(5_000)])
    long = "line\n" * 100_000 + "x" * 1_000_000
    cells = [
        failing(f"c{n}", answer=long, content=long, subscores=(wide.to_dict(),)) for n in range(3)
    ]
    assert len(source(tmp_path, *cells)) < 500_000


def test_every_kind_of_flood_is_cut_with_a_note(tmp_path: Path) -> None:
    wide = tuple(SubScore(f"n{n}", 1.0).to_dict() for n in range(300))
    partly = [cell("a", subscores=wide, tokens=5, cost_usd=0.5), cell("b")]
    rows = [cell(f"c{n}") for n in range(1_001)]
    text = Page(source(tmp_path, *partly, *rows, limit=2)).text
    assert "Only the first 120 are shown" in text
    assert "3 more cases not shown" in text
    assert "5 tokens + 1,002 cells unknown" in text
    assert "+ 1,002 cells of unknown cost" in text


def test_weights_and_penalties_stand_beside_their_scores(tmp_path: Path) -> None:
    parts = (SubScore("a", 1.0, weight=0.5), SubScore("slow", 0.5, weight=-0.4))
    text = Page(source(tmp_path, cell(subscores=tuple(p.to_dict() for p in parts)))).text
    assert "weight 0.50" in text
    assert "penalty 0.40" in text


def test_agents_errors_agreement_trials_and_mixed_graders_are_shown(tmp_path: Path) -> None:
    cells = [
        cell("a", trial=1, digest="d1"),
        failing("a", trial=2, digest="d2"),
        cell("a", model="large"),
        errored(),
        cell("s", status="skipped", reward=None, content="no trace"),
    ]
    text = Page(source(tmp_path, *cells, labels={"a": True})).text
    for part in (
        "Agents",
        "judge: 503",
        "Agreement with labels",
        "Passed 2 of 2 trials",
        "flaky",
        "mixed graders",
        "not run",
        "skipped: no trace",
        '"trials": 2',
    ):
        assert part in text


def test_the_verdict_is_the_one_that_is_returned(tmp_path: Path) -> None:
    kept = review(RUN, [cell(), failing("b")])
    decided = write_html(tmp_path / "r.html", kept, fail_under=0.9)
    assert decided == verdict(kept.summary, fail_under=0.9)
    assert decided.line in Page((tmp_path / "r.html").read_text("utf-8")).text
    with pytest.raises(InputError):
        write_html(tmp_path / "r.html", kept, fail_under=9)


def test_a_run_without_cells_is_still_a_page(tmp_path: Path) -> None:
    assert "nothing was graded" in Page(source(tmp_path)).text


def test_statuses_have_a_shape_and_a_word_and_tables_have_headers(tmp_path: Path) -> None:
    text = source(tmp_path, failing(), errored(), cell("b", trial=2))
    page = Page(text)
    for words in ("✗ fail", "! error", "✓ pass"):
        assert words in page.text
    assert page.all("html")[0]["lang"] == "en"
    assert all(th.get("scope") for th in page.all("th"))
    assert text.count("<caption") == text.count("<table")
    assert all(svg.get("aria-hidden") == "true" for svg in page.all("svg"))


ATTACK = (
    "</pre></style></title><script>alert(1)</script><img src=x onerror=alert(2)>"
    '" onmouseover=\'x\' <a href="https://evil.test">\x1b[2J\u202e&lt;b&gt;\x00\ud800'
)


def test_markup_in_what_is_graded_stays_text(tmp_path: Path) -> None:
    node = SubScore(
        ATTACK, 0.0, reason=ATTACK, metadata={"stdout": ATTACK, ATTACK: [ATTACK]}, flags=(ATTACK,)
    )
    fields: dict[str, Any] = {
        "harness": ATTACK,
        "model": ATTACK,
        "file": ATTACK,
        "answer": ATTACK,
        "error": ATTACK,
        "content": ATTACK,
        "flags": (ATTACK,),
        "subscores": (node.to_dict(),),
    }
    run = RunRecord(
        id=ATTACK, created_at=ATTACK, label=ATTACK, config={ATTACK: ATTACK}, digests={ATTACK: "x"}
    )
    text = source(
        tmp_path,
        failing(ATTACK, **{**fields, "digest": "d1"}),
        failing(ATTACK, **{**fields, "digest": "d2", "trial": 2}),
        errored(ATTACK, **fields),
        cell(ATTACK, **{**fields, "status": "skipped"}),
        run=run,
    )
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert str(attributes.get("href", "#")).startswith("#")
    assert "<script>alert(1)</script>" in page.text
    assert "&lt;b&gt;" in page.text
    assert not set("\x1b\u202e\x00") & set(text)


def test_elements_escape_text_and_attributes_but_not_html() -> None:
    inner = element("b", "<i>", class_='"')
    assert inner == '<b class="&quot;">&lt;i&gt;</b>'
    assert element("p", inner, None, "&") == f"<p>{inner}&amp;</p>"
    assert element("details", open=True, hidden=False, id=None) == "<details open></details>"
    assert element("p", "\x1b[2Ja\u202e", title="\x1b[2Jb") == '<p title="b">a\\u202e</p>'
    assert element("meta", http_equiv="x") == '<meta http-equiv="x">'
    assert isinstance(joined("a", inner), Html)


def test_the_matrix_of_hundreds_of_cases_is_bounded(tmp_path: Path) -> None:
    page = source(tmp_path, *(cell(f"r{n}") for n in range(300)))
    assert "200 more cases not shown here" in page
    assert page.count('scope="row"') == 100
