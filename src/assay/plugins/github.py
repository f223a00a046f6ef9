"""assay in a workflow of GitHub: what the steps of ``action.yml`` run.

``grade`` runs the suite, and compares it with the newest run of the branch that a pull request
goes to. ``comment`` tells the pull request. They are two steps, so that no code of a suite ever
runs beside the token. Names of branches, titles and texts of graded work come from strangers:
they reach this file in variables and files, and leave it inside fences of Markdown alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from assay.errors import AssayError, InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json

_MOST_SUMMARY, _MOST_COMMENT = 900_000, 60_000
"""Characters; GitHub takes 1 MiB and 65,536."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,60}")
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
        baseline: A directory with an exported run to compare with, if it is there.
        kept: Where the run is exported to, for comparisons to come.
        report: The file for what is told.
        max_drop: How far the mean reward may be below the baseline's.
        pass_rate: The least share of graded cells that has to pass, instead of all of them.
    """

    command: str
    words: tuple[str, ...]
    name: str
    baseline: Path
    kept: Path
    report: Path
    max_drop: str
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
        words = [variables.get("ASSAY_PATHS") or "evals", variables.get("ASSAY_ARGS", "")]
        place = Path(variables["RUNNER_TEMP"])
        kept = place / "assay-run"
        return cls(
            command=command,
            words=tuple(word for text in words for word in _split(text)),
            name=name,
            baseline=Path(given) if (given := variables.get("ASSAY_BASELINE")) else kept / "run",
            kept=kept,
            report=place / "assay-report.md",
            max_drop=variables.get("ASSAY_MAX_DROP", ""),
            pass_rate=_share(variables.get("ASSAY_PASS_RATE", "")),
        )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be split into words: {error}") from error


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise InputError(f"pass-rate is {text!r}", hint="a share in [0, 1], such as 0.9")
    return share


def grade(variables: Mapping[str, str]) -> int:
    """Run the suite, say what came of it, and keep it.

    Returns:
        The exit status of `assay run` or `assay grade`: 0 passed, 1 failed, 2 bad input, 3 could
        not be graded. With a pass rate it decides between 0 and 1.
    """
    asked = Inputs.of(variables)
    last = _newest()
    code = _assay(asked.command, *asked.words).returncode
    run = _newest()
    if run == last:  # nothing was begun: the log says why
        print(f"::error title={asked.name}::assay {asked.command} ended with {code}; see its log")
        return code or 2
    totals = json.loads(_told("report", run, "--json"))["overview"]["totals"]
    passed = cast("float | None", totals["pass_rate"]["mean"])
    if asked.pass_rate is not None and code in (0, 1) and passed is not None:
        code = 0 if passed >= asked.pass_rate - 1e-9 else 1
    said = [_told("report", run)]
    if before := _imported(asked.baseline):
        drop = ["--max-drop", asked.max_drop] if asked.max_drop else []
        compared = _assay("compare", before, run, *drop, quiet=True)
        said.insert(0, compared.stdout or compared.stderr)
        code = max(code, compared.returncode if drop else 0)
    outcome = {0: "passed", 1: "failed"}.get(code, "no verdict")
    told = markdown(asked.name, outcome, said, most=_MOST_COMMENT, mark=_mark(asked.name))
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


def _imported(directory: Path) -> str:
    """The id of the run that is compared with, or "" where there is none."""
    if not (directory / "run.json").is_file():
        print("No earlier run to compare with.")
        return ""
    done = _assay("runs", "import", str(directory), "--json", quiet=True)
    if done.returncode:
        print(f"::warning::the earlier run could not be read: {_escaped(done.stderr)}")
        return ""
    return str(json.loads(done.stdout)["run"])


def _keep(asked: Inputs, run: str) -> None:
    """Export the run, in the place of the one that was compared with."""
    import shutil

    shutil.rmtree(asked.kept / "run", ignore_errors=True)
    asked.kept.mkdir(parents=True, exist_ok=True)
    _told("runs", "export", run, "--out", str(asked.kept / "run"), "--no-files")


def _told(*words: str) -> str:
    """What a command prints."""
    return _assay(*words, quiet=True).stdout


def _assay(*words: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command of this environment; its progress belongs in the log."""
    program = str(Path(sys.executable).parent / "assay")
    if not quiet:
        print(f"$ assay {shlex.join(words)}", flush=True)
    return subprocess.run(
        [program, *words],
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "110"},
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.PIPE if quiet else None,
    )


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
    """
    asked = Inputs.of(variables)
    number = _pull_request(variables)
    if number is None:
        print("No pull request: nothing is told to one.")
        return 0
    if not asked.report.is_file():
        print("Nothing was graded: there is nothing to tell.")
        return 0
    token = variables.get("ASSAY_TOKEN")
    if not token:
        print("::notice::No token, so there is no comment; the job's summary has the report.")
        return 0
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
    steps = {"grade": grade, "comment": comment}
    try:
        return steps[words[0]](os.environ)
    except AssayError as error:
        print(f"::error title=assay::{_escaped(str(error))}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
