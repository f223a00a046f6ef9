"""A self-test on a terminal: every check of every case, the mend, and what is left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.eval.proof import CaseProof, Proof, Verdict
from assay.reports.figures import count, score
from assay.reports.outcome import GLYPHS, Outcome
from assay.reports.page import STYLES, Page
from assay.reports.plain import one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["render_selftest", "selftest_line"]

_OUTCOMES: dict[Verdict, Outcome] = {
    "held": "pass",
    "failed": "fail",
    "error": "error",
    "skipped": "skipped",
}


def render_selftest(console: Console, proof: Proof) -> None:
    """Write what a self-test found."""
    page = Page(console)
    for case in proof.cases:
        _case(page, case)
    outcome: Outcome = "pass" if proof.code == 0 else "fail" if proof.code == 1 else "error"
    page.line((f"{GLYPHS[outcome]} {selftest_line(proof)}", STYLES[outcome]), hanging=2)


def selftest_line(proof: Proof) -> str:
    """The verdict in one line."""
    of: dict[Verdict, list[str]] = {"held": [], "failed": [], "error": [], "skipped": []}
    for case in proof.cases:
        of[case.verdict].append(one_line(case.case, 60))
    skipped = f" ({len(of['skipped'])} skipped)" if of["skipped"] else ""
    if of["failed"]:
        return f"FAIL: not proven: {', '.join(of['failed'])}{skipped}"
    if of["error"]:
        return f"NO VERDICT: could not be tested: {', '.join(of['error'])}{skipped}"
    if not of["held"]:
        return "NO VERDICT: every case was skipped"
    return f"PASS: {count(len(of['held']), 'case')} proven{skipped}"


def _case(page: Page, case: CaseProof) -> None:
    outcome = _OUTCOMES[case.verdict]
    page.line(
        (f"{GLYPHS[outcome]} {one_line(case.case, 60)}", STYLES[outcome]),
        (f"  {one_line(case.file, 80)} · passes at {score(case.threshold)}", "dim"),
        hanging=2,
    )
    header = [page.text(title) for title in ("check", "found", "reward")]
    rows = [
        [
            page.text(
                (f"{GLYPHS[_OUTCOMES[c.verdict]]} {one_line(c.name, 40)}", _style(c.verdict))
            ),
            page.text(one_line(c.said, 400)),
            page.text(score(c.reward)),
        ]
        for c in case.checks
    ]
    page.table(header, rows, left=2)
    for one in case.isolation:
        page.line(("isolation  ", "dim"), one_line(str(one), 400), hanging=2)
    for check in case.checks:
        if check.mend:
            page.line(f"mend {one_line(check.name, 40)}: {one_line(check.mend, 300)}", hanging=2)
    if case.open:
        page.line(("left open", "bold"))
        for sentence in case.open:
            page.line(f"· {one_line(sentence, 400)}", indent=2, hanging=2)
    page.blank()


def _style(verdict: Verdict) -> str:
    return STYLES[_OUTCOMES[verdict]]
