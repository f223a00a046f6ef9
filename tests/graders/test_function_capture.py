"""`source_of`: what a function needs is taken along, and what cannot be is named."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from assay.errors import InputError
from assay.graders.functions import source_of
from assay.types import StringThread

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Writes a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    loaded: list[str] = []

    def load(text: str, name: str = "own_graders") -> ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(textwrap.dedent(text), "utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loaded.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        sys.modules.pop(name, None)


async def score(source: str, completion: str = "4", **metadata: str) -> float:
    """Run a captured source by itself."""
    names: dict[str, object] = {"StringThread": StringThread}
    exec(compile(source, "grade.py", "exec", dont_inherit=True), names)
    grade = cast("Callable[[StringThread], object]", names["grade"])
    thread = StringThread([("user", "2+2?"), ("assistant", completion)], dict(metadata))
    return await cast("functools.partial[object]", grade(thread))  # type: ignore[misc]


async def test_imports_constants_helpers_and_classes_come_along(load: Load) -> None:
    """An import that was lost on the way, and the error swallowed, was a 0.0 for ever."""
    module = load(
        """
        from __future__ import annotations
        import functools
        import re
        import os.path
        import xml.etree.ElementTree
        from dataclasses import dataclass
        from enum import Enum
        from math import sqrt as root, pi
        from assay.types import StringThread

        LIMIT = {"a": [1, 2.5, None], ("x",): {"y", "z"}}
        WORD = re.compile(r"\\w+", re.IGNORECASE)
        UNUSED = open(__file__)

        class Box:
            size = LIMIT

            def get(self) -> "Box":
                return self.size["a"][0]

        class Kind(Enum):
            GOOD = 1.0

        @dataclass
        class Point:
            x: float
            y: float = 0.5

        @functools.lru_cache(maxsize=4)
        def twice(x):
            return 2 * x

        def half(x: "np.ndarray") -> float:
            return x * Point(x=Kind.GOOD.value).y * scale()

        def scale():
            return Box().get()

        async def score(thread: StringThread) -> float:
            words = WORD.findall(thread.completion() or "")
            assert xml.etree.ElementTree.fromstring("<a/>").tag == "a"
            assert os.path.join("a", "b") == "a/b"
            return root(half(twice(len(words)) / 2 + pi * 0))
        """
    )
    module.UNUSED.close()
    source = source_of(module.score)
    assert "UNUSED" not in source
    assert "async def grade(thread: StringThread)" in source
    assert await score(source, "one two three four five six seven eight") == 2.0


async def test_the_function_keeps_its_own_name_for_itself(load: Load) -> None:
    module = load(
        """
        async def deep(thread):
            return 1.0 if len(thread) == 0 else await deep(list(thread)[1:])
        """
    )
    source = source_of(module.deep)
    assert source.endswith("\n\n\ndeep = grade\n")
    assert await score(source) == 1.0


async def test_names_keep_their_present_values_and_other_modules_their_own(load: Load) -> None:
    load("BONUS = 2\ndef add(x):\n    return x + BONUS\n", "own_helpers")
    module = load(
        """
        from own_helpers import add as plus

        TABLE = {"base": 1}

        async def grade(thread):
            return plus(TABLE["base"])
        """
    )
    module.TABLE["base"] = 5
    source = source_of(module.grade)
    assert "plus = add\n" in source
    assert await score(source) == 7.0


async def test_a_notebooks_cells_are_found_by_what_names_mean() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [
        "import re\nfrom collections import Counter as Bag\n",
        "def most(words):\n    return Bag(words).most_common(1)[0][1]\n",
        "async def score(thread):\n    return float(most(re.findall('o', thread.completion())))\n",
    ]
    for number, cell in enumerate(cells):
        file = f"<ipython-input-{number}-test>"
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        exec(compile(cell, file, "exec"), names)
    assert await score(source_of(names["score"]), "foo boo") == 4.0


_WRAPPED = """
import functools
def d(f):
    @functools.wraps(f)
    async def g(t): ...
    return g
@d
async def grade(t): ...
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("grade = lambda thread: 1.0", "a lambda"),
        ("def grade(thread):\n    return 1.0", "must be 'async def'"),
        ("async def grade(thread):\n    yield 1.0", "generator"),
        ("class A:\n    async def f(self, t): ...\ngrade = A().f", "a method"),
        ("class A:\n    @staticmethod\n    async def f(t): ...\ngrade = A.f", "in a class"),
        ("class A:\n    async def __call__(self, t): ...\ngrade = A()", "but an object"),
        ("class grade: ...", "a class"),
        ("import functools\nasync def f(a, t): ...\ngrade = functools.partial(f, 1)", "partial"),
        ("def make():\n    async def f(t): ...\n    return f\ngrade = make()", "inside another"),
        (
            "def make(k):\n    async def f(t): return k\n    return f\ngrade = make(1)",
            "closure over k",
        ),
        ("def d(f): return f\n@d\nasync def grade(t): ...", "decorated with @d"),
        (_WRAPPED, "decorated"),
        ("import hypothesis\nasync def grade(t): return hypothesis.given", "package hypothesis"),
        ("from pytest import approx\nasync def grade(t): return approx(1)", "package _pytest"),
        ("from assay.text import exact_match\nasync def grade(t): return exact_match", "assay"),
        ("async def grade(t): return missing", "'missing' is not defined"),
        ("H = open(__file__)\nH.close()\nasync def grade(t): return H.read()", "'H' is a TextIO"),
    ],
)
def test_what_is_no_plain_function_is_refused(load: Load, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        source_of(load(text).grade)


def test_every_name_that_cannot_come_along_is_named_at_once(load: Load) -> None:
    load("x = 1", "own_other")
    module = load(
        """
        import own_other
        import pytest as pt
        THING = object()

        async def score(thread):
            return own_other.x + pt.approx(1) + THING
        """
    )
    with pytest.raises(InputError) as caught:
        source_of(module.score)
    message = caught.value.message
    for part in ("'own_other' is a module of yours", "'pt' is the package pytest", "'THING' is a"):
        assert part in message


def test_a_name_with_two_meanings_is_refused(load: Load) -> None:
    load("SCALE = 2\ndef f(x):\n    return SCALE * x\n", "own_helpers")
    module = load(
        "from own_helpers import f\nSCALE = 3\nasync def grade(t):\n    return f(SCALE)\n"
    )
    with pytest.raises(InputError, match="'SCALE' has two meanings"):
        source_of(module.grade)
    other = load("def grade(x):\n    return 1\nasync def score(t):\n    return grade(t)\n", "own_b")
    with pytest.raises(InputError, match="'grade' has two meanings"):
        source_of(other.score)


def test_a_file_that_changed_since_it_was_loaded_is_noticed(load: Load, tmp_path: Path) -> None:
    module = load("async def grade(t):\n    return sum(x for x in (1.0,))\n")
    for now in (
        "async def grade(t):\n    return 0.5 + 0\n",
        "async def grade(t):\n    return sum(x + 1 for x in (1.0,))\n",  # in what is inside it
        "async def grade(",
    ):
        (tmp_path / "own_graders.py").write_text(now, "utf-8")
        linecache.clearcache()
        with pytest.raises(InputError, match="is not what now stands"):
            source_of(module.grade)


def test_a_function_without_a_file_is_refused() -> None:
    names: dict[str, object] = {}
    exec("async def grade(t):\n    return 1.0\n", names)
    with pytest.raises(InputError, match="cannot be found"):
        source_of(names["grade"])
