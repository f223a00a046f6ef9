"""Whether something was written, judged over trees that a cheat may have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import GraderError, InputError, MissingExtraError
from assay.graders import implemented
from assay.graders.implemented import ImplementedGrader
from assay.graders.stubs import reader, treesitter
from assay.graders.stubs.treesitter import can_read
from assay.scoring import Json
from tests.each import each
from tests.graders.implemented_trees import GOOD, STUB, Tree, grade, lay, reasons


async def test_attack_source_that_breaks_the_parser(tmp_path: Path) -> None:
    """A crash of ours would be an error, which is left out; it must be a 0."""
    left: Tree = {
        "parentheses.py": "(" * 200_000,
        "minus.py": "-" * 1_000_000,
        "sum.py": "a+" * 300_000 + "a",
        "elif.py": "if a: pass\n" + "elif a: pass\n" * 20_000,
        "strings.py": "f'{" * 100_000,
        "bom.py": b"\xff\xfe\x00",
        "utf7.py": "# coding: utf-7\n+AAAA",
    }
    node = await grade(tmp_path, left, {}, files=sorted(left))
    assert node.value == 0.0
    assert all(reasons(node).values())


def _link(place: Path) -> None:
    target = place.with_name("elsewhere")
    target.write_text(GOOD)
    place.symlink_to(target)


def _sparse(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(10 << 30)


async def test_attack_no_regular_file_where_one_is_named(tmp_path: Path) -> None:
    makes: dict[str, tuple[Callable[[Path], object], str]] = {
        "link.py": (_link, "cannot be read as a regular file"),
        "fifo.py": (os.mkfifo, "is not a regular file"),
        "directory.py": (Path.mkdir, "is not a regular file"),
        "sparse.py": (_sparse, "is too large"),
        "case.py": (lambda place: place.with_name("CASE.py").write_text(GOOD), "is missing"),
    }
    left = lay(tmp_path / "left", {})
    for name, (make, _) in makes.items():
        make(left / name)
    node = await grade(tmp_path, {}, dict.fromkeys(makes, STUB), files=[*makes])
    assert node.value == 0.0
    for name, (_, why) in makes.items():
        assert why in reasons(node)[name]


_TWO: Tree = {"src/a.py": STUB, "src/b.py": STUB}


@pytest.mark.parametrize(
    ("source", "left", "files", "value"),
    [
        (None, {"a.py": GOOD, "b.py": STUB, "c.py": GOOD}, ["a.py", "b.py", "c.py", "d.py"], 0.5),
        (None, {"src/a.py": GOOD, "src/b.py": STUB}, ["src/*.py"], 0.5),
        (None, {"[id].py": GOOD}, ["[id].py"], 1.0),
        (None, {"src/a.py": GOOD}, ["lib/*.py"], 0.0),
        (_TWO, {"src/a.py": GOOD}, ["src/*.py"], 0.5),  # one of a glob was deleted
        # Files of one's own do not dilute the one that fails.
        (_TWO, {**_TWO, **{f"src/more{n}.py": GOOD for n in range(9)}}, ["src/*.py"], 0.0),
    ],
)
async def test_the_score_is_the_share_of_named_files_that_hold(
    source: Tree | None, left: Tree, files: list[str], value: float, tmp_path: Path
) -> None:
    node = await grade(tmp_path, left, source, files=files)
    assert node.value == value
    missing = {name for name, why in reasons(node).items() if why == "is missing"}
    assert missing - {"src/b.py"} == {"d.py", "lib/*.py"} & {*files}


async def test_what_is_no_program_must_say_something_else(tmp_path: Path) -> None:
    before: Tree = {"new.md": "a b", "same.md": "a b", "empty.md": "a"}
    after: Tree = {"new.md": "a c", "same.md": " a\nb ", "empty.md": " \n"}
    found = reasons(await grade(tmp_path, after, before, files=[*before]))
    assert found == {"new.md": "", "same.md": "is as it was given", "empty.md": "is empty"}


_LOADERS = {
    "base.py": "class Loader:\n    def load(self, x):\n        raise NotImplementedError\n",
    "json_loader.py": "from base import Loader\nclass Json(Loader):\n"
    "    def load(self, x):\n        return x\n",
}
_NEW_BASES = (
    "class Handler:\n    def handle(self, x):\n        raise NotImplementedError\n"
    "import typing\nif typing.TYPE_CHECKING:\n    def reveal(x: object) -> None: ...\n"
)
_BASED: Tree = dict.fromkeys(("a.py", "more.py"), f"{GOOD}{_NEW_BASES}")
_CALLED = (
    "class Box:\n    def run(self, a):\n        return self.add(a)\n"
    "    def add(self, a):\n        raise NotImplementedError\n"
)
_CALLED_BASE = _CALLED.replace(":\n", ':\n    """Base."""\n', 1).replace(
    "Error", "Error('subclass')"
)
_CALLED_BY_TYPES = (
    "TYPE_CHECKING = True\nif TYPE_CHECKING:\n    class Box:\n"
    "        def run(self, a):\n            return self.add(a)\n"
    "        def add(self, a):\n            return a\n"
)
_HOOK = {"b.py": f"{GOOD}def hook(x): pass\n"}
_QUIET = {"b.py": "def f(x): pass\n"}
# Without `files`: the source, what was left, the score and what the evidence must say.
WHOLE: dict[str, tuple[Tree | None, Tree, float, str]] = {
    "all": ({"a.py": STUB}, {"a.py": GOOD}, 1.0, ""),
    "nothing": ({"a.py": STUB}, {"a.py": STUB}, 0.0, "not implemented"),
    "empty_tree": ({"a.py": STUB}, {}, 0.0, "is gone"),
    "half": ({"a.py": STUB, "b.py": STUB}, {"a.py": GOOD, "b.py": STUB}, 0.5, "not implemented"),
    "quiet_half": ({"a.py": STUB, **_QUIET}, {"a.py": GOOD, **_QUIET}, 0.5, "has no body"),
    "beside": ({"a.py": STUB}, {"a.py": STUB, "b.py": GOOD}, 0.0, "not implemented"),
    "note": ({"a.py": GOOD}, {"a.py": GOOD, "notes.txt": GOOD}, 0.0, "code that was not given"),
    "comment": ({"a.py": GOOD}, {"a.py": f"# fixed\n{GOOD}"}, 0.0, "code that was not given"),
    "fix": ({"a.py": "def f(x):\n    return x - 1\n"}, {"a.py": GOOD}, 1.0, ""),
    "moved": ({"a.py": STUB}, {"a/__init__.py": GOOD}, 1.0, ""),
    "only_tests": ({"a.py": GOOD}, {"a.py": GOOD, "tests/test_a.py": GOOD}, 0.0, "not given"),
    "only_a_cache": ({"a.py": GOOD}, {"a.py": GOOD, ".venv/a.py": "x = 1"}, 0.0, "not given"),
    "package_marker": ({"a.py": STUB}, {"a.py": GOOD, "p/__init__.py": ""}, 1.0, ""),
    "old_no_ops": ({"a.py": STUB, **_HOOK}, {"a.py": GOOD, **_HOOK}, 1.0, ""),
    "abstract_base_elsewhere": ({"a.py": STUB, **_LOADERS}, {"a.py": GOOD, **_LOADERS}, 1.0, ""),
    "new_bases": ({"a.py": STUB}, _BASED, 1.0, ""),
    "stub_called_a_base": ({"a.py": _CALLED}, {"a.py": _CALLED_BASE}, 0.0, "only raises"),
    "stub_moved_below_type_checking": ({"a.py": _CALLED}, {"a.py": _CALLED_BY_TYPES}, 0.0, "gone"),
    "no_source_at_all": (None, {"a.py": GOOD}, 1.0, ""),
    "no_source_and_nothing": (None, {"a.txt": "done"}, 0.0, "code that was not given"),
    "from_scratch": ({}, {"a.py": GOOD}, 1.0, ""),
    "constants_from_scratch": ({}, {"a.py": "def add(a, b): return 0\n"}, 0.0, "no function"),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_a_whole_tree(name: str, tmp_path: Path) -> None:
    source, left, value, why = WHOLE[name]
    node = await grade(tmp_path, left, source)
    assert node.value == value
    assert why in " ".join(reasons(node).values())


@pytest.mark.parametrize(
    ("left", "functions", "value"),
    [
        (GOOD, ["add"], 1.0),
        (GOOD, ["a.py::add"], 1.0),
        (GOOD, ["b.py::add"], 0.0),
        (GOOD, ["add", "sub"], 0.5),
        (STUB, ["add"], 0.0),
        ("def add(a, b): return 0\n", ["add"], 0.0),
        ("from operator import add\n", ["add"], 1.0),
        ("class S:\n    def push(self, x):\n        self.x = x\n", ["S.push", "push"], 1.0),
        (
            "import abc\nclass S(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\n",
            ["f"],
            0.0,
        ),
        ("def old(x):\n    return x\n", ["old"], 0.0),
        # They may move with their file, unless that is named.
        ({"a/__init__.py": GOOD}, ["add"], 1.0),
        ({"a/__init__.py": GOOD}, ["a.py::add"], 0.0),
        ({"a.py": "", "adding.py": GOOD}, ["add"], 1.0),
        ({"a.py": "", "adding.py": GOOD}, ["a.py::add"], 0.0),
    ],
)
async def test_named_functions_must_have_a_body_of_their_own(
    left: str | Tree, functions: list[str], value: float, tmp_path: Path
) -> None:
    source = {"a.py": STUB + "def old(x):\n    return x\n"}
    tree = {"a.py": left} if isinstance(left, str) else left
    assert (await grade(tmp_path, tree, source, functions=functions)).value == value


@each(
    ("options", "why"),
    [
        ({"files": []}, "must not be empty"),
        ({"functions": []}, "must not be empty"),
        ({"files": [""]}, "names nothing"),
        ({"files": ["/etc/passwd"]}, "inside the workspace"),
        ({"files": ["../a.py"]}, "inside the workspace"),
        ({"functions": ["../a.py::f"]}, "inside the workspace"),
    ],
)
async def test_what_an_author_got_wrong_is_an_error(
    options: dict[str, Json], why: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=why):
        ImplementedGrader.check_options(options)
    with pytest.raises(GraderError, match=why):
        await grade(tmp_path, {"a.py": GOOD}, None, **options)


async def test_attack_other_language_to_be_left_out_where_it_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of ours to read none of would be an error; the work on the Python is still judged."""
    for module in (treesitter, implemented):
        monkeypatch.setattr(module, "can_read", lambda language: False)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    node = await grade(tmp_path, {"a.py": STUB, "b.js": "f(1)"}, {"a.py": STUB})
    assert node.value == 0.0
    assert "javascript" in str(dict(node.metadata or {})["not_read"])
    with pytest.raises(MissingExtraError, match="languages"):
        ImplementedGrader.check_options({"files": ["a.js"]})
    with pytest.raises(GraderError, match="languages"):
        await grade(tmp_path, {"a.js": "f(1)"}, {"a.js": "f(2)"})


async def test_attack_source_that_a_parser_needs_quadratic_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_CPU_SECONDS", 0.5)
    if not can_read("javascript"):
        pytest.skip("needs the extra 'languages'")
    left = {"a.js": "=/[(" * 100_000, "b.js": "f(1)"}
    node = await grade(tmp_path, left, {}, files=["a.js", "b.js"])
    assert node.value == 0.5
    assert "too long" in reasons(node)["a.js"]


KIT = (
    "def parse(t):\n    raise NotImplementedError\ndef render(i):\n    raise NotImplementedError\n"
)
BOX = (
    "class Stack:\n    def push(self, x):\n        raise NotImplementedError\n"
    "    def pop(self):\n        raise NotImplementedError\n"
)
BOTH = "def parse(t):\n    return t.split()\n\n\ndef render(i):\n    return ' '.join(i)\n"
METHODS = "    def push(self, x):\n        self.x = x\n    def pop(self):\n        return self.x\n"


def _in(head: str, code: str) -> str:
    return head + "".join(f"    {line}\n" for line in code.splitlines())


# What was left beside, or instead of, a source that has the stub in kit.py; and where the evidence
# must say that the stub is.
UNEARNED: dict[str, dict[str, dict[str, str | Tree]]] = {
    KIT: {
        "kit.py: parse, line 1: is a stub": {
            "another_file": {"kit.py": KIT, "zz.py": BOTH},
            "an_alias_of_a_stub": "def f(*_): raise NotImplementedError\nparse = render = f\n",
            "an_alias_in_a_tuple": "def f(*_): raise NotImplementedError\nparse, render = f, f\n",
            "a_copy_below": {"kit.py": KIT, "sub/kit.py": BOTH},
            "a_hidden_copy": {"kit.py": KIT, ".hidden/kit.py": BOTH},
            "another_case": {"kit.py": KIT, "Kit.py": BOTH},
            "a_method": KIT + _in("class X:\n", BOTH),
            "a_nested_one": KIT + _in("def outer():\n", BOTH),
        },
        "kit.py: parse was a stub and is gone": {
            "only_a_hidden_copy": {".hidden/kit.py": BOTH},
            "only_a_method": _in("class X:\n", BOTH),
            "moved_as_it_was": {"kit.py": "from zz import *\n", "zz.py": KIT},
        },
        "kit.py: parse, line 2: is a stub": {
            "itself_wrapped": f"import functools\n{KIT}parse = functools.cache(parse)\n"
        },
    },
    BOX: {
        "kit.py: Stack.push": {
            "another_class": {"kit.py": BOX, "zz.py": _in("class X:\n", f"class Stack:\n{METHODS}")}
        },
        "kit.py: Stack.push was a stub and is gone": {
            "an_alias_of_a_class_of_stubs": BOX.replace("Stack", "Box") + "Stack = Box\n",
            "a_base_class_of_stubs": BOX.replace("Stack", "Box") + "class Stack(Box): pass\n",
            "a_base_class_without_it": "class Stack(dict): pass\n",
        },
    },
}


def _tree(left: str | Tree) -> Tree:
    return {"kit.py": left} if isinstance(left, str) else left


@pytest.mark.parametrize(
    ("source", "why", "left"),
    [
        pytest.param(source, why, left, id=name)
        for source, faults in UNEARNED.items()
        for why, rows in faults.items()
        for name, left in rows.items()
    ],
)
async def test_attack_a_named_stub_stays_where_the_source_had_it(
    source: str, why: str, left: str | Tree, tmp_path: Path
) -> None:
    functions = ["Stack.push"] if source is BOX else ["parse"]
    node = await grade(tmp_path, _tree(left), {"kit.py": source}, functions=functions)
    assert node.value == 0.0
    assert why in reasons(node)[functions[0]]


HONEST: dict[str, dict[str, str | Tree]] = {
    KIT: {
        "lambdas_in_a_tuple": "parse, render = (lambda t: t.split(',')), (lambda i: ','.join(i))\n",
        "annotated_lambdas": "parse: object = lambda t: t.split()\nrender: object = str\n",
        "an_alias_of_work": f"{BOTH}_p = parse\nparse = _p\n",
        "one_of_two_by_the_system": _in(
            "try: from fast import parse, render\nexcept ImportError:\n", KIT
        ),
        "wrapped": f"import functools\n{BOTH}parse = functools.cache(parse)\n",
        "all_of_another_file": {"kit.py": "from impl import *\n", "impl.py": BOTH},
        "all_of_what_another_file_binds": {
            "kit.py": "from impl import *\n",
            "impl.py": "from json import loads as parse, dumps as render\n",
        },
        "something_new_was_removed": f"{BOTH}def old(*_): raise NotImplementedError('removed')\n",
    },
    BOX: {
        "methods_of_a_base_class": f"class _Base:\n{METHODS}class Stack(_Base): pass\n",
        "methods_of_a_base_class_elsewhere": {
            "kit.py": "from base import Base\nclass Stack(Base): pass\n",
            "base.py": f"class Base:\n{METHODS}",
        },
        "methods_of_a_base_class_of_a_library": "import stacks\nclass Stack(stacks.Stack): pass\n",
        "an_attribute": "class Stack(list): push = list.append\n",
        "another_class_by_its_name": "from collections import deque as Stack\n",
        "an_alias_of_a_class": f"class Box:\n{METHODS}Stack = Box\n",
    },
}


@pytest.mark.parametrize(
    ("source", "left"),
    [(source, left) for source, lefts in HONEST.items() for left in lefts.values()],
)
async def test_honest_work_never_fails_by_its_shape(
    source: str, left: str | Tree, tmp_path: Path
) -> None:
    functions = (
        ["Stack.push", "Stack.pop", "push"] if source is BOX else ["parse", "kit.py::render"]
    )
    for options in ({}, {"files": ["kit.py"]}, {"functions": functions}):
        node = await grade(tmp_path, _tree(left), {"kit.py": source}, **options)
        assert (node.value, options) == (1.0, options), reasons(node)
