"""The client that graders ask through, made when one of them first asks: most runs ask nobody.

Apart from the client, so that it can be said without loading it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.models.client import ModelClient

__all__ = ["Making", "client_to_come", "using_when_asked"]


class Making:
    """Makes a client once; whoever asks holds the lock of `assay.models.client`."""

    def __init__(self, make: Callable[[], ModelClient]) -> None:
        self._make = make
        self._made: ModelClient | None = None

    def client(self) -> ModelClient:
        """The client."""
        if self._made is None:
            self._made = self._make()
        return self._made


_MAKING: ContextVar[Making | None] = ContextVar("assay_model_client_to_come", default=None)


def client_to_come() -> Making | None:
    """What makes the client of the block that is run; None outside of `using_when_asked`."""
    return _MAKING.get()


@contextmanager
def using_when_asked(make: Callable[[], ModelClient]) -> Generator[None]:
    """Like `assay.models.using`, with a client that is made only if somebody asks a model."""
    token = _MAKING.set(Making(make))
    try:
        yield
    finally:
        _MAKING.reset(token)
