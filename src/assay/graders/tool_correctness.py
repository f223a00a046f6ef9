"""The kind ``tool_correctness``: how well the tools that were used agree with those expected."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from typing import Annotated, ClassVar, Literal

from assay.errors import InputError, nearest
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
from assay.graders.usage import is_observed, missing_part, untold_part
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.codec import Filled
from assay.types.trace import Trace

_MOST_EXPECTED = 1_000
_MOST_TOLD = 20


@dataclass(frozen=True, kw_only=True)
class ToolCorrectnessGrader(Grader):
    """F1 of expected and observed tool calls, each paired with at most one of the other.

    With ``TP`` pairs in the largest possible pairing, precision is TP / observed and recall
    TP / expected; the value is their harmonic mean, and in an ordered comparison that times
    L / TP, where L pairs can be had in order. It passes only if everything is paired (in order).

    Every call is observed, also a denied or failed one, which pairs with nothing. Skipped: the
    harness shows nothing of the agent's work. Scored 0: no calls. A missing part of the trace
    counts as one more call that pairs with nothing.

    Attributes:
        expected: Tools, in order; a text stands for a matcher on ``match``.
        match: What a text means.
        ordered: Whether their order counts too.
        measure: ``f1``, or ``recall`` where calls that nobody expected cost nothing, or
            ``precision`` where it costs nothing to leave expected ones out.
    """

    name: ClassVar[str] = "tool_correctness"
    of_conduct: ClassVar[bool] = True
    assurance = "read"

    expected: Annotated[
        list[str | ToolMatcher], Filled("trace with max_tool_calls: 0 asserts none")
    ] = field(default_factory=list["str | ToolMatcher"])
    match: Literal["kind", "name", "raw_name"] = "kind"
    ordered: bool = False
    measure: Literal["f1", "recall", "precision"] = "f1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (count := len(self.expected)) > _MOST_EXPECTED:
            raise InputError(f"expected has {count} tools, at most {_MOST_EXPECTED}")
        self._matchers()

    def _matchers(self) -> list[ToolMatcher]:
        return [_matcher(entry, self.match) for entry in self.expected]

    async def score(self, trace: Trace) -> Score:
        """Compare the calls that the agent's harness recorded."""
        matchers = self._matchers()
        if not is_observed(trace):
            return SubScore.skipped(self.name, "this harness records nothing of the agent's work")
        calls, matching = observed_calls(trace), CallMatching(trace)
        for matcher in matchers:
            matching.require_told(matcher, is_ban=False)
        masks = _masks(matchers, calls, matching)
        paired = largest_matching(len(matchers), masks)
        in_order = longest_in_order(len(matchers), masks) if self.ordered else paired
        met = reduce(int.__or__, masks, 0)
        unmet = ((n + 1, one) for n, one in enumerate(matchers) if not met >> n & 1)
        missing = missing_part(trace)
        observed = len(calls) + (1 if missing else 0)
        among = {
            "f1": (observed + len(matchers)) / 2,
            "recall": len(matchers),
            "precision": observed,
        }
        value = paired / among[self.measure] if paired else 0.0
        if paired:
            value *= in_order / paired
        evidence: dict[str, Json] = {
            "expected": len(matchers),
            "observed": len(calls),
            "paired": paired,
            "in_order": in_order if self.ordered else None,
            "calls": [f"{c.kind}: {c.call.name}{'' if c.ran else ' (failed)'}" for c in calls[:50]],
            "missing": missing,
            "untold": untold_part(trace),
            "unmet": [
                f"{place}. {matcher}: {matching.why_not(matcher, calls)}"
                for place, matcher in islice(unmet, _MOST_TOLD)
            ],
        }
        return value, evidence


def largest_matching(expected: int, masks: Sequence[int]) -> int:
    """Size of the largest pairing of expected and observed calls.

    Observed calls that pair with the same expected ones are interchangeable, so a maximum flow
    between few groups decides, however many calls there are.
    """
    groups = [(mask, count) for mask, count in Counter(masks).items() if mask]
    open_to = [[g for g, (mask, _) in enumerate(groups) if mask >> e & 1] for e in range(expected)]
    room = [count for _, count in groups]
    paired: dict[int, int] = {}  # expected call -> its group
    for start in range(expected):
        path = _path_to_room(start, open_to, room, paired)
        if path:
            room[path[-1][1]] -= 1
            paired.update(path)
    return len(paired)


def _path_to_room(
    start: int, open_to: Sequence[Sequence[int]], room: Sequence[int], paired: Mapping[int, int]
) -> list[tuple[int, int]]:
    """The new pairs that make place for one more expected call; none if there is no way.

    Breadth first: a call that finds its groups full makes those who hold them look elsewhere.
    """
    holders: dict[int, list[int]] = {}
    for call, group in paired.items():
        holders.setdefault(group, []).append(call)
    reached_by: dict[int, int] = {}  # group -> the call that would take a place in it
    waiting = deque([start])
    while waiting:
        call = waiting.popleft()
        for group in open_to[call]:
            if group in reached_by:
                continue
            reached_by[group] = call
            if room[group]:
                path = [(call, group)]
                while path[-1][0] != start:
                    left = paired[path[-1][0]]
                    path.append((reached_by[left], left))
                return path[::-1]
            waiting.extend(holders.get(group, ()))
    return []


def longest_in_order(expected: int, masks: Sequence[int]) -> int:
    """Most pairs that can be had with both sides in order: a longest common subsequence.

    Bit-parallel after Hyyrö (2004): one addition per observed call.
    """
    everything = (1 << expected) - 1
    row = everything
    for mask in masks:
        row = ((row + (row & mask)) | (row & ~mask)) & everything
    return expected - row.bit_count()


def _matcher(entry: str | ToolMatcher | Mapping[str, Json], match: str) -> ToolMatcher:
    if isinstance(entry, str) and match == "kind" and entry not in TOOL_KINDS:
        hint = f"{nearest(entry, list(TOOL_KINDS))}; for the name of a tool: match: name"
        raise InputError(f"expected: unknown kind of tool {entry!r}", hint=hint)
    return as_matcher({match: entry} if isinstance(entry, str) else entry)


def _masks(
    matchers: Sequence[ToolMatcher], calls: Sequence[ObservedCall], matching: CallMatching
) -> list[int]:
    """For each call the matchers that it meets, as bits; like calls are looked at once."""
    bits: dict[str, int] = {}
    for number, matcher in enumerate(matchers):
        bits[repr(matcher)] = bits.get(repr(matcher), 0) | 1 << number
    unlike = {repr(matcher): matcher for matcher in matchers}
    reads = {key: m.path_glob is not None or looks_at_arguments(m) for key, m in unlike.items()}
    plain = [(bits[key], matcher) for key, matcher in unlike.items() if not reads[key]]
    reading = [(bits[key], matcher) for key, matcher in unlike.items() if reads[key]]
    known: dict[tuple[object, ...], int] = {}
    masks: list[int] = []
    for call in calls:
        key = (call.kind, call.call.name, call.call.raw_name, call.ran, matching.idles(call))
        if key not in known:
            known[key] = sum(bit for bit, m in plain if matching.meets(m, call))
        masks.append(known[key] | sum(bit for bit, m in reading if matching.meets(m, call)))
    return masks
