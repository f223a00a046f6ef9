"""What tests of hidden tests get."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.graders.testing.inside_runner import Runner, workspace


@pytest.fixture
def run() -> Iterator[Runner]:
    """Runs hidden tests against a submission with the real runner, in a workspace of their own."""
    with workspace() as runner:
        yield runner
