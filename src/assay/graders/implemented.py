"""The kind ``implemented``: whether what was to be written has been written.

A tree is judged by which files are looked at, and which of them hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar, TypeAlias

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.languages import BROUGHT_IN, BUILT, is_test, language_of
from assay.graders.stubs import Code, UnwrittenFunction, faults, gaps, hollow, stands, written
from assay.graders.stubs.reader import SourceReader
from assay.graders.stubs.treesitter import GRAMMARS, can_read, require_grammar
from assay.graders.tree import read_regular, regular_files
from assay.scoring.json_safe import Json, noted
from assay.types.codec import Filled
from assay.types.submission import Workspace

Named: TypeAlias = Annotated[list[str], Filled("leave it out, or name some")]

_MAX_FILE = 1 << 20
_MAX_FILES = 20_000
_MAX_TOTAL = 256 << 20
_MAX_CPU_SECONDS = 100.0
"""What all files of one tree may take to be read."""

_SMALL = 200
"""Source files of a tree in which those that nobody touched are read too."""

_SHOWN = 20
_LOUD = (b"notimplemented", b"unimplemented", b"todo", b"not implemented", b"unsupported")


def judge(
    workspace: Workspace, files: Sequence[str] | None, functions: Sequence[str] | None
) -> tuple[float, dict[str, Json]]:
    """Judge what an agent left; see `assay.graders.implemented.ImplementedGrader`."""
    with SourceReader() as reader:
        left = _Tree(Path(workspace.submitted or workspace.path), reader, BROUGHT_IN | BUILT)
        source = workspace.source
        given = None if source is None else _Tree(Path(source), reader, BROUGHT_IN)
        judgement = _Judgement(left, given)
        if files:
            judgement.named(files)
        elif not functions:
            judgement.all_sources()
        for entry in functions or ():
            judgement.function(entry)
        return judgement.result()


@dataclass(slots=True)
class _Tree:
    """One tree: what its files say, each read once."""

    root: Path
    reader: SourceReader
    skipped: frozenset[str]
    _texts: dict[str, bytes | str] = field(default_factory=dict[str, "bytes | str"])
    _codes: dict[str, Code | str | None] = field(default_factory=dict[str, "Code | str | None"])
    _total: int = 0
    _cpu: float = 0.0
    _sources: list[str] | None = None

    def text(self, path: str) -> bytes | str:
        """The bytes of a file; as text, why there are none."""
        if path not in self._texts:
            limit = min(_MAX_FILE, _MAX_TOTAL - self._total)
            found = read_regular(self.root, path, limit=limit)
            self._total += len(found) if isinstance(found, bytes) else 0
            self._texts[path] = found
        return self._texts[path]

    def code(self, path: str) -> Code | str | None:
        """What a file defines; as text, why it cannot be read; None for what is no such code."""
        if path not in self._codes:
            language, text = language_of(path), self.text(path)
            if isinstance(text, str):
                self._codes[path] = text
            elif language is None or (language != "python" and not can_read(language)):
                self._codes[path] = None
            elif self._cpu > _MAX_CPU_SECONDS:
                self._codes[path] = "is not read: the files before it took too long"
            else:
                before = self.reader.spent
                self._codes[path] = self.reader.read(text, language)
                self._cpu += self.reader.spent - before
        return self._codes[path]

    def sources(self) -> list[str]:
        """Its source files in the languages we know, but for tests and what was brought in."""
        if self._sources is None:
            self._sources = [
                name
                for path in regular_files(self.root, self.skipped)
                if (language_of(name := path.as_posix()) == "python")
                or language_of(name) in GRAMMARS
                if not is_test(name) and not any(part.startswith(".") for part in path.parts)
            ]
        return self._sources

    def files_with(self, word: str) -> Iterator[tuple[str, Code]]:
        """The readable source files that use a word, with their paths."""
        needle = word.encode("utf-8", "replace")
        for path in self.sources()[:_MAX_FILES]:
            text = self.text(path)
            if isinstance(text, bytes) and needle in text:
                code = self.code(path)
                if isinstance(code, Code):
                    yield path, code


@dataclass(slots=True)
class _Judgement:
    left: _Tree
    given: _Tree | None
    rows: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    expected: set[str] = field(default_factory=set[str])
    notes: list[str] = field(default_factory=list[str])
    small: bool = False
    by_name: bool = False

    def named(self, entries: Sequence[str]) -> None:
        """Judge the files that the author names."""
        self.by_name = True
        for entry in entries:
            for path in self._matching(entry):
                given = self.given is not None and isinstance(self.given.text(path), bytes)
                language = language_of(path)
                if language in GRAMMARS and (given or path == entry):
                    require_grammar(str(language))
                if given or path == entry or self.given is None:
                    self.expected.add(path)
                self.rows[path] = self._named_file(path)

    def _matching(self, entry: str) -> list[str]:
        wild = any(sign in entry for sign in "*?[")
        trees = [tree for tree in (self.given, self.left) if tree is not None]
        if not wild or any(isinstance(tree.text(entry), bytes) for tree in trees):
            return [entry]
        found = {
            name
            for tree in trees
            for path in regular_files(tree.root)
            if fnmatchcase(name := path.as_posix(), entry)
        }
        return sorted(found)[:_MAX_FILES] or [entry]

    def _named_file(self, path: str) -> list[str]:
        text = self.left.text(path)
        if isinstance(text, str):
            return [text]
        before = self.given.text(path) if self.given else "is unknown"
        code = self.left.code(path)
        was = self._was(path)
        if isinstance(code, str) and isinstance(was, str) and isinstance(before, bytes):
            code = None  # the source's own does not parse either: no fault of who worked on it
        if code is None:
            return _plain_faults(text, before)
        if isinstance(code, str):
            return [code]
        return self._code_faults(path, code, was if isinstance(was, Code) else None)

    def _was(self, path: str) -> Code | str | None:
        return self.given.code(path) if self.given else None

    def _code_faults(self, path: str, code: Code, was: Code | None) -> list[str]:
        if not code.substance:
            return ["has no code"]
        if was is not None and was.fingerprint == code.fingerprint:
            return ["has the same code as the source", *self._faults(path, code, was)]
        before = Code() if was is None and self.given else was  # a new file: all of it is new
        found = self._faults(path, code, before)
        if was is None and not found and hollow(code):
            return ["has no function that does anything with what it is given"]
        return found

    def _faults(self, path: str, code: Code, source: Code | None) -> list[str]:
        return [
            str(fault)
            for fault in faults(code, source, self.left)
            if fault.line or not fault.name.rpartition(".")[2].startswith("_")
            if not self._moved(path, fault, anywhere=not self.by_name)
        ]

    def _moved(self, path: str, fault: UnwrittenFunction, *, anywhere: bool) -> bool:
        """Whether a stub that is gone was written in another file.

        A file that the author names must at least bring in all of that one.
        """
        code = self.left.code(path)
        starred = isinstance(code, Code) and "*" in code.names
        if fault.line or not (starred or anywhere):
            return False
        return any(
            any(map(written, code.named(fault.name))) or (starred and fault.name in code.names)
            for other, code in self.left.files_with(fault.name.rpartition(".")[2])
            if other != path
        )

    def all_sources(self) -> None:
        """Judge every source file, where the author names none."""
        was = set(self.given.sources()) if self.given else set[str]()
        names = sorted(was) + [name for name in self.left.sources() if name not in was]
        if len(names) > _MAX_FILES:
            self.notes.append(f"everything after {_MAX_FILES} source files was not read")
        self.small = len(names) <= _SMALL
        changed = False
        unread: set[str] = set()
        for path in names[:_MAX_FILES]:
            language = str(language_of(path))
            if language != "python" and not can_read(language):
                if path in was:
                    require_grammar(language)
                unread.add(language)
                continue
            changed |= self._source_file(path, in_source=path in was)
        for language in sorted(unread):
            self.notes.append(f"{language} was not read: it needs the extra 'languages'")
        if unread and not changed and not self.rows:
            require_grammar(min(unread))
        if not changed:
            self.rows["."] = ["no source file has code that was not given"]
            self.expected = {"."}

    def _source_file(self, path: str, *, in_source: bool) -> bool:
        """Judge one file; whether it was changed and has code."""
        text = self.left.text(path)
        before = self.given.text(path) if self.given and in_source else None
        loud = self.small or (isinstance(text, bytes) and _may_be_loud(text))
        if text == before and not loud:
            return False
        code = self.left.code(path)
        was = self._was(path) if in_source else None
        if was is not None and not isinstance(was, Code):
            return text != before and isinstance(text, bytes)  # not for us to read, before or after
        if was is not None and gaps(was):
            self.expected.add(path)
        if not isinstance(code, Code):
            if text != "is missing" or was is None:
                self.rows[path] = [str(code)]
            elif stubs := self._faults(path, Code(), was):
                self.rows[path] = stubs
            return False
        same = was is not None and was.fingerprint == code.fingerprint
        if not same and code.substance:
            self.rows[path] = self._code_faults(path, code, was)
            return not (was is None and hollow(code))
        if stubs := self._faults(path, code, was):
            self.rows[path] = stubs
        return False

    def function(self, entry: str) -> None:
        """Judge one function that the author names: wherever the source had it as a stub.

        Its whole name goes before one that only ends so.
        """
        path, _, name = entry.rpartition("::")
        if path and "." not in path:  # a class, as C++ and Rust write it
            path, name = "", entry.replace("::", ".")
        places = [path] if path else list(dict.fromkeys([*self.expected, *self.left.sources()]))
        self.expected.add(entry)
        stubs = list(self._stubs(path, name))
        whole = [why for stub, why in stubs if stub == name]
        if stubs:
            found = [why for _, why in stubs]
            self.rows[entry] = list(filter(None, whole)) if whole else (found if all(found) else [])
            return
        self.rows[entry] = ["is not defined"]
        for place in places[:_MAX_FILES]:
            code = self.left.code(place)
            if not isinstance(code, Code):
                continue
            found = [f for f in code.functions if f".{f.name}".endswith(f".{name}")]
            was = self._was(place)
            old = was.functions if isinstance(was, Code) else ()
            given = {f.fingerprint for f in old}
            done = [f for f in found if written(f)]
            if name in code.names or any(f.fingerprint not in given for f in done):
                self.rows[entry] = []
                return
            if found:
                why = "is as it was given" if done else "is a stub"
                self.rows[entry] = [f"{place}: {found[0].name}, line {found[0].line}: {why}"]

    def _stubs(self, path: str, name: str) -> Iterator[tuple[str, str]]:
        """The stubs of the source that a name may mean, and why each still is one."""
        given = self.given.files_with(name.rpartition(".")[2]) if self.given else ()
        for place, was in [(path, self._was(path))] if path else given:
            if isinstance(was, Code):
                meant = [stub for stub in sorted(gaps(was)) if f".{stub}".endswith(f".{name}")]
                yield from ((s, self._still(place, s, was, anywhere=not path)) for s in meant)

    def _still(self, place: str, stub: str, was: Code, *, anywhere: bool) -> str:
        code = self.left.code(place)
        if isinstance(code, str) and code != self.left.text(place):
            return f"{place} {code}"
        left = code if isinstance(code, Code) else Code()
        found = left.named(stub)
        is_real = any(function.body == "real" for function in found)
        if is_real or (not found and stands(stub, left, was, self.left)):
            return ""
        why = "is a stub" if found else "was a stub and is gone"
        fault = UnwrittenFunction(stub, found[0].line if found else 0, why)
        return "" if self._moved(place, fault, anywhere=anywhere) else f"{place}: {fault}"

    def result(self) -> tuple[float, dict[str, Json]]:
        """The score and what it rests on."""
        failing = {path for path, why in self.rows.items() if why}
        if not failing:
            value = 1.0
        else:
            counted = self.expected | failing
            value = len(self.expected - failing) / len(counted)
        shown = sorted(self.rows, key=lambda path: (path not in failing, path))
        files: list[Json] = [
            {"file": path, "ok": not self.rows[path], "why": list[Json](self.rows[path][:_SHOWN])}
            for path in shown[:200]
        ]
        return value, {"files": files, **noted(not_read=list(self.notes))}


def _may_be_loud(text: bytes) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _LOUD)


def _plain_faults(text: bytes, before: bytes | str) -> list[str]:
    """What is not source code: it must say something, and something else than it did."""
    if not text.split():
        return ["is empty"]
    if isinstance(before, bytes) and before.split() == text.split():
        return ["is as it was given"]
    return []


@dataclass(frozen=True, kw_only=True)
class ImplementedGrader(Grader):
    """Whether the named files exist, differ from what was given and hold no stubs.

    Most useful as a gate: a floor beneath tests, and no proof that what was written is right. What
    the agent left is read and never run, by Python's parser and, for JavaScript, TypeScript, Go,
    Rust, Java, C, C++ and Ruby, by tree-sitter (the extra ``languages``). A file holds if it

    * is a regular file of at most 1 MiB, with no link on the way to it,
    * parses, and has a statement in it,
    * differs from the source's by more than comments, docstrings and layout, and
    * has no stub.

    The source's stubs are its functions that do nothing but raise `NotImplementedError` or its
    like in another language, and those without a body in a file in which nothing is written. At
    their places, a body that is empty, only raises or returns a constant is a stub too, unless a
    subclass fills the method in. Elsewhere only a function that says so is one, and no method:
    it may be for subclasses. In doubt a function is written.

    With neither ``files`` nor ``functions``, the source files of the tree are looked at, except
    tests and what was built or brought in. Then at least one must differ.

    The score is 1.0 if everything holds. Otherwise it is the share, of the named files and
    functions (or else of the source's files with stubs), that holds.

    Attributes:
        files: Paths or globs (``*`` also matches ``/``) of files that must be implemented; every
            source file where neither these nor ``functions`` are named.
        functions: Functions that must have a body of their own, which the source did not have:
            ``add``, ``Stack.push`` or ``src/kit.py::add``. Where the source has a stub of that
            name, it counts there; elsewhere only if it moved.

    Raises:
        InputError: For an empty list, or a path that leads out.
        MissingExtraError: If a file is named whose language needs the extra ``languages``.
    """

    name: ClassVar[str] = "implemented"
    assurance = "read"

    files: Named | None = None
    functions: Named | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, given in (("files", self.files), ("functions", self.functions)):
            for entry in given or ():
                _check_path(key, str(entry))

    async def score(self, workspace: Workspace) -> tuple[float, dict[str, Json]]:
        """Read the files.

        Args:
            workspace: What the agent left, and what it was given.

        Raises:
            GraderError: If the process that reads the files does not start.
        """
        import asyncio

        return await asyncio.to_thread(judge, workspace, self.files, self.functions)


def _check_path(key: str, entry: str) -> None:
    from assay.graders.stubs.treesitter import require_grammar

    path = entry.partition("::")[0] if key == "functions" else entry
    if not entry or "\0" in entry:
        raise InputError(f"{entry!r} in {key} names nothing")
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise InputError(f"{entry!r} in {key} must be a path inside the workspace")
    language = language_of(path) if key == "files" or "::" in entry else None
    if language is not None and language != "python" and not language.startswith("other-"):
        require_grammar(language)
