"""The served environments of this room's tests, in processes that they share."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.children import Children
from tests.served_environment import ServedProcess, serve_process, write_env


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    folder = tmp_path_factory.mktemp("served")
    write_env(folder)
    with Children() as children:
        yield serve_process(children, folder, "--workers", "2", "--set", "starts=8", "--openenv")


@pytest.fixture(scope="package")
def games(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    """Tasks of several steps and with tools, on one worker."""
    folder = tmp_path_factory.mktemp("games")
    write_env(folder, GAMES)
    with Children() as children:
        yield serve_process(children, folder, "--workers", "1")


GAMES = """
import asyncio
import os
from pathlib import Path

from assay import Environment, EvaluationResult
from assay.environment import Observation
from assay.errors import SkippedError

env = Environment("games")


@env.state
def bag():
    return []


@env.tool
async def put(what: str) -> str:
    '''Put something in.'''
    if what == "bomb":
        raise ValueError("no bombs")
    if what == "anvil":
        await asyncio.sleep(0.8)
    bag().append(what)
    return f"{len(bag())} in the bag"


@env.tool
def repeat(text: str, times: int, deep: object = None) -> str:
    return text * times


@env.template(max_steps=4)
async def game():
    said = yield "Go."
    for number in (1, 2):
        said = yield Observation(f"{number}: {said}", reward=0.1)
    yield 0.75


@env.template(max_steps=4)
async def moody():
    said = yield "Go."
    said = yield Observation(str(os.getpid()))
    yield 1.0


@env.template()
async def pack():
    yield "Pack."
    yield len(bag()) / 4


@env.template(max_steps=9)
async def walled():
    said = yield "Go."
    while said != "end":
        if said == "raise":
            raise ValueError("wall")
        said = yield Observation(said)
    yield 1.0


@env.template(returns=list)
async def seen():
    answer = yield "What?"
    yield EvaluationResult(reward=0.25, info={"seen": answer.content})


@env.template(max_steps=3)
async def echo():
    said = yield "Say."
    while said != "end":
        said = yield Observation(said * 2_000)
    yield 0.25


@env.template(max_steps=3)
async def walk():
    said = yield "Walk."
    await asyncio.sleep(0.8)
    said = yield Observation("walked")
    yield 1.0 if said == "twice" else 0.25


@env.template
async def skips():
    answer = yield "Skip?"
    if answer == "please":
        raise SkippedError("as you like")
    yield 0.0


@env.template(max_steps=3)
async def slow(gate: str):
    said = yield "Go."
    with open(gate + ".begun", "a") as file:
        file.write(said)
    while not Path(gate).exists():
        await asyncio.sleep(0.005)
    said = yield Observation("seen")
    yield 1.0
"""
