"""`register_model`: a model of one's own, asked through a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from assay.errors import InputError
from assay.models.messages import Reply, Request
from assay.models.reference import parse_reference

__all__ = ["Complete", "register_model", "registered"]

Complete: TypeAlias = Callable[[Request], Awaitable[Reply | str]]
"""Answers a request: with text, or with a `Reply` that also knows its model, usage and cost."""

_REGISTERED: dict[str, Complete] = {}


def register_model(name: str, complete: Complete | None) -> None:
    """Give a model a name that every reference may use, in the whole process.

    The shape that a reply has to have stands in words at the end of the last message; replies are
    validated, repaired, cached and counted as those of any other model. Trying again is the
    function's own matter: what it raises ends the request.

    Args:
        name: Letters, digits, ``.``, ``_`` and ``-``. It goes before a name of the settings file.
        complete: What answers; registered again it replaces the former one, None removes it.

    Raises:
        InputError: If the name is none, or belongs to a provider's models (``gpt-...``).
    """
    reference = parse_reference(name)
    if reference.provider or reference.base_url:
        raise InputError(
            f"{name!r} cannot be registered: it means a model of {reference.provider}",
            hint="choose a name of its own, such as my-judge",
        )
    if complete is None:
        _REGISTERED.pop(name, None)
    else:
        _REGISTERED[name] = complete


def registered(name: str) -> Complete | None:
    """What was registered under a name."""
    return _REGISTERED.get(name)
