"""Agents that are right most of the time, or hardly ever."""

from assay import Run


async def often(run: Run) -> str:
    return "Lyon" if run.trial == 3 else "Paris"


async def seldom(run: Run) -> str:
    return "Paris" if run.trial == 3 else "Lyon"
