"""`Client` and `AsyncClient`: the whole of assay's store of graders from Python."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from assay.client.cells import AsyncCells
from assay.client.data import AsyncDatasets, AsyncJobs, AsyncScores, AsyncTraces
from assay.client.grader_types import AsyncGraderTypes, refuse_call
from assay.client.graders import AsyncGraders
from assay.client.labels import AsyncCalibrations, AsyncLabels
from assay.client.runs import AsyncEnvironments, AsyncRuns
from assay.client.scope import Backend, Scope, checked
from assay.client.site import AsyncKeys, AsyncProjects
from assay.errors import InputError
from assay.service.calibrations import CalibrationWork
from assay.store import JobRecord

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient:
    """Graders, datasets, jobs and scores: on a server, or on a store of one's own.

    Belongs to one event loop; closed by ``async with`` or ``close()``, or once neither it nor a
    part of it is in use. Without ``base_url`` (and without ``ASSAY_URL``) it works on the store in
    ``store``, with no server, exactly alike.

    Args:
        base_url: Address of an assay server; ``ASSAY_URL`` by default.
        api_key: The key; ``ASSAY_API_KEY`` by default.
        project: The project of calls that name none.
        store: Instead of a server: a directory, or a ``postgresql://`` address; ``ASSAY_HOME`` or
            ``.assay`` by default.
        timeout: Seconds until a request is given up.
        patience: Seconds in which a server that is busy or away is asked again; by default it is
            asked four times.

    Attributes:
        graders: Create, version, prove and use graders.
        datasets: Rows that are stored once and graded often.
        traces: What tracers sent to a server.
        jobs: Gradings of whole datasets.
        scores: What graders gave, and what is written in.
        runs: Runs of cases.
        cells: Single results of runs.
        environments: What runs came from.
        labels: What people say of answers.
        calibrations: How far graders agree with that.
        projects: The projects.
        keys: Who may do what.

    Raises:
        InputError: For both a server and a store, or an invalid address.
    """

    @checked("AsyncClient")
    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        project: str | None = "default",
        store: str | None = None,
        timeout: float = 90.0,
        patience: float | None = None,
    ) -> None:
        self._scope = Scope(_backend(base_url, api_key, store, timeout, patience), project)
        self.graders = AsyncGraders(self._scope)
        self.datasets = AsyncDatasets(self._scope)
        self.traces = AsyncTraces(self._scope)
        self.jobs = AsyncJobs(self._scope)
        self.scores = AsyncScores(self._scope)
        self.runs = AsyncRuns(self._scope)
        self.cells = AsyncCells(self._scope)
        self.environments = AsyncEnvironments(self._scope)
        self.labels = AsyncLabels(self._scope)
        self.calibrations = AsyncCalibrations(self._scope)
        self.projects = AsyncProjects(self._scope)
        self.keys = AsyncKeys(self._scope)

    def set_default_project(self, project: str) -> None:
        """Choose the project of calls that name none."""
        self._scope.set_project(project)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._scope.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class Client:
    """`AsyncClient` for plain code: the same calls, blocking; usable from any thread.

    It is closed by ``with`` or ``close()``, or once neither it nor a part of it is in use.

    Args:
        base_url: Address of an assay server; ``ASSAY_URL`` by default.
        api_key: The key; ``ASSAY_API_KEY`` by default.
        project: The project of calls that name none.
        store: Instead of a server: a directory, or a ``postgresql://`` address; ``ASSAY_HOME`` or
            ``.assay`` by default.
        timeout: Seconds until a request is given up.
        patience: Seconds in which a server that is busy or away is asked again; by default it is
            asked four times.

    Raises:
        InputError: For both a server and a store, or an invalid address.
    """

    @checked("Client")
    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        project: str | None = "default",
        store: str | None = None,
        timeout: float = 90.0,
        patience: float | None = None,
    ) -> None:
        self._client = AsyncClient(
            base_url, api_key, project=project, store=store, timeout=timeout, patience=patience
        )
        self._portal = portal = Portal(self._client.close)
        self.graders = Graders(portal, self._client.graders)
        self.datasets = Datasets(portal, self._client.datasets)
        self.traces = Traces(portal, self._client.traces)
        self.jobs = Jobs(portal, self._client.jobs)
        self.scores = Scores(portal, self._client.scores)
        self.runs = Runs(portal, self._client.runs)
        self.cells = Cells(portal, self._client.cells)
        self.environments = Environments(portal, self._client.environments)
        self.labels = Labels(portal, self._client.labels)
        self.calibrations = Calibrations(portal, self._client.calibrations)
        self.projects = Projects(portal, self._client.projects)
        self.keys = Keys(portal, self._client.keys)

    def set_default_project(self, project: str) -> None:
        """Choose the project of calls that name none."""
        self._client.set_default_project(project)

    def close(self) -> None:
        """Let go of the connections and end the client's thread."""
        self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# The blocking twins take their signatures from the asynchronous methods, where the documentation
# stands too: nothing is written twice.


class GraderTypes:
    """``client.graders.create``; see `AsyncGraderTypes`."""

    if not TYPE_CHECKING:  # which says it sooner
        __call__ = refuse_call

    def __init__(self, portal: Portal, kinds: AsyncGraderTypes) -> None:
        self.function = portal.plain(kinds.function)
        self.binary_judge = portal.plain(kinds.binary_judge)
        self.prebuilt_judge = portal.plain(kinds.prebuilt_judge)
        self.external_endpoint = portal.plain(kinds.external_endpoint)
        self.custom = portal.plain(kinds.custom)
        self.declared = portal.plain(kinds.declared)


class Graders:
    """``client.graders``; see `AsyncGraders`."""

    def __init__(self, portal: Portal, graders: AsyncGraders) -> None:
        self.create = GraderTypes(portal, graders.create)
        self.list = portal.plain(graders.list)
        self.page = portal.plain(graders.page)
        self.get = portal.plain(graders.get)
        self.version = portal.plain(graders.version)
        self.versions = portal.plain(graders.versions)
        self.update = portal.plain(graders.update)
        self.describe = portal.plain(graders.describe)
        self.lock = portal.plain(graders.lock)
        self.delete = portal.plain(graders.delete)
        self.diff = portal.plain(graders.diff)
        self.validate = portal.plain(graders.validate)
        self.try_draft = portal.plain(graders.try_draft)
        self.grade = portal.plain(graders.grade)
        self.calibration = portal.plain(graders.calibration)
        self.overview = portal.plain(graders.overview)
        self.use = portal.plain(graders.use)
        self.kinds = portal.plain(graders.kinds)
        self.models = portal.plain(graders.models)
        self.preview_judge = portal.plain(graders.preview_judge)
        self.probe_endpoint = portal.plain(graders.probe_endpoint)
        self.export = portal.plain(graders.export)
        self.import_ = portal.plain(graders.import_)


class Datasets:
    """``client.datasets``; see `AsyncDatasets`."""

    def __init__(self, portal: Portal, datasets: AsyncDatasets) -> None:
        self.create = portal.plain(datasets.create)
        self.get = portal.plain(datasets.get)
        self.list = portal.plain(datasets.list)
        self.rows = portal.plain(datasets.rows)
        self.window = portal.plain(datasets.window)
        self.row = portal.plain(datasets.row)
        self.use = portal.plain(datasets.use)
        self.preview = portal.plain(datasets.preview)
        self.delete = portal.plain(datasets.delete)


class Traces:
    """``client.traces``; see `AsyncTraces`."""

    def __init__(self, portal: Portal, traces: AsyncTraces) -> None:
        self.list = portal.plain(traces.list)
        self.get = portal.plain(traces.get)
        self.collect = portal.plain(traces.collect)
        self.delete = portal.plain(traces.delete)
        self.delete_older = portal.plain(traces.delete_older)


class Jobs:
    """``client.jobs``; see `AsyncJobs`."""

    def __init__(self, portal: Portal, jobs: AsyncJobs) -> None:
        self._portal, self._jobs = portal, jobs
        self.create = portal.plain(jobs.create)
        self.get = portal.plain(jobs.get)
        self.list = portal.plain(jobs.list)
        self.results = portal.plain(jobs.results)
        self.summary = portal.plain(jobs.summary)
        self.window = portal.plain(jobs.window)
        self.result = portal.plain(jobs.result)
        self.compare = portal.plain(jobs.compare)
        self.wait = portal.plain(jobs.wait)
        self.cancel = portal.plain(jobs.cancel)
        self.delete = portal.plain(jobs.delete)

    @checked("jobs.follow")
    def follow(self, job: str, *, project: str | None = None) -> Iterator[JobRecord]:
        """The job again and again as it gets on, until it has ended."""
        return self._portal.each(self._jobs.follow(job, project=project))


class Scores:
    """``client.scores``; see `AsyncScores`."""

    def __init__(self, portal: Portal, scores: AsyncScores) -> None:
        self.add = portal.plain(scores.add)
        self.list = portal.plain(scores.list)


class Runs:
    """``client.runs``; see `AsyncRuns`."""

    def __init__(self, portal: Portal, runs: AsyncRuns) -> None:
        self.list = portal.plain(runs.list)
        self.find = portal.plain(runs.find)
        self.get = portal.plain(runs.get)
        self.overview = portal.plain(runs.overview)
        self.cells = portal.plain(runs.cells)
        self.matrix = portal.plain(runs.matrix)
        self.agents = portal.plain(runs.agents)
        self.delete = portal.plain(runs.delete)
        self.compare = portal.plain(runs.compare)
        self.scores = portal.plain(runs.scores)
        self.score_pair = portal.plain(runs.score_pair)
        self.trainability = portal.plain(runs.trainability)
        self.regrade = portal.plain(runs.regrade)
        self.regrading = portal.plain(runs.regrading)


class Cells:
    """``client.cells``; see `AsyncCells`."""

    def __init__(self, portal: Portal, cells: AsyncCells) -> None:
        self.list = portal.plain(cells.list)
        self.open = portal.plain(cells.open)
        self.detail = portal.plain(cells.detail)
        self.outline = portal.plain(cells.outline)
        self.steps = portal.plain(cells.steps)
        self.find_steps = portal.plain(cells.find_steps)
        self.files = portal.plain(cells.files)
        self.text = portal.plain(cells.text)
        self.decide = portal.plain(cells.decide)
        self.regrade = portal.plain(cells.regrade)
        self.promote = portal.plain(cells.promote)


class Environments:
    """``client.environments``; see `AsyncEnvironments`."""

    def __init__(self, portal: Portal, environments: AsyncEnvironments) -> None:
        self.list = portal.plain(environments.list)


class Labels:
    """``client.labels``; see `AsyncLabels`."""

    def __init__(self, portal: Portal, labels: AsyncLabels) -> None:
        self.list = portal.plain(labels.list)
        self.queue = portal.plain(labels.queue)
        self.add = portal.plain(labels.add)
        self.take_back = portal.plain(labels.take_back)
        self.items = portal.plain(labels.items)
        self.export = portal.plain(labels.export)


class Calibrations:
    """``client.calibrations``; see `AsyncCalibrations`."""

    def __init__(self, portal: Portal, calibrations: AsyncCalibrations) -> None:
        self._portal, self._calibrations = portal, calibrations
        self.list = portal.plain(calibrations.list)
        self.get = portal.plain(calibrations.get)
        self.plan = portal.plain(calibrations.plan)
        self.create = portal.plain(calibrations.create)

    @checked("calibrations.follow")
    def follow(
        self,
        grader: str,
        *,
        field: str = "label",
        repeats: int = 1,
        attacks: bool = False,
        levels: str = "",
        anew: bool = False,
        project: str | None = None,
    ) -> Iterator[CalibrationWork]:
        """`create`, told step by step: how far it is every few seconds, and at last its card."""
        return self._portal.each(
            self._calibrations.follow(
                grader,
                field=field,
                repeats=repeats,
                attacks=attacks,
                levels=levels,
                anew=anew,
                project=project,
            )
        )


class Projects:
    """``client.projects``; see `AsyncProjects`."""

    def __init__(self, portal: Portal, projects: AsyncProjects) -> None:
        self.list = portal.plain(projects.list)
        self.create = portal.plain(projects.create)
        self.limit = portal.plain(projects.limit)
        self.get = portal.plain(projects.get)
        self.changes = portal.plain(projects.changes)


class Keys:
    """``client.keys``; see `AsyncKeys`."""

    def __init__(self, portal: Portal, keys: AsyncKeys) -> None:
        self.mine = portal.plain(keys.mine)
        self.list = portal.plain(keys.list)
        self.create = portal.plain(keys.create)
        self.revoke = portal.plain(keys.revoke)


def _backend(
    base_url: str | None,
    api_key: str | None,
    store: str | None,
    timeout: float,
    patience: float | None,
) -> Callable[[], Backend]:
    if base_url is not None and store is not None:
        raise InputError("give base_url or store, not both")
    url = os.environ.get("ASSAY_URL") if base_url is None and store is None else base_url
    if url:
        from assay.client.remote import RemoteBackend, checked_url

        address, key = checked_url(url), api_key or os.environ.get("ASSAY_API_KEY")
        return lambda: RemoteBackend(address, key, timeout=timeout, patience=patience)

    from assay.client.local import LocalBackend

    home = store or os.environ.get("ASSAY_HOME") or ".assay"
    return lambda: LocalBackend(home)


class Portal:
    """Runs coroutines for callers of any thread; started when first used.

    Also works in a notebook, where a loop already runs in the caller's thread. Whoever holds it, or
    a function that `plain` made, keeps it open; nobody does, and it closes itself.

    Args:
        last: What is done on the loop before it ends, if anything was run there at all.
    """

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._worker = _Worker(last)
        self._finish = weakref.finalize(self, self._worker.close)  # also at exit

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return what it returns.

        Ctrl-C cancels it and waits until it has put things in order.

        Raises:
            InputError: Once it is closed, or in a fork of the process that used it.
        """
        try:
            loop = self._worker.running()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def plain(self, function: Callable[P, Awaitable[T]]) -> Callable[P, T]:
        """The blocking twin of an asynchronous function, with the same parameters."""

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            work = function(*args, **kwargs)
            return self.run(cast("Coroutine[Any, Any, T]", work))

        return call

    def each(self, steps: AsyncIterator[T]) -> Iterator[T]:
        """What an asynchronous iterator gives, one by one."""

        async def following() -> T | None:
            return await anext(steps, None)

        while (step := self.run(following())) is not None:
            yield step

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._finish()


class _Worker:
    """The loop and its thread. It knows nothing of its portal, which can so be collected."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._last = last
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._is_closed = False

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs.

        Raises:
            InputError: Once it is closed, or in a fork of the process that used it.
        """
        with self._lock:
            if self._is_closed:
                raise InputError("the client is closed", hint="make a new one")
            if self._loop is not None:
                if self._process != os.getpid():
                    raise InputError(
                        "the client was used by the parent process", hint="make a new one"
                    )
                return self._loop
            self._process = os.getpid()
            self._loop = loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(loop,), name="assay-client")
            self._thread.daemon = True
            self._thread.start()
            return loop

    def close(self) -> None:
        """Do what is last, then end the loop and its thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._is_closed = True
        if loop is None or thread is None or self._process != os.getpid():
            return
        if thread is threading.current_thread():
            # The collector may find a client anywhere, also in the middle of the loop's own work,
            # where nobody can wait for the loop.
            loop.create_task(self._end(loop)).add_done_callback(lambda _: loop.stop())
            return
        try:
            asyncio.run_coroutine_threadsafe(self._end(loop), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await self._last()
        finally:
            await loop.shutdown_asyncgens()  # connections to models end with the generators


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
