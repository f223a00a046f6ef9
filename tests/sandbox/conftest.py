"""What tests of the sandbox share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from assay.sandbox import interactive, run
from tests.sandbox.ordinary_user import Drive, ordinary_user


@pytest.fixture(scope="module")
def drive() -> Generator[Drive]:
    """`run_command_sync`, by an ordinary user."""
    with ordinary_user() as call:
        yield call


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts something else into what is planned for a command."""
    whole = run.make_plan

    def change(**parts: object) -> None:
        def plan(*argv: Any, **options: Any) -> dict[str, object]:
            return {**whole(*argv, **options), **parts}

        for module in (run, interactive):
            monkeypatch.setattr(module, "make_plan", plan)

    return change
