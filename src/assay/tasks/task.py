"""`Task`: one row of work, described. Running it is the runner's, found when first needed."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Protocol,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
    overload,
    runtime_checkable,
)

from assay.errors import InputError, Location, nearest, reason_in, shown
from assay.frozen import frozen
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.scoring.strict_json import read_json
from assay.types.run import Job, OfferedTool, Prompt, Run
from assay.types.submission import Submission, Workspace

if TYPE_CHECKING:
    from assay.tasks.blocks import Conditions
    from assay.tasks.case import Case

Agent: TypeAlias = "Callable[[Run], Awaitable[object]]"
"""What does the work: any async callable that takes a run and fills ``run.trace``."""


class Session(Protocol):
    """A task that has begun: it has a prompt, perhaps a workspace, and can be graded once.

    One that takes actions is `Stepping` as well, one that offers tools `Offering` (`types.run`).
    """

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
    """A task that knows how to begin, such as a bound template.

    It may have more, which is taken as it is: ``file`` that defines it; ``returns``, the type of
    its answer; ``mcp`` servers for its agent, by name; whether that may use the ``network``;
    ``max_steps``; the ``runtime`` that it executes in, where that is not this process; and
    ``stop()``, awaited when all tasks are done, for what many of them share.
    """

    def open(self) -> AbstractAsyncContextManager[Session]:
        """Begin; leaving the context ends the session and frees what it holds."""
        ...


class Runtime(Protocol):
    """Where an environment is served that wants a token: `assay.environment.channel.Address`."""

    @property
    def url(self) -> str:
        """The control channel."""
        ...

    @property
    def token(self) -> str:
        """The secret that its server wants."""
        ...


@frozen(kw_only=True)
class RunOptions:
    """How tasks are run. Times are in seconds; None is no limit.

    Attributes:
        group: Repeats of each task; they share a ``group_id``.
        max_concurrent: Tasks worked on at once.
        rollout_timeout: For one rollout in all, grading included; over it is an error.
        agent_timeout: For the agent's work; what it has done by then is graded.
        grading_timeout: For grading; over it is an error, never a 0.
        model: The model that agents reach by ``run.gateway``; empty for none.
        store: Where the job is kept, usually ``.assay``; empty keeps it in memory alone.
        resume: A stored job to go on with: its id, the beginning of it, its name, or latest.
        runtime: Where templates run: ``local`` (this process), ``subprocess`` (one that serves the
            environment's file and ends with the job), ``container:IMAGE`` (the same in an image,
            in the sandbox), or where the environment is served.
    """

    group: int = 1
    max_concurrent: int = 8
    rollout_timeout: float | None = None
    agent_timeout: float | None = None
    grading_timeout: float | None = 1800.0
    model: str = ""
    store: str | os.PathLike[str] = ""
    resume: str = ""
    runtime: str | Runtime = "local"

    def __post_init__(self) -> None:
        if self.resume and not self.store:
            raise InputError("resume goes with store", hint="store='.assay'")
        for name in ("group", "max_concurrent"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("rollout_timeout", "agent_timeout", "grading_timeout"):
            seconds = cast("float | None", getattr(self, name))
            if seconds is not None and not seconds > 0:
                raise InputError(
                    f"{name} must be more than 0, got {seconds}", hint="None: no limit"
                )


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions`, as `Task.run` and `Taskset.run` take them."""

    group: int
    max_concurrent: int
    rollout_timeout: float | None
    agent_timeout: float | None
    grading_timeout: float | None
    model: str
    store: str | os.PathLike[str]
    resume: str
    runtime: str | Runtime


Runner: TypeAlias = "Callable[[Sequence[Task], Agent, RunOptions, Job | None], Awaitable[Job]]"
"""Whoever can run tasks; `assay.eval` is."""


class Guest(Protocol):
    """A task that works in a workspace which somebody else lays out and takes apart."""

    @property
    def prompt(self) -> Prompt:
        """What the agent is asked; known when it has begun."""
        ...

    @property
    def tools(self) -> Mapping[str, OfferedTool]:
        """What it offers the agent, by name."""
        ...

    async def begin(self, workspace: Workspace) -> None:
        """Begin. What it does to the workspace, the agent finds there."""
        ...

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Grade what the agent left; the submission's workspace is the grading tree."""
        ...


class Workshop(Protocol):
    """Whoever can lay out a workspace, and build the grading tree of it; `assay.eval` is."""

    def __call__(
        self, case: Case, guest: Guest, cache: str, home: str | None = None, /
    ) -> AbstractAsyncContextManager[Session]:
        """Lay out what a case says, for a guest, and keep what is left in ``home``."""
        ...


@runtime_checkable
class Hosted(Protocol):
    """Work that may have a workspace; whoever begins it says who lays that out."""

    def open_in(self, workshop: Workshop) -> AbstractAsyncContextManager[Session]:
        """Begin; a workspace, if it has one, is laid out by the workshop."""
        ...


class WorkspaceTooling(Protocol):
    """Whoever makes tools over a workspace for agents that do not reach it; `assay.agents` does."""

    def __call__(self, workspace: Workspace, *, network: bool) -> Mapping[str, OfferedTool]:
        """Them, by name."""
        ...


def find_workspace_tools() -> WorkspaceTooling:
    """The tools over workspaces, found as the runner is."""
    found = importlib.import_module("assay.agents.workspace_tools")
    return cast("WorkspaceTooling", found.offered_over)


def find_workshop() -> Workshop:
    """The workshop, found as the runner is."""
    found = importlib.import_module("assay.eval.workspaces.case_session")
    return cast("Workshop", found.case_session)


def find_runner() -> Runner:
    """The runner, which stands above this room and is therefore found by name."""
    return cast("Runner", importlib.import_module("assay.eval").run_tasks)


@frozen(kw_only=True)
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
        verifier: A task whose grade replaces this one's; see `verified_by`.

    Raises:
        InputError: For a verifier that has one itself.
    """

    id: str
    work: Work | Case
    env: str = ""
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    slug: str = ""
    pass_threshold: float = 1.0
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    verifier: Task | None = None

    def __post_init__(self) -> None:
        if not self.slug:
            object.__setattr__(self, "slug", _default_slug(self.id, self.args))
        if self.verifier is not None and self.verifier.verifier is not None:
            raise InputError(
                f"the verifier of {self.slug!r} has a verifier itself", hint="one is enough"
            )

    @property
    def file(self) -> str:
        """The file that defines it, so that a change of it can be told; empty if none is known."""
        return str(getattr(self.work, "file", ""))

    @property
    def conditions(self) -> Conditions:
        """What its case says of the work on it; for any other task, what a case says by default.

        Harnesses that are declared beside the file of a template are there for its tasks.
        """
        from assay.tasks.blocks import CellLimits, Conditions, Expect, find_harnesses_file
        from assay.tasks.case import Case

        if isinstance(self.work, Case):
            return self.work.conditions
        root = str(Path(self.file).resolve().parent if self.file else Path.cwd())
        return Conditions(
            limits=CellLimits(network=getattr(self.work, "network", False) is True),
            expect=Expect(pass_threshold=self.pass_threshold),
            file=shown(self.file),
            root=root,
            harnesses_file=find_harnesses_file(root, self.file) if self.file else "",
        )

    def verified_by(self, verifier: Task) -> Task:
        """This task with another, of any environment, whose grade replaces its own.

        No agent works on the verifier. Its answer is what came of this task, as JSON: the grade's
        frame (``score``, ``done``, ``content``, ``info``, ``isError``, ``subscores``) and the
        agent's ``answer``. What could not be graded here is not verified.
        """
        return replace(self, verifier=verifier)

    async def run(
        self, agent: Agent, *, job: Job | None = None, **options: Unpack[RunKeywords]
    ) -> Job:
        """Run this task ``group`` times; see `RunOptions` for what it takes, by its names.

        Returns:
            The job. Nothing that happens in a rollout raises: a failure is a run with an error.
        """
        return await find_runner()([self], agent, RunOptions(**options), job)

    def to_dict(self) -> dict[str, Json]:
        """The row as plain JSON; the work itself is found again by ``env`` and ``id``."""
        row: dict[str, Json] = {
            "env": self.env,
            "id": self.id,
            "args": dict(self.args),
            "slug": self.slug,
            "metadata": dict(self.metadata),
        }
        if self.verifier is not None:
            row["verifier"] = self.verifier.to_dict()
        return row


def _default_slug(task_id: str, args: Mapping[str, Json]) -> str:
    if not args:
        return task_id
    canonical = json.dumps(plain(args), sort_keys=True)
    return f"{task_id}-{hashlib.sha1(canonical.encode(), usedforsecurity=False).hexdigest()[:8]}"


@runtime_checkable
class TaskProvider(Protocol):
    """Whatever mints tasks by id: an environment."""

    @property
    def name(self) -> str:
        """The environment's name."""
        ...

    def task(self, template_id: str, /, **args: object) -> Task:
        """A task of one of its templates."""
        ...

    def default_tasks(self) -> list[Task]:
        """A task of every template that needs no arguments."""
        ...


class Taskset:
    """An ordered set of tasks.

    Args:
        name: The set's name.
        tasks: Its tasks.

    Raises:
        InputError: For two tasks with one slug.
    """

    def __init__(self, name: str = "", tasks: Iterable[Task] = ()) -> None:
        self.name = name
        self._tasks: dict[str, Task] = {}
        for task in tasks:
            if task.slug in self._tasks:
                raise InputError(
                    f"two tasks of {name or 'the set'!r} have the slug {task.slug!r}",
                    hint="give one of them another slug",
                )
            self._tasks[task.slug] = task

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def __repr__(self) -> str:
        return f"Taskset({self.name!r}, {len(self)} tasks)"

    @overload
    def __getitem__(self, key: str) -> Task: ...
    @overload
    def __getitem__(self, key: int) -> Task: ...

    def __getitem__(self, key: str | int) -> Task:
        if isinstance(key, int):
            return list(self._tasks.values())[key]
        if key not in self._tasks:
            raise KeyError(f"no task {key!r}; {nearest(key, list(self._tasks))}")
        return self._tasks[key]

    def filter(self, keep: Callable[[Task], bool] | str | Sequence[str]) -> Taskset:
        """The tasks that a predicate accepts, or that have these slugs or ids."""
        wanted = _predicate(keep)
        return Taskset(self.name, (task for task in self if wanted(task)))

    def exclude(self, drop: Callable[[Task], bool] | str | Sequence[str]) -> Taskset:
        """The tasks that `filter` would not keep."""
        unwanted = _predicate(drop)
        return Taskset(self.name, (task for task in self if not unwanted(task)))

    async def run(
        self, agent: Agent, *, job: Job | None = None, **options: Unpack[RunKeywords]
    ) -> Job:
        """Run every task ``group`` times; see `RunOptions` for what it takes, by its names.

        The agent is any async callable that takes a run. A given ``job`` is appended to as runs
        finish, so that it keeps what is done when the launch is cancelled. With a ``store`` every
        run is kept there as soon as it is graded, as `assay run` does, and the job can be resumed:
        by ``resume``, or by giving it again as ``job``.
        """
        if not self._tasks:
            raise InputError(f"the task set {self.name!r} has no tasks")
        return await find_runner()(list(self), agent, RunOptions(**options), job)

    def to_file(self, file: str) -> None:
        """Write the rows to ``.json`` or ``.jsonl``, for `from_file` with the environment."""
        rest = (task.verifier for task in self if task.verifier is not None)
        foreign = next((task for task in (*self, *rest) if not task.env), None)
        if foreign is not None:
            raise InputError(f"{foreign.slug!r} is not a template's task, so it has no row form")
        rows = [task.to_dict() for task in self]
        if file.endswith(".jsonl"):
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        elif file.endswith(".json"):
            text = json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
        else:
            raise InputError(f"cannot write tasks to {file!r}", hint="end it in .json or .jsonl")
        Path(file).write_text(text, encoding="utf-8")

    @classmethod
    def from_file(cls, file: str, *, env: TaskProvider | str | None = None) -> Taskset:
        """Read a task set.

        Args:
            file: A ``.py`` file (its tasks, task sets and environments), a ``.json`` or
                ``.jsonl`` file of rows, or a ``case.yaml`` or a directory of cases.
            env: The environment that rows belong to; or the path of a ``.py`` file that has it,
                and maybe others. The file is run: rows alone never run any code.

        Raises:
            InputError: For a file that cannot be read, or rows whose environment is not given.
        """
        path = Path(file)
        if not path.exists():
            raise InputError(f"{file} does not exist")
        if path.suffix == ".py":
            return cls(path.stem, _tasks_of_module(path))
        if path.suffix in (".json", ".jsonl"):
            return cls(path.stem, _tasks_of_rows(path, env))
        from assay.tasks.case import load_cases

        return cls(path.name, (case_task(case) for case in load_cases([file])))


def case_task(case: object) -> Task:
    """The task that a case is."""
    found = cast("Case", case)
    return Task(
        id=found.id, work=found, pass_threshold=found.expect.pass_threshold, metadata=found.metadata
    )


def solution_of(task: Task) -> str | None:
    """The known-good answer in a task's metadata, its ``solution``; JSON where it is no text."""
    found = task.metadata.get("solution")
    return found if found is None or isinstance(found, str) else json.dumps(plain(found))


def _predicate(choice: Callable[[Task], bool] | str | Sequence[str]) -> Callable[[Task], bool]:
    if callable(choice):
        return choice
    names = {choice} if isinstance(choice, str) else set(choice)
    return lambda task: task.slug in names or task.id in names


def _tasks_of_module(path: Path) -> list[Task]:
    """The tasks that a file defines."""
    found: dict[str, Task] = {}
    providers: list[TaskProvider] = []
    for value in _names_of(str(path)):
        if isinstance(value, Task | Taskset | list | tuple):
            for task in _tasks_in(cast("Task | Iterable[object]", value)):
                found.setdefault(task.slug, task)
        elif isinstance(value, TaskProvider) and not isinstance(value, type):
            providers.append(value)
    if not found:
        found = {task.slug: task for provider in providers for task in provider.default_tasks()}
    if not found:
        given = "my_template(ARGUMENT=…)" if providers else "my_template()"
        raise InputError(
            f"{path} defines no tasks"
            + (", and no template that needs no arguments" if providers else ""),
            hint=f"make one at module level: tasks = [{given}]",
        )
    return list(found.values())


def _tasks_in(value: Task | Iterable[object]) -> list[Task]:
    """A task, or the tasks of a set or a list; a list of other things has none."""
    if isinstance(value, Task):
        return [value]
    items = list(value)
    tasks = [item for item in items if isinstance(item, Task)]
    return tasks if len(tasks) == len(items) else []


def _tasks_of_rows(path: Path, env: TaskProvider | str | None) -> list[Task]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if path.suffix == ".json":
        rows = [(None, row) for row in _json_rows(text, path)]
    else:
        lines = enumerate(text.split("\n"), 1)  # splitlines() also splits at U+2028, inside texts
        rows = [(number, _json_line(line, path, number)) for number, line in lines if line.strip()]
    providers = _providers(env)
    return [_task_of_row(row, Location(str(path), number), providers, path) for number, row in rows]


def _json_rows(text: str, path: Path) -> list[Json]:
    data = read_json(text, Location(str(path)), nan=True)
    if not isinstance(data, list):
        raise InputError("a task file is a list of rows", location=Location(str(path)))
    return data


def _json_line(line: str, path: Path, number: int) -> Json:
    return read_json(line, Location(str(path), number), nan=True)


def _task_of_row(
    row: Json, where: Location, providers: dict[str, TaskProvider], path: Path
) -> Task:
    if not isinstance(row, dict):
        raise InputError("a row must be a JSON object", location=where)
    known = {"env", "id", "args", "slug", "metadata", "verifier"}
    if unknown := sorted(set(row) - known):
        hint = nearest(unknown[0], sorted(known))
        raise InputError(f"unknown field {unknown[0]!r}", location=where, hint=hint)
    name, template, args = row.get("env"), row.get("id"), row.get("args", {})
    if not isinstance(template, str) or not isinstance(args, dict):
        raise InputError("a row needs an 'id' (text) and may have 'args' (object)", location=where)
    provider = providers.get(str(name)) or (
        next(iter(providers.values())) if name is None and len(providers) == 1 else None
    )
    if provider is None:
        raise InputError(
            f"the environment {name!r} is not given"
            if name is not None
            else "a row without 'env' needs one environment that is given",
            location=where,
            hint=_where_it_may_be(name, path, providers),
        )
    try:
        task = provider.task(template, **args)
    except InputError as error:
        raise InputError(error.message, location=where, hint=error.hint) from error
    metadata, verifier = row.get("metadata"), row.get("verifier")
    return replace(
        task,
        verifier=None
        if verifier is None
        else _task_of_row(verifier, replace(where, field="verifier"), providers, path),
        slug=str(row.get("slug") or task.slug),
        metadata=cast("Mapping[str, Json]", metadata) if isinstance(metadata, dict) else {},
    )


def _providers(env: TaskProvider | str | None) -> dict[str, TaskProvider]:
    if env is None:
        return {}
    if not isinstance(env, str):
        return {env.name: env}
    return {one.name: one for one in environments_of(env)}


def environments_of(file: str) -> list[TaskProvider]:
    """The environments that a Python file makes at module level; the file is run.

    Raises:
        InputError: If there are none, or the file cannot be run.
    """
    if not Path(file).is_file():
        raise InputError(f"there is no file {file} for the environment")
    found = [
        value
        for value in _names_of(file)
        if isinstance(value, TaskProvider) and not isinstance(value, type)
    ]
    if not found:
        raise InputError(f"{file} has no environment", hint="make one at module level")
    return found


def _names_of(file: str) -> list[object]:
    """What a Python file defines; its code is the user's own and is trusted."""
    return list(vars(load_own_file(file)).values())


def load_own_file(file: str) -> object:
    """Run a Python file of the user's own, once in a process.

    Raises:
        InputError: If it fails, or would end the process.
    """
    from assay.graders.kinds import load_file

    try:
        return load_file(file)
    except (Exception, SystemExit) as error:  # whatever somebody's own file does
        raise InputError(f"{file} cannot be imported: {reason_in(error)}") from error


def _where_it_may_be(name: Json, rows: Path, given: Mapping[str, TaskProvider]) -> str:
    """Where an environment may be had from; files are looked into, and never run."""
    if given:
        return nearest(str(name), sorted(given))
    with suppress(OSError):
        for file in sorted(rows.parent.glob("*.py")):
            text = file.read_text("utf-8", "replace")
            if f'"{name}"' in text or f"'{name}'" in text:
                return f"it may be in {file}: Taskset.from_file({str(rows)!r}, env={str(file)!r})"
    return "pass it: Taskset.from_file(file, env=my_env), or env='my_env.py'"
