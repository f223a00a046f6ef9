"""Interpreters that have the packages of others, as `sh tools/agents.sh` installs them."""

from __future__ import annotations

from pathlib import Path

import pytest

_PLACE = Path(__file__).parents[2] / ".bench"


@pytest.fixture(scope="session")
def hud() -> Path:
    """The interpreter that has HUD's SDK."""
    return _interpreter("hud", "HUD's SDK")


@pytest.fixture(scope="session")
def openenv_python() -> Path:
    """The interpreter that has OpenEnv."""
    return _interpreter("openenv", "OpenEnv")


def _interpreter(folder: str, name: str) -> Path:
    python = _PLACE / folder / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed; sh tools/agents.sh installs it")
    return python
