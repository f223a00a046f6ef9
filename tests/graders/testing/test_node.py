"""``node --test`` in the sandbox: honest work is paid, cheats are not.

Through the grader, for the runner is three programs in two languages that must agree.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import GraderError
from assay.graders.tests import TestsGrader
from assay.sandbox import probe
from assay.scoring import SubScore
from assay.types import Workspace
from tests.attacks.scenes import scenes
from tests.each import each
from tests.written_files import write_files

NODE = shutil.which("node")
INSIDE = Path(__file__).parents[3] / "src" / "assay" / "graders" / "testing" / "inside"

pytestmark = pytest.mark.skipif(NODE is None, reason="no node on this machine")
sandboxed = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(probe().tier is None, reason="no sandbox on this machine"),
]

# The solution is loaded first: what it does to modules is done before the test asks for them.
HIDDEN = """\
const { add } = require('./kit.js');
const test = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.strictEqual(add(1, 2), 3));
test('adds nothing', async () => assert.ok(Math.abs((await add(0, 5)) - 5) < 1e-9));
"""
HONEST = "exports.add = (a, b) => a + b;\n"
STUB = "exports.add = () => 0;\n"

Grade = tuple[float | None, dict[str, str], tuple[str, ...], str]


class Case:
    """A submission and hidden tests on disk."""

    def __init__(self, root: Path) -> None:
        self.tree, self.hidden = root / "tree", root / "hidden"
        self.tree.mkdir()
        self.hidden.mkdir()

    async def grade(
        self,
        files: dict[str, str],
        hidden: dict[str, str] | None = None,
        cmd: str = "node --test hidden.test.js",
        **options: object,
    ) -> Grade:
        for root, texts in (
            (self.tree, files),
            (self.hidden, hidden or {"hidden.test.js": HIDDEN}),
        ):
            write_files(root, texts)
        inject = [{"src": str(self.hidden), "dest": "."}]
        node = await TestsGrader.grade(
            workspace=Workspace(path=str(self.tree)),
            cmd=cmd,
            inject=inject,
            **cast("dict[str, Any]", {"timeout_s": 60.0, **options}),
        )
        return node.value, outcomes(node), tuple(node.flags), printed(node)


def outcomes(node: SubScore) -> dict[str, str]:
    tests = (node.metadata or {}).get("tests")
    assert isinstance(tests, list)
    entries = [entry for entry in tests if isinstance(entry, dict)]
    return {str(entry["id"]): str(entry["outcome"]) for entry in entries}


def printed(node: SubScore) -> str:
    return json.dumps(node.metadata)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


class TestSigning:
    """The runner's own SHA-256."""

    def test_it_agrees_with_python_s(self) -> None:
        script = """
            const { signer } = require(process.argv[1]);
            const sign = signer('ab'.repeat(32));
            for (let n = 0; n < 130; n += 1) {
              const told = { n: 'x'.repeat(n), u: '\\u00e9\\ud83d\\ude00' };
              process.stdout.write(sign(JSON.stringify(told)));
            }
        """
        assert NODE
        lines = subprocess.run(
            [NODE, "-e", script, str(INSIDE / "node_sign.cjs")], capture_output=True, check=True
        ).stdout.splitlines()
        for count, line in enumerate(lines):
            code, number, payload = line.split(b" ", 2)
            key = bytes.fromhex("ab" * 32)
            genuine = hmac.new(key, number + b"\n" + payload, hashlib.sha256).hexdigest()
            assert (code.decode(), int(number)) == (genuine, count)
            assert json.loads(payload) == {"n": "x" * count, "u": "\u00e9\U0001f600"}


class TestCommandLine:
    """Which files and options ``node --test`` means."""

    def ask(self, root: Path, *words: str) -> dict[str, Any]:
        script = """
            const args = require(process.argv[1]);
            const read = args.read(process.argv.slice(2));
            const cwd = process.cwd();
            const files = args.files(read.patterns).map((file) => file.slice(cwd.length + 1));
            console.log(JSON.stringify({ ...read, files }));
        """
        assert NODE
        told = subprocess.run(
            [NODE, "-e", script, "--", str(INSIDE / "node_args.cjs"), *words],
            capture_output=True,
            check=True,
            cwd=root,
        )
        return cast("dict[str, Any]", json.loads(told.stdout))

    @each(
        ("words", "files"),
        [
            ((), ["a.test.js", "lib/b-test.mjs", "lib/test-c.cjs", "test/any.js", "test.js"]),
            (("a.test.js",), ["a.test.js"]),
            (("lib",), ["lib/b-test.mjs", "lib/test-c.cjs"]),
            (("test/",), ["test/any.js"]),
            (("**/*.{mjs,cjs}",), ["lib/b-test.mjs", "lib/test-c.cjs"]),
            (("lib/?-test.mjs",), ["lib/b-test.mjs"]),
            (("**/@(a|b).test.[j]s",), ["a.test.js"]),
            (("none/*.js",), []),
        ],
    )
    def test_files(self, tmp_path: Path, words: tuple[str, ...], files: list[str]) -> None:
        names = (
            "a.test.js lib/b-test.mjs lib/plain.js lib/test-c.cjs node_modules/x/a.test.js "
            "test.js test/any.js test/data.json"
        )
        write_files(tmp_path, dict.fromkeys(names.split(), ""))
        assert sorted(self.ask(tmp_path, "--test", *words)["files"]) == sorted(files)

    def test_options(self, tmp_path: Path) -> None:
        (tmp_path / "a.js").touch()
        read = self.ask(
            tmp_path,
            "--test",
            "--test-reporter=spec",
            "--test-reporter-destination",
            "stdout",
            "--import",
            "./set-up.mjs",
            "--test-name-pattern=adds",
            "--test-concurrency=3",
            "--inspect",
            "--watch",
            "a.js",
        )
        assert read["options"] == ["--import", "./set-up.mjs", "--test-name-pattern=adds"]
        assert (read["concurrency"], read["selecting"], read["files"]) == (3, True, ["a.js"])


class TestHonest:
    """What a correct or partly correct solution gets."""

    pytestmark = sandboxed

    @pytest.mark.parametrize(
        "cmd",
        [
            "npm test --silent",
            "make test",
            "cd . && NODE_ENV=test node --test-reporter tap --test ./hidden.test.js",
        ],
    )
    async def test_however_the_runner_is_started(self, case: Case, cmd: str) -> None:
        package = '{"scripts": {"test": "node --test hidden.test.js"}}'
        files = {"kit.js": HONEST, "package.json": package, "Makefile": "test:\n\tnode --test\n"}
        program = cmd.split(maxsplit=1)[0]
        if program in ("npm", "make") and shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")
        value, tests, flags, _ = await case.grade(files, cmd=cmd)
        assert (value, flags) == (1.0, ())
        assert set(tests) == {"hidden.test.js::adds", "hidden.test.js::adds nothing"}

    async def test_every_way_to_write_a_test(self, case: Case) -> None:
        hidden = """
const { test, describe, it, beforeEach, after } = require('node:test');
const assert = require('node:assert/strict');
const { add } = require('./kit.js');
describe('math', () => {
  let before = 0;
  beforeEach(() => { before += 1; });
  after(() => {});
  it('adds', () => { assert.equal(add(1, 2), 3); assert.ok(before > 0); });
  describe('deep', () => {
    it('calls back', (t, done) => { setTimeout(done, 1); });
    it('awaits', async () => { await null; assert.equal(add(2, 2), 4); });
  });
  it.skip('skipped', () => {});
  it('is to be done', { todo: true }, () => { assert.equal(add(1, 1), 3); });
});
test('has subtests', async (t) => {
  await t.test('one', () => {});
  await t.test('two', async (u) => { await u.test('deeper', () => assert.equal(add(1, 1), 2)); });
});
test(function named() {});
test('mocks', (t) => { t.mock.method(process, 'exit', () => {}); process.exit(3); });
test('imports', async () => { assert.equal((await import('./kit.js')).default.add(1, 1), 2); });
test('is main', () => { assert.equal(require.main, module); });
test('forks', (t, ok) => { require('child_process').fork('./up.js').on('message', () => ok()); });
"""
        left_open = "require('net').createServer().listen(0);"
        kit = {"kit.js": f"{left_open}{HONEST}", "up.js": "process.send(1);"}
        value, tests, flags, _ = await case.grade(kit, {"hidden.test.js": hidden})
        passed = {name.partition("::")[2] for name, one in tests.items() if one == "passed"}
        assert passed == {
            "math > adds",
            "math > deep > calls back",
            "math > deep > awaits",
            "has subtests",
            "has subtests > one",
            "has subtests > two",
            "has subtests > two > deeper",
            "named",
            "mocks",
            "imports",
            "is main",
            "forks",
        }
        assert tests["hidden.test.js::math > skipped"] == "skipped"
        assert tests["hidden.test.js::math > is to be done"] == "xfailed"
        assert (value, flags) == (1.0, ())

    async def test_a_test_is_left_out_only_by_its_author(self, case: Case) -> None:
        hidden = """
const { describe, it, test } = require('node:test');
const { add } = require('./kit.js');
const no = () => { throw new Error(); };
test('adds', (t) => { if (add(1, 2) !== 3) t.skip(); });
test('options', { skip: 'later' }, no);
test('unsure', { skip: add(1, 2) !== 3 }, () => {});
test.todo('to be written');
describe.skip('off', () => { it('never', no); });
test('subtests', async (t) => { await t.test('one [1]', { skip: true }, no); });
"""
        value, _, _, _ = await case.grade({"kit.js": HONEST}, {"hidden.test.js": hidden})
        assert value == 1.0
        value, _, _, _ = await case.grade({"kit.js": STUB}, {"hidden.test.js": hidden})
        assert value == pytest.approx(1 / 3)

    @pytest.mark.parametrize("name", ["t/hidden.test.mjs", "t/hidden.test.js"])
    async def test_modules(self, case: Case, name: str) -> None:
        hidden = """
import test, { describe, it } from 'node:test';
import { strictEqual } from 'node:assert';
import { add } from '../kit.mjs';
import { three } from './numbers.mjs';
describe('math', () => { it('adds', () => strictEqual(add(1, 2), three)); });
await null;
test('late', async () => strictEqual((await import('../kit.mjs')).add(1, 1), 2));
"""
        files = {"kit.mjs": "export const add = (a, b) => a + b;"}
        if name.endswith(".js"):
            files["package.json"] = '{"type": "module"}'
        numbers = "export const three = 3;"
        value, tests, _, _ = await case.grade(
            files, {name: hidden, "t/numbers.mjs": numbers}, cmd="node --test t/"
        )
        assert (value, len(tests)) == (1.0, 2)

    async def test_a_script_without_tests_is_one_test(self, case: Case) -> None:
        asks = "require('assert').equal(await require('./kit').add(1, 2), 3)"
        hidden = {"test-it.js": asks.replace("await ", "")}
        hidden["test-late.js"] = f"(async () => {asks})()"
        value, tests, _, _ = await case.grade({"kit.js": HONEST}, hidden, cmd="node --test")
        assert (value, tests) == (1.0, dict.fromkeys(hidden, "passed"))
        hears = "for (const name of ['uncaughtException', 'unhandledRejection'])"
        for kit in (STUB, f"{hears} process.on(name, () => {{}});\n{STUB}"):
            value, _, _, _ = await case.grade({"kit.js": kit}, hidden, cmd="node --test")
            assert value == 0.0

    async def test_a_name_pattern_selects_from_sources_that_are_empty_on_disk(
        self, case: Case
    ) -> None:
        cmd = "node --test --test-name-pattern=nothing hidden.test.js"
        size = "console.log('SIZE', require('fs').statSync('hidden.test.js').size);"
        value, tests, _, told = await case.grade({"kit.js": size + HONEST}, cmd=cmd)
        assert (value, list(tests)) == (1.0, ["hidden.test.js::adds nothing"])
        assert "SIZE 0" in told

    async def test_a_helper_declares_tests_and_a_file_that_does_not_load_costs_its_own(
        self, case: Case
    ) -> None:
        helper = HIDDEN.replace("test('adds',", "module.exports = () => { test('adds',") + "};"
        hidden = {"a.test.js": "require('./cases.js')();", "cases.js": helper}
        hidden["b.test.js"] = HIDDEN.replace("kit.js", "missing.js")
        value, tests, flags, _ = await case.grade({"kit.js": HONEST}, hidden, cmd="node --test")
        passed = ["a.test.js::adds", "a.test.js::adds nothing"]
        assert tests == {**dict.fromkeys(passed, "passed"), "b.test.js": "error"}
        assert (value, flags) == (0.5, ()), "what a helper declares for a file weighs like one test"

    async def test_a_test_that_kills_the_process_is_the_only_one_that_fails(
        self, case: Case
    ) -> None:
        kit = "exports.add = (a, b) => { if (a) process.abort(); return b; };"
        value, tests, _, _ = await case.grade({"kit.js": kit})
        assert value == 0.5
        assert tests["hidden.test.js::adds nothing"] == "passed"


CHEATS = {one.name: str(one.files["kit.js"]) for one in scenes("node_shared")[0].agents}


class TestAttacks:
    """Cheats: none of them gets a test that its answer does not pass."""

    pytestmark = sandboxed

    async def test_cheats_get_no_test_of_theirs(self, case: Case) -> None:
        """All of them at once, each in a process of its own, and honest work beside them."""
        kits, hidden = {"honest.js": HONEST}, dict[str, str]()
        for name, text in CHEATS.items():
            kit = text if "exports.add" in text else f"{STUB}\n{text}"
            kits[f"{name}.js"] = kit.replace("hidden.test.js", f"{name}.test.js")
        for file in kits:
            hidden[file.replace(".js", ".test.js")] = HIDDEN.replace("kit.js", file)
        cmd = f"node --test {' '.join(hidden)}"
        _, tests, flags, _ = await case.grade(kits, hidden, cmd)
        passed = [name for name, outcome in tests.items() if outcome == "passed"]
        assert passed == ["honest.test.js::adds", "honest.test.js::adds nothing"]
        assert {name.partition(".")[0] for name in tests} == {"honest", *CHEATS}
        assert "a line of a file's report is not the runner's" in flags, "forge_on_the_pipe"

    async def test_a_module_cannot_redirect_assert(self, case: Case) -> None:
        kit = """
import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(`
  export const resolve = (name, context, next) => name === 'node:assert'
    ? { url: 'data:text/javascript,export const strictEqual = () => {}', shortCircuit: true }
    : next(name, context);`));
export const add = () => 0;
"""
        hidden = """
import { add } from './kit.mjs';
import test from 'node:test';
import { strictEqual } from 'node:assert';
test('adds', () => strictEqual(add(1, 2), 3));
"""
        value, _, _, _ = await case.grade(
            {"kit.mjs": kit}, {"hidden.test.mjs": hidden}, cmd="node --test"
        )
        assert value == 0.0

    async def test_a_second_runner_does_not_speak_for_the_first(self, case: Case) -> None:
        """A solution that runs passing tests of its own through our shim."""
        kit = (
            STUB
            + """
require('fs').writeFileSync('/tmp/own.test.js', "require('node:test')('adds', () => {});");
require('child_process').execSync('node --test /tmp/own.test.js');
"""
        )
        value, tests, _, _ = await case.grade({"kit.js": kit})
        assert value == 0.0
        assert "passed" not in tests.values()


@pytest.mark.sandbox
async def test_a_command_that_names_another_file_than_is_injected_is_an_error(
    case: Case, tmp_path: Path
) -> None:
    (case.hidden / "x.test.js").write_text(HIDDEN)
    with pytest.raises(GraderError, match=r"'hidden\.test\.js'.* hidden file \('x\.test\.js'\)"):
        await TestsGrader.grade(
            workspace=Workspace(path=str(case.tree), source=str(tmp_path)),
            cmd="node --test hidden.test.js",
            inject=[str(case.hidden / "x.test.js")],
        )
