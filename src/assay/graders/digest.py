"""Digests of graders: what exactly gave a score, so that one knows which scores compare."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from assay.errors import GraderError
from assay.graders.base import Grader
from assay.graders.paths import named_paths
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.types.codec import to_json

_REMEMBERED_CHARACTERS = 4_096


def grader_digest(spec: GraderSpec) -> str:
    """What a declared grader is made of: its code, its options, and the files they name.

    Returns 16 hexadecimal digits. Where the files lie does not count, but for their place among
    each other; the weight does not count, because it changes no score.
    """
    paths, grader = files_of(spec), spec.kind.grader
    beneath = grader.rests_on(spec.options)
    if not paths and beneath is None:
        with suppress(TypeError, ValueError, RecursionError):  # not JSON, as Python may have it
            options = json.dumps(spec.written)
            if len(options) <= _REMEMBERED_CHARACTERS:
                return _plain_digest(_code(grader), spec.type, options)
    whole = hashlib.sha256(_head(_code(grader), _declaration(spec, paths)))
    if beneath is not None:
        whole.update(framed(b"", json.dumps(beneath, sort_keys=True).encode()))
    for path in paths:
        for name, content in _contents(path):
            whole.update(framed(name, content))
    return whole.hexdigest()[:16]


def _head(code: str, declaration: bytes) -> bytes:
    return b"assay grader 1\0" + framed(code.encode(), declaration)


@lru_cache(maxsize=256)
def _plain_digest(code: str, kind: str, options: str) -> str:
    """That of options alone, which is asked for with every item."""
    spec = GraderSpec(type=kind, options=json.loads(options))
    return hashlib.sha256(_head(code, _declaration(spec, []))).hexdigest()[:16]


def parts_digest(parts: Iterable[tuple[str, float, bool]]) -> str:
    """Name a combination of graders by their digests, weights and gates."""
    known = sorted(parts)
    if len(known) == 1:
        return known[0][0]
    whole = hashlib.sha256(b"assay combination 1\0")
    for digest, weight, gate in known:
        whole.update(framed(digest.encode(), f"{weight!r} {gate}".encode()))
    return whole.hexdigest()[:16]


def declared_digest(spec: GraderSpec) -> str:
    """What the author of a grader wrote, options and files: the same for every version of assay."""
    paths = files_of(spec)
    whole = hashlib.sha256(framed(_declaration(spec, paths)))
    for path in paths:
        if Path(path).is_absolute():  # one that is not is yet to be fetched, by a pinned commit
            for name, content in _contents(path):
                whole.update(framed(name, content))
    return whole.hexdigest()


def files_of(spec: GraderSpec) -> list[str]:
    """The files that a grader's options name."""
    known = spec.kind.parameters
    return [
        path
        for name, option in spec.options.items()
        if name in known
        for path in named_paths(known[name].annotation, option)
    ]


def _declaration(spec: GraderSpec, paths: list[str]) -> bytes:
    declared = to_json({"type": spec.type, "options": spec.written})
    text = json.dumps(_placeless(declared, paths), sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _placeless(value: Json, paths: list[str]) -> Json:
    """The options without the directories that files lie in."""
    if isinstance(value, str) and value in paths:
        return Path(value).name
    if isinstance(value, dict):
        return {key: _placeless(item, paths) for key, item in value.items()}
    if isinstance(value, list):
        return [_placeless(item, paths) for item in value]
    return value


@lru_cache(maxsize=256)
def _code(grader: type[Grader]) -> str:
    """A digest of the files that a grader's classes are written in, and of what they rest on."""
    whole = hashlib.sha256(_foundation())
    for part in grader.__mro__:
        if issubclass(part, Grader):
            try:
                file = inspect.getfile(part)
            except (TypeError, OSError):  # defined nowhere, as in a notebook
                continue
            whole.update(Path(file).read_bytes() if Path(file).is_file() else b"")
    return whole.hexdigest()


@lru_cache(maxsize=1)
def _foundation() -> bytes:
    """A digest of every file of the rooms that grading goes through, and of the threads' file."""
    whole = hashlib.sha256()
    home = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - a hundred files, quickly
    for room in ("conversation", "graders", "models", "sandbox", "scoring", "text"):
        for directory, inner, names in os.walk(f"{home}/{room}"):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            for name in sorted(names):
                with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123 - as above
                    whole.update(framed(f"{directory[len(home) :]}/{name}".encode(), file.read()))
    # Functions in the sandbox are given this very file.
    whole.update(framed(b"/types/thread.py", Path(home, "types", "thread.py").read_bytes()))
    return whole.digest()


def _contents(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Every file below a path, by its name from there, with a digest of what is in it."""
    waiting = [(Path(path), b"")]
    while waiting:
        place, name = waiting.pop()
        try:
            mode = place.stat().st_mode
            if stat.S_ISDIR(mode):
                inside = sorted(place.iterdir(), reverse=True)
                waiting += [(p, name + b"/" + os.fsencode(p.name)) for p in inside]
            elif stat.S_ISREG(mode):
                yield name, hashlib.sha256(place.read_bytes()).digest()
        except OSError as error:
            reason = error.strerror or str(error)
            raise GraderError(f"a grader's file {place} cannot be read: {reason}") from error


def framed(*parts: bytes) -> bytes:
    """The parts with their lengths before them, so that no two lists of parts look the same."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
