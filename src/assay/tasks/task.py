"""`Task`: one row of work, described. Running it is the runner's, found when first needed."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from assay.errors import InputError
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.types.job import Job
from assay.types.run import Prompt, Run
from assay.types.submission import Submission, Workspace

if TYPE_CHECKING:
    from assay.tasks.case import Case
    from assay.tasks.rows import Row


Agent: TypeAlias = "Callable[[Run], Awaitable[object]]"
"""What does the work: any async callable that takes a run and fills ``run.trace``."""


class Session(Protocol):
    """A task that has begun: it has a prompt, perhaps a workspace, and can be graded once."""

    @property
    def prompt(self) -> Prompt:
        """What the agent is asked."""
        ...

    @property
    def workspace(self) -> Workspace | None:
        """Where the agent works."""
        ...

    @property
    def notes(self) -> dict[str, Json]:
        """What is worth keeping with the run, such as the snapshot of its workspace."""
        ...

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Grade what the agent left."""
        ...


class Work(Protocol):
    """A task that knows how to begin, such as a bound template."""

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Begin; leaving the context ends the session and frees what it holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How tasks are run. Times are in seconds; None is no limit.

    Attributes:
        group: Repeats of each task; they share a ``group_id``.
        max_concurrent: Tasks worked on at once.
        rollout_timeout: For one rollout in all, grading included; over it is an error.
        agent_timeout: For the agent's work; what it has done by then is graded.
        grading_timeout: For grading; over it is an error, never a 0.
    """

    group: int = 1
    max_concurrent: int = 8
    rollout_timeout: float | None = None
    agent_timeout: float | None = None
    grading_timeout: float | None = 1800.0

    def __post_init__(self) -> None:
        for name in ("group", "max_concurrent"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("rollout_timeout", "agent_timeout", "grading_timeout"):
            seconds = cast("float | None", getattr(self, name))
            if seconds is not None and not seconds > 0:
                raise InputError(
                    f"{name} must be more than 0, got {seconds}", hint="None: no limit"
                )


class Runner(Protocol):
    """Whoever can run tasks; `assay.eval` is."""

    async def __call__(
        self, tasks: Sequence[Task], agent: Agent, options: RunOptions, job: Job | None
    ) -> Job:
        """Run every task with the agent."""
        ...


def find_runner() -> Runner:
    """The runner, which stands above this room and is therefore found by name."""
    return cast("Runner", importlib.import_module("assay.eval").run_tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row of work.

    Attributes:
        id: The template or case.
        work: What begins the task: a bound template, a case, or a dataset row.
        env: Name of the environment, for tasks made by a template.
        args: What the template is called with.
        slug: Unique name in a task set; by default the id, with a digest of ``args`` if any.
        pass_threshold: Reward needed to pass, in [0, 1].
        metadata: Anything that belongs to the task.
    """

    id: str
    work: Work | Case | Row
    env: str = ""
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    slug: str = ""
    pass_threshold: float = 1.0
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if not self.slug:
            object.__setattr__(self, "slug", _default_slug(self.id, self.args))

    async def run(
        self,
        agent: Agent,
        *,
        group: int = 1,
        max_concurrent: int = 8,
        rollout_timeout: float | None = None,
        agent_timeout: float | None = None,
        grading_timeout: float | None = 1800.0,
        job: Job | None = None,
    ) -> Job:
        """Run this task ``group`` times; see `RunOptions` for the parameters.

        Returns:
            The job. Nothing that happens in a rollout raises: a failure is a run with an error.
        """
        options = RunOptions(
            group=group,
            max_concurrent=max_concurrent,
            rollout_timeout=rollout_timeout,
            agent_timeout=agent_timeout,
            grading_timeout=grading_timeout,
        )
        return await find_runner()([self], agent, options, job)

    def to_dict(self) -> dict[str, Json]:
        """The row as plain JSON; the work itself is found again by ``env`` and ``id``."""
        return {
            "env": self.env,
            "id": self.id,
            "args": dict(self.args),
            "slug": self.slug,
            "metadata": dict(self.metadata),
        }


def _default_slug(task_id: str, args: Mapping[str, Json]) -> str:
    if not args:
        return task_id
    canonical = json.dumps(plain(args), sort_keys=True)
    return f"{task_id}-{hashlib.sha1(canonical.encode(), usedforsecurity=False).hexdigest()[:8]}"
