"""Judge one answer by one criterion, again and again, as each package's users do.

Run as a program by the interpreter that has the package: ``judge_clients.py NAME URL``; then a line
of JSON on standard input asks for a round and gets its times back.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable

from judge_server import ANSWER, CRITERION, QUESTION

Judge = Callable[[], Awaitable[bool]]
_KEY = "none"


async def _floor(url: str) -> Judge:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    session = aiohttp.ClientSession(connector=connector)
    messages = [
        {"role": "system", "content": "You judge. " * 150},
        {"role": "user", "content": f"{QUESTION}\n{ANSWER}\n{CRITERION}"},
    ]

    async def judge() -> bool:
        body = {"model": "instant", "max_tokens": 4096, "temperature": 0, "messages": messages}
        async with session.post(f"{url}/assay/v1/chat/completions", json=body) as response:
            data = await response.json()
        return json.loads(data["choices"][0]["message"]["content"])["verdict"] == "MET"

    return judge


async def _assay(url: str, **settings: object) -> Judge:
    from assay.graders import LLMJudgeGrader
    from assay.models import ModelClient, ModelSettings, using

    client = ModelClient(ModelSettings(max_concurrency=256, first_concurrency=256, **settings))
    using(client).__enter__()

    async def judge() -> bool:
        score = await LLMJudgeGrader.grade(
            answer=ANSWER, criteria=[CRITERION], question=QUESTION, model=f"{url}/assay/v1#instant"
        )
        return score.value == 1.0

    return judge


async def _cached(url: str) -> Judge:
    """With a cache that keeps every reply; each answer is another one, so that none is a hit."""
    import tempfile

    from assay.graders import LLMJudgeGrader

    file = os.path.join(tempfile.mkdtemp(), "replies.sqlite")  # noqa: PTH118
    await _assay(url, cache="readwrite", cache_file=file)
    number = iter(range(10**9))

    async def judge() -> bool:
        score = await LLMJudgeGrader.grade(
            answer=f"{ANSWER} {next(number)}",
            criteria=[CRITERION],
            question=QUESTION,
            canary=0.0,  # this model would be found out
            model=f"{url}/assay/v1#instant",
        )
        return score.value == 1.0

    return judge


async def _autoevals(url: str) -> Judge:
    from autoevals.llm import LLMClassifier
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/autoevals/v1", api_key=_KEY)
    classifier = LLMClassifier(
        name="criterion",
        prompt_template=(
            "Question: {{input}}\n[BEGIN DATA]\n{{output}}\n[END DATA]\nCriterion: {{criterion}}\n"
            "Is it met?"
        ),
        choice_scores={"MET": 1, "UNMET": 0},
        model="instant",
        client=client,
    )

    async def judge() -> bool:
        score = await classifier.eval_async(output=ANSWER, input=QUESTION, criterion=CRITERION)
        return score.score == 1

    return judge


async def _rubric(url: str) -> Judge:
    from openai import AsyncOpenAI
    from rubric import Criterion, PerCriterionOutput, Rubric
    from rubric.autograders.per_criterion_grader import PerCriterionGrader

    client = AsyncOpenAI(base_url=f"{url}/rubric/v1", api_key=_KEY)

    async def generate(system_prompt: str, user_prompt: str, **_: object) -> PerCriterionOutput:
        reply = await client.chat.completions.create(
            model="instant",
            max_tokens=1024,
            messages=[
                {"role": "system", "content": system_prompt},
                {"role": "user", "content": user_prompt},
            ],
        )
        return PerCriterionOutput.model_validate_json(reply.choices[0].message.content or "")

    grader = PerCriterionGrader(generate_fn=generate)
    rubric = Rubric([Criterion(requirement=CRITERION, weight=1.0)])

    async def judge() -> bool:
        report = await rubric.grade(ANSWER, autograder=grader, query=QUESTION)
        return report.score == 1

    return judge


async def _hud(url: str) -> Judge:
    os.environ.update(HUD_GATEWAY_URL=f"{url}/hud/v1", HUD_API_KEY=_KEY)
    from hud.graders import LLMJudgeGrader

    async def judge() -> bool:
        score = await LLMJudgeGrader.grade(
            weight=1.0, answer=ANSWER, criteria=[CRITERION], question=QUESTION, model="instant"
        )
        return score.value == 1.0

    return judge


async def _deepeval(url: str) -> Judge:
    os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", DEEPEVAL_DISABLE_DOTENV="1")
    from deepeval.metrics import GEval
    from deepeval.models import LocalModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = LocalModel(model="instant", base_url=f"{url}/deepeval/v1", api_key=_KEY)

    async def judge() -> bool:
        metric = GEval(
            name="criterion",
            evaluation_steps=[f"Check: {CRITERION}"],
            evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
            model=model,
        )
        case = LLMTestCase(input=QUESTION, actual_output=ANSWER)
        return await metric.a_measure(case, _show_indicator=False) == 1.0

    return judge


_CLIENTS = {
    "floor": _floor,
    "assay": _assay,
    "cached": _cached,
    "autoevals": _autoevals,
    "rubric": _rubric,
    "hud": _hud,
    "deepeval": _deepeval,
}


async def _round(judge: Judge, count: int, at_once: int) -> dict[str, float]:
    left = iter(range(count))
    right = 0

    async def work() -> None:
        nonlocal right
        for _ in left:
            is_right = await judge()
            right += is_right

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": wall / count, "cpu": cpu / count, "right": right / count, "peak_mib": peak}


async def _main(name: str, url: str) -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a package prints is no reply
    judge = await _CLIENTS[name](url)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        found = await _round(judge, asked["count"], asked["at_once"])
        replies.write(json.dumps(found) + "\n")
        replies.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
