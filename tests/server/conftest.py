"""What tests of the server share: one application for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.postgres import location
from tests.server_app import Site, serving

__all__ = ["location"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path_factory.mktemp("server"))) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(running: Site) -> Site:
    """The same, for files that need no more of it: others have a `site` of their own."""
    return running
