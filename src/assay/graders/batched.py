"""`Batched`: what is asked for many grades at a time; see `assay.graders.batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, TypeVar, cast

from assay.scoring.json_safe import Json
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.graders.batch import Batch, Batches

__all__ = ["Batched"]

P = ParamSpec("P")
T = TypeVar("T")


class _OfEither(Generic[P, T]):
    """A method of a class as well as of its objects.

    Args:
        function: It; given the object, or the class where there is none.
    """

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

        For an object with its options in its fields, and for a class. It may be asked from any
        thread, process or event loop, which goes on with its other work; `grade_batch_now` is for
        who cannot await.

        Args:
            submissions: Submissions, or rows as datasets have them; also of an iterator, which is
                read in parts of 10,000.
            deadline: Seconds that an item may take once its turn has come. An item that is late is
                cut, and has no reward.
            attempts: How often an item that cannot be graded is tried.
            at_once: Items at work at the same time, of graders that take them one by one; as many
                as the grader bears by default.
            **options: What a class grades with, beside the submissions' parts.

        Raises:
            InputError: For numbers or options that make no sense.
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
        """As `grade_batch`, for who cannot await; Ctrl-C ends the work.

        Raises:
            InputError: As there; and where a grader asks that runs on assay's own loop.
        """
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
