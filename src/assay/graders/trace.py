"""The kinds ``trace`` and ``efficiency``: what the agent had to use, and how cheaply it worked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

from assay.errors import GraderError, InputError, Location, nearest
from assay.graders.base import Grader, Score
from assay.graders.tool_arguments import looks_at_arguments
from assay.graders.tool_calls import (
    TOOL_KINDS,
    CallMatching,
    ObservedCall,
    ToolMatcher,
    as_matcher,
    observed_calls,
)
from assay.graders.usage import did_nothing, is_observed, missing_part, totals_of
from assay.scoring.json_safe import Json, record_evidence
from assay.scoring.results import SubScore
from assay.types.codec import Count, Share, Within
from assay.types.submission import Workspace
from assay.types.trace import ToolKind, Trace


@dataclass(frozen=True, kw_only=True)
class EfficiencyGrader(Grader):
    """Mean over the given targets: 1 at or under the target, target / actual above it.

    Cheapness alone earns nothing: an agent that did nothing scores 0, and in a case so does one
    whose work earned no other credit. Skipped: the harness shows nothing of the agent's work. A
    quantity that the harness does not measure is left out, as the evidence says; where none is
    measured, that is an error. One that is unknown because the trace was cut off counts 0.

    Attributes:
        target_cost_usd: US dollars for full credit.
        target_tokens: Tokens for full credit, read (cached ones included) and written.
        target_tool_calls: Tool calls for full credit.
        pass_threshold: The value from which on it passes, in [0, 1].
    """

    name: ClassVar[str] = "efficiency"
    needs_credit: ClassVar[bool] = True
    of_conduct: ClassVar[bool] = True
    assurance = "read"
    """Worth nothing where the other graders of the case gave no credit."""

    target_cost_usd: Annotated[float, Within(0, above=True)] | None = None
    target_tokens: Annotated[int, Within(0, above=True)] | None = None
    target_tool_calls: Annotated[int, Within(0, above=True)] | None = None
    pass_threshold: Share = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if all(target is None for target in self._targets().values()):
            targets = ", ".join(f"target_{name}" for name in self._targets())
            raise InputError("efficiency needs a target", hint=targets)

    def _targets(self) -> dict[str, float | None]:
        return {
            "cost_usd": self.target_cost_usd,
            "tokens": self.target_tokens,
            "tool_calls": self.target_tool_calls,
        }

    async def score(
        self, trace: Trace, answer: str | None = None, workspace: Workspace | None = None
    ) -> Score:
        """Compare what was used with the targets.

        Args:
            trace: What the agent did, as its harness recorded it.
            answer: The final answer, a sign of work.
            workspace: Where a change of a file is a sign of work.

        Raises:
            GraderError: If the harness measures nothing of what is asked.
        """
        targets = self._targets()
        if not is_observed(trace):
            return SubScore.skipped(self.name, "this harness records nothing of the agent's work")
        if did_nothing(trace, answer, workspace):
            return 0.0, {"why": "the agent did nothing"}
        totals, missing = totals_of(trace), missing_part(trace)
        actual: dict[str, float | None] = {
            "cost_usd": totals.cost_usd,
            "tokens": totals.tokens,
            "tool_calls": None if missing else len(observed_calls(trace)),
        }
        shares = {
            name: _share(actual[name], target, missing or totals.why_unknown(name))
            for name, target in targets.items()
            if target is not None
        }
        known = [share for share in shares.values() if share is not None]
        if not known:
            raise GraderError(
                f"the harness measures none of {', '.join(shares)}, and unknown is not 0",
                hint="use a harness whose trace tells them",
            )
        value = math.fsum(known) / len(known)
        evidence: dict[str, Json] = {
            "metrics": {
                name: {"target": targets[name], "actual": actual[name], "share": share}
                for name, share in shares.items()
            },
            "not_measured": [name for name, share in shares.items() if share is None],
            "missing": missing,
        }
        return SubScore(
            name=self.name,
            value=value,
            passed=value >= self.pass_threshold,
            metadata=record_evidence(evidence),
        )


def _share(actual: float | None, target: float, missing: str) -> float | None:
    if actual is None:
        return 0.0 if missing else None
    return 1.0 if actual <= target else target / actual


_MOST_MATCHERS = 1_000


@dataclass(frozen=True, kw_only=True)
class TraceGrader(Grader):
    """Fraction of the assertions over the agent's trace that hold.

    Each demanded tool, each banned tool, the order and each budget is one assertion. Skipped: the
    harness shows nothing of the agent's work. Scored 0: an agent that did nothing, whatever budget
    that kept. What a trace with a missing part cannot show (a ban, a budget, no denial) does not
    hold. An error: a budget over what the harness does not measure, or a path or a ban on a kind of
    work where it does not tell the input of calls; unknown is never 0.

    Attributes:
        require_tools: Each must match a call that ran: not denied, and no error as its result.
        forbid_tools: None may match any call, also one that was denied or failed.
        max_tool_calls: Most calls in all, or of each kind: whatever came of them.
        max_tokens: Most tokens, read (cached ones included) and written.
        max_cost_usd: Most US dollars.
        max_seconds: Most seconds of wall time.
        require_no_denied: No call was denied.
        ordered: The ``require_tools`` are met by calls in this order, one call for each.
    """

    name: ClassVar[str] = "trace"
    of_conduct: ClassVar[bool] = True
    assurance = "read"

    require_tools: list[ToolMatcher] | None = None
    forbid_tools: list[ToolMatcher] | None = None
    max_tool_calls: Count | dict[str, Count] | None = None
    max_tokens: Count | None = None
    max_cost_usd: Annotated[float, Within()] | None = None
    max_seconds: Annotated[float, Within()] | None = None
    require_no_denied: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        demanded, banned = self._matchers()
        for place, ban in enumerate(banned):
            if looks_at_arguments(ban) and ban.args_mode != "superset":
                raise InputError(
                    f"one argument more, or one less, evades a ban with args_mode: {ban.args_mode}",
                    location=Location(field=f"forbid_tools[{place}].args_mode"),
                    hint="args_mode: superset",
                )
        count = len(demanded) + len(banned)
        if count > _MOST_MATCHERS:
            raise InputError(f"trace takes at most {_MOST_MATCHERS} tool matchers, got {count}")
        of_calls = self.max_tool_calls
        for kind in of_calls if isinstance(of_calls, Mapping) else ():
            if kind not in TOOL_KINDS:
                hint = nearest(kind, list(TOOL_KINDS))
                raise InputError(f"max_tool_calls: unknown kind of tool {kind!r}", hint=hint)
        if self.ordered and len(demanded) < 2:
            raise InputError("ordered needs two require_tools or more")
        budgets = any(limit not in (None, {}) for limit in (*self._amounts().values(), of_calls))
        if not (count or budgets or self.require_no_denied):
            raise InputError(
                "trace asserts nothing",
                hint="require_tools, forbid_tools, require_no_denied or a max_... option",
            )

    def _matchers(self) -> tuple[list[ToolMatcher], list[ToolMatcher]]:
        """The tools that are demanded, and those that are banned."""
        both = (self.require_tools, self.forbid_tools)
        demanded, banned = ([as_matcher(one) for one in listed or ()] for listed in both)
        return demanded, banned

    def _amounts(self) -> dict[str, float | None]:
        amounts = (self.max_tokens, self.max_cost_usd, self.max_seconds)
        return dict(zip(("tokens", "cost_usd", "seconds"), amounts, strict=True))

    async def score(self, trace: Trace, workspace: Workspace | None = None) -> Score:
        """Check the trace.

        Args:
            trace: What the agent did, as its harness recorded it.
            workspace: Where a change of a file is a sign of work.

        Raises:
            GraderError: For a budget over a quantity that the harness does not measure.
        """
        if not is_observed(trace):
            return SubScore.skipped(self.name, "this harness records nothing of the agent's work")
        calls = observed_calls(trace)
        evidence = _summary(calls)
        if did_nothing(trace, None, workspace):
            return 0.0, {**evidence, "why": "the agent did nothing"}
        demanded, banned = self._matchers()
        seen = _Seen(calls, CallMatching(trace), missing_part(trace))
        checks = [*seen.demands(demanded, ordered=self.ordered), *seen.bans(banned)]
        checks += [*seen.calls_within(self.max_tool_calls), *_budgets(trace, self._amounts())]
        if self.require_no_denied:
            checks.append(seen.no_denial())
        held = sum(1 for check in checks if check["ok"] is True)
        return held / len(checks), {**evidence, "checks": list[Json](checks)}


Check = dict[str, Json]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of the calls, and the assertions over them."""

    calls: list[ObservedCall]
    matching: CallMatching
    missing: str

    def demands(self, matchers: list[ToolMatcher], *, ordered: bool) -> Iterator[Check]:
        for matcher in matchers:
            self.matching.require_told(matcher, is_ban=False)
            ran = any(self.matching.meets(matcher, call) for call in self.calls)
            why = "" if ran else self.matching.why_not(matcher, self.calls)
            yield _check("require_tools", str(matcher), why)
        if ordered:
            coming = iter(self.calls)
            late = next(
                (m for m in matchers if not any(self.matching.meets(m, call) for call in coming)),
                None,
            )
            yield _check("ordered", "", "" if late is None else f"no call in its turn for {late}")

    def bans(self, matchers: list[ToolMatcher]) -> Iterator[Check]:
        for matcher in matchers:
            self.matching.require_told(matcher, is_ban=True)
            count = sum(1 for call in self.calls if self.matching.breaks(matcher, call))
            yield _check("forbid_tools", str(matcher), f"{count} calls" if count else self.missing)

    def calls_within(self, limit: int | Mapping[str, int] | None) -> Iterator[Check]:
        if limit is None:
            return
        by_kind = Counter(kind for call in self.calls for kind in self.matching.kinds_of(call))
        limits = {"": limit} if isinstance(limit, int) else limit
        for kind, most in limits.items():
            count = by_kind[kind] if kind in TOOL_KINDS else len(self.calls)
            if kind in TOOL_KINDS and not most:  # a ban, in other words
                ban = ToolMatcher(kind=cast("ToolKind", kind))
                self.matching.require_told(ban, is_ban=True)
                count = sum(1 for call in self.calls if self.matching.breaks(ban, call))
            over = f"{count} calls, {most} allowed" if count > most else self.missing
            yield _check("max_tool_calls", kind, over)

    def no_denial(self) -> Check:
        denied = sum(1 for call in self.calls if call.denied)
        return _check("require_no_denied", "", f"{denied} denied" if denied else self.missing)


def _budgets(trace: Trace, limits: Mapping[str, float | None]) -> Iterator[Check]:
    totals = totals_of(trace)
    known = {"tokens": totals.tokens, "cost_usd": totals.cost_usd, "seconds": totals.seconds}
    missing = missing_part(trace)
    for name, limit in limits.items():
        if limit is None:
            continue
        used = known[name]
        lacking = missing or totals.why_unknown(name)
        if used is None and not lacking:
            raise GraderError(
                f"max_{name}: the harness does not measure {name}, and unknown is not 0",
                hint="take the budget out, or use a harness whose trace tells it",
            )
        over = lacking if used is None else f"{used:g} used, {limit:g} allowed"
        yield _check(f"max_{name}", "", over if used is None or used > limit else "")


def _check(name: str, what: str, why: str) -> Check:
    return {"check": name, "what": what, "ok": not why, "why": why}


def _summary(calls: list[ObservedCall]) -> dict[str, Json]:
    kinds: dict[str, Json] = dict(sorted(Counter(call.kind for call in calls).items()))
    return {
        "tool_calls": len(calls),
        "by_kind": kinds,
        "denied": sum(1 for call in calls if call.denied),
        "failed": sum(1 for call in calls if call.failed),
    }
