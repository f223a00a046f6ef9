"""assay in a workflow of GitHub: what the steps of ``action.yml`` run.

``files`` says where this suite's run is kept. ``grade`` runs the suite, and compares it with the
newest run of the branch that a pull request goes to. ``comment`` tells the pull request. They are
steps of their own, so that no code of a suite ever runs beside the token. Names of branches, titles
and texts of graded work come from strangers: they reach this file in variables and files, and leave
it inside fences of Markdown, or in the log where the runner takes no commands.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import cast

from assay.errors import AssayError, InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json

_MOST_SUMMARY, _MOST_COMMENT = 900_000, 60_000
"""Characters; GitHub takes 1 MiB and 65,536."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,60}")
_TOKEN = re.compile(r"[!-~]+")
_ROBOT = "github-actions[bot]"
_MOST_PAGES = 30
_SECONDS = 30.0


@frozen(kw_only=True)
class Inputs:
    """What the action's inputs say, and where a runner keeps things.

    Attributes:
        command: ``run`` or ``grade``.
        words: What comes behind it: paths and further arguments.
        name: What tells this suite from others of the repository.
        baseline: A directory with an exported run that was named to compare with.
        kept: Where the run is exported to, for comparisons to come; an earlier one may be there.
        report: The file for what is told.
        max_drop: How far the mean reward may be below the baseline's.
        pass_rate: The least share of graded cells that has to pass, instead of all of them.
    """

    command: str
    words: tuple[str, ...]
    name: str
    baseline: Path | None
    kept: Path
    report: Path
    max_drop: float | None
    pass_rate: float | None

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Inputs:
        """Read them from the environment.

        Raises:
            InputError: An input is not what it may be.
        """
        command = variables.get("ASSAY_COMMAND") or "run"
        if command not in ("run", "grade"):
            raise InputError(f"command is {command!r}", hint="valid: run, grade")
        name = variables.get("ASSAY_NAME") or "assay"
        if not _NAME.fullmatch(name):
            raise InputError(f"name is {name!r}", hint="letters, digits, blanks, and . _ -")
        given = [variables.get("ASSAY_PATHS") or "evals", variables.get("ASSAY_ARGS", "")]
        words = tuple(word for text in given for word in _split(text))
        if any(word.partition("=")[0] == "--db" for word in words):
            raise InputError(
                "args has --db, and every step has to know the store",
                hint="env: {ASSAY_DB: WHERE} of the action",
            )
        # Several suites of a job have one RUNNER_TEMP.
        place = Path(variables["RUNNER_TEMP"], f"assay-{sha256(name.encode()).hexdigest()[:16]}")
        baseline = variables.get("ASSAY_BASELINE")
        return cls(
            command=command,
            words=words,
            name=name,
            baseline=Path(baseline) if baseline else None,
            kept=place / "run",
            report=place / "report.md",
            max_drop=_share("max-drop", variables.get("ASSAY_MAX_DROP", "")),
            pass_rate=_share("pass-rate", variables.get("ASSAY_PASS_RATE", "")),
        )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be split into words: {error}") from error


def _share(what: str, text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise InputError(f"{what} is {text!r}", hint="a number in [0, 1], such as 0.9")
    return share


def files(variables: Mapping[str, str]) -> int:
    """Say where the run is kept, and remove what an earlier use of the name left there.

    Returns:
        0.
    """
    asked = Inputs.of(variables)
    shutil.rmtree(asked.kept.parent, ignore_errors=True)
    asked.kept.parent.mkdir()
    _append(variables, "GITHUB_OUTPUT", f"run={asked.kept}\n")
    return 0


def grade(variables: Mapping[str, str]) -> int:
    """Run the suite, say what came of it, and keep it.

    Returns:
        The exit status of `assay run` or `assay grade`: 0 passed, 1 failed, 2 bad input, 3 could
        not be graded. With a pass rate it decides between 0 and 1.

    Raises:
        InputError: An input is wrong, or a baseline that was named cannot be read.
    """
    asked = Inputs.of(variables)
    os.environ["COLUMNS"] = "110"
    before = _before(asked)
    last = _newest()
    with _no_commands():
        code = _graded(asked.command, *asked.words)
    run = _newest()
    if run == last:  # nothing was begun: the log says why
        said = "see its log" if code else "it stored no run, so there is nothing to tell of"
        print(f"::error title={asked.name}::assay {asked.command} ended with {code}; {said}")
        return code or 2
    totals = json.loads(_told("report", run, "--json"))["overview"]["totals"]
    passed = cast("float | None", totals["pass_rate"]["mean"])
    if asked.pass_rate is not None and code in (0, 1) and passed is not None:
        code = 0 if passed >= asked.pass_rate - 1e-9 else 1
    said = [_told("report", run)]
    if before:
        drop = [] if asked.max_drop is None else ["--max-drop", str(asked.max_drop)]
        ended, out, err = _assay("compare", before, run, *drop)
        said.insert(0, out or err)
        code = max(code, ended if drop else 0)
    outcome = {0: "passed", 1: "failed"}.get(code, "no verdict")
    told = markdown(asked.name, outcome, said, most=_MOST_COMMENT, mark=_mark(asked.name))
    asked.report.parent.mkdir(exist_ok=True)
    asked.report.write_text(told, "utf-8")
    _append(variables, "GITHUB_STEP_SUMMARY", markdown(asked.name, outcome, said))
    shown = {"outcome": outcome, "run": run, "reward": totals["reward"]["mean"]}
    shown |= {"pass-rate": passed, "report": asked.report}
    for key, value in shown.items():
        _append(variables, "GITHUB_OUTPUT", f"{key}={'' if value is None else value}\n")
    _keep(asked, run)
    return code


def _newest() -> str:
    """The id of the newest run of the store, or "" where there is none."""
    runs = json.loads(_told("runs", "--json") or '{"items": []}')["items"]
    return str(runs[0]["id"]) if runs else ""


@contextmanager
def _no_commands() -> Generator[None]:
    """Let the runner take no commands from what is printed meanwhile.

    It takes ``::add-mask::x`` at the start of a line and ``##[add-mask]x`` anywhere in one, and a
    suite prints what it was given.
    """
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"\n::{token}::", flush=True)  # at the start of a line, wherever the last one ended


def _before(asked: Inputs) -> str:
    """The id of the run that is compared with, or "" where there is none yet.

    Raises:
        InputError: The baseline was named, and is not there or cannot be read.
    """
    directory = asked.baseline or asked.kept
    if not (directory / "run.json").is_file():
        if asked.baseline:
            raise InputError(
                f"baseline is {str(directory)!r}, which has no run.json",
                hint="the directory of assay runs export RUN --out DIRECTORY",
            )
        print("No earlier run to compare with.")
        return ""
    ended, out, err = _assay("runs", "import", str(directory), "--json")
    if not ended:
        return str(json.loads(out)["run"])
    if asked.baseline:
        raise InputError(f"baseline is {str(directory)!r}, which cannot be read: {err}")
    print(f"::warning::the earlier run could not be read: {_escaped(err)}")
    return ""


def _keep(asked: Inputs, run: str) -> None:
    """Export the run, in the place of the one that was compared with."""
    shutil.rmtree(asked.kept, ignore_errors=True)
    _told("runs", "export", run, "--out", str(asked.kept), "--no-files")


def _told(*words: str) -> str:
    """What a command prints."""
    return _assay(*words)[1]


def _graded(*words: str) -> int:
    """The exit status of the command that grades: a process, since code of the suite runs in it.

    Both of its streams are one in the log: a runner reads two in no order.
    """
    program = str(Path(sys.executable).parent / "assay")
    print(f"$ assay {shlex.join(words)}", flush=True)
    return subprocess.run(
        [program, *words],
        check=False,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    ).returncode


def _assay(*words: str) -> tuple[int, str, str]:
    """The exit status of a command that reads what is stored, and what it prints.

    It runs in this process: to start one for each would take longer than what they do.
    """
    from assay.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
        except SystemExit as ended:
            code = cast("int", ended.code)
        except Exception:  # a fault of ours ends the step no sooner than it would a process
            traceback.print_exc()
            code = 1
    return code, out.getvalue(), err.getvalue()


def markdown(
    name: str, outcome: str, texts: Sequence[str], *, most: int = _MOST_SUMMARY, mark: str = ""
) -> str:
    """A report as Markdown: a line of ours, and each text in a fence that it cannot leave.

    In a fence there are no mentions, links, pictures or HTML, whatever stands in it.
    """
    glyph = {"passed": "✅", "failed": "❌"}.get(outcome, "⚠️")
    left = most - 500
    parts = [mark, f"### {glyph} {name}: {outcome}"]
    for number, text in enumerate(texts):
        share = left // (len(texts) - number)
        shown = text if len(text) <= share else f"{text[:share]}\n… cut; the job's log has it whole"
        left -= len(shown)
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
        block = f"{fence}text\n{shown.strip(chr(10))}\n{fence}"
        first = number == 0
        parts.append(
            block if first else f"<details><summary>The run</summary>\n\n{block}\n</details>"
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _mark(name: str) -> str:
    """What a comment of ours begins with, unseen: it is found by that again."""
    return f"<!-- assay: {name} -->"


def _append(variables: Mapping[str, str], file: str, text: str) -> None:
    if path := variables.get(file):
        with Path(path).open("a", encoding="utf-8") as opened:
            opened.write(text)


def _escaped(text: str) -> str:
    """As a value of a command to the runner, which ends with its line."""
    return text.strip().replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def comment(variables: Mapping[str, str]) -> int:
    """Tell the pull request, in one comment that is renewed.

    Returns:
        0, also where nothing may be written: that is said, and is no fault of the work.

    Raises:
        InputError: An input is wrong, or the token is none.
    """
    asked = Inputs.of(variables)
    number = _pull_request(variables)
    if number is None:
        print("No pull request: nothing is told to one.")
        return 0
    if variables.get("ASSAY_REPORT") != str(asked.report) or not asked.report.is_file():
        print("Nothing was graded: there is nothing to tell.")
        return 0
    token = variables.get("ASSAY_TOKEN", "").strip()
    if not token:
        print("::notice::No token, so there is no comment; the job's summary has the report.")
        return 0
    if not _TOKEN.fullmatch(token):  # an error of http.client would print it
        raise InputError("token has a blank, a line end or a letter that no token has")
    api = _Api(variables.get("GITHUB_API_URL") or "https://api.github.com", token)
    issue = f"repos/{variables['GITHUB_REPOSITORY']}/issues"
    body: dict[str, Json] = {"body": asked.report.read_text("utf-8")}
    try:
        ours = _ours(api, f"{issue}/{number}/comments", _mark(asked.name))
        if ours is None:
            api.ask("POST", f"{issue}/{number}/comments", body)
        else:
            api.ask("PATCH", f"{issue}/comments/{ours}", body)
    except (OSError, ValueError) as error:
        # A pull request from a fork has a token that may only read.
        said = f"The comment could not be written ({_escaped(str(error))})"
        print(f"::notice::{said}; the job's summary has the report.")
    return 0


def _pull_request(variables: Mapping[str, str]) -> int | None:
    try:
        event = json.loads(Path(variables.get("GITHUB_EVENT_PATH", "")).read_text("utf-8"))
        return int(event["pull_request"]["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ours(api: _Api, path: str, mark: str) -> int | None:
    """The comment that we wrote before: of our account, since others may copy how it begins."""
    author = api.who()
    for page in range(1, _MOST_PAGES + 1):
        found = cast("list[dict[str, Json]]", api.ask("GET", f"{path}?per_page=100&page={page}"))
        for one in found:
            user = one["user"]
            is_ours = isinstance(user, dict) and user.get("login") == author
            if is_ours and str(one["body"]).startswith(mark):
                return int(str(one["id"]))
        if len(found) < 100:
            return None
    return None


class _Api:
    """GitHub's, with the token of the job."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url.rstrip("/"), token

    def who(self) -> str:
        """Whose token it is; that of a job may not ask."""
        try:
            return str(cast("dict[str, Json]", self.ask("GET", "user"))["login"])
        except urllib.error.HTTPError:
            return _ROBOT

    def ask(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Json:
        """Ask, and read the reply."""
        request = urllib.request.Request(  # noqa: S310 - of the runner's own variable
            f"{self._url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Accept": "application/vnd.github+json", "Content-Type": "application/json"},
        )
        # A redirection to another host is followed without it.
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            return cast("Json", json.loads(reply.read()))


def main(words: Sequence[str]) -> int:
    """Do the step of that name."""
    steps = {"files": files, "grade": grade, "comment": comment}
    try:
        return steps[words[0]](os.environ)
    except AssayError as error:
        print(f"::error title=assay::{_escaped(str(error))}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
