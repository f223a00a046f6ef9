"""Our side of the process that reads source files."""

from __future__ import annotations

import atexit
import base64
import json
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from assay.errors import GraderError
from assay.graders.signs import Sign
from assay.graders.stubs import Code, Function
from assay.scoring.json_safe import Json
from assay.warm_process import WarmProcess

_CPU_SECONDS = 10.0
"""What one file may take."""

_TRIES = 2

_PACKAGES = Path(__file__).parents[2]
# Loads modules by their full names, but runs no `__init__` of assay's: what grades is not needed.
# -P: the working directory must not shadow what the process imports.
_START = """
import sys
for name, path in ("assay", sys.argv[1]), ("assay.graders", sys.argv[1] + "/graders"):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [path]
from assay.graders.stubs.worker import main
main()
"""


class ReaderTemplate(WarmProcess):
    """The process that forks readers."""

    def _words(self, descriptor: int) -> list[str]:
        return [sys.executable, "-P", "-c", _START, str(_PACKAGES), str(descriptor)]

    def fork(self) -> socket.socket | None:
        """The socket of a new reader that has said that it is ready; None if it died."""
        with self._lock:
            control = self._connect()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(control, [b"r"], [theirs.fileno()])
            is_ready = ours.recv(6, socket.MSG_WAITALL) == b"ready\n"
        except OSError:
            is_ready = False
        if is_ready:
            return ours
        ours.close()
        with self._lock:
            if self._control is control:
                self._end()
        return None


TEMPLATE = ReaderTemplate()
atexit.register(TEMPLATE.close)


class SourceReader:
    """Reads source files in a process of its own, which a file may kill and no more than that.

    Use it as a context manager. It blocks: call it in a thread.
    """

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self.spent = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def read(self, source: bytes, language: str) -> Code | str:
        """Read a file; as text, why it cannot be read."""
        answer = self._ask("code", source, language=language)
        return answer if isinstance(answer, str) else _code(answer)

    def python_code(self, source: bytes, *, texts: bool = True) -> str | None:
        """A Python file without comments and statements that do nothing; None if not Python."""
        answer = self._ask("python", source, texts=texts)
        return None if isinstance(answer, str) else str(answer["code"])

    def signs(
        self, source: bytes, language: str, *, path: str, own: Iterable[str]
    ) -> tuple[list[Sign], list[str]] | str:
        """The signs in a file that it speaks to its judge, and texts that do nothing in it."""
        answer = self._ask("signs", source, language=language, path=path, own=list[Json](own))
        if isinstance(answer, str):
            return answer
        signs = [Sign(*found) for found in cast("list[tuple[int, str, str]]", answer["signs"])]
        return signs, cast("list[str]", answer["idle"])

    def _ask(self, ask: str, source: bytes, **more: Json) -> dict[str, Json] | str:
        link = self._link = self._link or self._start()
        request = {
            "ask": ask,
            "source": base64.b64encode(source).decode(),
            "seconds": _CPU_SECONDS,
            "more": more,
        }
        try:
            link.sendall(json.dumps(request).encode() + b"\n")
            with link.makefile("rb") as answers:
                line = answers.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self._close()
            self.spent += _CPU_SECONDS
            return "takes too long or too much memory to read"
        answer = cast("dict[str, Json]", json.loads(line))
        self.spent += cast("float", answer["cpu"])
        return str(answer["why"]) if "why" in answer else answer

    def _start(self) -> socket.socket:
        try:
            for _ in range(_TRIES):
                if link := TEMPLATE.fork():
                    return link
        except OSError as error:
            raise GraderError(f"the reader of source files did not start: {error}") from error
        raise GraderError("the reader of source files did not start")

    def _close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


def _code(answer: Mapping[str, Json]) -> Code:
    functions = cast("list[dict[str, Any]]", answer["functions"])
    bases = cast("dict[str, list[str]]", answer["bases"])
    return Code(
        functions=tuple(Function(**function) for function in functions),
        bases={name: tuple(above) for name, above in bases.items()},
        names=frozenset(cast("list[str]", answer["names"])),
        fingerprint=str(answer["fingerprint"]),
        substance=answer["substance"] is True,
    )
