"""What all fake models share: where they are, what they were asked, and what goes wrong."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import Self

from assay.errors import InputError
from assay.models.protocols import ProtocolError
from assay.testing.asked import Asked, WireForm, models_body
from assay.testing.faults import FaultPlan, Faults, HttpResponse, error_response
from assay.testing.http_server import HttpRequest, HttpServer

Responding = HttpResponse | Awaitable[HttpResponse]


class FakeServer(ABC):
    """A model that answers as it is told, on a thread of its own.

    Attributes:
        count: How many were asked, those that met a fault included.
    """

    def __init__(
        self,
        *,
        faults: Faults,
        model: str,
        host: str,
        port: int,
        seconds: float,
        context_tokens: int,
        seed: int,
        keep: int,
    ) -> None:
        self.model_name = model
        self.count = 0
        self._plan = FaultPlan(faults, seed=seed)
        self._seconds = seconds
        self._context_tokens = context_tokens
        self._requests: deque[Asked] = deque(maxlen=keep)
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

    def environment(self) -> dict[str, str]:
        """Variables that make other programs ask it: providers' base URLs, and keys to go by."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": "fake-key",
            "ANTHROPIC_BASE_URL": self.root_url,
            "ANTHROPIC_API_KEY": "fake-key",
        }

    def _handle(self, request: HttpRequest) -> Responding:
        if request.method == "GET" and request.path == "/v1/models":
            return HttpResponse(body=json.dumps(models_body(self.model_name)).encode())
        protocol = self._protocol_at(request.path)
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

    @abstractmethod
    def _protocol_at(self, path: str) -> WireForm | None:
        """The protocol that is spoken at a path."""

    @abstractmethod
    def _read(self, protocol: WireForm, request: HttpRequest) -> Asked:
        """Read a request.

        Raises:
            ProtocolError: If it is none.
        """

    @abstractmethod
    def _respond(self, asked: Asked) -> Responding:
        """Answer a request.

        Raises:
            ProtocolError: If it is refused.
        """


class Script:
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


def failed(error: Exception) -> ProtocolError:
    """The error that tells of an answer function's own; not one that is tried again."""
    return ProtocolError(400, f"the answer function failed: {type(error).__name__}: {error}")
