"""``string_check``: whether two texts are equal, or one contains the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from assay.graders.openai.base import Definition, OpenAIGrader, template_of
from assay.graders.openai.rewards import Reward
from assay.graders.openai.template import Scope

__all__ = ["StringCheck", "StringCheckGrader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StringCheck(Definition):
    """Compares two texts as they are: nothing is trimmed, and there are no wildcards.

    Attributes:
        input: A template.
        reference: A template.
        operation: ``eq``: they are equal; ``ne`` (or ``neq``): they are not; ``like``: the input
            contains the reference; ``ilike``: it does when case does not count.
        name: What it is called.
    """

    TAG: ClassVar[str] = "string_check"

    input: str
    reference: str
    operation: Literal["eq", "ne", "neq", "like", "ilike"]
    name: str = ""

    def __post_init__(self) -> None:
        template_of("input", self.input)
        template_of("reference", self.reference)

    async def reward(self, scope: Scope) -> Reward:
        """1.0 or 0.0; flagged where any input would contain an empty reference."""
        text = template_of("input", self.input).render(scope)
        wanted = template_of("reference", self.reference).render(scope)
        holds = _holds(self.operation, text, wanted)
        empty = self.operation in ("like", "ilike") and not wanted
        return Reward(
            value=float(holds),
            passed=holds,
            details={"input": text, "reference": wanted, "operation": self.operation},
            flags=("empty_reference",) if empty else (),
        )


def _holds(operation: str, text: str, wanted: str) -> bool:
    if operation == "eq":
        return text == wanted
    if operation == "like":
        return wanted in text
    if operation == "ilike":
        return wanted.casefold() in text.casefold()
    return text != wanted


class StringCheckGrader(OpenAIGrader):
    """Two texts are equal, or one contains the other (OpenAI's ``string_check``)."""

    name: ClassVar[str] = "string_check"
    definition: ClassVar[type[Definition]] = StringCheck
