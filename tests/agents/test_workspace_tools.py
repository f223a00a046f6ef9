"""Tools over a workspace, with names, files and commands that are meant to do harm."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from assay.agents.tools import ToolOutcome, answer_call
from assay.agents.workspace_tools import WORKSPACE_TOOLS, WorkspaceTools
from assay.conversation.turns import Call
from assay.types.submission import Workspace
from tests.each import each
from tests.written_files import write_files

pytestmark = pytest.mark.sandbox


async def _use(root: Path, tool: str, *, seconds: float = 20.0, **given: Any) -> ToolOutcome:
    over = WorkspaceTools(workspace=Workspace(path=str(root)), seconds=seconds)
    tools = {name: over.tool(name) for name in WORKSPACE_TOOLS}
    return await answer_call(Call("1", tool, json.dumps(given)), tools)


async def _told(root: Path, tool: str, **given: Any) -> str:
    return str((await _use(root, tool, **given)).to_json())


# --- What they do --------------------------------------------------------------------------------


async def test_a_directory_is_listed_and_a_file_is_read_in_pages(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "two\nlines").touch()
    assert await _told(tmp_path, "read", path=".") == "src/\ntwo\\nlines\n"
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    assert await _told(tmp_path, "read", path="a.txt") == "".join(
        f"line {n}\n" for n in range(1, 6)
    )
    page = await _told(tmp_path, "read", path="a.txt", offset=2, limit=2)
    assert page == "line 2\nline 3\n[there is more: go on with offset 4]"
    assert await _told(tmp_path, "read", path="a.txt", offset=4, limit=2) == "line 4\nline 5\n"
    assert "there is nothing" in await _told(tmp_path, "read", path="a.txt", offset=9)


async def test_an_edit_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"one \xff\xfe one\r\ntwo\n")
    file.chmod(0o755)
    assert await _told(tmp_path, "edit", path="a.bin", old="two", new="2") == (
        "changed 1 place of a.bin"
    )
    assert "2 times" in await _told(tmp_path, "edit", path="a.bin", old="one", new="1")
    assert "does not hold" in await _told(tmp_path, "edit", path="a.bin", old="three", new="3")
    assert file.read_bytes() == b"one \xff\xfe one\r\n2\n"
    await _told(tmp_path, "edit", path="a.bin", old="one", new="1", all=True)
    assert file.read_bytes() == b"1 \xff\xfe 1\r\n2\n"
    assert file.stat().st_mode & 0o777 == 0o755


async def test_text_and_files_are_found(tmp_path: Path) -> None:
    files = {".git/needle.py": "needle\n", "a.py": "hay\nneedle 12\n", "b.txt": "needle x\n"}
    write_files(tmp_path, files)
    assert await _told(tmp_path, "search", pattern="needle [0-9]+") == "./a.py:2:needle 12"
    assert await _told(tmp_path, "search", pattern="needle", name="*.txt") == "./b.txt:1:needle x"
    assert await _told(tmp_path, "search", name="*.py") == "./a.py"
    assert await _told(tmp_path, "search", pattern="gold") == "nothing was found"
    assert "error: " in await _told(tmp_path, "search", pattern="(")
    assert "error: " in await _told(tmp_path, "search")


# --- Attacks -------------------------------------------------------------------------------------

_SECRET = "assay-secret-of-the-host"


async def test_no_tool_reads_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", _SECRET)
    outside = write_files(tmp_path / "outside", {"key": _SECRET})
    (work := tmp_path / "work").mkdir()
    (work / "link").symlink_to(outside / "key")
    (work / "folder").symlink_to(outside)
    for path in (str(outside / "key"), "../outside/key", "link", "folder/key", "folder"):
        assert _SECRET not in await _told(work, "read", path=path)
        assert "error" in await _told(work, "edit", path=path, old=_SECRET, new="x")
    assert "nothing" in await _told(work, "search", pattern=_SECRET, path=".")
    assert _SECRET not in await _told(work, "search", pattern=_SECRET, path="/proc/self/environ")
    told = await _told(
        work,
        "bash",
        command="env; cat link folder/key /proc/*/environ /proc/*/cmdline 2>&1; "
        f"cat {outside}/key /work/plan 2>&1",
    )
    assert _SECRET not in told
    assert "OPENAI" not in told


async def test_no_tool_writes_the_host(tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"file": "as it was"})
    (work := tmp_path / "work").mkdir()
    (work / "link").symlink_to(outside / "file")
    (work / "folder").symlink_to(outside)
    for path in (str(outside / "new"), "../outside/new", "folder/new", "link", "/etc/passwd"):
        await _use(work, "write", path=path, content="owned")
    await _use(work, "bash", command=f"echo owned > ../outside/new; echo owned > {outside}/new")
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (outside / "file").read_text() == "as it was"


async def test_no_command_reaches_the_hosts_network_or_its_sockets(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = await _told(
            tmp_path, "bash", command=f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
        )
    assert "reached" not in told


@pytest.mark.parametrize(
    "name", ["-rf", "--help", "a\nb", " ", "$(touch owned)", "'; touch owned #", "ünïcode", "*"]
)
async def test_a_hostile_name_is_a_name(tmp_path: Path, name: str) -> None:
    wrote = await _use(tmp_path, "write", path=name, content="here")
    assert not wrote.is_error
    assert (tmp_path / name).read_text() == "here"
    assert await _told(tmp_path, "read", path=name) == "here"
    assert not (await _use(tmp_path, "edit", path=name, old="here", new="there")).is_error
    assert "there" in await _told(tmp_path, "search", pattern="there", path=name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@each(
    "tool, more",
    [
        ("read", {}),
        ("write", {"content": "x"}),
        ("edit", {"old": "x", "new": "y"}),
        ("search", {"pattern": "x"}),
    ],
)
async def test_a_path_that_cannot_be_is_an_error_of_the_call(
    tmp_path: Path, tool: str, more: dict[str, Any]
) -> None:
    for path in ("a\0b", "x" * 5_000, "x" * 300, "missing/\ud800"):
        assert (await _use(tmp_path, tool, path=path, **more)).is_error


async def test_a_pipe_or_a_device_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero", "/dev/stdin"):
        assert (await _use(tmp_path, "read", path=path)).is_error
        assert (await _use(tmp_path, "edit", path=path, old="a", new="b")).is_error
    assert (await _use(tmp_path, "write", path="pipe", content="x")).is_error
    assert await _told(tmp_path, "search", pattern="x") == "nothing was found"


async def test_what_is_no_text_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"be\xff\x00gin\n")
    told = await _told(tmp_path, "read", path="a.bin")
    assert told.startswith("be��gin\n[not all of it is text")
    assert "\0" not in told


async def test_a_huge_file_is_cut(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 33)
    told = await _told(tmp_path, "read", path="huge")
    assert len(told) < 40_000
    assert "cut after 32000 bytes" in told
    assert "more than 8 MiB" in await _told(tmp_path, "edit", path="huge", old="a", new="b")


async def test_an_output_bomb_is_stopped(tmp_path: Path) -> None:
    told = await _told(tmp_path, "bash", command="yes bomb")
    assert len(told) < 40_000
    assert "bytes cut" in told
    assert told.endswith("[stopped: it wrote too much output]")


async def test_a_command_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    outcome = await _use(
        tmp_path, "bash", seconds=0.3, command="(sleep 60; touch late) & echo begun; wait"
    )
    assert outcome.is_error
    assert outcome.to_json() == "begun\n\n[stopped: it took longer than 0.3 s]"


async def test_a_workspace_that_its_agent_locks_is_opened_again(tmp_path: Path) -> None:
    await _use(tmp_path, "bash", command="chmod 000 .")
    assert not (await _use(tmp_path, "write", path="a", content="b")).is_error


async def test_a_command_that_is_too_long_is_an_error_of_the_call(tmp_path: Path) -> None:
    assert (await _use(tmp_path, "bash", command=f": {'x' * 200_000}")).is_error
    assert (await _use(tmp_path, "bash", command="echo a\0b")).is_error
    assert (await _use(tmp_path, "search", pattern="x" * 200_000)).is_error


async def test_an_argument_that_no_tool_takes_is_named(tmp_path: Path) -> None:
    told = await _use(tmp_path, "bash", command="echo fine", timeout=5)
    assert told.to_json() == "fine\n\n[bash takes no such argument: timeout]"
