"""Tasks in Python. Run this file to see them work: python tasks.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from assay import Run, Taskset
from assay.environment import Answer, Environment
from assay.graders import EvaluationResult, SubScore, combine, contains, exact_match

env = Environment("starter")


@env.template()
async def capital(country: str, city: str) -> AsyncGenerator[str | float, str]:
    """A template yields a prompt, is sent the answer, and yields the reward."""
    answer = yield f"What is the capital of {country}?"
    yield exact_match(answer, city)


@env.template(returns=list[int])
async def primes(below: int = 10) -> AsyncGenerator[str | float, Answer[list[int]]]:
    """A typed answer arrives as a list of numbers, or with the reason why it is none."""
    answer = yield f"Which prime numbers are below {below}? Answer with a JSON list."
    right = [n for n in range(2, below) if all(n % d for d in range(2, n))]
    yield float(answer.ok and answer.content == right)


@env.template()
async def apology() -> AsyncGenerator[str | EvaluationResult, str]:
    """Several graders in one reward."""
    answer = yield "Write one sentence to a customer whose parcel is late."
    yield await combine(
        SubScore(name="says-sorry", value=contains(answer, "sorry"), weight=0.6),
        SubScore(name="short", value=float(len(answer) <= 120), weight=0.4),
    )


tasks = Taskset("starter", [capital("Kenya", "Nairobi"), primes(), apology()])


async def scripted(run: Run) -> None:
    """Stands in for an agent: any async function that leaves an answer in the run's trace."""
    script = {"capital": "Nairobi.", "prime": "[2, 3, 5, 7]", "parcel": "We are sorry!"}
    run.trace.content = next(text for word, text in script.items() if word in run.prompt_text)


async def main() -> None:
    """Run every task and print what came out."""
    job = await tasks.run(scripted)
    for run in job:
        print(run.slug, run.reward)


if __name__ == "__main__":
    asyncio.run(main())
