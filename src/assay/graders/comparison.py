"""Every comparison helper of `assay.text` as a grader kind of the same name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import assay.text
from assay.errors import MissingExtraError
from assay.graders.base import Grader, Parameter, Score, signature_parameters
from assay.scoring.json_safe import Json
from assay.turns import current_turn

__all__ = ["Comparison"]


class Comparison(Grader):
    """Compares the answer with a reference by one of the comparison helpers."""

    function: ClassVar[Callable[..., float]]
    slow: ClassVar[bool] = False
    filled_from: ClassVar[Mapping[str, str]] = {"reference": "expected"}

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """What the helper takes."""
        return signature_parameters(cls.function)

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Compare an empty answer: the helper refuses what an author got wrong, and only that."""
        if cls.slow:
            return
        known, _ = cls.parameters()
        if any(p.required and p.name not in {*options, "answer"} for p in known.values()):
            return  # what it is compared with comes with the work
        try:
            cls.function(**{**options, "answer": ""})
        except MissingExtraError:
            return  # the declaration is right, if not on this machine

    @classmethod
    async def compute_score(cls, **parameters: object) -> float:
        """Compare; a helper that may wait for another process does so in a thread."""
        if cls.slow:
            from functools import partial

            from assay.graders.threads import in_thread

            return await in_thread(partial(cls.function, **parameters))
        return cls.function(**parameters)

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Compare many; one that only computes needs no coroutine."""
        if cls.slow:
            return await super().compute_many(calls)
        if len(calls) == 1 or (turn := current_turn()) is None:
            return [cls._compare(call) for call in calls]
        found: list[float | BaseException] = []
        turn.begin()
        for call in calls:
            found.append(cls._compare(call))
            turn.next()
        return found

    @classmethod
    def explain(cls, value: float, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What was read in the answer, what was expected, and how that decided."""
        from assay.text.explain import explain

        return dict[str, Json](explain(cls.name, value, parameters))

    @classmethod
    def _compare(cls, call: Mapping[str, object]) -> float | BaseException:
        try:
            return cls.function(**call)
        except (Exception, SystemExit) as error:
            return error


def _comparison(name: str) -> type[Comparison]:
    function = cast("Callable[..., float]", getattr(assay.text, name))
    slow = name == "math_equal"
    members = {
        "name": name,
        "function": staticmethod(function),
        "slow": slow,
        "is_pure": not slow,
        "batch_size": 1 if slow else 256,
        "__doc__": inspect.getdoc(function),
        "__module__": __name__,
    }
    return cast("type[Comparison]", type(name, (Comparison,), members))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Comparison]:
        if name not in assay.text.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = _comparison(name)
        return found
