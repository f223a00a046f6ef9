"""Traces in the store: the first of a span is kept, whoever sends what at the same moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest

from assay.errors import InputError, NotFoundError
from assay.store import Database, TraceLimits, Traces
from assay.store.pages import Stretch
from assay.store.traces import NewSpan, Received

LIMITS = TraceLimits()
ONE, TWO = "1" * 32, "2" * 32


def _span(trace: str, number: int, text: str = '{"a":"\\u0000é"}', why: str = "") -> NewSpan:
    return NewSpan(
        trace=trace, id=f"{number:016x}", text=text, digest=text, name="n\0me",
        is_outermost=number == 1, gen_ai=number == 2, why=why,
    )  # fmt: skip


def _told(received: Received) -> tuple[int, int, int, int, int]:
    one = received
    return one.traces, one.stored, one.repeated, one.rewritten, one.refused


def test_spans_are_kept_counted_and_never_rewritten(database: Database) -> None:
    traces = Traces(database)
    first = [_span(ONE, 2), _span(TWO, 1), _span(ONE, 2), _span(ONE, 3, why="broken")]
    assert _told(traces.add("default", first, LIMITS)) == (2, 2, 1, 0, 1)
    second = [_span(ONE, 2, '{"a":"other"}'), _span(ONE, 1)]
    assert _told(traces.add("default", second, LIMITS)) == (0, 1, 0, 1, 0)
    record, spans = traces.with_spans(traces.get("default", ONE))
    assert (record.whole, record.gen_ai, record.spans) == (True, True, 2)
    assert (record.rewritten, record.refused, record.size) == (1, 1, 2 * len(b'{"a":"\\u0000xx"}'))
    assert [json.loads(text) for text in spans] == [{"a": "\0é"}] * 2
    assert [one.id for one in traces.to_collect("default")] == [ONE]
    assert [one.id for one in traces.page("default")] == [TWO, ONE]


def test_what_is_deleted_is_gone_and_may_come_again(database: Database) -> None:
    traces = Traces(database)
    traces.add("default", [_span(ONE, 1), _span(TWO, 1)], LIMITS)
    seen = traces.page("default")
    traces.add("default", [_span(TWO, 2)], LIMITS)
    traces.delete_collected(seen.items)
    assert [one.id for one in traces.page("default")] == [TWO], "it grew since it was read"
    traces.delete("default", TWO)
    assert database.rows("SELECT count(*) FROM span") == [(0,)]
    with pytest.raises(NotFoundError, match="no trace"):
        traces.delete("default", TWO)
    absent = (
        lambda: traces.page("absent"),
        lambda: traces.get("absent", ONE),
        lambda: traces.add("absent", [_span(ONE, 1)], LIMITS),
    )
    for ask in absent:
        with pytest.raises(NotFoundError, match="project 'absent'"):
            ask()
    with pytest.raises(InputError):
        traces.page("default", Stretch(0))
    assert _told(traces.add("default", [_span(TWO, 2)], LIMITS)) == (1, 1, 0, 0, 0)
    assert not traces.get("default", TWO).whole


def test_two_servers_that_are_sent_one_trace_keep_one(location: str, database: Database) -> None:
    with Database.open(location) as other:
        for number in range(1, 6):
            for each in (database, other):
                Traces(each).add("default", [_span(ONE, number), _span(ONE, 9)], LIMITS)
        assert Traces(other).get("default", ONE).spans == 6
        assert len(Traces(other).page("default")) == 1


def test_traces_that_are_deleted_while_they_grow_hurt_nobody(location: str) -> None:
    faults: list[Exception] = []

    def work(change: Callable[[Traces, int], object]) -> None:
        with Database.open(location) as own:
            for turn in range(30):
                with suppress(NotFoundError):
                    change(Traces(own), turn)

    def add(traces: Traces, turn: int) -> None:
        try:
            spans = [_span(ONE, turn % 5 + 1), _span(TWO, turn % 5 + 1)]
            traces.add("default", spans if turn % 2 else spans[::-1], LIMITS)
        except Exception as error:
            faults.append(error)

    def delete(traces: Traces, turn: int) -> None:
        traces.delete("default", ONE if turn % 2 else TWO)

    Database.open(location).close()
    threads = [Thread(target=work, args=(change,)) for change in (add, add, delete, delete)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with Database.open(location) as own:
        left = {one.seq for one in Traces(own).page("default")}
        assert {seq for (seq,) in own.rows("SELECT trace FROM span")} <= left
