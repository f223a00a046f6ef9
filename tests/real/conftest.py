"""Interpreters that have the packages of others, as `sh tools/agents.sh` installs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.children import of_peers


@pytest.fixture(scope="session")
def hud() -> Path:
    """The interpreter that has HUD's SDK."""
    return of_peers("hud", "HUD's SDK")


@pytest.fixture(scope="session")
def openenv_python() -> Path:
    """The interpreter that has OpenEnv."""
    return of_peers("openenv", "OpenEnv")
