"""Every comparison helper of `assay.text` as a grader kind of the same name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import assay.text
from assay.errors import MissingExtraError
from assay.graders.base import Grader, Parameter, Score, signature_parameters
from assay.scoring.json_safe import Json

__all__ = ["Comparison"]


class Comparison(Grader):
    """Compares the answer with a reference by one of the comparison helpers."""

    function: ClassVar[Callable[..., float]]
    slow: ClassVar[bool] = False
    """Whether the helper may wait for another process, where `quick` does not decide."""
    quick: ClassVar[Callable[..., float | None]]
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
            import asyncio

            return await asyncio.to_thread(cls.function, **parameters)
        return cls.function(**parameters)

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Compare many; what is decided at once needs no coroutine, and no thread."""
        found: dict[int, Score | BaseException] = {}
        for number, call in enumerate(calls):
            if (value := cls._compare(call)) is not None:
                found[number] = value
        rest = [number for number in range(len(calls)) if number not in found]
        if rest:
            waited = await super().compute_many([calls[number] for number in rest])
            found.update(zip(rest, waited, strict=True))
        return [found[number] for number in range(len(calls))]

    @classmethod
    def explain(cls, value: float, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What was read in the answer, what was expected, and how that decided."""
        from assay.text.explain import explain

        return dict[str, Json](explain(cls.name, value, parameters))

    @classmethod
    def _compare(cls, call: Mapping[str, object]) -> float | BaseException | None:
        """What the helper says; None where that may take another process."""
        try:
            return cls.quick(**call) if cls.slow else cls.function(**call)
        except (Exception, SystemExit) as error:
            return error


def _comparison(name: str) -> type[Comparison]:
    function = cast("Callable[..., float]", getattr(assay.text, name))
    slow = name == "math_equal"
    members: dict[str, object] = {
        "name": name,
        "function": staticmethod(function),
        "slow": slow,
        "is_pure": not slow,
        "computes": True,
        "batch_size": 64 if slow else 256,
        "__doc__": inspect.getdoc(function),
        "__module__": __name__,
    }
    if slow:
        from assay.text.math import math_decided

        members["quick"] = staticmethod(math_decided)
    return cast("type[Comparison]", type(name, (Comparison,), members))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Comparison]:
        if name not in assay.text.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = _comparison(name)
        return found
