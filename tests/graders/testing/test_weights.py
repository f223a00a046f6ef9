"""What a declared test weighs: padding gets no more, whatever a submission makes tests of."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.testing.expected import weigh
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.graders.testing.python_ids import read_python_tests
from assay.graders.tests import TestsGrader
from assay.sandbox import CommandResult, probe
from assay.scoring import SubScore
from assay.types import Workspace

no_sandbox = pytest.mark.skipif(probe().tier is None, reason="no sandbox on this machine")
no_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")


def in_the_sandbox(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.sandbox(no_sandbox(test))


PYTEST = "python3 -m pytest test_kit.py"
NODE = "node --test kit.test.js"

OVER_NAMES = """\
import pytest
import kit


@pytest.mark.parametrize("name", sorted(kit.COMMANDS))
def test_documented(name):
    assert kit.COMMANDS[name].__doc__


def test_add():
    assert kit.COMMANDS["add"](2, 3) == 5


def test_upper():
    assert kit.COMMANDS["upper"]("a") == "A"
"""
HONEST = '''\
def add(a, b):
    """Add."""
    return a + b


def upper(text):
    """Upper."""
    return text.upper()


COMMANDS = {"add": add, "upper": upper}
'''
PADDED = '''\
def nothing(*a):
    """Nothing."""


COMMANDS = {f"c{n}": nothing for n in range(60)}
'''
IN_A_LOOP = """\
const test = require('node:test');
const assert = require('node:assert');
const kit = require('./kit.js');
for (const name of Object.keys(kit)) test(`${name} is a function`, () => {
  assert.strictEqual(typeof kit[name], 'function');
});
test.skip('later', () => {});
test('adds', () => assert.strictEqual(kit.add(1, 2), 3));
test('parts', async (t) => {
  await t.test('shouts', () => assert.strictEqual(kit.upper('a'), 'A'));
});
"""
HONEST_JS = "exports.add = (a, b) => a + b; exports.upper = (text) => text.toUpperCase();\n"
PADDED_JS = "for (let n = 0; n < 60; n++) exports[`c${n}`] = () => 0;\n"

LITERAL = """\
import pytest
import kit

CASES: list[int] = [*range(1, 3), 3]
both = pytest.mark.parametrize("m", ["a[0]::b", "c"])


@pytest.fixture(params=[1, 2])
def base(request):
    return request.param


@pytest.fixture
def above(base):
    return base


@pytest.fixture(autouse=True, params=("x", "y"))
def always(request):
    return request.param


class TestStacked:
    ROWS = [(1, 2), (3, 4)]
    pytestmark = [pytest.mark.parametrize("k", list({"p": 1, "q": 2}.items()))]

    @both
    @pytest.mark.parametrize(("n", "o"), ROWS + [(5, 6)])
    def test_product(self, n, o, m, k):
        assert kit.ok(n)


@pytest.mark.parametrize("base", [pytest.param(7, id="seven"), 8, 9], indirect=True)
def test_indirect(above):
    assert kit.ok(above)


@pytest.mark.parametrize("n", [pytest.param(n) for n in CASES])
@pytest.mark.usefixtures("above")
def test_made(n):
    assert kit.ok(n)


def test_plain():
    assert kit.ok(0)
"""


def graded(root: Path, kit: str, hidden: dict[str, str], cmd: str, **options: object) -> SubScore:
    tree = root / "tree"
    shutil.rmtree(root, ignore_errors=True)
    tree.mkdir(parents=True)
    (tree / ("kit.js" if cmd == NODE else "kit.py")).write_text(kit, encoding="utf-8")
    for name, text in hidden.items():
        (root / name).write_text(text, encoding="utf-8")
    return asyncio.run(
        TestsGrader.grade(
            workspace=Workspace(path=str(tree)),
            cmd=cmd,
            inject=[str(root / name) for name in hidden],
            **cast("dict[str, Any]", {"timeout_s": 60.0, **options}),
        )
    )


def learnt(root: Path, kit: str, hidden: dict[str, str], cmd: str, **options: object) -> Any:
    """What is told of a reference's run."""
    score = graded(root, kit, hidden, cmd, contract={"learns": True}, **options)
    assert score.value == 1.0, score.reason
    return told(score)


@in_the_sandbox
def test_parametrize_padding(tmp_path: Path) -> None:
    hidden = {"test_kit.py": OVER_NAMES}
    found = learnt(tmp_path / "r", HONEST, hidden, PYTEST, isolation="process")
    assert found["variants"] == {"test_kit.py::test_documented": 2}
    contract = {"variants": found["variants"], "needs": found["needs"]}
    options = {"contract": contract, "isolation": "process", "pass_threshold": 0.6}
    score = graded(tmp_path / "p", PADDED, hidden, PYTEST, **options)
    assert score.value == 0.5
    assert not score.passed
    assert told(score)["counts"] == {"expected": 62, "passed": 60, "failed": 2}
    assert score.reason == (
        "60 of 62 tests passed, which weigh 2 of 4: "
        "a test weighs the same with any number of variants"
    )
    assert any("test_documented (60, weighing 2)" in line for line in notes(score))
    honest = graded(tmp_path / "h", HONEST, hidden, PYTEST, **options)
    assert (honest.value, honest.reason) == (1.0, "4 of 4 tests passed")
    assert not notes(honest)


@in_the_sandbox
def test_padding_by_tests_made_while_loading(tmp_path: Path) -> None:
    made = (
        "import kit\n\n\ndef test_add():\n    assert kit.COMMANDS['add'](2, 3) == 5\n\n\n"
        "for name in kit.COMMANDS:\n    globals()['test_' + name + '_exists'] = lambda: None\n"
    )
    hidden = {"test_kit.py": made}
    contract = {"variants": learnt(tmp_path / "r", HONEST, hidden, PYTEST)["variants"]}
    assert contract == {"variants": {"test_kit.py": 2}}
    score = graded(tmp_path / "p", PADDED, hidden, PYTEST, contract=contract)
    assert score.value == pytest.approx(2 / 3)
    emptied = graded(tmp_path / "e", "COMMANDS = {}\n", hidden, PYTEST, contract=contract)
    assert emptied.value == 0.0
    assert told(emptied)["missing"] == ["test_kit.py"]


@pytest.mark.slow
@no_node
@in_the_sandbox
def test_node_padding_by_a_loop_over_much_or_nothing(tmp_path: Path) -> None:
    hidden = {"kit.test.js": IN_A_LOOP}
    contract = {"variants": learnt(tmp_path / "r", HONEST_JS, hidden, NODE)["variants"]}
    assert contract == {"variants": {"kit.test.js": 2}}
    score = graded(tmp_path / "p", PADDED_JS, hidden, NODE, contract=contract)
    assert score.value == pytest.approx(2 / 5)  # and "adds", "parts", "parts > shouts"
    assert told(score)["counts"] == {"expected": 63, "passed": 60, "failed": 3}
    unseen = HONEST_JS + "for (const k of ['add', 'upper'])\n"
    unseen += "  Object.defineProperty(exports, k, { enumerable: false });\n"
    score = graded(tmp_path / "u", unseen, hidden, NODE, contract=contract)
    assert score.value == pytest.approx(3 / 5)
    assert told(score)["missing"] == ["kit.test.js"]


@in_the_sandbox
def test_literal_parametrization_weighs_as_it_is_counted(tmp_path: Path) -> None:
    hidden = {"test_kit.py": LITERAL}
    score = graded(tmp_path / "r", "ok = lambda n: n != 3\n", hidden, PYTEST)
    counts = told(score)["counts"]
    assert counts["expected"] == 2 * (2 * 3 * 2 + 3 + 3 * 2 + 1)
    assert score.value == counts["passed"] / counts["expected"] < 1
    assert not any("weighing" in line for line in notes(score))
    assert learnt(tmp_path / "l", "ok = lambda n: True\n", hidden, PYTEST)["variants"] == {}


@in_the_sandbox
def test_a_test_that_is_kept_from_loading_weighs_all_its_variants(tmp_path: Path) -> None:
    """Else breaking the import of what one fails would be cheaper than failing it."""
    hidden = {
        "test_kit.py": "def test_plain():\n    pass\n",
        "test_more.py": "import kit\nimport pytest\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_n(n):\n    assert kit.ok(n)\n",
    }
    cmd = f"{PYTEST} test_more.py"
    assert graded(tmp_path / "f", "ok = lambda n: False\n", hidden, cmd).value == 1 / 4
    assert graded(tmp_path / "b", "raise ValueError\n", hidden, cmd).value == 1 / 4


@in_the_sandbox
def test_visible_tests_are_weighed_too(tmp_path: Path) -> None:
    source, tree = tmp_path / "source", tmp_path / "tree"
    source.mkdir()
    (source / "test_kit.py").write_text(
        OVER_NAMES + "\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n, two):\n    pass\n"
    )
    (source / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture(params=[1, 2])\ndef two():\n    pass\n"
    )
    shutil.copytree(source, tree)
    (tree / "kit.py").write_text(PADDED)
    score = asyncio.run(
        TestsGrader.grade(
            workspace=Workspace(path=str(tree), source=str(source), changes=("kit.py",)),
            cmd=PYTEST,
        )
    )
    assert score.value == pytest.approx((1 + 4) / (3 + 4))


def notes(score: SubScore) -> list[str]:
    return [str(line) for line in told(score).get("notes", [])]


def told(score: SubScore) -> dict[str, Any]:
    return cast("dict[str, Any]", score.metadata)


def value(
    source: str, outcomes: dict[str, bool], variants: dict[str, int] | None = None
) -> tuple[float, TestRun]:
    heard = {
        name: TestOutcome(id=name, outcome="passed" if passed else "failed")
        for name, passed in outcomes.items()
    }
    hidden = read_python_tests({"test_a.py": source})
    weighed = weigh(heard, heard, hidden, {}, variants)
    run = TestRun(
        outcomes=heard,
        expected=tuple(sorted({*heard, *weighed.missing})),
        channel="private",
        result=cast("CommandResult", None),
        weights=weighed.weights,
    )
    return run.value, run


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 4), max_size=3), st.booleans()), min_size=1, max_size=4
    ),
    st.data(),
)
def test_literal_lists_leave_the_value_as_it_is(
    tests: list[tuple[list[int], bool]], data: st.DataObject
) -> None:
    """The value is then passed / expected, to the last bit."""
    lines, outcomes = ["import pytest"], dict[str, bool]()
    for number, (sizes, in_class) in enumerate(tests):
        place = f"TestC{number}::test_{number}" if in_class else f"test_{number}"
        indent = "    " if in_class else ""
        lines += [f"class TestC{number}:"] if in_class else []
        for stack, size in enumerate(sizes):
            shown = repr([f"x[{n}]::y" for n in range(size)])
            lines.append(f"{indent}@pytest.mark.parametrize('p{stack}', {shown})")
        lines.append(f"{indent}def test_{number}(*a): pass")
        for one in itertools.product(*map(range, sizes)):
            brackets = "-".join(f"x[{n}]::y" for n in one)
            name = f"test_a.py::{place}" + (f"[{brackets}]" if sizes else "")
            outcomes[name] = data.draw(st.booleans())
    expected = sum(outcomes.values()) / len(outcomes)
    assert value("\n".join(lines), outcomes)[0] == expected
    assert value("\n".join(lines), outcomes, {})[0] == expected


def test_variants_that_vanish_weigh_what_they_did_for_the_reference() -> None:
    source = (
        "import pytest\n@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_n(n): pass\n"
        "def test_plain(): pass\n"
    )
    outcomes = {"test_a.py::test_n[1]": False, "test_a.py::test_plain": True}
    assert value(source, outcomes, {})[0] == 1 / 4
    assert value(source, outcomes)[0] == 1 / 2  # the command may have left the others out


def test_fewer_variants_than_the_reference_had_weigh_as_many_as_there_are() -> None:
    """A registry of the one codec that changes nothing had the weight of four."""
    each = {f"test_a.py::test_each[{n}]": True for n in range(4)}
    one, two, (first, *_) = "test_a.py::test_one", "test_a.py::test_two", each
    had = {"test_a.py::test_each": 4}
    few, run = value(COMPUTED, {first: True, one: True, two: False}, had)
    assert (few, run.missing) == (2 / 6, ("test_a.py::test_each[3 more, as the reference has]",))
    assert value(COMPUTED, {**each, one: True, two: False}, had)[0] == 5 / 6
    # Right work may have fewer, or more, and other ones.
    few, run = value(COMPUTED, {first: True, one: True, two: True}, had)
    assert (few, run.missing) == (1.0, ())
    more = {f"test_a.py::test_each[x{n}]": True for n in range(9)}
    assert value(COMPUTED, {**more, one: True, two: False}, had)[0] == pytest.approx(5 / 6)


def test_what_the_reference_did_not_make_counts_only_where_it_fails() -> None:
    outcomes = {"test_a.py::test_one": True, "test_a.py::test_two": False}
    made = dict.fromkeys(("test_a.py::test_made_a", "test_a.py::test_made_b"), True)
    assert value(COMPUTED, outcomes, {})[0] == value(COMPUTED, outcomes | made, {})[0] == 1 / 2
    failing = {**made, "test_a.py::test_made_c": False}
    assert value(COMPUTED, outcomes | failing, {})[0] == pytest.approx(1 / 3)


COMPUTED = (
    "import pytest, kit\n@pytest.mark.parametrize('n', kit.NAMES)\ndef test_each(n): pass\n"
    "for name in kit.NAMES: globals()['test_made_' + name] = print\n"
    "def test_one(): pass\ndef test_two(): pass\n"
)
IDS = st.dictionaries(
    st.one_of(
        st.sampled_from(["test_a.py::test_one", "test_a.py::test_two"]),
        st.integers(0, 30).map("test_a.py::test_each[{}]".format),
        st.integers(0, 30).map("test_a.py::test_made_{}".format),
    ),
    st.booleans(),
    min_size=1,
)
VARIANTS = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["test_a.py", "test_a.py::test_each"]), st.integers(1, 5), max_size=2
    ),
)


@given(IDS, VARIANTS, st.data())
def test_passing_a_test_never_costs_anything(
    outcomes: dict[str, bool], variants: dict[str, int] | None, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(outcomes)))
    worse, better = ({**outcomes, name: passed} for passed in (False, True))
    assert value(COMPUTED, worse, variants)[0] <= value(COMPUTED, better, variants)[0] + 1e-12
    assert value(COMPUTED, dict.fromkeys(outcomes, True), variants)[0] in (0.0, 1.0)


@given(st.integers(1, 500), st.integers(0, 500), st.integers(1, 9), st.tuples(*[st.booleans()] * 2))
def test_padding_gets_its_declared_share_at_most(
    variants: int, made: int, known: int, passes: tuple[bool, bool]
) -> None:
    one, two = passes
    outcomes = {f"test_a.py::test_each[{n}]": True for n in range(variants)}
    outcomes |= {f"test_a.py::test_made_{n}": True for n in range(made)}
    real = {"test_a.py::test_one": one, "test_a.py::test_two": two}
    told = {"test_a.py::test_each": known}
    held = known if one and two else min(known, variants)
    share = (held + one + two) / (known + 2)
    assert value(COMPUTED, outcomes | real, told)[0] == pytest.approx(share)
    most = (2 + one + two) / 4
    assert value(COMPUTED, outcomes | real)[0] <= most + 1e-12
