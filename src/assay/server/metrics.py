"""Counts and times for Prometheus, in a registry of the server's own."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from assay.scoring.graded import Graded

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

_REQUEST = ("method", "route", "status")
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Metrics:
    """What one server counts. Labels are of few values: routes, never paths; kinds, never keys."""

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
        self._jobs = Counter("assay_jobs", "Jobs by how they ended.", ("status",), registry=own)
        self._queue = Gauge("assay_jobs_waiting", "Jobs that wait or run.", registry=own)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def graded(self, kind: str, items: Iterable[Graded], seconds: float) -> None:
        """Count a batch that was graded."""
        for item in items:
            self._grades.labels(kind, item.outcome).inc()
        self._grading.labels(kind).observe(seconds)

    def job(self, status: str) -> None:
        """Count a job that ended."""
        self._jobs.labels(status).inc()

    def waiting(self, jobs: int) -> None:
        """Note how many jobs wait or run, of each project at most a thousand."""
        self._queue.set(jobs)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)
