"""How the client asks: its methods are operations of the table, awaited or blocking.

``get = ask(runs.show_run)`` in a class of the client is a method with the parameters, the result
and the documentation of the operation. Of one class there are two sorts: ``Runs[Awaited]``, whose
methods are coroutines, and ``Runs[Blocking]``, whose methods wait.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextvars import ContextVar
from functools import cached_property
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from assay.client.errors import ArgumentError
from assay.client.portal import Portal
from assay.client.scope import Scope
from assay.errors import nearest
from assay.service.operation import MAX_LIMIT, Operation
from assay.store.pages import Page

M_co = TypeVar("M_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Awaited:
    """The sort of a part whose calls are awaited."""


class Blocking:
    """The sort of a part whose calls wait."""


class Part(Generic[M_co]):
    """A part of a client.

    Args:
        scope: What it asks.
        portal: Where calls that wait are carried out; None where they are awaited.
    """

    called: ClassVar[str] = ""
    """How users get to it, such as ``graders``."""

    def __init__(self, scope: Scope, portal: Portal | None) -> None:
        self._scope, self._portal = scope, portal

    def ask(self, operation: Operation[..., T], given: Mapping[str, Any]) -> Awaitable[T]:
        """Ask for an operation."""
        return self._scope.carry_out(operation, given)

    def carried_out(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T] | T:
        """Work to be awaited; or its result, with warnings at the line of whoever called."""
        if self._portal is None:
            return work
        told: list[str] = []
        token = _TOLD.set(told)
        try:
            return self._portal.run(work)
        finally:
            _TOLD.reset(token)
            for message in told:
                warnings.warn(message, UserWarning, stacklevel=4)

    def each(self, steps: AsyncIterator[T]) -> AsyncIterator[T] | Iterator[T]:
        """Steps, to be awaited or not."""
        return steps if self._portal is None else self._portal.each(steps)


_TOLD: ContextVar[list[str] | None] = ContextVar("assay_client_told", default=None)


def warn_caller(message: str, level: int) -> None:
    """Warn of something in the call that is being carried out.

    Args:
        message: What is worth a look.
        level: How many calls above this one the caller stands, where the call is awaited.
    """
    told = _TOLD.get()
    if told is None:
        warnings.warn(message, UserWarning, stacklevel=level + 1)
    else:
        told.append(message)


class _Named:
    """What is a method of parts: it knows what users call it, and checks its arguments.

    Args:
        work: What is done, of a part and arguments that fit.
        signature: What users give it.
        about: Tells what it does.
    """

    def __init__(
        self, work: Callable[..., Any], signature: inspect.Signature, about: Callable[[], str]
    ) -> None:
        self._work, self._signature, self._tell, self._name = work, signature, about, ""

    @cached_property
    def _about(self) -> str:
        return self._tell()

    def __set_name__(self, owner: type[Part[object]], name: str) -> None:
        self._name = f"{owner.called}.{name}"

    def _checked(self, call: Callable[..., object]) -> Callable[..., Any]:
        """A function that is told of arguments that fit."""

        def checked(*args: object, **kwargs: object) -> object:
            return call(**arguments(self._name, self._signature, args, kwargs))

        checked.__name__ = checked.__qualname__ = self._name
        checked.__doc__ = self._about
        vars(checked)["__signature__"] = self._signature
        return checked


class OneResult(_Named, Generic[P, T]):
    """A method of parts that gives one result."""

    @overload
    def __get__(self, part: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self, part: Part[Awaited], owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, part: Part[Blocking], owner: object = None) -> Callable[P, T]: ...
    def __get__(self, part: Part[Any] | None, owner: object = None) -> Any:
        if part is None:
            return self

        def call(**given: object) -> object:
            return part.carried_out(self._work(part, **given))

        return self._checked(call)


class ManyResults(_Named, Generic[P, T]):
    """A method of parts that gives one result after another."""

    @overload
    def __get__(self, part: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self, part: Part[Awaited], owner: object = None
    ) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, part: Part[Blocking], owner: object = None) -> Callable[P, Iterator[T]]: ...
    def __get__(self, part: Part[Any] | None, owner: object = None) -> Any:
        if part is None:
            return self

        def call(**given: object) -> object:
            return part.each(self._work(part, **given))

        return self._checked(call)


@overload
def ask(operation: Operation[P, T]) -> OneResult[P, T]: ...
@overload
def ask(operation: Operation[P, R], then: Callable[[R], T]) -> OneResult[P, T]: ...
def ask(
    operation: Operation[P, Any], then: Callable[[Any], Any] | None = None
) -> OneResult[P, Any]:
    """The method that asks for an operation.

    Args:
        operation: The operation.
        then: What of its result is wanted; all by default.
    """

    async def asked(part: Part[Any], **given: object) -> object:
        found = await part.ask(operation, given)
        return found if then is None else then(found)

    return OneResult(asked, operation.signature, lambda: operation.about)


@overload
def ask_all(operation: Operation[P, Page[T]]) -> OneResult[P, list[T]]: ...
@overload
def ask_all(operation: Operation[P, Page[R]], each: Callable[[R], T]) -> OneResult[P, list[T]]: ...
def ask_all(
    operation: Operation[P, Page[Any]], each: Callable[[Any], Any] | None = None
) -> OneResult[P, list[Any]]:
    """The method that asks for all of a list, page after page; or for ``limit`` of it.

    Args:
        operation: The operation.
        each: What of each item is wanted; all by default.
    """

    async def asked(part: Part[Any], *, limit: int | None = None, **given: object) -> list[Any]:
        items: list[Any] = []
        while True:
            most = MAX_LIMIT if limit is None else min(limit - len(items), MAX_LIMIT)
            page = await part.ask(operation, {**given, "limit": most})
            items += page if each is None else map(each, page)
            if page.next is None or len(items) == limit:
                return items
            given |= {"after": page.next, "offset": 0}

    return OneResult(asked, operation.signature, lambda: operation.about)


def by_hand(function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> OneResult[P, T]:
    """The method that does more than to ask for one operation."""
    return OneResult(function, _without_first(function), lambda: inspect.getdoc(function) or "")


def like(
    operation: Operation[P, Any],
) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], OneResult[P, T]]:
    """The method that is asked as an operation is, and does more than that."""
    return lambda work: OneResult(work, *_like(operation, work))


def steps_like(
    operation: Operation[P, Any],
) -> Callable[[Callable[..., AsyncIterator[T]]], ManyResults[P, T]]:
    """The same for one that gives one result after another."""
    return lambda work: ManyResults(work, *_like(operation, work))


def _like(
    operation: Operation[..., Any], work: Callable[..., object]
) -> tuple[inspect.Signature, Callable[[], str]]:
    """The parameters of an operation, and what a method does with them."""
    returned = inspect.signature(work).return_annotation
    signature = operation.signature.replace(return_annotation=returned)
    return signature, lambda: operation.about_as(inspect.getdoc(work) or "")


def _without_first(function: Callable[..., object]) -> inspect.Signature:
    """The signature of a method, with every option that its ``Unpack[...]`` names."""
    found: list[inspect.Parameter] = []
    for one in list(inspect.signature(function).parameters.values())[1:]:
        if one.kind is one.VAR_KEYWORD:
            options = vars(sys.modules[function.__module__])[one.annotation[len("Unpack[") : -1]]
            found += [
                inspect.Parameter(name, one.KEYWORD_ONLY, annotation=kind, default=None)
                for name, kind in options.__annotations__.items()
            ]
        else:
            found.append(one)
    return inspect.signature(function).replace(parameters=found)


def arguments(
    name: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, Any]:
    """Arguments by their names.

    Raises:
        ArgumentError: If they do not fit.
    """
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise _refusal(name, signature.parameters, args, kwargs, error) from None


def _refusal(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    error: TypeError,
) -> ArgumentError:
    named = list(parameters)
    by_place = set(list(parameters)[: len(args)])
    missing = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.name not in kwargs and p.name not in by_place
    ]
    unknown = [given for given in kwargs if given not in named]
    if unknown:
        hint = f"did you mean {missing[0]!r}?" if len(missing) == 1 else nearest(unknown[0], named)
        return ArgumentError(f"{name}() takes no parameter {unknown[0]!r:.80}", hint=hint)
    if missing:
        return ArgumentError(f"{name}() needs {' and '.join(f'{one}=' for one in missing)}")
    hint = "name them: " + ", ".join(f"{one}=" for one in named)
    return ArgumentError(f"{name}(): {error}", hint=hint)
