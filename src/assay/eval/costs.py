"""What a cell cost: its agent, and its judges by the calls that their evidence keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum, isfinite

from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord

# Where the kinds of judges keep their calls. No key of anybody else's is followed: evidence may
# hold JSON that a submission wrote.
_PLACES = ("votes", "calls", "criteria", "orders", "per_judge", "probe")
_NEVER_ASKED = ("no_key", "budget", "not_recorded")
_MAX_JUDGE_DEPTH = 32


@frozen(kw_only=True)
class JudgeCosts:
    """What judges cost.

    Attributes:
        asked: Judgements that models were asked for, also in vain.
        cached: Judgements that came from the cache, and cost nothing.
        usd: Sum of the known prices; None where none is known.
        unknown: Judgements of unknown price: of a model without one, or asked for in vain.
    """

    asked: int = 0
    cached: int = 0
    usd: float | None = None
    unknown: int = 0


_NOTHING = JudgeCosts()


def judge_costs(cell: CellRecord) -> JudgeCosts:
    """What the judges of a cell cost."""
    if not cell.subscores:
        return _NOTHING
    asked = cached = unknown = 0
    prices: list[float] = []
    for call in _calls(cell):
        if call.get("from_cache") is True:
            cached += 1
            continue
        asked += 1
        price = call.get("cost_usd")
        if isinstance(price, bool) or not isinstance(price, int | float):
            unknown += 1
        elif isfinite(price) and price >= 0:
            prices.append(float(price))
        else:
            unknown += 1
    usd = fsum(prices) if prices else 0.0 if cached and not unknown else None
    return JudgeCosts(asked=asked, cached=cached, usd=usd, unknown=unknown)


def _calls(cell: CellRecord) -> Iterator[Mapping[str, Json]]:
    level: list[Mapping[str, Json]] = list(cell.subscores)
    for _ in range(_MAX_JUDGE_DEPTH):
        below: list[Mapping[str, Json]] = []
        for node in level:
            metadata = node.get("metadata")
            if isinstance(metadata, dict):
                yield from _of_node(metadata)
            children = node.get("children")
            if isinstance(children, list):
                below.extend(child for child in children if isinstance(child, dict))
        if not below:
            return
        level = below


def _of_node(metadata: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    yield from _within(metadata, 0)
    if "reward" in metadata or "flag" in metadata:  # OpenAI's kinds keep one call each
        parts = [metadata, *metadata.values()]
        yield from (part for part in parts if isinstance(part, Mapping) and _is_call(part))


def _within(record: Mapping[str, Json], depth: int) -> Iterator[Mapping[str, Json]]:
    """The calls in the lists of a record: a vote is a call, or has calls of its own."""
    for place in _PLACES:
        entries = record.get(place)
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            if any(isinstance(entry.get(inner), list) for inner in _PLACES):
                if depth < 2:
                    yield from _within(entry, depth + 1)
            elif _is_call(entry):
                yield entry


def _is_call(record: Mapping[str, Json]) -> bool:
    if isinstance(record.get("request"), str):
        return "cost_usd" in record
    kind = record.get("error_kind")
    return isinstance(kind, str) and kind not in _NEVER_ASKED


def cost_of_cell(cell: CellRecord, *, is_new: bool = True) -> tuple[float | None, int]:
    """What a cell cost in all, and the paid calls that it is known from; None where it is not.

    What an agent asked counts as one call; nothing of a cell that was only graded again.
    """
    judged = judge_costs(cell)
    own, is_told = (cell.cost_usd or 0.0, not cell.tokens) if is_new else (0.0, True)
    calls = judged.asked + (own > 0)
    if judged.unknown or not (is_told or own or cell.cost_usd is not None):
        return None, calls
    return own + (judged.usd or 0.0), calls
