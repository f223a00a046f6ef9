"""Ways to a reward that was not earned, to an exclusion instead of a 0, or to harm: each was tried.

Every test is named after the attack it repeats.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import pytest

from assay import Environment, Run, Taskset
from assay.errors import SkippedError
from assay.graders import (
    Grader,
    combine,
    driver,
    exact_match,
    json_match,
    json_schema,
)
from assay.tasks import Agent
from tests.command_line import COMMAND, assay, cells, environment, write_case
from tests.each import each
from tests.written_files import write_files, write_rows

env = Environment("attacks")


@env.template()
async def question(expected: str = "right") -> AsyncGenerator[object, str]:
    answer = yield "?"
    yield exact_match(answer, expected)


def rollouts(agent: Agent, *, trials: int = 1, **limits: float) -> list[Run]:
    """Run the question with an agent."""
    tasks = Taskset("attacks", [question()])
    return asyncio.run(tasks.run(agent, group=trials, **limits)).runs  # type: ignore[arg-type]


async def cancels_itself(run: Run) -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


async def leaves_the_process(run: Run) -> None:
    raise SystemExit(0)


async def raises_a_group(run: Run) -> None:
    raise BaseExceptionGroup("both", [asyncio.CancelledError(), ValueError()])


async def takes_its_trace_away(run: Run) -> None:
    run.trace = None  # type: ignore[assignment]


async def answers_with_a_number(run: Run) -> None:
    run.trace.content = 5  # type: ignore[assignment]


async def says_it_does_not_apply(run: Run) -> None:
    raise SkippedError("not for me")


@each(
    "agent",
    [
        cancels_itself,
        leaves_the_process,
        raises_a_group,
        takes_its_trace_away,
        answers_with_a_number,
        says_it_does_not_apply,
    ],
)
def test_an_agent_cannot_end_the_job_or_skip_itself(agent: Agent) -> None:
    runs = rollouts(agent, trials=3)
    assert [(run.reward, run.grade.is_error) for run in runs] == [(None, True)] * 3
    assert all(run.trace.error for run in runs)


class AlwaysEqual(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def test_an_answer_that_calls_itself_equal_is_compared_as_text() -> None:
    async def agent(run: Run) -> None:
        run.trace.content = AlwaysEqual("wrong")

    assert rollouts(agent)[0].reward == 0.0


def test_swallowing_the_cancellation_does_not_buy_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "GRACE_SECONDS", 0.05)

    async def stubborn(run: Run) -> None:
        for _ in range(2):  # once at our limit, once when the loop is closed
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                run.trace.content = "right"

    (run,) = rollouts(stubborn, rollout_timeout=0.2)
    assert (run.reward, run.trace.stop_reason) == (None, "timeout")


def test_blocking_the_loop_does_not_buy_time() -> None:
    async def blocking(run: Run) -> None:
        run.trace.content = "right"
        begun = time.monotonic()
        while time.monotonic() - begun < 0.2:
            pass

    (run,) = rollouts(blocking, rollout_timeout=0.05)
    assert (run.reward, run.trace.stop_reason) == (None, "timeout")


class Leaves(Grader):
    name = "leaves"

    @classmethod
    async def compute_score(cls) -> float:
        raise SystemExit(0)


def test_a_grader_that_leaves_the_process_is_an_error_and_its_siblings_stay() -> None:
    result = asyncio.run(combine(Leaves.grade(weight=1), Leaves.grade(weight=1, name="other")))
    assert result.isError
    assert [node.name for node in result.subscores or ()] == ["leaves", "other"]


def test_unclosed_strings_do_not_make_json_search_quadratic() -> None:
    text = '"\\' * 200_000  # took minutes
    begun = time.process_time()
    assert json_match(text, {"a": 1}) == 0.0
    assert json_schema(text, {"type": "object"}) == 0.0
    assert time.process_time() - begun < 10.0


def test_a_row_id_with_half_a_character_is_refused_and_such_an_answer_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "g.yaml").write_text("- type: exact_match\n", "utf-8")
    rows = [{"answer": "\ud800", "expected": "x"}, {"answer": "x", "expected": "x"}]
    data = write_rows(tmp_path / "d.jsonl", rows)
    done = assay("grade", "d.jsonl", "g.yaml", "--out", "o.jsonl", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(done)] == [0.0, 1.0]
    assert len((tmp_path / "o.jsonl").read_text("utf-8").splitlines()) == 2
    data.write_text(json.dumps({"id": "\ud800", "answer": "x"}) + "\n", "utf-8")
    refused = assay("grade", "d.jsonl", "g.yaml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "d.jsonl:1" in refused.stderr


@each(
    "option, target",
    [*itertools.product(["--out", "--junit"], ["d.jsonl", "g.yaml", ".", "no/such/file"])],
)
def test_a_report_never_overwrites_what_is_graded(tmp_path: Path, option: str, target: str) -> None:
    (tmp_path / "g.yaml").write_text("- type: exact_match\n", "utf-8")
    (tmp_path / "d.jsonl").write_text('{"answer": "x", "expected": "x"}\n', "utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    done = assay("grade", "d.jsonl", "g.yaml", option, target, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


def test_closing_the_pipe_does_not_change_the_verdict(tmp_path: Path) -> None:
    write_case(
        tmp_path,
        """
        id: c
        task: {prompt: hello}
        matrix: {harnesses: [echo], models: [m], trials: 30}
        graders: [{type: files, patterns: [hello]}]
        """,
    )
    process = subprocess.Popen(
        [*COMMAND, "run", "evals", "--json"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0


def test_what_a_grader_prints_stays_out_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "gr.py").write_text(
        "from assay.graders import Grader\n"
        "class Loud(Grader):\n"
        "    name = 'loud'\n"
        "    @classmethod\n"
        "    async def compute_score(cls, answer=''):\n"
        "        print('{not json')\n"
        "        return 1.0\n",
        "utf-8",
    )
    (tmp_path / "g.yaml").write_text("- type: python:./gr.py:Loud\n", "utf-8")
    (tmp_path / "d.jsonl").write_text('{"answer": "x"}\n', "utf-8")
    done = assay("grade", "d.jsonl", "g.yaml", "--json", cwd=tmp_path)
    assert cells(done)[0]["reward"] == 1.0


def replayed(
    root: Path, recordings: Mapping[str, Mapping[str, str | bytes]], graders: str, extra: str = ""
) -> Sequence[Mapping[str, object]]:
    """The cells of some agents, whose recordings have these files."""
    case = write_case(
        root,
        f"id: c\ntask: {{prompt: x}}\nmatrix: {{harnesses: [replay], models: {[*recordings]}}}\n"
        f"graders:\n{graders}\n{extra}\n",
    )
    for name, files in recordings.items():
        write_files(case / "recordings" / name, files)
    found = cells(assay("run", "evals", "--json", cwd=root))
    assert len(found) == len(recordings)
    return found


_FAILS = '  - {type: command, cmd: "test -e nope"}'


def assert_graded(found: Sequence[Mapping[str, object]]) -> None:
    """Each is worth nothing, and none is excluded."""
    for cell in found:
        assert (cell["status"], cell["reward"]) == ("graded", 0.0), cell["error"]


@pytest.mark.sandbox
def test_a_locked_workspace_is_graded_and_not_excluded(tmp_path: Path) -> None:
    modes = ("000", "111", "555")
    scripts = {f"m{mode}": {"run.sh": f"chmod {mode} /workspace\n"} for mode in modes}
    assert_graded(replayed(tmp_path, scripts, _FAILS))


@pytest.mark.sandbox
def test_hanging_every_grader_is_a_zero_and_not_our_time_out(tmp_path: Path) -> None:
    hang = '  - {type: command, cmd: "grep -q yes out.txt", timeout_s: 0.6}\n'
    agent = {"m": {"run.sh": "mkfifo out.txt\n"}}
    assert_graded(replayed(tmp_path, agent, hang * 2, "limits: {grading_timeout_s: 0.9}"))


_TAMPER = r"""
import os, struct, time
code = b"\x48\xb8" + struct.pack("<Q", 1 << 32)
code += b"\x50\x48\x89\xe6\xbf\x04\0\0\0\xba\x08\0\0\0\xb8\x01\0\0\0\x0f\x05\xeb\xfe"
with open("/proc/1/mem", "r+b", buffering=0) as memory:
    for line in open("/proc/1/maps"):
        place, rights = line.split()[:2]
        if "x" in rights and "libc.so" in line:
            start, end = (int(part, 16) for part in place.split("-"))
            memory.seek(start)
            memory.write(b"\x90" * (end - start - len(code)) + code)
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
    os._exit(0)
time.sleep(3)
"""


@pytest.mark.sandbox
@pytest.mark.skipif(sys.platform != "linux", reason="machine code of one platform")
def test_rewriting_the_first_process_does_not_exclude_the_agent(tmp_path: Path) -> None:
    agent = {"m": {"run.sh": f"python3 - <<'END'\n{_TAMPER}\nEND\n"}}
    assert_graded(replayed(tmp_path, agent, _FAILS))


@pytest.mark.sandbox
def test_a_recording_deletes_nothing_outside_the_workspace(tmp_path: Path) -> None:
    write_files(tmp_path / "outside", {"file": "kept"})
    lines = ("..", "../../keep", "/etc/hostname", "link/file")
    agents = {f"m{n}": {"deleted.txt": f"{line}\n"} for n, line in enumerate(lines)}
    set_up = f'setup: {{run: ["ln -s {tmp_path}/outside link"]}}'
    for cell in replayed(tmp_path, agents, _FAILS, set_up):
        assert cell["status"] == "error"
        assert "cannot delete" in str(cell["error"])
    assert (tmp_path / "outside/file").read_text("utf-8") == "kept"


@pytest.mark.sandbox
def test_a_link_in_the_workspace_leads_no_writer_of_ours_to_the_host(tmp_path: Path) -> None:
    victim = tmp_path / "victim.py"
    victim.write_text("def f(): return 1\n", "utf-8")
    template = """
        id: {name}
        task: {{prompt: overwritten}}
        {setup}
        matrix: {{harnesses: [{harness}], models: [m]}}
        graders: [{{type: files, patterns: [x]}}]
    """
    link = f"ln -s {victim} ANSWER.md"
    setup = f'setup: {{run: ["{link}"]}}'
    write_case(tmp_path, template.format(name="echo", harness="echo", setup=setup), "echo")
    stub = (
        f'environment: {{kind: command, commands: ["ln -s {victim} mod.py"]}}\n'
        "        setup: {stub: [{file: mod.py, function: f}]}"
    )
    write_case(tmp_path, template.format(name="stub", harness="echo", setup=stub), "stub")
    setup = f'setup: {{run: ["ln -s {tmp_path} out"]}}'
    case = write_case(
        tmp_path, template.format(name="replay", harness="replay", setup=setup), "replay"
    )
    files = case / "recordings" / "m" / "files" / "out"
    files.mkdir(parents=True)
    (files / "victim.py").write_text("overwritten", "utf-8")
    found = cells(assay("run", "evals", "--json", cwd=tmp_path))
    # A recording's directory takes the place of the link, and is written nowhere else.
    ended = {cell["case"]: cell["status"] for cell in found}
    assert ended == {"echo": "error", "replay": "graded", "stub": "error"}
    assert victim.read_text("utf-8") == "def f(): return 1\n"


def test_an_answer_that_is_not_utf_8_is_graded(tmp_path: Path) -> None:
    agent = {"m": {"answer.txt": b"\xff\xfewrong"}}
    assert_graded(replayed(tmp_path, agent, "  - {type: exact_match, expected: right}"))


@pytest.mark.sandbox
def test_how_an_agent_ended_is_shown_with_its_zero(tmp_path: Path) -> None:
    write_case(
        tmp_path,
        """
        id: c
        task: {prompt: x}
        matrix: {harnesses: [mine], models: [m]}
        graders: [{type: exact_match, expected: right}]
        """,
    )
    argv = ["/bin/sh", "-c", "echo no API key >&2; exit 1"]
    (tmp_path / "harnesses.yaml").write_text(json.dumps({"mine": {"argv": argv}}), "utf-8")
    done = assay("run", "evals", cwd=tmp_path)
    assert done.returncode == 1
    assert "exit status 1: no API key" in done.stdout
