"""The gate before every route: the server's name, the page that asks, the size of what it sends.

It also counts every request, for Prometheus.

Plain ASGI, because it stands before every request and must see what streams through it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import re
import time
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar, cast
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from starlette.datastructures import Headers

from assay.endpoint.problems import ProblemError
from assay.scoring.graded import Graded
from assay.server.problems import problem_reply
from assay.types.codec import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from assay.server.cluster import JobCluster
    from assay.server.context import ServerSettings
    from assay.store.catalog import GraderVersion
    from assay.store.traces import Received

T = TypeVar("T")

_LOG = logging.getLogger("assay.access")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_UPLOAD = re.compile(r"/api/v1/projects/[^/]+/datasets/[^/]+\Z")
_OF_CLUSTER = (
    ("assay_cluster_joined", "Whether the cluster that grades jobs can be asked."),
    ("assay_cluster_workers", "Workers that it has."),
    ("assay_cluster_rows", "Rows that are with it."),
)
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""In a reply that does not say otherwise."""


class Gate:
    """Lets requests through to ``app`` that name this server and are not too large.

    Args:
        app: What is behind the gate.
        settings: Names and limits.
        metrics: Counts every request.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._hosts = frozenset({"localhost", *(host.lower() for host in settings.hosts)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        passage = _Passage(send, _request_id(headers), scope)
        started = time.perf_counter()
        try:
            limit = self._check(scope, headers)
            await self._app(scope, _counted(receive, limit), passage.send)
        except ProblemError as problem:
            if passage.status:
                raise
            await problem_reply(problem, scope["path"])(scope, receive, passage.send)
        except asyncio.CancelledError:  # the server ends, and says so outside
            passage.status = passage.status or 503
            raise
        finally:
            self._note(scope, passage, time.perf_counter() - started)

    def _check(self, scope: Scope, headers: Headers) -> int:
        """Refuse what may not pass."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise ProblemError(
                421,
                f"this server is not known as {host!r:.200}",
                errors=[
                    Problem(("Host",), "not a name of this server", "start it with --allow-host")
                ],
            )
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _SAFE and not _is_same(origin, host):
            raise ProblemError(
                403,
                "the request comes from a page of another origin",
                errors=[Problem(("Origin",), "not this server's origin")],
            )
        limit = self._limit(scope)
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdecimal()):
            raise ProblemError(400, "Content-Length is not a number")
        if length is not None and (len(length) > 18 or int(length) > limit):
            raise _too_large(limit)
        return limit

    def _limit(self, scope: Scope) -> int:
        if scope["method"] == "POST" and _UPLOAD.search(scope["path"]):
            return self._settings.max_dataset_bytes
        return self._settings.max_body_bytes

    def _is_ours(self, host: str) -> bool:
        name = _host_name(host)
        return name is not None and (name in self._hosts or _is_address(name))

    def _note(self, scope: Scope, passage: _Passage, seconds: float) -> None:
        """One line for each request: no query, no header, nothing that could hold a secret."""
        status = passage.status or 500
        route = cast("object", scope.get("route"))
        path = str(getattr(route, "path", "unmatched"))
        method = scope["method"] if scope["method"].isalpha() and len(scope["method"]) < 8 else "?"
        project = _state(scope, "project", "")
        self._metrics.request(method, path, status, seconds, project)
        if _LOG.isEnabledFor(logging.INFO):
            shown = scope["path"].encode("unicode_escape").decode("ascii")
            _LOG.info("%s %.200s %d %.1f ms %s", method, shown, status, seconds * 1e3, passage.id)


def _state(scope: Scope, name: str, otherwise: T) -> T:
    """What the door found out about a request, if it came so far."""
    return cast("Mapping[str, T]", scope.get("state", {})).get(name, otherwise)


def _request_id(headers: Headers) -> str:
    """By which a reply and its line in the log are told apart: the caller's word, or ours."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(64):016x}"


class _Passage:
    """What goes out: with our headers, and its status remembered."""

    def __init__(self, send: Send, request: str, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self.id = request
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
            own = {name for name, _ in headers}
            headers += [(name, value) for name, value in _HEADERS if name not in own]
            headers.append((b"x-request-id", self.id.encode()))
            allowance = _state(self._scope, "allowance", dict[str, str]())
            headers += [(name.lower().encode(), text.encode()) for name, text in allowance.items()]
            message["headers"] = headers
        await self._send(message)


def _counted(receive: Receive, limit: int) -> Receive:
    """What comes in, up to a limit: a length that was not announced is found out."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        413,
        f"the body is larger than {limit} bytes",
        errors=[Problem(("",), "too large", "split it")],
    )


@lru_cache(maxsize=64)
def _host_name(host: str) -> str | None:
    """The name in a ``Host`` header, without its port; None if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.netloc != host or "@" in host:
        return None
    return parts.hostname.rstrip(".")


@lru_cache(maxsize=64)
def _is_address(name: str) -> bool:
    """Whether it is a number, which no name server can turn into another one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Whether a page's origin is this server: the scheme may be a proxy's."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"{urlsplit(origin).scheme}://{host}")
        usual = {"http": 80, "https": 443}.get(theirs.scheme)
        same_port = (theirs.port or usual) == (ours.port or usual)
    except ValueError:
        return False
    if usual is None or "@" in theirs.netloc or theirs.hostname is None:
        return False
    return theirs.hostname == ours.hostname and same_port


MOST_PROJECTS: Final = 100
"""Projects that are counted by their names."""
OTHERS: Final = "_others"
"""The label of those that are not; no key of a project."""


class Metrics:
    """What one server counts. Labels are of few values: routes, never paths; kinds, never keys.

    Of projects only the first `MOST_PROJECTS` are told apart.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own = self._registry
        self._requests = Counter(
            "assay_requests",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=own,
        )
        self._seconds = Histogram(
            "assay_request_seconds",
            "Time to the end of a reply.",
            ("route",),
            buckets=_SECONDS,
            registry=own,
        )
        self._grades = Counter(
            "assay_grades",
            "Graded items by kind of grader and outcome.",
            ("kind", "outcome"),
            registry=own,
        )
        self._grading = Histogram(
            "assay_grading_seconds",
            "Time that the grading of one batch took.",
            ("kind",),
            buckets=_SECONDS,
            registry=own,
        )
        self._spans = Counter(
            "assay_spans", "Spans that were sent, by outcome.", ("outcome",), registry=own
        )
        self._jobs = Counter("assay_jobs", "Jobs by how they ended.", ("status",), registry=own)
        self._queue = Gauge("assay_jobs_waiting", "Jobs that wait or run.", registry=own)
        self._cluster: list[Gauge] = []
        self._named: set[str] = set()
        self._of_projects = CollectorRegistry()
        self._project_requests = self._counted("requests", "Requests by status.", "status")
        self._project_grades = self._counted("grades", "Graded items by outcome.", "outcome")
        self._project_seconds = self._counted("grading_seconds", "Time that grading took.")
        self._project_spans = self._counted("spans", "Spans by outcome.", "outcome")
        self._project_jobs = self._counted("jobs", "Jobs by how they ended.", "status")
        self._project_queue = Gauge(
            "assay_project_jobs_waiting",
            "Of each project: Jobs that wait or run.",
            ("project",),
            registry=self._of_projects,
        )
        self._project_gradings = Gauge(
            "assay_project_gradings",
            "Of each project: Requests and batches that are graded, or wait for their turn.",
            ("project", "state"),
            registry=self._of_projects,
        )

    def _counted(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(
            f"assay_project_{name}",
            f"Of each project: {what}",
            ("project", *labels),
            registry=self._of_projects,
        )

    def _project(self, key: str) -> str:
        """The label of a project."""
        if key not in self._named and len(self._named) < MOST_PROJECTS:
            self._named.add(key)
        return key if key in self._named else OTHERS

    def request(
        self, method: str, route: str, status: int, seconds: float, project: str = ""
    ) -> None:
        """Count a request that was answered; of a project if it is about one that there is."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if project:
            self._project_requests.labels(self._project(project), str(status)).inc()

    def graded(self, version: GraderVersion, items: Sequence[Graded], seconds: float) -> None:
        """Count a batch that was graded."""
        kind, project = version.kind, version.project
        label = self._project(project)
        for outcome, number in Counts(item.outcome for item in items).items():
            self._grades.labels(kind, outcome).inc(number)
            self._project_grades.labels(label, outcome).inc(number)
        self._grading.labels(kind).observe(seconds)
        self._project_seconds.labels(label).inc(seconds)

    def spans(self, received: Received, project: str) -> None:
        """Count the spans of a request."""
        for outcome in ("stored", "repeated", "rewritten", "refused"):
            if number := getattr(received, outcome):
                self._spans.labels(outcome).inc(number)
                self._project_spans.labels(self._project(project), outcome).inc(number)

    def job(self, status: str, project: str) -> None:
        """Count a job that ended."""
        self._jobs.labels(status).inc()
        self._project_jobs.labels(self._project(project), status).inc()

    def waiting(self, jobs: Mapping[str, int]) -> None:
        """Note how many jobs of each project wait or run."""
        self._queue.set(sum(jobs.values()))
        self._project_queue.clear()
        for project, number in jobs.items():
            self._project_queue.labels(self._project(project)).inc(number)

    def standing(self, gradings: Iterable[tuple[str, int, int]]) -> None:
        """Note how many gradings of each project are under way, and how many wait."""
        self._project_gradings.clear()
        for project, running, waiting in gradings:
            label = self._project(project)
            self._project_gradings.labels(label, "running").inc(running)
            self._project_gradings.labels(label, "waiting").inc(waiting)

    def cluster(self, cluster: JobCluster) -> None:
        """Note how the cluster that grades jobs is; without one there are no such numbers."""
        if not self._cluster:
            self._cluster = [Gauge(*named, registry=self._registry) for named in _OF_CLUSTER]
        numbers = cluster.is_joined, cluster.workers, cluster.rows
        for gauge, number in zip(self._cluster, numbers, strict=True):
            gauge.set(number)

    def text(self, project: str) -> bytes:
        """Everything in Prometheus' text format; of single projects only one, or ``*`` for each."""
        seen = self._of_projects if project == "*" else _Of(self._of_projects, project)
        return generate_latest(self._registry) + generate_latest(seen)


class _Of(CollectorRegistry):
    """What is counted of one project: the names of others are not for everybody."""

    def __init__(self, counted: CollectorRegistry, project: str) -> None:
        super().__init__()
        self._counted = counted
        self._project = project

    def collect(self) -> Iterator[Metric]:
        """The counts."""
        for metric in self._counted.collect():
            found = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            found.samples = [
                sample for sample in metric.samples if sample.labels.get("project") == self._project
            ]
            yield found
