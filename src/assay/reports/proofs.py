"""The reports of ``assay selftest`` and ``assay attack``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.eval.cheats import FAMILIES, Cheat
from assay.eval.proofs.attack import CheatTrial
from assay.eval.proofs.proof import CaseProof, Proof, ProofCheck, Verdict
from assay.reports.figures import count, score
from assay.reports.outcome import GLYPHS, Outcome
from assay.reports.page import STYLES, Cell, TextPage
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json

SET = 10
"""More cases than that are a set, of which only what is wrong is shown."""

_OUTCOMES: dict[Verdict, Outcome] = {
    "held": "pass",
    "failed": "fail",
    "error": "error",
    "skipped": "skipped",
}


def render_proof(page: TextPage, proof: Proof, line: Callable[[Proof], str]) -> None:
    """Write what a self-test or an attack found, and its verdict in one line.

    Of a whole set, only what is wrong is written, and at the end why which cases are not proven.
    """
    is_set = len(proof.cases) > SET and not any(map(_attempts, proof.cases))
    for case in proof.cases:
        if not (is_set and case.verdict == "held"):
            _case(page, case, brief=is_set)
    if len(proof.cases) > 1 and not any(map(_attempts, proof.cases)):
        _causes(page, proof)
    outcome: Outcome = "pass" if proof.code == 0 else "fail" if proof.code == 1 else "error"
    page.line((f"{GLYPHS[outcome]} {line(proof)}", STYLES[outcome]), hanging=2)


def attack_line(proof: Proof) -> str:
    """The verdict of an attack."""
    if proof.code == 1:
        beaten = {one.case: sum(c.verdict == "failed" for c in one.checks) for one in proof.cases}
        named = ", ".join(
            f"{one_line(k, 60)} by {number}" for k, number in beaten.items() if number
        )
        return f"FAIL: beaten: {named}"
    played = sum(len(_attempts(case)) for case in proof.cases)
    if proof.code == 3:
        if not played:
            return "NO VERDICT: no cheat was played"
        return "NO VERDICT: not every cheat could be played"
    cases = count(len(proof.cases), "case")
    return f"PASS: {count(played, 'cheat')} played against {cases}, none passes"


def selftest_line(proof: Proof) -> str:
    """The verdict of a self-test."""
    of: dict[Verdict, list[str]] = {verdict: [] for verdict in _OUTCOMES}
    for case in proof.cases:
        of[case.verdict].append(one_line(case.case, 60))
    skipped = f" ({len(of['skipped'])} skipped)" if of["skipped"] else ""
    if of["failed"]:
        return f"FAIL: not proven: {_listed(of['failed'], proof)}{skipped}"
    if of["error"]:
        return f"NO VERDICT: could not be tested: {_listed(of['error'], proof)}{skipped}"
    if not of["held"]:
        return "NO VERDICT: every case was skipped"
    untried = [one_line(case.case, 60) for case in proof.cases if case.is_untried]
    if len(untried) == len(of["held"]):
        return f"NO VERDICT: no right work was tried: {', '.join(untried)}{skipped}"
    proven = count(len(of["held"]) - len(untried), "case")
    but = f", BUT no right work was tried: {', '.join(untried)}" if untried else ""
    return f"PASS: {proven} proven{but}{skipped}"


def _listed(names: Sequence[str], proof: Proof) -> str:
    """The names of cases; of a set, which lists them by cause, how many there are."""
    total = len(proof.cases)
    return f"{len(names)} of {total} cases" if total > SET else ", ".join(names)


def _causes(page: TextPage, proof: Proof) -> None:
    """Why cases are not proven: their ids by cause, and of what could not be tried its reason."""
    for cause, cases in proof.causes.items():
        check = cases[0].causes[cause]
        outcome: Outcome = "error" if check.verdict == "held" else _OUTCOMES[check.verdict]
        head = (f"{GLYPHS[outcome]} {cause}", STYLES[outcome])
        names = [one_line(case.case, 60) for case in cases]
        if outcome == "fail" or check.verdict == "held":
            page.line(head, f" ({len(names)}): {', '.join(names)}", hanging=4)
            continue
        page.line(head, f" ({len(names)}):")
        for case, name in zip(cases, names, strict=True):
            page.line(f"{name}: {one_line(case.causes[cause].said, 300)}", indent=4, hanging=2)
    if proof.causes:
        page.blank()


def _case(page: TextPage, case: CaseProof, *, brief: bool = False) -> None:
    outcome, attempts = _OUTCOMES[case.verdict], _attempts(case)
    held = [one for one in attempts if one.outcome == "holds" and one.verdict == "held"]
    # An attack is a long list of which most gained nothing: the best paid of the others come first.
    shown = sorted(
        (c for c in case.checks if c not in held and not (brief and c.verdict == "held")),
        key=lambda check: -(check.reward or 0.0) if isinstance(check, CheatTrial) else 0.0,
    )
    gets = f" · doing nothing gets {score(case.floor)}" if attempts else ""
    page.line(
        (f"{GLYPHS[outcome]} {one_line(case.case, 60)}", STYLES[outcome]),
        (f"  {one_line(case.file, 80)} · passes at {score(case.threshold)}{gets}", "dim"),
        hanging=2,
    )
    if shown:
        does = [page.text("what it does")] if attempts else []
        header = [page.text("cheat" if attempts else "check"), *does]
        header += [page.text("found"), page.text("reward")]
        page.table(header, [_row(page, check) for check in shown], left=2 + bool(attempts))
    for one in () if brief else case.isolation:
        page.line(("isolation  ", "dim"), one_line(str(one), 400), hanging=2)
        if objects := one.contract.objects if one.contract else ():
            said = f"{one.grader}: {count(len(objects), 'test')}: {', '.join(objects)}"
            page.line(("objects    ", "dim"), one_line(said, 1_000), hanging=2)
        if skips := one.contract.skips if one.contract else ():
            said = f"{one.grader}: the reference itself skips {', '.join(skips)}: not counted"
            said = f"{said}; expected_ids would say which tests are"
            page.line(("skips      ", "dim"), one_line(said, 1_000), hanging=2)
    fixes: dict[str, dict[str, None]] = {}
    for check in shown:
        name = check.family if isinstance(check, CheatTrial) else check.name
        fixes.setdefault(check.fix, {})[one_line(name, 40)] = None
    for fix, names in fixes.items():
        if fix:
            page.line(f"fix {', '.join(names)}: {one_line(fix, 300)}", hanging=2)
    if attempts:
        flagged = sum(bool(one.flags) for one in held)
        seen = f", {flagged} of them flagged as tampering" if flagged else ""
        page.line((f"{count(len(held), 'cheat')} gained nothing{seen}", "dim"))
    if case.open and not brief:
        page.line(("left open", "bold"))
        for sentence in case.open:
            page.line(f"· {one_line(sentence, 400)}", indent=2, hanging=2)
    page.blank()


def _attempts(case: CaseProof) -> list[CheatTrial]:
    return [check for check in case.checks if isinstance(check, CheatTrial)]


def _row(page: TextPage, check: ProofCheck) -> list[Cell]:
    does: list[Cell] = []
    outcome = _OUTCOMES[check.verdict]
    if isinstance(check, CheatTrial):
        does = [page.text(check.title)]
        outcome = "error" if check.outcome == "pays" and outcome == "pass" else outcome
    name = page.text((f"{GLYPHS[outcome]} {one_line(check.name, 40)}", STYLES[outcome]))
    return [name, *does, page.text(one_line(check.said, 400)), page.text(score(check.reward))]


def render_library(page: TextPage, cheats: Sequence[Cheat]) -> None:
    """Write the library of cheats, family by family."""
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
