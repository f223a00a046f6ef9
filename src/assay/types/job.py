"""`Job`: the runs of one launch."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from assay.scoring.json_safe import Json
from assay.types.run import Run

__all__ = ["Job"]


@dataclass(slots=True, kw_only=True)
class Job:
    """The runs of one launch, appended as they finish.

    Attributes:
        id: Unique id.
        name: The user's own name for it.
        group: How many times each task is repeated.
        runs: Finished runs, in the order in which they were planned once the launch is over.
    """

    id: str = field(default_factory=lambda: f"job-{secrets.token_hex(6)}")
    name: str = ""
    group: int = 1
    runs: list[Run] = field(default_factory=list[Run])

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @property
    def graded(self) -> list[Run]:
        """Runs that have a reward."""
        return [run for run in self.runs if run.reward is not None]

    @property
    def errors(self) -> list[Run]:
        """Runs that could not be graded."""
        return [run for run in self.runs if run.grade.is_error]

    @property
    def reward(self) -> float | None:
        """Mean reward over the graded runs; None where none was. See `coverage`."""
        rewards = [run.reward for run in self.runs if run.reward is not None]
        return sum(rewards) / len(rewards) if rewards else None

    @property
    def coverage(self) -> tuple[int, int]:
        """How many runs were graded, and how many there are."""
        return len(self.graded), len(self.runs)

    @property
    def results(self) -> dict[str, list[Run]]:
        """The runs by task slug."""
        grouped: dict[str, list[Run]] = {}
        for run in self.runs:
            grouped.setdefault(run.slug, []).append(run)
        return grouped

    @property
    def groups(self) -> dict[str, list[Run]]:
        """The repeats of each task, by group id: what group-relative advantages are taken over."""
        grouped: dict[str, list[Run]] = {}
        for run in self.runs:
            grouped.setdefault(run.group_id or run.slug, []).append(run)
        return grouped

    def to_dict(self) -> dict[str, Json]:
        """The job as plain JSON, losslessly."""
        runs: list[Json] = [cast("Json", run.to_dict()) for run in self.runs]
        return {"id": self.id, "name": self.name, "group": self.group, "runs": runs}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Job:
        """Read back what `to_dict` wrote.

        Raises:
            ShapeError: For malformed data.
        """
        runs, group = data.get("runs"), data.get("group")
        return cls(
            id=str(data.get("id") or ""),
            name=str(data.get("name") or ""),
            group=group if isinstance(group, int) else 1,
            runs=[Run.from_dict(run) for run in runs if isinstance(run, dict)]
            if isinstance(runs, list)
            else [],
        )
