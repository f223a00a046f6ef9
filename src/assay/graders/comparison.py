"""Every comparison helper of `assay.text` as a grader kind of the same name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

import assay.text
from assay.errors import InputError, MissingExtraError, is_fault
from assay.graders.base import Grader, Parameter, Score, signature_parameters
from assay.scoring.json_safe import Json

__all__ = ["Comparison"]

_FAR_APART = ("0", "-7", "987654321.5")
_NEGATE = Parameter("negate", bool, required=False, default=False)
"""Whether the score is what the comparison lacks to 1: the answer must not be like that."""


class Comparison(Grader):
    """Compares the answer with a reference by one of the comparison helpers."""

    function: ClassVar[Callable[..., float]]
    slow: ClassVar[bool] = False
    """Whether the helper may wait for another process, where ``quick`` does not decide."""
    quick: ClassVar[Callable[..., float | None]]
    filled_from: ClassVar[Mapping[str, str]] = {"reference": "expected"}

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """What the helper takes, and whether the opposite is asked for."""
        known, takes_any = signature_parameters(cls.function)
        return (known if cls.slow else {**known, _NEGATE.name: _NEGATE}), takes_any

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Compare an empty answer: the helper refuses what an author got wrong, and only that."""
        if (given := cls._given(options)) is not None:
            with suppress(MissingExtraError):  # the declaration is right, if not on this machine
                cls.quick(**given) if cls.slow else cls.compared(given)

    @classmethod
    def _given(cls, options: Mapping[str, Json]) -> dict[str, Json] | None:
        """Them, an empty answer, a stand-in for a reference; None if more comes with the work."""
        known = cls.parameters()[0]
        labels = options.get("choices", known["choices"].default) if "choices" in known else "0"
        first = next(iter(cast("Iterable[Json]", labels)), "0")
        stand_ins = {name: first for name in ("expected", "reference") if name in known}
        given: dict[str, Json] = {**stand_ins, **options, "answer": ""}
        return given if all(p.name in given for p in known.values() if p.required) else None

    @classmethod
    def compared(cls, parameters: Mapping[str, object]) -> float:
        """What the helper gives; with ``negate`` what that lacks to 1.

        Raises:
            InputError: ``negate`` of a part of the answer: one that has no such part would be paid.
        """
        if _NEGATE.name not in parameters:
            return cls.function(**parameters)
        value = cls.function(**_without_negate(parameters))
        if not parameters[_NEGATE.name]:
            return value
        if parameters.get("extract") is not None:
            raise InputError(
                "negate and extract do not go together: who leaves that part out would be paid",
                hint="leave out 'extract', so that the whole answer is looked at",
            )
        return 1.0 - value

    @classmethod
    def pays_for_nothing(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """Where nothing, a stray word and its own texts all score 1; or numbers far apart do."""
        if cls.slow or (given := cls._given(options)) is None:
            return ()

        def pays(*answers: str) -> bool:
            return all(cls.compared({**given, "answer": answer}) == 1.0 for answer in answers)

        try:
            if pays("", "zq7", " ".join(map(str, options.values()))):
                return ("it gives 1 whatever is answered, even to an empty answer",)
            if "tolerance" in cls.parameters()[0] and pays(*_FAR_APART):
                return ("it gives 1 whatever number is answered",)
        except MissingExtraError:
            pass
        return ()

    @classmethod
    def compute_score(cls, **parameters: object) -> Score | Awaitable[Score]:
        """Compare."""
        return cls.compared(parameters)

    @classmethod
    def explain(cls, value: float, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What was read in the answer, what was expected, and how that decided."""
        from assay.text.explain import explain

        if not parameters.get(_NEGATE.name):
            return dict[str, Json](explain(cls.name, value, _without_negate(parameters)))
        found = dict[str, Json](explain(cls.name, 1.0 - value, _without_negate(parameters)))
        return {**found, "decided": f"{found['decided']}; it must not be so (negate)"}


def _without_negate(parameters: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in parameters.items() if name != _NEGATE.name}


class _Slow(Comparison):
    """A comparison that waits in a thread."""

    slow = True

    @classmethod
    async def compute_score(cls, **parameters: object) -> float:
        from assay.graders.threads import in_thread

        if (value := cls.quick(**parameters)) is not None:
            return value
        return await in_thread(partial(cls.function, **parameters))

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Decide what can be decided at once; for that alone no task is made."""
        found = [cls._decided(call) for call in calls]
        rest = [call for call, value in zip(calls, found, strict=True) if value is None]
        waited = iter(await super().compute_many(rest) if rest else ())
        return [next(waited) if value is None else value for value in found]

    @classmethod
    def _decided(cls, call: Mapping[str, object]) -> float | BaseException | None:
        try:
            return cls.quick(**call)
        except BaseException as error:
            if not is_fault(error):
                raise
            return error


def _comparison(name: str) -> type[Comparison]:
    function = cast("Callable[..., float]", getattr(assay.text, name))
    slow = name == "math_equal"
    members: dict[str, object] = {
        "name": name,
        "function": staticmethod(function),
        "is_pure": not slow,
        "computes": True,
        "batch_size": 64 if slow else 256,
        "__doc__": inspect.getdoc(function),
        "__module__": __name__,
    }
    if slow:
        from assay.text.math import math_decided

        members["quick"] = staticmethod(math_decided)
    return cast("type[Comparison]", type(name, (_Slow if slow else Comparison,), members))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Comparison]:
        if name not in assay.text.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = _comparison(name)
        return found
