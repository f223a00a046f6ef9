"""`FakeModel` as agents meet it: over a socket, in four protocols.

That the providers' own clients read these: tests/conversation.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import Protocol, codec_of
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
)
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.testing import FakeModel, Fault, calls, says, solver, through_shell
from tests.each import each

_PATHS: dict[Protocol, str] = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "anthropic": "/messages",
    "google": "/models/m:generateContent",
}


def sent(fake: FakeModel, path: str, body: Json) -> bytes:
    request = urllib.request.Request(f"{fake.base_url}{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read()


def post(fake: FakeModel, path: str, **body: Any) -> Any:
    try:
        return json.loads(sent(fake, path, body))
    except urllib.error.HTTPError as error:
        with error:
            return {"status": error.code, **json.loads(error.read())}


class BrokenOffError(Exception):
    """A stream is no whole reply."""


def ask(
    fake: FakeModel, protocol: Protocol, asked: Conversation, *, streamed: bool = False
) -> AssistantTurn:
    """The reply to a conversation."""
    codec, path = codec_of(protocol), _PATHS[protocol]
    body = codec.write_request(replace(asked, is_streamed=streamed))
    if not streamed:
        reply = codec.read_reply(json.loads(sent(fake, path, body)))
    else:
        stream = codec.read_stream()
        stream.feed(sent(fake, path.replace(":generate", ":streamGenerate"), body))
        reply = codec.read_reply(stream.body())
    if reply is None:
        raise BrokenOffError
    return reply


def chat(fake: FakeModel, *said: Any, **more: Any) -> Any:
    """Ask with a conversation: the user's word, and what came since."""
    messages = [{"role": "user", "content": "Go."}, *said]
    reply = post(fake, "/chat/completions", model="m", messages=messages, **more)
    return reply["choices"][0]["message"] if "choices" in reply else reply


_THOUGHT = "I have to look."
_TURN = says(Thought(_THOUGHT), "Both.", calls("bash", command="ls"), calls("bash", command="pwd"))
_BASH = Tool(name="bash", schema={"type": "object", "properties": {"command": {"type": "string"}}})


@each("protocol", list(_PATHS))
def test_a_turn_is_given_whole_and_streamed_in_every_protocol(protocol: Protocol) -> None:
    asked = Conversation(model="m", turns=(Turn.of("user", "Go"),), tools=(_BASH,), max_tokens=99)
    with FakeModel([_TURN, _TURN]) as fake:
        replies = [ask(fake, protocol, asked, streamed=streamed) for streamed in (False, True)]
    for reply in replies:
        assert (reply.turn.text, reply.turn.thought, reply.stop) == ("Both.", _THOUGHT, "tool")
        assert [call.given for call in reply.turn.calls] == [{"command": "ls"}, {"command": "pwd"}]
        assert len({call.id for call in reply.turn.calls}) == 2
        thoughts = [part for part in reply.turn.parts if isinstance(part, Thought)]
        assert protocol == "chat" or thoughts[0].sealed
    usage = replies[0].usage
    assert (usage.output_tokens, usage.reasoning_tokens) == (17, 4)
    assert [one.is_streamed for one in fake.conversations] == [False, True]
    assert [tool.name for tool in fake.conversations[0].tools] == ["bash"]


def test_the_tokens_of_a_stream_are_told_where_that_is_asked_for() -> None:
    with FakeModel(lambda _: "Done.") as fake:
        for wanted in (True, False):
            asked = Conversation(model="m", turns=(Turn.of("user", "Go"),), wants_usage=wanted)
            usage = ask(fake, "chat", asked, streamed=True).usage
            assert (usage != ReplyUsage()) is wanted


def test_responses_follow_a_reply_that_is_held_here() -> None:
    with FakeModel([_TURN, "Done.", "Never."]) as fake:
        first = post(fake, "/responses", model="m", input="Go", instructions="Be brief.")
        called = [item["call_id"] for item in first["output"] if item["type"] == "function_call"]
        answers = [
            {"type": "function_call_output", "call_id": call, "output": "ok"} for call in called
        ]
        asked: dict[str, Any] = {"model": "m", "input": answers}
        second = post(fake, "/responses", **asked, previous_response_id=first["id"])
        assert second["output"][0]["content"][0]["text"] == "Done."
        told = post(fake, "/responses", **asked, previous_response_id="resp_nobody")
    assert (told["status"], told["error"]["code"]) == (400, "previous_response_not_found")
    turns = fake.conversations[1].turns
    assert [turn.speaker for turn in turns] == ["user", "assistant", "tool"]
    assert [result.id for result in turns[2].results] == [call.id for call in turns[1].calls]


def test_each_conversation_goes_through_the_script_and_its_faults_for_itself() -> None:
    with FakeModel(["one", calls("bash", command="ls"), "three"], each=True) as fake:
        for agent in ("a", "b"):
            said: list[Any] = [{"role": "assistant", "content": agent}]
            assert chat(fake)["content"] == "one"
            assert chat(fake, *said)["tool_calls"][0]["function"]["name"] == "bash"
            assert chat(fake, *said, *said)["content"] == "three"
        assert "one more" in chat(fake, *said, *said, *said)["error"]["message"]
    with FakeModel([Fault("503"), Fault("529"), "one", "two"], each=True) as fake:
        assert [chat(fake).get("status") for _ in range(3)] == [503, 529, None]
        assert chat(fake, {"role": "assistant", "content": "one"})["content"] == "two"
    with FakeModel([Fault("500"), "one"]) as fake:
        assert [chat(fake).get("status") for _ in range(2)] == [500, None]


def test_functions_of_the_conversation_answer_or_give_a_fault() -> None:
    async def later(conversation: Conversation) -> object:
        await asyncio.sleep(0)
        many = len(conversation.turns)
        return (f"{many} turn", Fault("overflow"))[many - 1] if many < 3 else 1 / 0

    def fails(conversation: Conversation) -> object:
        raise ValueError(conversation.model)

    more = {"role": "user", "content": "x"}
    with FakeModel(later) as fake:
        assert chat(fake)["content"] == "1 turn"
        assert chat(fake, more)["error"]["code"] == "context_length_exceeded"
        assert "ZeroDivisionError" in chat(fake, more, more)["error"]["message"]
    with FakeModel(fails) as fake:
        failed = chat(fake)
        assert (failed["status"], "ValueError: m" in failed["error"]["message"]) == (400, True)
    with pytest.raises(InputError, match="a script is a list"):
        FakeModel("Done.")


def test_token_ids_and_logprobs_come_on_request() -> None:
    with FakeModel(lambda _: "abcdefghi") as fake:
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Go on"}]}
        plain = post(fake, "/chat/completions", **asked)["choices"][0]
        assert plain["logprobs"] is None
        assert "token_ids" not in plain
        told = post(fake, "/chat/completions", **asked, logprobs=True, return_token_ids=True)
    choice = told["choices"][0]
    tokens = choice["logprobs"]["content"]
    assert "".join(token["token"] for token in tokens) == "abcdefghi"
    assert len(choice["token_ids"]) == len(tokens) == told["usage"]["completion_tokens"] == 3
    assert len(told["prompt_token_ids"]) == told["usage"]["prompt_tokens"] == 2


@each("kind", ["reset", "truncated"])
def test_a_stream_breaks_off(kind: str) -> None:
    asked = Conversation(model="m", turns=(Turn.of("user", "Go"),))
    with FakeModel(["one two three"], faults=[kind]) as fake:
        with pytest.raises((OSError, http.client.HTTPException, BrokenOffError)):
            ask(fake, "chat", asked, streamed=True)
        assert ask(fake, "chat", asked).turn.text == "one two three"


def test_refusals_are_the_providers_own() -> None:
    with FakeModel(["x"], faults=["refusal", "refusal", "refusal"]) as fake:
        assert chat(fake)["refusal"]
        response = post(fake, "/responses", model="m", input="x")
        assert response["output"][0]["content"][0]["type"] == "refusal"
        message: list[Json] = [{"role": "user", "content": "x"}]
        reply = post(fake, "/messages", model="m", max_tokens=9, messages=message)
        assert reply["stop_reason"] == "refusal"


def test_a_whole_reply_is_given_as_it_is() -> None:
    turn = Turn("assistant", (Text("x"), Call("mine", "bash", "not json")))
    with FakeModel([AssistantTurn(turn=turn, id="r", model="other")]) as fake:
        messages: list[Json] = [{"role": "user", "content": "x"}]
        reply = post(fake, "/chat/completions", model="m", messages=messages)
    assert (reply["id"], reply["model"]) == ("r", "other")
    assert reply["choices"][0]["message"]["tool_calls"][0]["id"] == "mine"


def _tool(name: str, *required: str, **properties: Json) -> Tool:
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    return Tool(name=name, schema={**schema, "required": list(required)})


_STRING: Json = {"type": "string"}
_SHELLS = {
    "claude": _tool("Bash", "command", "description", command=_STRING, description=_STRING),
    "codex": _tool("exec_command", "cmd", cmd=_STRING, yield_time_ms={"type": "number"}),
    "codex-shell": _tool("shell", "command", command={"type": "array"}),
    "gemini": _tool("run_shell_command", "command", command=_STRING),
    "openhands": _tool(
        "execute_bash", "command", "risk", command=_STRING, risk={"enum": ["LOW", "HIGH"]}
    ),
    "own": Tool(name="local_shell", own={"type": "local_shell", "protocol": "responses"}),
    "anthropic": Tool(name="bash", own={"type": "bash_20250124", "protocol": "anthropic"}),
    "custom": Tool(name="shell", kind="custom"),
}
_OTHERS = (_tool("read_file", "path", path=_STRING), _tool("write_stdin"), _tool("bash_output"))


def _command(part: Any) -> Any:
    if isinstance(part, Call):
        if part.kind == "custom":
            return part.arguments
        given = part.given or {}
        return given.get("command", given.get("cmd"))
    return part.data["action"]["command"]


@each("agent", list(_SHELLS))
def test_a_script_of_commands_goes_through_any_agents_shell(agent: str) -> None:
    move = through_shell("one", "two", done="Done.")
    turns: list[Turn] = [Turn.of("user", "Go.")]
    ran: list[Any] = []
    for _ in range(2):
        asked = Conversation(model="m", turns=tuple(turns), tools=(*_OTHERS, _SHELLS[agent]))
        turn = move(asked)
        assert isinstance(turn, Turn)
        ran.append(_command(turn.parts[0]))
        if agent == "openhands":  # required arguments are given, whatever they are
            assert turn.calls[0].given == {"command": ran[-1], "risk": "LOW"}
        turns += [turn, Turn("tool", (Result("c", (Text("ok"),)),))]
    expected = ["bash", "-lc", "one"] if agent in ("codex-shell", "own") else "one"
    assert ran[0] == expected
    assert ran[0] != ran[1]
    assert move(Conversation(model="m", turns=tuple(turns), tools=(_SHELLS[agent],))) == "Done."


def test_an_agent_that_reads_blocks_of_text_gets_them_and_the_end_it_knows() -> None:
    rules = "Answer with ```bash\n...\n``` and end by echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    turns = [Turn.of("system", rules), Turn.of("user", "Go.")]
    move = through_shell("ls")
    first = move(Conversation(model="m", turns=tuple(turns)))
    assert isinstance(first, str)
    assert "```bash\nls\n```" in first
    turns += [Turn.of("assistant", first), Turn.of("user", "ok")]
    assert "echo COMPLETE_TASK" in str(move(Conversation(model="m", turns=tuple(turns))))


_PARSE = """\
class int_convert:
    base = None

    def __call__(self, string, match):
        if self.base is None:
            self.base = 10
            if string.startswith("0x"):
                self.base = 16
        return int(string, self.base)


class convert_first:
    pass


class Parser:
    convert = None

    def parse(self, text):
        self.convert = self.convert or int_convert()
        return [self.convert(text, None)]


def compile(form):
    return Parser()
"""


def test_whoever_connects_as_it_ends_is_hung_up_on() -> None:
    for _ in range(20):
        with FakeModel(["yes"]) as fake:
            address = urllib.parse.urlsplit(fake.model)
            client = socket.create_connection((str(address.hostname), int(address.port or 0)), 60)
        with client, suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_the_solver_repairs_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "parse.py").write_text(_PARSE)
    turns: list[Turn] = [Turn.of("user", "Repair it.")]
    said = ""
    tools = (_SHELLS["claude"],)
    while isinstance(
        turn := solver(Conversation(model="m", turns=tuple(turns), tools=tools)), Turn
    ):
        command = ["bash", "-c", _command(turn.parts[0])]
        said = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        turns += [turn, Turn("tool", (Result("c", (Text(said),)),))]
    assert said.strip() == "[16, 42]"
    assert "base of the first text" in str(turn)


@each("kind", ["local_shell", "shell"])
def test_the_providers_own_shell_is_called_in_its_own_form(kind: str) -> None:
    with FakeModel(through_shell("ls", done="Done.")) as fake:
        tools: list[Json] = [{"type": kind}]
        (item,) = post(fake, "/responses", model="m", tools=tools, input="Go")["output"]
        result = {"type": f"{kind}_call_output", "call_id": item["call_id"], "output": "a.py"}
        said: list[Json] = [{"role": "user", "content": "Go"}, item, result]
        second = post(fake, "/responses", model="m", tools=tools, input=said)
    assert item["type"] == f"{kind}_call"
    assert "ls" in (item["action"].get("commands") or item["action"]["command"])
    assert second["output"][0]["content"][0]["text"] == "Done."
