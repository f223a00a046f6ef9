"""The cache of replies: what it keeps, what it refuses to believe, and who waits for whom."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.conversation.messages import Attempt, Finish, Message, Reply, ReplyUsage, Request
from assay.errors import ModelError, StoreError
from assay.models.cache import CacheMode, ReplyCache
from assay.models.client import request_digest
from tests.each import each

REPLY = Reply(
    text='{"verdict": "MET"}',
    data={"verdict": "MET"},
    model="judge-2026-01-01",
    usage=ReplyUsage(input_tokens=700, cached_tokens=512, output_tokens=40),
    fingerprint="fp_1",
    rung="json_schema",
    attempts=(Attempt("rate limited", 429, 1.0),),
    seconds=1.5,
    cost_usd=0.25,
    dropped=("temperature",),
    repairs=1,
)


def digest_of(question: object) -> str:
    return hashlib.sha256(repr(question).encode()).hexdigest()


def count_in(file: str) -> int:
    """How many replies a file holds, by another connection than the cache's."""
    connection = sqlite3.connect(file)
    count = len(connection.execute("SELECT digest FROM replies").fetchall())
    connection.close()
    return count


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "replies.sqlite")


@pytest.fixture
def cache(file: str) -> Iterator[ReplyCache]:
    cache = ReplyCache(file, "readwrite")
    yield cache
    cache.close()


# --- Keeping -------------------------------------------------------------------------------------


async def test_a_hit_brings_back_the_reply_and_costs_nothing(cache: ReplyCache) -> None:
    digest = digest_of(1)
    assert await cache.get(digest) is None
    await cache.put(digest, REPLY)
    hit = replace(REPLY, is_hit=True, cost_usd=0.0, seconds=0.0, attempts=(), digest=digest)
    took = {"asked_usd": REPLY.cost_usd, "asked_seconds": REPLY.seconds}
    assert await cache.get(digest) == replace(hit, **took)


@each(
    "reply",
    [
        Reply(text=""),
        Reply(text="half \ud800 of it", data=None),
        Reply(text="x" * 1_000_000, data=["x" * 1_000_000]),
        Reply(text="\0", data={"": [None, True, 1.5, -(10**40), "\U0001f600"]}, finish="tool"),
    ],
)
async def test_any_text_is_brought_back_and_replaces_an_older_one(
    cache: ReplyCache, reply: Reply
) -> None:
    await cache.put(digest_of(1), reply)
    hit = await cache.get(digest_of(1))
    assert hit is not None
    assert (hit.text, hit.data, hit.finish) == (reply.text, reply.data, reply.finish)


async def test_what_did_not_end_by_itself_is_not_kept(cache: ReplyCache) -> None:
    ends: list[Finish] = ["length", "refusal"]
    for reply in (*(replace(REPLY, finish=end) for end in ends), replace(REPLY, is_hit=True)):
        await cache.put(digest_of(1), reply)
        assert await cache.get(digest_of(1)) is None


async def test_a_reply_that_is_not_json_fails_alone(cache: ReplyCache) -> None:
    bad = replace(REPLY, data={"score": float("nan")})
    results = await asyncio.gather(
        cache.put(digest_of(1), REPLY), cache.put(digest_of(2), bad), return_exceptions=True
    )
    assert results[0] is None
    assert isinstance(results[1], StoreError)
    assert await cache.get(digest_of(1)) is not None


async def test_the_file_is_for_the_user_alone(cache: ReplyCache, file: str) -> None:
    await cache.put(digest_of(1), REPLY)
    modes = [each.stat().st_mode & 0o777 for each in Path(file).parent.iterdir()]
    assert modes == [0o600] * 3
    cache.close()
    assert [each.name for each in Path(file).parent.iterdir()] == ["replies.sqlite"]


async def test_a_closed_cache_opens_again(cache: ReplyCache) -> None:
    await cache.put(digest_of(1), REPLY)
    cache.close()
    cache.close()
    assert await cache.get(digest_of(1)) is not None
    await cache.put(digest_of(2), REPLY)
    assert await cache.get(digest_of(2)) is not None


async def test_what_is_under_way_is_written_before_the_cache_closes(file: str) -> None:
    cache = ReplyCache(file, "readwrite")
    puts = [asyncio.ensure_future(cache.put(digest_of(n), REPLY)) for n in range(100)]
    await asyncio.sleep(0)
    cache.close()
    await asyncio.gather(*puts)
    assert count_in(file) == 100


async def test_a_put_that_is_cancelled_harms_nobody(cache: ReplyCache) -> None:
    puts = [asyncio.ensure_future(cache.put(digest_of(n), REPLY)) for n in range(10)]
    await asyncio.sleep(0)
    puts[3].cancel()
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert [result for n, result in enumerate(results) if n != 3] == [None] * 9
    await cache.put(digest_of("after"), REPLY)
    assert await cache.get(digest_of("after")) is not None


async def test_a_write_that_fails_is_told_to_everybody_who_waits(cache: ReplyCache) -> None:
    await cache.put(digest_of(0), REPLY)
    with sqlite3.connect(cache.file) as connection:
        connection.execute("DROP TABLE replies")
    connection.close()
    puts = (cache.put(digest_of(n), REPLY) for n in range(5))
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(result) for result in results] == [StoreError] * 5
    assert "replies.sqlite" in str(results[0])


def test_a_loop_that_ended_meanwhile_harms_no_other(cache: ReplyCache) -> None:
    async def leave() -> None:
        task = asyncio.ensure_future(cache.put(digest_of(1), REPLY))
        await asyncio.sleep(0)
        task.cancel()

    for _ in range(20):
        asyncio.run(leave())
    asyncio.run(cache.put(digest_of(2), REPLY))
    assert asyncio.run(cache.get(digest_of(2))) is not None


def in_threads(*work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run each in a thread with a loop of its own; what fails there fails here."""
    with ThreadPoolExecutor(len(work)) as threads:
        for ended in [threads.submit(asyncio.run, one()) for one in work]:
            ended.result()


# --- Modes ---------------------------------------------------------------------------------------


@each("mode", ["off", "read"])
async def test_modes_that_only_read_leave_nothing_behind_and_make_nobody_wait(
    file: str, mode: CacheMode
) -> None:
    cache = ReplyCache(file, mode)
    assert await cache.get(digest_of(1)) is None
    await cache.put(digest_of(1), REPLY)
    async with cache.sharing(digest_of(1)):
        assert await cache.get(digest_of(1)) is None
        if mode == "off":
            async with asyncio.timeout(60), cache.sharing(digest_of(1)):
                pass
    assert not Path(file).parent.exists()
    cache.close()


async def test_a_mode_says_whether_what_is_there_is_used(cache: ReplyCache, file: str) -> None:
    await cache.put(digest_of(1), REPLY)
    used: dict[CacheMode, bool] = {"off": False, "read": True, "replay": True}
    for mode, is_used in used.items():
        reader = ReplyCache(file, mode)
        assert (await reader.get(digest_of(1)) is not None) is is_used
        reader.close()


async def test_a_replay_asks_nobody(cache: ReplyCache, file: str) -> None:
    with pytest.raises(ModelError, match=r"replies\.sqlite") as missing:
        await ReplyCache(file, "replay").get(digest_of(2))  # there is no file yet
    await cache.put(digest_of(1), REPLY)
    replay = ReplyCache(file, "replay")
    with pytest.raises(ModelError, match=r"openai:judge.*ASSAY_CACHE=readwrite") as unknown:
        await replay.get(digest_of(2), model="openai:judge")
    assert missing.value.kind == unknown.value.kind == "not_recorded"
    replay.close()


async def test_a_recording_is_read_where_nothing_may_be_written(
    cache: ReplyCache, file: str
) -> None:
    await cache.put(digest_of(1), REPLY)
    cache.close()
    Path(file).chmod(0o400)
    Path(file).parent.chmod(0o500)
    try:
        replay = ReplyCache(file, "replay")
        assert await replay.get(digest_of(1)) is not None
        replay.close()
    finally:
        Path(file).parent.chmod(0o700)


# --- The key -------------------------------------------------------------------------------------

NONCE = "0123456789abcdef"
REQUEST = Request(
    model="openai:judge",
    messages=(Message("system", "be fair"), Message("user", f"<a id={NONCE}>text</a id={NONCE}>")),
    schema={"type": "object", "properties": {"a": {}, "b": {}}},
    volatile=(NONCE,),
)


def key_of(request: Request, protocol: str = "openai", url: str = "http://h/v1") -> str:
    return request_digest(request, protocol=protocol, base_url=url, model="judge")


def test_the_endpoint_is_part_of_the_key() -> None:
    keys = {
        key_of(REQUEST),
        key_of(REQUEST, protocol="anthropic"),
        key_of(REQUEST, url="http://other/v1"),
        request_digest(REQUEST, protocol="openai", base_url="http://h/v1", model="other"),
    }
    assert [len(bytes.fromhex(key)) for key in keys] == [32] * 4


def test_what_does_not_decide_the_answer_is_no_part_of_the_key() -> None:
    other = "f" * 16
    fenced = Message("user", f"<a id={other}>text</a id={other}>")
    same = replace(
        REQUEST,
        messages=(REQUEST.messages[0], fenced),
        volatile=(other,),
        model="another name of it",
        purpose="agent",
        timeout_seconds=1.0,
        temperature=0,
    )
    assert key_of(same) == key_of(REQUEST)


@each(
    "other",
    [
        replace(REQUEST, messages=REQUEST.messages[1:]),
        replace(REQUEST, messages=(Message("user", "be fair"), REQUEST.messages[1])),
        replace(REQUEST, messages=(Message("system", "be fair "), REQUEST.messages[1])),
        replace(REQUEST, schema=None),
        replace(REQUEST, schema={"type": "object", "properties": {"b": {}, "a": {}}}),
        replace(REQUEST, schema={"type": "object", "properties": {"a": {"minimum": 0}, "b": {}}}),
        replace(REQUEST, schema_name="other"),
        replace(REQUEST, max_tokens=1),
        replace(REQUEST, temperature=None),
        replace(REQUEST, temperature=0.5),
        replace(REQUEST, top_p=0.5),
        replace(REQUEST, seed=0),
        replace(REQUEST, reasoning_effort="low"),
        replace(REQUEST, repeat=1),
        replace(REQUEST, volatile=()),
    ],
)
def test_what_decides_the_answer_is_part_of_the_key(other: Request) -> None:
    assert key_of(other) != key_of(REQUEST)


def test_parts_of_messages_are_part_of_the_key() -> None:
    def of(content: Any, *volatile: str) -> str:
        messages = (Message("user", content),)
        return key_of(Request(model="m", messages=messages, volatile=volatile))

    def part(text: str) -> Any:
        return ({"type": "text", "text": text},)

    assert of(part("n1 a"), "n1") == of(part("n2 a"), "n2")
    assert of(part("n1 a"), "n1") != of(part("n1 b"), "n1")
    assert of(json.dumps(part("a"))) != of(part("a"))


@each(
    "first, second",
    [
        # Text moved from one message to the next is another conversation.
        (("ab", "c"), ("a", "bc")),
        # An answer that writes what stands for a fence's name is not the same as the fence.
        ((f"<{NONCE}>", "x"), ("<\0" + "0" + "\0>", "x")),
        ((f"<{NONCE}>", "\0"), ("<\0" + "0" + "\0>", "\0")),
        (("\ud800", ""), ("?", "")),
    ],
)
def test_attack_two_conversations_never_share_a_key(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    def of(texts: tuple[str, str]) -> str:
        messages = tuple(Message("user", text) for text in texts)
        return key_of(Request(model="m", messages=messages, volatile=(NONCE, "")))

    assert of(first) != of(second)


# --- Sharing -------------------------------------------------------------------------------------


class Model:
    """Counts how often it is asked; each reply waits until it is let go."""

    def __init__(self, cache: ReplyCache) -> None:
        self.cache = cache
        self.asked = 0
        self.fails = 0
        self.lock = threading.Lock()

    async def ask(self, question: object) -> Reply:
        digest = digest_of(question)
        async with self.cache.sharing(digest):
            hit = await self.cache.get(digest)
            if hit is not None:
                return hit
            with self.lock:
                self.asked += 1
                is_failure = self.asked <= self.fails
            await asyncio.sleep(0.01)
            if is_failure:
                raise ModelError("no verdict", kind="unreadable")
            await self.cache.put(digest, REPLY)
            return REPLY


async def test_equal_requests_are_asked_once_and_different_ones_do_not_wait(
    cache: ReplyCache,
) -> None:
    model = Model(cache)
    replies = await asyncio.gather(*(model.ask(1) for _ in range(50)))
    assert model.asked == 1
    assert [reply.is_hit for reply in replies] == [False] + [True] * 49
    await asyncio.gather(*(model.ask(n) for n in range(2, 50)))
    assert model.asked == 49


async def test_once_there_is_a_reply_all_look_at_once(cache: ReplyCache) -> None:
    digest, everybody = digest_of(1), asyncio.Barrier(20)

    async def look() -> None:
        async with cache.sharing(digest):
            assert await cache.get(digest) is not None
            await everybody.wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group, cache.sharing(digest):
        for _ in range(20):
            group.create_task(look())
        await asyncio.sleep(0)
        await cache.put(digest, REPLY)


async def test_where_the_first_fails_the_next_one_asks(cache: ReplyCache) -> None:
    model = Model(cache)
    model.fails = 2
    results = await asyncio.gather(*(model.ask(1) for _ in range(9)), return_exceptions=True)
    assert model.asked == 3
    assert sum(isinstance(result, ModelError) for result in results) == 2


async def test_who_is_cancelled_while_waiting_passes_the_turn_on(cache: ReplyCache) -> None:
    model = Model(cache)
    model.fails = 1
    tasks = [asyncio.ensure_future(model.ask(1)) for _ in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    with pytest.raises(ModelError):
        await tasks[0]
    # The second has left its place, the third was given the turn: and is cancelled with it.
    tasks[2].cancel()
    assert (await tasks[3]).text == REPLY.text
    for task in tasks[1:3]:
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await model.ask(1)).is_hit


def test_equal_requests_of_several_threads_do_not_wait_for_each_other(cache: ReplyCache) -> None:
    model = Model(cache)
    texts: list[str] = []

    async def several() -> None:
        replies = await asyncio.gather(*(model.ask(1) for _ in range(10)))
        texts.extend(reply.text for reply in replies)

    in_threads(*[several] * 5)
    assert 1 <= model.asked <= 5  # once in each loop at most
    assert texts == [REPLY.text] * 50


# --- Files from elsewhere ------------------------------------------------------------------------


def store(file: str, digest: str, value: bytes) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO replies VALUES (?, ?)", (bytes.fromhex(digest), value)
        )
    connection.close()


GOOD: dict[str, object] = {
    "text": "x", "data": None, "finish": "stop", "model": "m", "usage": {}, "fingerprint": "",
    "rung": "text", "dropped": [], "repairs": 0, "seconds": 1.0, "cost_usd": None,
}  # fmt: skip
CHANGES: list[dict[str, object]] = [
    {"text": 1},
    {"finish": "length"},
    {"finish": "refusal"},
    {"model": None},
    {"rung": "magic"},
    {"dropped": "temperature"},
    {"dropped": [1]},
    {"repairs": -1},
    {"repairs": True},
    {"usage": []},
    {"usage": {"input_tokens": -1}},
    {"usage": {"input_tokens": 2**60}},
    {"usage": {"input_tokens": 1.5}},
    {"seconds": -1},
    {"cost_usd": "0"},
    {"cost_usd": -1},
]


@each(
    "value",
    [
        *(b"", b"junk", b"\x80\x04K\x01.", b"[]", b"{", b"\xff{}", b'{"a":' * 100_000),
        zlib.compress(json.dumps(GOOD).encode())[:-3],
        zlib.compress(b"0" * 70_000_000, 1),
        json.dumps(GOOD | {"seconds": float("nan")}).encode(),
        *(json.dumps(GOOD | change).encode() for change in CHANGES),
    ],
)
async def test_attack_what_is_no_reply_is_not_believed(
    cache: ReplyCache, file: str, value: bytes
) -> None:
    await cache.put(digest_of(1), REPLY)
    store(file, digest_of(2), json.dumps(GOOD).encode())
    store(file, digest_of(value), value)
    assert await cache.get(digest_of(2)) is not None
    with pytest.raises(StoreError, match=r"replies\.sqlite is damaged"):
        await cache.get(digest_of(value))


def test_an_empty_file_has_no_replies(tmp_path: Path) -> None:
    file = str(tmp_path / "replies.sqlite")
    Path(file).touch()
    with pytest.raises(StoreError, match="holds no replies"):
        asyncio.run(ReplyCache(file, "replay").get(digest_of(1)))
    asyncio.run(_one(file))
    assert count_in(file) == 1


async def _one(file: str) -> None:
    cache = ReplyCache(file, "readwrite")
    await cache.put(digest_of(1), REPLY)
    cache.close()


_ANOTHERS = {
    "another program's": ["DROP TABLE replies", "CREATE TABLE replies (digest, value)"],
    "of a newer assay": ["PRAGMA user_version = 99"],
    "with a view": [
        "ALTER TABLE replies RENAME TO hidden",
        "CREATE VIEW replies AS SELECT digest, value FROM hidden",
    ],
    "with a trigger": ["CREATE TRIGGER t AFTER INSERT ON replies BEGIN DELETE FROM replies; END"],
}


def _spoil(file: str, how: str) -> None:
    asyncio.run(_one(file))
    content = Path(file).read_bytes()
    if how == "junk":
        Path(file).write_bytes(b"not a database" * 1_000)
    elif how == "overwritten":
        Path(file).write_bytes(content[:100] + b"\xa5" * (len(content) - 100))
    else:
        with sqlite3.connect(file) as connection:
            for statement in _ANOTHERS[how]:
                connection.execute(statement)
        connection.close()


@pytest.mark.parametrize("how", [*_ANOTHERS, "junk", "overwritten"])
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, how: str) -> None:
    file = str(tmp_path / "replies.sqlite")
    _spoil(file, how)
    before = Path(file).read_bytes()
    modes: list[CacheMode] = ["readwrite", "read", "replay"]
    for mode in modes:
        cache = ReplyCache(file, mode)
        with pytest.raises(StoreError, match=r"replies\.sqlite"):
            asyncio.run(cache.get(digest_of(1)))
        cache.close()
        assert Path(file).read_bytes() == before


@each("file", ["/proc/none/replies.sqlite", "/dev/null/replies.sqlite"])
async def test_a_place_that_cannot_be_written_is_named(file: str) -> None:
    with pytest.raises(StoreError, match=r"replies\.sqlite"):
        await ReplyCache(file, "readwrite").put(digest_of(1), REPLY)
