"""A registry of this room's tests: on SQLite, since no SQL stands here and the store's ask both."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from assay.store.database import Database
from tests.grader_definitions import StoredGraders


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with Database.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def registry(database: Database) -> StoredGraders:
    return StoredGraders(database, by="ann")
