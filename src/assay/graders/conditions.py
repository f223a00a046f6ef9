"""Answers that are yes, no, or None where it cannot be told; and conditions made of such."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable


def all_of(answers: Collection[bool | None]) -> bool | None:
    """Whether all are yes."""
    return False if False in answers else None if None in answers else True


def any_of(answers: Collection[bool | None]) -> bool | None:
    """Whether one is yes."""
    return True if True in answers else None if None in answers else False


def opposite(answer: bool | None) -> bool | None:  # noqa: FBT001
    """No for yes, and yes for no."""
    return None if answer is None else not answer


_PYTHON = {"&&": "and", "||": "or", "!": "not", "(": "(", ")": ")", ",": ","}


def condition(words: Iterable[str], holds: Callable[[str], bool | None]) -> bool | None:
    """What a condition comes to: ``a && !(b || c)``, ``all(a, any(b, c))``.

    It is Python's grammar once its signs are, so that Python reads it.

    Args:
        words: Its words and signs.
        holds: Whether a single word holds.
    """
    try:
        read = ast.parse(" ".join(_PYTHON.get(word, repr(word)) for word in words), mode="eval")
        return _answer(read.body, holds)
    except (SyntaxError, RecursionError, MemoryError):
        return None


def _answer(part: ast.expr, holds: Callable[[str], bool | None]) -> bool | None:
    match part:
        case ast.Constant(value=str(word)):
            return holds(word)
        case ast.UnaryOp(operand=inner):
            return opposite(_answer(inner, holds))
        case ast.BoolOp(op=sign, values=parts):
            is_any = isinstance(sign, ast.Or)
        case ast.Call(func=ast.Constant(value=name), args=parts):
            is_any = name == "any"
        case _:
            return None
    answers = [_answer(one, holds) for one in parts]
    return any_of(answers) if is_any else all_of(answers)
