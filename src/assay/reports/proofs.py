"""The reports of ``assay selftest`` and ``assay attack``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.eval.attack import Attempt, CaseAttack, Findings
from assay.eval.cheats import FAMILIES, Cheat
from assay.eval.proof import CaseProof, Proof, Verdict
from assay.reports.figures import count, score
from assay.reports.outcome import GLYPHS, Outcome
from assay.reports.page import STYLES, Cell, Page
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from rich.console import Console


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
    played = sum(len(case.attempts) for case in findings.cases)
    if findings.code == 3:
        if not played:
            return "NO VERDICT: no cheat was played"
        return "NO VERDICT: not every cheat could be played"
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
        page.line(f"fix {family}: {FAMILIES[family]}", hanging=2)
    held = case.of("holds")
    flagged = sum(bool(attempt.flags) for attempt in held)
    seen = f", {flagged} of them flagged as tampering" if flagged else ""
    page.line((f"{count(len(held), 'cheat')} gained nothing{seen}", "dim"))
    page.blank()


def _row(page: Page, attempt: Attempt, beaten: Sequence[Attempt]) -> list[Cell]:
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
        _proof_of(page, case)
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
    untried = [one_line(case.case, 60) for case in proof.cases if case.is_untried]
    if len(untried) == len(of["held"]):
        return f"NO VERDICT: no right work was tried: {', '.join(untried)}{skipped}"
    proven = count(len(of["held"]) - len(untried), "case")
    but = f", BUT no right work was tried: {', '.join(untried)}" if untried else ""
    return f"PASS: {proven} proven{but}{skipped}"


def _proof_of(page: Page, case: CaseProof) -> None:
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
        if objects := one.contract.objects if one.contract else ():
            said = f"{one.grader}: {count(len(objects), 'test')}: {', '.join(objects)}"
            page.line(("objects    ", "dim"), one_line(said, 1_000), hanging=2)
        if skips := one.contract.skips if one.contract else ():
            said = f"{one.grader}: the reference itself skips {', '.join(skips)}: not counted"
            said = f"{said}; expected_ids would say which tests are"
            page.line(("skips      ", "dim"), one_line(said, 1_000), hanging=2)
    for check in case.checks:
        if check.fix:
            page.line(f"fix {one_line(check.name, 40)}: {one_line(check.fix, 300)}", hanging=2)
    if case.open:
        page.line(("left open", "bold"))
        for sentence in case.open:
            page.line(f"· {one_line(sentence, 400)}", indent=2, hanging=2)
    page.blank()


def _style(verdict: Verdict) -> str:
    return STYLES[_OUTCOMES[verdict]]
