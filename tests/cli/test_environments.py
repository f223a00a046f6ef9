"""Environments in Python on the command line: the same road as cases, from listing to proving."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from assay.scoring.json_safe import Json
from assay.store.runs import Store
from tests.command_line import assay, cells, echo_case, result, summary

_ENV = """
    from dataclasses import replace
    from pathlib import Path

    from assay import Environment
    from assay.graders import exact_match

    print("loaded")
    env = Environment("geography")
    CITIES = {"France": "Paris", "Kenya": "Nairobi"}


    def note(event):
        events = Path("events")
        events.write_text((events.read_text() if events.exists() else "") + event)


    @env.initialize
    async def begin():
        note("begin ")


    @env.shutdown
    async def end():
        note("end ")


    @env.template()
    async def capital(country: str = "France"):
        '''Ask for a capital.'''
        answer = yield f"What is the capital of {country}?"
        yield exact_match(answer, CITIES[country])


    tasks = [
        replace(capital(country=country), slug=country, metadata={"solution": city})
        for country, city in CITIES.items()
    ]
"""
_AGENT = """
    print("loaded")


    async def solve(run):
        if "Kenya" in run.prompt_text:
            raise RuntimeError("no idea")
        return "Paris"


    async def better(run):
        return "Paris" if "France" in run.prompt_text else "Nairobi"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    _write(tmp_path, "env.py", _ENV)
    _write(tmp_path, "agent.py", _AGENT)
    return tmp_path


def _write(place: Path, name: str, text: str) -> None:
    (place / name).write_text(textwrap.dedent(text), "utf-8")


def _change(place: Path, name: str, old: str, new: str) -> None:
    """Change a file as between two commands: another path, for a file is run once in a process."""
    file = place / name
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(file.resolve()):
            del sys.modules[name]


def _run(
    place: Path, agent: str = "agent.py:solve", *more: str, tasks: str = "env.py"
) -> subprocess.CompletedProcess[str]:
    return assay("run", tasks, "--harness", agent, *more, "--json", cwd=place)


def _told(done_cells: list[dict[str, Json]], *names: str) -> list[tuple[Json, ...]]:
    return [tuple(cell[name] for name in names) for cell in done_cells]


def test_tasks_of_a_file_are_run_stored_and_judged_like_cases(place: Path) -> None:
    done = _run(place, "agent.py:solve", "--group", "2")
    assert done.returncode == 3, done.stderr
    assert _told(cells(done), "case", "trial", "status", "reward") == [
        ("France", 1, "graded", 1.0),
        ("France", 2, "graded", 1.0),
        ("Kenya", 1, "error", None),
        ("Kenya", 2, "error", None),
    ]
    assert {str(cell["file"]) for cell in cells(done)} == {"env.py"}
    assert "RuntimeError: no idea (agent.py:" in str(cells(done)[2]["error"])
    assert (place / "events").read_text() == "begin end "
    assert "env.py" in assay("runs", cwd=place).stdout
    shown = assay("report", "latest", "--case", "France", "--trial", "1", cwd=place)
    assert "What is the capital of France?" in shown.stdout


def test_a_run_of_tasks_is_resumed_with_what_is_missing_unless_a_template_changed(
    place: Path,
) -> None:
    _run(place)
    _change(place, "env.py", '"Paris"', '"Lyon"')
    done = assay("run", "--resume", "latest", cwd=place)
    assert (done.returncode, "cases changed" in done.stderr) == (2, True), done.stderr
    _change(place, "env.py", '"Lyon"', '"Paris"')
    _change(place, "agent.py", 'raise RuntimeError("no idea")', 'return "Nairobi"')
    done = assay("run", "--resume", "latest", "--json", cwd=place)
    assert (done.returncode, summary(done)["passed"]) == (0, 2), done.stderr
    with Store.open(str(place / ".assay")) as store:
        (run,) = store.runs()
        assert sum(1 for _ in store.every_result(run.id)) == 3
    _change(place, "env.py", '"Paris"', '"Lyon"')
    done = assay("run", "--resume", "latest", "--regrade", "--json", cwd=place)
    assert cells(done)[0]["reward"] == 0.0


def test_tasks_and_cases_are_one_run(place: Path) -> None:
    echo_case(place)
    done = assay("run", "evals", "env.py", "--harness", "echo", "--json", cwd=place)
    assert _told(cells(done), "case", "reward") == [("France", 0.0), ("Kenya", 0.0), ("c1", 1.0)]


def test_an_agent_of_a_file_does_cases_too_but_no_case_may_name_one(place: Path) -> None:
    """A case from elsewhere would have had a Python file run on the host."""
    case = echo_case(place, pattern="x")
    done = _run(place, tasks="evals")
    assert _told(cells(done), "harness", "status") == [("agent.py:solve", "graded")]
    _change(case, "case.yaml", "[echo]", "['agent.py:solve']")
    done = assay("run", "evals", cwd=place)
    assert (done.returncode, "unknown harness 'agent.py:solve'" in done.stderr) == (2, True)
    assert "ask for it: assay run --harness agent.py:solve" in done.stderr


def test_rows_are_listed_written_and_run(place: Path) -> None:
    done = assay("list", "env.py", "--out", "rows.jsonl", cwd=place)
    assert done.returncode == 0, done.stderr
    assert 'capital(country: string = "France")' in done.stdout
    assert "Kenya" in done.stdout
    listed = assay("list", "rows.jsonl", "--env", "env.py", "--json", cwd=place)
    rows = result(listed)["tasks"]
    written = [json.loads(line) for line in (place / "rows.jsonl").read_text().splitlines()]
    assert [{name: row[name] for name in written[0]} for row in rows] == written
    (environment,) = result(listed)["environments"]
    assert environment["name"] == "geography"
    done = _run(place, "agent.py:better", "--env", "env.py", tasks="rows.jsonl")
    assert summary(done)["passed"] == 2


def test_cases_and_templates_that_need_arguments_are_listed(place: Path) -> None:
    _write(
        place,
        "bare.py",
        """
        from assay import Environment

        env = Environment("bare")


        @env.template()
        async def asks(question: str, n: int = 2):
            yield question
            yield 1.0
        """,
    )
    done = assay("list", "bare.py", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "asks(question: string, n: integer = 2)" in done.stdout
    assert "no tasks: every template needs arguments" in done.stdout
    echo_case(place)
    done = assay("list", "evals", "--json", cwd=place)
    (row,) = result(done)["tasks"]
    assert (row["slug"], row["kind"]) == ("c1", "case")


def test_what_was_answered_is_graded_again_by_the_template_as_it_is_now(place: Path) -> None:
    """A reward for an answer that nobody gave to this prompt would be unearned."""
    before = cells(_run(place, "agent.py:better"))
    _change(place, "env.py", "What is the capital", "What is the largest city")
    done = assay("regrade", "latest", cwd=place)
    assert done.returncode == 3
    assert "asks something else than what was answered" in done.stderr
    assert cells(assay("report", "latest", "--json", cwd=place)) == before
    _change(place, "env.py", "What is the largest city", "What is the capital")
    _change(place, "env.py", '"Nairobi"', '"Mombasa"')
    done = assay("regrade", "latest", "--json", cwd=place)
    assert _told(cells(done), "case", "reward") == [("France", 1.0), ("Kenya", 0.0)], done.stderr
    with Store.open(str(place / ".assay")) as store:
        (run,) = store.runs()
        digests = {cell.digest for cell, _, _ in store.every_result(run.id)}
    assert len(digests) == 4


def test_what_no_agent_answered_is_left_out_of_a_regrade(place: Path) -> None:
    _run(place)
    done = assay("regrade", "latest", cwd=place)
    assert "note: 1 cell kept nothing to grade" in done.stderr
    done = assay("regrade", "latest", "g.yaml", cwd=place)
    assert done.returncode == 2


def test_an_imported_run_does_not_choose_which_file_is_run_here(place: Path) -> None:
    """Its configuration names files; a stranger wrote it."""
    _run(place)
    assay("runs", "export", "latest", "--out", "out", cwd=place)
    for words in (("regrade", "latest"), ("run", "--resume", "latest")):
        other = {"ASSAY_DB": str(place / f"other-{words[0]}")}
        assert assay("runs", "import", "out", cwd=place, env=other).returncode == 0
        done = assay(*words, cwd=place, env=other)
        assert (done.returncode, "was imported" in done.stderr) == (2, True), done.stderr


def test_a_reward_beyond_1_is_1_in_the_cell_noted_and_told(place: Path) -> None:
    _write(
        place,
        "far.py",
        """
        from assay import Environment

        env = Environment("far")


        @env.template()
        async def far(reward: float = 3.5):
            yield "p"
            yield reward


        tasks = [far(), far(reward=-2.0)]
        """,
    )
    done = _run(place, "echo", tasks="far.py")
    assert sorted((cell["reward"], json.dumps(cell["notes"])) for cell in cells(done)) == [
        (0.0, '{"unclamped": -2.0}'),
        (1.0, '{"unclamped": 3.5}'),
    ]
    done = assay("report", "--all", cwd=place)
    assert "Clamped    2 rewards outside 0 to 1 cut to that" in done.stdout
    assert "-2.00 → 0.00 clamped; needs 1.00 → fail" in done.stdout
    done = assay("report", "--case", "far", cwd=place)
    assert "3.50 → 1.00 clamped; needs 1.00 → pass" in done.stdout


def test_templates_are_proven_by_their_solutions_and_floors(place: Path) -> None:
    done = assay("selftest", "env.py", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    (case, _) = result(done)["cases"]
    assert {check["verdict"] for check in case["checks"]} == {"held"}
    assert [check["name"] for check in case["checks"]] == [
        "reference solution",
        "floor no-op",
        "floor echo",
        "floor keywords",
        "floor answer-orders",
        "floor answer-claims",
        "floor answer-verdict",
        "repeats on reference",
        "repeats on no-op",
    ]
    assert (place / "events").read_text() == "begin end "
    assert "there is no store" in assay("runs", cwd=place).stderr


def test_a_template_that_pays_for_nothing_fails_its_proof_and_is_beaten(place: Path) -> None:
    _change(place, "env.py", "yield exact_match(answer, CITIES[country])", "yield 1.0")
    done = assay("selftest", "env.py", "--task", "Kenya", cwd=place)
    assert (done.returncode, "floor no-op" in done.stdout) == (1, True), done.stdout
    done = assay("attack", "env.py", "--task", "Kenya", "--cheat", "answers", cwd=place)
    assert (done.returncode, "beaten: Kenya by" in done.stdout) == (1, True), done.stdout


def test_groups_of_unequal_rewards_are_counted(place: Path) -> None:
    sometimes = 'return "Lyon" if run.trial == 1 else "Paris" if'
    _change(place, "agent.py", 'return "Paris" if', sometimes)
    _run(place, "agent.py:better", "--group", "3")
    assert "rewards differ in 2 of 2 groups" in assay("report", cwd=place).stdout
    numbers = summary(assay("report", "--json", cwd=place))
    assert (numbers["compared"], numbers["unequal"]) == (2, 2)


@pytest.mark.sandbox
def test_a_workspace_is_kept_shown_and_graded_again(place: Path) -> None:
    (place / "start").mkdir()
    (place / "start" / "sums.py").write_text("total = 0\n")
    _write(
        place,
        "repair.py",
        """
        from pathlib import Path

        from assay import Environment

        env = Environment("repair")
        files = env.workspace(Path(__file__).parent / "start")


        @env.template(workspace=files)
        async def fix():
            await files.run("echo begun > begun.txt", keep=True)
            yield "Let total be 6 in sums.py."
            yield 1.0 if files.read("sums.py") == "total = 6\\n" else 0.0


        async def fixes(run):
            here = Path(run.workspace.path)
            assert (here / "begun.txt").exists()
            (here / "sums.py").write_text("total = 6\\n")
            return "done"
        """,
    )
    done = _run(place, "repair.py:fixes", tasks="repair.py")
    assert [cell["reward"] for cell in cells(done)] == [1.0], done.stderr
    shown = assay("report", "latest", "--case", "fix", cwd=place)
    assert "changed sums.py" in shown.stdout
    assert "begun.txt" not in shown.stdout
    shown = assay("report", "latest", "--case", "fix", "--workspace", "left", cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert (place / "left" / "sums.py").read_text() == "total = 6\n"
    done = assay("regrade", "latest", "--json", cwd=place)
    assert [cell["reward"] for cell in cells(done)] == [1.0], done.stderr
    _write(place, "harnesses.yaml", "mine: {argv: [/bin/sh, -c, 'echo total = 6 > sums.py']}")
    done = _run(place, "mine", tasks="repair.py")
    assert [cell["reward"] for cell in cells(done)] == [1.0], done.stderr
    _change(place, "repair.py", '== "total = 6', '!= "total = 6')
    done = assay("regrade", "latest", "--json", cwd=place)
    assert [cell["reward"] for cell in cells(done)] == [0.0], done.stderr


def test_the_solution_of_a_task_of_several_steps_is_a_list_of_actions(place: Path) -> None:
    _write(
        place,
        "game.py",
        """
        from dataclasses import replace

        from assay import Environment
        from assay.environment import Observation

        env = Environment("game")


        @env.template(max_steps=3)
        async def walk():
            first = yield "Go left, then right."
            second = yield Observation("And now?")
            yield 1.0 if (first, second) == ("left", "right") else 0.0


        tasks = [replace(walk(), metadata={"solution": ["left", "right"]})]
        """,
    )
    done = assay("selftest", "game.py", cwd=place)
    assert (done.returncode, "PASS: 1 case proven" in done.stdout) == (0, True), done.stdout
    faked = assay("run", "game.py", "--model", "fake", "--json", cwd=place)
    assert _told(cells(faked), "case", "reward") == [("walk", 1.0)], faked.stderr
