"""`Client` and `AsyncClient`: the whole of assay's store of graders from Python."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Self

from assay.client.asking import Awaited, Blocking, M_co, arguments
from assay.client.data import DatasetsPart, JobsPart, ScoresPart, TracesPart
from assay.client.graders import GradersPart
from assay.client.labels import CalibrationsPart, LabelsPart
from assay.client.portal import Portal
from assay.client.runs import CellsPart, RunsPart
from assay.client.scope import Backend, Scope
from assay.client.site import Keys, ProjectsPart
from assay.errors import InputError


class _Parts(Generic[M_co]):
    """What both clients are made of."""

    if not TYPE_CHECKING:  # which says it sooner

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            signature = inspect.signature(cls.__init__)
            arguments(cls.__name__, signature, (None, *args), kwargs)
            return super().__new__(cls)

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
        self._scope = scope = Scope(_backend(base_url, api_key, store, timeout, patience), project)
        self._portal = portal = self._opened(scope)
        self.graders: GradersPart[M_co] = GradersPart(scope, portal)
        self.datasets: DatasetsPart[M_co] = DatasetsPart(scope, portal)
        self.traces: TracesPart[M_co] = TracesPart(scope, portal)
        self.jobs: JobsPart[M_co] = JobsPart(scope, portal)
        self.scores: ScoresPart[M_co] = ScoresPart(scope, portal)
        self.runs: RunsPart[M_co] = RunsPart(scope, portal)
        self.cells: CellsPart[M_co] = CellsPart(scope, portal)
        self.labels: LabelsPart[M_co] = LabelsPart(scope, portal)
        self.calibrations: CalibrationsPart[M_co] = CalibrationsPart(scope, portal)
        self.projects: ProjectsPart[M_co] = ProjectsPart(scope, portal)
        self.keys: Keys[M_co] = Keys(scope, portal)

    @staticmethod
    def _opened(scope: Scope) -> Portal | None:
        del scope
        return None

    def set_default_project(self, project: str) -> None:
        """Choose the project of calls that name none."""
        self._scope.set_project(project)


class AsyncClient(_Parts[Awaited]):
    """Graders, datasets, jobs and scores: on a server, or on a store of one's own.

    Belongs to one event loop; closed by ``async with`` or ``close()``, or once neither it nor a
    part of it is in use. Without ``base_url`` (and without ``ASSAY_URL``) it works on the store in
    ``store``, with no server, exactly alike.

    Args:
        base_url: Address of an assay server; ``ASSAY_URL`` by default.
        api_key: The key; ``ASSAY_API_KEY`` by default.
        project: The project of calls that name none.
        store: Instead of a server: a directory, or a ``postgresql://`` address; ``ASSAY_DB`` or
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
        labels: What people say of answers.
        calibrations: How far graders agree with that.
        projects: The projects.
        keys: Who may do what.

    Raises:
        InputError: For both a server and a store, or an invalid address.
    """

    async def close(self) -> None:
        """Let go of the connections."""
        await self._scope.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(_Parts[Blocking]):
    """`AsyncClient` for plain code: the same calls, blocking; usable from any thread.

    It is closed by ``with`` or ``close()``, or once neither it nor a part of it is in use. Its
    arguments and parts are those of `AsyncClient`.

    Raises:
        InputError: For both a server and a store, or an invalid address.
    """

    @staticmethod
    def _opened(scope: Scope) -> Portal:
        return Portal(scope.close)

    def close(self) -> None:
        """Let go of the connections and end the client's thread."""
        if self._portal is not None:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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

    home = store or os.environ.get("ASSAY_DB") or ".assay"
    return lambda: LocalBackend(home)
