"""A database of each kind, and who asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.registry.policy import Permissions
from assay.service.operation import LOCAL, Desk
from assay.store.database import Database
from tests.postgres import location

__all__ = ["location"]


@pytest.fixture
def database(location: str, tmp_path: Path) -> Iterator[Database]:
    with Database.open(location, home=str(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def desk(database: Database) -> Desk:
    """The project `default`, asked by who owns the database."""
    return Desk(database, "default", LOCAL, Permissions())
