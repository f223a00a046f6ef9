"""What hooks share: importing a trainer's package, and the numbers to log for one answer."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from assay.errors import InputError
from assay.graders.batch import Batch


def module_of(package: str, name: str) -> ModuleType:
    """A trainer's module."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if missing.partition(".")[0] != name.partition(".")[0]:
            raise  # something that the trainer needs: its own message says what
        raise InputError(f"{package} is not installed", hint=f"pip install {package}") from error


def numbers_of(batch: Batch, number: int) -> dict[str, float]:
    """Finite numbers about one answer; trainers average each over the answers that have it."""
    one = batch.graded[number]
    parts = {f"part/{name}": values[number] for name, values in batch.components.items()}
    return {
        "graded": float(one.score is not None),
        "flagged": float(bool(one.flags)),
        "grader_seconds": batch.seconds[number] or 0.0,
        **{name: value for name, value in parts.items() if value is not None},
    }
