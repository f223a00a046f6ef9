"""What tests of the sandbox share."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.ordinary_user import Drive, ordinary_user


@pytest.fixture(scope="module")
def drive() -> Generator[Drive]:
    """`run_command_sync`, by an ordinary user."""
    with ordinary_user() as call:
        yield call
