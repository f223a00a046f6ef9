"""Operations on traces that tracers send: listed, shown, made into datasets, deleted.

A trace grows while it is here, and a dataset never changes: what is graded is a dataset that was
made of the traces at one moment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.service.arguments import Before, time_before
from assay.service.operation import (
    After,
    DatasetKey,
    Desk,
    Host,
    InProject,
    Limit,
    Name,
    Offset,
    Section,
    Spec,
)
from assay.store.changes import ChangeRecord
from assay.store.checks import json_text, read_json
from assay.store.datasets import DatasetRecord, Datasets
from assay.store.pages import Page, Stretch
from assay.store.traces import NewSpan, Received, TraceLimits, TraceRecord, Traces, Whole

if TYPE_CHECKING:
    from assay.agents.transcripts.otlp import SentSpan

of_traces = Section("/projects/{project}/traces", tag="traces")
_AT_ONCE = 8

_Id = Annotated[
    str,
    Spec(
        "Id of the trace.",
        alias="id",
        pattern=r"^[0-9a-f]{32}$",
        example="5b8efff798038103d269b633813fc60c",
    ),
]


@dataclass(frozen=True, slots=True)
class TraceDetail:
    """A trace, and the row that it would be in a dataset.

    Attributes:
        trace: How far it has come.
        row: What it tells: answer, question, trace.
    """

    trace: TraceRecord
    row: dict[str, Json]


@dataclass(frozen=True, slots=True)
class DeletedTraces:
    """How many traces were deleted."""

    deleted: int


def new_spans(sent: Iterable[SentSpan], limits: TraceLimits) -> tuple[list[NewSpan], Received]:
    """Spans of a request as they are stored, and what is refused as nobody knows its trace."""
    spans: list[NewSpan] = []
    lost = Received()
    for span in sent:
        if not span.trace:
            lost.refuse(span.why)
            continue
        text = why = ""
        if not (why := span.why):
            try:
                text = json_text(span.data, "a span", most=limits.span_bytes)
            except InputError as error:
                why = error.message
        spans.append(
            NewSpan(
                trace=span.trace,
                id=span.id,
                text=text,
                digest=_digest(span.data),
                name=span.name,
                is_outermost=span.is_outermost,
                gen_ai=span.gen_ai,
                why=why,
            )
        )
    return spans, lost


def _digest(data: Mapping[str, Json]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def receive(
    desk: Desk, spans: Sequence[NewSpan], limits: TraceLimits
) -> tuple[Received, list[ChangeRecord]]:
    """Keep spans that were sent; that traces began, or were to be rewritten, is noted."""
    with desk.database.writing():
        received = Traces(desk.database).add(desk.project, spans, limits)
        if not (received.traces or received.rewritten):
            return received, []
        said = {"traces": received.traces, "spans": received.stored}
        said |= {"rewritten": received.rewritten} if received.rewritten else {}
        return received, [desk.note("receive_traces", said)]


@of_traces("GET")
def list_traces(
    desk: Desk,
    *,
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    project: InProject = None,
) -> Page[TraceRecord]:
    """The traces that were sent to a project, newest first."""
    return Traces(desk.database).page(desk.project, Stretch(limit, offset, after))


@of_traces("DELETE", repeatable=True)
def delete_traces(desk: Desk, before: Before, *, project: InProject = None) -> DeletedTraces:
    """Delete the traces to which nothing was added since a time."""
    return DeletedTraces(Traces(desk.database).delete_older(desk.project, time_before(before)))


@of_traces("POST", "/collect", status=201, repeatable=True)
async def collect_traces(
    host: Host,
    key: DatasetKey,
    name: Name = "",
    *,
    unfinished: Annotated[
        bool, Spec("Also those whose outermost span has not come: as incomplete.")
    ] = False,
    clear: Annotated[bool, Spec("Delete the traces that are now in it.")] = False,
    project: InProject = None,
) -> DatasetRecord:
    """Make a dataset of the traces that are whole and have any `gen_ai.*`: a row for each."""
    import tempfile

    taken: list[TraceRecord] = []
    after = waiting = 0

    def some(desk: Desk) -> list[Whole] | None:
        nonlocal after, waiting
        if not after:  # before the work, not after it
            Datasets(desk.database).check_free(desk.project, key)
        traces = Traces(desk.database)
        found = traces.to_collect(desk.project, after=after, limit=_AT_ONCE)
        if not found:
            return None
        after = found[-1].seq
        chosen = [trace for trace in found if trace.whole or unfinished]
        waiting += len(found) - len(chosen)
        return [traces.with_spans(trace) for trace in chosen]

    with tempfile.TemporaryFile() as spool:  # objects take ten times the memory of their JSON
        while (part := await host.run(some)) is not None:
            lines = await _lines(host, part)
            try:
                spool.writelines(lines)
            except OSError as error:
                raise StoreError(f"traces cannot be set aside: {error.strerror}") from error
            taken += [trace for trace, _ in part]
        if not taken:
            raise _nothing(waiting)
        spool.seek(0)

        def keep(desk: Desk) -> DatasetRecord:
            rows = (read_json(line.decode()) for line in spool)
            made = Datasets(desk.database).create(desk.project, key, name, rows)
            if clear:
                Traces(desk.database).delete_collected(taken)
            return made

        return await host.finish(keep)


def _nothing(waiting: int) -> InputError:
    if not waiting:
        return InputError("there is no trace to collect with any `gen_ai.*`")
    return InputError(
        f"there is no trace to collect; {waiting} without their outermost span",
        hint="collect them as they are with `unfinished`",
    )


@of_traces("GET", "/{id}")
async def show_trace(host: Host, trace: _Id, *, project: InProject = None) -> TraceDetail:
    """One trace, as far as it has come."""

    def one(desk: Desk) -> Whole:
        traces = Traces(desk.database)
        return traces.with_spans(traces.get(desk.project, trace))

    found = await host.run(one)
    (line,) = await _lines(host, [found])
    return TraceDetail(found[0], read_json(line.decode()))


@of_traces("DELETE", "/{id}", repeatable=True)
def delete_trace(desk: Desk, trace: _Id, *, project: InProject = None) -> None:
    """Delete a trace; spans of it that come later begin it anew."""
    Traces(desk.database).delete(desk.project, trace)


async def _lines(host: Host, traces: Sequence[Whole]) -> list[bytes]:
    """Traces as rows: read where that holds up nobody, as a stranger says how long they are."""

    async def read() -> list[bytes]:
        return [json.dumps(_row(*whole)).encode() + b"\n" for whole in traces]

    return await host.apart(read)


def _row(trace: TraceRecord, texts: Sequence[str]) -> dict[str, Json]:
    from assay.agents.transcripts.otel import REWRITTEN
    from assay.agents.transcripts.otlp import gap
    from assay.agents.transcripts.rows import row_of_spans

    spans = [read_json(text) for text in texts]
    if trace.rewritten:
        missing = REWRITTEN
    elif trace.refused:
        missing = "spans were refused: malformed, or too many"
    else:
        missing = gap(spans)
    return row_of_spans(spans, trace.id, missing)
