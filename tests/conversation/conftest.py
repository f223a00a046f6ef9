"""The providers' own clients, each the oracle of its protocol."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

__all__: list[str] = []


# Seconds each, which those who only collect do not wait for.


@pytest.fixture(scope="session")
def openai() -> ModuleType:
    return importlib.import_module("openai")


@pytest.fixture(scope="session")
def anthropic() -> ModuleType:
    return importlib.import_module("anthropic")


@pytest.fixture(scope="session")
def genai() -> ModuleType:
    return importlib.import_module("google.genai")
