"""A scripted agent: an agent is any async function that takes a run and leaves an answer in it."""

from __future__ import annotations

from assay import Run
from assay.agents.types import AgentStep

ANSWERS = {
    "symbol of sodium": "Na",
    "symbol of tungsten": "Tu",  # wrong: it is W
    "grep -E": "^[0-9:]+ ERROR",
    "subject line": "Remember the language that was chosen on the login page",
    "Lunch": "Tuesday at 14:30, with Ada and Grace.",  # right, and not in the form asked for
    "let us meet": '```json\n{"day": "Tuesday", "start": "14:30", "people": ["Ada", "Grace"]}\n```',
}


async def scripted(run: Run) -> None:
    """Answer from the script."""
    said = next(answer for part, answer in ANSWERS.items() if part in run.prompt_text)
    run.record(AgentStep(content=said, done=True, model="scripted"))
    run.trace.content = said
