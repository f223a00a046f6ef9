"""Two scripted agents of the support desk: they do its tasks more or less well."""

from __future__ import annotations

import os
import random
from collections import Counter

from assay import Run
from assay.agents.types import AgentStep
from assay.types.trace import ToolCall, ToolResult, ToolStep
from web.pictured.desk import CASES

SKILL = float(os.environ.get("DESK_SKILL", "0.85"))
"""Of the careful one; a change makes it worse."""

_seen: Counter[str] = Counter()


async def careful(run: Run) -> None:
    """Seldom wrong."""
    _work(run, "careful", skill=SKILL)


async def hasty(run: Run) -> None:
    """Often wrong, and cheaper."""
    _work(run, "hasty", skill=0.55)


def _work(run: Run, name: str, *, skill: float) -> None:
    case = next(key for key, said in CASES.items() if run.prompt_text.startswith(said[0]))
    _seen[f"{name} {case}"] += 1
    rng = random.Random(f"{name} {case} {_seen[f'{name} {case}']}")
    _, amount, word = CASES[case]
    ease = 0.25 if case in ("refund-fee", "double-charge", "gift-voucher") else 0.0
    is_right = rng.random() < skill + ease
    told = amount if is_right else round(amount * rng.choice((0.5, 1.1, 2.0)), 2)
    about = f"the {word}" if rng.random() < skill + 0.3 else "your order"
    run.cost_usd = round(rng.uniform(0.004, 0.02) * (2 if name == "careful" else 1), 4)
    run.tokens = rng.randrange(900, 2_800)
    call = ToolCall(id="1", name="order", arguments={"about": about})
    run.record(AgentStep(content="I look the order up.", tool_calls=(call,)))
    run.record(ToolStep(call=call, result=ToolResult(id="1", content=f"found, {amount:.2f}")))
    if name == "hasty" and case == "price-match" and _seen[f"{name} {case}"] == 2:
        raise RuntimeError("the price list did not answer within 10 s")
    said = f"I am sorry about {about}. This is what you get back.\n{told:.2f}"
    if rng.random() > skill + 0.25:
        said += " euros"
    run.record(AgentStep(content=said, done=True))
    run.trace.content = said
