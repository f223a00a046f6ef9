"""`Answer[T]`: the agent's answer, parsed into the type that a template declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.types.typed import is_finite, problem_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer as the template receives it when it declares ``returns=T``.

    Attributes:
        content: The parsed answer; the original string where parsing failed, so check ``ok``.
        raw: The answer as it was submitted.
        error: Why it could not be parsed; None if it was.
    """

    content: T
    raw: str = ""
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether ``content`` is a ``T``."""
        return self.error is None


def parse_answer(raw: object, adapter: TypeAdapter[object], *, plain_text: bool) -> Answer[object]:
    """Parse an answer.

    Text is read as JSON, with a fenced block's fence taken off; where the declared type is text,
    it is taken as it is.

    Returns the answer; ``error`` says why, if it could not be parsed. Never raises for what an
    agent wrote.
    """
    import pydantic

    if raw is None:
        return Answer("" if plain_text else None, "", "there is no answer")
    text = raw if isinstance(raw, str) else ""
    try:
        if not isinstance(raw, str):
            content = adapter.validate_python(raw)
        else:
            content = raw if plain_text else _validate_text(raw, adapter)
        if not is_finite(content):  # no comparison with it is true, and JSON has none
            return Answer(raw, text or str(raw), "it holds a number that is not finite")
        return Answer(content, text or str(raw))
    except (pydantic.ValidationError, ValueError, RecursionError) as error:
        return Answer(raw, text or str(raw), _reason(error))


def _validate_text(text: str, adapter: TypeAdapter[object]) -> object:
    """Read text as JSON of the type: as it stands, else what its fence or braces enclose."""
    import json

    import pydantic

    from assay.text import parse_json

    try:
        return adapter.validate_json(text.strip(), strict=None)
    except pydantic.ValidationError:
        parsed = parse_json(text)
        if parsed.error:
            raise
        return adapter.validate_json(json.dumps(parsed.value))


def _reason(error: Exception) -> str:
    import pydantic

    if isinstance(error, pydantic.ValidationError):
        return problem_of(error)
    return f"{type(error).__name__}: {error}"
