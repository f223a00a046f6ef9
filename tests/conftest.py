"""What every test gets: a home of its own, and no setting of whoever runs the tests."""

from __future__ import annotations

import gc
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("assay", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("assay")

_NUMBERS = itertools.count()


def pytest_configure() -> None:
    """Collecting makes a great many objects, and no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody who looks for garbage has to walk through it."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ASSAY_"):
            monkeypatch.delenv(name)
    # Not in `tmp_path`: most tests have no files, and a directory for each would take its time.
    home = tmp_path_factory.getbasetemp() / f"home-{next(_NUMBERS)}"
    monkeypatch.setenv("ASSAY_HOME", str(home))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty directory to grade."""
    place = tmp_path / "workspace"
    place.mkdir()
    return place
