"""What blocks of a case have in common: how their rules are checked, and rules of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from assay.types.codec import Problem, ShapeError


def inside_problem(path: str, place: tuple[str | int, ...]) -> list[Problem]:
    """The problem of a path that is not inside the directory it belongs to, if it is one."""
    parts = path.replace("\\", "/").split("/")
    if not path.strip() or path.startswith(("/", "~")) or ".." in parts or "\0" in path:
        hint = "write a relative path without '..'"
        return [Problem(place, f"{path!r} does not stay inside the directory", hint)]
    return []


def texts(
    name: str, given: Sequence[str], *, required: bool = False, unique: bool = False
) -> list[Problem]:
    """The problems of a list of texts: empty ones, and where asked for an empty list or repeats."""
    problems: list[Problem] = []
    if required and not given:
        problems.append(Problem((name,), f"{name} must not be empty"))
    for number, text in enumerate(given):
        if not text.strip():
            problems.append(Problem((name, number), "is empty"))
        elif unique and text in given[:number]:
            problems.append(Problem((name, number), f"{text!r} is there twice", "use trials"))
    return problems


def positive(name: str, amount: float | None, unit: str = " seconds") -> list[Problem]:
    """The problem of an amount, by default a time, that is not more than 0, if it is one."""
    if amount is None or amount > 0:
        return []
    return [Problem((name,), f"must be more than 0{unit}, got {amount}")]


def mount_problems(mounts: Sequence[str]) -> Iterator[Problem]:
    """The problems of what a program may read: a relative path that leads out."""
    for number, mount in enumerate(mounts):
        if not Path(mount).is_absolute() and ".." in Path(mount).parts:
            hint = "what lies elsewhere has an absolute path"
            yield Problem(("mounts", number), f"{mount!r} leads out", hint)


class Ruled:
    """A block that has rules: where any are broken it is refused, with all that is wrong."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ShapeError(problems)

    def _problems(self) -> Iterable[Problem]:
        """What is wrong with it."""
        raise NotImplementedError
