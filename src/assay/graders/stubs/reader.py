"""Our side of the process that reads source files."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

from assay.errors import GraderError
from assay.graders.signs import Sign
from assay.graders.stubs import Body, Code, Function
from assay.scoring.json_safe import Json

__all__ = ["SourceReader"]


_CPU_SECONDS = 10.0
"""What one file may take."""


class SourceReader:
    """Reads source files in a process of its own, which a file may kill and no more than that.

    Use it as a context manager. It blocks: call it in a thread.

    Attributes:
        spent: CPU seconds that files have taken so far.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
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
        """Read a file; as text, why it cannot be read.

        Raises:
            GraderError: If the process cannot be started or does not work at all.
        """
        answer = self._ask(source, language)
        return answer if isinstance(answer, str) else _code(answer)

    def python_code(self, source: bytes, *, texts: bool = True) -> str | None:
        """A Python file without comments and statements that do nothing; None if it is not Python.

        Raises:
            GraderError: If the process cannot be started.
        """
        answer = self._ask(source, "python-code" if texts else "python-bare")
        return None if isinstance(answer, str) else str(answer["code"])

    def signs(
        self, source: bytes, language: str, *, path: str, own: Iterable[str]
    ) -> tuple[list[Sign], list[str]] | str:
        """The signs in a file that it speaks to its judge, and texts that do nothing in it.

        Raises:
            GraderError: If the process cannot be started.
        """
        answer = self._ask(source, language, {"path": path, "own": list[Json](own)})
        if isinstance(answer, str):
            return answer
        signs = [Sign(*found) for found in cast("list[tuple[int, str, str]]", answer["signs"])]
        return signs, cast("list[str]", answer["idle"])

    def _ask(
        self, source: bytes, language: str, more: Mapping[str, Json] | None = None
    ) -> dict[str, Json] | str:
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        request = {
            "language": language,
            "source": base64.b64encode(source).decode(),
            "seconds": _CPU_SECONDS,
            **(more or {}),
        }
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self._close()
            self.spent += _CPU_SECONDS
            return "takes too long or too much memory to read"
        answer = cast("dict[str, Json]", json.loads(line))
        self.spent += cast("float", answer["cpu"])
        return str(answer["why"]) if "why" in answer else answer

    def _start(self) -> None:
        try:
            # -P: the working directory must not shadow what the process imports.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "assay.graders.stubs.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GraderError(f"the reader of source files did not start: {error}") from error
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self._close()
            raise GraderError("the reader of source files did not start")

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process, suppress(OSError):
                process.wait()


def _code(answer: Mapping[str, Json]) -> Code:
    functions = cast("list[dict[str, Json]]", answer["functions"])
    bases = cast("dict[str, list[str]]", answer["bases"])
    return Code(
        functions=tuple(_function(function) for function in functions),
        bases={name: tuple(above) for name, above in bases.items()},
        names=frozenset(cast("list[str]", answer["names"])),
        fingerprint=str(answer["fingerprint"]),
        substance=answer["substance"] is True,
    )


def _function(fields: Mapping[str, Json]) -> Function:
    return Function(
        name=str(fields["name"]),
        line=cast("int", fields["line"]),
        body=cast("Body", fields["body"]),
        inputs=fields["inputs"] is True,
        fingerprint=str(fields["fingerprint"]),
        owner=str(fields["owner"]),
        abstract=fields["abstract"] is True,
        hook=fields["hook"] is True,
        template=fields["template"] is True,
    )
