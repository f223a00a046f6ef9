"""Models on this machine that do as told: `FakeModel` for agents, `FakeJudge` for judges."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import threading
import zlib
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Self, TypeAlias, TypedDict, Unpack, cast

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import ProtocolError, addressed, codec_at
from assay.conversation.protocols.shapes import decode_body
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Part,
    Text,
    Thought,
    Tokens,
    Turn,
)
from assay.errors import InputError
from assay.scoring.json_safe import Json, plain
from assay.testing.asked import Asked, Said, WireForm, tokens_of
from assay.testing.faults import (
    Fault,
    FaultPlan,
    Faults,
    HttpResponse,
    error_response,
    overflow,
    refusing_response,
    sent,
    spoilt,
    spoken,
)
from assay.testing.heuristic import heuristic_verdict
from assay.testing.http_server import HttpRequest, HttpServer

Move: TypeAlias = "Sequence[object] | Callable[[Conversation], object]"
"""What the model does: a script, or a function or coroutine function of the conversation. Each
gives texts, JSON, `calls`, turns that `says` makes, whole replies, or `Fault`s."""

Answer: TypeAlias = "Sequence[object] | Callable[[Asked], object] | None"
"""Who answers: None for the heuristic judge, a script of texts, JSON and `Fault`s in order, or a
function or coroutine function that gives text or JSON."""

_PATHS: dict[str, WireForm] = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
    "/v1/responses": "responses",
}
_REPLIES: dict[WireForm, str] = {
    "openai": "chatcmpl-",
    "anthropic": "msg_",
    "responses": "resp_",
    "google": "",
}
_EVENTS = "text/event-stream"
_KEYS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_TOKEN = 4
_VOCABULARY = 50_000


def calls(tool: str, text: str | None = None, /, **arguments: object) -> Call:
    """A call of a tool: ``calls("bash", command="ls")``.

    Args:
        tool: Its name.
        text: The argument of a tool that takes a text of any form.
        arguments: Those of any other.
    """
    if text is not None:
        return Call("", tool, text, "custom")
    given = {name: plain(value) for name, value in arguments.items()}
    return Call("", tool, json.dumps(given, ensure_ascii=False))


def says(*parts: str | Part) -> Turn:
    """A turn of several parts: ``says("I look.", calls("ls"), calls("cat", path="a"))``."""
    made = (Text(part) if isinstance(part, str) else part for part in parts)
    return Turn("assistant", tuple(made))


class Manner(TypedDict, total=False):
    """How a fake model serves; see `FakeModel`."""

    faults: Faults
    model: str
    host: str
    port: int
    seconds: float
    pieces: int
    context_tokens: int
    seed: int
    keep: int


class FakeModel:
    """A model for agents that does as it is told: four protocols, streamed and not, with tools.

    It listens on this machine, on a thread of its own, so that it serves tests with and without an
    event loop, and other processes::

        with FakeModel([calls("bash", command="ls"), "Done."]) as fake:
            client = openai.OpenAI(base_url=fake.base_url, api_key="any")

    Args:
        move: See `Move`; a `solver` is one.
        each: Whether each conversation goes through the script for itself, so that several agents
            may ask at once: its step is the number of turns that the model has had in it. Faults
            of the script are met once by conversations that are alike.
        faults: What goes wrong with which requests. A request that meets a fault takes nothing
            off a script, unless it was merely slow.
        model: What the model is called. Every model asked for is answered.
        host: Where to listen: this machine only, unless it is told otherwise.
        port: 0 for a free one.
        seconds: Time that each reply takes.
        pieces: Into how many pieces each text and the arguments of each call are streamed.
        context_tokens: More than this, at four characters each, are refused as too long.
        seed: Random seed for faults with a probability.
        keep: How many of the newest requests `requests` holds, and of replies that a request of
            OpenAI's responses may follow.

    Raises:
        InputError: For an unknown fault, or a script that is a text.

    Attributes:
        count: How many were asked, those that met a fault included.
    """

    _calls_by_text: ClassVar[bool] = False
    """Whether a text is the arguments of a tool that has to be called, as JSON is."""

    def __init__(
        self,
        move: Move,
        *,
        each: bool = False,
        faults: Faults = None,
        model: str = "fake-model",
        host: str = "127.0.0.1",
        port: int = 0,
        seconds: float = 0.0,
        pieces: int = 3,
        context_tokens: int = 200_000,
        seed: int = 0,
        keep: int = 256,
    ) -> None:
        self.model_name = model
        self.count = 0
        self._move = move if callable(move) else _Steps(move) if each else _Script(move)
        self._plan = FaultPlan(faults, seed=seed)
        self._seconds = seconds
        self._pieces = pieces
        self._context_tokens = context_tokens
        self._keep = keep
        self._requests: deque[Asked] = deque(maxlen=keep)
        self._held: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()
        self._lock = threading.Lock()
        self._server = HttpServer(self._handle, host=host, port=port)

    def start(self) -> Self:
        """Listen.

        Raises:
            OSError: If it cannot.
        """
        self._server.start()
        return self

    def stop(self) -> None:
        """End: its port, its connections and its thread are gone when this returns."""
        self._server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def root_url(self) -> str:
        """``http://127.0.0.1:PORT``: what Anthropic's and Google's clients call their base URL.

        Raises:
            InputError: If it was never started, so that there is no port.
        """
        if not self._server.port:
            raise InputError(
                "the fake model was not started, so it has no address",
                hint=f"write `with {type(self).__name__}() as fake:`, or call start()",
            )
        host = f"[{self._server.host}]" if ":" in self._server.host else self._server.host
        return f"http://{host}:{self._server.port}"

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT/v1``: what OpenAI's client calls its base URL."""
        return f"{self.root_url}/v1"

    @property
    def model(self) -> str:
        """What to write as the ``model`` of a judge, to ask it in OpenAI's form."""
        return f"{self.base_url}#{self.model_name}"

    @property
    def anthropic_model(self) -> str:
        """What to write as the ``model`` of a judge, to ask it in Anthropic's form."""
        return f"anthropic+{self.root_url}#{self.model_name}"

    @property
    def requests(self) -> tuple[Asked, ...]:
        """What it was asked, oldest first; only the newest are kept."""
        with self._lock:
            return tuple(self._requests)

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """What it was asked, oldest first; only the newest are kept."""
        return tuple(_conversation(asked) for asked in self.requests)

    def environment(self) -> dict[str, str]:
        """Variables that make other programs ask it: providers' base URLs, and keys to go by."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": "fake-key",
            "ANTHROPIC_BASE_URL": self.root_url,
            "ANTHROPIC_API_KEY": "fake-key",
            "GOOGLE_GEMINI_BASE_URL": self.root_url,
            "GEMINI_API_KEY": "fake-key",
        }

    def _handle(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if request.method == "GET" and request.path == "/v1/models":
            return HttpResponse(body=json.dumps(_models_body(self.model_name)).encode())
        protocol = _protocol_at(request.path)
        if protocol is None or request.method != "POST":
            error = ProtocolError(404, f"there is no {request.method} {request.path} here")
            return error_response("openai", error)
        try:
            asked = self._read(protocol, request)
            with self._lock:
                self._requests.append(asked)
                self.count += 1
            return self._respond(asked)
        except ProtocolError as error:
            return error_response(protocol, error)

    def _read(self, protocol: WireForm, request: HttpRequest) -> Asked:
        body = decode_body(request.body)
        if isinstance(body, dict):
            body = addressed(request.path, body)
        asked = self._whole(spoken(protocol).read_request(body))
        named = asked.choice if asked.choice not in ("auto", "none", "required") else ""
        listed = asked.tools if named or asked.choice == "required" else ()
        tool = next((tool for tool in listed if tool.name == named or not named), None)
        if named and tool is None:
            told = f"tool_choice: there is no tool {named!r}"
            raise ProtocolError(400, told, parameter="tool_choice")
        others = (turn for turn in asked.turns if turn.speaker != "system")
        systems = (_written(turn) for turn in asked.turns if turn.speaker == "system")
        headers = request.headers.items()
        return Asked(
            protocol=protocol,
            model=asked.model,
            messages=tuple(Said(turn.speaker, _written(turn)) for turn in others),
            system="\n\n".join(systems),
            schema=asked.schema or (tool.schema if tool is not None else None) or None,
            tool="" if tool is None else tool.name,
            temperature=asked.temperature,
            headers={name: "[hidden]" if name in _KEYS else value for name, value in headers},
            body=cast("dict[str, Json]", body),
            index=self.count,
            conversation=asked,
        )

    def _whole(self, asked: Conversation) -> Conversation:
        """The conversation with what its server holds of it."""
        if not asked.follows:
            return asked
        before = self._held.get(asked.follows)
        if before is None:
            raise ProtocolError(
                400,
                f"Previous response with id '{asked.follows[:80]}' not found.",
                parameter="previous_response_id",
                code="previous_response_not_found",
            )
        # Instructions are those of each request: what is held has none.
        system = tuple(turn for turn in asked.turns if turn.speaker == "system")
        others = tuple(turn for turn in asked.turns if turn.speaker != "system")
        return replace(asked, turns=(*system, *before, *others))

    def _respond(self, asked: Asked) -> HttpResponse | Awaitable[HttpResponse]:
        fault = self._plan.next(asked)
        if fault is not None and (refused := refusing_response(asked, fault)):
            return refused
        if tokens_of(asked.characters) > self._context_tokens:
            raise overflow(asked)
        try:
            move = self._next(asked, is_taken=fault is None or fault.kind == "slow")
        except ProtocolError:
            raise
        except Exception as error:  # a test's own function may fail in any way: the caller is told
            raise _failed(error) from error
        if inspect.isawaitable(move):
            return self._later(asked, move, fault)
        return self._finish(asked, move, fault)

    def _next(self, asked: Asked, *, is_taken: bool) -> object:
        """What it does, or who says so later."""
        if isinstance(self._move, _Script):
            return self._move.next(is_taken=is_taken)
        if isinstance(self._move, _Steps):
            return self._move.next(_conversation(asked))
        return self._move(_conversation(asked))

    async def _later(
        self, asked: Asked, move: Awaitable[object], fault: Fault | None
    ) -> HttpResponse:
        try:
            return self._finish(asked, await move, fault)
        except ProtocolError as error:
            return error_response(asked.protocol, error)
        except Exception as error:  # likewise
            return error_response(asked.protocol, _failed(error))

    def _finish(self, asked: Asked, move: object, fault: Fault | None) -> HttpResponse:
        if isinstance(move, Fault):
            if refused := refusing_response(asked, move):
                return refused
            fault, move = move, ""
        conversation = _conversation(asked)
        given = (
            move if isinstance(move, AssistantTurn) else AssistantTurn(turn=self._turn(asked, move))
        )
        reply = _reply(asked, conversation, given)
        if fault is not None:
            reply = _spoilt(asked, reply, fault)
        if asked.protocol == "responses":
            with self._lock:
                talk = (*conversation.turns, reply.turn)
                self._held[reply.id] = tuple(turn for turn in talk if turn.speaker != "system")
                while len(self._held) > self._keep:
                    self._held.popitem(last=False)
        codec = spoken(asked.protocol)
        body = codec.write_reply(reply, conversation)
        if asked.protocol == "openai":
            body["system_fingerprint"] = "fp_fake"
        if not conversation.is_streamed:
            written, kind = json.dumps(body).encode(), "application/json"
        else:
            wants_usage = conversation.wants_usage
            events = codec.write_stream(body, pieces=self._pieces, wants_usage=wants_usage)
            written, kind = b"".join(events), _EVENTS
        if fault is not None:
            return sent(fault, written, content_type=kind)
        return HttpResponse(body=written, content_type=kind, seconds=self._seconds)

    def _turn(self, asked: Asked, move: object) -> Turn:
        if isinstance(move, Turn):
            return move
        if isinstance(move, Call):
            return says(move)
        if isinstance(move, str):
            return _worded(asked if self._calls_by_text else None, move)
        return _worded(asked, json.dumps(plain(move), ensure_ascii=False))


class FakeJudge(FakeModel):
    """A model for judges: `FakeModel`, told what to reply to each question.

        with FakeJudge(['{"verdict": "MET"}']) as fake:
            client = openai.OpenAI(base_url=fake.base_url, api_key="any")

    Args:
        answer: See `Answer`. A text is sent as it is, anything else as JSON. None is the heuristic
            judge: it grades by simple rules, and obeys any order that stands outside fences.
        how: As of `FakeModel`; the model is called ``fake-judge``.

    Raises:
        InputError: As of `FakeModel`.
    """

    _calls_by_text = True

    def __init__(self, answer: Answer = None, **how: Unpack[Manner]) -> None:
        told = heuristic_verdict if answer is None else answer
        how.setdefault("model", "fake-judge")
        super().__init__(() if callable(told) else told, **how)
        self._answer = told if callable(told) else None

    def _next(self, asked: Asked, *, is_taken: bool) -> object:
        if self._answer is None:
            return super()._next(asked, is_taken=is_taken)
        return self._answer(asked)


def _conversation(asked: Asked) -> Conversation:
    assert asked.conversation is not None
    return asked.conversation


def _failed(error: Exception) -> ProtocolError:
    """The error that tells of an answer function's own; not one that is tried again."""
    return ProtocolError(400, f"the answer function failed: {type(error).__name__}: {error}")


def _protocol_at(path: str) -> WireForm | None:
    if path.startswith(("/v1/models/", "/v1beta/models/")) and codec_at(path) is not None:
        return "google"
    return _PATHS.get(path.replace("/v1beta/openai/", "/v1/"))


def _models_body(model: str) -> dict[str, Json]:
    """The list of models, in a form that both providers' clients read."""
    entry: Json = {
        "id": model,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "assay",
        "type": "model",
        "display_name": model,
        "created_at": "2023-11-14T22:13:20Z",
    }
    page: dict[str, Json] = {"object": "list", "data": [entry], "has_more": False}
    return {**page, "first_id": model, "last_id": model}


class _Script:
    """Answers in order: one for each request, whoever asks.

    Args:
        answers: They.

    Raises:
        InputError: For a text, which is a sequence of letters.
    """

    def __init__(self, answers: Sequence[object]) -> None:
        if isinstance(answers, str):
            raise InputError("a script is a list of replies", hint=f"write [{answers[:20]!r}]")
        self._answers = answers
        self._given = 0

    def next(self, *, is_taken: bool) -> object:
        """The next one, which is not taken off where a request meets a fault.

        Raises:
            ProtocolError: If there is none.
        """
        if self._given >= len(self._answers):
            if not is_taken:
                return ""
            told = f"the script has {len(self._answers)} replies, and this is one more"
            raise ProtocolError(400, told)
        answer = self._answers[self._given]
        self._given += is_taken
        return answer


class _Steps:
    """A script that each conversation goes through for itself."""

    def __init__(self, answers: Sequence[object]) -> None:
        _Script(answers)  # which refuses what is none
        self._steps: list[tuple[list[Fault], object]] = []
        self._met: dict[str, int] = {}
        faults: list[Fault] = []
        for answer in answers:
            if isinstance(answer, Fault):
                faults.append(answer)
            else:
                self._steps.append((faults, answer))
                faults = []
        if faults:
            self._steps.append((faults, faults[-1]))

    def next(self, conversation: Conversation) -> object:
        """What the model does next in a conversation."""
        step = sum(turn.speaker == "assistant" for turn in conversation.turns)
        if step >= len(self._steps):
            told = f"the script has {len(self._steps)} steps, and this is one more"
            raise ProtocolError(400, told)
        faults, answer = self._steps[step]
        if not faults:
            return answer
        key = hashlib.sha256(repr(conversation.turns).encode("utf-8", "replace")).hexdigest()
        met = self._met.get(key, 0)
        self._met[key] = met + 1
        return faults[met] if met < len(faults) else answer


def _worded(asked: Asked | None, text: str) -> Turn:
    """A text as what is said, or as what the tool is called with that has to be called."""
    call = Call("", asked.tool, text) if asked is not None and asked.tool else None
    if call is not None and text and call.given is not None:
        return says(call)
    return says(text) if text else says()  # what is no object calls no tool


def _reply(asked: Asked, conversation: Conversation, given: AssistantTurn) -> AssistantTurn:
    """What the model does, with all that a provider adds."""
    number = asked.index
    parts = tuple(_named(part, number, at) for at, part in enumerate(given.turn.parts))
    turn, is_cut = _cut(Turn("assistant", parts), conversation.max_tokens)
    stop = given.stop
    if is_cut:
        stop = "length"
    elif turn.calls and stop == "stop":
        stop = "tool"
    said = turn.thought + _written(turn)
    usage = ReplyUsage(
        input_tokens=tokens_of(asked.characters),
        cached_tokens=0,
        output_tokens=tokens_of(len(said)),
        reasoning_tokens=tokens_of(len(turn.thought)),
    )
    tokens = given.tokens
    if tokens is None and (conversation.wants_logprobs or conversation.wants_token_ids):
        tokens = _tokens(asked, said)
    return replace(
        given,
        turn=turn,
        stop=stop,
        model=given.model or conversation.model,
        usage=usage if given.usage == ReplyUsage() else given.usage,
        id=given.id or f"{_REPLIES[asked.protocol]}{number}",
        tokens=tokens,
    )


def _spoilt(asked: Asked, reply: AssistantTurn, fault: Fault) -> AssistantTurn:
    """A reply that meets a fault in what it says."""
    ours = (call.arguments for call in reply.turn.calls if call.name == asked.tool)
    said = reply.turn.text or "".join(ours)
    text, ending = spoilt(asked, fault, said)
    if ending == "refusal":
        return replace(reply, turn=says(), stop=ending, refusal=text)
    if ending == "stop" and text == said:
        return reply
    return replace(reply, turn=_worded(asked, text), stop=ending)


def _named(part: Part, number: int, at: int) -> Part:
    if isinstance(part, Call) and not part.id:
        return replace(part, id=f"call_{number}_{at}")
    if isinstance(part, Thought) and not part.sealed:
        # Google's own client takes nothing but base64.
        sealed = base64.b64encode(f"sealed {number} {at}".encode()).decode()
        return replace(part, sealed=sealed)
    return part


def _cut(turn: Turn, most: int | None) -> tuple[Turn, bool]:
    """A turn as far as there is room for it."""
    if most is None or tokens_of(len(turn.thought + _written(turn))) <= most:
        return turn, False
    text = turn.text[: max(0, most * _TOKEN - len(turn.thought))]
    thoughts = (part for part in turn.parts if isinstance(part, Thought))
    return says(*thoughts, *([text] if text else [])), True


def _written(turn: Turn) -> str:
    """All that a turn says, calls and results included; without thoughts."""
    said = [part.text for part in turn.parts if isinstance(part, Text)]
    said += [f"{call.name}{call.arguments}" for call in turn.calls]
    said += [result.text for result in turn.results]
    return "\n".join(said)


def _tokens(asked: Asked, said: str) -> Tokens:
    """Tokens of four characters each: ids and logarithms by what they say."""
    read = "".join((asked.system, *(one.text for one in asked.messages)))
    ids = _ids(said)
    logprobs = tuple(-(number % 997 + 1) / 1000 for number in ids)
    return Tokens(prompt_ids=_ids(read), output_ids=ids, logprobs=logprobs)


def _ids(text: str) -> tuple[int, ...]:
    cut = (text[at : at + _TOKEN] for at in range(0, len(text), _TOKEN))
    return tuple(zlib.crc32(token.encode("utf-8", "replace")) % _VOCABULARY for token in cut)
