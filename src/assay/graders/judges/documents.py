"""The documents that an answer rests on: where they stand, and how they fit into prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.errors import InputError, ModelError
from assay.graders.judges.evidence import Sought
from assay.graders.judges.fence import MAX_MATERIAL, Untrusted, suspicions
from assay.graders.judges.passages import same, seen
from assay.scoring.json_safe import Json
from assay.types.thread import StringThread

WINDOW_CHARACTERS = 40_000
"""Most characters of documents in one question: of more, models overlook what is in the middle."""

WINDOW_DOCUMENTS = 50
"""Most documents in one question: a verdict for each of more is often not given."""

MAX_WINDOWS = 32
"""Most windows of one grading: each is read for every batch of claims. More is an error."""

_OVERLAP = 1_000
_TEXT_KEYS = ("content", "text", "page_content")
_ENDS = re.compile(r"\n\s*\n|\n|(?<=[.!?。！？])\s+|\s+")  # noqa: RUF001 - full stops of other scripts


@dataclass(frozen=True, slots=True)
class ContextChunk:
    """One chunk of context."""

    number: int
    text: str
    sought: Sought


@dataclass(frozen=True, slots=True)
class Window:
    """Documents, or parts of them, that are read together."""

    parts: tuple[tuple[int, str], ...]

    @property
    def numbers(self) -> list[int]:
        """The documents in it."""
        return [number for number, _ in self.parts]

    def material(self) -> list[Untrusted]:
        """The documents, each in a fence that has its number."""
        return [Untrusted(f"document-{number}", text) for number, text in self.parts]


def documents_of(
    thread: StringThread | None, metadata: Mapping[str, Json] | None, given: Json = None
) -> tuple[ContextChunk, ...]:
    """Collect the documents of a sample.

    They are all ``document`` turns, wherever they stand, and then ``metadata["documents"]`` of the
    sample and of the thread. What is there twice, but for decoration (see `same`), is one
    document: the copies of one good chunk do not make a retrieval better.
    """
    if given is not None:
        texts = _texts(given, "documents")
    else:
        texts = thread.documents() if thread is not None else []
        for source in (metadata, thread.metadata if thread is not None else None):
            if source and source.get("documents") is not None:
                texts += _texts(source["documents"], 'metadata["documents"]')
    first: dict[str, ContextChunk] = {}
    for number, text in enumerate(texts, 1):
        first.setdefault(same(text), ContextChunk(number, text, Sought(text)))
    return tuple(first.values())


def _texts(data: Json, where: str) -> list[str]:
    if isinstance(data, str):
        return [data]
    if not isinstance(data, list):
        raise InputError(f"{where} must be a list", hint="of texts, or of {content: ...}")
    return [_text(item, f"{where}[{place}]") for place, item in enumerate(data)]


def _text(item: Json, where: str) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        for key in _TEXT_KEYS:
            if isinstance(found := item.get(key), str):
                return found
    raise InputError(
        f"{where} has no text", hint=f"a text, or a mapping with {', '.join(_TEXT_KEYS)}"
    )


def windows(documents: Sequence[ContextChunk]) -> list[Window]:
    """Put documents together into as few windows as hold them; blank ones are left out.

    One that is longer than a window is cut into parts that overlap, so that no passage is lost.

    Raises `ModelError` of the kind ``overflow`` for more than `MAX_WINDOWS`. The documents decide
    it alone, never the answer.
    """
    found: list[Window] = []
    parts: list[tuple[int, str]] = []
    size = 0
    for document in documents:
        if not seen(document.text).strip():
            continue
        for part in pieces(document.text, WINDOW_CHARACTERS, overlap=_OVERLAP):
            is_full = len(parts) == WINDOW_DOCUMENTS or size + len(part) > WINDOW_CHARACTERS
            # Two parts of one document are never in one window: together they are longer.
            if parts and is_full:
                found.append(Window(tuple(parts)))
                parts, size = [], 0
            parts.append((document.number, part))
            size += len(part)
    if parts:
        found.append(Window(tuple(parts)))
    if len(found) > MAX_WINDOWS:
        raise ModelError(
            f"the documents take {len(found)} windows; at most {MAX_WINDOWS} are read",
            kind="overflow",
            hint=f"a window has {WINDOW_DOCUMENTS} documents or {WINDOW_CHARACTERS:,} characters; "
            "give fewer, such as those that the answer was written from",
        )
    return found


def pieces(text: str, size: int, *, overlap: int = 0) -> Iterator[str]:
    """Cut a text into pieces of at most ``size`` characters, where a paragraph or sentence ends."""
    start = 0
    while len(text) - start > size:
        end = _end(text, start + size // 2 + overlap, start + size)
        yield text[start:end]
        start = end - overlap
    yield text[start:]


def _end(text: str, least: int, most: int) -> int:
    best, rank = most, 4
    for found in _ENDS.finditer(text, least, most):
        mark = found[0]
        kind = 0 if mark.count("\n") > 1 else 1 if "\n" in mark else 3
        if kind == 3 and text[found.start() - 1] in ".!?。！？":  # noqa: RUF001 - likewise
            kind = 2
        if kind <= rank:
            best, rank = found.end(), kind
    return best


def suspicious(documents: Sequence[ContextChunk]) -> list[Json]:
    """The numbers of documents that show a pattern of attack; noted, never scored."""
    return [
        one.number
        for one in documents
        if any(suspicions(part) for part in pieces(one.text, MAX_MATERIAL, overlap=_OVERLAP))
    ]
