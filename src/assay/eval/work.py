"""What a run consists of: tasks, each a case or a task of a Python environment.

What a case says of its limits, its harnesses and its passing, other tasks have by default; what
makes them a version of their own is where they come from and what they are called with.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.documents import DocumentError
from assay.errors import InputError, nearest
from assay.eval.rollout import ANSWERED, MOVES
from assay.eval.task_actions import act_again
from assay.scoring.json_safe import plain
from assay.scoring.results import SubScore
from assay.tasks.case import Case, load_cases
from assay.tasks.task import (
    Agent,
    Guest,
    Hosted,
    Session,
    Task,
    Taskset,
    Work,
    Workshop,
    case_task,
    load_own_file,
)
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.environment.channel.client import ChannelClient

_PATIENCE_SECONDS = 15.0


def load_tasks(
    paths: Sequence[str],
    *,
    env: str = "",
    only: Sequence[str] = (),
    unread: dict[str, DocumentError] | None = None,
) -> list[Task]:
    """The tasks that paths name: cases first, then those of Python files and of rows.

    Args:
        paths: Case files, directories of cases, ``.py`` files with environments or tasks, URLs
            where environments are served, and ``.json`` or ``.jsonl`` files of rows.
        env: The ``.py`` file or the URL that rows belong to.
        only: Ids of cases, slugs of tasks, or ids of templates, for all of theirs; all by default.
        unread: Takes what is wrong with single cases, by their files, if others can be read, and
            no others are asked for.

    Raises:
        InputError: For whatever is wrong with one of them, for two tasks of one name, or for an id
            that is none.
        ChannelError: If nobody answers at a URL.
    """
    served = [path for path in paths if is_served(path)]
    files = [path for path in paths if _has_tasks(path, env)]
    if env and all(path.endswith(".py") for path in files):
        raise InputError("--env goes with rows", hint="name a .json or .jsonl file of them")
    folders = [path for path in paths if path not in files and path not in served]
    cases = load_cases(folders, unread=unread)
    found = [case_task(case) for case in cases]
    provider = served_at(env) if is_served(env) else env or None
    for file in dict.fromkeys(files):
        read = Taskset.from_file(file, env=provider)
        if not read:
            raise InputError(f"{file} has no tasks")
        found += read
    for url in dict.fromkeys(served):
        found += _default_tasks(url)
    for task in found:
        if isinstance(task.work, Case) and task.slug != task.work.id:
            raise InputError(f"task {task.slug!r} is the case {task.work.id!r}: it keeps its id")
    tasks = list(Taskset("what is to be run", found))
    if only and unread:
        if not {*only} <= {name for task in tasks for name in (task.slug, task.id)}:
            raise DocumentError([fault for error in unread.values() for fault in error.faults])
        unread.clear()
    return _select(tasks, only)


def is_served(path: str) -> bool:
    """Whether a path is the URL of a served environment."""
    return path.startswith(("tcp://", "ws://", "wss://"))


def served_at(url: str) -> ChannelClient:
    """What is served at a URL; its tasks make connections of their own.

    Raises:
        InputError: For a URL of another form.
        ChannelError: If nobody answers, or the server wants a token.
    """
    from assay.environment.channel.client import connect

    async def look() -> ChannelClient:
        async with connect(url, patience=_PATIENCE_SECONDS) as client:
            return client

    return asyncio.run(look())


def _default_tasks(url: str) -> list[Task]:
    found = served_at(url).default_tasks()
    if not found:
        raise InputError(
            f"{url} defines no tasks: every template there needs arguments",
            hint=f"write rows: assay run rows.jsonl --env {url}",
        )
    return found


def _select(tasks: list[Task], ids: Sequence[str]) -> list[Task]:
    known = [task.slug for task in tasks]
    templates = {task.id for task in tasks}
    for wanted in ids:
        if wanted not in known and wanted not in templates:
            kind = "case" if all(isinstance(task.work, Case) for task in tasks) else "task"
            raise InputError(f"no {kind} {wanted!r}", hint=nearest(wanted, known))
    return [task for task in tasks if not ids or task.slug in ids or task.id in ids]


def _has_tasks(path: str, env: str) -> bool:
    """Whether a path is a file of tasks rather than a case."""
    endings = (".py", ".json", ".jsonl") if env else (".py",)
    return path.endswith(endings) and Path(path).is_file()


def with_cases(tasks: Iterable[Task], cases: Iterable[Case]) -> list[Task]:
    """The tasks, those that are cases with what was settled of these."""
    settled = {case.id: case for case in cases}
    return [
        replace(task, work=settled.get(task.work.id, task.work))
        if isinstance(task.work, Case)
        else task
        for task in tasks
    ]


def version_of(task: Task) -> str:
    """A digest of what a task is, and of what verifies it."""
    own = _version_of(task)
    if task.verifier is None:
        return own
    return hashlib.sha256(f"{own}\n{version_of(task.verifier)}".encode()).hexdigest()[:16]


def _version_of(task: Task) -> str:
    """A digest of the case; or of the source of the template, and its arguments."""
    if isinstance(task.work, Case):
        from assay.eval.workspaces.case_session import has_tests

        if not has_tests(task.work):
            return task.work.digest
        from assay.eval.proofs.isolation import oracle_digest

        return oracle_digest(task.work)
    source = _source_digest(task.file)
    said = {"env": task.env, "id": task.id, "args": plain(task.args), "source": source}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def open_work(
    task: Task, *, cache: str = "", home: str = ""
) -> AbstractAsyncContextManager[Session]:
    """Begin a task.

    Args:
        task: The task.
        cache: Directory of fetched sources and built environments; by default one of its own.
        home: Directory that keeps what is left in its workspace, if it has one; by default that
            goes with the session.
    """
    if isinstance(task.work, Case):
        from assay.eval.workspaces.case_session import case_session

        return case_session(task.work, cache=cache or None, home=home or None)
    return _answered(task, cache, home) if home else _begun(task)


@asynccontextmanager
async def _answered(task: Task, cache: str, home: str) -> AsyncGenerator[Session]:
    from assay.eval.workspaces.case_session import case_session

    # The environment's own directories are not used: a store has some for all of its runs.
    def workshop(case: Case, guest: Guest, *_: object) -> AbstractAsyncContextManager[Session]:
        return case_session(case, cache=cache, home=home, guest=guest)

    async with _begun(task, workshop) as session:
        session.notes[ANSWERED] = True  # it reaches the run when its agent has finished
        yield session


def _begun(task: Task, workshop: Workshop | None = None) -> AbstractAsyncContextManager[Session]:
    """Begin what is no case; a workspace, if it has one, is laid out by the workshop."""
    work = cast("Work", task.work)
    if workshop is not None and isinstance(work, Hosted):
        return work.open_in(workshop)
    return work.open()


@asynccontextmanager
async def begun_again(
    task: Task, before: Run, *, cache: str, home: str, keep: Mapping[int, SubScore]
) -> AsyncGenerator[Session]:
    """A task that is begun once more, to grade what an agent left when it was begun before.

    Args:
        task: The task.
        before: What was recorded of its run.
        cache: Directory of fetched sources and built environments.
        home: Directory that has what was left.
        keep: Scores of a case that are taken over, by the places of their graders.

    Raises:
        InputError: If it asks something else now, so that what was answered is no answer to it.
        StoreError: If what was kept of a workspace is missing or damaged.
    """
    from assay.eval.workspaces.case_session import Kept, kept_session

    kept = Kept.of(before)
    if isinstance(task.work, Case):
        async with kept_session(task.work, kept, cache=cache, home=home, keep=keep) as session:
            yield session
        return

    def workshop(case: Case, guest: Guest, *_: object) -> AbstractAsyncContextManager[Session]:
        return kept_session(case, kept, cache=cache, home=home, guest=guest)

    async with _begun(task, workshop) as session:
        if Run(prompt=session.prompt).to_dict()["prompt"] != before.to_dict()["prompt"]:
            raise InputError(
                f"task {task.slug!r} asks something else than what was answered",
                hint="a prompt that differs each time has no second grading; run the task again",
            )
        if session.workspace is not None and not kept.snapshot:
            raise InputError(
                f"the workspace that was left of task {task.slug!r} was not kept",
                hint="run the task again",
            )
        await act_again(session, before.metadata.get(MOVES), task.slug)
        yield session


def give_back(before: Run) -> Agent:
    """An agent that does nothing but hand over what was recorded before."""

    async def agent(run: Run) -> None:
        run.trace = replace(before.trace, steps=before.trace.work)
        run.trace_id = before.trace_id or run.trace_id
        run.cost_usd, run.tokens = before.cost_usd, before.tokens
        run.metadata = {**before.metadata, "regraded": True}

    return agent


async def stop_environments(tasks: Iterable[Task]) -> None:
    """Stop what the environments of tasks started."""
    for task in tasks:
        for one in (task, task.verifier):
            stop = getattr(one and one.work, "stop", None)
            if stop is not None:
                await stop()


def own_model(agent: Agent) -> str:
    """The model that an agent says it asks by itself; empty for none."""
    model = cast("object", getattr(agent, "model", None))
    return model if isinstance(model, str) and model else ""


def is_python_agent(name: str) -> bool:
    """Whether a harness is the agent of a Python file, ``file.py:name``."""
    place, _, attribute = name.rpartition(":")
    return place.endswith(".py") and attribute.isidentifier()


def load_agent(name: str) -> Agent:
    """The agent that ``file.py:name`` means; the file is the user's own and is run.

    Raises:
        InputError: If there is none.
    """
    place, _, attribute = name.rpartition(":")
    if not Path(place).is_file():
        raise InputError(f"harness {name!r}: there is no file {place}")
    names = vars(load_own_file(place))
    found = names.get(attribute)
    if isinstance(found, type):
        raise InputError(
            f"harness {name!r} is a class", hint=f"make one in {place}: agent = {attribute}(...)"
        )
    if not callable(found):
        known = [key for key, value in names.items() if callable(value) and key[:1] != "_"]
        raise InputError(f"{place} has no agent {attribute!r}", hint=nearest(attribute, known))
    return cast("Agent", found)


def _source_digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except OSError:  # what was made up at run time has no file
        return ""
