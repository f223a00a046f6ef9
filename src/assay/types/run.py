"""`Run`: one rollout with its trace and its grade."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol, Self, TypeAlias, cast, runtime_checkable

from assay.errors import InputError, TaskEndedError, reason_of, traceback_of
from assay.frozen import frozen
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number
from assay.types.codec import from_json, to_json
from assay.types.submission import Workspace
from assay.types.trace import (
    ActionStep,
    Step,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    tool_kind,
)

Prompt: TypeAlias = "str | list[Json] | None"


@runtime_checkable
class Rewarded(Protocol):
    """What training needs of anything: a key and a reward, None where there is none."""

    @property
    def trace_id(self) -> str | None:
        """Keys the trajectory."""
        ...

    @property
    def reward(self) -> float | None:
        """The reward, or None where nothing could be graded."""
        ...


class ModelAccess(Protocol):
    """How an agent reaches its model; what passes is limited, recorded and paid for outside."""

    @property
    def openai_url(self) -> str:
        """The base URL for whoever speaks OpenAI's chat completions or responses."""
        ...

    @property
    def anthropic_url(self) -> str:
        """The base URL for whoever speaks Anthropic's messages."""
        ...

    @property
    def token(self) -> str:
        """What to give as the key; it is good for this run alone."""
        ...

    @property
    def model(self) -> str:
        """The model that answers, whichever one is named."""
        ...


@frozen
class PromptMessage:
    """One turn of a prompt.

    Attributes:
        role: ``system``, ``user`` or ``assistant``.
        content: Its text.
    """

    role: str
    content: str


@frozen
class Observation:
    """What came of an action: a template yields it, and ``await run.step(action)`` returns it.

    Attributes:
        content: What is shown: text, or content blocks such as a chat message has.
        reward: What this one action was worth, for training. The grade is what the template
            yields in the end, and nothing else.
        done: Whether the task takes no more actions.
        info: What belongs to it and is not shown to a model.

    Raises:
        ScoreError: For a reward that is no finite number.
    """

    content: str | list[Json] = ""
    reward: float | None = None
    done: bool = False
    info: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if self.reward is not None:
            reward = finite_number(self.reward, what="the reward of an observation")
            object.__setattr__(self, "reward", reward)


@runtime_checkable
class Stepping(Protocol):
    """A task that has begun, and takes actions."""

    @property
    def max_steps(self) -> int:
        """Most actions that it takes; 1 where it asks for an answer and shows nothing."""
        ...

    async def step(self, action: str) -> Observation:
        """Act, and see what comes of it. What was begun goes on if the caller is cancelled.

        Raises:
            TaskEndedError: If it takes no more actions.
            Exception: Whatever the task raises; it then has no grade.
        """
        ...


class OfferedTool(Protocol):
    """A tool that a task offers its agent."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def description(self) -> str:
        """What it does."""
        ...

    @property
    def schema(self) -> Mapping[str, Json]:
        """JSON schema of its arguments, an object."""
        ...

    async def __call__(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call it.

        Raises:
            TaskEndedError: If the task is over.
            AssayError: If what it needs of us failed.
        """
        ...


class Offering(Protocol):
    """A task that has begun, and offers tools."""

    @property
    def tools(self) -> Mapping[str, OfferedTool]:
        """Them, by name."""
        ...


class RunClient(Protocol):
    """A connection to where tasks run, by which runs are driven by hand, one after the other."""

    async def begin(self, run: Run) -> None:
        """Start the run's task, and give it its prompt."""
        ...

    async def end(self, run: Run) -> None:
        """Have the run's answer graded."""
        ...

    async def cancel(self, run: Run) -> None:
        """End the run's task without a grade."""
        ...


@dataclass(slots=True, kw_only=True)
class Run:
    """The live record of one task being worked on; only the runner and the agent change it.

    A run that has a ``client`` is driven by hand: ``async with run`` starts its task and has its
    answer graded in the end. Work that raises is not graded.

    Attributes:
        prompt: The task's opening prompt: text, or chat-style messages.
        trace: The trajectory the agent fills; the answer is ``trace.content``.
        grade: The structured grade, set when the run ends.
        workspace: The directory to work in, for tasks that have one.
        gateway: How the agent reaches its model, while it works; None where no model is given.
        told: Called with each step that is recorded, while it works; None where nobody listens.
        stepping: What takes the agent's actions, while it works; None for tasks that take none.
        tools: What the task offers the agent to call, while it works, by name; see `call`.
        client: What starts and grades a run that is driven by hand.
        args: What its task is called with, likewise.
        answered: Steps of the trace that the task itself answered: actions, calls of its tools. No
            agent that runs in a sandbox writes any of them.
        runtime: What the run executed in (the placement record).
        trace_id: Keys the trajectory.
        job_id: The launch it belongs to.
        group_id: Shared by the repeats of one task.
        task_id: The template or case.
        slug: The task's unique name in its set.
        harness: What did the work.
        model: The model it was asked to use.
        trial: 1-based repeat.
        seconds: Wall time of agent and grading.
        cost_usd: Price of the agent's model calls; None is unknown.
        tokens: Tokens the agent used; None is unknown.
        metadata: Anything that belongs to the run.
    """

    prompt: Prompt = None
    trace: Trace = field(default_factory=Trace)
    grade: Grade = field(default_factory=Grade.ungraded)
    workspace: Workspace | None = None
    gateway: ModelAccess | None = field(default=None, repr=False, compare=False)
    told: Callable[[Step], None] | None = field(default=None, repr=False, compare=False)
    stepping: Stepping | None = field(default=None, repr=False, compare=False)
    tools: Mapping[str, OfferedTool] = field(
        default_factory=dict[str, OfferedTool], repr=False, compare=False
    )
    client: RunClient | None = field(default=None, repr=False, compare=False)
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    answered: list[Step] = field(default_factory=list[Step], repr=False, compare=False)
    runtime: str | None = None
    trace_id: str | None = None
    job_id: str | None = None
    group_id: str | None = None
    task_id: str = ""
    slug: str = ""
    harness: str = ""
    model: str = ""
    trial: int = 1
    seconds: float = 0.0
    cost_usd: float | None = None
    tokens: int | None = None
    metadata: dict[str, Json] = field(default_factory=dict[str, Json])

    @classmethod
    def failed(cls, error: str, *, slug: str = "", task_id: str = "", traceback: str = "") -> Run:
        """A synthesized run for a rollout that never became live: no prompt, no runtime."""
        run = cls(slug=slug, task_id=task_id, grade=Grade.ungraded(error))
        run.trace.record(Step.of_error(error, traceback))
        run.trace.status = "error"
        return run

    def __str__(self) -> str:
        reward = self.reward
        ended = self.grade.content or "not graded" if reward is None else f"reward {reward:.2f}"
        return f"{self.slug or self.task_id or 'run'}, trial {self.trial}: {ended}"

    def _repr_html_(self) -> str:
        from assay.types.notebook import run_html

        return run_html(self)

    @property
    def reward(self) -> float | None:
        """The graded reward; None where there is none."""
        return self.grade.reward

    @property
    def evaluation(self) -> Mapping[str, Json]:
        """The raw grade frame."""
        return self.grade.raw

    @property
    def prompt_messages(self) -> list[PromptMessage]:
        """The prompt as turns with their roles; one that is no role of a prompt is ``user``."""
        if self.prompt is None:
            return [PromptMessage("user", "")]
        if isinstance(self.prompt, str):
            return [PromptMessage("user", self.prompt)]
        messages: list[PromptMessage] = []
        for item in self.prompt:
            if isinstance(item, dict):
                role = _ROLES.get(str(item.get("role")), "user")
                messages.extend(PromptMessage(role, t) for t in _texts(item.get("content")))
            else:
                messages.append(PromptMessage("user", str(item)))
        return messages

    @property
    def prompt_text(self) -> str:
        """The prompt as plain text: its blocks joined by blank lines, images dropped."""
        return "\n\n".join(message.content for message in self.prompt_messages)

    def record(self, step: Step) -> Step:
        """Append a step to the trace."""
        recorded = self.trace.record(step)
        if self.told is not None:
            self.told(recorded)
        return recorded

    @property
    def max_steps(self) -> int:
        """Most actions that the task takes; 1 where it only wants an answer, 0 where none fit."""
        return 0 if self.stepping is None else self.stepping.max_steps

    async def step(self, action: str) -> Observation:
        """Act, and see what comes of it: for tasks that show something between prompt and reward.

        The newest action is the answer, ``trace.content``. Both go into the trace.

        Raises:
            TaskEndedError: If the task takes no more actions.
            Exception: Whatever the task raises; the run then has no grade.
        """
        if self.stepping is None:
            raise TaskEndedError(
                "the task takes no actions" if self.reward is None else "the task is over",
                hint="the answer is what `run.trace.content` is",
            )
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            seen = await self.stepping.step(action)
        except TaskEndedError:
            raise
        except BaseException as error:
            reason = str(error) or type(error).__name__
            self._keep(ActionStep(action=str(action), error=reason, started_at=started))
            raise
        self._keep(
            ActionStep(
                action=str(action),
                observation=seen.content,
                reward=seen.reward,
                done=seen.done,
                info=seen.info,
                started_at=started,
            )
        )
        self.trace.content = action
        return seen

    async def call(self, name: str, arguments: Mapping[str, Json] | None = None) -> ToolResult:
        """Call one of the task's `tools`; the call goes into the trace.

        Returns:
            What it gave. Arguments that it does not take, and what it raises, are such a result,
            with ``is_error``.

        Raises:
            TaskEndedError: If there is no such tool, or the task is over.
            AssayError: If what it needs of the environment failed.
        """
        tool = self.tools.get(name)
        if tool is None:
            there_are = ", ".join(self.tools) or "none"
            raise TaskEndedError(f"the task offers no tool {name!r}; there are: {there_are}")
        given = dict(arguments or {})
        made = ToolCall(name=name, arguments=given, kind=tool_kind(name))
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            result = await tool(given)
        except BaseException as error:
            reason = str(error) or type(error).__name__
            self._keep(ToolStep(call=made, error=reason, started_at=started))
            raise
        self._keep(ToolStep(call=made, result=result, started_at=started))
        return result

    async def __aenter__(self) -> Self:
        if self.client is None:
            raise InputError(
                "this run has no client that could start it",
                hint="async with assay.connect(url) as client: run = client.run('template')",
            )
        await self.client.begin(self)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        client = cast("RunClient", self.client)
        if error is None:
            await client.end(self)
            return
        if isinstance(error, Exception):
            self.record(Step.of_error(reason_of(error), traceback_of(error)))
        self.trace.status = "error" if isinstance(error, Exception) else "cancelled"
        self.grade = Grade.ungraded(reason_of(error))
        await client.cancel(self)

    def _keep(self, step: Step) -> None:
        self.answered.append(self.record(step))

    def to_dict(self) -> dict[str, Json]:
        """The run as plain JSON, losslessly."""
        plain = replace(
            self,
            grade=Grade.ungraded(),
            gateway=None,
            told=None,
            stepping=None,
            tools={},
            client=None,
            answered=[],
        )
        written = cast("dict[str, Json]", to_json(plain))
        return {**written, "grade": self.grade.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Run:
        """Read back what `to_dict` wrote.

        Raises:
            ShapeError: For malformed data.
            ScoreError: For a malformed grade.
        """
        rest = {key: item for key, item in data.items() if key != "grade"}
        run = from_json(cls, rest)
        grade = data.get("grade")
        run.grade = Grade.from_dict(grade) if isinstance(grade, dict) else Grade.ungraded()
        return run


_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}


def _texts(content: Json) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else [content]  # MCP's messages have one block
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return [text for text in texts if isinstance(text, str)]


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

    def __str__(self) -> str:
        from assay.types.notebook import job_text

        return job_text(self)

    def _repr_html_(self) -> str:
        from assay.types.notebook import job_html

        return job_html(self)

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
