"""What `put` acknowledged is there, whatever happens to the process: with real processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from assay.models.cache import ReplyCache
from tests.children import Children

pytestmark = pytest.mark.slow

TOTAL = 240
HARNESS = """
import asyncio, hashlib, os, sys
from assay.models.cache import ReplyCache
from assay.conversation.messages import Reply, ReplyUsage

def digest_of(number):
    return hashlib.sha256(b"%d" % number).hexdigest()

async def judge(cache, number):
    digest = digest_of(number)
    async with cache.sharing(digest):
        if await cache.get(digest) is None:
            os.write(1, b"paid %d\\n" % number)
            used = ReplyUsage(output_tokens=number)
            reply = Reply(text="x" * 3_000, data={"n": number}, usage=used)
            await cache.put(digest, reply)
            os.write(1, b"kept %d\\n" % number)

async def run(file, first, total):
    cache = ReplyCache(file, "readwrite")
    for start in range(first, first + total, 16):
        end = min(start + 16, first + total)
        await asyncio.gather(*(judge(cache, number) for number in range(start, end)))
    cache.close()

"""
RUN = HARNESS + "asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))\n"


def kept_in(file: Path, total: int) -> list[object]:
    """What the replies of the first so many questions say, as another process reads them."""

    async def read() -> list[object]:
        cache = ReplyCache(str(file), "read")
        hits = [await cache.get(sha256(b"%d" % number).hexdigest()) for number in range(total)]
        cache.close()
        return [hit.data["n"] for hit in hits if hit is not None and isinstance(hit.data, dict)]

    return asyncio.run(read())


def start(children: Children, code: str, *arguments: object) -> subprocess.Popen[str]:
    return children.start([sys.executable, "-c", code, *map(str, arguments)])


def killed_after(children: Children, lines: int, file: Path) -> tuple[list[str], bool]:
    """Run until that many lines were written, kill; all that was written, and if it ended."""
    with start(children, RUN, file, 0, TOTAL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [line for _, line in zip(range(lines), process.stdout, strict=False)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        assert process.stderr.read() == ""
    return said, process.returncode == 0


def test_a_grading_killed_again_and_again_pays_for_no_reply_twice(
    tmp_path: Path, children: Children
) -> None:
    file = tmp_path / "replies.sqlite"
    said: list[str] = []
    # Inside the first transaction, after it, between several; then to the end.
    for lines in (1, 5, 17, 30, 33, 40, 64, 90, 2 * TOTAL + 1):
        more, has_ended = killed_after(children, lines, file)
        said += more
    assert has_ended
    kept: set[str] = set()
    for line in said:
        event, number = line.split()
        if event == "kept":
            kept.add(number)
        else:
            assert number not in kept, f"reply {number} was kept, lost and paid again"
    assert kept_in(file, TOTAL) == list(range(TOTAL))


def test_processes_that_begin_together_share_one_file(tmp_path: Path, children: Children) -> None:
    file = tmp_path / "new" / "replies.sqlite"
    processes = [start(children, RUN, file, 40 * n, 80) for n in range(4)]
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
    assert kept_in(file, 200) == list(range(200))


FORKED = (
    HARNESS
    + """
cache = ReplyCache(sys.argv[1], "readwrite")
asyncio.run(judge(cache, 1))
child = os.fork()
asyncio.run(judge(cache, 2 if child else 3))
assert asyncio.run(cache.get(digest_of(1))) is not None
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert asyncio.run(cache.get(digest_of(3))) is not None
    asyncio.run(judge(cache, 4))
"""
)


def test_a_process_and_its_fork_both_go_on(tmp_path: Path, children: Children) -> None:
    file = tmp_path / "replies.sqlite"
    with start(children, FORKED, file) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert sorted(line for line in said.splitlines() if line.startswith("kept")) == [
        "kept 1", "kept 2", "kept 3", "kept 4",
    ]  # fmt: skip
    assert kept_in(file, 10) == [1, 2, 3, 4]


ENDING = (
    HARNESS
    + """
import threading
from concurrent.futures import ThreadPoolExecutor

def later():
    while True:  # until the main thread has ended, and no thread can begin any more
        try:
            with ThreadPoolExecutor() as pool:
                pool.submit(int)
        except RuntimeError:
            break
    asyncio.run(run(sys.argv[1], 0, 3))

threading.Thread(target=later).start()
"""
)


def test_a_thread_that_outlives_the_main_one_keeps_its_replies(
    tmp_path: Path, children: Children
) -> None:
    file = tmp_path / "replies.sqlite"
    with start(children, ENDING, file) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert len([line for line in said.splitlines() if line.startswith("kept")]) == 3
    assert kept_in(file, 3) == [0, 1, 2]
