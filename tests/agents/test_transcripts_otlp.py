"""OTLP requests of strangers: each span is checked, and protobuf says the same as JSON."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.agents.transcripts import otel, otlp
from assay.agents.transcripts.otlp import gap, sent_spans
from assay.agents.transcripts.otlp_protobuf import decode_request, encode, requests_in
from assay.agents.transcripts.reading import read_recordings
from assay.agents.transcripts.rows import recorded_rows, row_of_spans
from assay.errors import InputError
from assay.scoring.json_safe import Json
from tests.each import each
from tests.otlp_spans import TRACE, agent_spans, otlp_request, span


def _decode(body: bytes) -> Json:
    return decode_request(body, max_depth=64, max_values=10_000)


def test_a_trace_that_was_sent_is_the_row_that_its_file_is() -> None:
    request = otlp_request(agent_spans())
    sent = list(sent_spans(request))
    assert [one.why for one in sent] == [""] * 4
    assert [one.id for one in sent] == [one["spanId"] for one in agent_spans()]
    assert [one.is_outermost for one in sent] == [False, False, False, True]
    row = row_of_spans([one.data for one in sent], TRACE)
    (recording,) = read_recordings(json.dumps(request))
    assert row["trace"] == json.loads(json.dumps(recording.transcript.trace.to_dict()))
    assert (row["id"], row["answer"], row["question"]) == (TRACE, "4", "What is 2 + 2?")
    assert "incomplete" not in cast("dict[str, Any]", row["trace"])["extra"]


def _deep(times: int) -> Json:
    inner: Json = {"stringValue": "x"} if times == 0 else _deep(times - 1)
    return {"arrayValue": {"values": [inner]}}


BAD: dict[str, tuple[dict[str, Json], str, bool]] = {
    "no trace": ({"traceId": None}, "traceId", False),
    "a trace in base64, as protobuf's JSON has it": ({"traceId": "W47/95gDgQPSabYzgT/GDA=="},
                                                     "hexadecimal", False),
    "a trace of zeros": ({"traceId": "0" * 32}, "traceId", False),
    "a trace of other digits": ({"traceId": "٣" * 32}, "traceId", False),
    "no span": ({"spanId": ""}, "spanId", True),
    "a span of zeros": ({"spanId": "0" * 16}, "spanId", True),
    "a parent that is none": ({"parentSpanId": 7}, "parentSpanId", True),
    "an attribute that is too deep": ({"attributes": [{"key": "k", "value": _deep(40)}]},
                                      "too deeply", True),
}  # fmt: skip


@each("name", BAD)
def test_a_malformed_span_is_refused_alone_and_its_trace_is_told(name: str) -> None:
    change, why, is_known = BAD[name]
    good, bad = agent_spans()[-1], {**span(9, 1), **change}
    first, second = sent_spans(otlp_request([bad, good]))
    assert why in first.why
    assert (first.trace == TRACE) is is_known
    assert not second.why


def test_what_is_odd_but_harmless_is_kept_and_read() -> None:
    odd: dict[str, Json] = {
        **span(2, 1, operation__name="chat", request__model="m"),
        "traceId": TRACE.upper(),
        "parentSpanId": "0" * 16,
        "startTimeUnixNano": "9" * 4000,
        "endTimeUnixNano": None,
        "name": 7,
        "events": "none",
        "attributes": [
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9" * 5000}},
            {"key": "gen_ai.usage.output_tokens", "value": {"doubleValue": float("nan")}},
            {"key": "gen_ai.request.model", "value": {"stringValue": "\ud800\0"}},
            "no attribute",
        ],
        "newer": {"field": 1},
    }
    (one,) = sent_spans(otlp_request([odd]))
    assert (one.why, one.trace, one.is_outermost) == ("", TRACE, True)
    assert one.data["parentSpanId"] == ""
    json.dumps(one.data, allow_nan=False).encode()
    row = row_of_spans([one.data], TRACE)
    trace = cast("dict[str, Any]", row["trace"])
    assert trace["extra"]["usage"]["tokens"] is None
    assert json.dumps(row, allow_nan=False)


@each(
    "value", [None, [], "x", {"resourceSpans": {}}, {"resourceSpans": None}, {"resourceSpans": 1}]
)
def test_what_is_no_request_is_refused_whole(value: Json) -> None:
    with pytest.raises(InputError, match="ExportTraceServiceRequest"):
        list(sent_spans(value))


def test_a_request_has_no_end_of_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(sent_spans({})) == []
    for name, most in (("MOST_SPANS", 10), ("MOST_TRACES", 5)):
        monkeypatch.setattr(otlp, name, most)
    five = [span(1, trace=f"{n:032x}") for n in range(1, 6)]
    assert len(list(sent_spans(otlp_request(five * 2)))) == 10
    for spans in (five * 2 + five[:1], [*five, span(1, trace=f"{6:032x}")]):
        with pytest.raises(InputError, match="more than 10 spans, or of more than 5 traces"):
            list(sent_spans(otlp_request(spans)))


GAPS: dict[str, tuple[list[dict[str, Json]], str]] = {
    "none": (agent_spans(), ""),
    "in another order": (agent_spans()[::-1], ""),
    "nothing": ([], "outermost"),
    "no outermost": (agent_spans()[:3], "outermost"),
    "one that was dropped": ([span(1), span(3, 2)], "inside"),
    "a circle": ([span(1), span(2, 3), span(3, 2)], "inside"),
    "its own parent": ([span(1), span(2, 2)], "inside"),
    "a second answer from a second outermost": ([span(1), span(2)], "more than one"),
}


@each("name", GAPS)
def test_a_gap_in_a_trace_is_seen(name: str) -> None:
    spans, why = GAPS[name]
    assert why in gap(spans)
    assert bool(gap(spans)) is bool(why)


def test_a_chain_of_more_parents_than_python_has_frames_is_followed() -> None:
    assert gap([span(n, n - 1) for n in range(1, sys.getrecursionlimit() * 2)]) == ""


# Protobuf.


def _exported(spans: list[dict[str, Json]]) -> bytes:
    """Spans as the SDK's own exporter writes them."""
    import base64

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def based(value: Json) -> str:
        return base64.b64encode(bytes.fromhex(cast("str", value))).decode()

    ids = ("traceId", "spanId", "parentSpanId")
    given = [{**one, **{key: based(one[key]) for key in ids}} for one in spans]
    return ParseDict(otlp_request(given), ExportTraceServiceRequest()).SerializeToString()


def test_protobuf_says_what_json_says() -> None:
    values: list[Json] = [
        {"stringValue": "größer"}, {"stringValue": ""}, {"boolValue": True}, {"boolValue": False},
        {"intValue": "-9223372036854775808"}, {"intValue": "0"}, {"doubleValue": -0.5},
        {"bytesValue": "AAE="}, {"arrayValue": {"values": [{"intValue": "7"}, {}]}},
        {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
    ]  # fmt: skip
    odd: dict[str, Json] = {
        **span(9, 1),
        "attributes": [{"key": f"gen_ai.{n}", "value": value} for n, value in enumerate(values)],
        "events": [{"name": "gen_ai.choice", "timeUnixNano": "18446744073709551615",
                    "attributes": [{"key": "a", "value": {"stringValue": "b"}}]}],
        "status": {"code": 2, "message": "failed"},
        "kind": 3, "flags": 257, "traceState": "a=b", "droppedAttributesCount": 2,
        "links": [{"spanId": "AAAAAAAAAAE="}],
    }  # fmt: skip
    spans = [*agent_spans(), odd]
    read = list(otel.spans_of(_decode(_exported(spans))))
    assert read == list(otel.spans_of(otlp_request(spans)))
    last = read[-1]
    assert (last.error, last.events) == ("failed", (("gen_ai.choice", {"a": "b"}),))
    assert list(last.attributes.values()) == [
        "größer", "", True, False, -(2**63), 0, -0.5, "AAE=", [7, None], {"k": "v"},
    ]  # fmt: skip


@each(
    "given, meant",
    [
        ({"intValue": 7}, 7),
        *(({"intValue": odd}, None) for odd in ("7x", "1" * 20, 7.5, True)),
        (_deep(18), json.loads("[" * 17 + "null" + "]" * 17)),  # no deeper
    ],
)
def test_a_value_of_json_that_protobuf_has_not(given: Json, meant: Json) -> None:
    told = otel.otlp_span({"attributes": [{"key": "k", "value": given}, {"value": given}]})
    assert told.attributes == {"k": meant}


def _nested(times: int) -> bytes:
    value = b""
    for _ in range(times):
        value = encode((5, encode((1, value or b"\x0a\x00"))))
    sent = encode((9, encode((1, "k"), (2, value))))
    return encode((1, encode((2, encode((2, sent))))))


BROKEN: dict[str, bytes] = {
    "a text": b"hello, I am no protobuf",
    "JSON": b'{"resourceSpans": []}',
    "cut off": _exported(agent_spans())[:-3],
    "a part that is longer than the body": b"\x0a\xff\xff\xff\xff\x0f",
    "a number without an end": b"\x08" + b"\xff" * 20,
    "a group": b"\x0b\x0c",
    "half of eight bytes": b"\x09\x00\x00",
    "nesting": _nested(60),
    "millions of empty parts": b"\x0a\x00" * 20_000,
}


@each("name", BROKEN)
def test_broken_protobuf_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="ExportTraceServiceRequest"):
        _decode(BROKEN[name])


def test_fields_of_newer_versions_and_of_other_types_are_passed_over() -> None:
    newer = b"\xfa\x3f\x01x" + b"\x08\x07" + b"\x11" + struct.pack("<d", 1.0)
    assert _decode(newer) == {}
    assert _decode(b"") == {}


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_are_spans_or_refused(noise: bytes, at: int) -> None:
    whole = _exported(agent_spans())
    for body in (noise, whole[:at] + noise + whole[at:]):
        try:
            sent = list(sent_spans(_decode(body)))
        except InputError:
            continue
        row_of_spans([one.data for one in sent if not one.why], TRACE)


def test_replies_are_read_by_the_exporters_own_classes() -> None:
    from google.rpc.status_pb2 import Status
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    reply = ExportTraceServiceResponse.FromString(encode((1, encode((1, 300), (2, "größer")))))
    assert (reply.partial_success.rejected_spans, reply.partial_success.error_message) == (
        300,
        "größer",
    )
    status = Status.FromString(encode((1, 3), (2, "no")))
    assert (status.code, status.message) == (3, "no")


@each("end", [1, 9, -1])
def test_a_file_of_requests_that_was_cut_off_is_no_recording(tmp_path: Path, end: int) -> None:
    message = encode((1, encode((2, encode((2, encode((5, "a span"))))))))
    whole = len(message).to_bytes(4, "big") + message
    assert len(list(requests_in(whole + whole))) == 2
    with pytest.raises(InputError, match="ends in the middle"):
        list(requests_in(whole + whole[:end]))
    (tmp_path / "spans").write_bytes(whole + whole[:end])
    (found,) = [row for row in recorded_rows(str(tmp_path)) if isinstance(row, InputError)]
    assert "ends in the middle" in str(found)


def _chat(said: str, **more: Json) -> dict[str, Json]:
    spoken: Json = [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]
    return {**span(10, operation__name="chat", output__messages=spoken), **more}


def test_attack_a_span_that_comes_again_rewrites_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(otlp_request([_chat("bad"), _chat("good")])))
    (row,) = recorded_rows(str(file))
    assert not isinstance(row, InputError)
    assert row["answer"] is None
    trace = cast("dict[str, Any]", row["trace"])
    assert trace["extra"]["incomplete"] == otel.REWRITTEN
    assert "good" not in json.dumps(trace)

    file.write_text(json.dumps(otlp_request([_chat("good"), _chat("good")])))
    (row,) = recorded_rows(str(file))
    assert not isinstance(row, InputError)
    assert row["answer"] == "good"


def test_attack_ids_in_capitals_make_no_second_trace_of_one(tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    loud = _chat("one", traceId=TRACE.upper(), spanId="000000000000000A")
    file.write_text(json.dumps(otlp_request([_chat("one"), loud])))
    (row,) = recorded_rows(str(file))
    assert not isinstance(row, InputError)
    assert (row["id"], row["answer"]) == (TRACE, "one")
