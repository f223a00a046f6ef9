"""Rules that several blocks of a case share. Each gives the problems it finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def positive(name: str, seconds: float) -> list[Problem]:
    """The problem of a time that is not more than 0, if it is one."""
    if seconds > 0:
        return []
    return [Problem((name,), f"must be more than 0 seconds, got {seconds}")]


def refuse(problems: Iterable[Problem]) -> None:
    """Raise if there are any problems."""
    found = list(problems)
    if found:
        raise ShapeError(found)
