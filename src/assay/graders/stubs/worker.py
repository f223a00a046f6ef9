"""The processes that read source files of adversaries, so that they can be killed.

Parsers are native code, and some need quadratic time where the text was made for it. One process
loads what they need and forks for each reader, over the socket that it is sent. There, after
``ready``, JSON lines in: ``{"language": str, "source": base64, "seconds": number}``, and for signs
``"path"`` and ``"own"`` beside them. JSON lines out: ``{"why": str}``, or ``{"code": str}`` for the
language ``python-code``, or ``"signs"`` (line, name, what)
and ``"idle"`` texts, or the fields of `Code`. A file
that takes more CPU seconds than that ends the process: the kernel sees to it.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
from dataclasses import asdict, astuple
from typing import TYPE_CHECKING

from assay.graders.stubs import Code

if TYPE_CHECKING:
    from assay.graders.signs import Sign

__all__ = ["main"]

_MEMORY = 2 * 1024**3
_MOST_SIGNS = 200


def main() -> None:
    """Fork for each socket that arrives, until the program that sends them ends."""
    from assay.graders.signs import python_lies
    from assay.graders.stubs import python

    del python, python_lies  # loaded once, for all that are forked
    for kind, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    gc.disable()  # a syntax tree has no garbage worth looking for, and many nodes to look at
    control = socket.socket(fileno=int(sys.argv[-1]))
    while True:
        found, links, _, _ = socket.recv_fds(control, 1, 1)
        if not found:
            return
        if os.fork() == 0:
            control.close()
            _serve(links[0])
            os._exit(0)
        os.close(links[0])


def _serve(link: int) -> None:
    """Answer requests until there are no more."""
    out = os.fdopen(os.dup(link), "w", encoding="ascii")
    out.write("ready\n")
    out.flush()
    for line in os.fdopen(link, encoding="ascii"):
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        source = base64.b64decode(request["source"])
        if "path" in request:
            answer = _signs(request["language"], source, request["path"], request["own"])
        else:
            answer = _answer(request["language"], source)
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _answer(language: str, source: bytes) -> dict[str, object]:
    started = time.process_time()
    if language in ("python-code", "python-bare"):
        from assay.graders.stubs.python import python_code

        code = python_code(source, texts=language == "python-code")
        answer: dict[str, object] = {"why": "does not parse"} if code is None else {"code": code}
        return {**answer, "cpu": time.process_time() - started}
    found = _read(language, source)
    cpu = time.process_time() - started
    if isinstance(found, str):
        return {"why": found, "cpu": cpu}
    return {**asdict(found), "names": sorted(found.names), "cpu": cpu}


def _signs(language: str, source: bytes, path: str, own: list[str]) -> dict[str, object]:
    started = time.process_time()
    found = _read_signs(source, path, language, frozenset(own))
    cpu = time.process_time() - started
    if isinstance(found, str):
        return {"why": found, "cpu": cpu}
    return {"signs": list(map(astuple, found[0])), "idle": found[1], "cpu": cpu}


def _read_signs(
    source: bytes, path: str, language: str, own: frozenset[str]
) -> tuple[list[Sign], list[str]] | str:
    """The signs of a file, each place once, and its idle texts; as text, why it cannot be read.

    A file that does not parse has none: it does nothing.
    """
    try:
        if language != "python":
            from assay.graders.signs.other import other_signs

            return other_signs(source, path, language)[:_MOST_SIGNS], []
        from assay.graders.signs import Sign
        from assay.graders.signs.python import python_module, reached
        from assay.graders.signs.python_lies import idle_texts, lies

        module = python_module(source, path, own)
        if isinstance(module, str):
            return module or ([], [])
        hits = [*reached(module), *lies(module)]
        found = {Sign(getattr(node, "lineno", 1), name, what[:120]) for name, node, what in hits}
        return sorted(found)[:_MOST_SIGNS], idle_texts(module)
    except RecursionError:
        return "is nested too deeply"


def _read(language: str, source: bytes) -> Code | str:
    if language == "python":
        from assay.graders.stubs.python import read_python

        return read_python(source)
    from assay.graders.stubs.treesitter import read_tree

    return read_tree(source, language)
