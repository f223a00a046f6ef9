"""Catches objects that are near everything: whose difference to any number is nothing.

``abs(f(x) - 1.5) < 1e-6``, `pytest.approx` and ``assertAlmostEqual`` ask the submission's object
how far it is from a number. So it is asked how far it is from others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    _Operation = Callable[[object, object], object]

ARITHMETIC = ("__sub__", "__rsub__", "__truediv__", "__rtruediv__")
_NEAR = 1e-3
_QUESTIONS: tuple[tuple[_Operation, int], ...] = (
    (lambda value, other: cast("float", value) - cast("float", other), 0),
    (lambda value, other: cast("float", other) - cast("float", value), 0),
    (lambda value, other: cast("float", value) / cast("float", other), 1),
    (lambda value, other: cast("float", other) / cast("float", value), 1),
)
"""Operations, and what comes of two values that are near each other."""


def distant_numbers(draw: random.Random) -> list[object]:
    """Numbers far from each other, small and large, of both signs.

    There are enough of them for one that counts modulo two not to meet them all.
    """
    sizes = (10, 10**3, 10**6, 10**9) * 2
    whole = [draw.randrange(size, 7 * size) for size in sizes]
    signed = [sign * number for number in whole for sign in (1, -1)]
    return [*signed, *(number + 0.3125 for number in signed[:8])]


def is_near_everything(value: object, other: object, numbers: Sequence[object]) -> bool:
    """Whether an object says that it is near every number it is asked about.

    An object that stops at nothing, as the rest of a stock, is near larger numbers only.

    Args:
        value: The object.
        other: What it is compared with: if that is a number, others around it are asked about too.
        numbers: From `distant_numbers`.
    """
    groups = [numbers]
    if type(other) in (int, float):
        at = cast("float", other)
        groups.append([at, at + 3, at * 2 + 1, at - 5, at - 2 * abs(at) - 7, at + 0.25, at - 0.25])
    return any(
        all(_is_near(ask, value, number, wanted) for number in group)
        for group in groups
        for ask, wanted in _QUESTIONS
    )


def _is_near(ask: _Operation, value: object, number: object, wanted: int) -> bool:
    try:
        distance = cast("float", ask(value, number))
        if wanted:
            distance = distance - wanted
    except Exception:
        return False
    return _is_nothing(lambda: abs(distance) < _NEAR) or _is_nothing(
        lambda: round(abs(distance), 3) == 0
    )


def _is_nothing(question: Callable[[], object]) -> bool:
    try:
        return bool(question())
    except Exception:
        return False
