"""Whether tests can be judged in a process of their own, and what a grader asks for.

With ``process`` the tests run in a judge that shares nothing with the submission; with ``shared``
they run in one process with it. ``auto`` is decided for a case before it is graded (see
`assay.eval.isolation`); where nobody decided it means ``shared``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from assay.errors import InputError
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.graders.testing.commands import Runner

__all__ = [
    "BOUNDARY",
    "Fresh",
    "Isolation",
    "Mode",
    "check_isolation",
    "is_separable",
    "mode_of",
    "separable_runners",
]

BOUNDARY = 1
"""Version of the boundary between judge and submission: what was decided for another is stale."""

Mode: TypeAlias = Literal["process", "shared"]
Isolation: TypeAlias = Literal["auto", "process", "shared"]
Fresh: TypeAlias = Literal["module", "test"]

_SEPARABLE: Mapping[Runner, str] = {
    "pytest": "pytest",
    "unittest": "unittest",
    "node": "node --test",
}
"""The runners that can be judged apart, and what people call them."""


def is_separable(cmd: str, tree: str | None = None) -> bool:
    """Whether the tests that a command runs can be judged in a process of their own.

    Args:
        cmd: The shell line.
        tree: Where ``package.json`` and ``Makefile`` are looked up, if anywhere.
    """
    from assay.graders.testing.commands import read_command

    try:
        return read_command(cmd, tree).runner in _SEPARABLE
    except InputError:  # what is wrong with it will be said when it is to be run
        return False


def separable_runners() -> str:
    """The runners that can be judged apart, as people call them."""
    *others, last = _SEPARABLE.values()
    return f"{', '.join(others)} and {last}"


def check_isolation(options: Mapping[str, Json], cmd: str) -> None:
    """Refuse ``isolation: process`` for a command that cannot have it.

    Raises:
        InputError: Naming the runners that can.
    """
    if options.get("isolation") == "process" and not is_separable(cmd):
        raise _not_separable(cmd)


def mode_of(isolation: Isolation, cmd: str, tree: str | None = None) -> Mode:
    """The mode that a command is run in.

    Args:
        isolation: What is asked for; ``auto`` was not decided by anybody, and means ``shared``.
        cmd: The shell line.
        tree: The source, where it is known.

    Raises:
        InputError: For ``process`` and a command that cannot have it, and for any other word.
    """
    if isolation not in ("auto", "process", "shared"):
        raise InputError(
            f"isolation must be auto, process or shared, got {cast('object', isolation)!r}"
        )
    if isolation != "process":
        return "shared"
    if not is_separable(cmd, tree):
        raise _not_separable(cmd)
    return "process"


def _not_separable(cmd: str) -> InputError:
    from assay.graders.testing.commands import read_command

    program = read_command(cmd).program or cmd
    return InputError(
        f"isolation: process is not available for {program!r}",
        hint=f"{separable_runners()} have it; leave isolation out, or say shared",
    )
