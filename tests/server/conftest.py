"""What tests of the server share: one application for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.postgres import KINDS, new_location
from tests.server_app import Site, serving


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database of each kind is opened."""
    return new_location(request, str(request.param), tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path_factory.mktemp("server"))) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(running: Site) -> Site:
    """The same, for files that need no more of it: others have a `site` of their own."""
    return running
