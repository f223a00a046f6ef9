"""Environments served inside of a container image, with a real podman: nothing is pulled."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pydantic_core
import pytest

from assay.errors import InputError, ProvisionError
from assay.tasks.task import Task, Taskset, load_own_file
from assay.types import Run
from tests.containers import Podman, make_root
from tests.processes import living, marker

pytestmark = pytest.mark.sandbox

_ENV = """
import json
import os
import socket
import subprocess
from pathlib import Path

from assay import Environment

env = Environment("inside")
held = []


@env.tool
def outside(host: str, port: int) -> str:
    '''Try to get out.'''
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return "refused"
    return "connected"


@env.tool
def listeners() -> str:
    '''What one finds on the loopback; and wait at the door for somebody to be taken in.'''
    lines = [line for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    rows = [line.split() for line in lines]
    ports = [int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"]
    for word in (b"", b"x" * 32):
        held.append(socket.create_connection(("127.0.0.1", 8765)))
        held[-1].send(word)
    return json.dumps(ports)


@env.template()
async def word():
    given = Path("/app/given.txt").read_text()
    beside = (Path(__file__).parent / "beside.txt").read_text()
    answer = yield f"Say {given} in {os.getpid()}, {beside}."
    yield float(answer == given)


@env.template()
async def leaves():
    mark = (Path(__file__).parent / "beside.txt").read_text()
    subprocess.Popen(["/bin/sh", "-c", "tail -f /dev/null & wait", mark])
    yield "Leave."
    yield 1.0


@env.template(workspace=env.workspace())
async def works():
    yield "Work."
    yield 1.0


def tasks():
    return word(), leaves(), works()
"""


@pytest.fixture(scope="module")
def images(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    place = tmp_path_factory.mktemp("roots")
    libraries = Path(f"/usr/lib/python3.{sys.version_info.minor}/lib-dynload")
    ours = Path(pydantic_core.__file__).parent.glob("*.so")
    root = make_root(place / "python", python=True, needs=[*libraries.glob("*.so"), *ours])
    (root / "app/given.txt").write_text("inside")
    podman.add("python:1", root)
    shutil.rmtree(root / "usr/lib" / libraries.parent.name)
    (root / "usr/bin/python3").unlink()
    podman.add("bare:1", root)
    yield podman
    shutil.rmtree(place)


@pytest.fixture
def tasks(tmp_path: Path, images: Podman, monkeypatch: pytest.MonkeyPatch) -> dict[str, Task]:
    python = subprocess.run(
        ["/usr/bin/python3", "-c", "import sys; print(sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    )
    if python.stdout.strip() != str(sys.version_info[:2]):
        pytest.skip("/usr/bin/python3, which images are made of, is of another version")
    monkeypatch.setenv("ASSAY_CONTAINERS", str(images.program))
    (tmp_path / "env.py").write_text(_ENV)
    module = load_own_file(str(tmp_path / "env.py"))
    return {task.id: task for task in module.tasks()}  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_a_task_is_placed_in_an_image_that_nothing_leaves(
    tasks: dict[str, Task], tmp_path: Path
) -> None:
    prompts: list[str] = []

    async def agent(run: Run) -> str:
        prompts.append(run.prompt_text)
        if run.task_id == "works":
            await run.call("bash", {"command": "true"})
        with socket.create_server(("127.0.0.1", 0)) as here:
            place = {"host": "127.0.0.1", "port": here.getsockname()[1]}
            await run.call("outside", place)
            here.setblocking(False)
            with pytest.raises(BlockingIOError):  # whatever it found there, it was not this
                here.accept()
        if run.task_id == "word":
            assert json.loads(str((await run.call("listeners")).content)) == [8765]
        return "inside" if run.trial < 3 else "outside"

    mark, store = marker(), tmp_path / "store"
    (tmp_path / "beside.txt").write_text(mark)
    job = await Taskset("both", tasks.values()).run(
        agent, group=3, runtime="container:localhost/python:1", store=store
    )
    assert [run.reward for run in job.runs] == [1.0, 1.0, 0.0, *[1.0] * 3, *[None] * 3], str(job)
    assert "bwrap" in str(job.runs[8].grade.content), job.runs[8]  # no sandbox in a sandbox
    name, _, digest = str(job.runs[0].runtime).partition("@")
    assert name == "container:localhost/python:1"
    unpacked = {path.name for path in (store / "cache/images").iterdir()}
    assert digest.removeprefix("sha256:") in unpacked
    seen = [prompt for prompt in prompts if prompt.startswith("Say inside in ")]
    assert len(seen) == 3
    assert all(prompt.endswith(f", {mark}.") for prompt in seen)
    assert living(mark) == []


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("localhost/bare:1", "has no Python"),
        ("localhost/none:1", "localhost/none:1"),
        ("", "names no image"),
    ],
)
@pytest.mark.slow
async def test_an_image_that_cannot_serve_is_told_before_anything_runs(
    tasks: dict[str, Task], image: str, message: str, tmp_path: Path
) -> None:
    async def agent(run: Run) -> None:
        raise AssertionError("an agent was started")

    with pytest.raises((ProvisionError, InputError), match=message):
        await tasks["word"].run(agent, runtime=f"container:{image}", store=tmp_path / "store")
