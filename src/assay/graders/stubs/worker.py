"""The processes that read source files of adversaries, so that they can be killed.

Parsers are native code, and some need quadratic time where the text was made for it. One process
loads what they need and forks for each reader, over the socket that it is sent. There, after
``ready``, JSON lines in: ``{"ask": str, "source": base64, "seconds": number, "more": {...}}``. JSON
lines out: ``{"why": str}``, or what `_ASKED` has under that name answers, and ``cpu`` beside it. A
file that takes more CPU seconds than that ends the process: the kernel sees to it.
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
from collections.abc import Callable
from dataclasses import asdict, astuple

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
        started = time.process_time()
        found = _ASKED[request["ask"]](source, **request["more"])
        answer = {"why": found} if isinstance(found, str) else found
        out.write(json.dumps({**answer, "cpu": time.process_time() - started}) + "\n")
        out.flush()


def _python(source: bytes, *, texts: bool) -> dict[str, object] | str:
    from assay.graders.stubs.python import python_code

    code = python_code(source, texts=texts)
    return "does not parse" if code is None else {"code": code}


def _code(source: bytes, *, language: str) -> dict[str, object] | str:
    if language == "python":
        from assay.graders.stubs.python import read_python

        found = read_python(source)
    else:
        from assay.graders.stubs.treesitter import read_tree

        found = read_tree(source, language)
    return found if isinstance(found, str) else {**asdict(found), "names": sorted(found.names)}


def _signs(source: bytes, *, language: str, path: str, own: list[str]) -> dict[str, object] | str:
    """The signs of a file, each place once, and its idle texts; as text, why it cannot be read.

    A file that does not parse has none: it does nothing.
    """
    try:
        if language != "python":
            from assay.graders.signs.other import other_signs

            found = other_signs(source, path, language)
            return {"signs": list(map(astuple, found[:_MOST_SIGNS])), "idle": []}
        from assay.graders.signs import Sign
        from assay.graders.signs.python import python_module, reached
        from assay.graders.signs.python_lies import idle_texts, lies

        module = python_module(source, path, frozenset(own))
        if isinstance(module, str):
            return module or {"signs": [], "idle": []}
        hits = [*reached(module), *lies(module)]
        signs = {Sign(getattr(node, "lineno", 1), name, what[:120]) for name, node, what in hits}
        most = list(map(astuple, sorted(signs)[:_MOST_SIGNS]))
        return {"signs": most, "idle": idle_texts(module)}
    except RecursionError:
        return "is nested too deeply"


_ASKED: dict[str, Callable[..., dict[str, object] | str]] = {
    "code": _code,
    "python": _python,
    "signs": _signs,
}
