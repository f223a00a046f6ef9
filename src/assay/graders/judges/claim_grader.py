"""`ClaimGrader`: what graders have in common that take an answer apart into claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from assay.errors import GraderError, InputError, ModelError
from assay.graders.judges.base import JudgeGrader
from assay.graders.judges.claims import MAX_ANSWER, Claims
from assay.graders.judges.gate import emptiness
from assay.graders.judges.panel import Opinion
from assay.graders.judges.prompt import suspicions
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

__all__ = ["ClaimGrader", "OnEmpty", "question_in"]

OnEmpty: TypeAlias = Literal["zero", "skip", "one"]
"""What an answer is worth that has words and claims nothing."""

_EMPTY: Mapping[str, float | None] = {"zero": 0.0, "skip": None, "one": 1.0}
_NO_CLAIMS = "the answer claims nothing"


class ClaimGrader(JudgeGrader):
    """A grader of an answer's claims: those that hold, of all of them."""

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse an unknown ``on_empty`` and an impossible ``max_claims``."""
        super().check_options(options)
        cls.check_limits(options.get("on_empty", "zero"), options.get("max_claims", 1))

    @classmethod
    def check_limits(cls, on_empty: object, max_claims: object) -> None:
        """Refuse an unknown ``on_empty`` and an impossible ``max_claims``.

        Raises:
            InputError: Naming it.
        """
        if on_empty not in _EMPTY:
            raise InputError(f"on_empty: {on_empty!r} is none of {', '.join(_EMPTY)}")
        if isinstance(max_claims, bool) or not isinstance(max_claims, int) or max_claims < 1:
            raise InputError(f"max_claims must be 1 or more, got {max_claims!r}")

    @classmethod
    def gated(cls, answer: str, models: tuple[str, ...]) -> SubScore | None:
        """The score of an answer about which nobody needs to be asked, or None.

        One without content is worth 0 whatever ``on_empty`` says.

        Raises:
            ModelError: Of the kind ``overflow`` for more than `MAX_ANSWER` characters: what nobody
                reads has no score, as with all judges.
        """
        if not (why := emptiness(answer)):
            if len(answer) > MAX_ANSWER:
                raise ModelError(
                    f"the answer has {len(answer):,} characters; at most {MAX_ANSWER:,} are read",
                    kind="overflow",
                    hint="a judge reads the whole of it or none; grade such work in parts",
                )
            return None
        metadata: dict[str, Json] = {"models": list(models), "asked": False, "why": why}
        return SubScore(cls.name, 0.0, metadata=metadata, reason=why)

    @staticmethod
    def uncounted(claims: Claims, on_empty: OnEmpty, max_claims: int) -> Opinion | None:
        """What is found of an answer that claims nothing, or too much; else None."""
        many = len(claims.items)
        if many > max_claims:
            # The answer's doing, hence a 0: were it an error, a flood would be a way out.
            why = f"the answer makes {many} claims; max_claims allows {max_claims}"
            listed: list[Json] = [claim.text for claim in claims.items[:max_claims]]
            metadata: dict[str, Json] = {"claims": listed, "total": many}
            return Opinion("", 0.0, why, metadata=metadata)
        if many:
            return None
        metadata = {"claims": [], "total": 0, **claims.told()}
        return Opinion("", _EMPTY[on_empty], _NO_CLAIMS, metadata=metadata)

    @staticmethod
    def noted(answer: str) -> dict[str, Json]:
        """Patterns of attack that an answer shows."""
        found = suspicions(answer)
        return {"injection_suspected": list(found)} if found else {}


def question_in(question: str | None, thread: StringThread | None) -> str:
    """The question, or else the last user turn.

    Raises:
        GraderError: If there is neither.
    """
    found = question or (thread.last_user_turn() if thread is not None else None) or ""
    if not found.strip():
        raise GraderError(
            "there is no question to judge by", hint="give 'question', or a user turn"
        )
    return found
