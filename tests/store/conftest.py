"""A database of each kind, what stands in it, and the files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.store import Database, Datasets, Store
from assay.store.catalog import Catalog
from tests.postgres import PostgresServer, location, shared_server
from tests.store.noon import NOON

__all__ = ["location"]


@pytest.fixture
def database(location: str) -> Iterator[Database]:
    """A database of each kind in which it is always noon."""
    with Database.open(location) as opened:
        opened.clock = lambda: NOON
        yield opened


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


@pytest.fixture
def catalog(database: Database) -> Catalog:
    return Catalog(database)


@pytest.fixture
def datasets(database: Database) -> Datasets:
    return Datasets(database)


@pytest.fixture
def any_database(tmp_path: Path) -> Iterator[Database]:
    """For what is refused before the database is asked."""
    with Database.open(tmp_path / "any") as opened:
        yield opened


@pytest.fixture
def server(request: pytest.FixtureRequest) -> PostgresServer:
    return shared_server(request)


@pytest.fixture
def home(tmp_path: Path) -> str:
    """Where a store keeps its files."""
    return str(tmp_path / "home")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """What an agent worked in."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory
