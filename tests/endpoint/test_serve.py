"""`assay serve grader` and `assay.endpoint.serve` as people start them, with a real Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from assay.cli.main import main
from assay.endpoint.scorers import scorer_of_graders
from assay.endpoint.serving import run_app, serve
from assay.errors import InputError, MissingExtraError
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.store.database import Database
from assay.types import Submission
from tests.children import Children
from tests.command_line import COMMAND, environment

if TYPE_CHECKING:
    from fastapi import FastAPI

REWARD = """
from assay import StringThread  # as reward functions of other systems begin

def half(text):
    return len(text) / 2

def grade(answer: str, expected: str = "4") -> float:
    return float(answer == expected)

def strict(thread: StringThread):
    return 0.5, "strictly"
"""


def one(answer: str) -> float:
    return 1.0


ITEMS: Json = {"items": [{"id": "a", "answer": "4"}, {"id": "b", "answer": "5"}]}


@contextlib.contextmanager
def running(
    command: Sequence[str], cwd: Path, **env: str
) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """Start a server process and wait for the last line that it says: where it is."""
    unbuffered = {**environment(cwd), "PYTHONUNBUFFERED": "1", **env}
    with Children() as started:
        process = started.start(command, cwd=cwd, env=unbuffered, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"(?:serving\b.*|listens) at (http://\S+)", said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield found[1], process


def endpoint(*arguments: str) -> list[str]:
    return [*COMMAND, "serve", "grader", *arguments, "--port", "0"]


def test_a_file_is_served_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(REWARD)
    with running(endpoint("reward.py"), tmp_path) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        results = httpx.post(f"{url}/v1/grade", json=ITEMS).json()["results"]
        assert [result["score"] for result in results] == [1.0, 0.0]
        assert httpx.get(f"{url}/v1/info").json()["name"] == "grade"
        process.send_signal(signal.SIGINT)
        assert (process.communicate()[0], process.returncode) == ("", 0)


@pytest.mark.slow
def test_a_function_that_hangs_does_not_hold_up_ctrl_c(tmp_path: Path) -> None:
    hangs = "import time\ndef grade(answer):\n    time.sleep(600)\n"
    (tmp_path / "reward.py").write_text(hangs)
    with running(endpoint("reward.py"), tmp_path) as (url, process):
        with pytest.raises(httpx.TimeoutException):
            httpx.post(f"{url}/v1/grade", json=ITEMS, timeout=0.5)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 0
        assert time.monotonic() - started < 120  # and not 600


def test_a_function_is_named_and_guarded_and_a_late_body_does_not_break_the_connection(
    tmp_path: Path,
) -> None:
    """It comes after the 401 or a 429; if both came at once, the reply was lost."""
    (tmp_path / "reward.py").write_text(REWARD)
    command = endpoint("reward.py:strict", "--token-env", "TOK", "--set", "name=strict one")
    with running(command, tmp_path, TOK="hunter2") as (url, process):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 60) as to, to.makefile("rb") as said:
            head = b"POST /v1/grade HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
            for _ in range(2):
                to.sendall(head)
                assert said.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
                size = 0
                while (line := said.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        size = int(line.partition(b":")[2])
                said.read(size)
                to.sendall(b"{}")
        auth = {"authorization": "Bearer hunter2"}
        reply = httpx.post(f"{url}/v1/grade", json=ITEMS, headers=auth).json()
        assert reply["results"][0]["reason"] == "strictly"
        process.terminate()
        assert "hunter2" not in process.communicate()[0]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Json]]:
    """What `assay serve grader` answers to requests, without a server."""

    def asked(grader: str, *requests: tuple[str, str, Json]) -> list[Json]:
        replies: list[Json] = []

        async def ask(app: FastAPI) -> None:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as http:
                for method, path, body in requests:
                    replies.append((await http.request(method, path, json=body)).json())

        def start(app: FastAPI, *, on_start: Callable[[str], object], **_: object) -> None:
            on_start("http://127.0.0.1:8000")
            asyncio.run(ask(app))

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("assay.cli.endpoint.run_app", start)
        with pytest.raises(SystemExit):
            main(["serve", "grader", grader])
        return replies

    return asked


def test_a_file_of_graders_is_served_and_what_can_be_asked_is_said_at_the_start(
    tmp_path: Path, served: Callable[..., list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "graders.yaml").write_text(
        "- {type: exact_match}\n- {type: contains, substring: 'x', weight: 3}\n"
    )
    items: list[Json] = [
        {"id": "both", "answer": "x", "expected": "x"},
        {"id": "one", "answer": "xy", "expected": "x"},
        {"id": "lacks", "answer": "x"},
    ]
    (reply,) = served("graders.yaml", ("POST", "/v1/grade", {"items": items}))
    assert [result["score"] for result in reply["results"]] == [1.0, 0.75, None]
    assert reply["results"][2]["status"] == "error"
    said = capsys.readouterr().out
    assert "POST /v1/grade           Grade a batch of items.\n" in said
    assert "POST /get_reward         Rewards of samples, for OpenRLHF.\n" in said
    assert "described at http://127.0.0.1:8000/openapi.json\n" in said


def test_serve_is_one_call(tmp_path: Path) -> None:
    program = """
        from assay.endpoint import serve

        def grade(thread):
            return len(thread), "turns"

        serve(grade, port=0, score_range=(0, 9))
        print("ended")
    """
    (tmp_path / "mine.py").write_text(textwrap.dedent(program))
    with running([sys.executable, "mine.py"], tmp_path) as (url, process):
        turns = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
        reply = httpx.post(f"{url}/score", json={"turns": turns}).json()
        assert (reply["reward"], reply["metadata"]["reason"]) == (2.0, "turns")
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
        assert (process.returncode, said.splitlines()[-1]) == (0, "ended")
        assert "Traceback" not in said


JUDGE: Json = {"type": "score_model", "model": "m", "input": [{"role": "user", "content": "?"}]}
COSINE: Json = {
    "type": "text_similarity",
    "input": "a",
    "reference": "b",
    "evaluation_metric": "cosine",
}
NEVER: list[tuple[str, str, str]] = [
    ("written", "custom", "this custom grader grades nothing itself"),
    ("absent", "custom", "absent_module"),
    ("binary", "binary_judge", "'binary_judge' cannot ask its model"),
    ("prebuilt", "prebuilt_judge", "'faithfulness' cannot ask its model"),
    ("judged", "declared", "needs a judge model in place of m"),
    ("combined", "declared", "needs a judge model in place of m"),
    ("cosine", "declared", "needs an embedding model"),
]


def test_a_grader_that_can_never_grade_here_is_not_served(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was served all the same, and every request was answered by errors."""
    from assay.registry.definitions import definition_from
    from tests.grader_definitions import StoredGraders

    multi: Json = {"type": "multi", "graders": {"a": JUDGE}, "calculate_output": "a"}
    graders: dict[str, Json] = {"judged": JUDGE, "combined": multi, "cosine": COSINE}
    definitions: dict[str, dict[str, Json]] = {
        "written": {"description": "people write them in"},
        "absent": {"path": "python:absent_module:Grader"},
        "binary": {"criteria": "helps", "judge_model": "m"},
        "prebuilt": {"type": "FAITHFULNESS", "judge_model": "m"},
        **{key: {"graders": [grader]} for key, grader in graders.items()},
    }
    for key, grader in graders.items():
        (tmp_path / f"{key}.yaml").write_text(json.dumps([grader]))
    with Database.open(str(tmp_path / "db")) as database:
        for key, kind, _ in NEVER:
            made = StoredGraders(database).create(key, definition_from(kind, definitions[key]))
            asyncio.run(made)
    monkeypatch.chdir(tmp_path)

    def started(*_: object, **__: object) -> None:
        """In place of serving until Ctrl-C."""

    monkeypatch.setattr("assay.cli.endpoint.run_app", started)
    files = [(f"{key}.yaml", said) for key, _, said in NEVER if key in graders]
    for name, said in [*((key, said) for key, _, said in NEVER), *files]:
        with pytest.raises(SystemExit) as ended:
            main(["serve", "grader", name, "--db", str(tmp_path / "db")])
        shown = capfd.readouterr()
        assert (ended.value.code, said in shown.err) == (2, True), (name, shown)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}: Address already"):
            serve(one, port=port)


def test_others_are_let_in_only_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setenv("TOKEN", "x")

    def started(app: object, *, host: str, port: int) -> None:
        served.append(host)

    monkeypatch.setattr("assay.endpoint.serving.run_app", started)
    with pytest.raises(InputError, match=r"others can reach 0\.0\.0\.0"):
        serve(one, host="0.0.0.0")
    serve(one, host="0.0.0.0", token_env="TOKEN")
    serve(one, host="rewards.example.com", without_auth=True)
    serve(one, host="localhost")
    assert served == ["0.0.0.0", "rewards.example.com", "localhost"]
    assert run_app is not started


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(MissingExtraError, match=r"assay\[server\]"):
        serve(one)


async def test_one_declared_grader_is_given_the_whole_batch() -> None:
    scorer = scorer_of_graders([GraderSpec(type="exact_match")])
    items = [(name, Submission(answer=name, expected="a")) for name in ("a", "b")]
    assert [one.score for one in await scorer(items)] == [1.0, 0.0]


@pytest.mark.sandbox
def test_a_stored_grader_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: Callable[..., list[Any]]
) -> None:
    (tmp_path / "exact.py").write_text(
        "async def grade(thread: StringThread) -> float:\n"
        "    return float(thread.completion() == '4')\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as made:
        main(["graders", "create", "exact", "exact.py"])
    assert not made.value.code
    info, reply = served("exact@1", ("GET", "/v1/info", None), ("POST", "/v1/grade", ITEMS))
    assert (info["name"], info["version"], info["score_range"]) == ("exact", "1", None)
    assert [result["score"] for result in reply["results"]] == [1.0, 0.0]
