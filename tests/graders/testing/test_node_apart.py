"""``node --test`` with the submission in another process: honest work holds, what lies does not.

Through the runner and a real solution host, for the two are programs that must agree.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.attacks.scenes import scenes
from tests.each import each
from tests.graders.testing.node_pairs import INSIDE, NODE, SEED, Told, judge_apart

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine"),
]

BOUNDARY = INSIDE / "boundary"

HERE = Path(__file__).parent / "node_apart"

HEAD = """
const { test } = require('node:test');
const assert = require('node:assert');
"""

AGENTS = {one.name: (scene, one) for scene in scenes("node_apart") for one in scene.agents[1:]}
"""Those beside the references, by their names."""
LIES = [name for name, (scene, _) in AGENTS.items() if scene.name == "node apart, lies"]
TWINS = [name for name, (_, one) in AGENTS.items() if one.is_honest]
CHEATS = [name for name in AGENTS if name not in {*LIES, *TWINS}]
HONEST = ("values", "classes", "errors", "calls", "mocks")
CHANGE_THE_PROCESS = (
    *("builtins_replaced", "node_s_own_functions_for_callbacks", "tests_of_its_own"),
    *("prototypes_polluted_by_what_is_copied", "an_object_that_turns_into_what_is_wanted"),
)


def failed(told: Told) -> dict[str, str]:
    assert not told.forged
    assert told.outcomes, told.output
    return dict(told.messages)


def test_what_holds_in_one_process_holds_in_two() -> None:
    suites = [(HERE / f"{name}.test.js").read_text("utf-8") for name in HONEST]
    named = zip(HONEST, suites, strict=True)
    hidden = {
        "hidden.test.js": "const { describe } = require('node:test');\n"
        + "".join(f"describe('{name}', () => {{\n{text}}});\n" for name, text in named),
        "hidden.test.mjs": (HERE / "modules.test.mjs").read_text("utf-8"),
        "helper.mjs": "import { add } from './kit.mjs';\nexport const helped = (n) => add(n, 1);\n",
    }
    solution = {
        "kit.js": (HERE / "kit.js").read_text("utf-8"),
        "kit.mjs": "export const add = (a, b) => a + b;\n"
        "export class Point { constructor(x) { this.x = x; } }\n"
        "export default () => 'default';\n"
        "export const fail = () => { throw new Error(); };\n",
        "old.cjs": "exports.twice = (n) => 2 * n;\n",
        "bad.mjs": "throw new Error('at once');\n",
    }
    told = judge_apart(hidden, solution, "hidden.test.js", "hidden.test.mjs")
    assert failed(told) == {}, told.output
    for start in (*(f"hidden.test.js::{name} > " for name in HONEST), "hidden.test.mjs::"):
        assert told.of(start), start


_ALL_AT_ONCE = """
const { Judge } = require(process.argv[1]);
const forged = require(process.argv[2]);
const told = {};
for (const [name, make] of Object.entries(forged)) {
  const frames = [];
  let lost = '';
  const link = {
    send(text) {
      const [kind, number] = JSON.parse(text);
      if (kind === 'q') frames.push(make(number));
    },
    wait: () => frames.pop(),
    hold() {},
    release() {},
  };
  const judge = new Judge(link, {
    root: '/', patience: 1000, loose: [], current: () => undefined, undecided() {},
    lost(why) { lost ||= why; throw new Error(why); },
  });
  try {
    told[name] = ['took', typeof judge.load('/a.test.js', './kit.js', 'require')];
  } catch (error) {
    told[name] = [lost];
  }
  link.lost = 'it ended';
}
console.log(JSON.stringify(told));
"""


class TestContract:
    """The reference gives the types, the submission the values, the test decides."""

    @pytest.fixture(scope="class")
    @classmethod
    def told(cls) -> Told:
        """All cases at once, in two files of tests."""
        tests, references, kits = _sources({"cheats": CHEATS, "twins": TWINS})
        tests["callbacks.test.js"] = f"""{HEAD}
        const kit = require('./each.js');
        test('each', () => kit.each([1], (one) => assert.strictEqual(one, 1)));
        test('own', () => kit.each([], () => {{}}));
        """
        tests["no_tests.test.js"] = f"""{HEAD}
        for (const name of require('./names.js').names) test(name, () => {{}});
        """
        kits["names.js"] = "exports.names = [];"
        references["names.js"] = "exports.names = ['a'];"
        kits["each.js"] = "exports.each = () => {};"
        references["each.js"] = "exports.each = (list, fn) => list.forEach((one) => fn(one));"
        return judge_apart(tests, kits, *tests, reference=references)

    @each("name", CHEATS)
    def test_a_cheat_fails(self, told: Told, name: str) -> None:
        outcomes = _outcomes_of(told, name)
        assert set(outcomes.values()) == {"failed"}, (outcomes, told.output)

    @each("name", TWINS)
    def test_an_honest_twin_passes(self, told: Told, name: str) -> None:
        outcomes = _outcomes_of(told, name)
        assert set(outcomes.values()) == {"passed"}, (failed(told), told.output)

    def test_a_failed_test_says_why(self, told: Told) -> None:
        assert "object:a_value_that_changes.mean()" in told.heard.undecided
        said = told.messages["cheats.test.js::a_value_that_changes: mean"]
        assert said == (
            "a_value_that_changes.mean() is a value in the reference, and here an object of Object"
        )

    def test_a_callback_that_nobody_called_is_told(self, told: Told) -> None:
        assert set(told.of("callbacks.test.js::").values()) == {"passed"}, told.output
        said = "callbacks.test.js::each: each.each()<1> was not called, as the reference does"
        assert said in told.heard.notes
        assert not [note for note in told.heard.notes if note.startswith("callbacks.test.js::own")]

    def test_tests_of_names_that_are_not_there_are_no_script_that_passed(self, told: Told) -> None:
        assert told.outcomes["no_tests.test.js"] == "error"
        assert told.messages["no_tests.test.js"].startswith("no test was declared")

    def test_an_argument_is_changed_at_which_the_test_looks_again(self) -> None:
        tests = """
        const { sorted, later } = require('./kit.js');
        test('looks', () => { const a = [3, 1]; sorted(a); assert.deepStrictEqual(a, [3, 1]); });
        test('looks later', async () => {
          const day = new Date(0);
          assert.strictEqual(+(await later(day)), 9);
          assert.strictEqual(+day, 0);
        });
        test('does not', () => { const a = [3, 1]; assert.deepStrictEqual(sorted(a), [1, 3]); });
        test('sorts', () => { const a = [3, 1]; assert.deepEqual(sorted(a), [...a].sort()); });
        """
        hidden = {"hidden.test.js": HEAD + tests}
        right = "exports.sorted = (list) => [...list].sort();"
        right += "exports.later = async (day) => new Date(+day + 9);"
        scrambles = {"seed": SEED, "learns": True, "needs": {"": ["scrambles:"]}}
        seen = judge_apart(hidden, {"kit.js": right}, "hidden.test.js", contract=scrambles)
        assert {*failed(seen)} == {"hidden.test.js::looks", "hidden.test.js::looks later"}
        learnt = judge_apart(
            hidden, {"kit.js": right}, "hidden.test.js", contract={"seed": SEED, "learns": True}
        )
        keeps = {name: [*learnt.heard.needs[name], "keeps:"] for name in failed(seen)}
        wrong = "exports.sorted = (list) => list.sort();"
        wrong += "exports.later = async (day) => { await null; day.setTime(9); return day; };"
        told = judge_apart(
            hidden,
            {"kit.js": wrong},
            "hidden.test.js",
            contract={"seed": SEED, "needs": {**learnt.heard.needs, **keeps}},
        )
        assert {*failed(told)} == {*keeps}
        assert set(told.heard.undecided) == {"changes:kit.sorted()", "changes:kit.later()"}

    def test_what_nobody_proved_is_refused(self) -> None:
        tests = """
        test('called', () => assert.strictEqual(require('./kit.js').add(1, 2), 3));
        test('caught', () => { try { require('./kit.js').add(1, 2); } catch {} });
        test('a value', () => assert.strictEqual(require('./kit.js').size, 3));
        """
        told = judge_apart(
            {"hidden.test.js": HEAD + tests},
            {"kit.js": "exports.add = (a, b) => a + b; exports.size = 3;"},
            "hidden.test.js",
            contract={},
        )
        outcomes = {name.rpartition(":")[2]: one for name, one in told.outcomes.items()}
        assert outcomes == {"called": "failed", "caught": "failed", "a value": "passed"}
        assert told.heard.undecided == ["object:kit.add"]

    def test_what_a_reference_needs_is_told_by_test(self) -> None:
        tests = """
        const kit = require('./kit.js');
        class Own {}
        describe('suite', () => test('makes', () => `${new kit.Point(1)}`));
        test('calls', () => { kit.sort([2, 1], (a, b) => a - b); kit.mean([]); });
        test('fails', () => assert.throws(() => new kit.Point(-1), kit.Odd));
        """
        kit = """
        exports.Odd = class Odd extends RangeError {};
        exports.Point = class Point {
          constructor(x) { if (x < 0) throw new exports.Odd(); this.x = x; }
          toString() { return String(this.x); }
        };
        exports.sort = (list, by) => { list.sort(by); return NaN; };
        exports.mean = (list) => list.length;
        """
        told = judge_apart(
            {"hidden.test.js": HEAD.replace("{ test }", "{ describe, test }") + tests},
            {"kit.js": kit},
            "hidden.test.js",
            contract={"seed": SEED, "learns": True},
        )
        assert failed(told) == {}, told.output
        needs = {test: {*entries} for test, entries in told.heard.needs.items()}
        assert needs["hidden.test.js::suite > makes"] >= {
            "class:kit.Point:Object",
            "object:kit.Point",
            "object:kit.Point()",
            "op:toString:kit.Point()",
            "leaves:kit.Point().toString()",
        }
        assert needs["hidden.test.js::calls"] >= {
            "changes:kit.sort()",
            "called:kit.sort()<1>",
            "nan:kit.sort()",
        }
        assert needs["hidden.test.js::fails"] >= {"raises:kit.Point()", "class:kit.Odd:RangeError"}


Files = dict[str, str]


def _sources(
    files: Mapping[str, Sequence[str]], alone: Sequence[str] = ()
) -> tuple[Files, Files, Files]:
    """Tests, references and submissions of agents: each has a module of its own.

    Those that are named with a file share it for their tests, but for some.
    """
    tests, references, kits = Files(), Files(), Files()
    for file, names in files.items():
        together = f"{file}.test.js"
        tests[together] = HEAD
        for name in names:
            scene, agent = AGENTS[name]
            solved, left = (str(one.files["kit.js"]) for one in (scene.agents[0], agent))
            text = str(scene.hidden["test_kit.js"])
            text = text.replace("./kit.js", f"./{name}.js").replace("test('", f"test('{name}: ")
            if name in alone:
                tests[f"{name}.test.js"] = HEAD + text
            else:
                tests[together] += f"{{{text}}}\n"
            references[f"{name}.js"], kits[f"{name}.js"] = solved, left
    return tests, references, kits


def _proven(tests: Files, references: Files) -> dict[str, object]:
    """What references need of tests that are named after them and each have a file of their own.

    It is learnt in one file, for each costs two processes; a reference changes nothing of its own.
    """
    alone = {file.removesuffix(".test.js"): file for file in tests}
    once = {
        "all.test.js": HEAD + "".join(f"{{{text.replace(HEAD, '')}}}" for text in tests.values())
    }
    told = judge_apart(once, references, *once, contract={"seed": SEED, "learns": True})
    assert not told.forged
    needs: dict[str, Sequence[str]] = {}
    for key, entries in told.heard.needs.items():
        test = key.partition("::")[2]
        file = alone.get(test.partition(": ")[0])
        needs |= {f"{file}::{test}": entries} if file else dict.fromkeys(tests, entries)
    return {"seed": SEED, "needs": needs}


def _outcomes_of(told: Told, name: str) -> dict[str, str]:
    return {key: one for key, one in told.outcomes.items() if f".test.js::{name}: " in key}


class TestLies:
    """What only the submission's own code could decide decides nothing."""

    def test_no_lie_passes_a_test(self) -> None:
        tests, references, kits = _sources({"lies": LIES}, alone=CHANGE_THE_PROCESS)
        together = tests.pop("lies.test.js")
        told = judge_apart({"lies.test.js": together}, kits, "lies.test.js", reference=references)
        apart = judge_apart(tests, kits, *tests, contract=_proven(tests, references))
        assert not apart.forged
        assert not apart.heard.tampering
        for name in LIES:
            outcomes = _outcomes_of(apart if name in CHANGE_THE_PROCESS else told, name)
            assert set(outcomes.values()) == {"failed"}, (name, outcomes, told.output)
        # What stands beside others has failed by itself.
        gone = [name for name, why in told.messages.items() if "submission's process" in why]
        assert not [name for name in gone if name.startswith("lies.test.js")]
        assert not told.forged
        assert not told.heard.tampering

    def test_what_the_case_names_may_decide(self) -> None:
        tests = """
        const { Kit } = require('./kit.js');
        test('equal', () => assert.deepStrictEqual(new Kit(1), new Kit(2)));
        test('awaited', async () => assert.strictEqual(await new Kit(1), 5));
        test('is one', () => assert.ok(new Kit(1) instanceof Kit));
        """
        kit = """
        exports.Kit = class Kit {
          #a; constructor(a) { this.#a = a; }
          then(done) { done(5); }
          static [Symbol.hasInstance]() { return true; }
        };
        """
        hidden = {"hidden.test.js": HEAD + tests}
        contract = {"needs": {f"hidden.test.js::{one}": _KIT for one in ("equal", "is one")}}
        contract["needs"] |= {"hidden.test.js::awaited": _KIT, "hidden.test.js": _KIT}
        told = judge_apart(hidden, {"kit.js": kit}, "hidden.test.js", contract=contract)
        assert set(told.outcomes.values()) == {"failed"}
        told = judge_apart(
            hidden, {"kit.js": kit}, "hidden.test.js", contract=contract, loose=["kit.Kit"]
        )
        assert failed(told) == {}, told.output


_KIT = ["object:kit.Kit", "object:kit.Kit()", "object:kit.Kit().then", "op:equal:kit.Kit()"]


class TestTheWire:
    """Whatever the other end sends, the judge decodes it strictly or hears no more of it."""

    def test_a_forged_frame_ends_the_conversation(self) -> None:
        words = [NODE, "-e", _ALL_AT_ONCE, str(BOUNDARY / "judge.cjs"), str(HERE / "forged.js")]
        told = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        assert told.pop("an honest one") == ["took", "object"]
        assert len(told) > 15
        assert {name: said for name, said in told.items() if "makes no sense" not in said[0]} == {}

    def test_a_frame_that_is_too_long_ends_the_conversation(self) -> None:
        host = """
        const net = require('net');
        function start() {
          const socket = net.connect(process.env.ASSAY_LINK);
          socket.on('error', () => {}).on('close', start);
          socket.on('data', () => socket.write(Buffer.from([0, 0, 0, 64, 1, 1])));
        }
        start();
        start(); // a reference's file asks another
        """
        told = judge_apart({"hidden.test.js": HEAD + ALONE}, {}, "hidden.test.js", launcher=host)
        assert told.outcomes["hidden.test.js::does not"] == "passed", told.output
        assert "too much at once" in told.messages["hidden.test.js::needs it"]

    def test_no_frame_goes_to_a_file_that_has_the_number_of_a_closed_socket(
        self, tmp_path: Path
    ) -> None:
        program = """
        const fs = require('fs');
        const fd = Number(process.argv[2]);
        const link = require(process.argv[1]).open(fd);
        const clock = new Int32Array(new SharedArrayBuffer(4));
        for (let opened; opened !== fd; opened = fs.openSync('mine.txt', 'w')) {
          if (opened > fd) fs.closeSync(opened);
          Atomics.wait(clock, 0, 0, 5);
        }
        link.send('a frame');
        console.log(JSON.stringify([fs.statSync('mine.txt').size, link.lost]));
        process.exit();
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.close()
            done = subprocess.run(
                [NODE, "-e", program, str(BOUNDARY / "link.cjs"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=tmp_path,
                capture_output=True,
                check=True,
                timeout=60,
            )
        assert json.loads(done.stdout) == [0, "it ended"]


ALONE = """
test('needs it', () => { const kit = require('./kit.js'); assert.ok(kit); kit.sum([1]); });
test('does not', () => assert.ok(true));
"""

_SHARED = "const shared = new Int32Array(new SharedArrayBuffer(4));"

# What becomes of the process of a submission in a call, and what is said of that.
ENDS = {
    "exits": ("exports.die = () => process.reallyExit(0);", "it ended"),
    "is killed": ("exports.die = () => process.kill(process.pid, 'SIGKILL');", "it ended"),
    "aborts": ("exports.die = () => process.abort();", "it ended"),
    "loops": (
        f"{_SHARED} exports.die = () => {{ for (;;) Atomics.wait(shared, 0, 0, 99); }};",
        "it did not answer within",
    ),
    "floods": ("exports.die = () => 'x'.repeat(33 << 20);", "too large"),
    "throws while it is asked": (
        "exports.die = () => new Proxy({}, { getPrototypeOf() { throw new Error('asked'); } });",
        "asked",
    ),
}


# A submission and tests of it, by the name of both files.
ENDINGS = {
    "never": (
        "exports.never = () => new Promise(() => {});",
        """
        test('never', async () => { await require('./never.js').never(); });
        test('other', () => {});
        """,
    ),
    "kept": (
        """
        let kept;
        exports.keep = (fn) => { kept = fn; };
        exports.use = () => { try { return kept(); } catch (error) { return error.message; } };
        globalThis.n = 0;
        exports.start = () => (globalThis.n += 1);
        """,
        """
        const kit = require('./kept.js');
        test('starts', () => assert.strictEqual(kit.start(), 1));
        test('is theirs', () => assert.strictEqual(require('./stub.js').add(1, 2), 3));
        const heard = [];
        test('gives', () => kit.keep(() => { heard.push(1); return 'called'; }));
        test('looks', () => {
          assert.match(kit.use(), /has ended/);
          assert.deepStrictEqual(heard, []);
        });
        test('may again', () => {
          kit.keep(() => 'called');
          assert.strictEqual(kit.use(), 'called');
        });
        """,
    ),
    "late": (
        """
        const odd = () => { throw new Error('nobody hears'); };
        exports.later = () => { setTimeout(odd, 5); };
        exports.call = (fn) => { setTimeout(() => fn(1), 5); };
        """,
        """
        const kit = require('./late.js');
        test('late', async () => {
          kit.later();
          await new Promise((resolve) => setTimeout(resolve, 300));
        });
        test('in a callback', (t, done) => {
          kit.call((value) => {
            assert.strictEqual(value, 2);
            done();
          });
        });
        """,
    ),
}


class TestTheEnd:
    """A host that is gone fails what needed it, and nothing else."""

    def test_only_the_test_that_it_ended_in_fails(self) -> None:
        """All of them at once, each in a file of its own."""
        tests, kits = dict[str, str](), dict[str, str]()
        for number, (kit, _) in enumerate(ENDS.values()):
            tests[f"{number}.test.js"] = f"""{HEAD}
            const kit = require('./kit{number}.js');
            test('{number}: before', () => assert.strictEqual(kit.add(1, 2), 3));
            test('{number}: dies', () => {{ assert.ok(kit.die()); }});
            test('{number}: behind', () => assert.strictEqual(kit.add(1, 2), 3));
            """
            kits[f"kit{number}.js"] = f"{kit}\nexports.add = (a, b) => a + b;"
        lives = dict.fromkeys(kits, "exports.die = () => 1; exports.add = (a, b) => a + b;")
        words = ["--test-concurrency=2", *tests]
        told = judge_apart(tests, kits, *words, contract=_proven(tests, lives), patience=8.0)
        for number, (name, (_, why)) in enumerate(ENDS.items()):
            file = f"{number}.test.js::{number}: "
            outcomes = {key.removeprefix(file): one for key, one in told.of(file).items()}
            wanted = {"before": "passed", "dies": "failed", "behind": "passed"}
            assert outcomes == wanted, (name, told.output)
            assert why in told.messages[f"{file}dies"], name

    @pytest.fixture(scope="class")
    @classmethod
    def told(cls) -> Told:
        """The others at once, each in a file of its own."""
        tests = {f"{name}.test.js": HEAD + test for name, (_, test) in ENDINGS.items()}
        kits = {f"{name}.js": kit for name, (kit, _) in ENDINGS.items()}
        kits["stub.js"] = "exports.add = (a, b) => a + b;"
        source = {"stub.js": "throw new Error('the stub was loaded');"}
        tests["again.test.js"] = tests["kept.test.js"]
        return judge_apart(tests, kits, "--test-concurrency=2", *tests, source=source)

    def test_a_promise_that_is_never_settled_fails_its_test(self, told: Told) -> None:
        outcomes = told.of("never.test.js::")
        wanted = {"never.test.js::never": "failed", "never.test.js::other": "passed"}
        assert outcomes == wanted, told.output

    def test_a_callback_is_dead_when_its_test_has_ended(self, told: Told) -> None:
        outcomes = told.of("kept.test.js::")
        assert (len(outcomes), set(outcomes.values())) == (5, {"passed"}), told.output

    def test_an_error_outside_of_a_call_fails_the_test(self, told: Told) -> None:
        outcomes = told.of("late.test.js::")
        assert (len(outcomes), set(outcomes.values())) == (2, {"failed"}), told.output
        assert "1 !== 2" in told.messages["late.test.js::in a callback"]

    def test_each_file_has_a_host_of_its_own(self, told: Told) -> None:
        for name in ("kept", "again"):
            assert told.outcomes[f"{name}.test.js::starts"] == "passed", told.output

    def test_a_source_s_own_version_is_not_loaded_by_the_judge(self, told: Told) -> None:
        assert told.outcomes["kept.test.js::is theirs"] == "passed", told.output
