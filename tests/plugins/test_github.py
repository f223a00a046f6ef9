"""The steps of `action.yml`, played as GitHub's runner plays them.

Its expressions are filled in, its scripts run by bash in the runner's environment with the runner's
files, and the API is a server on this machine. The cache is a directory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from assay.errors import InputError
from assay.plugins.github import _TOKEN, _assay, _share, markdown
from tests.command_line import write_case
from tests.endpoint_servers import Asked, faulty, raw

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = cast(
    "dict[str, Any]", yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
)
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
REPOSITORY = "someone/suite"
EVIL = "```\n</details> @everyone ![x](http://evil/x.png) <img src=x> [a](http://evil) $(id)`id`"


class GitHub:
    """The comments of one pull request, over the API of GitHub."""

    def __init__(self) -> None:
        self.url = ""
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.refuses = False

    def reply(self, connection: socket.socket, asked: Asked, over: threading.Event) -> None:
        """As a `FaultServer` has it."""
        status, body = self._answer(asked)
        raw(json.dumps(body), status)(connection, asked, over)

    def _answer(self, asked: Asked) -> tuple[int, object]:
        self.asked.append((asked.method, asked.path))
        if asked.headers["authorization"] != "Bearer the-token":
            return 401, {}
        if asked.method == "GET" and asked.path != "/user":
            return 200, self.comments if "&page=1" in asked.path else []
        if self.refuses or asked.path == "/user":
            return 403, {"message": "Resource not accessible by integration"}
        body = cast("dict[str, Any]", asked.json)
        if asked.method == "POST":
            assert asked.path == f"/repos/{REPOSITORY}/issues/7/comments"
            robot = {"login": "github-actions[bot]", "type": "Bot"}
            self.comments.append({"id": 100 + len(self.comments), "user": robot, **body})
            return 201, self.comments[-1]
        (one,) = [c for c in self.comments if asked.path.endswith(f"/comments/{c['id']}")]
        one.update(body)
        return 200, one


class Runner:
    """Plays the action's steps in a workspace, as a job after the other."""

    def __init__(self, home: Path, github: GitHub) -> None:
        self.workspace = home / "workspace"
        self.workspace.mkdir()
        self._home, self._github, self._cache = home, github, home / "cache"
        self._jobs = 0

    def job(self, *, base: str = "", **inputs: str) -> Job:
        """A job of a push, or with `base` of a pull request to that branch."""
        return self.jobs(inputs, base=base)[0]

    def jobs(self, *uses: Mapping[str, str], base: str = "") -> list[Job]:
        """One job that uses the action several times, each as a job of its own."""
        self._jobs += 1
        temp = self._home / f"temp{self._jobs}"
        temp.mkdir()
        (temp / "assay").symlink_to(sys.prefix)
        told = (
            {"pull_request": {"number": 7, "title": EVIL}} if base else {"ref": "refs/heads/main"}
        )
        (temp / "event.json").write_text(json.dumps(told), "utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(temp),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(temp),
            "GITHUB_API_URL": self._github.url,
            "GITHUB_EVENT_PATH": str(temp / "event.json"),
            "GITHUB_EVENT_NAME": "pull_request" if base else "push",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": str(self._jobs),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_HEAD_REF": EVIL if base else "",
            "ASSAY_DB": str(temp / "store"),
        }
        return [self._use(inputs, base, environment) for inputs in uses]

    def _use(self, inputs: Mapping[str, str], base: str, variables: dict[str, str]) -> Job:
        defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        context = {
            **{f"inputs.{name}": value for name, value in {**defaults, **inputs}.items()},
            "inputs.token": inputs.get("token", "the-token"),
            "github.base_ref": base,
            "github.ref_name": "" if base else "main",
            "github.run_id": str(self._jobs),
            "github.action_path": str(ROOT),
            "github.token": "the-token",
            "runner.temp": variables["RUNNER_TEMP"],
        }
        job = Job()
        for step in STEPS:
            if step["name"] != "Install assay":  # tests/test_wheel.py installs
                self._step(step, context, variables, job)
        return job

    def _step(
        self, step: dict[str, Any], context: dict[str, str], variables: dict[str, str], job: Job
    ) -> None:
        condition = str(step.get("if", "${{ success() }}"))
        is_always = "always()" in condition
        if (job.failed and not is_always) or not wanted(condition, context):
            return
        if used := step.get("uses"):
            given = {name: filled(text, context) for name, text in step["with"].items()}
            self._cached(used.partition("@")[0], given)
            return
        own = {name: filled(text, context) for name, text in step.get("env", {}).items()}
        temp = Path(variables["RUNNER_TEMP"])
        files = {name: temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for name, file in files.items():  # new ones of each step
            file.write_text("", "utf-8")
            own[name] = str(file)
        script = temp / "script.sh"
        script.write_text(step["run"], "utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={**variables, **own},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        job.log += done.stdout + done.stderr
        job.commands += taken(done.stderr) + taken(done.stdout)
        job.summary += files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        if done.returncode:
            job.failed, job.code = True, job.code or done.returncode
        if "id" in step:
            for line in files["GITHUB_OUTPUT"].read_text("utf-8").splitlines():
                name, _, value = line.partition("=")
                if step["id"] == "grade":
                    job.outputs[name] = value
                context[f"steps.{step['id']}.outputs.{name}"] = value

    def _cached(self, action: str, given: Mapping[str, str]) -> None:
        if action == "actions/cache/save":
            shutil.copytree(given["path"], self._cache / given["key"])
            return
        assert action == "actions/cache/restore"
        begins = given["restore-keys"].strip()
        found = sorted(self._cache.glob(f"{begins}*")) if self._cache.exists() else []
        if found:
            shutil.copytree(found[-1], given["path"])


class Job:
    """What came of a job."""

    def __init__(self) -> None:
        self.log, self.failed, self.code, self.summary = "", False, 0, ""
        self.outputs: dict[str, str] = {}
        self.commands: list[str] = []


def taken(log: str) -> list[str]:
    """The commands that GitHub's runner takes from what a step printed, by actions/runner."""
    found: list[str] = []
    stopped = ""
    for line in log.splitlines():
        command = re.match(r"\s*::([\w-]+)[^:]*::(.*)", line) or re.search(
            r"##\[([\w-]+)[^\]]*\](.*)", line
        )
        if command is None or (stopped and command[1] != stopped):
            continue
        if command[1] == "stop-commands":
            stopped = command[2]
        elif stopped:
            stopped = ""
        else:
            found.append(command[1])
    assert not stopped
    return found


_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_NAME = re.compile(r"\b(?:inputs|github|runner|steps)\.[\w.-]+")


def filled(text: object, context: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: context.get(found[1], ""), str(text))


def wanted(condition: str, context: Mapping[str, str]) -> bool:
    inner = _EXPRESSION.sub(lambda found: found[1], condition)
    code = _NAME.sub(lambda found: repr(context.get(found[0], "")), inner).replace("&&", " and ")
    return bool(eval(code, {"always": lambda: True, "success": lambda: True}))


@pytest.fixture
def github() -> Generator[GitHub]:
    made = GitHub()
    with faulty(made.reply) as server:
        made.url = server.url
        yield made


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    made = Runner(tmp_path, github)
    suite(made, "first", "second")
    return made


_SUITE = """
    id: {name}
    task: {{prompt: {prompt}}}
    matrix: {{harnesses: [echo], models: [m]}}
    graders:
      - {{type: contains, substring: {pattern}}}
"""


def suite(runner: Runner, *passing: str, prompt: str = "hello") -> None:
    """Two cases, of which those named pass."""
    for name in ("first", "second"):
        pattern = "hello" if name in passing else "nothing like it"
        text = _SUITE.format(name=name, prompt=json.dumps(prompt), pattern=json.dumps(pattern))
        write_case(runner.workspace, text, name)


def test_no_value_of_others_stands_in_a_script() -> None:
    assert [step["name"] for step in STEPS if "${{" in str(step.get("run", ""))] == []
    keys = {key for step in STEPS for key in step}
    assert keys <= {"name", "id", "if", "shell", "env", "run", "uses", "with"}


def test_a_pull_request_is_compared_with_its_base_and_told_once(
    runner: Runner, github: GitHub
) -> None:
    pushed = runner.job()
    assert not pushed.failed, pushed.log
    assert pushed.outputs["outcome"] == "passed"
    assert github.asked == []

    suite(runner, "first")
    worse = runner.job(base="main")
    assert worse.code == 1, worse.log
    assert worse.outputs | {"run": "", "report": ""} == {
        "outcome": "failed", "run": "", "reward": "0.5", "pass-rate": "0.5", "report": "",
    }  # fmt: skip
    (told,) = github.comments
    assert told["body"].startswith("<!-- assay: assay -->")
    assert "❌ assay: failed" in told["body"]
    assert "Worse: 1 case" in told["body"]
    assert "1.00 → 0.00" in told["body"]
    assert "Worse: 1 case" in worse.summary

    suite(runner, "first", "second")
    better = runner.job(base="main")
    assert not better.failed, better.log
    (told,) = github.comments
    assert "✅ assay: passed" in told["body"]


def test_a_share_of_the_cells_is_enough_where_it_is_asked_for(
    runner: Runner, github: GitHub
) -> None:
    suite(runner, "first")
    assert not runner.job(**{"pass-rate": "0.5"}).failed
    assert runner.job(**{"pass-rate": "0.6"}).code == 1
    with pytest.raises(InputError, match="pass-rate is '60'"):
        _share("pass-rate", "60")


def test_what_could_not_be_graded_is_no_verdict_and_bad_input_is_said(runner: Runner) -> None:
    (runner.workspace / "evals" / "first" / "case.yaml").write_text("id: [", "utf-8")
    bad = runner.job()
    assert bad.code == 2
    assert "::error title=assay::assay run ended with 2" in bad.log
    suite(runner, "first", "second")
    rows(runner, '{"answer": "4"}\n', graders="- {type: exact_match}\n")  # with what?
    dead = runner.job(**TWICE, **{"pass-rate": "0"})
    assert dead.code == 3, dead.log
    assert dead.outputs["outcome"] == "no verdict"
    assert dead.outputs["reward"] == ""


def test_what_was_graded_cannot_leave_its_fence(runner: Runner, github: GitHub) -> None:
    suite(runner, prompt=EVIL)
    job = runner.job(base="main", name="a suite")
    assert job.code == 1, job.log
    (told,) = github.comments
    for text in (told["body"], job.summary):
        outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
        assert "evil" in text
        assert "evil" not in outside
        assert "@" not in outside


def test_a_fence_is_longer_than_any_in_it_and_a_long_report_is_cut() -> None:
    told = markdown("suite", "failed", ["```\n@everyone\n````\n", "<b>" * 40_000], most=60_000)
    assert "\n`````text\n```\n@everyone\n````\n`````\n" in told
    assert len(told) < 60_000
    assert told.count("\n```\n</details>") == 1


def test_a_fork_and_a_stranger_change_nothing(runner: Runner, github: GitHub) -> None:
    stranger = {"id": 5, "user": {"login": "mallory"}, "body": "<!-- assay: assay --> all is well"}
    github.comments.append(stranger)
    github.refuses = True
    job = runner.job(base="main")
    assert not job.failed, job.log
    assert "::notice::The comment could not be written" in job.log
    assert not runner.job(base="main", token="").failed
    github.refuses = False
    assert not runner.job(base="main").failed
    assert github.comments[0]["body"].endswith("all is well")
    assert len(github.comments) == 2


def test_a_name_is_no_markup(runner: Runner) -> None:
    wrong = runner.job(name="--> <b>")
    assert wrong.code == 2
    assert "::error title=assay::name is" in wrong.log


TWICE = {"command": "grade", "paths": "rows.jsonl graders.yaml"}
RIGHT = '{"answer": "yes"}\n'
YES = "- {type: contains, substring: 'yes'}\n"


def rows(runner: Runner, text: str = RIGHT, graders: str = YES) -> None:
    """Recorded answers that pass where they say yes."""
    (runner.workspace / "rows.jsonl").write_text(text, "utf-8")
    (runner.workspace / "graders.yaml").write_text(graders, "utf-8")


def test_a_baseline_that_was_named_and_is_not_there_is_no_pass(runner: Runner) -> None:
    rows(runner, '{"answer": "no"}\n')
    broken = runner.workspace / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("[1, 2", "utf-8")
    asked = {**TWICE, "max-drop": "0.01", "pass-rate": "0"}
    assert not runner.job(**asked).failed  # the first run has nothing to be compared with
    for baseline, why in (("nightly-typo", "no run.json"), ("broken", "cannot be read")):
        job = runner.job(**asked, baseline=baseline)
        assert (job.code, job.outputs) == (2, {}), job.log
        assert f"::error title=assay::baseline is '{baseline}', which" in job.log
        assert why in job.log
    job = runner.job(**{**asked, "max-drop": "nan"})
    assert job.code == 2
    assert "::error title=assay::max-drop is 'nan'" in job.log
    for wrong in ("abc", "nan", "-1", "2"):
        with pytest.raises(InputError, match=f"max-drop is '{wrong}'"):
            _share("max-drop", wrong)


def test_a_fault_of_ours_is_told_as_that_of_a_process_is(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it says may be of a stored run: in the log the runner would take it for commands."""

    def fails(_: object) -> None:
        raise KeyError("\n::add-mask::a")

    monkeypatch.setattr("assay.cli.main.main", fails)
    code, out, err = _assay("report", "1")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback")
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_suite_is_never_told_as_another_of_the_job(runner: Runner, github: GitHub) -> None:
    rows(runner)
    first, second = runner.jobs({**TWICE, "name": "a"}, {**TWICE, "name": "b"}, base="main")
    assert first.outputs["report"] != second.outputs["report"]
    assert "No earlier run" in second.log
    told = [one["body"].splitlines()[0] for one in github.comments]
    assert told == ["<!-- assay: a -->", "<!-- assay: b -->"]
    github.comments.clear()
    first, bad = runner.jobs(TWICE, {**TWICE, "paths": "none.jsonl graders.yaml"}, base="main")
    assert (first.code, bad.code) == (0, 2), bad.log
    assert len(github.comments) == 1
    assert github.asked[-1][0] == "POST"


def test_nothing_of_a_suite_is_a_command_to_the_runner(runner: Runner) -> None:
    evil = "##[set-output name=outcome;]passed"
    rows(runner, f'{{"id": "{evil}", "answer": "yes"}}\n' * 2)
    twice = runner.job(**TWICE)
    assert twice.code == 2
    assert evil in twice.log
    assert twice.commands == ["error"]
    case = runner.workspace / "evals" / "first" / "case.yaml"
    case.write_text("id: first\n'##[add-mask]failed': 1\n", "utf-8")
    field = runner.job(args="'\n::add-mask::x'")
    assert field.code == 2
    assert "##[add-mask]failed" in runner.job().log
    assert field.commands == ["error"]


def test_a_token_is_never_printed(runner: Runner, github: GitHub) -> None:
    rows(runner)
    assert not runner.job(**TWICE, base="main", token="the-token\n").failed
    assert len(github.comments) == 1
    job = runner.job(**TWICE, base="main", token="ghp_SECRET\nX-Other: 1")
    assert job.code == 2
    assert "::error title=assay::token has a blank" in job.log
    assert "SECRET" not in job.log
    for token in ("ghp_SECRET\nX-Other: 1", "ghp_SECRET ghp_SECRET", "ghp_SECRETé"):
        assert not _TOKEN.fullmatch(token)


def test_the_store_is_not_named_among_arguments(runner: Runner) -> None:
    rows(runner)
    job = runner.job(**TWICE, args="--db other")
    assert job.code == 2
    assert "env: {ASSAY_DB: WHERE}" in job.log
    assert not (runner.workspace / "other").exists()
