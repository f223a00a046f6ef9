"""The judge's talk with the host: one session for each fresh import of the submission."""

from __future__ import annotations

import itertools
import os
import random
import socket
import sys
import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from assay.graders.testing.inside.boundary.wire import (
    GoneError,
    Plain,
    WireError,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_OUTPUT = 8 * 1024 * 1024
_MOST_BYTES = 1024 * 1024 * 1024
_MOST_CONNECTIONS = 2_000
_PATIENCE = 30.0
_KEPT_NAMES = (
    *("ASSAY", "COVERAGE", "HOME", "HYPOTHESIS", "LD_", "NUMPY", "PATH", "PYTEST", "PYTHON"),
    *("TEMP", "TMP", "VIRTUAL_ENV", "XDG"),
)
"""Variables that the judge's own libraries read: the submission does not change them here."""


_MOVES = "changes:cwd"
"""What a case names in ``allow_equality`` that trusts the submission with the working directory."""


class UndecidedError(AssertionError):
    """Only code of the submission could decide."""


class HostDiedError(AssertionError):
    """The process of the submission ended, or did not answer in time."""


class BoundaryError(AssertionError):
    """Something cannot cross the boundary, or must not happen in the judge."""


class State:
    """What is the same for a whole run.

    Attributes:
        root: The judge's tree.
        shared: Beginnings of the paths that the host can write to.
        seconds: How long a call may take.
        allowed: What of the submission may decide (``allow_equality``).
        fresh: ``module`` or ``test``: how often the submission is imported anew.
        report: Takes what would have had to be allowed.
        failures: Why the running test cannot pass, whatever was done with the exception.
        failing: Exceptions by which a test fails, for good.
        never: Exceptions that the submission cannot raise in the judge.
        sessions: By test module.
        current: The test module that is imported or tested.
        handles: Objects of the tests that the host has a number of.
        raised: Exceptions of the tests that went over.
        patches: What tests patch at the moment in modules that both sides have.
        make: Makes a session.
        is_testing: Whether a test runs, and no module is imported.
        borrowed: What the variables that the submission changed were before.
    """

    def __init__(self) -> None:
        self.root = ""
        self.shared: tuple[str, ...] = ()
        self.seconds = 60.0
        self.allowed: frozenset[str] = frozenset()
        self.fresh = "module"
        self.report: Callable[[str], None] = lambda _: None
        self.failures: list[BaseException] = []
        self.failing: tuple[type[BaseException], ...] = (AssertionError,)
        self.never: tuple[type[BaseException], ...] = ()
        self.sessions: dict[str, Talk] = {}
        self.current = ""
        self.handles: dict[int, Any] = {}
        self.raised: dict[int, BaseException] = {}
        self.patches: list[tuple[str, list[str], str, object]] = []
        self.make: Callable[[], Talk] = Talk
        self.random = random.SystemRandom()
        self.loops: dict[int, Any] = {}
        self.lock = threading.RLock()
        self.count = 0
        self._numbers: dict[int, int] = {}
        self._ticks = itertools.count()
        self.is_testing = False
        self.borrowed: dict[str, str | None] = {}

    def give_back(self) -> None:
        """Undo what the submission did to the judge's environment."""
        for name, text in self.borrowed.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text
        for talk in self.sessions.values():
            talk.keep_environment(self.borrowed)
        self.borrowed.clear()

    def tick(self) -> int:
        """A number greater than all before."""
        return next(self._ticks)

    def number(self, value: Any) -> int:
        """The number by which the host knows an object of the tests."""
        with self.lock:
            number = self._numbers.get(id(value))
            if number is None:
                number = self._numbers[id(value)] = len(self.handles) + 1
                self.handles[number] = value
            return number

    def is_ours(self, path: str) -> bool:
        """Whether a path lies in the judge's tree or where the host can write."""
        return path == self.root or path.startswith((f"{self.root}{os.sep}", *self.shared))

    def is_shared(self, path: str) -> bool:
        """Whether the host can write to a path."""
        return path.startswith(self.shared)

    def is_test_code(self, path: str) -> bool:
        """Whether a code object's file is one of the author's."""
        return path.startswith(f"{self.root}{os.sep}")


def fail(error: BaseException) -> BaseException:
    """Note why the running test cannot pass, whatever catches the exception."""
    state.failures.append(error)
    return error


def undecided(label: str, what: str, entry: str = "") -> BaseException:
    """What to raise where the submission would decide."""
    entry = entry or label
    state.report(entry)
    text = f"{what} is decided by code of {label} alone; a case may trust it: allow_equality"
    return fail(UndecidedError(f"{text}: [{entry}]"))


class Ref:
    """Which object of the host something stands for.

    What is reached by name from a module is looked up anew in every session, so that a test may
    go on using what its module imported.
    """

    __slots__ = ("number", "path", "steps", "talk")

    def __init__(self, talk: Talk, number: int, path: tuple[str, ...] | None = None) -> None:
        self.talk = talk
        self.number = number
        self.path = path
        self.steps = False  # whether it makes a generator go on, and so may end it

    def home(self) -> Any:
        """The session in which it is to be used now."""
        return self.talk if self.path is None else current()

    def node(self) -> list[Any]:
        """How the host is told of it."""
        if self.path is None or self.home() is self.talk:
            return ["R", self.number]
        return ["P", self.path[0], list(self.path[1:])]

    @property
    def label(self) -> str:
        """Its name, for people and for what a case allows."""
        return ".".join(self.path) if self.path else "a call"


class Kind(type):
    """What the classes of stand-ins are; see `stands`."""


def ref_of(value: Any) -> Ref | None:
    """What a stand-in stands for; None for anything else."""
    if isinstance(value, type):
        return type.__getattribute__(value, "__dict__").get("_assay_kind")
    if isinstance(type(value), Kind) or isinstance(value, BaseException):
        space = object.__getattribute__(value, "__dict__")
        if "_assay" not in space and "_assay_made" in space:
            kind, arguments, named = space["_assay_made"]
            the_ref(kind).home().build(value, the_ref(kind), arguments, named)
        return space.get("_assay")
    return None


def the_ref(value: Any) -> Ref:
    """What a stand-in stands for.

    Raises:
        BoundaryError: If it stands for nothing.
    """
    ref = ref_of(value)
    if ref is None:
        raise fail(BoundaryError(f"a {type(value).__name__} of the submission was not made by it"))
    return ref


def forward(value: Any, name: str, *arguments: Any) -> Any:
    """Have the host use an operator."""
    ref = the_ref(value)
    talk = ref.home()
    return talk.decode(talk.operate(ref, name, *arguments))


def count(found: Any) -> int:
    """A length that the host told."""
    if type(found) is not int:
        raise WireError("a length is not a number")
    return found


def length_of(value: Any) -> int:
    """How long the host says something is."""
    return count(forward(value, "__len__"))


def current() -> Any:
    """The session of the module that is being imported or tested."""
    talk = state.sessions.get(state.current)
    if talk is None:
        # Known before it is used: what it is told first may lead back here.
        talk = state.make()
        state.sessions[state.current] = talk
        talk.greet()
    return talk


class Talk(Plain):
    """One fresh import of the submission: its connections, and the rules of the conversation.

    Attributes:
        number: Its number.
        dead: Why there is nobody to talk to any more; empty while there is.
        changes: Counts what may have changed in the host.
    """

    def __init__(self) -> None:
        with state.lock:
            state.count += 1
            self.number = state.count
        self.dead = ""
        self.changes = 0
        self._local = threading.local()
        self._lock = threading.RLock()
        self._threads = 0
        self._told: dict[str, Any] = {}
        self._output = _MOST_OUTPUT
        self._bytes = _MOST_BYTES
        try:
            doors.tell(["fork", self.number])
            self._local.link = self._link = doors.wait("session", self.number)
            self._door = doors.wait("door", self.number)
        except GoneError:
            raise fail(HostDiedError("the process of the solution did not start")) from None

    def greet(self) -> None:
        """Tell the host what the tests have patched."""
        for module, path, name, value in list(state.patches):
            self.request("patch", module, path, name, self.encode(value))

    def _lane(self) -> socket.socket:
        """The connection of this thread."""
        link = getattr(self._local, "link", None)
        if link is None:
            with self._lock:
                self._threads += 1
                send(self._door, ["thread", self._threads])
                link = self._local.link = doors.wait("thread", self.number, self._threads)
        return link

    def request(self, op: str, *parts: Any) -> Any:
        """Ask the host, serve it until it answers, and give back what it said, still encoded.

        Raises:
            HostDiedError: If it ended, or does not answer in time.
        """
        if self.dead:
            raise fail(HostDiedError(self.dead))
        error: BaseException | None = None
        try:
            message = self._exchange([op, self._news(), *parts])
            self.changes += 1
            self._take_environment(message[2:])
            self._take_place(message[3:])
            if message[0] == "ok":
                return message[1]
            error = self._raised(message[1])
        except TimeoutError:
            self.end(f"the solution did not answer within {state.seconds:g} s")
        except GoneError:
            self.end("the process of the solution ended")
        except (WireError, IndexError) as why:
            self.end(f"the process of the solution sent what makes no sense: {why}")
        except OSError as why:
            self.end(f"the connection to the solution broke: {why}")
        raise error or fail(HostDiedError(self.dead))

    def _exchange(self, message: list[Any]) -> list[Any]:
        """Send a request, and serve the host until it answers."""
        deadline = time.monotonic() + state.seconds
        link = self._lane()
        send(link, message)
        while True:
            answer = self._receive(link, deadline)
            if answer[0] in ("ok", "raise"):
                return answer
            self.answer(link, answer)

    def _receive(self, link: socket.socket, deadline: float) -> list[Any]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        link.settimeout(left)
        message, size = receive(link, deadline)
        self._bytes -= size
        if self._bytes < 0:
            raise WireError("it has sent more than is read")
        return message

    def end(self, why: str) -> None:
        """Talk to the host no more."""
        self.dead = self.dead or why
        for link in (self._link, self._door, getattr(self._local, "link", self._link)):
            link.close()

    def _raised(self, node: Any) -> BaseException:
        if type(node) is not list or not node or node[0] not in ("e", "J"):
            raise WireError("an exception makes no sense")
        error = self.decode(cast("list[Any]", node))
        if not isinstance(error, BaseException):
            raise WireError("an exception makes no sense")
        if isinstance(error, state.never):
            return fail(BoundaryError(f"the solution raised {type(error).__name__}"))
        if error in state.failures:
            state.failures.remove(error)  # it comes back to the test that raised it
        return error.with_traceback(None)

    def _news(self) -> dict[str, Any]:
        """What has changed around the tests since the host was told."""
        found: dict[str, Any] = {"environ": _environment()}
        try:
            place = found["cwd"] = os.getcwd()
        except OSError:
            place = ""
        path = [entry or place for entry in sys.path if state.is_ours(entry or place)]
        found["path"] = path
        found = {name: value for name, value in found.items() if self._told.get(name) != value}
        before: dict[str, str] = self._told.get("environ", {})
        self._told.update(found)
        if "environ" in found:
            gone = dict.fromkeys(before.keys() - found["environ"].keys())
            new = {n: text for n, text in found["environ"].items() if before.get(n) != text}
            found["environ"] = {**gone, **new}
        return found

    def _take_environment(self, rest: list[Any]) -> None:
        """Follow the host in variables that are nobody's but the solution's and the tests'.

        Until the test ends: what another test is skipped for, the submission does not say.
        """
        changed: Any = rest[0] if rest else None
        if type(changed) is not dict or not state.is_testing:
            return
        for name, text in cast("dict[str, Any]", changed).items():
            if not name or name.startswith(_KEPT_NAMES) or "\0" in name or "=" in name:
                continue
            state.borrowed.setdefault(name, os.environ.get(name))
            if text is None:
                os.environ.pop(name, None)
            elif type(text) is str and "\0" not in text:
                os.environ[name] = text
        self._told["environ"] = _environment()

    def keep_environment(self, names: Iterable[str]) -> None:
        """Leave the host its variables of some names as they are."""
        told: dict[str, str] = self._told.setdefault("environ", {})
        for name in names:
            told.pop(name, None)
            if name in os.environ:
                told[name] = os.environ[name]

    def _take_place(self, rest: list[Any]) -> None:
        """Follow the host to another working directory, if the case trusts it with that.

        What a test then opens by a relative path can be a file of the submission's.
        """
        place: Any = rest[0] if rest else ""
        if type(place) is not str or not place or not state.is_ours(os.path.realpath(place)):
            return
        if _MOVES not in state.allowed:
            state.report(_MOVES)
            return
        try:
            os.chdir(place)
            self._told["cwd"] = os.getcwd()
        except OSError:
            return

    def answer(self, link: socket.socket, message: list[Any]) -> None:
        """Do what the host asks while it works for us: write its output, call a handle."""
        kind, *rest = message
        if kind == "out":
            self._write(*rest)
        elif kind == "log":
            self._log(*rest)
        elif kind == "ask":
            send(link, self._reply(rest))
        else:
            raise WireError("a message of an unknown kind")

    def _reply(self, question: list[Any]) -> list[Any]:
        op, *parts = question
        values = [self.decode(part) for part in parts]
        try:
            return ["ok", self.encode(self.grant(op, values))]
        except (WireError, GoneError):
            raise
        except BaseException as error:
            if isinstance(error, state.failing) and error not in state.failures:
                fail(error)  # what the host makes of it does not matter
            return ["raise", self.encode(error)]

    def grant(self, op: str, values: list[Any]) -> Any:
        """Do what the host asks for."""
        raise WireError(f"nobody does {op!r}")

    def _write(self, descriptor: Any, text: Any) -> None:
        if type(text) is str and self._output > 0:
            self._output -= len(text)
            (sys.stdout if descriptor == 1 else sys.stderr).write(text)

    def _log(self, name: Any, level: Any, text: Any) -> None:
        import logging

        if type(name) is str and type(level) is int and type(text) is str and self._output > 0:
            self._output -= len(text)
            logger = logging.getLogger(name)
            if logger.isEnabledFor(level):
                logger.handle(logger.makeRecord(name, level, "the solution", 0, text, (), None))


def _environment() -> dict[str, str]:
    found = dict(os.environ)
    found.pop("PYTEST_CURRENT_TEST", None)
    return found


class Doors:
    """The connections of the host, sorted by what each says it is for."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, ...], socket.socket] = {}
        self._arrived = threading.Condition()

    def open(self, listener: socket.socket) -> bool:
        """Begin to take connections; whether the host is there."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        try:
            self._control = self.wait("hello")
        except GoneError:
            return False
        return True

    def tell(self, message: list[Any]) -> None:
        """Ask the process that forks for something."""
        send(self._control, message)

    def wait(self, *key: Any) -> socket.socket:
        """Wait for a connection.

        Raises:
            GoneError: If it does not come.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: key in self._waiting, _PATIENCE):
                raise GoneError("the process of the solution did not connect")
            return self._waiting.pop(key)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_MOST_CONNECTIONS):
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(link,), daemon=True).start()

    def _greet(self, link: socket.socket) -> None:
        link.settimeout(5.0)
        try:
            message, _ = receive(link, time.monotonic() + 5.0)
        except (WireError, OSError):
            link.close()
            return
        link.settimeout(None)
        if not all(type(part) is int for part in message[1:]):
            link.close()
        elif message[0] == "lane":
            self._serve(link, message[1:])
        else:
            with self._arrived:
                self._waiting.setdefault(tuple(message), link)
                self._arrived.notify_all()

    def _serve(self, link: socket.socket, about: list[Any]) -> None:
        """Answer a thread of the host's."""
        talk = next((one for one in list(state.sessions.values()) if [one.number] == about), None)
        try:
            while talk is not None and not talk.dead:
                message, _ = receive(link, None)
                talk.answer(link, message)
        except (WireError, OSError, TypeError):
            pass
        link.close()


def is_authors(value: Any) -> bool:
    """Whether a class or function was made by the tests."""
    if value.__module__ in sys.builtin_module_names:
        return False
    module = sys.modules.get(value.__module__ or "")
    place = module and getattr(module, "__file__", None)
    return not place or state.is_ours(os.path.abspath(place))


def is_module_of_both(value: object) -> bool:
    """Whether it is a module that judge and host have alike."""
    if type(value) is not ModuleType:
        return False
    place = getattr(value, "__file__", None)
    return not place or not state.is_ours(os.path.abspath(place))


doors = Doors()
state = State()
