"""The solution's side: imports the submission and answers what the judge asks.

One process waits, and forks for each session, so that what a session imports and changes is its
own. Nothing here is trusted: it shares its process with the submission, and the judge believes of
what it says only what it can decide on itself.
"""

from __future__ import annotations

import importlib.machinery
import io
import os
import signal
import sys
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "assay.graders.testing.inside.boundary"
if __name__ == "__main__":
    # The files beside this one are found by their names, and no other way into assay is there.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    for _end in [at for at, letter in enumerate(f"{_PACKAGE}.") if letter == "."]:
        sys.modules[_PACKAGE[:_end]] = types.ModuleType(_PACKAGE[:_end])
        sys.modules[_PACKAGE[:_end]].__path__ = [_HERE] if _end == len(_PACKAGE) else []
from assay.graders.testing.inside.boundary import host_objects, host_side, wire  # noqa: E402

_MOST_AT_ONCE = 4 * 1024 * 1024
_LIBRARY = frozenset(
    # The second half is what those of the first import.
    "asyncio base64 concurrent copy dataclasses decimal fractions inspect ipaddress json logging "
    "pathlib pickle platform queue random selectors shutil socket ssl subprocess tempfile typing "
    "urllib uuid warnings array ast bisect bz2 contextvars dis fnmatch heapq linecache locale lzma "
    "ntpath numbers opcode string textwrap token tokenize traceback weakref zlib".split()
)
_HOME = os.path.dirname(os.__file__)
_PLAIN = wire.Plain()


class Output:
    """What the process writes to a descriptor, in a file without a name until the judge is told."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        place = f"/tmp/{os.urandom(8).hex()}"  # noqa: S108 - no directory that both sides have
        writer = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._reader = os.open(place, os.O_RDONLY)
        os.unlink(place)
        os.dup2(writer, descriptor)
        os.close(writer)

    def take(self) -> str:
        """What was written since the last time, or a part of it."""
        return os.read(self._reader, _MOST_AT_ONCE).decode("utf-8", "replace")


def _door(session: host_side.HostSide) -> None:
    """Open a further lane whenever the judge wants to speak from another thread."""
    door = host_side.connect(["door", session.number])
    while True:
        try:
            message, _ = wire.receive(door)
        except (wire.GoneError, OSError):
            return
        link = host_side.connect(["thread", session.number, message[1]])
        threading.Thread(target=session.serve_all, args=(link,), daemon=True).start()


def _forward_warnings(session: host_side.HostSide) -> None:
    """Let the filters of the judge decide on the warnings of the solution."""
    import warnings

    def show(message: Any, category: Any, filename: Any, lineno: Any, *_: Any) -> None:
        is_own = isinstance(message, category) and category.__module__ != "builtins"
        text = message if is_own else str(message)
        if "use of fork()" not in str(text):  # ours; see `HostSide.do_fork`
            session.ask("warn", 0, text, category, str(filename), int(lineno))

    warnings.simplefilter("always")
    warnings.showwarning = show


def _find_libraries(session: host_side.HostSide) -> None:
    """Find what most programs import in Python's library, whatever the submission has.

    To import it beforehand would take longer than all the rest of a host.
    """

    def find_spec(name: str, *_: object) -> Any:
        if name not in _LIBRARY:
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, [_HOME, f"{_HOME}/lib-dynload"])
        if name == "logging" and spec is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                _forward_logs(module, session)

            spec.loader.exec_module = exec_module
        return spec

    finder: Any = types.SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, finder)


def _forward_logs(logging: Any, session: host_side.HostSide) -> None:
    usual = {*vars(logging.makeLogRecord({})), "message", "asctime"} - {"funcName", "module"}

    class Forward(logging.Handler):
        def emit(self, record: Any) -> None:
            link = getattr(session.local, "link", None)
            if link is None:
                return
            kind, error, _ = record.exc_info or (None, None, None)
            trace = self.formatter.formatException(record.exc_info) if kind else ""
            raised = [session.class_of(kind), str(error), trace] if kind else []
            more: dict[str, Any] = {}
            for name, value in vars(record).items():
                try:
                    more |= {} if name in usual else {name: _PLAIN.encode(value)}
                except wire.WireError:
                    continue  # an object says nothing there
            # A level of its own is below the root's, which lets all pass here.
            is_chosen = logging.getLogger(record.name).getEffectiveLevel() > 1
            said = [is_chosen, raised, more, record.getMessage()]
            wire.send(link, ["log", record.name, record.levelno, *said])

    forward = Forward()
    forward.setFormatter(logging.Formatter())
    logging.getLogger().addHandler(forward)
    logging.getLogger().setLevel(1)


def _serve(number: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    session = host_side.HostSide(number)
    host_objects.CURRENT[:] = [session]
    session.outputs = (Output(1), Output(2))
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(descriptor, "w", closefd=False)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "replace", write_through=True))
    sys.modules["__main__"] = types.ModuleType("__main__")
    _forward_warnings(session)
    if "logging" in sys.modules:
        _forward_logs(sys.modules["logging"], session)
    _find_libraries(session)
    link = host_side.connect(["session", number])
    threading.Thread(target=_door, args=(session,), daemon=True).start()
    session.serve_all(link)


def main() -> None:
    """Wait for the judge, and fork for each session that it asks for."""
    os.environ.pop("ASSAY_LINK", None)
    for name in list(sys.modules):  # the submission may have a package of our name
        if f"{_PACKAGE}.".startswith(f"{name}.") or name.startswith(f"{_PACKAGE}."):
            del sys.modules[name]
    sys.dont_write_bytecode = True
    control = host_side.connect(["hello"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            message, _ = wire.receive(control)
        except (wire.GoneError, OSError):
            os._exit(0)
        if os.fork() == 0:
            control.close()
            os.setsid()
            _serve(int(message[1]))
            os._exit(0)


if __name__ == "__main__":
    main()
