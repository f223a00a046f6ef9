"""`Batched`: graders that grade whole batches; see `assay.graders.batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar, cast

from assay.scoring.json_safe import Json
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.graders.batch import Batch, Batches

P = ParamSpec("P")
T = TypeVar("T")


class _OfEither(Generic[P, T]):
    """A method of a class as well as of its objects."""

    def __init__(self, function: Callable[Concatenate[Batched | type[Batched], P], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Batched | None, owner: type[Batched]) -> Callable[P, T]:
        bound = MethodType(self._function, owner if instance is None else instance)
        return cast("Callable[P, T]", bound)


class Batched:
    """Grades batches: a grader with its options, a class of graders, or a declared one."""

    __slots__ = ()

    @_OfEither
    async def grade_batch(
        self: Batched | type[Batched],
        submissions: Iterable[Submission | Mapping[str, Json]],
        *,
        deadline: float | None = None,
        attempts: int = 1,
        at_once: int | None = None,
        **options: object,
    ) -> Batch:
        """Grade many submissions, each with a deadline of its own; see `assay.graders.batch`.

        It can be called on a class, and on an object whose fields are its options; from any
        thread, process or event loop, which goes on with its other work. Callers that cannot
        await use `grade_batch_now`.

        ``submissions``: Submissions, or rows as in a dataset; an iterator is read in parts of
        10,000.
        ``deadline``: Seconds that an item may take once its turn has come. A late item is stopped
        and has no reward.
        ``at_once``: Items under way at the same time, for graders that take them one by one; by
        default as many as the grader can bear.
        """
        batches = _batches(self, options, deadline, attempts, at_once)
        return await batches.grade(submissions)

    @_OfEither
    def grade_batch_now(
        self: Batched | type[Batched],
        submissions: Iterable[Submission | Mapping[str, Json]],
        *,
        deadline: float | None = None,
        attempts: int = 1,
        at_once: int | None = None,
        **options: object,
    ) -> Batch:
        """As `grade_batch`, for callers that cannot await; Ctrl-C ends the work."""
        batches = _batches(self, options, deadline, attempts, at_once)
        return batches.grade_now(submissions)


def _batches(
    grader: Batched | type[Batched],
    options: Mapping[str, object],
    deadline: float | None,
    attempts: int,
    at_once: int | None,
) -> Batches:
    from assay.graders.batch import Batches, way_of
    from assay.graders.spec import declared

    way = way_of([declared(grader, options)])
    return Batches(way, deadline=deadline, attempts=attempts, at_once=at_once)
