"""Objects of the tests that were handed over: what the host is told, and may ask, of them."""

from __future__ import annotations

import collections.abc
import inspect
import threading
import warnings
from types import FunctionType, MethodType, ModuleType
from typing import Any

from assay.graders.testing.inside.boundary import contract
from assay.graders.testing.inside.boundary.judge_state import is_authors, state
from assay.graders.testing.inside.boundary.wire import OPERATORS, WireError

_ABCS = "Mapping MutableMapping Sequence MutableSequence Set MutableSet".split()
_FUNCTIONS = (FunctionType, MethodType, type(len), type("".join))
_LIBRARY = (
    "_collections _io _queue _random _thread array asyncio.locks asyncio.queues collections io "
    "itertools queue random re sqlite3 threading"
).split()
"""Where the objects are from whose public attributes lead to nothing else of the judge."""

_AWAITED = ("__await__", "__anext__", "__aenter__", "__aexit__")
_USES = frozenset("__call__ __iter__ __next__ __enter__ __exit__ __aiter__".split()).union(_AWAITED)
"""Operators that tell nothing of an object but what it is handed over for."""


def form_of(value: Any) -> dict[str, Any]:
    """What the host is told of an object."""
    if inspect.iscoroutine(value):
        return {"kind": "coroutine"}
    if not isinstance(value, _FUNCTIONS):
        operators = sorted(name for name in OPERATORS if _has_operator(value, name))
        abcs = [one for one in _ABCS if isinstance(value, getattr(collections.abc, one))]
        return {"operators": operators, "async": _is_async(value), "abcs": abcs}
    is_async, generates = inspect.iscoroutinefunction(value), inspect.isgeneratorfunction(value)
    form: dict[str, Any] = {
        "kind": "async" if is_async else "generator" if generates else "function",
        "name": getattr(value, "__name__", "function"),
        "doc": value.__doc__ if type(value.__doc__) is str else None,
    }
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return form
    form["parameters"] = [
        [one.name, int(one.kind), one.default is not one.empty] for one in parameters
    ]
    return form


def _is_async(value: Any) -> bool:
    """Whether a call of an object gives a coroutine; `AsyncMock` says so in a way of its own."""
    call = getattr(type(value), "__call__", None)  # noqa: B004 - its code is looked at
    is_mock = type(value).__module__ == "unittest.mock" and hasattr(type(value), "assert_awaited")
    return is_mock or inspect.iscoroutinefunction(call)


def _has_operator(value: Any, name: str) -> bool:
    """Whether an object has an operator beyond those that every object has."""
    owner = next((one for one in type(value).__mro__ if name in vars(one)), object)
    is_further = owner is not object and name not in ("__dir__", "__get__")
    return is_further and vars(owner)[name] is not None


def _has_attribute(value: Any, name: Any) -> bool:
    """Whether an object has attributes for others by such a name."""
    if type(name) is not str or isinstance(value, (*_FUNCTIONS, ModuleType)):
        return False
    if name.startswith("_"):  # what its class defines, as hooks are, and no name of Python's own
        return not name.startswith("__") and hasattr(type(value), name)
    return not isinstance(value, type) or is_authors(value)


def call(value: Any, trails: list[str], arguments: list[Any], named: dict[str, Any]) -> Any:
    """Call an object, such as a callback."""
    for one in (*arguments, *named.values()):
        contract.look(one, trails)
    contract.may("called", trails)
    state.called.update(trails)
    return _run(value(*arguments, **named))


def operate(value: Any, trails: list[str], name: str, arguments: list[Any]) -> Any:
    """Use an operator of an object."""
    _check(value, name, is_offered=name in OPERATORS and _has_operator(value, name))
    _ask_for(name, value, trails)
    found = value if name == "__await__" else getattr(type(value), name)(value, *arguments)
    if name in _AWAITED and not inspect.iscoroutine(found):  # as of an asynchronous generator

        async def wait(waiting: Any = found) -> Any:
            return await waiting

        found = wait()
    return found if name == "__next__" else _run(found)


def attribute(value: Any, trails: list[str], name: str) -> Any:
    """Read an attribute of an object."""
    _check(value, name, is_offered=_has_attribute(value, name))
    _ask_for(name, value, trails)
    return getattr(value, name)


def assign(value: Any, trails: list[str], name: str, given: Any) -> bool:
    """Set an attribute of an object, if the reference does so; whether it was set."""
    is_set = _has_attribute(value, name) and contract.may(f"sets:{name}", trails)
    if is_set:
        setattr(value, name, given)
    return is_set


def _check(value: Any, name: Any, *, is_offered: bool) -> None:
    if not is_offered:
        raise AttributeError(f"the test's {type(value).__name__} does not offer {name!r}")


def _ask_for(name: str, value: Any, trails: list[str]) -> None:
    """What a test's own object tells is what the reference asked it for."""
    if name in _USES:
        contract.may("uses", trails)
    place = type(value).__module__
    # With an extension of a database, code of the submission would run in the judge.
    is_known = place in _LIBRARY or place.partition(".")[0] in _LIBRARY
    if name in _USES or (is_known and "extension" not in name):
        return
    # Who is handed an object to work with may work with it otherwise than the reference does.
    is_method = is_authors(type(value)) and callable(getattr(type(value), name, None))
    if is_method and contract.may("uses", trails) and not state.learns:
        return
    why = f"{name} of what the test hands over is asked for"
    contract.require(f"reads:{name}", trails, "the submission", why)


def _run(result: Any) -> Any:
    """A coroutine of the tests' is run to its end, where their event loop runs."""
    if not inspect.iscoroutine(result):
        return result
    import asyncio

    for thread, loop in list(state.loops.items()):
        if loop.is_running() and thread != threading.get_ident():
            return asyncio.run_coroutine_threadsafe(result, loop).result()
    return asyncio.run(result)


def warn(_: Any, message: Any, category: Any, place: Any, line: Any) -> None:
    """Let the filters of the tests decide on a warning of the submission's."""
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise WireError("a warning of an unknown kind")
    text = message if isinstance(message, Warning) else str(message)
    warnings.warn_explicit(text, category, str(place), int(line))


ACTS = {"call": call, "operate": operate, "attribute": attribute, "assign": assign}
"""What the host may ask for, of nothing but what the tests gave it."""
