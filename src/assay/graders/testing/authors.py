"""Which tests of a foreign runner's report are the author's, and so count.

The author's are those of the hidden files, and of files of the source that the submission left as
they were. All else is the submission's own: a hundred empty tests beside one that fails would
otherwise be worth 0.99, and a test that an honest solution brings along could lower its value.

Names and ids are compared in steps: ``org.kit.KitTest::adds`` is ``org``, ``kit``, ``KitTest``,
``adds``. A file claims an id that ends in one of its names, the more surely the more of the id its
name and its path explain; whoever claims it most surely has it. What nobody is seen to declare
counts if it failed, for that gains nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from assay.graders.testing.hidden import language_of
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.python_ids import read_python_tests
from assay.graders.testing.selected import Selection
from assay.graders.testing.static_ids import is_computed, read_static_tests
from assay.types.submission import Workspace

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

_JVM = {".java", ".kt", ".groovy", ".scala"}
_PASSED_OVER = frozenset(
    {".git", ".venv", "__pycache__", "node_modules", "site-packages", "target", "venv"}
)
_MOST_FILES = 10_000
_LARGEST = 1024 * 1024
_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where commands look for programs, if nothing else is said."""
_OF_SYSTEM = re.compile(r"/(?!workspace\b)")
_ONLY_COUNTED = re.compile(r"(?:passed|failed|error|skipped|xfailed|xpassed) \d+")
_AGAIN = re.compile(r" ?#\d+$")
_PARAMETERS = re.compile(r"[(\[{].*", re.DOTALL)
_BETWEEN = re.compile(r"[\s/.>$:]+")
_OF_THE_BUILD = frozenset({"src", "tests", "benches", "examples", "mod", "lib", "main"})
_BAD = ("failed", "error")
_NOT_RUN = frozenset({"skipped", "xfailed", "xpassed"})
_SHOWN = 5

_Steps = tuple[str, ...]


def kind_of(path: str) -> str | None:
    """The language that tests in a file are written in; None where they cannot be told."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".go":
        return "go" if path.endswith("_test.go") else None
    return "java" if suffix in _JVM else "python" if suffix == ".py" else language_of(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TestFile:
    """A source with tests: its path, its language, its tests, and whether it has others, too."""

    path: str
    kind: str
    junit: bool
    names: Mapping[_Steps, str] = field(default_factory=dict["_Steps", str])
    skipped: frozenset[_Steps] = frozenset()
    computed: bool = False

    def claim(self, test_id: str) -> tuple[int, _Steps]:
        """How many steps of an id this file explains, 0 if it is not its own; and the test."""
        plain = _AGAIN.sub("", test_id)
        whole = [plain, _PARAMETERS.sub("", plain)]
        if self.kind == "go" and "/" in plain.rpartition("::")[2]:
            package, _, test = plain.rpartition("::")
            whole.append(f"{package}::{test.partition('/')[0]}")
        for steps in map(_steps, whole):
            for start in range(len(steps)):
                name = steps[start:]
                if name in self.names and self._may_begin(steps[:start], name):
                    return len(name) + self._explained(steps[:start]), name
        return self._claim_by_place(plain), ()

    def _may_begin(self, rest: _Steps, name: _Steps) -> bool:
        """Whether what stands before a name can: crates, packages, files, suites."""
        left = rest[: len(rest) - self._explained(rest)]
        if self.kind == "rust":
            return len(left) <= (2 if self.junit else 0)
        # Reporters of JavaScript say the whole name twice, or its suites.
        return self.kind != "javascript" or not left or name[-len(left) :] == left

    def _explained(self, rest: _Steps) -> int:
        """How many of the last steps are of the file's path."""
        place = [*_steps(self.path)[:-1]]
        if self.kind == "go":
            place = [*_steps(PurePosixPath(self.path).parent.as_posix())]
        elif self.kind == "rust":
            place = [step for step in place if step not in _OF_THE_BUILD]
        elif rest and rest[-1:] == _steps(self.path)[-1:]:
            place.append(rest[-1])
        if self.kind == "java" and place and rest[-1:] != (place[-1],):
            place.pop()  # its class is part of the name
        found = 0
        while found < min(len(rest), len(place)) and rest[-1 - found] == place[-1 - found]:
            found += 1
        return found

    def _claim_by_place(self, test_id: str) -> int:
        """By the file or class that an id names, whatever its test is called."""
        if re.match(rf"(?:\S*/)?{re.escape(self.path)}(?: - |::| > |$)", test_id):
            return len(_steps(self.path))
        stem = PurePosixPath(self.path).name.partition(".")[0]
        steps = _steps(_PARAMETERS.sub("", test_id))
        if self.kind not in ("java", "python") or stem not in steps:
            return 0
        before = steps[: steps.index(stem) + 1]
        # A module that has names is known whole.
        return self._explained(before) if self.kind == "java" or not self.names else 0


def _steps(text: str) -> _Steps:
    return tuple(step for step in _BETWEEN.split(text) if step)


def _read(
    path: str,
    text: str,
    *,
    junit: bool,
    short: bool = False,
    lacks: Callable[[str], bool] = lambda _: False,
) -> _TestFile | None:
    """Read a source; None if nothing in it looks like a test.

    ``lacks`` says whether a program is missing, without which some tests leave themselves out.
    """
    kind = kind_of(path)
    if kind is None:
        return None
    tests = read_static_tests(path, text)
    # What a condition leaves out is the author's where it is heard of, and missed nowhere.
    perhaps = tests.possible if kind in ("go", "rust") else ()
    names, skipped = [*tests.names, *tests.skipped, *perhaps], [*tests.skipped]
    skipped += perhaps if kind == "rust" or short else ()
    skipped += [name for name, program in tests.needing.items() if lacks(program)]
    computed = is_computed(path, text)
    if kind == "python":
        found = read_python_tests({path: text})[path]
        names = [*dict.fromkeys([*found.required, *found.possible])]
        skipped = [name for name in names if found.skips.get(name)]
        computed = found.open
    bare = not names and not computed
    if bare and not (kind == "java" and re.search(r"test|spec", f"{path} {text}", re.IGNORECASE)):
        has_examples = kind == "rust" and "```" in text  # tests that are named by lines
        return _TestFile(path=path, kind=kind, junit=junit) if has_examples else None
    by_steps = {_steps(_PARAMETERS.sub("", name)) or _steps(name): name for name in names}
    by_steps |= {_steps(name): name for name in names}
    left_out = frozenset(steps for steps, name in by_steps.items() if name in skipped)
    return _TestFile(
        path=path, kind=kind, junit=junit, names=by_steps, skipped=left_out, computed=computed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The tests of a report that count."""

    ids: frozenset[str]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """Whose the tests of a tree are."""

    theirs: tuple[_TestFile, ...]
    own: tuple[_TestFile, ...] = ()
    hidden: frozenset[str] = field(default_factory=frozenset[str])
    known: bool = True
    selection: Selection = field(default_factory=Selection)

    def left_out(self, outcomes: Mapping[str, TestOutcome]) -> set[str]:
        """The ids of tests that were not run, and that their author always leaves out."""
        not_run = [name for name, one in outcomes.items() if one.outcome in _NOT_RUN]
        found = {name for name in not_run if self._is_left_out(name)}
        counted = sorted({*not_run} - found & {*filter(_ONLY_COUNTED.fullmatch, not_run)})
        unnamed = sum(len({file.names[one] for one in file.skipped}) for file in self.theirs)
        only = [name for name in counted if _ONLY_COUNTED.fullmatch(name) and name not in found]
        return {*found, *only[: max(unnamed - len(found), 0)]}

    def _is_left_out(self, name: str) -> bool:
        claims = self._claims(name)
        return bool(claims) and all(test in file.skipped for _, test, file in claims)

    def _claims(self, name: str) -> list[tuple[int, _Steps, _TestFile]]:
        """Which of the author's files claim an id most surely: how surely, and as which test."""
        claims = [(*file.claim(name), file) for file in self.theirs]
        best = max((score for score, _, _ in claims), default=0)
        return [one for one in claims if one[0] == best > 0]

    def count(self, outcomes: Mapping[str, TestOutcome], *, canaries: bool) -> Counted:
        """Tell the author's tests from the submission's."""
        if not self.known or not self.theirs:
            why = "the author's tests cannot be read" if self.known else "the source was not read"
            doubt = f"{why}, so tests of the submission's own cannot be told apart"
            missing = self._unheard(outcomes)
            return Counted(
                ids=frozenset(outcomes), missing=missing, notes=(doubt,) if outcomes else ()
            )
        owners = {name: self._owner(name) for name in outcomes}
        unnamed = any(map(_ONLY_COUNTED.fullmatch, outcomes))
        if unnamed or (canaries and not any(file for file, _ in owners.values())):
            named = {name: one for name, one in outcomes.items() if owners[name][1] != "own"}
            return self._capped(named)
        anything = any(file.computed for file in self.theirs)
        anything = anything and not any(file.computed for file in self.own)
        counted = {
            name
            for name, (file, whose) in owners.items()
            if file or (whose != "own" and (anything or outcomes[name].outcome in _BAD))
        }
        counted -= self._repeated(counted, outcomes)
        missing = tuple(self._missing(counted, owners))
        notes = _strangers(outcomes.keys() - counted)
        return Counted(ids=frozenset(counted), missing=missing, notes=notes)

    def tell_of(self, files: Collection[str], outcomes: Mapping[str, TestOutcome]) -> bool:
        """Whether a report tells of a test in some hidden files, or may do so."""
        unread = files and any(one.computed for one in self.theirs if one.path in files)
        for name in outcomes if files else ():
            claims = self._claims(name)
            if claims and all(file.path in files for _, _, file in claims):
                return True
            if not claims and (unread or _ONLY_COUNTED.fullmatch(name)):
                return True
        return False

    def _owner(self, name: str) -> tuple[_TestFile | None, object]:
        """The author's file that has a test, and which it is; or ``own``; or nobody."""
        best, test, file = next(iter(self._claims(name)), (0, (), None))
        if any(one.claim(name)[0] > best for one in self.own):
            return None, "own"
        return file, test

    def _repeated(self, counted: set[str], outcomes: Mapping[str, TestOutcome]) -> set[str]:
        """All but the worst of several with one name, where some may be the submission's."""
        groups: dict[str, list[str]] = {}
        for name in sorted(counted):
            groups.setdefault(_AGAIN.sub("", name).rpartition("::")[2], []).append(name)
        found: set[str] = set()
        for group in groups.values():
            if len(group) > 1 and any(file.claim(n)[0] for file in self.own for n in group):
                found.update(sorted(group, key=lambda name: _rank(outcomes[name]))[1:])
        return found

    def _missing(
        self, counted: set[str], owners: Mapping[str, tuple[_TestFile | None, object]]
    ) -> Iterator[str]:
        """Hidden tests not heard of: of each file no more than too few of its tests were."""
        elsewhere = sum(owners[name][0] is None for name in counted)
        for file in self.theirs:
            if file.path in self.hidden:
                heard = [owners[name][1] for name in counted if owners[name][0] is file]
                wanted = self._wanted(file)
                spoken = {file.names[one] for one in heard if one in file.names}  # type: ignore[index]
                more = len(spoken - {*wanted})  # heard of, though nobody would have missed them
                number = len(heard if file.kind != "go" else {*heard}) - more
                loose = elsewhere if file.computed else 0
                most = max(len(wanted) - number - loose, 0)
                yield from [name for name in wanted if name not in spoken][:most]

    def _unheard(self, ids: Collection[str]) -> tuple[str, ...]:
        """Hidden tests that no id is of; no more than were too few."""
        files = [file for file in self.theirs if file.path in self.hidden]
        names = [name for file in files for name in self._wanted(file)]
        spoken = {file.names.get(file.claim(one)[1]) for file in files for one in ids}
        left = [name for name in dict.fromkeys(names) if name not in spoken]
        return tuple(left[: max(len({*names}) - len(ids), 0)])

    def _wanted(self, file: _TestFile) -> list[str]:
        """The tests of a hidden file that a run has to tell of."""
        found = {name: None for steps, name in file.names.items() if steps not in file.skipped}
        return [name for name in found if self.selection.picks(file.path, name)]

    def _capped(self, outcomes: Mapping[str, TestOutcome]) -> Counted:
        """No more tests than the author has, those that did not pass first."""
        why = "the report does not name every test as its source does"
        doubt = f"{why}, so tests of the submission's own cannot be told apart"
        sure = not any(file.computed or not file.names for file in self.theirs)
        most = len({(f.path, name) for f in self.theirs for name in f.names.values()}) or None
        if not sure or most is None or len(outcomes) <= most:
            missing = self._unheard(outcomes)
            return Counted(ids=frozenset(outcomes), missing=missing, notes=(doubt,))
        ranked = sorted(outcomes, key=lambda name: (_rank(outcomes[name]), name))
        note = f"{doubt}: of {len(ranked)} no more than the {most} that the author declares count"
        return Counted(ids=frozenset(ranked[:most]), notes=(f"{note}, failures first",))


def _rank(one: TestOutcome) -> int:
    return ("error", "failed", *_NOT_RUN, "passed").index(one.outcome)


def _strangers(names: Collection[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(name[:200] for name in sorted(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    are = "1 test is" if len(names) == 1 else f"{len(names)} tests are"
    return (f"{are} not the author's, so not counted: {shown}{more}",)


def read_authors(
    hidden: Mapping[str, str],
    workspace: Workspace,
    *,
    console: str | None,
    junit: bool,
    selection: Selection | None = None,
    ran: frozenset[str] = frozenset(),
) -> Authors:
    """Read the tests of the hidden files, the source and the submission.

    ``ran`` are the files of which a canary was heard.
    """
    selection = selection or Selection()
    required = ran.union(path for path, text in hidden.items() if selection.runs(path, text))
    bound = None if junit else _KINDS.get(console or "")
    short = selection.short

    def lacks(program: str) -> bool:
        return not selection.sets_path and _lacks(workspace, program)

    read_all = [_read(p, text, junit=junit, short=short, lacks=lacks) for p, text in hidden.items()]
    injected = [file for file in read_all if file]
    kinds = {bound} if bound else {file.kind for file in injected}
    theirs = [file for file in injected if not bound or file.kind == bound]
    theirs.sort(key=lambda file: file.path not in required)  # of two with one test: which is run
    source, tree = workspace.source, workspace.path
    if source is None:
        return Authors(theirs=tuple(theirs), hidden=required, known=False, selection=selection)
    paths = [path for path in _paths(source, kinds) if path not in hidden]
    pristine = [(path, _content(Path(source, path))) for path in paths[:_MOST_FILES]]
    read = [(_of(path, text, junit=junit), path, text) for path, text in pristine]
    files = [(file, text == _content(Path(tree, path))) for file, path, text in read if file]
    left_alone = [file for file, same in files if same]
    changed = [file for file, same in files if not same]
    own: list[_TestFile] = []
    for path in _paths(tree, kinds):
        text = _content(Path(tree, path))
        if path not in hidden and text != _content(Path(source, path)):
            own += [file] if (file := _of(path, text, junit=junit)) else []
    theirs += left_alone
    return Authors(
        theirs=tuple(theirs or changed),
        own=tuple(own),
        hidden=required,
        known=len(paths) <= _MOST_FILES,
        selection=selection,
    )


def _lacks(workspace: Workspace, program: str) -> bool:
    """Whether a program is certainly not where commands look for one, whatever the work is."""
    places = workspace.env.get("PATH", _PATH).split(":")
    if workspace.image or "/" in program or not all(map(_OF_SYSTEM.match, places)):
        return False
    for source, target in workspace.mounts:
        places += [source + place[len(target) :] for place in places if place.startswith(target)]
    return not any(os.path.lexists(f"{place}/{program}") for place in places)


def _of(path: str, content: bytes | None, *, junit: bool) -> _TestFile | None:
    return None if content is None else _read(path, content.decode("utf-8", "replace"), junit=junit)


def _paths(root: str, kinds: Iterable[str]) -> Iterator[str]:
    """Files that may have tests; as many as are read."""
    found = 0
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _PASSED_OVER)
        for name in sorted(names):
            kind = kind_of(name)
            if kind and (not kinds or kind in kinds) and found <= 2 * _MOST_FILES:
                found += 1
                yield Path(parent, name).relative_to(root).as_posix()


def _content(place: Path) -> bytes | None:
    """The bytes of a regular file that a source may have; None for all else."""
    try:
        if place.is_symlink() or not place.is_file() or place.stat().st_size > _LARGEST:
            return None
        return place.read_bytes()
    except OSError:
        return None
