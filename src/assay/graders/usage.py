"""What a whole trajectory used, and how much of it was seen.

An agent that records a trace says three things in ``trace.extra``, where they are known:

* ``observed``: False where it can only tell its final answer, so that nothing is known of what was
  done. It depends on the harness alone.
* ``incomplete``: why a part of the trace is missing, such as a stream that was cut off. The
  submission can cause it, so what the missing part might hold is held against it.
* ``untold``: what the harness leaves out of every trace, such as texts and the input of calls. It
  depends on the harness alone; the calls are all there.
* ``usage``: what the whole run used, subagents included. Without it the steps are summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from assay.frozen import frozen
from assay.scoring.json_safe import Json, noted
from assay.types.submission import Workspace
from assay.types.trace import ActionStep, AgentStep, AnyStep, SubagentStep, ToolStep, Trace, Usage

OBSERVED, INCOMPLETE, UNTOLD, USAGE = "observed", "incomplete", "untold", "usage"
"""Keys of ``trace.extra``."""

COPIED = "is_copied_context"
"""Key of a step's ``extra``: it repeats an earlier trajectory and is not this one's work."""

_DAY = 86_400.0
_NAMES = ("tokens", "cost_usd", "seconds")
_REFUSED = "refused"


@frozen(kw_only=True)
class RunUsage:
    """What a run used; None is unknown, which is never the same as 0."""

    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    # Names of those that were told, but not as an amount: a negative one, say. They are None, and
    # held against the submission, which can have written them.
    refused: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """As ``trace.extra["usage"]`` has it."""
        told: dict[str, Json] = {name: getattr(self, name) for name in _NAMES}
        return told | noted(refused=list(self.refused))

    def why_unknown(self, name: str) -> str:
        """Why one of them is None, where that is held against the submission; else empty."""
        return f"what the trace says of {name} is no amount" if name in self.refused else ""


def is_observed(trace: Trace) -> bool:
    """Whether anything is known of what was done, beside the answer."""
    return trace.extra.get(OBSERVED) is not False


def missing_part(trace: Trace) -> str:
    """Why a part of the trace is missing; empty where it is whole."""
    why = trace.extra.get(INCOMPLETE)
    return why if isinstance(why, str) else ""


def untold_part(trace: Trace) -> str:
    """What the harness leaves out of its traces; empty where it tells all of it."""
    what = trace.extra.get(UNTOLD)
    return what if isinstance(what, str) else ""


def walk(trace: Trace) -> Iterator[tuple[int, AnyStep]]:
    """Every step of a trajectory and of its subagents', in order; copied ones are left out."""
    levels = 0
    inside: list[tuple[int, Iterator[AnyStep]]] = [(0, iter(trace.steps))]
    while inside:
        level, steps = inside[-1]
        step = next(steps, None)
        if step is None:
            inside.pop()
        elif step.extra.get(COPIED) is not True:
            yield level, step
            if isinstance(step, SubagentStep):
                levels += 1
                inside.append((levels, iter(step.subagent.steps)))


def totals_of(trace: Trace) -> RunUsage:
    """What the run used: as the agent says, else the sum of its steps.

    A sum is known only if every turn of the model says its part.
    """
    said = trace.extra.get(USAGE)
    if isinstance(said, Mapping):
        known = {name: _amount(said.get(name)) for name in _NAMES}
        before = said.get(_REFUSED)
        wrong = before if isinstance(before, list) else []
        refused = [
            name
            for name in _NAMES
            if _is_refused(said.get(name)) or (known[name] is None and name in wrong)
        ]
        seconds = known["seconds"]
    else:
        turns = [step.usage for _, step in walk(trace) if isinstance(step, AgentStep)]
        told = [usage for usage in turns if usage is not None]
        parts = [(usage.prompt_tokens, usage.completion_tokens) for usage in told]
        refused = ["tokens"] if any(_is_refused(part) for pair in parts for part in pair) else []
        refused += ["cost_usd"] if any(_is_refused(usage.cost_usd) for usage in told) else []
        known = {"tokens": _sum(map(tokens_of, turns)), "cost_usd": _sum(map(cost_of, turns))}
        seconds = _span(trace)
    tokens = known["tokens"]
    return RunUsage(
        tokens=None if tokens is None else int(tokens),
        cost_usd=known["cost_usd"],
        seconds=seconds,
        refused=tuple(refused),
    )


def did_nothing(trace: Trace, answer: str | None, workspace: Workspace | None) -> bool:
    """Whether there is no sign of any work: no tool call, no text, and no change of a file."""
    if (answer or "").strip() or (trace.content or "").strip():
        return False
    if workspace is not None and workspace.changes:
        return False
    is_untold = bool(untold_part(trace))
    for _, step in walk(trace):
        if isinstance(step, ToolStep | SubagentStep | ActionStep):
            return False
        if isinstance(step, AgentStep):
            is_text = bool((step.content or "").strip()) or (is_untold and _has_written(step))
            if step.tool_calls or is_text:
                return False
    return True


def _has_written(step: AgentStep) -> bool:
    """Whether a turn whose text nobody tells can have had one."""
    return step.usage is None or step.usage.completion_tokens != 0


def _is_refused(value: object) -> bool:
    return value is not None and _amount(value) is None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _sum(each: Iterable[float | None]) -> float | None:
    amounts = list(each)
    known = [amount for amount in amounts if amount is not None]
    return math.fsum(known) if amounts and len(known) == len(amounts) else None


def tokens_of(usage: Usage | None) -> float | None:
    """Tokens that a call read and wrote; None where one of the two is unknown."""
    if usage is None:
        return None
    if usage.llm_call_count == 0:
        return 0.0
    return _sum([_amount(usage.prompt_tokens), _amount(usage.completion_tokens)])


def cost_of(usage: Usage | None) -> float | None:
    """What a call cost in US dollars; None is unknown."""
    if usage is None:
        return None
    return 0.0 if usage.llm_call_count == 0 else _amount(usage.cost_usd)


def _span(trace: Trace) -> float | None:
    """Seconds from the first step's start to the last step's end, where both are known."""
    if not trace.steps or trace.steps[0].started_at is None or trace.steps[-1].ended_at is None:
        return None
    try:
        start = datetime.fromisoformat(trace.steps[0].started_at)
        end = datetime.fromisoformat(trace.steps[-1].ended_at)
        seconds = (end - start).total_seconds()
    except (ValueError, TypeError):  # no date, or only one of them has a time zone
        return None
    return seconds if 0 <= seconds < 365 * _DAY else None
