"""The judge's talk with the host: one session for each fresh import of the submission."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import socket
import sys
import threading
import time
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary.wire import (
    GoneError,
    Plain,
    WireError,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

_MOST_OUTPUT = 8 * 1024 * 1024
_MOST_BYTES = 1024 * 1024 * 1024
_MOST_LANES = 2_000
_GREETING = 1.0
_PATIENCE = 30.0
_MOST_WAITING = 256
_LOOKS = ("get", "names", "base", "kind", "signature", "fork")


class UndecidedError(AssertionError):
    """Only code of the submission could decide."""


class HostDiedError(AssertionError):
    """The process of the submission ended, or did not answer in time."""


class BoundaryError(AssertionError):
    """Something cannot cross the boundary, or must not happen in the judge."""


class State:
    """What is the same for a whole run, and what is known of the test that runs."""

    def __init__(self) -> None:
        # What was told when it began.
        self.root = ""  # the judge's tree
        self.shared: tuple[str, ...] = ()  # beginnings of the paths that the host can write to
        self.seconds = 60.0  # how long a call may take
        self.allowed: frozenset[str] = frozenset()  # classes that may decide (`allow_equality`)
        self.needs: dict[str, frozenset[str]] = {}  # of the reference, by test; see `contract`
        self.learns = False  # whether the reference is being proven
        self.seed = ""  # of the near misses
        self.fresh = "module"  # or ``test``: how often the submission is imported anew
        self.tell: Callable[..., None] = lambda *_: None  # takes an event's name and its parts
        self.make: Callable[[], Talk] = Talk  # makes a session
        # Exceptions by which a test fails for good, and those that no submission can raise here.
        self.failing: tuple[type[BaseException], ...] = (AssertionError,)
        self.never: tuple[type[BaseException], ...] = ()
        # What the host has of the tests: objects by number, and by which calls it got them.
        self.handles: dict[int, Any] = {}
        self.handed: dict[int, tuple[list[str], str]] = {}  # and in which test
        self.raised: dict[int, BaseException] = {}
        self.patches: list[tuple[str, list[str], str, object]] = []  # in modules of both sides
        self.loops: dict[int, Any] = {}  # the event loop of the tests, by its thread
        # What runs.
        self.sessions: dict[str, Talk] = {}  # by test module
        self.current = ""  # the test module that is imported or tested
        self.test = ""  # the test function, without parameters; empty for what runs outside
        self.running = ""  # the one that was begun last, also while what is shared is torn down
        # What is known of the test.
        self.failures: list[BaseException] = []  # why it cannot pass, whatever caught them
        self.hints: dict[str, str] = {}  # what explains that it fails: entry to sentence
        self.leaves: dict[str, bool] = {}  # whether what came by each trail held anything
        self.called: set[str] = set()  # the trails of the callbacks that were called
        self.unmade: list[Any] = []  # recipes of what it made and the host was not told
        self.lock = threading.RLock()
        self._numbers: dict[int, int] = {}

    def need(self, test: str, entry: str) -> None:
        """Write down what the reference needs."""
        self.tell("needs", entry, test)

    def undecided(self, entry: str) -> None:
        """Tell what would have had to be permitted."""
        self.tell("undecided", entry)

    def hint(self, entry: str, why: str) -> None:
        """Remember what explains the test's failure, if it should fail."""
        self.hints.setdefault(entry, why)

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


@functools.cache
def tree_of(file: str) -> ast.Module | None:
    """The syntax of a file of the tests, or of what the agent was given; None without one."""
    try:
        with open(file, encoding="utf-8") as source:
            return ast.parse(source.read())
    except (OSError, ValueError, SyntaxError):
        return None


def fail(error: BaseException) -> BaseException:
    """Note why the running test cannot pass, whatever catches the exception."""
    state.failures.append(error)
    return error


def barred(why: str) -> BaseException:
    """What to raise where something cannot cross the boundary, or must not happen here."""
    return fail(BoundaryError(why))


class Ref:
    """Which object of the host something stands for.

    What is reached by name from a module is looked up anew in every session, so that a test may
    go on using what its module imported.
    """

    __slots__ = ("number", "path", "steps", "talk", "trails")

    def __init__(self, talk: Talk, number: int, path: tuple[str, ...] | None = None) -> None:
        self.talk = talk
        self.number = number
        self.path = path
        self.trails: list[str] = []
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


own_space: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__
"""What a module has as its ``__dict__``, whatever its class says."""


def ref_of(value: Any) -> Ref | None:
    """What a stand-in stands for; None for anything else."""
    if isinstance(value, type):
        return type.__getattribute__(value, "__dict__").get("_assay_kind")
    if isinstance(value, ModuleType):
        return own_space(value).get("_assay")
    if isinstance(type(value), Kind) or isinstance(value, BaseException):
        space = space_of(value)
        if "_assay" not in space and "_assay_recipe" in space:
            space["_assay_recipe"].make(value)
        return space.get("_assay")
    return None


def space_of(value: Any) -> dict[str, Any]:
    """What a stand-in has here: what it stands for, and how that came to be; see `recipes`."""
    return object.__getattribute__(value, "__dict__")


def the_ref(value: Any) -> Ref:
    """What a stand-in stands for.

    Raises:
        BoundaryError: If it stands for nothing.
    """
    ref = ref_of(value)
    if ref is None:
        raise barred(f"a {type(value).__name__} of the submission was not made by it")
    return ref


def forward(value: Any, name: str, *arguments: Any) -> Any:
    """Have the host use an operator, if the reference was asked for it, too."""
    ref = the_ref(value)
    talk = ref.home()
    return talk.taken(talk.operate(ref, name, *arguments), ref, name)


def length_of(value: Any) -> int:
    """How long the host says something is; Python refuses what is no length."""
    return forward(value, "__len__")


def current() -> Any:
    """The session of the module that is being imported or tested."""
    talk = state.sessions.get(state.current)
    if talk is None:
        # Known before it is used: what it is told first may lead back here.
        talk = state.make()
        state.sessions[state.current] = talk
        talk.greet()
    return talk


class Doing(threading.local):
    """What a thread does in a session at the moment."""

    link: Any = None  # its connection
    fork: Any = None  # the one to the fork that it asks
    asking: Sequence[str] = ("?",)  # the trails of what the host works on for it
    giving: Sequence[str] = ("?",)  # those of what it hands over
    reading: Any = None  # what it reads that a test came to; see `judge_side.Reading`
    expresses = False  # whether it writes for a fork, which makes for itself what is unmade

    @contextmanager
    def but(self, **now: Any) -> Generator[None, None, None]:
        """Do something else for a while."""
        before = {name: getattr(self, name) for name in now}
        self.__dict__.update(now)
        try:
            yield
        finally:
            self.__dict__.update(before)


class Talk(Plain):
    """One fresh import of the submission: its connections, and the rules of the conversation.

    Attributes:
        number: Its number.
        dead: Why there is nobody to talk to any more; empty while there is.
        doing: What each thread does with it.
        changes: Counts what may have changed in the host.
        acts: Counts what was asked of it that may change something, and is not only looked at.
    """

    def __init__(self) -> None:
        self.number = next(_sessions)
        self.dead = ""
        self.doing = Doing()
        self.changes = self.acts = 0
        self._forks = 0
        self._raised_in: dict[int, int] = {}
        self._lock = threading.RLock()
        self._threads = 0
        self._told: dict[str, Any] = {}
        self._output = _MOST_OUTPUT
        self._bytes = _MOST_BYTES
        try:
            doors.tell(["fork", self.number])
            self.doing.link = self._link = doors.wait("session", self.number)
            self._door = doors.wait("door", self.number)
        except GoneError:
            raise fail(HostDiedError("the process of the solution did not start")) from None

    def given(self, value: Any, trails: list[str]) -> Any:
        """Write what is handed over by a call."""
        self.doing.giving = trails
        return self.encode(value)

    def greet(self) -> None:
        """Tell the host what the tests have patched."""
        for one in list(state.patches):
            self.patch(*one)

    def patch(self, module: str, path: list[str], name: str, value: object) -> None:
        """Make a patch of the tests hold in the host, too."""
        self.request("set", ["P", module, path], name, self.given(value, ["patch"]), "patch")

    def _lane(self) -> socket.socket:
        """The connection of this thread."""
        if self.doing.link is None:
            with self._lock:
                self._threads += 1
                send(self._door, ["thread", self._threads])
                self.doing.link = doors.wait("thread", self.number, self._threads)
        return self.doing.link

    def request(self, op: str, *parts: Any, trails: list[str] | None = None) -> Any:
        """Ask the host, serve it until it answers, and give back what it said, still encoded.

        Raises:
            HostDiedError: If it ended, or does not answer in time.
        """
        if self.dead:
            raise fail(HostDiedError(self.dead))
        self.changes += 1
        self.acts += op not in _LOOKS
        mine = self.changes
        try:
            # No test came to what is read on the way.
            with self.doing.but(asking=trails or ["?"], reading=None):
                message = self._exchange([op, self._news(), *parts])
                self.changes += 1
                if message[0] == "ok":
                    return message[1]
                error = self._raised(message[1], mine)
        except TimeoutError:
            error = self.died(f"the solution did not answer within {state.seconds:g} s")
        except GoneError:
            error = self.died("the process of the solution ended")
        except (WireError, IndexError) as why:
            error = self.died(f"the process of the solution sent what makes no sense: {why}")
        except OSError as why:
            error = self.died(f"the connection to the solution broke: {why}")
        raise error

    def question(self, op: str, *parts: Any) -> Any:
        """Ask a fork of the host, which then is no more; None if it raises or does not answer."""
        return next(self.questions([(op, *parts)]))

    def questions(self, asked: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Ask each question of a fork of its own.

        The host does not know what its forks are asked, and none knows of the others.
        """
        with self._lock:
            first = self._forks
            self._forks += len(asked)
        self.request("fork", first, len(asked))
        links: list[socket.socket] = []
        try:
            links += [doors.wait("fork", self.number, first + one) for one in range(len(asked))]
            for link, question in zip(links, asked):
                yield self._answered(link, question)
        except GoneError:
            raise self.died("the process of the solution did not fork") from None
        finally:
            for link in links:
                link.close()

    def _answered(self, link: socket.socket, question: tuple[Any, ...]) -> Any:
        op, *parts = question
        try:
            with self.doing.but(fork=link):
                message = self._exchange([op, {}, *parts], link)
        except (TimeoutError, WireError, OSError):
            return None
        return message[1] if message[0] == "ok" and len(message) > 1 else None

    def _exchange(self, message: list[Any], link: Any = None) -> list[Any]:
        """Send a request, and serve the host until it answers."""
        deadline = time.monotonic() + state.seconds
        link = link or self._lane()
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

    def died(self, why: str) -> BaseException:
        """Talk to the host no more, and say so."""
        self.end(why)
        return fail(HostDiedError(self.dead))

    def end(self, why: str) -> None:
        """Talk to the host no more."""
        self.dead = self.dead or why
        for link in (self._link, self._door, self.doing.link or self._link):
            link.close()

    def _raised(self, node: Any, mine: int) -> BaseException:
        error = self.decode(node)
        if not isinstance(error, BaseException):
            raise WireError("an exception makes no sense")
        if isinstance(error, state.never):
            return barred(f"the solution raised {type(error).__name__}")
        if error in state.failures and self._raised_in.get(id(error), -1) >= mine:
            state.failures.remove(error)  # it comes back to the call in which it was raised
        return error.with_traceback(None)

    def _news(self) -> dict[str, Any]:
        """What has changed around the tests since the host was told."""
        environ = dict(os.environ)
        environ.pop("PYTEST_CURRENT_TEST", None)
        try:
            place = os.getcwd()
        except OSError:
            place = ""
        path = [entry or place for entry in sys.path if state.is_ours(entry or place)]
        now = {"environ": environ, "path": path, **({"cwd": place} if place else {})}
        news: dict[str, Any] = {n: one for n, one in now.items() if self._told.get(n) != one}
        if "environ" in news:  # what the submission changed of its own stays as it is
            before = self._told.get("environ", {})
            names = [one for one in {*before, *environ} if before.get(one) != environ.get(one)]
            news["environ"] = {one: environ.get(one) for one in names}
        self._told = now
        return news

    def answer(self, link: socket.socket, message: list[Any]) -> None:
        """Do what the host asks while it works for us: write its output, call a handle."""
        kind, *rest = message
        if kind == "ask":
            send(link, self._reply(rest))
        elif kind in ("out", "log"):
            (self._write if kind == "out" else self._log)(*rest)
        else:
            raise WireError("a message of an unknown kind")

    def _reply(self, question: list[Any]) -> list[Any]:
        op, *parts = question
        try:
            return ["ok", self.encode(self.grant(op, parts))]
        except (WireError, GoneError):
            raise
        except BaseException as error:
            if isinstance(error, state.failing) and error not in state.failures:
                fail(error)  # what the host makes of it does not matter
                self._raised_in[id(error)] = self.changes
            return ["raise", self.encode(error)]

    def grant(self, op: str, parts: list[Any]) -> Any:
        """Do what the host asks for."""
        raise WireError(f"nobody does {op!r}")

    def _write(self, descriptor: Any, text: Any) -> None:
        if type(text) is str and self._output > 0 and self.doing.fork is None:
            self._output -= len(text)
            (sys.stdout if descriptor == 1 else sys.stderr).write(text)

    def _log(self, name: Any, level: Any, text: Any) -> None:
        import logging

        if type(name) is str and type(level) is int and type(text) is str and self._output > 0:
            self._output -= len(text)
            logger = logging.getLogger(name)
            if logger.isEnabledFor(level):
                logger.handle(logger.makeRecord(name, level, "the solution", 0, text, (), None))


class Doors:
    """The connections of the host, sorted by what each says it is for."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, ...], socket.socket] = {}
        self._arrived = threading.Condition()
        self._lanes = 0

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
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            try:
                self._greet(link)
            except (WireError, OSError):
                link.close()

    def _greet(self, link: socket.socket) -> None:
        link.settimeout(_GREETING)
        (kind, *about), _ = receive(link, time.monotonic() + _GREETING)
        link.settimeout(None)
        is_known = all(type(part) is int for part in about)
        if is_known and kind == "lane" and self._lanes < _MOST_LANES:
            self._lanes += 1
            threading.Thread(target=self._serve, args=(link, about), daemon=True).start()
            return
        with self._arrived:
            if not is_known or kind == "lane" or len(self._waiting) >= _MOST_WAITING:
                raise WireError("nobody waits for it")
            self._waiting.setdefault((kind, *about), link)
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
    place = getattr(sys.modules.get(value.__module__ or ""), "__file__", None)
    is_builtin = value.__module__ in sys.builtin_module_names
    return not is_builtin and (not place or state.is_ours(os.path.abspath(place)))


def is_module_of_both(value: Any) -> bool:
    """Whether it is a module that judge and host have alike."""
    place = getattr(value, "__file__", None) if type(value) is ModuleType else None
    return type(value) is ModuleType and not (place and state.is_ours(os.path.abspath(place)))


_sessions = itertools.count(1)
doors = Doors()
state = State()
