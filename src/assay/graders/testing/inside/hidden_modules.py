"""Serves the hidden sources to the import system from memory; their files on disk are empty."""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.abc
import importlib.machinery
import os
import random
import sys
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from assay.graders.testing.inside import strict_asserts
from assay.graders.testing.inside.borrowed import Borrowed, Use, read_use
from assay.graders.testing.inside.comparisons import Comparisons, Left, Right
from assay.graders.testing.inside.evidence import Constants, Ledger, Watch, witness
from assay.graders.testing.inside.hooks import listen
from assay.graders.testing.inside.origins import Origins, frame_above, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType

    RewriteAsserts = Callable[[ast.Module, bytes, str], None]


class Stops(NamedTuple):
    """Exceptions by which a run is ended or a test is skipped.

    Attributes:
        ends: They end the run.
        skips: They skip what is being run.
    """

    ends: tuple[type[BaseException], ...]
    skips: tuple[type[BaseException], ...]


_HOOKS = ("pytest_", "load_tests", "setUpModule", "tearDownModule", "setup_module")


class HiddenTests:
    """Everything made of the hidden sources, and the witnesses they call.

    The sources themselves are dropped once they are compiled.

    Args:
        sources: By path below the workspace.
        root: The workspace.
        origins: Is told which code is hidden.
        canary: Name that the planted tests' names contain, and the value they fail with.
        report: Takes signs of tampering.
        rewrite: Makes assertions explain themselves; the runner's own way, if it has one.
        stops: What a submission may raise to be skipped, or to end the run, instead of failing.
        loose: Classes of the submission, as ``module.Class``, that may equal what they like.
        given: Sources of the author's that are no secret, by path below the workspace. They are
            made to hold like hidden ones, but not before they are imported.

    Attributes:
        ledger: The tests that leave evidence.
        watch: How the bodies of tests ended.
        comparisons: Looks at the values that tests compare.
        canaries: The planted test of each file, by the file's path.
        borrowed: Looks after what the hidden tests borrow.
        paths: Real paths of the hidden and given files.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        *,
        root: str,
        origins: Origins,
        canary: Mapping[str, str],
        report: Callable[[str], None],
        rewrite: RewriteAsserts | None,
        stops: Stops,
        loose: Sequence[str] = (),
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.ledger = Ledger()
        self.watch = Watch(origins, report)
        self.canaries: dict[str, str] = {}
        self._origins = origins
        self._report = report
        # Both are kept nowhere: who has them has the constants.
        constants = Constants()
        codes: dict[int, bytes] = {}
        self._stops = stops
        self._compiled: dict[str, CodeType | SyntaxError] = {}
        self._uses: dict[str, Use] = {}
        self.borrowed = Borrowed(origins, report)
        imported: set[str] = set()
        self.comparisons = comparisons = Comparisons(origins, report)
        witnesses = self._make_witnesses(codes, comparisons)
        witnesses[strict_asserts.VAULT] = witness(codes, constants.get)

        def change(tree: ast.Module, path: str) -> None:
            strict_asserts.plant(tree, self.canaries[path], canary["planted"])
            strict_asserts.strengthen(tree, path, self.ledger, constants.put)
            if rewrite:
                rewrite(tree, b"", path)

        for name, text in sources.items():
            path = f"{root}/{name}"
            mark = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            self.canaries[path] = f"test_{canary['name']}_{mark}"
            self._compiled[path] = self._compile(path, text, imported, change, witnesses)
        texts = {f"{root}/{name}": text for name, text in (given or {}).items()}
        self.paths = frozenset((*self._compiled, *texts))
        self._ask_given = self._compile_late(texts, rewrite, loose)
        comparisons.choose(imported, loose)
        # Even where nothing is hidden there must be a test that has to fail.
        alone = f"{root}/test_alone.py"
        self.canaries[alone] = f"test_{canary['name']}_alone"
        self._compiled[alone] = self._compile(alone, "", set(), change, witnesses)
        self._alone = alone
        for code in self._compiled.values():
            if isinstance(code, CodeType):
                codes.update((id(one), one.co_code) for one in parts_of(code))

    def _make_witnesses(
        self, codes: dict[int, bytes], comparisons: Comparisons
    ) -> dict[str, object]:
        return {
            strict_asserts.WATCH: witness(codes, self.watch.begin),
            strict_asserts.STAR: witness(codes, self._at_star),
            strict_asserts.LEFT: Left(comparisons),
            strict_asserts.RIGHT: Right(comparisons, "equal"),
            strict_asserts.ORDER: Right(comparisons, "order"),
            strict_asserts.NEAR: Right(comparisons, "near"),
            strict_asserts.WITHIN: Right(comparisons, "within"),
        }

    def _compile_late(
        self, texts: dict[str, str], rewrite: RewriteAsserts | None, loose: Sequence[str]
    ) -> Callable[[str], CodeType | SyntaxError]:
        """Make what compiles a given file when it is wanted; nothing leads to what it knows."""
        event, audit, caller = f"given {random.getrandbits(128):x}", sys.audit, frame_above
        codes: dict[int, bytes] = {}
        imported: set[str] = set()
        self.given_comparisons = comparisons = Comparisons(self._origins, self._report)
        witnesses = self._make_witnesses(codes, comparisons)

        def change(tree: ast.Module, path: str) -> None:
            strict_asserts.strengthen(tree, path, self.ledger, None)
            if rewrite:
                rewrite(tree, b"", path)

        def hear(arguments: tuple[object, ...]) -> None:
            if caller(2).f_code is not ask.__code__:
                return
            path, answer = cast("tuple[str, list[CodeType | SyntaxError]]", arguments)
            code = self._compile(path, texts[path], imported, change, witnesses)
            comparisons.choose(imported, loose)
            if isinstance(code, CodeType):
                codes.update((id(one), one.co_code) for one in parts_of(code))
            answer.append(code)

        def ask(path: str) -> CodeType | SyntaxError:
            answer: list[CodeType | SyntaxError] = []
            audit(event, path, answer)
            return answer[0]

        listen(event, hear)
        return ask

    def _at_star(self, number: int, frame: FrameType) -> None:
        star = self._uses[frame.f_code.co_filename].stars[number // 2]
        if number % 2:
            self.borrowed.after_star(star, frame)
        else:
            self.borrowed.before_star(frame)

    def owns(self, function: FunctionType) -> bool:
        """Whether a function is what the hidden source says."""
        return self._origins.is_hidden_code(function.__code__)

    def lone_canary(self) -> FunctionType:
        """A planted test that belongs to no file."""
        module = ModuleType("test_alone")
        self._execute(self._alone, module)
        return vars(module)[self.canaries[self._alone]]

    def _compile(
        self,
        path: str,
        text: str,
        imported: set[str],
        change: Callable[[ast.Module, str], None],
        witnesses: Mapping[str, object],
    ) -> CodeType | SyntaxError:
        try:
            tree = ast.parse(text, path)
            imported.update(strict_asserts.imports_of(tree))
            self._uses[path] = read_use(tree)
            self.borrowed.want(self._uses[path])
            change(tree, path)
            code = strict_asserts.compile_with(tree, path, witnesses)
        except (SyntaxError, ValueError, RecursionError) as error:
            return error if isinstance(error, SyntaxError) else SyntaxError(f"{path}: {error}")
        self._origins.add_hidden(code)
        return code

    def finder(self) -> Finder:
        """The finder to put first on ``sys.meta_path``."""
        return Finder(self.paths, self._execute, self.borrowed)

    def _execute(self, path: str, module: ModuleType) -> None:
        code = self._compiled.get(path) or self._ask_given(path)
        self._compiled[path] = code
        if not isinstance(code, CodeType):
            raise SyntaxError(*code.args)  # noqa: TRY004 - the one that was met before
        self._origins.add_hidden_space(vars(module))
        # Those of everybody, not the ones of ours: a test that patches them must see its patch.
        vars(module)["__builtins__"] = vars(builtins)
        try:
            exec(code, vars(module))  # noqa: S102 - the hidden test, from the host
        except self._stops.ends as error:
            raise ImportError(_told(error, path)) from error
        except self._stops.skips as error:
            if self._is_submissions(error):
                raise ImportError(_told(error, path)) from error
            raise
        self._reject_hooks(code, vars(module))
        self.borrowed.settle(path, vars(module), self._uses[path])

    def _reject_hooks(self, code: CodeType, names: dict[str, object]) -> None:
        """Take out what the runner would act upon, if the source does not speak of it."""
        for name in [name for name in names if name.startswith(_HOOKS)]:
            if name not in code.co_names and not self._origins.trusts(names[name]):
                del names[name]
                self._report(f"{name} was put into a hidden module")

    def _is_submissions(self, error: BaseException) -> bool:
        """Whether it was the submission, not the test, that raised an exception."""
        raised_by_test, trace = True, error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if not self._origins.is_package(code.co_filename):
                raised_by_test = self._origins.is_trusted(code.co_filename)
            trace = trace.tb_next
        return not raised_by_test

    def forget(self) -> None:
        """Forget what earlier tests did, before one starts."""
        self.watch.forget()
        self.comparisons.forget()
        self.given_comparisons.forget()


class Loader(importlib.machinery.SourceFileLoader):
    """Loads one hidden module. It has no source to give away."""

    def __init__(self, fullname: str, path: str, execute: Callable[[ModuleType], None]) -> None:
        super().__init__(fullname, path)
        self._execute = execute

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        self._execute(module)

    def get_code(self, fullname: str) -> NoReturn:
        """Refuse."""
        raise ImportError(f"the code of {fullname} is not given out", name=fullname)

    def get_source(self, fullname: str) -> NoReturn:
        """Refuse."""
        raise ImportError(f"the source of {fullname} is not given out", name=fullname)


class Finder(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and loads it from memory if it is hidden.

    Args:
        paths: Real paths of the hidden files.
        execute: Runs the module at a path.
        borrowed: Wants to see some other modules when they are loaded.
    """

    def __init__(
        self,
        paths: Iterable[str],
        execute: Callable[[str, ModuleType], None],
        borrowed: Borrowed,
    ) -> None:
        self._borrowed = borrowed
        self._paths = frozenset(paths)
        self._names = frozenset(map(_module_name, self._paths))
        self._execute = execute

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a hidden module, None for every other."""
        is_wanted = self._borrowed.wants(fullname)
        if fullname.rpartition(".")[2] not in self._names and not is_wanted:
            return None
        for finder in self._others():
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return self._ours(fullname, spec) or (self._noted(spec) if is_wanted else None)
        return None

    def _noted(self, spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec | None:
        """A spec of a package, by which its module is looked at once it is loaded."""
        loader, note = spec.loader, self._borrowed.note
        if not self._borrowed.is_package(spec.origin) or not hasattr(loader, "__dict__"):
            return None
        if isinstance(loader, type) or loader is None or not hasattr(loader, "exec_module"):
            return None
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            load(module)
            note(spec.name, module)

        vars(loader)["exec_module"] = exec_module
        return spec

    def _others(self) -> list[importlib.abc.MetaPathFinder]:
        # pytest's own finder would compile the empty file.
        return [
            cast("importlib.abc.MetaPathFinder", one)
            for one in sys.meta_path
            if one is not self
            and type(one).__name__ != "AssertionRewritingHook"
            and hasattr(one, "find_spec")
        ]

    def _ours(
        self, fullname: str, spec: importlib.machinery.ModuleSpec
    ) -> importlib.machinery.ModuleSpec | None:
        real = os.path.realpath(spec.origin) if spec.origin and spec.has_location else ""
        if real not in self._paths:
            return None
        origin = str(spec.origin)
        loader = Loader(fullname, origin, lambda module: self._execute(real, module))
        found = importlib.machinery.ModuleSpec(fullname, loader, origin=origin)
        found.submodule_search_locations = spec.submodule_search_locations
        found.has_location = True
        return found


def _told(error: BaseException, path: str) -> str:
    return f"{type(error).__name__} while {path.rpartition(os.sep)[2]} was imported: {error}"


def _module_name(path: str) -> str:
    directory, name = os.path.split(path)
    stem = name[: -len(".py")]
    return directory.rpartition(os.sep)[2] if stem == "__init__" else stem
