"""The `assay` command as a user runs it: real processes, what they print and how they exit."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.cli import run as run_command
from assay.cli.main import main
from assay.errors import InputError
from assay.store.runs import Store
from tests.children import Children
from tests.command_line import COMMAND, assay, cells, echo_case, environment, result, write_case
from tests.each import each
from tests.processes import living, marker
from tests.written_files import write_files


def test_the_exit_status_is_the_printed_verdict(tmp_path: Path) -> None:
    for pattern, code, line in (("hello", 0, "PASS"), ("never there", 1, "FAIL")):
        echo_case(tmp_path, pattern=pattern)
        done = assay("run", "evals", cwd=tmp_path)
        assert (done.returncode, line in done.stdout) == (code, True), done.stdout + done.stderr
        assert assay("report", cwd=tmp_path).returncode == code
    echo_case(tmp_path, name="good")
    for bar, code in (("0.5", 0), ("0.6", 1)):  # which judges the mean
        assert assay("run", "evals", "--fail-under", bar, cwd=tmp_path).returncode == code


def test_a_model_that_echo_never_asks_is_said(tmp_path: Path) -> None:
    """`models: [gpt-5]` passed, and nobody had asked it."""
    echo_case(tmp_path)
    assert "echo asks no model" not in assay("run", "evals", cwd=tmp_path).stderr
    done = assay("run", "evals", "--model", "gpt-5", cwd=tmp_path)
    assert "echo asks no model: it gives the prompt back for 'gpt-5', too" in done.stderr


def test_each_harness_and_model_that_is_named_is_run_whatever_the_case_lists(
    tmp_path: Path,
) -> None:
    """Of two, the one that the case did not list was dropped, without a word."""
    case = write_case(
        tmp_path,
        """
        id: c1
        task: {prompt: "hello"}
        matrix: {harnesses: [replay], models: [good]}
        graders: [{type: contains, substring: hello}]
        """,
    )
    write_files(case, {"recordings/good/answer.txt": "hello"})
    (tmp_path / "m.py").write_text("async def mine(run):\n    return 'hello'\n", "utf-8")
    named = ("--harness", "replay", "--harness", "echo", "--harness", "m.py:mine")
    done = assay("run", "evals", *named, "--json", cwd=tmp_path)
    assert [(c["harness"], c["model"], c["passed"]) for c in cells(done)] == [
        ("echo", "good", True),
        ("m.py:mine", "good", True),
        ("replay", "good", True),
    ]


def _stored(root: Path) -> int:
    listed = assay("runs", "--json", cwd=root)
    ends = [run["ends"] for run in result(listed)["items"]]
    return sum(one["passed"] + one["failed"] + one["scored"] for one in ends)


@pytest.mark.soak
def test_hundreds_of_cells_survive_kill_9_and_resume_repeats_nothing(
    tmp_path: Path, children: Children
) -> None:
    echo_case(tmp_path, trials=400)
    # What is killed cannot remove the directories of its cells.
    command, env = [*COMMAND, "run", "evals"], environment(tmp_path) | {"TMPDIR": str(tmp_path)}
    process = children.start(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    for line in process.stderr:  # killed when it says that a fifth is done
        if "20 %" in line:
            process.kill()
            break
    process.wait()
    kept = _stored(tmp_path)
    assert 80 <= kept < 400
    done = assay("run", "--resume", "latest", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert [c["trial"] for c in cells(done)] == list(range(1, 401))
    assert f"of {400 - kept} cells" in done.stderr
    again = assay("run", "--resume", "latest", cwd=tmp_path)
    assert again.returncode == 0
    assert "of 0 cells" in again.stderr or "cells" not in again.stderr


@pytest.mark.soak
def test_memory_does_not_grow_with_the_number_of_cells(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from assay.cli.main import main\n"
        "try: main(['run', 'evals', '--json', '--trials', sys.argv[1]])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    echo_case(tmp_path)
    peaks: list[int] = []
    for trials in ("100", "350"):
        done = subprocess.run(
            [sys.executable, "-c", script, trials],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stderr.splitlines()[-1]))
    assert peaks[1] - peaks[0] < 3_000  # KiB for 250 more cells


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(
    tmp_path: Path, children: Children
) -> None:
    write_case(
        tmp_path,
        """
        id: c1
        task: {prompt: "hello"}
        matrix: {harnesses: [sleepy], models: [quick, slow]}
        graders: [{type: files, patterns: ["x"]}]
        """,
    )
    mark = marker()
    script = f'touch done; [ "$1" = quick ] || sleep {mark}'
    (tmp_path / "harnesses.yaml").write_text(
        json.dumps({"sleepy": {"argv": ["/bin/sh", "-c", script, "sh", "{model}"]}}), "utf-8"
    )
    command = [*COMMAND, "run", "evals", "--workers", "2"]
    process = children.start(command, cwd=tmp_path, env=environment(tmp_path))
    assert process.stderr is not None
    first = process.stderr.readline()
    assert "1 of 2" in first, first
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "assay run --resume" in said
    assert _stored(tmp_path) == 1
    assert not living(mark)


def test_resume_refuses_a_changed_case_and_regrade_grades_what_was_kept(tmp_path: Path) -> None:
    echo_case(tmp_path, trials=2, pattern="never there")
    assert assay("run", "evals", cwd=tmp_path).returncode == 1
    echo_case(tmp_path, trials=2, pattern="hello")
    refused = assay("run", "--resume", "latest", cwd=tmp_path)
    assert refused.returncode == 2
    assert "cases changed, or assay did" in refused.stderr
    regraded = assay("run", "--resume", "latest", "--regrade", "--json", cwd=tmp_path)
    assert regraded.returncode == 0, regraded.stderr
    assert [c["reward"] for c in cells(regraded)] == [1.0, 1.0]
    assert assay("run", "--resume", "latest", cwd=tmp_path).returncode == 0


def test_help_loads_none_of_the_heavy_parts(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom assay.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('rich', 'yaml', 'pydantic', 'asyncio', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[]"


_PASSES_PERMISSIONS = 0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def _bound_by_permissions() -> Generator[None]:
    """As anybody who owns these files: root's thread lays down what lets it pass closed doors."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    had = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, had) == 0
    less = (ctypes.c_uint32 * 6)(*had)
    less[0] &= ~_PASSES_PERMISSIONS
    assert libc.capset(header, less) == 0
    try:
        yield
    finally:
        assert libc.capset(header, had) == 0


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A directory with one in it that nobody may look into, while the test runs not even root."""
    folder = tmp_path / "closed"
    folder.mkdir()
    for name in ("case.yaml", "graders.yaml", "grade.py", "rows.jsonl"):
        (folder / name).write_text("{}")
    folder.chmod(0)
    with _bound_by_permissions():
        yield tmp_path
    folder.chmod(0o700)


_CLOSED = """
run closed/case.yaml
run closed
validate closed/case.yaml
validate closed/graders.yaml
selftest closed/case.yaml
attack closed
list closed
list closed/case.yaml
serve grader closed/grade.py
serve grader closed/graders.yaml
grade closed/rows.jsonl closed/graders.yaml
grade rows.jsonl closed/grade.py
report --junit closed/r.xml
report --html closed/r.html
grade rows.jsonl graders.yaml --out closed/o.jsonl
calibrate graders.yaml closed/rows.jsonl
calibrate label closed/rows.jsonl
init closed/new
"""


@each("line", _CLOSED.split("\n")[1:-1])
def test_what_may_not_be_read_or_written_is_told_without_a_traceback(
    closed: Path, line: str
) -> None:
    (closed / "rows.jsonl").write_text('{"answer": "a", "expected": "a"}')
    (closed / "graders.yaml").write_text("- {type: exact_match}")
    done = assay(*line.split(), cwd=closed)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "closed" in done.stderr


_MISSING = {
    "file": (["bash", "agent.sh"], "no file 'agent.sh' in the sandbox"),
    "file below": (["bash", "-eu", "./agent.sh"], "no file './agent.sh' in the sandbox"),
    "program": (["sh", "-c", "agent --now || true"], "no program 'agent' in the sandbox"),
    "file of python": (["sh", "-c", "python3 agent.py"], "no file 'agent.py' in the sandbox"),
}
_THERE = (
    ["bash", "here.sh"],
    ["bash", "-c", "source here.sh; nobody"],
    ["sh", "-c", "exit 127"],
    ["bash", "-c", "{prompt}"],
    ["bash", "-o", "pipefail", "here.sh"],
    ["python3", "-X", "utf8", "-c", "1"],
)


@pytest.mark.sandbox
def test_a_missing_script_is_an_error_before_it_starts_and_an_end_with_127_is_graded(
    tmp_path: Path,
) -> None:
    agents = {name: argv for name, (argv, _) in _MISSING.items()}
    agents |= {f"there {number}": argv for number, argv in enumerate(_THERE)}
    case = write_case(
        tmp_path,
        f"""
        id: c1
        task: {{prompt: "nobody is called so"}}
        source: {{path: source}}
        matrix: {{harnesses: {json.dumps(list(agents))}, models: [m]}}
        graders: [{{type: contains, substring: done}}]
        """,
    )
    declared = json.dumps({name: {"argv": argv} for name, argv in agents.items()})
    write_files(case, {"source/here.sh": "echo done\n", "harnesses.yaml": declared})
    done = assay("run", "evals", "--json", cwd=tmp_path)
    found = {str(cell["harness"]): cell for cell in cells(done)}
    assert (done.returncode, found.keys()) == (3, agents.keys()), done.stderr
    for name, cell in found.items():
        if name in _MISSING:
            assert (cell["status"], cell["reward"]) == ("error", None), name
            assert _MISSING[name][1] in str(cell["error"])
        else:
            assert cell["status"] == "graded", cell


def test_a_matrix_that_is_refused_before_its_first_cell_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a cluster refuses tasks of a Python file."""
    echo_case(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_DB", raising=False)

    def refuse(*_: object, **__: object) -> int:
        raise InputError("it cannot be run there")

    monkeypatch.setattr(run_command, "_carry_out", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["run", "evals"])
    assert (ended.value.code, capsys.readouterr().err) == (2, "error: it cannot be run there\n")
    with Store.open(str(tmp_path / ".assay")) as store:
        assert list(store.runs()) == []


def test_a_case_says_how_often_is_enough(tmp_path: Path) -> None:
    rates = Path(__file__).parents[2] / "examples" / "rates"

    def run(name: str, *more: str) -> tuple[int, str]:
        agent = f"{rates}/wavering.py:{name}"
        done = assay("run", str(rates), "--harness", agent, *more, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    code, said = run("often", "--trials", "10")
    assert (code, "pass rate 0.90" in said) == (0, True), said
    assert run("seldom", "--trials", "10")[0] == 1
    code, said = run("often")
    assert (code, "of 2 trials or more, and each agent has 1" in said) == (2, True)
    assert "--trials 10" in said
    run("often", "--trials", "10")
    assert assay("regrade", "latest", cwd=tmp_path).returncode == 0


# Ctrl-C before there is anything to keep

_LOADING = "import os, signal; import assay.__main__ as start; "
_INTERRUPT = "os.kill(os.getpid(), signal.SIGINT); print('went on')"


def started(code: str, *, handler: str = "default_int_handler") -> tuple[int, str, str]:
    begin = f"import signal; signal.signal(signal.SIGINT, signal.{handler}); "
    done = subprocess.run(
        [sys.executable, "-c", begin + _LOADING + code], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_while_the_command_is_loaded_ends_it_unless_that_is_ignored() -> None:
    assert started(_INTERRUPT) == (-signal.SIGINT, "", "")
    assert started(_INTERRUPT, handler="SIG_IGN") == (0, "went on\n", "")


@pytest.mark.parametrize("words", [["doctor"], ["grade", "x.jsonl", "x.yaml"]])
def test_a_command_that_is_loaded_hears_of_the_interrupt(words: list[str]) -> None:
    code = (
        f"import sys; import assay.cli.{words[0]} as command\n"
        f"def run(given): {_INTERRUPT}\n"
        f"command.run = run; sys.argv = {['assay', *words]!r}\n"
        "start.main()"
    )
    code_of_exit, out, err = started(code)
    assert (code_of_exit, out) == (130, "")
    assert err == "interrupted; what was finished is kept\n"
