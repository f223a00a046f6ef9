"""A day of a server in an hour, with all that goes wrong in one: ``python -m bench.day``.

One ``assay serve`` and rollouts of ``assay run`` work over one store, while the server is killed
and restarted, the rollouts are killed and interrupted, and the disk fills up. Clients send what was
not acknowledged again, with the same key, until it is. At the end whatever was acknowledged is
looked for: it is there, once, with the right score.

From two fifths to nine tenths of the time the server lives on, so that its memory is seen. The disk
is a tmpfs, which only root can mount: others do without that event, and are told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.processes import OURS, SERVE, new_key, small_disk, started

if TYPE_CHECKING:
    from aiohttp import ClientSession

__all__ = ["main"]

_Json: TypeAlias = dict[str, Any]

_PROJECT = "/api/v1/projects/default"
_EXACT = {"graders": [{"type": "exact_match"}]}
_FUNCTION = {"source": "async def grade(thread):\n    return float(thread.completion() == '1')\n"}
_ROWS, _BATCH = 200, 10
_CASES, _TRIALS = 4, 8
_CASE = """\
id: c{number}
task: {{prompt: "What is {number} squared?"}}
graders: [{{type: exact_match, expected: "{square}"}}]
"""
_AGENT = """\
import asyncio, random
async def solve(run):
    await asyncio.sleep(random.uniform(0.05, 0.3))
    return str(int(run.prompt_text.split()[2]) ** 2)
"""
_tell = partial(print, file=sys.stderr, flush=True)
_FULL, _FULL_AND_KILLED = "full disk", "full disk, then kill"
_INTERRUPTED = 130
_LEAST_SECONDS = 20
_LEVEL = 1.2  # times as much memory may be used at the end of a life
_LIFE = 60  # samples: shorter ones are not judged
_PATIENCE = 600.0  # seconds after the end within which everything must be acknowledged


class _Day:
    """Clients, watchers and rollouts over one store, and what happens to them."""

    def __init__(self, base: Path, *, seconds: float, seed: int, can_fill: bool) -> None:
        self._base, self._home = base, base / "home"
        self._seconds, self._seed, self._can_fill = seconds, seed, can_fill
        self._scores: dict[str, float] = {}  # of items that were acknowledged as graded
        self._jobs: set[str] = set()  # acknowledged
        self._runs: list[str] = []  # carried to their end
        self._counts = Counter[str]()
        self._faults: dict[str, list[str]] = {}  # of each promise
        self._memory: list[list[int]] = [[]]  # KiB of the server's PSS, in each of its lives
        self._happened = [""]  # each event when it begins, and nothing when it has ended
        self._began = time.monotonic()
        self._session: ClientSession
        self._log = (base / "server.log").open("a")
        self._token = new_key(self._home)
        self._server = started(OURS, SERVE, self._home, log=self._log)

    async def run(self) -> None:
        """Live through the day, and look for what was acknowledged."""
        import aiohttp

        headers = {"Authorization": f"Bearer {self._token}"}
        waits = aiohttp.ClientTimeout(total=None, sock_connect=60, sock_read=60)
        async with aiohttp.ClientSession(headers=headers, timeout=waits) as self._session:
            await self._prepare()
            self._began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for work in (self._happening(), self._measuring(), self._telling()):
                    group.create_task(work)
                for number in range(4):
                    group.create_task(self._grading(number))
                for number in range(2):
                    group.create_task(self._working(number))
                    group.create_task(self._rolling(number))
            _tell("the day is over; what is stored is compared with what was acknowledged")
            await self._compare()
        await self._stop(signal.SIGTERM)
        self._check_leftovers()

    def close(self) -> None:
        """End the server, however the day ended."""
        if self._server.popen.poll() is None:
            self._server.end(signal.SIGKILL)
        self._log.close()

    def _fault(self, promise: str, what: str) -> None:
        self._faults.setdefault(promise, []).append(what)
        _tell(f"FAULT ({promise}): {what}")

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._began

    @property
    def _is_on(self) -> bool:
        return self._passed < self._seconds

    @property
    def _is_too_late(self) -> bool:
        return self._passed > self._seconds + _PATIENCE

    async def _prepare(self) -> None:
        for key, kind, made in (("asked", "declared", _EXACT), ("stored", "function", _FUNCTION)):
            body = {"key": key, "kind": kind, "definition": made}
            await self._ask("POST", f"{_PROJECT}/graders", body)
        rows = [{"id": f"r{n}", "answer": f"{n % 2}", "expected": "1"} for n in range(_ROWS)]
        async with self._session.post(
            f"{self._server.url}{_PROJECT}/datasets/d",
            data="".join(json.dumps(row) + "\n" for row in rows),
            headers={"Content-Type": "application/x-ndjson"},
        ) as answer:
            answer.raise_for_status()
        for number in range(2, 2 + _CASES):
            place = self._base / "suite" / f"c{number}"
            place.mkdir(parents=True)
            (place / "case.yaml").write_text(_CASE.format(number=number, square=number**2))
        (self._base / "agent.py").write_text(_AGENT)

    async def _ask(self, method: str, path: str, body: object = None, key: str = "") -> _Json:
        """Ask until there is an answer; the same key each time, so that it is done once."""
        import aiohttp

        headers = {"Idempotency-Key": key} if key else {}
        while True:
            before = len(self._happened)
            url = f"{self._server.url}{path}"
            try:
                async with self._session.request(method, url, json=body, headers=headers) as answer:
                    said = await answer.json(content_type=None)
                    if answer.ok:
                        return said
                    refused = f"{method} {path}: {answer.status} {said}"[:400]
                    if answer.status < 500 and answer.status != 429:
                        raise RuntimeError(refused)
                    self._counts["refused"] += 1
            except (aiohttp.ClientError, OSError) as error:
                refused = f"{method} {path}: {error!r}"
                self._counts["broken"] += 1
            if not any(self._happened[before - 1 :]):
                self._fault("answers", f"without cause, {refused}")
            if self._is_too_late:
                raise TimeoutError(refused)
            await asyncio.sleep(0.1)

    async def _all(self, path: str) -> AsyncIterator[_Json]:
        after, joint = "", "&" if "?" in path else "?"
        while after is not None:
            since = f"&after={after}" if after else ""
            page = await self._ask("GET", f"{path}{joint}limit=200{since}")
            for item in page["items"]:
                yield item
            after = page["next"]

    async def _grading(self, number: int) -> None:
        """Grades one item, and at every fourth turn a batch."""
        chance = random.Random(f"{self._seed} grading {number}")
        turn = 0
        while self._is_on:
            turn += 1
            items = [
                {"id": f"g{number}-{turn}-{n}", "answer": chance.choice("45"), "expected": "4"}
                for n in range(_BATCH if turn % 4 == 0 else 1)
            ]
            right = {item["id"]: float(item["answer"] == "4") for item in items}
            path = f"{_PROJECT}/graders/asked/grade"
            said = await self._ask("POST", path, {"items": items}, key=items[0]["id"])
            got = [one["score"] for one in said["results"]]
            if got != list(right.values()):
                self._fault("grades", f"{right} were answered {got}")
            self._scores |= right
            await asyncio.sleep(0.2)

    async def _working(self, number: int) -> None:
        """Submits one to three jobs, watches each to its end, and reads what came of it."""
        chance = random.Random(f"{self._seed} working {number}")
        turn = 0
        while self._is_on:
            turn += 1
            async with asyncio.TaskGroup() as group:
                for n in range(chance.randint(1, 3)):
                    group.create_task(self._job(f"j{number}-{turn}-{n}"))
            await asyncio.sleep(chance.uniform(0, 4))

    async def _job(self, key: str) -> None:
        body = {"grader": "stored", "dataset": "d"}
        job = str((await self._ask("POST", f"{_PROJECT}/jobs", body, key=key))["id"])
        self._jobs.add(job)
        end = await self._watch(f"{_PROJECT}/jobs/{job}/events")
        if (end["status"], end["done"], end["total"]) != ("finished", _ROWS, _ROWS):
            self._fault("jobs", f"{job} ended so: {end}")
        results = [one async for one in self._all(f"{_PROJECT}/jobs/{job}/results")]
        found = sorted((int(one["item"][1:]), one["score"]) for one in results)
        if found != [(n, float(n % 2)) for n in range(_ROWS)]:
            self._fault("jobs", f"{job}: not each row once, with its score: {found}"[:400])

    async def _watch(self, path: str) -> _Json:
        """Follow a stream as the page does, and again where it breaks, until its last event."""
        import aiohttp

        last, done = "", 0
        event: dict[str, str] = {}
        while not self._is_too_late:
            url, headers = f"{self._server.url}{path}", {"Last-Event-ID": last}
            with suppress(aiohttp.ClientError, OSError):
                async with self._session.get(url, headers=headers) as stream:
                    self._counts["reconnections"] += stream.status == 200 and bool(last)
                    async for line in stream.content:
                        word, _, value = line.decode().rstrip("\n").partition(": ")
                        event[word] = value
                        if word == "data":
                            data = json.loads(value)
                            last, before, done = event["id"], done, data.get("done", 0)
                            if done < before:
                                self._fault("watchers", f"{path} goes backwards: {value}")
                            if event["event"] == "done":
                                self._counts["ends"] += 1
                                return data
            await asyncio.sleep(0.5)
        raise TimeoutError(f"{path} never told its end")

    async def _rolling(self, number: int) -> None:
        """Runs the suite, again and again; kills it, interrupts it, and resumes it."""
        chance = random.Random(f"{self._seed} rolling {number}")
        turn = 0
        while self._is_on:
            turn += 1
            name = f"day-{number}-{turn}"
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(f"/api/v1/runs/{name}/events"))
                while not await self._rolled_out(name, chance):
                    pass
            self._runs.append(name)

    async def _rolled_out(self, name: str, chance: random.Random) -> bool:
        """Begin a run or go on with it; whether it came to its end."""
        runs = await self._ask("GET", f"/api/v1/runs?search={name}")
        words = ["--resume", name]
        if name not in [run["label"] for run in runs["items"]]:
            words = [f"{self._base}/suite", "--harness", f"{self._base}/agent.py:solve"]
            words += ["--trials", str(_TRIALS), "--name", name]
        before = len(self._happened)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OURS, "run", *words, "--workers", "2", "--db", str(self._home),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        how = chance.choice((None, signal.SIGKILL, signal.SIGINT)) if self._is_on else None
        saying = asyncio.create_task(process.communicate())
        try:
            if how is not None:
                await asyncio.wait([saying], timeout=chance.uniform(0.5, 8))
                with suppress(ProcessLookupError):
                    # asyncio's own send_signal may reap it, and then its status is lost
                    os.kill(process.pid, how)
            said = (await saying)[1].decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        code = process.returncode
        if how is not None and code in (_INTERRUPTED, -how):
            self._counts[how.name] += 1
        elif code and any(what.startswith(_FULL) for what in self._happened[before - 1 :]):
            self._counts["ENOSPC"] += 1
        elif code:
            self._fault("rollouts", f"{name} ended with {code}: {said[-600:]}")
        return code == 0 or self._is_too_late

    async def _happening(self) -> None:
        for at, what in _plan(self._seed, self._seconds, can_fill=self._can_fill):
            # also where one took long, clients have the server for a while before the next
            await asyncio.sleep(max(at - self._passed, self._seconds / 50))
            _tell(f"{self._passed:.0f} s: {what}")
            self._counts[what] += 1
            self._happened.append(what)
            if what.startswith(_FULL):
                await self._fill(is_killed=what == _FULL_AND_KILLED)
            else:
                await self._stop(signal.SIGKILL if what == "kill" else signal.SIGTERM)
                await self._start()
            self._happened.append("")

    async def _stop(self, how: signal.Signals) -> None:
        await asyncio.to_thread(self._server.end, how)
        ended = self._server.popen.returncode
        if ended != (0 if how is signal.SIGTERM else -how):
            self._fault("server", f"by {how.name} it ended with {ended}")

    async def _start(self) -> None:
        def start() -> None:  # so that it is ended also where the day ends meanwhile
            self._server = started(OURS, SERVE, self._home, log=self._log)

        await asyncio.to_thread(start)
        self._memory.append([])

    async def _fill(self, *, is_killed: bool) -> None:
        """Leave no byte free for seconds, until it is felt; the server may be killed meanwhile."""
        ballast, before = self._home / "ballast", self._counts["refused"]
        try:
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 20))
            await asyncio.sleep(min(5.0, self._seconds / 12))
            for _ in range(600):  # a store of some age writes into the room of its log for a while
                if self._counts["refused"] > before:
                    break
                await asyncio.sleep(0.1)
            else:
                self._fault("server", "for a minute nobody felt that the disk was full")
            if is_killed:
                await self._stop(signal.SIGKILL)
        finally:
            ballast.unlink()
        if is_killed:
            await self._start()

    async def _measuring(self) -> None:
        while self._is_on:
            with suppress(OSError):  # it is being killed
                self._memory[-1].append(self._server.pss())
            await asyncio.sleep(max(1.0, self._seconds / 720))

    async def _telling(self) -> None:
        while self._is_on:
            await asyncio.sleep(max(5.0, self._seconds / 60))
            done = f"{len(self._scores)} grades, {len(self._jobs)} jobs, {len(self._runs)} runs"
            _tell(f"{self._passed:.0f} s: {done}")

    async def _compare(self) -> None:
        """Compare what is stored with what was acknowledged."""
        found = Counter[str]()
        async for score in self._all(f"{_PROJECT}/scores?grader=asked"):
            item = str(score["item"])
            found[item] += 1
            if score["graded"]["score"] != self._scores.get(item):
                self._fault("grades", f"{item} is stored as {score['graded']['score']}")
        for item, times in (Counter(self._scores.keys()) - found).items():
            self._fault("grades", f"{item} is lost {times} times")
        for item, times in (found - Counter(self._scores.keys())).items():
            self._fault("grades", f"{item} is stored {times} times too often")
        jobs = Counter([str(job["id"]) async for job in self._all(f"{_PROJECT}/jobs")])
        if jobs != Counter(self._jobs):
            self._fault("jobs", f"{len(jobs)} are stored, {len(self._jobs)} were acknowledged")
        for name in self._runs:
            cells = [cell async for cell in self._all(f"/api/v1/runs/{name}/cells")]
            right = {(cell["case"], cell["trial"]) for cell in cells if cell["reward"] == 1.0}
            if not len(right) == len(cells) == _CASES * _TRIALS:
                self._fault("rollouts", f"{name}: {len(cells)} cells, {len(right)} graded")
            self._counts["cells"] += len(right)
        with closing(sqlite3.connect(self._home / "assay.db")) as database:
            for (said,) in database.execute("PRAGMA integrity_check"):
                if said != "ok":
                    self._fault("store", said)
            # what the server lists is the newest result of each cell
            twice = "SELECT run_id, case_id, trial FROM result WHERE status = 'graded' "
            for cell in database.execute(twice + "GROUP BY 1, 2, 3 HAVING count(*) > 1"):
                self._fault("rollouts", f"stored more than once: {cell}")
        if "Traceback" in (log := (self._base / "server.log").read_text()):
            self._fault("server", f"tracebacks in its log: {log[-2000:]}")

    def _check_leftovers(self) -> None:
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it ends, or is somebody else's
                if str(self._base).encode() in environment.read_bytes():
                    self._fault("leftovers", (environment.parent / "cmdline").read_text())
        for left in Path(tempfile.gettempdir()).iterdir():
            self._fault("leftovers", left.name)

    def conclude(self) -> bool:
        """Print a line for each promise; whether all of them are kept."""
        counts, life = self._counts, max(self._memory, key=len)
        third = len(life) // 3
        before, last = map(statistics.median, (life[third : 2 * third], life[2 * third :]))
        if len(life) >= _LIFE and last > _LEVEL * before:
            self._fault("memory", "it grows")
        kills, fulls = (counts[_FULL_AND_KILLED] + counts[what] for what in ("kill", _FULL))
        disk = f"the disk was full {fulls} times" if self._can_fill else "no full disk without root"
        for promise, line in (
            ("grades", f"{len(self._scores)} acknowledged items are stored once, rightly"),
            ("jobs", f"{len(self._jobs)} ended, each of {_ROWS} rows graded once, rightly"),
            ("watchers", f"{counts['ends']} ends told; {counts['reconnections']} reconnections"),
            ("rollouts", f"{len(self._runs)} runs, {counts['cells']} cells, each graded once"),
            ("", f"  {counts['SIGKILL']} killed, {counts['SIGINT']} interrupted, all resumed"),
            ("", f"  {counts['ENOSPC']} ended by the full disk, and resumed"),
            ("answers", f"{counts['refused']} refused, {counts['broken']} broken, all in events"),
            ("server", f"{kills} kills, {counts['restart']} restarts, {disk}; no traceback"),
            ("store", "PRAGMA integrity_check finds nothing"),
            ("leftovers", "no process and no temporary file"),
            ("memory", f"longest life, {len(life)} samples: median PSS of its second third"),
            ("", f"  {before / 1024:.1f} MiB, of its last {last / 1024:.1f} MiB"),
        ):
            faults = self._faults.get(promise, [])
            kept = ("FAILED" if faults else "kept") if promise else ""
            print(f"{kept:6}  {promise:9}  {line}")
            for fault in faults[:5]:
                print(f"        {fault}")
        return not self._faults


def _plan(seed: int, seconds: float, *, can_fill: bool) -> list[tuple[float, str]]:
    """What happens, and when: the seconds from the beginning."""
    chance = random.Random(f"{seed} what happens")
    early = ["kill", "restart", *[_FULL_AND_KILLED] * can_fill] * max(1, round(seconds / 240))
    events = [(chance.uniform(0.05, 0.4), what) for what in early]
    events += [(chance.uniform(0.45, 0.85), _FULL)] * can_fill
    events += [(0.9, "kill"), (0.95, "restart")]
    return sorted((at * seconds, what) for at, what in events)


def main() -> int:
    """Live through a day, and look for what was acknowledged.

    Returns:
        0 if every promise is kept, else 1; 130 if it was interrupted.
    """
    about = "Live through a day, and look for what was acknowledged: 0 if every promise is kept."
    parser = argparse.ArgumentParser(prog="python -m bench.day", description=about)
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="how long, 20 at least (default: 3600)"
    )
    parser.add_argument("--home", metavar="DIR", help="where its directory is made and removed")
    parser.add_argument("--seed", type=int, default=1, help="what decides when something happens")
    given = parser.parse_args()
    if given.seconds < _LEAST_SECONDS:
        parser.error(f"--seconds must be {_LEAST_SECONDS} at least")
    if given.home is not None and not Path(given.home).is_dir():
        parser.error(f"--home: {given.home} is no directory")
    for end in (signal.SIGINT, signal.SIGTERM):  # also where a shell has told it to ignore Ctrl-C
        signal.signal(end, signal.default_int_handler)
    try:
        with small_disk(given.home, 128 + round(given.seconds / 2)) as (base, can_fill):
            day = _Day(base, seconds=given.seconds, seed=given.seed, can_fill=can_fill)
            try:
                asyncio.run(day.run())
            finally:
                day.close()
            return 0 if day.conclude() else 1
    except KeyboardInterrupt:
        _tell("interrupted")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
