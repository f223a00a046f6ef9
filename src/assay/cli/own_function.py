"""A function of a user's own file, which is trusted and runs in this process."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import InputError, nearest
from assay.graders.kinds import load_file

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["function_of"]


def function_of(file: str, name: str = "") -> Callable[..., object]:
    """The function of a file that grades: the one that is named, ``grade``, or the only one.

    The file is its user's own code, and is run.

    Raises:
        InputError: If there is no such file or function, or the file cannot be loaded.
    """
    if not Path(file).is_file():
        raise InputError(f"there is no file {file}")
    try:
        module = cast("ModuleType", load_file(file))
    except (Exception, SystemExit) as error:  # the author's code may fail in any way
        raise InputError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    own = {
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }
    public = [key for key in sorted(own) if not key.startswith("_")]
    wanted = name or ("grade" if "grade" in own or len(public) != 1 else public[0])
    found: object = getattr(module, wanted, None)
    if not callable(found):
        raise InputError(
            f"{file} has no function {wanted!r}", hint=nearest(wanted, public) or "write one"
        )
    return found
