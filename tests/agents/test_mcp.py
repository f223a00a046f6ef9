"""MCP servers as tools: real servers of the official package, in the real sandbox."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.agents import ModelAgent
from assay.agents.mcp import served_tools
from assay.agents.tools import AgentTool, ToolOutcome, answer_call
from assay.conversation.turns import Call, Image, Text
from assay.documents import DocumentError
from assay.environment import Environment
from assay.errors import AgentError
from assay.graders import exact_match
from assay.models import ModelClient, ModelSettings, using
from assay.tasks.mcp_servers import McpServer, load_mcp_servers
from assay.testing import FakeModel, calls
from assay.types.submission import UnpackedImage as CaseImage
from assay.types.submission import Workspace
from tests.containers import make_root
from tests.each import each

pytestmark = pytest.mark.sandbox

# Speaks the protocol in plain Python: a server of the official package takes seconds to start.
_SERVER = """
import json, os, sys, time
from pathlib import Path

TOOLS = [
    {"name": "note", "description": "Write a note.", "inputSchema": {"type": "object",
     "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "look", "description": "Look.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
    {"name": "odd name!", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "flood", "inputSchema": {"type": "object"}},
    {"name": "read", "inputSchema": {"type": "object"}},
]
MANY = [{"name": "note", "inputSchema": {"type": "object"}} for _ in range(300)]

def call(name, given):
    if name == "note":
        Path("note.txt").write_text(given["text"])
        return [{"type": "text", "text": "noted"}], False
    if name == "look":
        return [{"type": "text", "text": "a dot"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"}], False
    if name == "die":
        print("it hurts", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "hang":
        time.sleep(600)
    if name == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    if name == "read":
        found = []
        for place in ("/proc/1/environ", "/proc/self/environ"):
            try:
                found.append(Path(place).read_text())
            except OSError:
                pass
        return [{"type": "text", "text": " ".join(found)}], True
    if name == "odd name!":
        parts = [{"type": "resource_link", "name": "a", "uri": "file:///a"},
                 {"type": "resource", "resource": {"uri": "file:///b", "text": "told"}},
                 {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]
        return parts + [{"type": "text", "text": "x"}] * 50, False
    return [], True

print("a banner that is no message", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, answer = asked["method"], {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": asked["params"]["protocolVersion"],
                            "capabilities": {"tools": {}},
                            "serverInfo": {"name": "plain", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": MANY if "--many" in sys.argv else TOOLS}
    elif method == "tools/call":
        content, failed = call(asked["params"]["name"], asked["params"].get("arguments", {}))
        answer["result"] = {"content": content, "isError": failed}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"""


def _server(tmp_path: Path, text: str = _SERVER) -> McpServer:
    (tmp_path / "servers").mkdir(exist_ok=True)
    (tmp_path / "servers" / "plain.py").write_text(text)
    return McpServer(
        command="python3",
        args=("/suite/servers/plain.py",),
        mounts=("servers",),
        root=str(tmp_path),
    )


_IN_SHELL = r"""
[ ! -e /usr/bin/git ] || exit 1
tool='{"name": "note", "inputSchema": {"type": "object"}}'
while read -r line; do
  [[ $line =~ \"id\":\ *([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  case $line in
    *'"initialize"'*)
      [[ $line =~ \"protocolVersion\":\ *(\"[^\"]*\") ]]
      said="{\"protocolVersion\": ${BASH_REMATCH[1]}, \"capabilities\": {\"tools\": {}},"
      said="$said \"serverInfo\": {\"name\": \"plain\", \"version\": \"1\"}}" ;;
    *'"tools/list"'*) said="{\"tools\": [$tool]}" ;;
    *) echo "$A $B" > note.txt; said='{"content": [{"type": "text", "text": "noted"}]}' ;;
  esac
  echo "{\"jsonrpc\": \"2.0\", \"id\": $id, \"result\": $said}"
done
"""


async def test_a_server_runs_in_the_image_of_its_case(tmp_path: Path) -> None:
    image = CaseImage(digest="x", root=str(make_root(tmp_path / "root")), env={"A": "image"})
    (tmp_path / "w").mkdir()
    workspace = Workspace(path=str(tmp_path / "w"), env={"B": "case"}, image=image)
    server = replace(_server(tmp_path, _IN_SHELL), command="bash")
    found = served_tools({"plain": server}, workspace, network=False, seconds=10, taken=())
    async with found as (note,):
        outcome = await answer_call(Call("1", "note", "{}"), {"note": note})
    assert outcome.content == (Text("noted"),)
    assert (tmp_path / "w/note.txt").read_text() == "image case\n"


@asynccontextmanager
async def _served(
    tmp_path: Path, server: McpServer, *, seconds: float = 20.0, taken: Any = ()
) -> AsyncGenerator[dict[str, AgentTool]]:
    (tmp_path / "work").mkdir(exist_ok=True)
    workspace = Workspace(path=str(tmp_path / "work"))
    async with served_tools(
        {"plain": server}, workspace, network=False, seconds=seconds, taken=taken
    ) as tools:
        yield {tool.name: tool for tool in tools}


async def _call(tools: dict[str, AgentTool], name: str, **given: Any) -> ToolOutcome:
    return await answer_call(Call("1", name, json.dumps(given)), tools)


async def test_a_servers_tools_are_offered_and_work_in_the_workspace(tmp_path: Path) -> None:
    async with _served(tmp_path, _server(tmp_path), taken=["read"]) as tools:
        assert list(tools) == ["note", "look", "odd_name_", "die", "hang", "flood", "plain_read"]
        assert tools["note"].declared.description == "Write a note."
        assert [tool.reads_only for tool in tools.values()][:2] == [False, True]
        noted = await _call(tools, "note", text="milk")
        assert (noted.to_json(), noted.is_error) == ("noted", False)
        seen = await _call(tools, "look")
        assert seen.content[1] == Image("data:image/png;base64,AAAA")
    assert (tmp_path / "work" / "note.txt").read_text() == "milk"


async def test_a_server_sees_nothing_of_the_hosts_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "assay-secret-of-the-host")
    async with _served(tmp_path, _server(tmp_path)) as tools:
        told = await _call(tools, "read")
    assert told.is_error
    assert "assay-secret" not in str(told.to_json())
    assert "HOME" in str(told.to_json())


@each(
    "name, seconds, said",
    [("die", 20.0, "it hurts"), ("hang", 0.2, "longer than 0.2 s"), ("flood", 20.0, "")],
)
async def test_a_server_that_dies_hangs_or_floods_is_an_error_of_the_tool(
    tmp_path: Path, name: str, seconds: float, said: str
) -> None:
    async with _served(tmp_path, _server(tmp_path), seconds=seconds) as tools:
        told = [await _call(tools, name)]
        if name == "die":
            told.append(await _call(tools, "note", text="x"))
    assert all(one.is_error for one in told)
    assert said in str(told[-1].to_json())


async def test_what_a_model_cannot_be_told_is_left_out(tmp_path: Path) -> None:
    async with _served(tmp_path, _server(tmp_path)) as tools:
        told = await _call(tools, "odd_name_")
    said = str(told.to_json()).split("\n")
    assert said[:4] == ["[a: file:///a]", "told", "[audio: cannot be shown]", "x"]
    assert said[-1] == "[37 more parts are left out]"


async def test_a_server_with_hundreds_of_tools_of_one_name_offers_some(tmp_path: Path) -> None:
    server = _server(tmp_path)
    many = replace(server, args=(*server.args, "--many"))
    async with _served(tmp_path, many) as tools:
        assert len(tools) == 128
        assert list(tools)[:3] == ["note", "plain_note", "plain_note_2"]


@each(
    "server, why",
    [
        (McpServer(command="true", mounts=("gone",)), "mounts 'gone', which does not exist"),
        (McpServer(command="nowhere"), "the MCP server 'plain' did not start: .*nowhere"),
        ("raise SystemExit('no database')", "'plain' did not start: .*no database"),
        ("print('bye')", "'plain' did not start: .*Connection closed"),
    ],
)
async def test_a_server_that_does_not_start_gives_no_reward(
    tmp_path: Path, server: McpServer | str, why: str
) -> None:
    given = _server(tmp_path, server) if isinstance(server, str) else server
    with pytest.raises(AgentError, match=why):
        async with _served(tmp_path, given):
            pass


async def test_the_servers_of_an_environment_are_offered_in_its_tasks(tmp_path: Path) -> None:
    env = Environment("notes", mcp={"plain": _server(tmp_path)})

    @env.template()
    async def look() -> AsyncGenerator[Any, Any]:
        answer = yield "What do you see?"
        yield exact_match(answer, "A dot.")

    script = [calls("look"), "A dot."]
    with FakeModel(script) as fake, using(ModelClient(ModelSettings(cache="off"))):
        job = await look().run(ModelAgent(), model=fake.model)
    assert job.reward == 1.0
    result = fake.conversations[-1].turns[-1].results[0]
    assert result.content == (Text("a dot"), Image("data:image/png;base64,AAAA"))


# --- The file ------------------------------------------------------------------------------------


def test_a_file_in_the_usual_form_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers: Any = {
        "notes": {"command": "python3", "args": ["a.py"], "env": {"A": "b"}},
        "off": {"command": "x", "disabled": True},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    assert load_mcp_servers(str(file)) == {
        "notes": McpServer(command="python3", args=("a.py",), env={"A": "b"}, root=str(tmp_path))
    }


@each(
    "server, why",
    [
        ({"url": "http://x"}, "url"),
        ({"command": "x", "type": "http"}, "type"),
        ({"command": " "}, "names no program"),
        ({"command": "x", "mounts": ["../.."]}, "leads out"),
    ],
)
def test_a_server_that_cannot_be_run_is_refused(
    tmp_path: Path, server: dict[str, Any], why: str
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": server}}))
    with pytest.raises(DocumentError, match=why):
        load_mcp_servers(str(file))


@pytest.mark.slow
async def test_a_server_of_the_official_package_is_spoken_with(tmp_path: Path) -> None:
    text = '''
from mcp.server import MCPServer

server = MCPServer("adder")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

server.run()
'''
    server = _server(tmp_path, text)
    python = Path(sys.prefix)
    own = McpServer(
        command=str(python / "bin" / "python"),
        args=server.args,
        mounts=("servers", str(python), str(Path(sys.base_prefix))),
        root=str(tmp_path),
    )
    async with _served(tmp_path, own) as tools:
        assert (await _call(tools, "add", a=2, b=3)).to_json() == "5"
