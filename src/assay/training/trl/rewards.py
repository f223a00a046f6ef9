"""A grader as a reward function of `GRPOTrainer` and `RLOOTrainer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias, Unpack, cast

from assay.errors import InputError
from assay.training.chat import Text, submission_of
from assay.training.reward import Batch, Gradable, Reward, RewardOptions
from assay.types.submission import Submission

LogExtra: TypeAlias = "Callable[[str, list[object]], object] | None"
"""TRL's: takes a column of its table of completions."""
LogMetric: TypeAlias = "Callable[[str, float], object] | None"
"""TRL's: takes a number of this step."""

_NEVER = frozenset({"trainer_state", "environments", "prompts", "completions", "completion_ids"})


class RewardFunction:
    """What TRL calls, also in a spawned process: lists of texts and columns in, rewards out."""

    def __init__(
        self, reward: Reward, expected: str | None, metadata: str | None, images: str | None
    ) -> None:
        self.reward = reward
        self.__name__ = reward.name  # TRL's logs call it so, and merge those of one name
        self._expected, self._metadata, self._images = expected, metadata, images

    def __call__(
        self,
        /,
        completions: Sequence[Text],
        prompts: Sequence[Text] | None = None,
        log_extra: LogExtra = None,
        log_metric: LogMetric = None,
        **columns: object,
    ) -> list[float | None]:
        """Grade a batch, in whatever thread.

        ``log_extra``: TRL's; is given the scores that the rewards are made of, and the errors.
        """
        batch = self.reward.grade_now(self._submissions(completions, prompts, columns))
        return told(self.reward.name, batch, log_extra, log_metric)

    def _submissions(
        self,
        completions: Sequence[Text],
        prompts: Sequence[Text] | None,
        columns: Mapping[str, object],
    ) -> list[Submission | InputError]:
        size, known = len(completions), dict[str, Sequence[object]]()
        for name, values in columns.items():
            if name not in _NEVER and (column := _column(values, size)) is not None:
                known[name] = column
        for option, name in (("expected", self._expected), ("images", self._images)):
            if name is not None and name not in known:
                raise InputError(
                    f"the dataset has no column {name!r} with a value for each of the "
                    f"{size} completions",
                    hint=f"{option}= names one of {', '.join(sorted(known)) or 'none'}",
                )
        if prompts is not None and len(prompts) not in (0, size):
            raise InputError(f"there are {len(prompts)} prompts for {size} completions")
        return [
            self._submission(
                prompts[n] if prompts is not None and len(prompts) else "",
                completion,
                {name: values[n] for name, values in known.items()},
            )
            for n, completion in enumerate(completions)
        ]

    def _submission(
        self, prompt: Text, completion: Text, row: dict[str, object]
    ) -> Submission | InputError:
        expected = row.pop(self._expected) if self._expected is not None else None
        images = row.pop(self._images) if self._images is not None else None
        metadata = row if self._metadata is None else row.get(self._metadata)
        return submission_of(prompt, completion, expected, metadata, images)


class AsyncRewardFunction(RewardFunction):
    """The same for TRL's loop, on which it awaits all such functions together."""

    async def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        /,
        completions: Sequence[Text],
        prompts: Sequence[Text] | None = None,
        log_extra: LogExtra = None,
        log_metric: LogMetric = None,
        **columns: object,
    ) -> list[float | None]:
        """Grade a batch; as the other."""
        batch = await self.reward.grade(self._submissions(completions, prompts, columns))
        return told(self.reward.name, batch, log_extra, log_metric)


def reward_function(
    grader: Gradable,
    *,
    expected: str | None = None,
    metadata: str | None = None,
    images: str | None = None,
    asynchronous: bool = False,
    **options: Unpack[RewardOptions],
) -> RewardFunction:
    """Make a reward function of a grader.

    Args:
        grader: As `assay.training.Reward` takes it.
        expected: Column of the reference answers.
        metadata: Column of the metadata, as objects; by default all columns are the metadata.
        images: Column of the prompts' pictures, one or several, as Pillow's or as bytes; without
            it graders see none.
        asynchronous: Whether TRL awaits it together with others of this kind, not one by one.
        **options: Further ones of `assay.training.Reward`.
    """
    made = AsyncRewardFunction if asynchronous else RewardFunction
    return made(Reward(grader, **options), expected, metadata, images)


def _column(values: object, size: int) -> Sequence[object] | None:
    """Values for each completion, also of NumPy, pandas or torch; None for anything else."""
    if not isinstance(values, list | tuple):
        listed = getattr(values, "tolist", None)
        values = listed() if callable(listed) and hasattr(values, "__len__") else None
    if not isinstance(values, list | tuple) or len(cast("Sequence[object]", values)) != size:
        return None
    return cast("Sequence[object]", values)


def told(name: str, batch: Batch, log_extra: LogExtra, log_metric: LogMetric) -> list[float | None]:
    """The rewards of a batch, of which TRL's logs are told the rest."""
    if log_extra is not None:
        for part, values in batch.components.items():
            log_extra(f"{name}/{part}", list(values))
        log_extra(f"{name}/error", [one.error for one in batch.graded])
    if log_metric is not None:
        for metric, value in {**_means(batch), **batch.metrics()}.items():
            log_metric(f"{name}/{metric}", value)
    return batch.rewards


def _means(batch: Batch) -> dict[str, float]:
    """The mean of each part of the rewards over those that have it."""
    known = {
        part: [one for one in values if one is not None]
        for part, values in batch.components.items()
    }
    return {part: fmean(values) for part, values in known.items() if values}
