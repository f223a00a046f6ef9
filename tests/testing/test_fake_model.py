"""`FakeModel` as agents meet it: through the providers' own clients."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
from tests.testing.asking import replied

if TYPE_CHECKING:
    import anthropic  # noqa: TC004 - imported by a fixture
    import openai  # noqa: TC004 - imported by a fixture
    from google import genai  # noqa: TC004 - imported by a fixture


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    for name in ("anthropic", "openai", "google.genai"):
        globals()[name.removeprefix("google.")] = importlib.import_module(name)


_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}}


def post(fake: FakeModel, path: str, **body: Any) -> Any:
    status, reply = replied(f"{fake.base_url}{path}", json.dumps(body).encode())
    return reply if status == 200 else {"status": status, **reply}


def chat(fake: FakeModel, *said: Any, **more: Any) -> Any:
    """Ask with a conversation: the user's word, and what came since."""
    messages = [{"role": "user", "content": "Go."}, *said]
    reply = post(fake, "/chat/completions", model="m", messages=messages, **more)
    return reply["choices"][0]["message"] if "choices" in reply else reply


_TURN = says(
    Thought("I have to look."), "Both.", calls("bash", command="ls"), calls("bash", command="pwd")
)


def test_openais_client_gets_calls_streamed_and_whole() -> None:
    tool = {"type": "function", "function": {"name": "bash", "parameters": _SCHEMA}}
    with (
        FakeModel([_TURN, _TURN]) as fake,
        openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=0) as client,
    ):
        asked: Any = {"messages": [{"role": "user", "content": "Go"}], "tools": [tool]}
        create: Any = client.chat.completions.create
        whole: Any = create(model="m", **asked)
        with client.chat.completions.stream(model="m", **asked) as events:
            streamed: Any = events.get_final_completion()
    for one in (whole, streamed):
        message = one.choices[0].message
        assert message.content == "Both."
        called = [json.loads(call.function.arguments) for call in message.tool_calls]
        assert called == [{"command": "ls"}, {"command": "pwd"}]
        assert len({call.id for call in message.tool_calls}) == 2
        assert one.choices[0].finish_reason == "tool_calls"
    assert whole.usage.completion_tokens_details.reasoning_tokens == 4
    assert streamed.usage is None
    assert [tool.name for tool in fake.conversations[0].tools] == ["bash"]


def test_anthropics_client_gets_calls_streamed_and_whole() -> None:
    with (
        FakeModel([_TURN, _TURN]) as fake,
        anthropic.Anthropic(base_url=fake.root_url, api_key="k", max_retries=0) as client,
    ):
        asked: Any = {
            "model": "m",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Go"}],
            "tools": [{"name": "bash", "input_schema": _SCHEMA}],
        }
        create: Any = client.messages.create
        whole: Any = create(**asked)
        with client.messages.stream(**asked) as events:
            streamed: Any = events.get_final_message()
    for one in (whole, streamed):
        kinds = [block.type for block in one.content]
        assert kinds == ["thinking", "text", "tool_use", "tool_use"]
        assert one.content[0].signature
        assert one.content[3].input == {"command": "pwd"}
        assert one.stop_reason == "tool_use"
        assert one.usage.output_tokens > 0


def test_googles_client_gets_calls_streamed_and_whole() -> None:
    shell = genai.types.FunctionDeclaration(name="bash", parameters_json_schema=_SCHEMA)
    config: Any = {
        "tools": [genai.types.Tool(function_declarations=[shell])],
        "automatic_function_calling": {"disable": True},
    }
    with (
        FakeModel([_TURN, _TURN]) as fake,
        genai.Client(
            api_key=fake.environment()["GEMINI_API_KEY"],
            http_options={"base_url": fake.environment()["GOOGLE_GEMINI_BASE_URL"]},
        ) as client,
    ):
        asked: Any = {"model": "m", "contents": "Go", "config": config}
        whole: Any = client.models.generate_content(**asked)
        chunks: list[Any] = list(client.models.generate_content_stream(**asked))
        kinds = [conversation.is_streamed for conversation in fake.conversations]
    assert kinds == [False, True]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    for parts_of in (whole.candidates[0].content.parts, parts):
        assert "".join(part.text or "" for part in parts_of if not part.thought) == "Both."
        assert any(part.thought and part.text for part in parts_of)
        called = [part.function_call for part in parts_of if part.function_call]
        assert [call.args for call in called] == [{"command": "ls"}, {"command": "pwd"}]
        assert len({call.id for call in called}) == 2
    assert chunks[-1].usage_metadata == whole.usage_metadata
    assert whole.usage_metadata.thoughts_token_count == 4
    assert [tool.name for tool in fake.conversations[0].tools] == ["bash"]


def test_openais_responses_follow_a_reply_that_is_held_here() -> None:
    with (
        FakeModel([_TURN, "Done.", "Never."]) as fake,
        openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=0) as client,
    ):
        create: Any = client.responses.create
        first: Any = create(model="m", input="Go", instructions="Be brief.")
        answers: Any = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
            for item in first.output
            if item.type == "function_call"
        ]
        with client.responses.stream(
            model="m", input=answers, previous_response_id=first.id
        ) as events:
            second: Any = events.get_final_response()
        assert second.output_text == "Done."
        with pytest.raises(openai.BadRequestError) as told:
            create(model="m", input="x", previous_response_id="resp_nobody")
    assert told.value.code == "previous_response_not_found"
    speakers = [turn.speaker for turn in fake.conversations[1].turns]
    assert speakers == ["user", "assistant", "tool"]
    ids = [result.id for result in fake.conversations[1].turns[2].results]
    assert ids == [call.id for call in fake.conversations[1].turns[1].calls]


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


@pytest.mark.parametrize("kind", ["reset", "truncated"])
def test_a_stream_breaks_off(kind: str) -> None:
    with (
        FakeModel(["one two three"], faults=[kind]) as fake,
        openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=0) as client,
    ):
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
        create: Any = client.chat.completions.create
        told: list[Any] = []
        try:
            told += list(create(**asked, stream=True))
        except Exception as error:
            assert kind == "reset", error  # noqa: PT017
        assert all(chunk.choices[0].finish_reason is None for chunk in told)
        assert create(**asked).choices[0].message.content == "one two three"


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


@pytest.mark.parametrize("kind", ["local_shell", "shell"])
def test_the_providers_own_shell_is_called_in_its_own_form(kind: str) -> None:
    with (
        FakeModel(through_shell("ls", done="Done.")) as fake,
        openai.OpenAI(base_url=fake.base_url, api_key="k", max_retries=0) as client,
    ):
        create: Any = client.responses.create
        asked: Any = {"model": "m", "tools": [{"type": kind}], "store": False}
        first: Any = create(input="Go", **asked)
        (item,) = first.output
        result: Any = {"type": f"{kind}_call_output", "call_id": item.call_id, "output": "a.py"}
        said: Any = [{"role": "user", "content": "Go"}, item.to_dict(), result]
        second: Any = create(input=said, **asked)
    assert item.type == f"{kind}_call"
    action = item.action.to_dict()
    assert "ls" in (action.get("commands") or action["command"])
    assert second.output_text == "Done."
