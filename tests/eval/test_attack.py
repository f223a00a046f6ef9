"""`assay attack`: cheats that work, and cases that are told what they pay for.

A cheat that has a bug would make every case look safe. So each cheat that turns on its runner is
played here against a judge which believes everything, too, and has to fool that one.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

import assay.plugins as plugins_of_assay
from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AgentError, InputError
from assay.eval.cheats import FAMILIES, LIBRARY, Cheat, select_cheats
from assay.eval.proofs.attack import CheatTrial, plan_attack
from assay.eval.proofs.proof import CaseProof, Proof
from assay.eval.proofs.scene import Scene, read_scene
from assay.reports.page import TextPage
from assay.reports.proofs import attack_line, render_proof
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.tasks.case import Case, load_case
from assay.tasks.task import case_task
from assay.types.run import Run
from assay.types.submission import Workspace
from tests.cases_to_prove import ANSWER as _SOUND
from tests.cases_to_prove import played, write
from tests.command_line import COMMAND, assay, environment, result

_WEAK = """
    id: weak
    task: {prompt: "Write mathkit.py."}
    source: {path: source}
    matrix: {harnesses: [replay], models: [fix]}
    graders:
      - {type: command, name: ready, cmd: 'test -f done'}
"""


def attack(
    root: Path, cheats: Sequence[Cheat], *, max_reward: float | None = None
) -> tuple[Proof, dict[str, CheatTrial]]:
    plan = plan_attack([case_task(load_case(str(root)))], cheats, max_reward=max_reward)
    findings, _ = played(plan, root)
    attempts = [one for one in findings.cases[0].checks if isinstance(one, CheatTrial)]
    return findings, {attempt.name: attempt for attempt in attempts}


def cheat(deeds: Deeds | None, ident: str = "own") -> Cheat:
    return Cheat(id=ident, title="t", family="answers", deeds=lambda scene: deeds)


@pytest.mark.sandbox
def test_a_command_that_only_looks_for_a_file_pays(tmp_path: Path) -> None:
    root = write(tmp_path, _WEAK, {"source/mathkit.py": "x = 1\n"})
    findings, found = attack(root, select_cheats(["artefacts", "answer-echo"]))
    assert findings.code == 1
    paid = found["files-asked-for"]
    assert (paid.outcome, paid.reward, paid.paid_by) == ("passes", 1.0, ("ready",))
    assert "what the work does" in paid.fix
    assert (found["answer-echo"].outcome, found["answer-echo"].fix) == ("holds", "")


def test_a_directory_that_a_command_searches_is_no_file_to_leave(tmp_path: Path) -> None:
    scene = _scene(tmp_path, _PYTHON, _HIDDEN, "test -s README.md && ! grep -ri password . ./ ..")
    (cheat_played,) = [one for one in select_cheats(["artefacts"]) if one.id == "files-asked-for"]
    deeds = cheat_played.deeds(scene)
    assert deeds is not None
    assert list(deeds.files) == ["README.md"]


@pytest.mark.sandbox
def test_patterns_in_dead_code_pay_without_passing(tmp_path: Path) -> None:
    pattern = '"max_retries\\\\s*=\\\\s*\\\\d+"'
    text = _WEAK.replace("test -f done", "false")
    text += f"      - {{type: files, patterns: [{pattern}], weight: 0.5}}\n"
    root = write(tmp_path, text, {"source/mathkit.py": "x = 1\n"})
    findings, found = attack(root, select_cheats(["answers"]))
    assert (findings.code, found["answer-dead-code"].outcome) == (0, "pays")
    assert found["answer-dead-code"].reward == pytest.approx(1 / 3)
    assert attack(root, select_cheats(["answer-dead-code"]), max_reward=0.2)[0].code == 1
    assert attack(root, select_cheats(["answer-dead-code"]), max_reward=0.4)[0].code == 0


def test_a_sound_case_holds_against_every_answer(tmp_path: Path) -> None:
    findings, found = attack(write(tmp_path, _SOUND), select_cheats(["answers", "traces"]))
    assert findings.code == 0, found
    assert {attempt.outcome for attempt in found.values()} == {"holds"}


@pytest.mark.sandbox
def test_attack_an_answer_that_is_no_number_is_paid_and_named(tmp_path: Path) -> None:
    function = """
        async def grade(thread):
            try:
                said = float(thread.completion())
            except ValueError:
                return 1.0 if "longest" in thread.completion() else 0.0
            return min(1.0, said / 1000)
    """
    text = _SOUND.replace("exact_match}", "function, file: grade.py, name: size}")
    root = write(tmp_path, text, {"grade.py": textwrap.dedent(function)})
    findings, found = attack(root, select_cheats(["hollow answers", "answer-keywords"]))
    assert findings.code == 1
    passing = {name for name, one in found.items() if one.outcome == "passes"}
    assert passing == {"answer-infinity", "answer-nan", "answer-digits", "answer-keywords"}
    assert found["answer-infinity"].paid_by == ("size",)
    assert "math.isfinite" in found["answer-infinity"].fix
    assert found["answer-empty-list"].outcome == "holds"


def test_an_answer_that_is_the_expected_one_or_that_nobody_grades_is_no_cheat(
    tmp_path: Path,
) -> None:
    root = write(tmp_path / "expected", _SOUND.replace('"42"', '"[]"'))
    _, found = attack(root, select_cheats(["answer-empty-list", "answer-empty-object"]))
    assert found.keys() == {"answer-empty-object"}
    root = write(tmp_path / "files", _WEAK, {"source/mathkit.py": "x = 1\n"})
    findings, found = attack(root, select_cheats(["hollow answers"]))
    assert (findings.code, found) == (3, {})
    assert attack_line(findings) == "NO VERDICT: no cheat was played"


def _raising(root: Path, line: str) -> Path:
    """A case with a grader that gives 0, unless a line of its own raises before."""
    own = f"""
        from assay.graders import Grader

        class Own(Grader):
            @classmethod
            async def compute_score(cls, answer: str = "") -> float:
                {line}
                return 0.0
    """
    return write(root, _SOUND + "      - {type: 'python:./own.py:Own'}\n", {"own.py": own})


def test_a_cheat_that_keeps_itself_from_being_graded_escapes(tmp_path: Path) -> None:
    raises = 'if len(answer) > 100_000: raise MemoryError("too long to read")'
    findings, found = attack(_raising(tmp_path, raises), select_cheats(["answer-huge"]))
    assert (findings.code, found["answer-huge"].outcome) == (1, "escapes")
    assert "too long to read" in found["answer-huge"].said


@pytest.mark.sandbox
def test_what_cannot_be_played_begun_or_graded_leaves_no_verdict(tmp_path: Path) -> None:
    broken = cheat(Deeds(files={"../outside": b"x"}))
    findings, found = attack(write(tmp_path / "played", _SOUND), [broken])
    assert (findings.code, found["own"].outcome) == (3, "not played")
    text = _SOUND + "    setup: {run: ['exit 3']}\n"
    findings, found = attack(write(tmp_path / "begun", text), select_cheats(["answers"]))
    assert (findings.code, found) == (3, {})
    assert "exit 3" in findings.cases[0].checks[0].said
    raises = 'raise RuntimeError("no judge today")'  # also where nothing is done
    findings, _ = attack(_raising(tmp_path / "graded", raises), select_cheats(["answers"]))
    assert findings.code == 3
    assert "no judge today" in findings.cases[0].checks[0].said


@pytest.mark.parametrize("reward", [-0.1, 1.1])
def test_a_largest_reward_outside_of_the_range_is_bad_input(reward: float) -> None:
    with pytest.raises(InputError, match="largest reward"):
        plan_attack([], LIBRARY, max_reward=reward)


def test_the_best_paid_comes_first() -> None:
    def attempt(ident: str, reward: float) -> CheatTrial:
        return CheatTrial(
            name=ident, verdict="held", reward=reward, title="", family="answers", outcome="pays"
        )

    case = CaseProof(
        case="c", file="", threshold=1.0, checks=(attempt("a", 0.1), attempt("b", 0.3))
    )
    said = io.StringIO()
    render_proof(TextPage(said, width=80), Proof((case,)), attack_line)
    assert said.getvalue().index(" b ") < said.getvalue().index(" a ")


# The library.


def test_cheats_are_chosen_by_id_or_family() -> None:
    assert len({cheat.id for cheat in LIBRARY}) == len(LIBRARY) >= 60
    assert {cheat.family for cheat in LIBRARY} == set(FAMILIES)
    assert all(cheat.title and cheat.title == cheat.title.strip(".") for cheat in LIBRARY)
    chosen = [cheat.id for cheat in select_cheats(["traces", "fork-bomb"])]
    assert chosen == ["fork-bomb", "trace-in-answer", "trace-files"]
    assert select_cheats([]) == LIBRARY
    with pytest.raises(InputError, match="did you mean 'fork-bomb'"):
        select_cheats(["forkbomb"])


def _scene(root: Path, source: Mapping[str, str], hidden: Mapping[str, str], cmd: str) -> Scene:
    files = {f"source/{name}": text for name, text in source.items()}
    files |= {f"hidden/{name}": text for name, text in hidden.items()}
    inject = ", ".join(f"hidden/{name}" for name in hidden)
    text = f"""
    id: kit
    task: {{prompt: "Make it right."}}
    source: {{path: source}}
    matrix: {{harnesses: [echo], models: [m]}}
    graders:
      - {{type: tests, cmd: "{cmd}", inject: [{inject}], junit_xml: "reports/TEST-*.xml"}}
    """
    write(root, text, files)
    case: Case = load_case(str(root))
    return read_scene(case_task(case), case.task.prompt, str(root / "source"))


_PYTHON = {
    "mathkit.py": '''\
        """Maths."""
        from __future__ import annotations

        def add(a, b):
            raise NotImplementedError

        def fib(n):
            raise NotImplementedError
        ''',
    "tests/test_old.py": "def test_old():\n    assert True\n",
}
_HIDDEN = {
    "test_hidden.py": """\
        import mathkit

        def test_add():
            assert mathkit.add(2, 3) == 5

        def test_fib():
            assert mathkit.fib(10) == 55
        """
}


def test_a_scene_knows_names_and_no_contents_of_hidden_tests(tmp_path: Path) -> None:
    scene = _scene(tmp_path, _PYTHON, _HIDDEN, "pytest -q")
    assert scene.hidden == ("test_hidden.py",)
    assert scene.test_ids == ("test_hidden.py::test_add", "test_hidden.py::test_fib")
    assert scene.reports == ("reports/TEST-*.xml",)
    assert list(scene.sources(".py")) == ["mathkit.py"]
    for cheat in LIBRARY:
        deeds = cheat.deeds(scene)
        left = b"".join(deeds.files.values()) + deeds.script.encode() if deeds else b""
        assert b"== 55" not in left, cheat.id


def test_every_cheat_can_be_played_wherever_it_applies(tmp_path: Path) -> None:
    add = "exports.add = () => {};"
    javascript = {"kit.js": add, "package.json": "{", "go.mod": "", "a.go": ""}
    scenes = [
        _scene(tmp_path / "python", _PYTHON, _HIDDEN, "make && pytest -q"),
        _scene(tmp_path / "node", javascript, {"a.test.js": ""}, "npm test"),
        _scene(tmp_path / "c", {"kit.c": "", "kit.h": ""}, {}, "make check"),
        _scene(tmp_path / "bare", {"README": "x"}, {}, "true"),
    ]
    answered = write(tmp_path / "answered", _SOUND)
    scenes.append(read_scene(case_task(load_case(str(answered))), "What is 19 and 23?", None))
    applied = {c.id for scene in scenes for c in LIBRARY if c.deeds(scene) is not None}
    needs_more = {"git-history", "packages-tampered", "scripts-replaced", "files-asked-for"}
    needs_more |= {"answer-dead-code"}
    assert {cheat.id for cheat in LIBRARY} - applied <= needs_more


async def _judged_naively(
    scene: Scene, deeds: Deeds, root: Path, cmd: str, *, plugins: bool = False
) -> CommandResult:
    """What a judge sees who copies the tests over the agent's tree and runs them there."""
    place = root / "tree"
    shutil.copytree(root / "source", place)
    await ScriptedAgent(deeds=deeds)(Run(workspace=Workspace(path=str(place))))
    for path in scene.hidden:
        shutil.copy(root / "hidden" / path, place / path)
    # pytest loads assay's own plug-in where it loads any, and that may be installed as a link.
    own = str(Path(plugins_of_assay.__file__).parents[2])
    shown = {sys.prefix, os.path.realpath(sys.base_prefix), sys.base_prefix, own}
    return await run_command(
        ["/bin/sh", "-c", cmd],
        workspace=str(place),
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "" if plugins else "1"},
        mounts=[Mount(source=p, target=p) for p in sorted(shown) if not p.startswith("/usr")],
        limits=Limits(wall_seconds=60),
    )


_UNITTEST = """\
    import unittest
    import mathkit

    class TestAdd(unittest.TestCase):
        def test_add(self):
            self.assertEqual(mathkit.add(2, 3), 5)
    """
# Not "replace-tests": it races the tests, and which of them wins is up to the machine.
FOOLS_PYTEST = (
    *("conftest-rewrite", "conftest-deselect", "conftest-exit", "pytest-options", "pytest-plugin"),
    *("runner-shadow", "standard-shadow", "exit-at-import", "exit-at-call", "exit-at-end"),
    *("become-true", "skip-tests", "expect-failure", "yes", "equal-subclass"),
    *("patch-pytest", "register-plugin", "oracle-on-disk", "oracle-in-source"),
    *("oracle-in-code", "compiled-code", "report-late", "output-flood", "fork-bomb"),
)


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("ident", [*FOOLS_PYTEST, "patch-unittest"])
def test_the_cheat_fools_a_judge_who_believes_its_runner(ident: str, tmp_path: Path) -> None:
    hidden, cmd = _HIDDEN, "pytest -q test_hidden.py"
    if ident == "patch-unittest":
        hidden, cmd = {"test_hidden.py": _UNITTEST}, "unittest test_hidden"
    scene = _scene(tmp_path, _PYTHON, hidden, cmd.split()[0])
    deeds = select_cheats([ident])[0].deeds(scene)
    assert deeds is not None
    cmd = f"{sys.executable} -m {cmd}"
    plugins = ident == "pytest-plugin"  # the others are quicker without
    result = asyncio.run(_judged_naively(scene, deeds, tmp_path, cmd, plugins=plugins))
    assert result.exit_code == 0, result


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    "ident", ["js-exit", "js-patch-assert", "js-patch-runner", "js-oracle", "build-files"]
)
@pytest.mark.parametrize("kind", ["commonjs", "module"])
def test_the_cheat_fools_a_judge_who_believes_node(ident: str, kind: str, tmp_path: Path) -> None:
    source = {"package.json": '{"scripts": {"test": "node --test"}}'}
    if kind == "module":
        source["kit.mjs"] = "export function add(a, b) { throw new Error('to do'); }\n"
        start = (
            "import test from 'node:test';\nimport assert from 'node:assert';\n"
            "import { add } from './kit.mjs';\n"
        )
        name = "hidden.test.mjs"
    else:
        source["kit.js"] = "exports.add = function (a, b) { throw new Error('to do'); };\n"
        start = (
            "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "const { add } = require('./kit.js');\n"
        )
        name = "hidden.test.js"
    test = start + "test('add', () => assert.strictEqual(add(2, 3), 5));\n"
    scene = _scene(tmp_path, source, {name: test}, "npm test")
    deeds = select_cheats([ident])[0].deeds(scene)
    assert deeds is not None
    cmd = "npm test --silent" if ident == "build-files" else "node --test"
    result = asyncio.run(_judged_naively(scene, deeds, tmp_path, cmd))
    assert result.exit_code == 0, result


@pytest.mark.slow
@pytest.mark.sandbox
def test_what_exhausts_or_haunts_a_machine_gains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel takes seconds to hand out as much as is allowed otherwise.
    monkeypatch.setitem(
        cast("dict[str, object]", Limits.__init__.__kwdefaults__), "memory_bytes", 1 << 30
    )
    text = _WEAK.replace("test -f done", 'python3 -c "import mathkit"; test -f done')
    root = write(tmp_path, text, {"source/mathkit.py": "x = 1\n"})
    chosen = select_cheats(["resources", "background", "surroundings", "test edits", "traces"])
    findings, found = attack(root, chosen)
    assert {name: one for name, one in found.items() if one.outcome != "holds"} == {}
    assert findings.code == 0
    assert {"locked-out", "odd-names", "sparse-file", "daemon-writer"} < set(found)


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_case_with_hidden_tests_holds_against_what_surrounds_them(tmp_path: Path) -> None:
    _scene(tmp_path, _PYTHON, _HIDDEN, "python3 -m pytest -q test_hidden.py")
    text = (tmp_path / "case.yaml").read_text("utf-8")
    (tmp_path / "case.yaml").write_text(text.replace(', junit_xml: "reports/TEST-*.xml"', ""))
    chosen = select_cheats(["runner configuration", "test edits", "forged reports"])
    findings, found = attack(tmp_path, chosen)
    assert {name: one for name, one in found.items() if one.outcome != "holds"} == {}
    assert findings.code == 0
    assert {"conftest-rewrite", "tests-link-out", "report-late"} < set(found)


# The agent that plays them.


def play(place: Path, deeds: Deeds) -> None:
    asyncio.run(ScriptedAgent(deeds=deeds)(Run(workspace=Workspace(path=str(place)))))


def test_deeds_replace_what_is_in_the_way_have_any_name_and_never_leave_the_workspace(
    workspace: Path,
) -> None:
    name = b"invalid-\xff\n"
    play(workspace, Deeds(files={os.fsdecode(name): b"x"}))
    assert [os.fsencode(path.name) for path in workspace.iterdir()] == [name]
    with pytest.raises(AgentError, match="cannot write"):
        play(workspace, Deeds(files={"../outside": b"x"}))
    assert not (workspace.parent / "outside").exists()
    (workspace / "file").write_text("x")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "inner").write_text("x")
    (workspace / "link").symlink_to("/etc")
    files = {"file/below/it": b"1", "folder": b"#!2", "link/passwd": b"3"}
    play(workspace, Deeds(files=files, links={"file/below/link": "it"}))
    assert (workspace / "file" / "below" / "it").read_bytes() == b"1"
    assert os.access(workspace / "folder", os.X_OK)
    assert not (workspace / "link").is_symlink()
    assert (workspace / "file" / "below" / "link").read_bytes() == b"1"


@pytest.mark.sandbox
def test_a_script_runs_in_the_sandbox_and_what_it_leaves_stays(workspace: Path) -> None:
    script = "echo 1 > left; echo 2 > ../outside; exit 3"
    run = Run(workspace=Workspace(path=str(workspace)))
    asyncio.run(ScriptedAgent(deeds=Deeds(script=script, answer="done"))(run))
    assert (workspace / "left").read_text() == "1\n"
    assert not (workspace.parent / "outside").exists()
    assert run.trace.content == "done"


# The command.


def test_the_library_is_listed(tmp_path: Path) -> None:
    text = assay("attack", "--list", cwd=tmp_path).stdout
    assert all(cheat.id in text for cheat in LIBRARY)
    listed = result(assay("attack", "--list", "--json", cwd=tmp_path))["cheats"]
    assert [row["id"] for row in listed] == [cheat.id for cheat in LIBRARY]


@pytest.mark.sandbox
def test_the_report_says_what_pays_and_what_stops_it(tmp_path: Path) -> None:
    root = write(tmp_path, _WEAK, {"source/mathkit.py": "x = 1\n"})
    command = ("attack", str(root), "--case", "weak", "--cheat", "artefacts")
    command += ("--cheat", "answer-empty", "--workers", "2")
    done = assay(*command, cwd=tmp_path)
    assert done.returncode == 1
    assert "2 cheats to play; --cheat ID or FAMILY plays some of them" in done.stderr
    text = done.stdout
    for words in ("files-asked-for", "passes: ready", "fix artefacts:", "1 cheat gained nothing"):
        assert words in text
    (case,) = result(assay(*command, "--json", cwd=tmp_path))["cases"]
    assert [(a["name"], a["outcome"], a["verdict"]) for a in case["checks"]] == [
        ("answer-empty", "holds", "held"),
        ("files-asked-for", "passes", "failed"),
    ]


@pytest.mark.slow
@pytest.mark.sandbox
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    root = write(tmp_path / "case", _WEAK, {"source/mathkit.py": "x = 1\n"})
    own = tmp_path / "tmp"
    own.mkdir()
    with subprocess.Popen(
        [*COMMAND, "attack", str(root), "--cheat", "resources", "--cheat", "background", "--json"],
        env={**environment(tmp_path), "TMPDIR": str(own)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "cheats" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 130, said
        assert "nothing was kept" in said
        assert process.stdout.read() == ""
    assert list(own.iterdir()) == []
