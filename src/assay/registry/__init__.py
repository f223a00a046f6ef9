"""The registry: graders that have a name, immutable versions and a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.registry.definitions import (
        KINDS,
        Definition,
        definition_from,
    )
    from assay.registry.imports import Imported
    from assay.registry.registry import Registry
    from assay.registry.validation import ValidationFailedError

__all__ = [
    "KINDS",
    "Definition",
    "Imported",
    "Registry",
    "ValidationFailedError",
    "definition_from",
]

_HOME_OF = {
    **dict.fromkeys(__all__, "assay.registry.definitions"),
    "Imported": "assay.registry.imports",
    "Registry": "assay.registry.registry",
    "ValidationFailedError": "assay.registry.validation",
}

__getattr__ = names_on_demand(__name__, _HOME_OF)
