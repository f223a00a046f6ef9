"""`Reward`: one grader, many answers, from any thread; what could not be graded has no reward.

Trainers ask from their main thread, from worker threads, from forked or spawned processes and from
running event loops; `assay.graders.batch` serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from assay.errors import InputError
from assay.graders.batch import (
    Batch,
    Batches,
    OnError,
    Way,
    require_on_error,
    require_seconds,
    way_of,
)
from assay.graders.threads import is_own_thread, wait_for
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.graders.batched import Batched
    from assay.graders.spec import GraderSpec

__all__ = ["Batch", "Gradable", "OnError", "Reward", "RewardOptions", "require_on_error"]

One: TypeAlias = "Batched | type[Batched]"
Gradable: TypeAlias = "str | Path | One | Sequence[One] | Callable[..., object]"
"""What `Reward` takes for a grader."""

_AT_ONCE = 32
_STRETCH = 1_000


class RewardOptions(TypedDict, total=False):
    """The options of `Reward`, which every hook passes on."""

    name: str
    deadline: float | None
    attempts: int
    at_once: int | None
    url: str | None
    store: str | None
    project: str
    patience: float


class Reward(Batches):
    """A grader, ready to be the reward of a trainer.

    It can be pickled if its grader can; each process makes its own connections.

    Args:
        grader: ``graders.yaml``; ``grade.py`` (a function, in the sandbox); or
            ``key@3`` (a stored grader); a `GraderSpec` or several; a grader with its options in
            its fields; or a Python function, which runs in this process.
        name: Its name in logs; by default the grader's own.
        deadline: As in `Batches`.
        attempts: As in `Batches`.
        at_once: As in `Batches`; 32 of a Python function by default.
        url: The assay server that has the stored grader; by default ``ASSAY_URL``, else the store.
        store: The store that has the stored grader, if no server is asked.
        project: The project of the stored grader.
        patience: Seconds that a stored grader may take for a batch, or for each thousand answers
            of a larger one, including all waiting for a server that is busy or away. What is
            not graded by then has no reward.
        traced: Whether each submission has a trace, which graders may then need.

    Raises:
        InputError: If there is no such grader, or it needs more than an answer.
        ApiError: If the server refuses the key, or is not an assay server.
    """

    def __init__(
        self,
        grader: Gradable,
        *,
        name: str = "",
        deadline: float | None = None,
        attempts: int = 1,
        at_once: int | None = None,
        url: str | None = None,
        store: str | None = None,
        project: str = "default",
        patience: float = 600.0,
        traced: bool = False,
    ) -> None:
        patience = require_seconds("patience", patience)
        if type(cast("object", traced)) is not bool:
            raise InputError(f"traced is {traced!r}", hint="True or False")
        if isinstance(grader, Path):
            grader = str(grader)
        self._given = (
            grader,
            traced,
            RewardOptions(
                name=name,
                deadline=deadline,
                attempts=attempts,
                at_once=at_once,
                url=url,
                store=store,
                project=project,
                patience=patience,
            ),
        )
        if isinstance(grader, str) and Path(grader).suffix not in _FILES:
            way = _stored(grader, url, store, project, patience)
        else:
            if place := url or store:
                raise InputError(
                    f"a grader that is not stored cannot be asked at {place!r}",
                    hint="a stored grader is named KEY or KEY@VERSION",
                )
            way = _way(grader, traced=traced)
        super().__init__(way, name=name, deadline=deadline, attempts=attempts, at_once=at_once)

    @property
    def threshold(self) -> float:
        """The score that passes: a stored grader's, or a single grader's own, else 1."""
        from assay.training.served import ServedReward

        stored = self._way.score
        return stored.threshold if isinstance(stored, ServedReward) else self._way.threshold

    def __reduce__(self) -> tuple[Callable[..., Reward], tuple[object, ...]]:
        from assay.training.served import ServedReward

        grader, traced, options = self._given
        if isinstance(self._way.score, ServedReward):  # of the same version there
            grader = self._way.score.name
        return partial(Reward, traced=traced, **options), (grader,)


_FILES = (".yaml", ".yml", ".json", ".py")


def _way(grader: Gradable, *, traced: bool) -> Way:
    from assay.endpoint.scorers import PARTS, require_servable, scorer_of

    specs = declared_graders(grader)
    if specs is None:
        function = cast("Callable[..., object]", grader)
        named = getattr(function, "__name__", type(function).__name__)
        return Way(score=scorer_of(function), name=named, at_once=_AT_ONCE)
    require_servable(specs, (*PARTS, "trace") if traced else PARTS)
    return way_of(specs)


def declared_graders(grader: Gradable) -> Sequence[GraderSpec] | None:
    """The declared graders that a file, an object or a list of them means; None for a function.

    Raises:
        InputError: For what is neither, and for a file that cannot be read.
    """
    from assay.graders.batched import Batched
    from assay.graders.spec import GraderSpec, declared
    from assay.tasks.grader_files import load_graders

    def is_grader(one: object) -> bool:
        return isinstance(one, Batched) or (isinstance(one, type) and issubclass(one, Batched))

    if isinstance(grader, str):
        if not grader.endswith(".py"):
            return load_graders(grader, alone=True)
        file = Path(grader).resolve()
        options: dict[str, Json] = {"file": str(file)}
        return [declared(GraderSpec(type="function", name=file.stem, options=options))]
    if is_grader(grader):
        return [declared(cast("One", grader))]
    if callable(cast("object", grader)):
        return None
    if isinstance(grader, Sequence) and all(
        map(is_grader, several := cast("Sequence[One]", grader))
    ):
        return [declared(one) for one in several]
    listed = cast("Sequence[object]", grader) if isinstance(grader, list | tuple) else ()
    wrong = next(((n, one) for n, one in enumerate(listed) if not is_grader(one)), None)
    named = f"{grader!r:.80}" if wrong is None else f"element {wrong[0]}, {wrong[1]!r:.80},"
    raise InputError(
        f"{named} is not a grader",
        hint="give a file, KEY@VERSION, a grader, a list of graders, or a function",
    )


def _stored(given: str, url: str | None, store: str | None, project: str, patience: float) -> Way:
    from assay.training.served import ServedReward

    served = ServedReward(given, url, store, project, patience)
    if not is_own_thread():
        wait_for(served.check())
    # Those who ask it have patience for a batch; a deadline is the server's to keep, where given.
    return Way(score=served, name=given, size=_STRETCH, at_once=1, deadline=None)
