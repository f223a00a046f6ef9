"""Names of a package that are loaded when they are first asked for (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["names_on_demand"]


def names_on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A package's ``__getattr__``.

    Returns:
        A function that loads the module of a name and keeps the name in the package. It raises
        `AttributeError` for every other name.
    """

    def load(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
