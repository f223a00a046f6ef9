"""Sets up the boundary in the judge: imports, patches that hold on both sides, what is refused."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary import aliasing, contract
from assay.graders.testing.inside.boundary.judge_side import JudgeSide
from assay.graders.testing.inside.boundary.judge_state import (
    StandInType,
    barred,
    doors,
    held_by_file,
    is_authors,
    is_module_of_both,
    ref_of,
    space_of,
    state,
)
from assay.graders.testing.inside.boundary.modules import SubmissionFinder
from assay.graders.testing.inside.boundary.recipes import check_unmade
from assay.graders.testing.inside.boundary.wire import LIBRARIES, GoneError, library

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_NOT_STARTED = 70
_MOST_HINTS = 3
_SYSTEM_NAMES = ("path", "modules", "stdout", "stderr", "meta_path")


def install(
    link: socket.socket, told: dict[str, Any], root: str, tell: Callable[..., None]
) -> SubmissionFinder:
    """Set up the boundary, before the first test is imported."""
    state.root, state.shared = root, tuple(told["shared"])
    state.seconds, state.fresh = float(told["seconds"]), str(told["fresh"])
    state.allowed, state.tell, state.make = frozenset(told["allow"]), tell, JudgeSide
    needed = told["contract"]
    state.seed, state.learns = needed.get("seed", ""), needed.get("learns", False)
    state.needs = {test: frozenset(one) for test, one in needed.get("needs", {}).items()}
    from unittest.case import SkipTest

    state.never = (SkipTest,)
    outcomes: Any = sys.modules.get("_pytest.outcomes")
    if outcomes is not None:
        state.never = (outcomes.OutcomeException, SkipTest)
        state.failing = (AssertionError, outcomes.Failed)
        import _pytest.monkeypatch
        import _pytest.python
        import pluggy

        _mirror(_pytest.monkeypatch.MonkeyPatch, "setattr", "undo", lambda one: one._setattr)
        _around(pluggy.PluginManager, "register", _register)
        if hasattr(getattr(_pytest.python, "IdMaker", None), "_idval_from_value"):
            _around(_pytest.python.IdMaker, "_idval_from_value", _name_member)
    try:
        doors.open(link)
    except GoneError:
        sys.stderr.write("the process of the solution did not start\n")
        os._exit(_NOT_STARTED)
    for name in LIBRARIES:
        library(name)
    hidden = frozenset(os.path.realpath(os.path.join(root, one)) for one in told["hidden"])
    state.hidden = frozenset(one for one in hidden if not one.endswith(".py"))
    finder = SubmissionFinder(hidden)
    if "unittest.mock" in sys.modules:
        _mirror_mock(sys.modules["unittest.mock"])
    else:  # to import it would take longer than all else here
        finder.when_loaded["unittest.mock"] = _mirror_mock
    _around(importlib, "reload", _reload)
    sys.addaudithook(_watch)
    return finder


def enter(module: str) -> None:
    """Say which test module is imported or tested now."""
    if module and module not in state.sessions:
        _forget_helpers()
    state.current = module


def _forget_helpers() -> None:
    """Have the tests' helpers imported again that hold objects of another session."""
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None) or ""
        file = os.path.basename(place)
        if type(module) is not ModuleType or not state.is_test_code(place) or "." not in file:
            continue
        is_kept = file in ("conftest.py", "__init__.py") or file.startswith("test_")
        refs = filter(None, map(ref_of, list(vars(module).values())))
        if not is_kept and any(ref.path is None for ref in refs):
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            vars(sys.modules.get(parent, module)).pop(child, None)


def begin(module: str, test: str) -> None:
    """Start a test of a module: forget what made an earlier one fail."""
    old = state.sessions.get(module)
    if old is not None and (old.dead or state.fresh == "test"):
        del state.sessions[module]
        old.end("the session has ended")
    state.current, state.test, state.running = module, test, test
    forgotten = (state.leaves, state.hints, state.called, state.answered, state.named, state.files)
    for kept in (state.failures, state.unmade, *forgotten):
        kept.clear()


def outside(place: str) -> None:
    """Say that what runs now is no test, such as a fixture of a whole module."""
    state.test = place


def verdict(*, passed: bool) -> str:
    """Why the test that ended cannot have passed; empty if it can."""
    state.test = state.running
    aliasing.end()
    if passed:
        check_unmade()
        contract.empties()
        for entry in state.needs.get(state.test, ()):
            kind, _, trail = entry.partition(":")
            if kind == "called" and trail not in state.called:  # with the assertions in it
                state.tell("note", f"{state.test}: {trail} was not called, as the reference does")
    elif not state.failures:
        for entry in state.hints:
            state.undecided(entry)
    return str(state.failures[0]) if state.failures else ""


def hints() -> str:
    """What the boundary made of values of the submission's, if the test failed by that."""
    return "; ".join(list(state.hints.values())[:_MOST_HINTS])


# -- patches that hold on both sides ---------------------------------------------------------------


def _place_of(target: Any) -> tuple[str, list[str]] | None:
    """The name of a module or class that both sides have; None for anything else."""
    if is_module_of_both(target):
        return target.__name__, []
    is_theirs = isinstance(target, type) and (is_authors(target) or ref_of(target) is not None)
    # What pytest patches of its own would have the host import it.
    if not isinstance(target, type) or is_theirs or target.__module__.startswith("_pytest."):
        return None
    return target.__module__, target.__qualname__.split(".")


def _patch(target: Any, name: Any, *, ends: bool = False) -> None:
    place = _place_of(target)
    if place is None or type(name) is not str or (target is sys and name in _SYSTEM_NAMES):
        return
    living = [one for one in list(state.sessions.values()) if not one.dead]
    numbers = [at for at, one in enumerate(state.patches) if one[:3] == (*place, name)]
    if not ends:
        made = (*place, name, getattr(target, name))
        state.patches.append(made)
        for talk in living:
            talk.patch(*made)
    elif numbers:
        del state.patches[numbers[-1]]
        for talk in living:
            talk.request("delete", ["P", *place], name)


def _around(owner: Any, name: str, act: Callable[..., Any]) -> None:
    """Put something around a function of a library: it is handed the function, too."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *arguments, **named: act(original, *arguments, **named))


def _mirror(owner: Any, enter: str, leave: str, patched: Callable[[Any], list[Any]]) -> None:
    """Have the patches of a library's class hold in the host, too."""

    def enter_both(original: Any, self: Any, *arguments: Any, **named: Any) -> Any:
        before = len(patched(self))
        found = original(self, *arguments, **named)
        for target, name, *_ in patched(self)[before:]:
            _patch(target, name)
        return found

    def leave_both(original: Any, self: Any, *error: Any) -> Any:
        for target, name, *_ in patched(self)[::-1]:
            _patch(target, name, ends=True)
        return original(self, *error)

    _around(owner, enter, enter_both)
    _around(owner, leave, leave_both)


def _mirror_mock(mock: ModuleType) -> None:
    def patched(patch: Any) -> list[Any]:  # which has a target only while it holds
        is_held = getattr(patch, "target", None) is not None
        return [(patch.target, patch.attribute)] if is_held else []

    _mirror(vars(mock)["_patch"], "__enter__", "__exit__", patched)


def _reload(original: Any, module: Any) -> Any:
    ref = ref_of(module)
    if ref is None:
        return original(module)
    ref.home().request("reload", ref.node())
    return module


def _name_member(original: Any, self: Any, value: Any) -> Any:
    """Name tests after members of the submission's enumerations as after any other's."""
    if isinstance(type(value), StandInType):
        if "_assay" not in space_of(value):
            return None  # asked for a name it would be made, which tells what is expected
        if type(value)._assay_form["equal"] == "enum":
            return str(value)
    return original(self, value)


# -- what is refused -------------------------------------------------------------------------------


def _register(original: Any, self: Any, plugin: Any, name: Any = None) -> Any:
    """Let no module of the submission be a plug-in of the judge's pytest."""
    if ref_of(plugin) is not None:
        raise ImportError(f"{name} is the submission's: it cannot be a plug-in of the judge")
    return original(self, plugin, name)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    check = _CHECKS.get(event)
    if check is not None and (why := check(arguments)):
        raise barred(f"{why}: that cannot happen in the judge")


def _caller() -> str:
    return sys._getframe(3).f_code.co_filename


def _compiled(arguments: tuple[Any, ...]) -> str:
    source, caller = arguments[0], _caller()
    if type(source) not in (bytes, str) or not state.is_test_code(caller):
        return ""
    text = source.encode("utf-8", "replace") if isinstance(source, str) else bytes(source)
    try:
        with open(caller, "rb") as file:
            return "" if text.strip() in file.read() else "a test runs text as code"
    except OSError:
        return "a test runs text as code"


def _opened(arguments: tuple[Any, ...]) -> str:
    """Author's files are not written, and what is written here is not run here.

    Nor does the submission choose which hidden file is read, or what a file says when it is read.
    """
    place, _, flags = [*arguments, None, 0][:3]
    if not isinstance(place, (str, bytes)) or not isinstance(flags, int):
        return ""
    path = os.path.realpath(os.fsdecode(place))
    if not flags & _WRITES:
        return _read(path)
    if state.test and state.is_shared(path):
        state.files[path] = None
    if "/.pytest_cache" in path:
        return ""
    if _is_authors(path):
        return f"a test writes the author's file {os.path.relpath(path, state.root)}"
    return _made(path)


def _named(place: Any, directory: int = -1) -> str:
    """What a path names: a link itself, and not that to which it leads."""
    if not isinstance(place, (str, bytes)):
        return ""
    text = os.fsdecode(place).rstrip(os.sep)
    if directory >= 0:
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{directory}"), text)
    above, name = os.path.split(text)
    return os.path.join(os.path.realpath(above), name)


def _is_authors(path: str) -> bool:
    """Whether something lies in the judge's tree that no test has made."""
    is_there = os.path.lexists(path)
    while is_there and state.is_test_code(path) and path not in _written:
        path = os.path.dirname(path)
    return is_there and path == state.root


def _taken(path: str) -> str:
    """An author's file stays where it is, unless it is one that the reference has removed."""
    if not _is_authors(path):
        return ""
    name = os.path.relpath(path, state.root)
    is_needed = contract.may("removes", [name])
    return "" if is_needed else f"a test removes or replaces the author's file {name}"


def _made(path: str) -> str:
    """What is put in the judge's tree is a test's own, and no module."""
    if not state.is_test_code(path):
        return ""
    if not os.path.lexists(path):
        _written.add(path)
    return "a module is written beside the tests" if path.endswith((".py", ".pyc")) else ""


def _moved(arguments: tuple[Any, ...]) -> str:
    before, now = _named(arguments[0], arguments[2]), _named(arguments[1], arguments[3])
    return _taken(before) or _taken(now) or _made(now)


def _linked(arguments: tuple[Any, ...]) -> str:
    source, place = os.fsdecode(arguments[0]), _named(*arguments[1:])
    leads_to = os.path.realpath(os.path.join(os.path.dirname(place), source))
    is_within = state.is_test_code(f"{leads_to}{os.sep}")
    if state.is_test_code(place) and not is_within and not os.path.isfile(leads_to):
        return "a directory of another place is linked beside the tests"
    return _made(place)


def _read(path: str) -> str:
    if state.is_shared(path) and os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        return "" if contract.may("pipe", [""]) else "a test reads a pipe of the submission's"
    if (before := state.files.get(path)) is not None:
        state.files[path] = None  # it is opened once more, to look at it
        now, state.files[path] = held_by_file(path), before
        if now != before and not contract.may("rewrites", [""]):
            return (
                f"a test reads {os.path.basename(path)}, its own, that the submission has changed"
            )
    if path not in state.hidden:
        return ""
    said = [text for place, text in state.named if f"{path}/".startswith(f"{place.rstrip('/')}/")]
    if all(contract.may("names", [text]) for text in said):
        return ""
    return f"a test reads {os.path.relpath(path, state.root)}, where the submission said so"


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_written: set[str] = set()


def _loaded(arguments: tuple[Any, ...]) -> str:
    place = [*arguments, None][min(len(arguments) - 1, 1)]
    is_theirs = isinstance(place, (str, bytes)) and state.is_ours(os.fsdecode(place))
    return "a library that belongs to no package is loaded" if is_theirs else ""


def _started(arguments: tuple[Any, ...]) -> str:
    words: list[Any] = [arguments[0], *(arguments[1] or ()), *arguments[2:3]]
    for one in words:
        text = os.fsdecode(one) if isinstance(one, (str, bytes, os.PathLike)) else ""
        is_python = os.path.basename(text).startswith("python")
        if is_python or state.root in text or any(part in text for part in state.shared):
            return "a test starts a program"
    return ""


_CHECKS: dict[str, Callable[[tuple[Any, ...]], str]] = {
    "compile": _compiled,
    "exec": lambda found: (
        "a file that was written while tests ran is run"
        if state.is_shared(getattr(found[0], "co_filename", ""))
        else ""
    ),
    "ctypes.dlopen": _loaded,
    "import": _loaded,
    "marshal.loads": lambda _: "a test unmarshals" if state.is_test_code(_caller()) else "",
    "pickle.find_class": lambda found: f"{'.'.join(found)} is unpickled",
    "open": _opened,
    "os.remove": lambda found: _taken(_named(*found)),
    "os.rmdir": lambda found: _taken(_named(*found)),
    "os.truncate": lambda found: _taken(os.path.realpath(_named(found[0]))),
    "os.rename": _moved,
    "os.link": _moved,
    "os.symlink": _linked,
    "os.mkdir": lambda found: _made(_named(found[0], found[2])),
    "sqlite3.connect": lambda found: _made(_named(found[0])),
    "subprocess.Popen": _started,
    "os.exec": _started,
    "os.posix_spawn": _started,
}
