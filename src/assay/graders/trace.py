"""The kind ``trace``: what the agent had to use, must not use, and may spend."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from assay.errors import GraderError, InputError, nearest
from assay.graders.base import Grader, Score
from assay.graders.tool_calls import (
    TOOL_KINDS,
    CallMatching,
    ObservedCall,
    ToolMatcher,
    as_matcher,
    observed_calls,
)
from assay.graders.tool_effects import possible_kinds
from assay.graders.usage import did_nothing, is_observed, missing_part, totals_of
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Workspace
from assay.types.trace import ToolKind, Trace

__all__ = ["TraceGrader"]

_MOST_MATCHERS = 1_000


class TraceGrader(Grader):
    """Fraction of the assertions over the agent's trace that hold.

    Each demanded tool, each banned tool, the order and each budget is one assertion. Skipped: the
    harness shows nothing of the agent's work. Scored 0: an agent that did nothing, whatever budget
    that kept. What a trace with a missing part cannot show (a ban, a budget, no denial) does not
    hold. An error: a budget over what the harness does not measure; unknown is never 0.
    """

    name: ClassVar[str] = "trace"
    of_conduct: ClassVar[bool] = True
    assurance = "read"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Reject a declaration without an assertion, and invalid limits."""
        matchers = 0
        for key in ("require_tools", "forbid_tools"):
            listed = options.get(key)
            for entry in listed if isinstance(listed, list) else []:
                matchers += 1
                if isinstance(entry, dict):
                    as_matcher(entry)
        if matchers > _MOST_MATCHERS:
            raise InputError(f"trace takes at most {_MOST_MATCHERS} tool matchers, got {matchers}")
        calls = options.get("max_tool_calls")
        limits = {key: options.get(key) for key in ("max_tokens", "max_cost_usd", "max_seconds")}
        if isinstance(calls, dict):
            for kind, limit in calls.items():
                if kind not in TOOL_KINDS:
                    hint = nearest(kind, list(TOOL_KINDS))
                    raise InputError(f"max_tool_calls: unknown kind of tool {kind!r}", hint=hint)
                limits[f"max_tool_calls.{kind}"] = limit
        else:
            limits["max_tool_calls"] = calls
        for key, limit in limits.items():
            if isinstance(limit, int | float) and not (math.isfinite(limit) and limit >= 0):
                raise InputError(f"{key} must be 0 or more, got {limit}")
        demanded = options.get("require_tools")
        if options.get("ordered") and not (isinstance(demanded, list) and len(demanded) > 1):
            raise InputError("ordered needs two require_tools or more")
        budgets = any(limit is not None for limit in limits.values())
        if not (matchers or budgets or options.get("require_no_denied")):
            raise InputError(
                "trace asserts nothing",
                hint="require_tools, forbid_tools, require_no_denied or a max_... option",
            )

    @classmethod
    async def compute_score(
        cls,
        trace: Trace,
        *,
        require_tools: list[ToolMatcher] | None = None,
        forbid_tools: list[ToolMatcher] | None = None,
        max_tool_calls: int | dict[str, int] | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        max_seconds: float | None = None,
        require_no_denied: bool = False,
        ordered: bool = False,
        workspace: Workspace | None = None,
    ) -> Score:
        """Check the trace.

        Args:
            trace: What the agent did, as its harness recorded it.
            require_tools: Each must match a call that ran: not denied, and no error as its result.
            forbid_tools: None may match any call, also one that was denied or failed.
            max_tool_calls: Most calls in all, or of each kind: whatever came of them.
            max_tokens: Most tokens, read (cached ones included) and written.
            max_cost_usd: Most US dollars.
            max_seconds: Most seconds of wall time.
            require_no_denied: No call was denied.
            ordered: The ``require_tools`` are met by calls in this order, one call for each.
            workspace: Where a change of a file is a sign of work.

        Raises:
            GraderError: For a budget over a quantity that the harness does not measure.
            InputError: For options that assert nothing, and invalid limits.
        """
        demanded = [as_matcher(matcher) for matcher in require_tools or ()]
        banned = [as_matcher(matcher) for matcher in forbid_tools or ()]
        amounts = {"tokens": max_tokens, "cost_usd": max_cost_usd, "seconds": max_seconds}
        cls.check_options(
            {
                "require_tools": [str(matcher) for matcher in demanded],
                "forbid_tools": [str(matcher) for matcher in banned],
                "max_tool_calls": dict(max_tool_calls)
                if isinstance(max_tool_calls, Mapping)
                else max_tool_calls,
                **{f"max_{name}": limit for name, limit in amounts.items()},
                "require_no_denied": require_no_denied,
                "ordered": ordered,
            }
        )
        if not is_observed(trace):
            return SubScore.skipped(cls.name, "this harness records nothing of the agent's work")
        calls = observed_calls(trace)
        evidence = _summary(calls)
        if did_nothing(trace, None, workspace):
            return 0.0, {**evidence, "why": "the agent did nothing"}
        seen = _Seen(calls, CallMatching(trace), missing_part(trace))
        checks = [*seen.demands(demanded, ordered=ordered), *seen.bans(banned)]
        checks += [*seen.calls_within(max_tool_calls), *_budgets(trace, amounts)]
        if require_no_denied:
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
            ran = any(self.matching.meets(matcher, call) for call in self.calls)
            why = "" if ran else self._why_not(matcher)
            yield _check("require_tools", str(matcher), why)
        if ordered:
            coming = iter(self.calls)
            late = next(
                (m for m in matchers if not any(self.matching.meets(m, call) for call in coming)),
                None,
            )
            yield _check("ordered", "", "" if late is None else f"no call in its turn for {late}")

    def _why_not(self, matcher: ToolMatcher) -> str:
        tried = [call for call in self.calls if self.matching.breaks(matcher, call)]
        if any(call.denied for call in tried):
            return "only a call that was denied"
        if any(call.failed for call in tried):
            return "only a call that failed"
        idle = any(call.ran and self.matching.idles(call) for call in tried)
        return "only a call that did nothing" if idle else "no such call"

    def bans(self, matchers: list[ToolMatcher]) -> Iterator[Check]:
        for matcher in matchers:
            count = sum(1 for call in self.calls if self.matching.breaks(matcher, call))
            yield _check("forbid_tools", str(matcher), f"{count} calls" if count else self.missing)

    def calls_within(self, limit: int | Mapping[str, int] | None) -> Iterator[Check]:
        if limit is None:
            return
        by_kind = Counter(kind for call in self.calls for kind in possible_kinds(call.call))
        limits = {"": limit} if isinstance(limit, int) else limit
        for kind, most in limits.items():
            count = by_kind[kind] if kind in TOOL_KINDS else len(self.calls)
            if kind in TOOL_KINDS and not most:  # a ban, in other words
                ban = ToolMatcher(kind=cast("ToolKind", kind))
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
        if used is None and not missing:
            raise GraderError(
                f"max_{name}: the harness does not measure {name}, and unknown is not 0",
                hint="take the budget out, or use a harness whose trace tells it",
            )
        over = missing if used is None else f"{used:g} used, {limit:g} allowed"
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
