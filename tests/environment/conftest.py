"""The served environments of this room's tests, in processes that they share."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.children import Children
from tests.environment.games import GAMES
from tests.served_environment import ServedProcess, serve_process, write_env


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    folder = tmp_path_factory.mktemp("served")
    write_env(folder)
    with Children() as children:
        yield serve_process(children, folder, "--workers", "2", "--set", "starts=8", "--openenv")


@pytest.fixture(scope="package")
def games(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    """Tasks of several steps and with tools, on one worker."""
    folder = tmp_path_factory.mktemp("games")
    write_env(folder, GAMES)
    with Children() as children:
        yield serve_process(children, folder, "--workers", "1")
