"""The client in use: the process's own, or one that is put in its place for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from assay.errors import InputError, ModelError
from assay.models.forking import renewed_in_forks

if TYPE_CHECKING:
    from assay.models.client import ModelClient
    from assay.models.settings import ModelSettings

__all__ = ["current_client", "unconfigured", "using", "using_when_asked"]

_CURRENT: ContextVar[ModelClient | _WhenAsked | None] = ContextVar(
    "assay_model_client", default=None
)
_OWN: list[ModelClient] = []


class _Lock:
    """What guards `_OWN`; made anew in forked processes."""

    def __init__(self) -> None:
        self.renew()
        renewed_in_forks(self)

    def renew(self) -> None:
        self.held = threading.Lock()


_LOCK = _Lock()


class _WhenAsked:
    """A client that is made when it is first asked for, and once."""

    def __init__(self, make: Callable[[], ModelClient]) -> None:
        self._make = make
        self._made: ModelClient | None = None

    def client(self) -> ModelClient:
        with _LOCK.held:
            if self._made is None:
                self._made = self._make()
            return self._made


def current_client() -> ModelClient:
    """The client of `using`; outside of it that of the process, made from the environment once.

    Raises:
        InputError: If the environment's settings cannot be read.
    """
    from assay.models.client import ModelClient

    client = _CURRENT.get()
    if client is not None:
        return client.client() if isinstance(client, _WhenAsked) else client
    with _LOCK.held:
        if not _OWN:
            _OWN.append(ModelClient())
        return _OWN[0]


@contextmanager
def using(client: ModelClient) -> Generator[ModelClient]:
    """Put a client in use, for the code in the block and the tasks that it starts."""
    token = _CURRENT.set(client)
    try:
        yield client
    finally:
        _CURRENT.reset(token)


@contextmanager
def using_when_asked(make: Callable[[], ModelClient]) -> Generator[None]:
    """Like `using`, with a client that is made only if somebody asks a model: most runs do not."""
    token = _CURRENT.set(_WhenAsked(make))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def unconfigured(reference: str, settings: ModelSettings | None = None) -> str:
    """Why a model cannot be asked here, known before anything is run.

    Args:
        reference: A model reference.
        settings: By default those of `current_client`.

    Returns:
        What is missing; empty if nothing is. With recordings only (``replay``) nothing is.
    """
    from assay.models.registered import registered
    from assay.models.resolving import resolve

    if registered(reference) is not None:
        return ""
    try:
        settings = current_client().settings if settings is None else settings
        if settings.cache == "replay":
            return ""
        resolve(reference, settings)
    except (InputError, ModelError) as error:
        return str(error)
    return ""
