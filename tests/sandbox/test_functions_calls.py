"""What a call of a function may do, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from assay.errors import InputError
from assay.sandbox.functions import (
    FunctionLimits,
    FunctionPool,
    Isolation,
    Outcome,
    Program,
    load_once,
)
from tests.each import each

pytestmark = pytest.mark.sandbox

_LIMITS = FunctionLimits(cpu_seconds=1.0, wall_seconds=3.0, output_bytes=1000)
_SOURCE = """
import asyncio, os, sys

class Float(float):
    pass

RETURNS = {
    "bool": True, "none": None, "nan": float("nan"), "infinity": float("inf"), "text": "1.0",
    "subclass": Float(1.0), "huge": 10 ** 400, "list": [1.0], "function": print,
}

def grade(payload):
    action, *rest = payload
    if action == "return":
        return rest[0]
    if action == "bad":
        return RETURNS[rest[0]]
    return globals()[action](*rest)

def prints(text):
    print(text)
    print(text, file=sys.stderr)
    os.write(1, b"raw")
    return 1

def floods():
    print("x" * 5_000_000)
    return 1

def prints_and_dies():
    print("last words")
    os.abort()

def fails():
    raise ValueError("no such thing")

def exits():
    sys.exit(3)

async def waits():
    await asyncio.sleep(0.001)
    first, second = await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(int, "2"))
    return first + second

async def asks_for_loop():
    return float(asyncio.get_running_loop().is_running())

async def fails_later():
    await asyncio.sleep(0)
    raise KeyError("later")

def runs_own_loop():
    return asyncio.run(asks_for_loop())

def is_crowded():
    # Process ids grow: on a fresh worker this is one of the first.
    if os.getpid() > 8:
        os._exit(1)
    return 1.0
"""


@pytest.fixture(scope="module", params=["call", "batch"])
def pool(request: pytest.FixtureRequest) -> Iterator[FunctionPool]:
    isolation: Isolation = request.param
    pool = FunctionPool(
        Program(source=_SOURCE), isolation=isolation, workers=1, limits=_LIMITS, tier="bwrap"
    )
    yield pool
    pool.close_now()


async def calls(pool: FunctionPool, *payloads: object) -> list[Outcome]:
    return await pool.call_many([json.dumps(payload).encode() for payload in payloads])


@each(("returned", "score"), [(0.25, 0.25), (1, 1.0), (-3, -3.0), (0, 0.0)])
async def test_a_number_is_a_score(pool: FunctionPool, returned: float, score: float) -> None:
    for outcome in await calls(pool, ["return", returned], ["return", returned]):
        assert (outcome.status, outcome.score) == ("ok", score)
        assert isinstance(outcome.score, float)


@each(
    "what",
    ["bool", "none", "nan", "infinity", "text", "subclass", "huge", "list", "function"],
)
async def test_anything_else_is_no_score(pool: FunctionPool, what: str) -> None:
    for outcome in await calls(pool, ["bad", what], ["bad", what]):
        assert (outcome.status, outcome.score) == ("bad_return", None)
        assert outcome.message.startswith("it returned")
        assert not outcome.retried


async def test_an_exception_is_told_with_its_line(pool: FunctionPool) -> None:
    failed, left, fine = await calls(pool, ["fails"], ["exits"], ["return", 1])
    line = _SOURCE.splitlines().index('    raise ValueError("no such thing")') + 1
    assert failed.status == left.status == "error"
    assert failed.message == f"ValueError: no such thing, line {line}"
    assert left.message.startswith("SystemExit: 3")
    assert fine.score == 1.0


async def test_a_coroutine_gets_a_loop_if_it_needs_one(pool: FunctionPool) -> None:
    found = await calls(
        pool, ["waits"], ["asks_for_loop"], ["fails_later"], ["runs_own_loop"], ["waits"]
    )
    assert [outcome.score for outcome in found] == [3.0, 1.0, None, 1.0, 3.0], found
    assert found[2].message.startswith("KeyError: 'later', line")


async def test_each_call_has_its_own_output_and_a_flood_is_cut(pool: FunctionPool) -> None:
    one, none, two = await calls(pool, ["prints", "one"], ["return", 1], ["prints", "two"])
    assert one.output.startswith("one\none\n")
    assert none.output == ""
    assert two.output.startswith("two\ntwo\n")
    assert "raw" in (await calls(pool, ["prints", "alone"]))[0].output
    for outcome in await calls(pool, ["floods"], ["floods"]):
        assert (outcome.score, outcome.output) == (1.0, "x" * 1000)


async def test_a_crash_is_tried_again_alone_and_keeps_its_last_words(pool: FunctionPool) -> None:
    before, crash, after = await calls(pool, ["return", 1], ["prints_and_dies"], ["return", 1])
    assert before.score == after.score == 1.0
    assert not before.retried
    assert (crash.status, crash.score, crash.retried) == ("crash", None, True)
    assert crash.output == "last words\n"
    assert "signal 6" in crash.message


async def test_a_crash_that_does_not_repeat_is_forgotten(pool: FunctionPool) -> None:
    found = await calls(pool, *([["return", 1]] * 12), ["is_crowded"])
    await calls(pool, *([["return", 1]] * 12))
    (last,) = await calls(pool, ["is_crowded"])
    assert found[-1].score == last.score == 1.0


async def test_large_payloads_arrive_and_what_cannot_be_read_is_an_error(
    pool: FunctionPool,
) -> None:
    found = await calls(pool, ["return", 1, "x" * 3_000_000], ["return", 0.5, "y" * 100_000])
    assert [outcome.score for outcome in found] == [1.0, 0.5]
    small = FunctionLimits(payload_bytes=10)
    found = await pool.call_many([b"", b"nonsense", b"[1] 2", b"\xff\xfe", b' ["return", 1] \n'])
    assert [outcome.status for outcome in found] == ["error"] * 4 + ["ok"]
    assert "JSON" in found[1].message
    async with FunctionPool(Program(source=_SOURCE), workers=1, limits=small) as narrow:
        found = await narrow.call_many([b'["return", 1]', b'["x"]'])
    assert "at most 10" in found[0].message


@each(
    ("error", "line", "source"),
    [
        ("SyntaxError", 2, "x = 1\ndef grade(:\n"),
        ("ZeroDivisionError", 1, "1 / 0"),
        ("ModuleNotFoundError", 1, "import numpy_is_not_here"),
        ("defines no function 'grade'", None, "def score(x): return 1"),
        ("is not a function", None, "grade = 1"),
        ("SystemExit", 1, "raise SystemExit"),
        ("process", None, "import os; os._exit(0)"),
        ("MemoryError", 1, "x = bytearray(1 << 40)"),
        ("null bytes", None, "x = 1\0"),
    ],
)
async def test_a_program_that_cannot_be_loaded(error: str, line: int | None, source: str) -> None:
    report = await load_once(Program(source=source), [b"1"], tier="bwrap")
    assert error in report.error
    assert report.line == line
    assert report.outcomes == []


async def test_a_program_sees_what_it_is_given() -> None:
    program = Program(
        source=(
            "from kit.numbers import half\nimport kit\n"
            "def score(first, second): return half(first) + second + GIVEN + kit.ONE\n"
        ),
        entry="score",
        modules={
            "kit": "ONE = 1",
            "kit.numbers": "def half(x): return x / 2",
            "kit.payload": "def read(payload): return payload['a'], payload['b']",
            "names": "GIVEN = 100\n_hidden = 1",
        },
        argument="kit.payload:read",
        provided="names",
    )
    report = await load_once(program, [b'{"a": 2, "b": 10}', b'{"a": 2}'], tier="bwrap")
    assert [outcome.score for outcome in report.outcomes] == [112.0, None], report
    assert report.outcomes[1].message.startswith("KeyError: 'b'")


async def test_every_call_starts_from_the_same_state() -> None:
    source = (
        "import random\nseen = []\n"
        "def grade(x):\n    seen.append(x)\n    return random.random() + len(seen)\n"
    )
    report = await load_once(Program(source=source), [b"1"] * 3, tier="bwrap")
    assert len({outcome.score for outcome in report.outcomes}) == 1


async def test_modules_of_a_rehearsal_are_imported_in_its_order() -> None:
    """`_asyncio` before `asyncio` has tasks that `asyncio.timeout` does not know."""
    source = (
        "import asyncio\n"
        "async def grade(x):\n"
        "    async with asyncio.timeout(9):\n"
        "        await asyncio.sleep(0.001)\n"
        "    return 0.5\n"
    )
    report = await load_once(Program(source=source), [b"1"], tier="landlock")
    assert [outcome.score for outcome in report.outcomes] == [0.5], report


def test_the_digest_covers_everything_that_decides() -> None:
    programs = [
        Program(source="a", modules={"m": "1", "n": "2"}),
        Program(source="b", modules={"m": "1", "n": "2"}),
        Program(source="a", modules={"m": "1n", "": "2"}),
        Program(source="a", modules={"m": "1", "n": "2"}, argument="m:f"),
        Program(source="a", modules={"m": "1", "n": "2"}, provided="m"),
        Program(source="a", modules={"m": "1", "n": "2"}, entry="score"),
    ]
    assert len({program.digest for program in programs}) == len(programs)
    assert programs[0].digest == Program(source="a", modules={"n": "2", "m": "1"}).digest


@each(
    "wrong",
    [{"entry": "not a name"}, {"argument": "m:f"}, {"argument": "m"}, {"provided": "m"}],
)
def test_a_program_that_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError):
        Program(source="", **wrong)  # pyright: ignore[reportArgumentType] - each is a str


@each("value", [0, -1, float("nan"), float("inf")])
def test_a_limit_that_makes_no_sense_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="cpu_seconds"):
        FunctionLimits(cpu_seconds=value)
