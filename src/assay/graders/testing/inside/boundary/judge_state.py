"""What the judge knows of the run and its test, its connections, and what stand-ins stand for."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary.wire import GoneError, WireError, receive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from assay.graders.testing.inside.boundary.judge_side import JudgeSide

_MOST_LANES = 2_000
_GREETING = 1.0
_PATIENCE = 30.0
_MOST_WAITING = 256
_LARGEST_FILE = 256 * 1024


class UndecidedError(AssertionError):
    """Only code of the submission could decide."""


class HostDiedError(AssertionError):
    """The process of the submission ended, or did not answer in time."""


class BoundaryError(AssertionError):
    """Something cannot cross the boundary, or must not happen in the judge."""


class JudgeState:
    """What is the same for a whole run, and what is known of the test that runs."""

    def __init__(self) -> None:
        # What was told when it began.
        self.root = ""  # the judge's tree
        self.shared: tuple[str, ...] = ()  # beginnings of the paths that the host can write to
        self.seconds = 60.0  # how long a call may take
        self.hidden: frozenset[str] = frozenset()  # real paths of hidden files that are no sources
        self.allowed: frozenset[str] = frozenset()  # classes that may decide (`allow_equality`)
        self.needs: dict[str, frozenset[str]] = {}  # of the reference, by test; see `contract`
        self.learns = False  # whether the reference is being proven
        self.seed = ""  # of the near misses
        self.fresh = "module"  # or ``test``: how often the submission is imported anew
        self.tell: Callable[..., None] = lambda *_: None  # takes an event's name and its parts
        self.make: Callable[[], JudgeSide]  # makes a session
        # Exceptions by which a test fails for good, and those that no submission can raise here.
        self.failing: tuple[type[BaseException], ...] = (AssertionError,)
        self.never: tuple[type[BaseException], ...] = ()
        # What the host has of the tests: objects by number, by which calls and in which test.
        self.handed: dict[int, tuple[Any, list[str], str]] = {}
        self.patches: list[tuple[str, list[str], str, object]] = []  # in modules of both sides
        self.loops: dict[int, Any] = {}  # the event loop of the tests, by its thread
        # What runs.
        self.sessions: dict[str, JudgeSide] = {}  # by test module
        self.current = ""  # the test module that is imported or tested
        self.test = ""  # the test function, without parameters; empty for what runs outside
        self.running = ""  # the one that was begun last, also while what is shared is torn down
        # What is known of the test.
        self.failures: list[BaseException] = []  # why it cannot pass, whatever caught them
        self.hints: dict[str, str] = {}  # what explains that it fails: entry to sentence
        self.leaves: dict[str, bool] = {}  # whether what came by each trail held anything
        self.called: set[str] = set()  # the trails of the callbacks that were called
        self.answered: dict[Any, Any] = {}  # what was answered last, by what was asked for
        self.files: dict[str, Any] = {}  # what its files held that lie where the host can write
        self.named: set[tuple[str, str]] = set()  # hidden files that the submission named, and how
        self.unmade: list[Any] = []  # recipes of what it made and the host was not told
        self._numbers: dict[int, int] = {}
        self._free = itertools.count(1)

    @functools.cached_property
    def _hidden_names(self) -> frozenset[str]:
        """What a path to a hidden file, or to a directory above one, ends with."""
        return frozenset([".", *(part for path in self.hidden for part in path.split(os.sep))])

    def hear(self, found: Any) -> None:
        """Remember which hidden files something of the submission names, if it is a path."""
        if not self.hidden:
            return
        held = found.values() if type(found) is dict else found
        for one in itertools.islice(held if type(found) in (list, tuple, dict) else [found], 100):
            if type(one) is str or type(one).__module__.startswith("pathlib"):
                text = os.path.normpath(str(one).strip())
                if os.path.basename(text) in self._hidden_names:
                    with suppress(ValueError, OSError):
                        self.named.add((os.path.realpath(text), text))

    def lend_files(self) -> None:
        """See what the files hold that the test has written since the host last did something."""
        for path in [one for one, held in self.files.items() if held is None]:
            self.files[path] = held_by_file(path)

    def need(self, test: str, entry: str) -> None:
        self.tell("needs", entry, test)

    def undecided(self, entry: str) -> None:
        self.tell("undecided", entry)

    def hint(self, entry: str, why: str) -> None:
        self.hints.setdefault(entry, why)

    def hand(self, value: Any, trails: Sequence[str]) -> int:
        """The number by which the host knows an object of the tests, which it is handed now."""
        number = self._numbers.setdefault(id(value), next(self._free))
        self.handed[number] = (value, list(trails), self.test)
        return number

    def is_ours(self, path: str) -> bool:
        """Whether a path lies in the judge's tree or where the host can write."""
        return path == self.root or path.startswith((f"{self.root}{os.sep}", *self.shared))

    def is_shared(self, path: str) -> bool:
        return path.startswith(self.shared)

    def is_test_code(self, path: str) -> bool:
        return path.startswith(f"{self.root}{os.sep}")


def held_by_file(path: str) -> Any:
    """What tells a file from others: its content, and of a large one its size."""
    try:
        size = os.path.getsize(path) if os.path.isfile(path) else -1
        if not 0 <= size <= _LARGEST_FILE:
            return size
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return -1


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

    def __init__(self, talk: JudgeSide, number: int, path: tuple[str, ...] | None = None) -> None:
        self.talk = talk
        self.number = number
        self.path = path
        self.trails: list[str] = []
        self.owner: tuple[int, str] | None = None  # of a method: whose it is, and its name

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


class StandInType(type):
    """What the classes of stand-ins are; see `stands`."""


own_space: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__
"""What a module has as its ``__dict__``, whatever its class says."""


def ref_of(value: Any) -> Ref | None:
    """What a stand-in stands for; None for anything else."""
    kind = type(value)  # what an inert object is, it does not tell
    if issubclass(kind, type):
        return type.__getattribute__(value, "__dict__").get("_assay_kind")
    if issubclass(kind, ModuleType):
        return own_space(value).get("_assay")
    if isinstance(kind, StandInType) or issubclass(kind, BaseException):
        space = space_of(value)
        if "_assay" not in space and "_assay_recipe" in space:
            space["_assay_recipe"].make(value)
        return space.get("_assay")
    return None


def space_of(value: Any) -> dict[str, Any]:
    """What a stand-in has here: what it stands for, and how that came to be; see `recipes`."""
    return object.__getattribute__(value, "__dict__")


def the_ref(value: Any) -> Ref:
    """What a stand-in stands for; if it stands for nothing, the test fails."""
    ref = ref_of(value)
    if ref is None:
        raise barred(f"a {type(value).__name__} of the submission was not made by it")
    return ref


def forward(value: Any, name: str, *arguments: Any) -> Any:
    """Have the host use an operator, if the reference was asked for it, too."""
    ref = the_ref(value)
    talk = ref.home()
    return talk.taken(talk.operate(ref, name, *arguments), ref, name)


def current() -> Any:
    """The session of the module that is being imported or tested."""
    talk = state.sessions.get(state.current)
    if talk is None:
        # Known before it is used: what it is told first may lead back here.
        talk = state.sessions[state.current] = state.make()
        for one in list(state.patches):
            talk.patch(*one)
    return talk


class Doing(threading.local):
    """What a thread does in a session at the moment."""

    link: Any = None  # its connection
    fork: Any = None  # the one to the fork that it asks
    asking: Sequence[str] = ("?",)  # the trails of what the host works on for it
    giving: Sequence[str] = ("?",)  # those of what it hands over
    reading: Any = None  # what it reads that a test came to; see `judge_side.TrailReading`
    expresses = False  # whether it writes for a fork, which makes for itself what is unmade
    gives = False  # whether it writes what the test hands over

    @contextmanager
    def but(self, **now: Any) -> Generator[None, None, None]:
        before = {name: getattr(self, name) for name in now}
        self.__dict__.update(now)
        try:
            yield
        finally:
            self.__dict__.update(before)


class Doors:
    """The connections of the host, sorted by what each says it is for."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, ...], socket.socket] = {}
        self._arrived = threading.Condition()
        self._lanes = 0

    def open(self, listener: socket.socket) -> None:
        """Begin to take connections, and wait for that of the process that forks."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self.control = self.wait("hello")

    def wait(self, *key: Any) -> socket.socket:
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


doors = Doors()
state = JudgeState()
