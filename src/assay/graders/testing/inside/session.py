"""What both runners share: the way in for the workspace, the order of tests, the way out."""

from __future__ import annotations

import builtins
import importlib.util
import os
import random
import socket
import sys
from contextlib import contextmanager
from itertools import groupby
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, NoReturn, TextIO, TypeVar, cast

from assay.graders.testing.inside.channel_client import BriefFields, send_collected
from assay.graders.testing.inside.hidden_modules import (
    Compiler,
    EqualityCheck,
    Finder,
    is_test_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
    from importlib.abc import MetaPathFinder

    from assay.graders.testing.inside.channel_client import Frame, Send
    from assay.graders.testing.inside.hidden_modules import RewriteAsserts

    _Watched = tuple[str, Mapping[str, object], str, object, object]

    Place = tuple[Hashable, Hashable]

_Test = TypeVar("_Test")
_FAILED = ("failed", "error")
_MOST_WRAPPERS = 20
"""How many decorators of a test are looked through."""
_FUNCTIONS = (FunctionType, type, staticmethod, classmethod, property)
_CONDITIONS = ((sys, "platform"), (sys, "version_info"), (os, "name"))
"""What authors ask when they leave out a test."""

_BUILTINS = (
    "abs all any bool dict float int isinstance len list repr round set sorted str sum tuple"
)


class Settings:
    """What a run needs to know of its surroundings."""

    __slots__ = ("path", "root")

    def __init__(self, root: str, path: list[str]) -> None:
        self.root = root
        self.path = path


class RunnerSession:
    """One run of tests, and what is told of it.

    ``planted``: Name of the tests that must fail.
    """

    def __init__(
        self, brief: BriefFields, send: Send, settings: Settings, rewrite: RewriteAsserts | None
    ) -> None:
        self.root = settings.root
        self.seed, self.shuffle, self.skip = brief["seed"], brief["shuffle"], set(brief["skip"])
        self.planted = f"test_{brief['canary']['name']}"
        self._send = send
        self._path, self._exit, self._outs = settings.path, os._exit, (sys.stdout, sys.stderr)
        self._failed = False
        self._told: set[tuple[str, str, str]] = set()
        self._watched: list[_Watched] = []
        sources = {f"{self.root}/{name}": text for name, text in brief["hidden"].items()}
        brief["hidden"].clear()  # nothing keeps the sources
        self._hidden = frozenset(sources)
        check = EqualityCheck(self._is_authors, brief.get("loose", []), self.tamper)
        self._compiler = Compiler(check, rewrite)
        self._must_fail = brief["canary"]["planted"]
        self.finder: MetaPathFinder = Finder(sources, self.root, self._compiler)
        self._judge: ModuleType | None = None
        apart = brief.get("apart")
        if apart is not None:
            self._judge = self._apart(apart, brief["handed"])
        sys.meta_path.insert(0, self.finder)

    def _apart(self, told: dict[str, object], handed: int | None) -> ModuleType:
        """Put the boundary between this process and the submission."""
        from assay.graders.testing.inside.boundary import judge

        link = socket.socket(fileno=handed)
        finder = judge.install(link, told, self.root, self.tell)
        self.finder = cast("MetaPathFinder", finder)
        return judge

    def open_workspace(self, runner: str, arguments: list[str], watched: tuple[str, ...]) -> None:
        """Let the workspace in, after remembering what the runner is like without it."""
        self._send({"event": "ready"})
        if self._judge is None:
            self._watch(watched)
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            os.environ.pop(name, None)
        self._pose_as(f"{runner}.__main__", arguments)
        sys.path[:0] = self._path

    def _watch(self, watched: tuple[str, ...]) -> None:
        """Remember what must not change while tests run."""
        for name in watched:
            if name in sys.modules:
                self._watched += _functions_of(sys.modules[name])
        space = vars(builtins)
        self._watched += [
            ("builtins", space, name, space[name], None) for name in _BUILTINS.split()
        ]
        for module, name in _CONDITIONS:
            space = vars(module)
            self._watched.append((module.__name__, space, name, space[name], None))

    def _pose_as(self, name: str, arguments: list[str]) -> None:
        """Look like ``python -m``: children that are spawned import ``__main__`` again."""
        spec = importlib.util.find_spec(name)
        module = ModuleType("__main__")
        module.__spec__ = spec
        module.__file__ = (spec.origin if spec else None) or name
        sys.modules["__main__"] = module
        sys.argv[:] = [module.__file__, *arguments]

    def without_workspace(self) -> list[str]:
        """``sys.path`` less what `open_workspace` put there."""
        return [entry for entry in sys.path if entry not in self._path]

    def relative(self, path: str) -> str:
        """A path as the host names it."""
        return os.path.relpath(os.path.realpath(path), self.root).replace(os.sep, "/")

    def canary_test(self) -> FunctionType:
        """A planted test: it is compiled as all tests are, and must fail with a given message."""
        text = f"def {self.planted}(*_):\n    one = 1\n    assert one == 2, {self._must_fail!r}\n"
        code = self._compiler.compile(text, "<planted>")
        space: dict[str, object] = {}
        self._compiler.execute(cast("CodeType", code), space)
        return cast("FunctionType", space[self.planted])

    def check(self) -> None:
        """Report what of the runner is the submission's by now."""
        for label, space, name, first, code in self._watched:
            now = space.get(name)
            if now is first and (code is None or getattr(now, "__code__", None) is code):
                continue
            function = getattr(now, "__func__", getattr(now, "fget", now))
            path = getattr(getattr(function, "__code__", None), "co_filename", "")
            if isinstance(function, type):
                path = getattr(sys.modules.get(function.__module__), "__file__", None) or ""
            # Plug-ins, conftests and tests do such things to the runner.
            if not path or not self._is_authors(path):
                self.tamper(f"the test runner was changed while tests ran: {label}.{name}")

    def _is_authors(self, path: str) -> bool:
        """Whether a file is no code of the submission's: a package's, or a test."""
        stem = path.rpartition(os.sep)[2][: -len(".py")]
        if path in self._hidden or stem == "conftest" or is_test_name(stem):
            return True
        real = os.path.realpath(path)
        inside = real.startswith(self.root + os.sep) and not real.startswith(sys.prefix + os.sep)
        return path.startswith(os.sep) and not inside

    def check_test(self, path: str, names: list[str], test: object) -> None:
        """Report a function of the submission's in the place of a test that a file defines.

        A test that is imported or inherited from the submission is as its author wants it.
        """
        function = cast("FunctionType", getattr(test, "__func__", test))
        for _ in range(_MOST_WRAPPERS):
            function = getattr(function, "__wrapped__", function)
        own = getattr(getattr(function, "__code__", None), "co_filename", "")
        if (
            self._judge is None
            and own.startswith(self.root + os.sep)
            and not self._is_authors(own)
            and self._compiler.defines(os.path.realpath(path), names)
        ):
            self.tamper(f"the submission ran its own code as a test: {names[-1]}")

    def tamper(self, what: str) -> None:
        """Tell of a sign of tampering, once."""
        self.tell("tamper", what)

    def tell(self, event: str, what: str, test: str = "") -> None:
        """Tell what is undecided, needed or worth a note, once."""
        if (event, what, test) not in self._told:
            self._told.add((event, what, test))
            self._send({"event": event, "what": what, "test": test})

    def enter(self, path: str) -> None:
        """Say whose turn it is: that of a test module, or of none."""
        if self._judge is not None:
            self._judge.enter(path and os.path.realpath(path))

    def collected(self, ids: list[str], errors: list[tuple[str, str]]) -> None:
        """Tell what there is to run, and what could not be loaded."""
        self._failed = self._failed or bool(errors)
        send_collected(self._send, ids, errors)

    def start(self, name: str) -> None:
        """Tell that a test starts."""
        self._send({"event": "start", "id": name})
        if self._judge is not None:
            path, _, rest = name.partition("::")
            self._judge.begin(f"{self.root}/{path}", f"{path}::{rest.partition('[')[0]}")

    def outside(self, place: str) -> None:
        """Say that what runs now is no test: a fixture of a whole module, or tearing down."""
        if self._judge is not None:
            self._judge.outside(place)

    @contextmanager
    def during(self, place: str) -> Generator[None]:
        """Say for a while that what runs is no test."""
        before = self._judge.state.test if self._judge is not None else ""
        self.outside(place)
        try:
            yield
        finally:
            self.outside(before)

    def result(
        self, name: str, outcome: str, seconds: float, message: str, *, marked: bool = False
    ) -> None:
        """Tell what came of a test, and whether it was a mark of its own that left it out."""
        if self._judge is not None:
            passed = outcome in ("passed", "xpassed", "xfailed")
            why = self._judge.verdict(passed=passed)
            if passed and why:
                outcome, message = "failed", why
            elif not passed:
                hints = [one for one in self._judge.hints().split("; ") if one not in message]
                message = f"{message}\n{'; '.join(hints)}" if hints else message
            self._judge.outside("")
        self._failed = self._failed or outcome in _FAILED
        frame: Frame = {"event": "result", "id": name, "outcome": outcome}
        frame = {**frame, "seconds": seconds, "message": message}
        self._send({**frame, "marked": True} if marked else frame)

    def canary(self, name: str, outcome: str, message: str) -> None:
        """Tell what came of a planted test."""
        self._send({"event": "canary", "name": name, "outcome": outcome, "message": message})

    def leave(self, status: int) -> NoReturn:
        """Say the last word and end the process before anything else can run in it."""
        self.check()
        status = status or int(self._failed)
        for stream in self._outs:
            _flush(stream)
        self._send({"event": "end", "exit": status})
        self._exit(status)
        raise AssertionError


def _functions_of(module: ModuleType) -> Iterator[_Watched]:
    """The functions and classes of a module, and those in its own classes, as they are now."""
    spaces: list[tuple[str, Mapping[str, object]]] = [(module.__name__, vars(module))]
    spaces += [
        (f"{module.__name__}.{value.__qualname__}", cast("Mapping[str, object]", vars(value)))
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    for label, space in spaces:
        for name, value in list(space.items()):
            if isinstance(value, _FUNCTIONS):
                yield label, space, name, value, getattr(cast("object", value), "__code__", None)


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):  # the reader has gone
        pass


def arrange(
    tests: list[_Test],
    place: Callable[[_Test], Place],
    canaries: Mapping[Hashable, _Test],
    lone: _Test,
    seed: int,
    *,
    shuffle: bool,
) -> list[_Test]:
    """Put tests in order.

    The tests of a class keep their order and no canary comes between them: what is set up for the
    class is set up once. The canary of no file comes last: whichever test replaces all that are
    yet to run replaces it, too.
    """
    draw = random.Random(seed)  # noqa: S311 - an order, not a secret
    runs = [(at, list(those)) for at, those in groupby(tests, place)]
    if shuffle:
        runs = _shuffled(runs, draw)
    for file, canary in canaries.items():
        spots = [spot for n, (at, _) in enumerate(runs) if at[0] == file for spot in (n, n + 1)]
        if spots:
            runs.insert(draw.choice(spots), ((file, None), [canary]))
    return [*(test for _, those in runs for test in those), lone]


def _shuffled(
    runs: list[tuple[Place, list[_Test]]], draw: random.Random
) -> list[tuple[Place, list[_Test]]]:
    """Files in another order, and within each its groups; what belongs together is joined."""
    files: dict[Hashable, dict[Place, list[_Test]]] = {}
    for at, tests in runs:
        files.setdefault(at[0], {}).setdefault(at, []).extend(tests)
    order = list(files.values())
    draw.shuffle(order)
    mixed: list[tuple[Place, list[_Test]]] = []
    for groups in order:
        within = list(groups.items())
        draw.shuffle(within)
        mixed.extend(within)
    return mixed
