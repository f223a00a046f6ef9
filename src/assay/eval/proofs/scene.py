"""What somebody who wants reward without work can know of a case: its tree and public names.

Contents of hidden files are not part of it. Their names are, and the names of the tests in them:
both are public in most repositories.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from assay.errors import InputError
from assay.eval.proofs.isolation import reference_of
from assay.eval.proofs.names import Named, Names, names_asked_of, names_in
from assay.graders.spec import GraderSpec
from assay.graders.tests import TestsGrader
from assay.scoring.json_safe import Json
from assay.tasks.case import Case
from assay.tasks.task import Task

_PASSED_OVER = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv", "target"})
_MAX_FILE = 1 << 20
_MAX_FILES = 5_000
_MAX_MODULES = 200
_NAMED = re.compile(r"(?<![\w/.-])[\w-]+(?:/[\w-]+)*\.(?:py|js|mjs|cjs|ts|go|rs|java)\b")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)(?:test_|conftest)|[._]?(?:test|spec)\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A task before anybody has worked on it.

    Attributes:
        task: The task.
        prompt: What is asked.
        tree: The pristine tree: regular files of at most 1 MiB by path, without tool state.
        hidden: Paths in the workspace where hidden files will appear.
        test_ids: Names of the hidden tests, as ``file::test``.
        reports: Globs of the reports that graders read.
        history: Whether the tree has a git directory.
        named: By path of a Python module, what the author's reference defines in it and hidden
            tests ask of it: names, without what is behind them.
    """

    task: Task
    prompt: str
    tree: Mapping[str, bytes]
    hidden: tuple[str, ...] = ()
    test_ids: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    history: bool = False
    named: Mapping[str, Names] = field(default_factory=dict[str, Names])

    @property
    def case(self) -> Case | None:
        """The case that the task is, if it is one."""
        return self.task.work if isinstance(self.task.work, Case) else None

    @property
    def graders(self) -> tuple[GraderSpec, ...]:
        """The graders that were declared for it; a template's are in its code."""
        return () if self.case is None else self.case.graders

    def sources(self, *suffixes: str) -> dict[str, str]:
        """Source files that an answer is expected in, tests left out, by path.

        Files that the prompt names count as empty where the tree does not have them.
        """
        found = {
            path: content.decode("utf-8", "replace")
            for path, content in self.tree.items()
            if path.endswith(suffixes) and not is_test(path)
        }
        for path in _NAMED.findall(self.prompt):
            if path.endswith(suffixes) and not is_test(path):
                found.setdefault(path, "")
        return found

    def modules(self) -> dict[str, tuple[str, Names, Names]]:
        """Python modules that an answer is expected in: the text, all names, those of the text.

        They are those that the reference has; where that is not known, every source file.
        """
        texts = self.sources(".py")
        found: dict[str, tuple[str, Names, Names]] = {}
        for path in [*(self.named or texts)][:_MAX_MODULES]:
            text = texts.get(path, "")
            own = names_in(text)
            found[path] = (text, {**own, **self.named.get(path, {})}, own)
        return found

    @property
    def commands(self) -> str:
        """Every command of every grader, as one text."""
        texts = [spec.options.get("cmd") for spec in self.graders]
        return "\n".join(text for text in texts if isinstance(text, str))

    def runs(self, *words: str) -> bool:
        """Whether a grader's command has one of the words in it."""
        return any(word in self.commands for word in words)

    def has(self, *kinds: str) -> bool:
        """Whether the case has a grader of one of the kinds."""
        return any(spec.type in kinds for spec in self.graders)


def is_test(path: str) -> bool:
    """Whether a path looks like that of a test."""
    return _TEST.search(path.lower()) is not None


def read_scene(task: Task, prompt: str, workspace: str | None) -> Scene:
    """Read what can be known of a task that has begun, its workspace laid out if it has one."""
    scene = Scene(
        task=task,
        prompt=prompt,
        tree=read_tree(workspace) if workspace else {},
        history=workspace is not None and Path(workspace, ".git").exists(),
    )
    hidden = dict(_hidden(scene.graders))
    return replace(
        scene,
        hidden=tuple(hidden),
        test_ids=tuple(i for dest, src in hidden.items() for i in _names(dest, src)),
        reports=tuple(_reports(scene.graders)),
        named=_named(scene, hidden.values()),
    )


def read_tree(root: str) -> dict[str, bytes]:
    """The regular files of a directory by path; at most 5,000, of at most 1 MiB each."""
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _PASSED_OVER)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_FILE:
                continue
            if len(found) >= _MAX_FILES:
                return found
            try:
                found[path.relative_to(root).as_posix()] = path.read_bytes()
            except OSError:  # one that cannot be read cannot be built upon either
                continue
    return found


def _hidden(graders: Iterable[GraderSpec]) -> Iterator[tuple[str, Path]]:
    """Where hidden files will appear, and the file each comes from."""
    for spec in graders:
        entries = spec.options.get("inject")
        for entry in entries if isinstance(entries, list) else []:
            source, dest = _entry(entry)
            if source is None:
                continue
            inside = sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else []
            for path in inside:
                yield str(PurePosixPath(dest) / path.relative_to(source).as_posix()), path
            if not inside:
                yield dest, source


def _entry(entry: Json) -> tuple[Path | None, str]:
    if isinstance(entry, str):
        return Path(entry), Path(entry).name
    if isinstance(entry, dict) and isinstance(entry.get("src"), str):
        source = Path(str(entry["src"]))
        dest = PurePosixPath(str(entry.get("dest") or source.name))
        return source, str(dest)
    return None, ""


def _names(dest: str, source: Path) -> Iterator[str]:
    """Names of the tests in a hidden Python file."""
    if source.suffix != ".py":
        return
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:4] == "test":
            yield f"{dest}::{node.name}"


def _named(scene: Scene, tests: Iterable[Path]) -> dict[str, dict[str, Named]]:
    """What the reference's modules define, and what hidden tests ask of those or of the source."""
    from assay.agents.replay import recordings_of

    found: dict[str, dict[str, Named]] = {}
    case = scene.case
    with suppress(InputError):  # a reference that is named may have been taken out
        if case is not None and (name := reference_of(case)):
            recording = recordings_of(str(Path(case.root, "recordings")))[name]
            right = replace(scene, prompt="", tree=read_tree(str(recording / "files")))
            found = {path: dict(names_in(text)) for path, text in right.sources(".py").items()}
    modules = list(found or scene.sources(".py"))
    for test in tests:
        with suppress(OSError):
            text = test.read_text("utf-8", "replace") if test.suffix == ".py" else ""
            for path, names in names_asked_of(text, modules).items():
                found[path] = {**names, **found.get(path, {})}
    return found


def _reports(graders: Iterable[GraderSpec]) -> Sequence[str]:
    found: list[str] = []
    for spec in graders:
        globs = spec.options.get("junit_xml")
        if issubclass(spec.kind.grader, TestsGrader) and (
            said := TestsGrader.implied(spec.options)
        ):
            found += said.junit_xml
        found += [g for g in (globs if isinstance(globs, list) else [globs]) if isinstance(g, str)]
    return found
