"""What is counted of each grader: who waits for it, how long it works, what comes of it.

The busiest graders are told apart; the others of a project are one, so that who stores ten thousand
graders does not make ten thousand series of numbers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.registry import Collector

from assay.scoring.graded import Graded
from assay.scoring.quantiles import nearest_rank

MOST_GRADERS: Final = 50
"""Graders that are counted by their keys."""
OTHERS: Final = "_others"
"""The label of those that are not; no key of a grader or project."""

_COUNTED = 1_000
"""Graders of which it is remembered how much was asked of them."""
_LATEST = 256
"""Times of which the quantiles are."""
_QUANTILES = (0.5, 0.99)

Name: TypeAlias = tuple[str, str]
"""A project and the key of one of its graders."""


@dataclass(slots=True)
class _Times:
    """How long something took: all of it together, and the latest."""

    count: int = 0
    total: float = 0.0
    latest: deque[float] = field(default_factory=lambda: deque[float](maxlen=_LATEST))

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        self.latest.append(seconds)

    def join(self, other: _Times) -> None:
        self.count += other.count
        self.total += other.total
        self.latest.extend(other.latest)


@dataclass(slots=True)
class _Figures:
    """What is counted of one grader."""

    waited: _Times = field(default_factory=_Times)
    worked: _Times = field(default_factory=_Times)
    refused: int = 0
    items: Counter[str] = field(default_factory=Counter[str])

    def join(self, other: _Figures) -> None:
        self.waited.join(other.waited)
        self.worked.join(other.worked)
        self.refused += other.refused
        self.items += other.items


class GraderFigures(Collector):
    """Counts by grader, from any thread.

    A grader that becomes busy takes the name of the quietest one, whose counts go to the others:
    counts only grow, as Prometheus expects.

    Args:
        label: The label of a project.
        most: Graders that are told apart.

    Attributes:
        standing: Of each grader that is asked now: project, key, requests under way and waiting.
    """

    def __init__(self, label: Callable[[str], str], most: int = MOST_GRADERS) -> None:
        self.standing: Callable[[], Iterable[tuple[str, str, int, int]]] = tuple
        self._label = label
        self._most = most
        self._lock = Lock()
        self._asked: Counter[Name] = Counter()
        self._named: dict[Name, _Figures] = {}
        self._others: dict[str, _Figures] = {}

    def waited(self, project: str, grader: str, seconds: float) -> None:
        """Note how long a request waited for its turn."""
        with self._lock:
            self._of(project, grader).waited.add(seconds)

    def refused(self, project: str, grader: str) -> None:
        """Note that a request was sent away."""
        with self._lock:
            self._of(project, grader).refused += 1

    def graded(self, project: str, grader: str, items: Iterable[Graded], seconds: float) -> None:
        """Note what came of a batch, and how long that took."""
        with self._lock:
            found = self._of(project, grader)
            found.worked.add(seconds)
            found.items.update(item.status for item in items)

    def _of(self, project: str, grader: str) -> _Figures:
        label, name = self._label(project), (project, grader)
        if label == OTHERS:
            return self._others.setdefault(OTHERS, _Figures())
        if len(self._asked) >= _COUNTED and name not in self._asked:
            unnamed = (one for one in self._asked if one not in self._named)
            del self._asked[min(unnamed, key=self._asked.__getitem__)]
        self._asked[name] += 1
        if (found := self._named.get(name)) is not None:
            return found
        if len(self._named) >= self._most:
            quietest = min(self._named, key=self._asked.__getitem__)
            if self._asked[name] <= 2 * self._asked[quietest]:  # names do not change all the time
                return self._others.setdefault(label, _Figures())
            left = self._others.setdefault(self._label(quietest[0]), _Figures())
            left.join(self._named.pop(quietest))
        return self._named.setdefault(name, _Figures())

    def collect(self) -> Iterator[Metric]:
        """Everything, as Prometheus has it."""
        times = "Seconds of requests and batches: mean, and quantiles of the latest."
        waits = Metric("assay_grader_wait_seconds", f"Until their turn. {times}", "summary")
        works = Metric("assay_grader_work_seconds", f"Of grading. {times}", "summary")
        refused = Metric("assay_grader_refused", "Requests sent away with 429.", "counter")
        items = Metric("assay_grader_items", "Graded items by status.", "counter")
        running = Metric("assay_grader_running", "Requests under way.", "gauge")
        waiting = Metric("assay_grader_waiting", "Requests that wait for their turn.", "gauge")
        with self._lock:
            others = {(label, OTHERS): found for label, found in self._others.items()}
            for (project, grader), found in {**self._named, **others}.items():
                labels = {"project": project, "grader": grader}
                _add_times(waits, labels, found.waited)
                _add_times(works, labels, found.worked)
                refused.add_sample(f"{refused.name}_total", labels, found.refused)
                for status, number in found.items.items():
                    items.add_sample(f"{items.name}_total", {**labels, "status": status}, number)
            now: dict[Name, list[int]] = {}
            for project, grader, held, lines in self.standing():
                is_named = (project, grader) in self._named
                name = (project, grader) if is_named else (self._label(project), OTHERS)
                sums = now.setdefault(name, [0, 0])
                sums[0] += held
                sums[1] += lines
        for (project, grader), sums in now.items():
            for metric, number in zip((running, waiting), sums, strict=True):
                metric.add_sample(metric.name, {"project": project, "grader": grader}, number)
        yield from (waits, works, refused, items, running, waiting)


def _add_times(metric: Metric, labels: dict[str, str], times: _Times) -> None:
    if times.count:
        latest = sorted(times.latest)
        for share in _QUANTILES:
            value = nearest_rank(latest, share)
            metric.add_sample(metric.name, {**labels, "quantile": str(share)}, value)
    metric.add_sample(f"{metric.name}_count", labels, times.count)
    metric.add_sample(f"{metric.name}_sum", labels, times.total)
