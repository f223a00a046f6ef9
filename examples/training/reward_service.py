"""One `assay serve`, and two trainers in processes of their own that ask it.

    pip install "assay[server]"
    python reward_service.py

One asks as TRL does, a batch at a time, the other as verl does, for each sample by itself; neither
package is needed for that. Between their two steps the server is killed and started again: both
wait for it, and no reward is made up meanwhile.
"""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from multiprocessing import get_context
from tempfile import mkdtemp
from urllib.request import Request, urlopen

from assay import Client
from assay.training import trl, verl

STEPS = (["4", "5", "4"], ["5", "5", "4"])
TRUTHS = ["4", "4", None]  # what has no truth cannot be graded


@contextmanager
def server(store: str, port: int, *options: str):
    """Serve a store; gives the process, and what it printed."""
    words = [
        "-m",
        "assay",
        "serve",
        "--db",
        store,
        "--port",
        str(port),
        "--json",
        "--set",
        "quiet=true",
    ]
    with subprocess.Popen(
        [sys.executable, *words, *options], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def like_trl(url: str, steps) -> None:
    reward = trl.reward_function("exact@1", expected="solution", url=url)
    for said in STEPS:
        steps.wait()
        print("trl ", reward(prompts=["2+2="] * 3, completions=said, solution=TRUTHS), flush=True)
        steps.wait()


def like_verl(url: str, steps) -> None:
    score = verl.reward_function("exact@1", url=url)

    async def step(said: list[str]) -> list[float | str]:
        asked = (score("sums", one, truth, {}) for one, truth in zip(said, TRUTHS, strict=True))
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [one["score"] if isinstance(one, dict) else type(one).__name__ for one in found]

    for said in STEPS:
        steps.wait()
        print("verl", asyncio.run(step(said)), flush=True)
        steps.wait()


def main() -> None:
    store, spawn = mkdtemp(), get_context("spawn")
    steps = spawn.Barrier(3, timeout=60)
    with server(store, 0, "--create-key", "trainers") as (process, told):
        url, os.environ["ASSAY_API_KEY"] = told["url"], told["key"]
        with Client(url) as assay:
            assay.graders.create.declared(key="exact", graders=[{"type": "exact_match"}])
        trainers = [
            spawn.Process(target=one, args=(url, steps), daemon=True)
            for one in (like_trl, like_verl)
        ]
        for one in trainers:
            one.start()
        steps.wait()  # the first step begins
        steps.wait()  # and has ended
        process.kill()
    steps.wait()  # the second begins, and nobody answers yet
    with server(store, int(url.rpartition(":")[2])):
        steps.wait()
        for one in trainers:
            one.join()
        asked = Request(f"{url}/metrics", headers={"Authorization": f"Bearer {told['key']}"})
        with urlopen(asked) as reply:
            lines = reply.read().decode().splitlines()
        graded = (one for one in lines if one.startswith('assay_project_grades_total{outcome="ok"'))
        print(next(graded).split()[0])


if __name__ == "__main__":
    main()
