"""Files of recordings as rows of a dataset: each run an answer, with its trace.

A file is taken for recordings by what it holds: a row says ``answer`` or ``messages``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from assay.agents.transcripts import inspect_log
from assay.agents.transcripts.document import MOST_BYTES, Notes, mapping, parse
from assay.agents.transcripts.reading import (
    detect,
    of_spans,
    read_recordings,
    read_requests,
)
from assay.agents.transcripts.transcript import Recording
from assay.errors import InputError, Location
from assay.graders.usage import missing_part, untold_part
from assay.scoring.json_safe import Json
from assay.tasks.packed import unpacked

_LOOKED_AT = 1 << 20
_FIRST = 20
_MOST_FILES = 100_000
_BEGINNINGS = (b"\n", b"\0")
"""What requests in protobuf begin with, with or without a length before them; texts hardly ever."""


def holds_recordings(path: str) -> bool:
    """Whether a path holds recordings rather than rows; False if it cannot be read."""
    place = Path(path)
    if place.is_dir():
        return True
    try:
        with place.open("rb") as handle:
            head = handle.read(4)
        if inspect_log.is_archive(head) or _is_protobuf(place):
            return True
        text = _text(place, _LOOKED_AT)
        if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
            return False
        _, values = parse(text, Notes())
        first = list(islice(values, _FIRST))
        if not first and len(text) >= _LOOKED_AT // 2:  # one document, which is longer
            text = _text(place, MOST_BYTES)
            _, values = parse(text, Notes())
            first = list(islice(values, _FIRST))
    except (OSError, InputError):
        return False
    if not first or _is_row(first[0]):
        return False
    return detect(text) is not None


def _is_row(value: Json) -> bool:
    """Whether a value is a row as it is: an answer, or messages that a dataset has."""
    row = mapping(value)
    if "answer" in row or "completion" in row:
        return True
    return "messages" in row and not {"epoch", "request", "max_tokens"} & row.keys()


def recorded_rows(*paths: str) -> Iterator[dict[str, Json] | InputError]:
    """The runs of files, and of the files below directories, as rows.

    Yields:
        A row, or what is wrong with a file or with one of its runs.
    """
    places = [Path(path) for path in paths]
    folders = [place if place.is_dir() else place.parent for place in places]
    is_single = len(places) == 1 and not places[0].is_dir()
    root = None if is_single else Path(os.path.commonpath([one.absolute() for one in folders]))
    seen: dict[str, int] = {}
    for file in chain.from_iterable(_files(one) if one.is_dir() else [one] for one in places):
        name = "" if root is None else str(file.absolute().relative_to(root))
        try:
            for recording in _recordings(file):
                if isinstance(recording, InputError):
                    yield recording
                    continue
                row = _row(recording, name)
                times = seen[str(row["id"])] = seen.get(str(row["id"]), 0) + 1
                yield {**row, "id": f"{row['id']} ({times})"} if times > 1 else row
        except InputError as error:
            yield InputError(error.message, location=Location(file=str(file)), hint=error.hint)
        except OSError as error:
            yield InputError(f"cannot read {file}: {error.strerror}")


def row_of_spans(
    spans: Iterable[Mapping[str, Json]], name: str, missing: str = ""
) -> dict[str, Json]:
    """The row of one trace that came as spans of OTLP, as if they stood in a file.

    Args:
        spans: Its spans, as OTLP writes them in JSON.
        name: Its id.
        missing: Why a part of it is missing; empty where all of it is there. What was said last
            is not known then, and so no answer.
    """
    notes = Notes()
    if missing:
        notes.lack(missing)
    recording = of_spans(spans, name, notes)
    if missing:
        recording.transcript.trace.content = None
    return _row(recording, "")


def row_of_sample(sample: Json) -> dict[str, Json]:
    """The row of one sample of Inspect's, as if it stood in a log."""
    return _row(inspect_log.sample_of(sample), "")


def _files(root: Path) -> list[Path]:
    """The files of a directory, by name; none that is hidden, and no link out of it."""
    found = [
        file
        for file in sorted(root.rglob("*"))
        if file.is_file()
        and not file.is_symlink()
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    ]
    if not found:
        raise InputError(f"{root} holds no files")
    if len(found) > _MOST_FILES:
        raise InputError(f"{root} holds more than {_MOST_FILES:,} files")
    return found


def _recordings(file: Path) -> Iterator[Recording | InputError]:
    with file.open("rb") as handle:
        head = handle.read(4)
    if inspect_log.is_archive(head):
        yield from inspect_log.samples_of_archive(str(file))
        return
    data = _data(file, MOST_BYTES + 1)
    requests = _requests(data)
    if requests is not None:
        yield from read_requests(requests)
        return
    yield from read_recordings(data.decode("utf-8-sig", "replace"))


def _data(file: Path, most: int) -> bytes:
    with file.open("rb") as handle:
        source, _ = unpacked(handle, handle.peek(4)[:4], str(file))
        return source.read(most)


def _text(file: Path, most: int) -> str:
    return _data(file, most).decode("utf-8-sig", "replace")


def _is_protobuf(file: Path) -> bool:
    return _data(file, 1) in _BEGINNINGS and _requests(_data(file, MOST_BYTES)) is not None


def _requests(data: bytes) -> Iterator[Json] | None:
    """The requests of OTLP that protobuf holds; None for what is none."""
    if data[:1] not in _BEGINNINGS:
        return None
    from assay.agents.transcripts.otlp_protobuf import requests_in

    requests = requests_in(data)
    try:
        first = next(requests, None)
    except InputError:
        return None
    return None if first is None else chain([first], requests)


def _row(recording: Recording, file: str) -> dict[str, Json]:
    trace = recording.transcript.trace
    answer = trace.content
    is_seen = not (missing_part(trace) or untold_part(trace))
    if answer is None and is_seen and trace.status != "error":
        answer = ""  # it was seen to say nothing
    identity = "#".join(part for part in (file, recording.id) if part)
    metadata: dict[str, Json] = {**recording.metadata, "format": recording.transcript.format}
    row: dict[str, Json] = {"id": identity or "trace", "answer": answer}
    if recording.question is not None:
        row["question"] = recording.question
    if recording.expected is not None:
        row["expected"] = recording.expected
    row |= {"trace": trace.to_dict(), "metadata": metadata}
    return json.loads(json.dumps(row))
