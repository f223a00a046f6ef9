"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from assay.scoring.graded import Graded

if TYPE_CHECKING:
    from assay.server.cluster import JobCluster
    from assay.store.catalog import GraderVersion
    from assay.store.traces import Received

MOST_PROJECTS: Final = 100
"""Projects that are counted by their names."""
OTHERS: Final = "_others"
"""The label of those that are not; no key of a project."""

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_OF_CLUSTER = (
    ("assay_cluster_joined", "Whether the cluster that grades jobs can be asked."),
    ("assay_cluster_workers", "Workers that it has."),
    ("assay_cluster_rows", "Rows that are with it."),
)


class Metrics:
    """What one server counts. Labels are of few values: routes, never paths; kinds, never keys.

    Of projects only the first `MOST_PROJECTS` are told apart.
    """

    def __init__(self) -> None:
        self._all, self._of_projects = CollectorRegistry(), CollectorRegistry()
        self._named: set[str] = set()
        self._cluster: list[Gauge] = []
        self._requests = self._counted("requests", "Requests", "method", "route", "status")
        self._grades = self._counted("grades", "Graded items", "kind", "outcome")
        self._spans = self._counted("spans", "Spans that were sent", "outcome")
        self._jobs = self._counted("jobs", "Jobs that ended", "status")
        self._seconds = self._timed("request", "Time to the end of a reply.", "route")
        self._grading = self._timed("grading", "Time that the grading of one batch took.", "kind")
        self._queue = Gauge("assay_jobs_waiting", "Jobs that wait or run.", registry=self._all)
        self._project_seconds = Counter(
            "assay_project_grading_seconds",
            "Of each project: Time that grading took.",
            ("project",),
            registry=self._of_projects,
        )
        self._project_queue = self._noted("jobs_waiting", "Jobs that wait or run.")
        what = "Requests and batches that are graded, or wait for their turn."
        self._project_gradings = self._noted("gradings", what, "state")

    def _noted(self, name: str, what: str, *labels: str) -> Gauge:
        name, what = f"assay_project_{name}", f"Of each project: {what}"
        return Gauge(name, what, ("project", *labels), registry=self._of_projects)

    def _timed(self, name: str, what: str, label: str) -> Histogram:
        name = f"assay_{name}_seconds"
        return Histogram(name, what, (label,), buckets=_SECONDS, registry=self._all)

    def _counted(self, name: str, what: str, *labels: str) -> Callable[..., None]:
        """What adds to a number: of all by these labels, and of a project by the last of them."""
        own = Counter(
            f"assay_{name}", f"{what} by {', '.join(labels)}.", labels, registry=self._all
        )
        of_project = Counter(
            f"assay_project_{name}",
            f"Of each project: {what} by {labels[-1]}.",
            ("project", labels[-1]),
            registry=self._of_projects,
        )

        def add(number: int, project: str, *values: str) -> None:
            own.labels(*values).inc(number)
            if project:
                of_project.labels(self._project(project), values[-1]).inc(number)

        return add

    def _project(self, key: str) -> str:
        """The label of a project."""
        if key not in self._named and len(self._named) < MOST_PROJECTS:
            self._named.add(key)
        return key if key in self._named else OTHERS

    def request(
        self, method: str, route: str, status: int, seconds: float, project: str = ""
    ) -> None:
        """Count a request that was answered; of a project if it is about one that there is."""
        self._requests(1, project, method, route, str(status))
        self._seconds.labels(route).observe(seconds)

    def graded(self, version: GraderVersion, items: Sequence[Graded], seconds: float) -> None:
        """Count a batch that was graded."""
        for outcome, number in Counts(item.outcome for item in items).items():
            self._grades(number, version.project, version.kind, outcome)
        self._grading.labels(version.kind).observe(seconds)
        self._project_seconds.labels(self._project(version.project)).inc(seconds)

    def spans(self, received: Received, project: str) -> None:
        """Count the spans of a request."""
        for outcome in ("stored", "repeated", "rewritten", "refused"):
            if number := getattr(received, outcome):
                self._spans(number, project, outcome)

    def job(self, status: str, project: str) -> None:
        """Count a job that ended."""
        self._jobs(1, project, status)

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
            self._cluster = [Gauge(*named, registry=self._all) for named in _OF_CLUSTER]
        numbers = cluster.is_joined, cluster.workers, cluster.rows
        for gauge, number in zip(self._cluster, numbers, strict=True):
            gauge.set(number)

    def text(self, project: str) -> bytes:
        """Everything in Prometheus' text format; of single projects only one, or ``*`` for each."""
        seen = self._of_projects if project == "*" else _Of(self._of_projects, project)
        return generate_latest(self._all) + generate_latest(seen)


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
