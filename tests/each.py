"""A matrix as one test: each of its rows is a subtest, which is named where it fails."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

__all__ = ["each"]

Test = Callable[..., Any]


def each(names: str | Sequence[str], rows: Collection[Any]) -> Callable[[Test], Test]:
    """Like ``pytest.mark.parametrize``, without an item to collect and to set up for every row.

    For tests whose fixtures may be the same for all rows: those who write need ``parametrize``.
    """
    keys = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)

    def one_test(test: Test) -> Test:
        wanted = inspect.signature(test).parameters
        others = [wanted[name] for name in wanted if name not in (*keys, "subtests")]

        def arguments(row: Any, given: dict[str, Any]) -> dict[str, Any]:
            values = row if len(keys) > 1 else (row,)
            return {**given, **dict(zip(keys, values, strict=True))}

        @functools.wraps(test)
        def together(*self: Any, subtests: pytest.Subtests, **given: Any) -> None:
            given |= {"subtests": subtests} if "subtests" in wanted else {}
            for row in rows:
                with subtests.test(_told(row)):
                    test(*self, **arguments(row, given))

        @functools.wraps(test)
        async def awaited(*self: Any, subtests: pytest.Subtests, **given: Any) -> None:
            given |= {"subtests": subtests} if "subtests" in wanted else {}
            for row in rows:
                with subtests.test(_told(row)):
                    await test(*self, **arguments(row, given))

        found: Any = awaited if inspect.iscoroutinefunction(test) else together
        own = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        found.__signature__ = inspect.Signature([*others, own])
        return found

    return one_test


def _told(row: object) -> str:
    """A row in one line, however large or deep it is."""
    try:
        return ascii(reprlib.repr(row))[1:-1]
    except ValueError:  # a number of more digits than Python shows
        return type(row).__name__
