"""Which tests of a foreign runner's report are the author's, and so count.

The author's are those of the hidden files, and of files of the source that the submission left as
they were. All else is the submission's own: a hundred empty tests beside one that fails would
otherwise be worth 0.99, and a test that an honest solution brings along could lower its value.

What nobody is seen to declare counts if it failed, for that gains nothing: it may be a file that
could not be loaded, or tests that were never heard of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from assay.graders.testing.claims import TestFile, kind_of, read_test_file
from assay.graders.testing.left_out import Declared
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.static_ids import matches_id
from assay.types.submission import Workspace

__all__ = ["Authors", "Counted", "read_authors"]

_KINDS: Mapping[str, str] = {
    "cargo": "rust",
    "go-json": "go",
    "gradle": "java",
    "jest": "javascript",
    "mocha": "javascript",
    "node-spec": "javascript",
    "pytest": "python",
    "surefire": "java",
    "unittest": "python",
    "vitest": "javascript",
}
"""The language of a console format's tests; of the others any."""

_PASSED_OVER = frozenset(
    {".git", ".venv", "__pycache__", "node_modules", "site-packages", "target", "venv"}
)
_MOST_FILES = 10_000
_LARGEST = 1024 * 1024
_MODULE = re.compile(r"^\s*module\s+\"?(?P<name>[^\s\"]+)", re.MULTILINE)
_ONLY_COUNTED = re.compile(r"(?:passed|failed|error|skipped|xfailed|xpassed) \d+")
_AGAIN = re.compile(r"(?: ?#\d+)$")
_BAD = ("failed", "error")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The tests of a report that count.

    Attributes:
        ids: Their ids.
        missing: Tests that hidden files declare and that were not heard of; None where names do
            not tell.
        notes: What does not count, or could not be told apart.
    """

    ids: frozenset[str]
    missing: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """Whose the tests of a tree are.

    Attributes:
        theirs: Files with tests of the author.
        own: Files with tests that the submission added or changed.
        hidden: Paths of the hidden files.
        known: Whether the source is known, and all of it was read.
        bound: Whether the report can only be of the languages in these files.
        touched: Whether the author's files are only such as the submission changed, so that
            nothing but names can be held to.
    """

    theirs: tuple[TestFile, ...]
    own: tuple[TestFile, ...]
    hidden: frozenset[str]
    known: bool
    bound: bool
    touched: bool = False

    def count(self, outcomes: Mapping[str, TestOutcome], *, canaries: bool) -> Counted:
        """Tell the author's tests from the submission's.

        Args:
            outcomes: What was reported, without canaries and what the author leaves out.
            canaries: Whether canaries were heard of, so that the hidden files did run.
        """
        everything = frozenset(outcomes)
        if not self.known or not self.theirs:
            return Counted(ids=everything, notes=self._doubt(outcomes))
        owners = {name: self._owner(name) for name in outcomes}
        if any(map(_ONLY_COUNTED.fullmatch, outcomes)):
            named = {
                name: one
                for name, one in outcomes.items()
                if _ONLY_COUNTED.fullmatch(name) or owners[name] != "own"
            }
            return self._capped(named, "the report does not name every test")
        if not any(isinstance(owner, TestFile) for owner in owners.values()):
            if not self.bound:
                return Counted(ids=everything, notes=self._doubt(outcomes))
            if canaries and any(owner is None for owner in owners.values()):
                return self._capped(outcomes, "the report names tests in a way of its own")
        counted = {name for name in outcomes if self._counts(outcomes[name], owners[name])}
        counted -= self._repeated(counted, outcomes)
        return Counted(
            ids=frozenset(counted),
            missing=tuple(self._missing(counted, owners)),
            notes=_strangers(outcomes.keys() - counted),
        )

    def _owner(self, name: str) -> TestFile | str | None:
        """The author's file that declares a test, ``own``, or None if nobody is seen to."""
        plain = _AGAIN.sub("", name)
        best: TestFile | None = None
        most = 0
        for file in self.theirs:
            if (claim := max(file.claim(plain), file.claim(name))) > most:
                best, most = file, claim
        if any(file.claim(plain) > most for file in self.own):
            return "own"
        if best is None and any(file.may_mean(plain) for file in self.theirs):
            return "loose"
        return best

    def _counts(self, one: TestOutcome, owner: TestFile | str | None) -> bool:
        if owner == "own":
            return False
        if self.touched and isinstance(owner, TestFile) and owner.kind != "python":
            return any(_is_heard(name, [one.id], owner) for name in owner.tests.names)
        if owner is not None or one.outcome in _BAD:
            return True
        anything = any(file.computed for file in self.theirs)
        return anything and not any(file.computed for file in self.own)

    def _repeated(self, counted: set[str], outcomes: Mapping[str, TestOutcome]) -> set[str]:
        """All but the worst of several with one name, where some may be the submission's."""
        groups: dict[str, list[str]] = {}
        for name in sorted(counted):
            groups.setdefault(_bare(name), []).append(name)
        found: set[str] = set()
        for group in groups.values():
            if len(group) > 1 and any(
                file.claim(_AGAIN.sub("", n)) for file in self.own for n in group
            ):
                found.update(sorted(group, key=lambda name: _rank(outcomes[name]))[1:])
        return found

    def _missing(
        self, counted: set[str], owners: Mapping[str, TestFile | str | None]
    ) -> Iterator[str]:
        """Hidden tests not heard of: of each file no more than too few of its tests were."""
        elsewhere = sum(not isinstance(owners[name], TestFile) for name in counted)
        for file in self.theirs:
            if file.path not in self.hidden:
                continue
            heard = [name for name in counted if owners[name] is file]
            number = len({_top(name) for name in heard} if file.kind == "go" else heard)
            names = [name for name in file.tests.names if not _is_heard(name, heard, file)]
            loose = elsewhere if file.computed or file.loose else 0
            yield from names[: max(len(file.tests.names) - number - loose, 0)]

    def _capped(self, outcomes: Mapping[str, TestOutcome], why: str) -> Counted:
        """No more tests than the author has, those that did not pass first."""
        doubt = f"{why}, so tests of the submission's own cannot be told apart"
        most = self._number()
        if most is None or len(outcomes) <= most:
            return Counted(ids=frozenset(outcomes), notes=(doubt,))
        ranked = sorted(outcomes, key=lambda name: (_rank(outcomes[name]), name))
        note = f"{doubt}: of {len(ranked)} no more than the {most} that the author declares count"
        return Counted(ids=frozenset(ranked[:most]), notes=(f"{note}, failures first",))

    def _number(self) -> int | None:
        """How many tests the author has; None where that cannot be read."""
        countable = all(
            not file.computed
            and not file.loose
            and file.kind != "python"
            and (file.kind != "java" or file.path.endswith(".java"))
            for file in self.theirs
        )
        return sum(len(file.tests.names) for file in self.theirs) or None if countable else None

    def _doubt(self, outcomes: Mapping[str, TestOutcome]) -> tuple[str, ...]:
        if not outcomes or (self.theirs and all(self._owner(name) for name in outcomes)):
            return ()
        why = "the source was not read" if not self.known else "the author's tests cannot be read"
        return (f"{why}, so tests of the submission's own cannot be told apart",)


def _rank(one: TestOutcome) -> int:
    return (
        ("error", "failed").index(one.outcome)
        if one.outcome in _BAD
        else 2 + (one.outcome == "passed")
    )


def _bare(name: str) -> str:
    """What of an id a submission can make come up again."""
    plain = _AGAIN.sub("", name)
    return plain.rpartition("::")[2] if " " in plain.partition("::")[0] else plain


def _top(name: str) -> str:
    return name.partition("::")[2].partition("/")[0]


def _is_heard(name: str, heard: list[str], file: TestFile) -> bool:
    spoken = file.kind == "javascript"
    declared = Declared(name=name, skipped=False, spoken=spoken)
    return any(declared.means(one) or matches_id(name, one) for one in heard)


def _strangers(names: set[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(name[:200] for name in sorted(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    are = "1 test is" if len(names) == 1 else f"{len(names)} tests are"
    return (f"{are} not the author's, so not counted: {shown}{more}",)


def read_authors(
    hidden: Mapping[str, str], workspace: Workspace, *, console: str | None, junit: bool
) -> Authors:
    """Read the tests of the hidden files, the source and the submission.

    Args:
        hidden: Text of hidden files by path.
        workspace: The trees.
        console: The console format, if the report is a console's.
        junit: Whether the report is a JUnit file.
    """
    bound = None if junit else _KINDS.get(console or "")
    trees = _Trees(hidden=hidden, workspace=workspace, junit=junit)
    injected = [file for path, text in hidden.items() if (file := trees.read(path, text))]
    kinds = {bound} if bound else {file.kind for file in injected}
    theirs = [file for file in injected if not bound or file.kind == bound]
    own: list[TestFile] = []
    touched = False
    known = workspace.source is not None
    if workspace.source is not None:
        found = trees.pristine(workspace.source, kinds)
        known = found is not None
        left_alone, changed = found or ((), ())
        theirs += left_alone
        own = list(trees.changed(workspace.source, kinds))
        touched = not theirs
        theirs += changed if touched else ()
    return Authors(
        theirs=tuple(theirs),
        own=tuple(own),
        hidden=frozenset(hidden),
        known=known,
        bound=bool(kinds),
        touched=touched,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trees:
    hidden: Mapping[str, str]
    workspace: Workspace
    junit: bool

    def read(self, path: str, text: str) -> TestFile | None:
        return read_test_file(path, text, junit=self.junit, modules=self._modules(path))

    def pristine(
        self, source: str, kinds: set[str]
    ) -> tuple[list[TestFile], list[TestFile]] | None:
        """Files of the source that were left alone, and others; None if too many to read."""
        found: tuple[list[TestFile], list[TestFile]] = ([], [])
        for number, path in enumerate(self._paths(source, kinds)):
            if number == _MOST_FILES:
                return None
            content = _content(Path(source, path))
            if content is None:
                continue
            file = self.read(path, content.decode("utf-8", "replace"))
            if file:
                found[content != _content(Path(self.workspace.path, path))].append(file)
        return found

    def changed(self, source: str, kinds: set[str]) -> Iterator[TestFile]:
        """Files of the submission that are not as in the source; as many as are read."""
        for number, path in enumerate(self._paths(self.workspace.path, kinds)):
            if number == 2 * _MOST_FILES:
                return
            content = _content(Path(self.workspace.path, path))
            if content is not None and content != _content(Path(source, path)):
                file = self.read(path, content.decode("utf-8", "replace"))
                if file:
                    yield file

    def _paths(self, root: str, kinds: set[str]) -> Iterator[str]:
        for parent, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - _PASSED_OVER)
            for name in sorted(names):
                kind = kind_of(name)
                path = Path(parent, name).relative_to(root).as_posix()
                if kind and (not kinds or kind in kinds) and path not in self.hidden:
                    yield path

    def _modules(self, path: str) -> dict[str, str]:
        """The Go modules around a file, by directory."""
        found: dict[str, str] = {}
        if not path.endswith(".go"):
            return found
        for folder in PurePosixPath(path).parents:
            place = (folder / "go.mod").as_posix()
            content = _content(Path(self.workspace.path, place))
            text = self.hidden.get(place) or (content or b"").decode("utf-8", "replace")
            if module := _MODULE.search(text):
                found[folder.as_posix()] = module["name"]
        return found


def _content(place: Path) -> bytes | None:
    """The bytes of a regular file that a source may have; None for all else."""
    try:
        if place.is_symlink() or not place.is_file() or place.stat().st_size > _LARGEST:
            return None
        return place.read_bytes()
    except OSError:
        return None
