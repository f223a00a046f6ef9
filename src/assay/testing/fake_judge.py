"""`FakeJudge`: a model on this machine that answers as it is told, over a real socket."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

from assay.models.protocols import ProtocolError
from assay.scoring.json_safe import Json, plain
from assay.testing.asked import Asked, WireForm, read_request, tokens_of
from assay.testing.faults import (
    Fault,
    Faults,
    HttpResponse,
    error_response,
    faulty_response,
    overflow,
    reply_response,
)
from assay.testing.heuristic import heuristic_verdict
from assay.testing.http_server import HttpRequest
from assay.testing.serving import FakeServer, Responding, Script, failed

Answer: TypeAlias = "Sequence[object] | Callable[[Asked], object] | None"
"""Who answers: None for the heuristic judge, a script of texts, JSON and `Fault`s in order, or a
function or coroutine function that gives text or JSON."""

_PATHS: dict[str, WireForm] = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
}


class FakeJudge(FakeServer):
    """A model that answers as it is told: OpenAI's chat completions and Anthropic's messages.

    It listens on this machine, on a thread of its own, so that it serves tests with and without an
    event loop, and other processes::

        with FakeJudge(['{"verdict": "MET"}']) as fake:
            client = openai.OpenAI(base_url=fake.base_url, api_key="any")

    Args:
        answer: See `Answer`. A text is sent as it is, anything else as JSON. None is the heuristic
            judge: it grades by simple rules, and obeys any order that stands outside fences.
        faults: What goes wrong with which requests. A request that meets a fault takes nothing
            off a script, unless it was merely slow.
        model: What the model is called. Every model asked for is answered.
        host: Where to listen: this machine only, unless it is told otherwise.
        port: 0 for a free one.
        seconds: Time that each reply takes.
        context_tokens: More than this, at four characters each, are refused as too long.
        seed: Random seed for faults with a probability.
        keep: How many of the newest requests `requests` holds.

    Raises:
        InputError: For an unknown fault.

    Attributes:
        count: How many were asked, those that met a fault included.
    """

    def __init__(
        self,
        answer: Answer = None,
        *,
        faults: Faults = None,
        model: str = "fake-judge",
        host: str = "127.0.0.1",
        port: int = 0,
        seconds: float = 0.0,
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
        told = heuristic_verdict if answer is None else answer
        self._answer = told if callable(told) else Script(told)

    def _protocol_at(self, path: str) -> WireForm | None:
        return _PATHS.get(path)

    def _read(self, protocol: WireForm, request: HttpRequest) -> Asked:
        try:
            body = cast("Json", json.loads(request.body))
        except ValueError:
            raise ProtocolError(400, "the body is not JSON") from None
        return read_request(protocol, body, request.headers, index=self.count)

    def _respond(self, asked: Asked) -> Responding:
        fault = self._plan.next(asked)
        if fault is not None and fault.kind.isdecimal():
            return faulty_response(asked, fault, "")
        if tokens_of(asked.characters) > self._context_tokens:
            raise overflow(asked)
        answer = self._answer
        if callable(answer):
            return self._told(asked, answer, fault)
        reply = answer.next(is_taken=fault is None or fault.kind == "slow")
        if isinstance(reply, Fault):
            return faulty_response(asked, reply, "")
        return self._finish(asked, reply, fault)

    def _finish(self, asked: Asked, reply: object, fault: Fault | None) -> HttpResponse:
        text = reply if isinstance(reply, str) else json.dumps(plain(reply), ensure_ascii=False)
        if fault is not None:
            return faulty_response(asked, fault, text)
        return reply_response(asked, text, seconds=self._seconds)

    def _told(
        self,
        asked: Asked,
        answer: Callable[[Asked], object],
        fault: Fault | None,
    ) -> HttpResponse | Awaitable[HttpResponse]:
        try:
            reply = answer(asked)
        except Exception as error:  # a test's own function may fail in any way: the caller is told
            raise failed(error) from error
        if not inspect.isawaitable(reply):
            return self._finish(asked, reply, fault)
        return self._told_later(asked, cast("Awaitable[object]", reply), fault)

    async def _told_later(
        self, asked: Asked, reply: Awaitable[object], fault: Fault | None
    ) -> HttpResponse:
        try:
            return self._finish(asked, await reply, fault)
        except Exception as error:  # likewise
            return error_response(asked.protocol, failed(error))
