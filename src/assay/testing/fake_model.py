"""`FakeModel`: an agent's model on this machine, in all four protocols, whole and streamed."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from assay.models.conversation import (
    Call,
    Conversation,
    Part,
    Reply,
    Text,
    Thought,
    Tokens,
    Turn,
)
from assay.models.messages import Usage
from assay.models.protocols import Protocol, ProtocolError, addressed, codec_at, codec_of
from assay.models.protocols.fields import decode_body
from assay.scoring.json_safe import Json, plain
from assay.testing.asked import Asked, Said, WireForm, tokens_of, without_keys
from assay.testing.faults import (
    Fault,
    Faults,
    HttpResponse,
    error_response,
    overflow,
    refusing_response,
    sent,
    spoilt,
)
from assay.testing.http_server import HttpRequest
from assay.testing.serving import FakeServer, Responding, Script, failed

Move: TypeAlias = "Sequence[object] | Callable[[Conversation], object]"
"""What the model does: a script, or a function or coroutine function of the conversation. Each
gives texts, JSON, `calls`, turns that `says` makes, whole replies, or `Fault`s."""

_PATHS: dict[str, WireForm] = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
    "/v1/responses": "responses",
}
_CODECS: dict[WireForm, Protocol] = {
    "openai": "chat",
    "anthropic": "anthropic",
    "responses": "responses",
    "google": "google",
}
_EVENTS = "text/event-stream"
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


class FakeModel(FakeServer):
    """A model for agents that does as it is told: four protocols, streamed and not, with tools.

    It listens on this machine, on a thread of its own::

        with FakeModel([calls("bash", command="ls"), "Done."]) as fake:
            client = openai.OpenAI(base_url=fake.base_url, api_key="any")

    Args:
        move: See `Move`; a `solver` is one.
        each: Whether each conversation goes through the script for itself, so that several agents
            may ask at once: its step is the number of turns that the model has had in it. Faults
            of the script are met once by conversations that are alike.
        faults: What goes wrong with which requests; see `FakeJudge`.
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
    """

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
        super().__init__(
            faults=faults,
            model=model,
            host=host,
            port=port,
            seconds=seconds,
            context_tokens=context_tokens,
            seed=seed,
            keep=keep,
        )
        self._move = move if callable(move) else _Steps(move) if each else Script(move)
        self._pieces = pieces
        self._keep = keep
        self._held: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()

    def environment(self) -> dict[str, str]:
        """Variables that make other programs ask it: providers' base URLs, and keys to go by."""
        google = {"GOOGLE_GEMINI_BASE_URL": self.root_url, "GEMINI_API_KEY": "fake-key"}
        return {**super().environment(), **google}

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """What it was asked, oldest first; only the newest are kept."""
        asked = (one.conversation for one in self.requests)
        return tuple(one for one in asked if one is not None)

    def _protocol_at(self, path: str) -> WireForm | None:
        if path.startswith(("/v1/models/", "/v1beta/models/")) and codec_at(path) is not None:
            return "google"
        return _PATHS.get(path.replace("/v1beta/openai/", "/v1/"))

    def _read(self, protocol: WireForm, request: HttpRequest) -> Asked:
        body = decode_body(request.body)
        if isinstance(body, dict):
            body = addressed(request.path, body)
        asked = self._whole(codec_of(_CODECS[protocol]).read_request(body))
        named = asked.choice not in ("auto", "none", "required")
        return Asked(
            protocol=protocol,
            model=asked.model,
            messages=tuple(
                Said(turn.speaker, _written(turn))
                for turn in asked.turns
                if turn.speaker != "system"
            ),
            system=asked.system,
            schema=asked.schema,
            tool=asked.choice if named else "",
            temperature=asked.temperature,
            headers=without_keys(request.headers),
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

    def _respond(self, asked: Asked) -> Responding:
        fault = self._plan.next(asked)
        if fault is not None and (refused := refusing_response(asked, fault)):
            return refused
        if tokens_of(asked.characters) > self._context_tokens:
            raise overflow(asked)
        conversation = asked.conversation
        assert conversation is not None
        if isinstance(self._move, Script):
            move = self._move.next(is_taken=fault is None or fault.kind == "slow")
        elif isinstance(self._move, _Steps):
            move = self._move.next(conversation)
        else:
            try:
                move = self._move(conversation)
            except Exception as error:  # a test's own function may fail: the caller is told
                raise failed(error) from error
            if inspect.isawaitable(move):
                return self._later(asked, move, fault)
        return self._finish(asked, move, fault)

    async def _later(
        self, asked: Asked, move: Awaitable[object], fault: Fault | None
    ) -> HttpResponse:
        try:
            return self._finish(asked, await move, fault)
        except ProtocolError as error:
            return error_response(asked.protocol, error)
        except Exception as error:  # likewise
            return error_response(asked.protocol, failed(error))

    def _finish(self, asked: Asked, move: object, fault: Fault | None) -> HttpResponse:
        if isinstance(move, Fault):
            if refused := refusing_response(asked, move):
                return refused
            fault, move = move, ""
        conversation = asked.conversation
        assert conversation is not None
        reply = _reply(asked, conversation, move)
        if fault is not None:
            text, ending = spoilt(asked, fault, reply.turn.text)
            if ending == "refusal":
                reply = replace(reply, turn=says(), stop=ending, refusal=text)
            elif ending == "length" or text != reply.turn.text:
                reply = replace(reply, turn=says(text), stop=ending)
        with self._lock:
            talk = (*conversation.turns, reply.turn)
            self._held[reply.id] = tuple(turn for turn in talk if turn.speaker != "system")
            while len(self._held) > self._keep:
                self._held.popitem(last=False)
        codec = codec_of(_CODECS[asked.protocol])
        body = codec.write_reply(reply, conversation)
        if not conversation.is_streamed:
            written, kind = json.dumps(body).encode(), "application/json"
        else:
            wants_usage = conversation.wants_usage
            events = codec.write_stream(body, pieces=self._pieces, wants_usage=wants_usage)
            written, kind = b"".join(events), _EVENTS
        if fault is not None:
            return sent(fault, written, content_type=kind)
        return HttpResponse(body=written, content_type=kind, seconds=self._seconds)


class _Steps:
    """A script that each conversation goes through for itself."""

    def __init__(self, answers: Sequence[object]) -> None:
        Script(answers)  # which refuses what is none
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


def _reply(asked: Asked, conversation: Conversation, move: object) -> Reply:
    """What the model does, with all that a provider adds."""
    given = move if isinstance(move, Reply) else Reply(turn=_turn(asked, move))
    number = asked.index
    parts = tuple(_named(part, number, at) for at, part in enumerate(given.turn.parts))
    turn, is_cut = _cut(Turn("assistant", parts), conversation.max_tokens)
    stop = given.stop
    if is_cut:
        stop = "length"
    elif turn.calls and stop == "stop":
        stop = "tool"
    said = turn.thought + _written(turn)
    usage = Usage(
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
        usage=usage if given.usage == Usage() else given.usage,
        id=given.id or f"{_REPLIES[asked.protocol]}{number}",
        tokens=tokens,
    )


_REPLIES: dict[WireForm, str] = {
    "openai": "chatcmpl-",
    "anthropic": "msg_",
    "responses": "resp_",
    "google": "",
}


def _turn(asked: Asked, move: object) -> Turn:
    if isinstance(move, Turn):
        return move
    if isinstance(move, str | Call):
        return says(move) if move else says()
    text = json.dumps(plain(move), ensure_ascii=False)
    return says(Call("", asked.tool, text)) if asked.tool else says(text)


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
    return "".join(said)


def _tokens(asked: Asked, said: str) -> Tokens:
    """Tokens of four characters each: ids and logarithms by what they say."""
    read = "".join((asked.system, *(one.text for one in asked.messages)))
    ids = _ids(said)
    logprobs = tuple(-(number % 997 + 1) / 1000 for number in ids)
    return Tokens(prompt_ids=_ids(read), output_ids=ids, logprobs=logprobs)


def _ids(text: str) -> tuple[int, ...]:
    cut = (text[at : at + _TOKEN] for at in range(0, len(text), _TOKEN))
    return tuple(zlib.crc32(token.encode("utf-8", "replace")) % _VOCABULARY for token in cut)
