"""Cheats that put something in the place of everything: paid by weak tests, and nowhere else.

Each has a test here that it gets through in one process, as people write it every day. Judged
apart, under the contract of the same reference, such a test pays none of them.
"""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from assay.eval.cheats import select_cheats
from assay.eval.proofs.names import names_asked_of, names_in
from assay.eval.proofs.scene import read_scene
from assay.scoring.json_safe import Json
from assay.tasks.case import load_case
from assay.tasks.task import case_task
from tests.cases_to_prove import write
from tests.command_line import assay

_CASE = """
    id: kit
    task: {prompt: "Finish the kit."}
    source: {path: source}
    matrix: {harnesses: [replay], models: [fix]}
    graders:
      - {type: pytest, inject: [hidden/test_kit.py], isolation: MODE}
"""
_STUB = '"""To do: everything that the tests ask for."""\n'
_WEAK = {
    "yes": (
        """
        class Span:
            def __init__(self, first, last):
                self.first, self.last = first, last

            def __contains__(self, day):
                return self.first <= day <= self.last

            def __lt__(self, other):
                return self.last < other.first

            def is_long(self):
                return self.last - self.first > 30
        """,
        """
        from kit import Span

        def test_spans():
            assert Span(1, 99).is_long() is True
        """,
    ),
    "nan": (
        """
        def root(n):
            return n ** 0.5
        """,
        """
        import kit

        def test_root():
            worst = 0.0
            for n in range(9):
                worst = max(worst, abs(kit.root(n * n) - n))
            assert worst < 1e-9
        """,
    ),
    "empty": (
        """
        def evens(limit):
            yield from range(0, limit, 2)

        def words(text):
            return text.split()
        """,
        """
        from kit import evens, words

        def test_evens():
            for n in evens(10):
                assert n % 2 == 0

        def test_words():
            for word in words("a b"):
                assert word in ("a", "b")
        """,
    ),
    "swallow": (
        """
        class Store:
            def __init__(self, name):
                self.held = {}

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.held.clear()

            def put(self, key, value):
                self.held[key] = value

            def get(self, key):
                return self.held[key]
        """,
        """
        from kit import Store

        def test_store():
            with Store("a") as store:
                store.put("k", 1)
                assert store.get("k") == 1
        """,
    ),
    "padding": (
        '''
        def add(a, b):
            """Add."""
            return a + b

        COMMANDS = {"add": add}
        ''',
        """
        import kit

        def test_commands():
            told = [name for name, command in kit.COMMANDS.items() if command.__doc__]
            assert kit.COMMANDS and len(told) > 0.9 * len(kit.COMMANDS)
        """,
    ),
}
"""By cheat: what the author's reference is, and the test that asks too little."""


_FAIR = {
    "yes": """
        from kit import Span

        def test_spans():
            assert 3 in Span(1, 5)
            assert Span(1, 5) < Span(7, 9)
            assert Span(1, 99).is_long() is True
        """,
    "padding": """
        import kit

        def test_commands():
            assert list(kit.COMMANDS) == ["add"]
            assert kit.COMMANDS["add"](2, 3) == 5
        """,
}
"""By cheat: a test that asks a little more, where no judge can make up for what it leaves out."""


_OVER_ENTRIES = """
    import pytest
    import kit

    @pytest.mark.parametrize("name", sorted(kit.COMMANDS))
    def test_documented(name):
        assert kit.COMMANDS[name].__doc__

    def test_add():
        assert kit.COMMANDS["add"](2, 3) == 5
    """
_NODE_RIGHT = """\
exports.days = (first, last) => ({ includes: (day) => first <= day && day <= last });
exports.root = (n) => Math.sqrt(n);
exports.evens = (limit) => [...Array(limit / 2).keys()].map((n) => 2 * n);
exports.commands = { add: (a, b) => a + b };
"""
_NODE_STUB = """\
exports.days = null;
exports.root = null;
exports.evens = null;
exports.commands = {};
"""
_NODE_TEST = """\
const test = require('node:test');
const assert = require('node:assert');
const kit = require('./kit.js');
test('yes', () => assert.ok(kit.days(1, 5).includes(3)));
test('nan', () => { if (Math.abs(kit.root(4) - 2) > 1e-9) assert.fail('too far'); });
test('empty', () => { for (const n of kit.evens(8)) assert.strictEqual(n % 2, 0); });
test('padding', () => {
  const all = Object.values(kit.commands);
  assert.ok(all.filter((one) => typeof one === 'function').length > 0.9 * all.length);
});
"""


def _case(root: Path, mode: str, right: str, tests: Mapping[str, str]) -> Path:
    """A case with a file of tests for each name."""
    hidden = {f"hidden/test_{name}.py": test for name, test in tests.items()}
    files = {"source/kit.py": _STUB, **hidden, "recordings/fix/files/kit.py": right}
    text = _CASE.replace("hidden/test_kit.py", ", ".join(hidden)).replace("MODE", mode)
    return write(root, text, files)


def _attempts(root: Path, *cheats: str) -> dict[str, tuple[Json, Json]]:
    chosen = [word for cheat in cheats for word in ("--cheat", cheat)]
    done = assay("attack", str(root), *chosen, "--json", cwd=root)
    case = json.loads(done.stdout)["cases"][0]
    assert case["verdict"] != "error", case
    return {one["name"]: (one["outcome"], one["reward"]) for one in case["checks"]}


@pytest.mark.sandbox
@pytest.mark.parametrize("ident", list(_WEAK))
def test_a_weak_test_pays_it_in_one_process(ident: str, tmp_path: Path) -> None:
    right, weak = _WEAK[ident]
    found = _attempts(_case(tmp_path, "shared", right, {"kit": weak}), ident)
    assert found == {ident: ("passes", 1.0)}


@pytest.mark.slow
@pytest.mark.sandbox
def test_weak_tests_pay_none_of_them_apart(tmp_path: Path) -> None:
    right = "\n".join(textwrap.dedent(right) for right, _ in _WEAK.values())
    tests = {ident: _FAIR.get(ident, weak) for ident, (_, weak) in _WEAK.items()}
    found = _attempts(_case(tmp_path, "process", right, tests), "stand-ins")
    assert found.keys() == _WEAK.keys()
    assert all(outcome == "holds" for outcome, _ in found.values()), found


@pytest.mark.sandbox
@pytest.mark.slow
def test_entries_that_a_submission_adds_weigh_no_more_than_those_of_the_reference(
    tmp_path: Path,
) -> None:
    found = _attempts(
        _case(tmp_path, "process", _WEAK["padding"][0], {"kit": _OVER_ENTRIES}), "padding"
    )
    assert found == {"padding": ("pays", 0.5)}, "two tests, of which one asks for docstrings only"


@pytest.mark.sandbox
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("shared", "js"), ("shared", "mjs"), pytest.param("process", "js", marks=pytest.mark.slow)],
)
def test_weak_tests_of_node_pay_them_in_one_process_only(
    mode: str, suffix: str, tmp_path: Path
) -> None:
    text = _CASE.replace("pytest, inject", "tests, cmd: node --test, inject")
    text = text.replace("MODE", mode).replace("test_kit.py", f"kit.test.{suffix}")
    stub, right, test = _NODE_STUB, _NODE_RIGHT, _NODE_TEST
    if suffix == "mjs":
        stub, right = (code.replace("exports.", "export const ") for code in (stub, right))
        test = re.sub(r"const (\w+) = require\((.*?)(\.js)?'\)", r"import \1 from \2\3'", test)
        test = test.replace("import kit from './kit.js'", "import * as kit from './kit.mjs'")
    files = {f"source/kit.{suffix}": stub, f"hidden/kit.test.{suffix}": test}
    root = write(tmp_path, text, {**files, f"recordings/fix/files/kit.{suffix}": right})
    found = _attempts(root, "stand-ins")
    paid = {ident: reward for ident, (outcome, reward) in found.items() if outcome == "pays"}
    if mode == "process":
        assert paid == {"padding": 0.25}, "a share of entries is theirs in any process"
    else:
        assert paid == {"yes": 0.5, "nan": 0.25, "empty": 0.25, "padding": 0.25}


def test_names_are_read_without_what_is_behind_them(snapshot: SnapshotAssertion) -> None:
    names = names_in(
        """
class Wrong(ValueError): pass
class Worse(Wrong): pass
class Kit(Base):
    def is_open(self): return SECRET
    async def wait(self) -> list[int]: ...
    @property
    def size(self) -> int: ...
try:
    def words(text: str) -> typing.Iterator[str]: ...
except ImportError:
    pass
def walk(tree):
    yield tree
LIMIT, TABLE = 3, {}
ORDER: dict[str, int] = make()
SEEN = sorted(TABLE)
"""[1:]
    )
    assert names == snapshot
    assert names_in("def broken(:") == {}


def test_what_a_test_asks_of_a_module_is_told_apart_by_spelling(
    snapshot: SnapshotAssertion,
) -> None:
    asked = names_asked_of(
        """
import pytest
import src.kit as k
import kit.shelf
from kit.shelf import Shelf, ShelfError, LIMIT
from kit import shelf

def test_a():
    assert k.is_open("a") and shelf.load() and kit.shelf.sort()
    pytest.raises(k.Wrong)
"""[1:],
        ["src/kit/__init__.py", "src/kit/shelf.py"],
    )
    assert asked == snapshot


def test_stand_ins_hold_nothing_that_the_reference_or_a_test_says(tmp_path: Path) -> None:
    for ident, (right, weak) in _WEAK.items():
        case = load_case(str(_case(tmp_path / ident, "shared", right, {ident: weak})))
        scene = read_scene(case_task(case), case.task.prompt, str(tmp_path / ident / "source"))
        (cheat,) = select_cheats([ident])
        deeds = cheat.deeds(scene)
        assert deeds is not None
        left = b"".join(deeds.files.values()).decode()
        bodies = [line.strip() for line in right.splitlines() if "return" in line]
        assert not [line for line in bodies if line != "return self" and line in left]
