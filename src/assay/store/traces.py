"""`Traces`: what tracers send, span by span, until a dataset is made of it.

The spans of a trace come in many requests, in any order, and again when an answer was lost. The
first of an id is kept: one that comes later and says something else is counted, not believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from assay.errors import NotFoundError
from assay.frozen import frozen
from assay.store.checks import plain, valid_number
from assay.store.database import Database, Record, Scalar, moment
from assay.store.pages import FIRST, NEWEST, Page, Stretch
from assay.store.projects import Projects
from assay.store.table import Table, Where, conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord(Record):
    """A trace as far as it has come.

    Attributes:
        seq: Place in the order in which traces began to come.
        project: Key of the project.
        id: 32 hexadecimal digits.
        name: Of its outermost span; empty until that came.
        whole: Whether its outermost span has come, which ends after those inside.
        gen_ai: Whether a span of it keeps to the conventions for generative AI (``gen_ai.*``).
        spans: How many are kept.
        size: Bytes of the spans.
        rewritten: Spans that came again and said something else; the first one is kept.
        refused: Spans that were not kept: malformed, or too many.
        created_at: When the first one came; ISO 8601, UTC.
        updated_at: When the last one came.
    """

    seq: int = 0
    project: str
    id: str
    name: str = ""
    whole: bool = False
    gen_ai: bool = False
    spans: int = 0
    size: int = 0
    rewritten: int = 0
    refused: int = 0
    created_at: str = ""
    updated_at: str = ""


@frozen(kw_only=True)
class NewSpan:
    """A span that came.

    Attributes:
        trace: Its trace.
        id: Its own.
        text: Its JSON; empty for one that is refused.
        digest: SHA-256 of what it says.
        name: What it is called.
        is_outermost: Whether no span is around it.
        gen_ai: Whether it keeps to the conventions for generative AI.
        why: Why it is refused.
    """

    trace: str
    id: str = ""
    text: str = ""
    digest: str = ""
    name: str = ""
    is_outermost: bool = False
    gen_ai: bool = False
    why: str = ""


@frozen(kw_only=True)
class TraceLimits:
    """How much is kept until somebody makes datasets of it, or deletes it.

    Attributes:
        traces: Most traces of a project.
        spans: Most spans of a trace.
        span_bytes: Most bytes of a span.
        trace_bytes: Most bytes of a trace.
        project_bytes: Most bytes of a project's traces.
    """

    traces: int = 10_000
    spans: int = 5_000
    span_bytes: int = 4 << 20
    trace_bytes: int = 15 << 20  # its row must fit into a dataset
    project_bytes: int = 256 << 20


@dataclass(slots=True)
class Received:
    """What came of the spans of one request.

    Attributes:
        traces: Traces that began with it.
        stored: Spans that are kept.
        repeated: Spans that were there already, word for word.
        rewritten: Spans that were there already and said something else.
        refused: Spans that are not kept.
        why: Why not, each reason once.
    """

    traces: int = 0
    stored: int = 0
    repeated: int = 0
    rewritten: int = 0
    refused: int = 0
    why: dict[str, None] = field(default_factory=dict[str, None])

    def refuse(self, why: str, times: int = 1) -> None:
        """Count spans that are not kept."""
        self.refused += times
        self.why[why] = None


Whole: TypeAlias = "tuple[TraceRecord, Sequence[str]]"
"""A trace and the JSON of its spans, in the order in which they came."""


class Traces:
    """The traces of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "trace", TraceRecord)

    def add(self, project: str, spans: Sequence[NewSpan], limits: TraceLimits) -> Received:
        """Keep spans, those that may be kept."""
        received = Received()
        groups: dict[str, list[NewSpan]] = {}
        for span in spans:
            groups.setdefault(span.trace, []).append(span)
        with self._database.writing():
            Projects(self._database).get(project)
            ((count, held),) = self._database.rows(
                "SELECT count(*), coalesce(sum(size), 0) FROM trace WHERE project = ?", project
            )
            for name in sorted(groups):  # in one order everywhere, so that none waits for another
                record = self._locked(project, name, may_begin=count < limits.traces)
                if record is None:
                    why = f"the project has {limits.traces:,} traces: delete some, or all by date"
                    received.refuse(why, len(groups[name]))
                    continue
                is_new = not (record.spans or record.refused)
                left = limits.project_bytes - int(held)
                size = self._add(record, groups[name], limits, left, received)
                count, held = count + is_new, held + size
                received.traces += is_new
        return received

    def get(self, project: str, trace: str) -> TraceRecord:
        """One trace."""
        found = self._table.find({"project": project, "id": trace})
        if found is None:
            Projects(self._database).get(project)
            raise NotFoundError(f"there is no trace {trace!r:.80} in project {project!r}")
        return found

    def page(self, project: str, wanted: Stretch = FIRST) -> Page[TraceRecord]:
        """Traces of a project, newest first."""
        Projects(self._database).get(project)
        return self._table.page({"project": project}, NEWEST, wanted)

    def to_collect(self, project: str, *, after: int = 0, limit: int = 50) -> list[TraceRecord]:
        """Traces with any ``gen_ai.*``, in the order in which they began."""
        where: Where = {"project": project, "gen_ai": 1, "seq >": valid_number(after, "after")}
        return self._table.select(where, order="seq", limit=limit)

    def with_spans(self, record: TraceRecord) -> Whole:
        """A trace with its spans, as far as they are known when this is asked."""
        rows = self._database.rows("SELECT data FROM span WHERE trace = ? ORDER BY seq", record.seq)
        return record, [data for (data,) in rows]

    def delete(self, project: str, trace: str) -> None:
        """Remove a trace; spans of it that come later begin it anew."""
        with self._database.writing():
            self._remove({"seq": self.get(project, trace).seq})

    def delete_older(self, project: str, before: datetime) -> int:
        """Remove the traces to which nothing was added since; how many there were."""
        with self._database.writing():
            Projects(self._database).get(project)
            return self._remove({"project": project, "updated_at <": moment(before)})

    def delete_collected(self, records: Sequence[TraceRecord]) -> None:
        """Remove traces, but those to which something was added meanwhile."""
        with self._database.writing():
            for one in records:
                kept = ("seq", "id", "spans", "rewritten", "refused")
                self._remove({name: getattr(one, name) for name in kept})

    def _remove(self, where: Where) -> int:
        said, values = conditions(where)
        # Locked first: on PostgreSQL a span might come in between.
        self._database.change(f"UPDATE trace SET size = size{said}", *values)
        self._database.change(
            f"DELETE FROM span WHERE trace IN (SELECT seq FROM trace{said})", *values
        )
        return self._table.delete(where)

    def _locked(self, project: str, trace: str, *, may_begin: bool) -> TraceRecord | None:
        """The trace, which nobody else changes now; None where no more may begin."""
        now = self._database.now()
        own = {"project": project, "id": trace}
        begin = {**own, "created_at": now, "updated_at": now}
        while not self._table.update(own, updated_at=now):
            if not may_begin:
                return None
            if self._table.insert_new(begin, unless="(project, id)"):
                break  # else somebody has begun it since, and it may be gone again
        return self.get(project, trace)

    def _add(
        self,
        record: TraceRecord,
        spans: Sequence[NewSpan],
        limits: TraceLimits,
        left: int,
        received: Received,
    ) -> int:
        """Keep the spans of one trace; the bytes that they take."""
        known = dict(self._database.rows("SELECT id, digest FROM span WHERE trace = ?", record.seq))
        name, whole, gen_ai, size = record.name, record.whole, record.gen_ai, 0
        rewritten, refused = received.rewritten, received.refused
        new: list[tuple[Scalar, ...]] = []
        for span in spans:
            length = len(span.text.encode())
            if span.why:
                received.refuse(span.why)
            elif (digest := known.get(span.id)) is not None:
                received.repeated += digest == span.digest
                if digest != span.digest:
                    received.rewritten += 1
                    why = "a span came again and said something else: the first one is kept"
                    received.why[why] = None
            elif len(known) >= limits.spans:
                received.refuse(f"a trace has at most {limits.spans:,} spans")
            elif record.size + size + length > limits.trace_bytes:
                received.refuse(f"a trace has at most {limits.trace_bytes:,} bytes")
            elif size + length > left:
                received.refuse("the project's traces take all the room they may: delete some")
            else:
                known[span.id] = span.digest
                new.append((record.seq, span.id, span.digest, span.text))
                size += length
                gen_ai = gen_ai or span.gen_ai
                if span.is_outermost and not whole:
                    name, whole = plain(span.name[:200]), True
        if new:
            self._database.insert_many("span", ("trace", "id", "digest", "data"), new)
        received.stored += len(new)
        self._table.update(
            {"seq": record.seq},
            name=name,
            whole=whole,
            gen_ai=gen_ai,
            spans=record.spans + len(new),
            size=record.size + size,
            rewritten=record.rewritten + received.rewritten - rewritten,
            refused=record.refused + received.refused - refused,
        )
        return size
