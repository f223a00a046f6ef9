"""`Client` and `AsyncClient`: the whole of assay's store of graders from Python."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

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

A = TypeVar("A")
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


class _Blocking(Generic[A]):
    """The blocking twin of a part of the client, whose calls it makes on the client's own loop."""

    def __init__(self, portal: Portal, part: A) -> None:
        self._portal, self._part = portal, part


def _plain(
    function: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[_Blocking[A], P], T]:
    """The blocking twin of an asynchronous method, with the same parameters."""

    @wraps(function)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        work = function(self._part, *args, **kwargs)  # pyright: ignore[reportPrivateUsage]
        portal = self._portal  # pyright: ignore[reportPrivateUsage] - a method, made here
        return portal.run(cast("Coroutine[Any, Any, T]", work))

    return call


class GraderTypes(_Blocking[AsyncGraderTypes]):
    """``client.graders.create``; see `AsyncGraderTypes`."""

    if not TYPE_CHECKING:  # which says it sooner
        __call__ = refuse_call

    function = _plain(AsyncGraderTypes.function)
    binary_judge = _plain(AsyncGraderTypes.binary_judge)
    prebuilt_judge = _plain(AsyncGraderTypes.prebuilt_judge)
    external_endpoint = _plain(AsyncGraderTypes.external_endpoint)
    custom = _plain(AsyncGraderTypes.custom)
    declared = _plain(AsyncGraderTypes.declared)


class Graders(_Blocking[AsyncGraders]):
    """``client.graders``; see `AsyncGraders`."""

    def __init__(self, portal: Portal, part: AsyncGraders) -> None:
        super().__init__(portal, part)
        self.create = GraderTypes(portal, part.create)

    list = _plain(AsyncGraders.list)
    page = _plain(AsyncGraders.page)
    get = _plain(AsyncGraders.get)
    version = _plain(AsyncGraders.version)
    versions = _plain(AsyncGraders.versions)
    update = _plain(AsyncGraders.update)
    describe = _plain(AsyncGraders.describe)
    lock = _plain(AsyncGraders.lock)
    delete = _plain(AsyncGraders.delete)
    diff = _plain(AsyncGraders.diff)
    validate = _plain(AsyncGraders.validate)
    try_draft = _plain(AsyncGraders.try_draft)
    grade = _plain(AsyncGraders.grade)
    calibration = _plain(AsyncGraders.calibration)
    overview = _plain(AsyncGraders.overview)
    use = _plain(AsyncGraders.use)
    kinds = _plain(AsyncGraders.kinds)
    models = _plain(AsyncGraders.models)
    preview_judge = _plain(AsyncGraders.preview_judge)
    probe_endpoint = _plain(AsyncGraders.probe_endpoint)
    export = _plain(AsyncGraders.export)
    import_ = _plain(AsyncGraders.import_)


class Datasets(_Blocking[AsyncDatasets]):
    """``client.datasets``; see `AsyncDatasets`."""

    create = _plain(AsyncDatasets.create)
    get = _plain(AsyncDatasets.get)
    list = _plain(AsyncDatasets.list)
    rows = _plain(AsyncDatasets.rows)
    window = _plain(AsyncDatasets.window)
    row = _plain(AsyncDatasets.row)
    use = _plain(AsyncDatasets.use)
    preview = _plain(AsyncDatasets.preview)
    delete = _plain(AsyncDatasets.delete)


class Traces(_Blocking[AsyncTraces]):
    """``client.traces``; see `AsyncTraces`."""

    list = _plain(AsyncTraces.list)
    get = _plain(AsyncTraces.get)
    collect = _plain(AsyncTraces.collect)
    delete = _plain(AsyncTraces.delete)
    delete_older = _plain(AsyncTraces.delete_older)


class Jobs(_Blocking[AsyncJobs]):
    """``client.jobs``; see `AsyncJobs`."""

    create = _plain(AsyncJobs.create)
    get = _plain(AsyncJobs.get)
    list = _plain(AsyncJobs.list)
    results = _plain(AsyncJobs.results)
    summary = _plain(AsyncJobs.summary)
    window = _plain(AsyncJobs.window)
    result = _plain(AsyncJobs.result)
    compare = _plain(AsyncJobs.compare)
    wait = _plain(AsyncJobs.wait)
    cancel = _plain(AsyncJobs.cancel)
    delete = _plain(AsyncJobs.delete)

    @checked("jobs.follow")
    def follow(self, job: str, *, project: str | None = None) -> Iterator[JobRecord]:
        """The job again and again as it gets on, until it has ended."""
        return self._portal.each(self._part.follow(job, project=project))


class Scores(_Blocking[AsyncScores]):
    """``client.scores``; see `AsyncScores`."""

    add = _plain(AsyncScores.add)
    list = _plain(AsyncScores.list)


class Runs(_Blocking[AsyncRuns]):
    """``client.runs``; see `AsyncRuns`."""

    list = _plain(AsyncRuns.list)
    find = _plain(AsyncRuns.find)
    get = _plain(AsyncRuns.get)
    overview = _plain(AsyncRuns.overview)
    cells = _plain(AsyncRuns.cells)
    matrix = _plain(AsyncRuns.matrix)
    agents = _plain(AsyncRuns.agents)
    delete = _plain(AsyncRuns.delete)
    compare = _plain(AsyncRuns.compare)
    scores = _plain(AsyncRuns.scores)
    score_pair = _plain(AsyncRuns.score_pair)
    trainability = _plain(AsyncRuns.trainability)
    regrade = _plain(AsyncRuns.regrade)
    regrading = _plain(AsyncRuns.regrading)


class Cells(_Blocking[AsyncCells]):
    """``client.cells``; see `AsyncCells`."""

    list = _plain(AsyncCells.list)
    open = _plain(AsyncCells.open)
    detail = _plain(AsyncCells.detail)
    outline = _plain(AsyncCells.outline)
    steps = _plain(AsyncCells.steps)
    find_steps = _plain(AsyncCells.find_steps)
    files = _plain(AsyncCells.files)
    text = _plain(AsyncCells.text)
    decide = _plain(AsyncCells.decide)
    regrade = _plain(AsyncCells.regrade)
    promote = _plain(AsyncCells.promote)


class Environments(_Blocking[AsyncEnvironments]):
    """``client.environments``; see `AsyncEnvironments`."""

    list = _plain(AsyncEnvironments.list)


class Labels(_Blocking[AsyncLabels]):
    """``client.labels``; see `AsyncLabels`."""

    list = _plain(AsyncLabels.list)
    queue = _plain(AsyncLabels.queue)
    add = _plain(AsyncLabels.add)
    take_back = _plain(AsyncLabels.take_back)
    items = _plain(AsyncLabels.items)
    export = _plain(AsyncLabels.export)


class Calibrations(_Blocking[AsyncCalibrations]):
    """``client.calibrations``; see `AsyncCalibrations`."""

    list = _plain(AsyncCalibrations.list)
    get = _plain(AsyncCalibrations.get)
    plan = _plain(AsyncCalibrations.plan)
    create = _plain(AsyncCalibrations.create)

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
            self._part.follow(
                grader,
                field=field,
                repeats=repeats,
                attacks=attacks,
                levels=levels,
                anew=anew,
                project=project,
            )
        )


class Projects(_Blocking[AsyncProjects]):
    """``client.projects``; see `AsyncProjects`."""

    list = _plain(AsyncProjects.list)
    create = _plain(AsyncProjects.create)
    limit = _plain(AsyncProjects.limit)
    get = _plain(AsyncProjects.get)
    changes = _plain(AsyncProjects.changes)


class Keys(_Blocking[AsyncKeys]):
    """``client.keys``; see `AsyncKeys`."""

    mine = _plain(AsyncKeys.mine)
    list = _plain(AsyncKeys.list)
    create = _plain(AsyncKeys.create)
    revoke = _plain(AsyncKeys.revoke)


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
    a call of a part that uses it, keeps it open; nobody does, and it closes itself.

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
