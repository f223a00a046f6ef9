"""An attack on a terminal: what pays, what stops it, and the library of cheats itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.eval.attack import Attempt, CaseAttack, Findings
from assay.eval.cheats import FAMILIES, Cheat
from assay.reports.figures import count, score
from assay.reports.outcome import GLYPHS, Outcome
from assay.reports.page import STYLES, Page
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["attack_line", "library_dict", "render_attack", "render_library"]


def render_attack(console: Console, findings: Findings) -> None:
    """Write what an attack found: cheats that gained something, and how many did not."""
    page = Page(console)
    for case in findings.cases:
        _case(page, case, findings.beaten(case))
    outcome: Outcome = "pass" if findings.code == 0 else "fail" if findings.code == 1 else "error"
    page.line((f"{GLYPHS[outcome]} {attack_line(findings)}", STYLES[outcome]), hanging=2)


def attack_line(findings: Findings) -> str:
    """The verdict in one line."""
    beaten = {case.case: findings.beaten(case) for case in findings.cases}
    if findings.code == 1:
        named = ", ".join(f"{one_line(k, 60)} by {len(v)}" for k, v in beaten.items() if v)
        return f"FAIL: beaten: {named}"
    if findings.code == 3:
        return "NO VERDICT: not every cheat could be played"
    played = sum(len(case.attempts) for case in findings.cases)
    return (
        f"PASS: {count(played, 'cheat')} played against {count(len(beaten), 'case')}, none passes"
    )


def _case(page: Page, case: CaseAttack, beaten: Sequence[Attempt]) -> None:
    state: Outcome = "fail" if beaten else "pass"
    if case.trouble:
        state = "skipped" if case.skipped else "error"
    bars = f"passes at {score(case.threshold)} · doing nothing gets {score(case.floor)}"
    page.line(
        (f"{GLYPHS[state]} {one_line(case.case, 60)}", STYLES[state]),
        (f"  {one_line(case.file, 80)} · {bars}", "dim"),
        hanging=2,
    )
    if case.trouble:
        page.line(one_line(case.trouble, 600), indent=2, hanging=2)
        page.blank()
        return
    shown = case.of("passes", "pays", "escapes", "not played")
    if shown:
        header = [page.text(title) for title in ("cheat", "what it does", "found", "reward")]
        page.table(header, [_row(page, attempt, beaten) for attempt in shown], left=3)
    for family in dict.fromkeys(attempt.family for attempt in case.of("passes", "pays")):
        page.line(f"mend {family}: {FAMILIES[family]}", hanging=2)
    held = case.of("holds")
    flagged = sum(bool(attempt.flags) for attempt in held)
    seen = f", {flagged} of them flagged as tampering" if flagged else ""
    page.line((f"{count(len(held), 'cheat')} gained nothing{seen}", "dim"))
    page.blank()


def _row(page: Page, attempt: Attempt, beaten: Sequence[Attempt]) -> list[Text]:
    style = STYLES["fail"] if attempt in beaten else STYLES["error"]
    found = attempt.outcome
    if attempt.paid_by:
        found += f": {', '.join(attempt.paid_by)}"
    if attempt.said:
        found += f": {one_line(attempt.said, 160)}"
    if attempt.flags:
        found += f" (flagged: {one_line('; '.join(attempt.flags), 80)})"
    return [
        page.text((attempt.cheat, style)),
        page.text(attempt.title),
        page.text(one_line(found, 300)),
        page.text(score(attempt.reward)),
    ]


def render_library(console: Console, cheats: Sequence[Cheat]) -> None:
    """Write the library of cheats, family by family."""
    page = Page(console)
    for family in dict.fromkeys(cheat.family for cheat in cheats):
        page.line((family, "bold"))
        rows = [
            [page.text(f"  {cheat.id}"), page.text(cheat.title)]
            for cheat in cheats
            if cheat.family == family
        ]
        page.table([page.text(""), page.text("")], rows, left=2)
        page.line((f"  what stops it: {FAMILIES[family]}", "dim"), hanging=4)
        page.blank()


def library_dict(cheats: Sequence[Cheat]) -> dict[str, Json]:
    """The library of cheats as plain JSON."""
    rows: list[Json] = [
        {"id": cheat.id, "family": cheat.family, "title": cheat.title} for cheat in cheats
    ]
    return {"cheats": rows}
