"""What all calls of a client have in common: arguments are checked, and who calls is remembered."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar, cast

from assay.client.errors import ArgumentError
from assay.errors import nearest

__all__ = ["checked", "checked_calls", "warn_caller"]

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

_OURS = "assay.client"
_Registry: TypeAlias = "dict[str | tuple[str, type[Warning], int], int]"


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the caller's, as `warnings.warn_explicit` wants it."""

    file: str
    line: int
    module: str
    registry: _Registry


_CALLER: ContextVar[_Place | None] = ContextVar("assay_client_caller", default=None)


def checked_calls(where: str) -> Callable[[C], C]:
    """Check the arguments of all public calls of a class.

    Args:
        where: How users get to the class, such as ``graders``.
    """

    def decorate(kind: C) -> C:
        for name, member in list(vars(kind).items()):
            if not name.startswith("_") and inspect.isfunction(member):
                setattr(kind, name, checked(f"{where}.{name}")(member))
        return kind

    return decorate


def checked(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make arguments that do not fit an `InputError`.

    Args:
        name: What users call the function.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature, waits = inspect.signature(function), inspect.iscoroutinefunction(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise _refusal(name, signature.parameters, args, kwargs, error) from None
            if not waits:
                return function(*args, **kwargs)
            work = cast("Callable[..., Awaitable[object]]", function)
            return cast("T", _placed(_caller(), work, args, kwargs))

        return call

    return decorate


def _refusal(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    error: TypeError,
) -> ArgumentError:
    named = [p for p in parameters if p != "self"]
    by_place = set(list(parameters)[: len(args)])
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty
        and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        and p.name not in kwargs
        and p.name not in by_place
    ]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if takes_any else [given for given in kwargs if given not in named]
    if unknown:
        hint = f"did you mean {missing[0]!r}?" if len(missing) == 1 else nearest(unknown[0], named)
        return ArgumentError(f"{name}() takes no parameter {unknown[0]!r:.80}", hint=hint)
    if missing:
        return ArgumentError(f"{name}() needs {' and '.join(f'{one}=' for one in missing)}")
    hint = "name them: " + ", ".join(f"{one}=" for one in named)
    return ArgumentError(f"{name}(): {error}", hint=hint)


async def _placed(
    place: _Place | None,
    work: Callable[..., Awaitable[object]],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:
    token = _CALLER.set(place)
    try:
        return await work(*args, **kwargs)
    finally:
        _CALLER.reset(token)


def _caller() -> _Place | None:
    """The nearest line outside of the client: of a task that comes later nothing else knows it."""
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module != _OURS and not module.startswith(f"{_OURS}."):
            registry = cast("_Registry", frame.f_globals.setdefault("__warningregistry__", {}))
            return _Place(frame.f_code.co_filename, frame.f_lineno, module, registry)
        frame = frame.f_back
    return None


def warn_caller(message: str) -> None:
    """Warn of something in the call that is being carried out, at the caller's own line."""
    place = _CALLER.get()
    if place is None:
        warnings.warn(message, UserWarning, stacklevel=3)
        return
    warnings.warn_explicit(
        message,
        UserWarning,
        place.file,
        place.line,
        module=place.module,
        registry=place.registry,
    )
