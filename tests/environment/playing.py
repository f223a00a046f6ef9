"""A fake model for agents of this room's tests, whose replies are not kept."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from assay.models import ModelClient, ModelSettings, using
from assay.testing import FakeModel

__all__ = ["playing"]


@contextmanager
def playing(*script: object) -> Generator[FakeModel]:
    """A model that says what the script has, turn by turn; without one that it is done."""
    with FakeModel(script or ("Done.",)) as fake, using(ModelClient(ModelSettings(cache="off"))):
        yield fake
