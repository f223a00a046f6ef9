"""The score tree as the page shows it: typed, safe to show, long texts folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.frozen import frozen
from assay.reports.explain import Evidence, evidence
from assay.reports.outcome import Ended, node_outcome
from assay.reports.plain import one_line, visible
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore

FOLD = 2_000
"""Characters of a text that are shown before somebody asks for the rest."""
_EVERY = 1 << 40
_MOST_NODES = 500
_MOST_FINDINGS = 500
_MOST_SIGNS = 100


@frozen(kw_only=True)
class FoldedText:
    """A text, or the part of a long one that is shown at first.

    Attributes:
        text: The text, safe to show.
        more: How many characters are left out.
        is_end: Whether the part is the end of it, where outputs have what matters.
        ref: What to ask for to have all of it.
    """

    text: str = ""
    more: int = 0
    is_end: bool = False
    ref: str = ""


@frozen(kw_only=True)
class ScoreFact:
    """One recorded fact about a score."""

    label: str
    text: FoldedText


@frozen(kw_only=True)
class ScoreFinding:
    """One thing that a grader looked at: a test, a criterion, a claim, a check.

    Attributes:
        what: What was looked at.
        state: What became of it.
        verdict: The grader's own word for that.
        why: Why.
        votes: What each vote of a panel said.
    """

    what: str
    state: Ended
    verdict: str
    why: str
    votes: tuple[str, ...] = ()


@frozen(kw_only=True)
class ScoreNode:
    """A score of the tree.

    Attributes:
        name: What was graded.
        kind: Kind of the grader, of a file its name alone; empty where nothing says.
        state: What became of it.
        value: In [0, 1]; None where nothing was scored.
        weight: Share of the credit, as declared.
        gate: Whether the reward is 0 without it.
        reason: Why, on a line.
        assurance: How far it can be trusted; empty where nothing says.
        flags: Signs of tampering that it found.
        findings: What it looked at, one by one.
        more_findings: How many of them are left out.
        facts: What else was recorded, such as outputs of commands.
        children: The scores that it was made from.
    """

    name: str
    kind: str
    state: Ended
    value: float | None
    weight: float
    gate: bool
    reason: str
    assurance: str
    flags: tuple[str, ...]
    findings: tuple[ScoreFinding, ...]
    more_findings: int
    facts: tuple[ScoreFact, ...]
    children: tuple[ScoreNode, ...]


@frozen(kw_only=True)
class TamperSign:
    """A sign that the work tries to manipulate its grading."""

    sign: str
    file: str
    line: int | None
    what: str
    code: str
    why: str


def folded(text: str, ref: str, *, is_end: bool = False, fold: int = FOLD) -> FoldedText:
    """A text, or the first part of a long one; of an output the last."""
    if len(text) <= fold:
        return FoldedText(text=visible(text))
    part = text[-fold:] if is_end else text[:fold]
    return FoldedText(text=visible(part), more=len(text) - fold, is_end=is_end, ref=ref)


def score_nodes(scores: Sequence[SubScore], *, fold: int = FOLD) -> tuple[ScoreNode, ...]:
    """The score tree; its first 500 nodes."""
    return tuple(_nodes(scores, "", [_MOST_NODES], fold))


def _nodes(
    scores: Sequence[SubScore], above: str, budget: list[int], fold: int
) -> Iterator[ScoreNode]:
    for place, node in enumerate(scores):
        if budget[0] <= 0:
            return
        budget[0] -= 1
        path = f"{above}{place}"
        findings = list(_findings(node))
        said = (node.metadata or {}).get("_parameters")
        kind = said.get("type") if isinstance(said, dict) else None
        yield ScoreNode(
            name=one_line(node.name, 200),
            kind=one_line(kind.rpartition("/")[2], 60) if isinstance(kind, str) else "",
            state=_state(node),
            value=node.value,
            weight=node.weight if node.raw_weight is None else node.raw_weight,
            gate=node.gate,
            reason=one_line(node.reason, 500),
            assurance=node.assurance or "",
            flags=tuple(one_line(flag, 500) for flag in node.flags[:_MOST_SIGNS]),
            findings=tuple(findings[:_MOST_FINDINGS]),
            more_findings=max(0, len(findings) - _MOST_FINDINGS),
            facts=tuple(
                ScoreFact(
                    label=fact.label,
                    text=folded(
                        "\n".join(fact.lines),
                        f"fact/{path}/{number}",
                        is_end=fact.label in _OUTPUTS,
                        fold=fold,
                    ),
                )
                for number, fact in enumerate(facts_of(node))
            ),
            children=tuple(_nodes(node.children or (), f"{path}.", budget, fold)),
        )


def _state(node: SubScore) -> Ended:
    """A score that says nothing of passing, between 0 and 1, is a score; else what became of it."""
    state = node_outcome(node)
    is_between = node.value is not None and 0.0 < node.value < 1.0
    return "scored" if state == "fail" and is_between and not node.gate else state


_OUTPUTS = ("output", "stdout", "stderr", "log", "traceback")
_TABLED = ("tests", "criteria", "claims", "checks", "signs")
_SHOWN = ("reason", "flagged")


def facts_of(node: SubScore) -> list[Evidence]:
    """What was recorded, but for what the node itself and its findings say."""
    metadata = {
        name: value
        for name, value in (node.metadata or {}).items()
        if name not in _TABLED or not _table(value)
    }
    found = evidence(replace(node, metadata=metadata), lines=_EVERY, width=_EVERY, parameters=True)
    return [fact for fact in found if fact.label not in _SHOWN]


def node_at(scores: Sequence[SubScore], path: str) -> SubScore | None:
    """The node of a path such as ``0.2``: places, from the top; None where there is none."""
    found: SubScore | None = None
    for part in path.split("."):
        if not part.isdecimal() or int(part) >= len(scores):
            return None
        found = scores[int(part)]
        scores = found.children or ()
    return found


def _table(value: Json) -> list[dict[str, Json]]:
    """The rows of a list that has nothing but rows; else none."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return rows if isinstance(value, list) and len(rows) == len(value) else []


_NAMES = ("id", "criterion", "claim", "check", "name")
_STATES: Mapping[str, Ended] = {
    **dict.fromkeys(("passed", "met", "pass", "supported", "yes", "ok", "true"), "pass"),
    **dict.fromkeys(("failed", "unmet", "fail", "contradicted", "absent", "no", "false"), "fail"),
    **dict.fromkeys(("error", "errored"), "error"),
    **dict.fromkeys(("skipped", "na", "not applicable"), "skipped"),
}


def _findings(node: SubScore) -> Iterator[ScoreFinding]:
    for name in ("tests", "criteria", "claims", "checks"):
        for row in _table((node.metadata or {}).get(name)):
            yield _finding(row)


def _finding(row: Mapping[str, Json]) -> ScoreFinding:
    verdict = next((row[name] for name in ("outcome", "verdict", "ok") if name in row), None)
    word = {True: "ok", False: "no"}.get(verdict, "") if isinstance(verdict, bool) else verdict
    state = _STATES.get(str(word).casefold(), "scored")
    weight = row.get("weight")
    if isinstance(weight, int | float) and weight < 0 and state in ("pass", "fail"):
        state = "fail" if state == "pass" else "pass"  # a fault that is met costs
    named = [str(row[name]) for name in _NAMES if row.get(name)]
    more = row.get("pattern") or row.get("path")
    if isinstance(more, str):
        named.append(more)
    why = row.get("reason") or row.get("message") or row.get("why") or row.get("quote")
    votes = _table(row.get("votes"))
    return ScoreFinding(
        what=one_line(" ".join(named), 500),
        state=state,
        verdict=one_line(str(word or ""), 60),
        why=visible(str(why)[:FOLD]) if why else "",
        votes=tuple(_vote(vote) for vote in votes[:20]) if len(votes) > 1 else (),
    )


def _vote(vote: Mapping[str, Json]) -> str:
    said = [vote.get(name) for name in ("served", "verdict", "reason", "error")]
    return one_line(": ".join(str(one) for one in said if one), 300)


def signs_in(scores: Sequence[SubScore]) -> Iterator[TamperSign]:
    """What audits found, anywhere in the tree."""
    for node in scores:
        for row in _table((node.metadata or {}).get("signs")):
            line = row.get("line")
            yield TamperSign(
                sign=one_line(str(row.get("sign") or ""), 80),
                file=one_line(str(row.get("file") or "trace"), 300),
                line=line if isinstance(line, int) else None,
                what=one_line(str(row.get("what") or ""), 200),
                code=one_line(str(row.get("code") or ""), 300),
                why=one_line(str(row.get("why") or ""), 300),
            )
        yield from signs_in(node.children or ())
