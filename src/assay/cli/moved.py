"""Options that a command had, and what says the same now: told to whoever types one."""

from __future__ import annotations

_SET = "it is --set {}=VALUE, or a line of --set @FILE.yaml"
_GRADER = "name the grader after the rows: a file, FILE.py, or KEY@N of a stored one"
_DEFINED = "name the file after the key: FILE.py, graders.yaml or KEY.yaml"
_CACHE = "it is the variable ASSAY_CACHE: readwrite, read, replay or off"
_SAID = "write {type: function, file: FILE.py, range: [LOW, HIGH]} into a file of graders"
_MOVED: dict[str, dict[str, str]] = {
    "graders create": {
        "--function": _DEFINED,
        "--graders": _DEFINED,
        "--file": _DEFINED,
        "--kind": "it is --set kind=KIND",
        "--name": "it is --set name=NAME",
        "--feedback-key": "it is --set feedback_key=METRIC",
    },
    "grade": {
        "--graders": _GRADER,
        "-g": _GRADER,
        "--function": _GRADER,
        "--range": _SAID,
        "--isolation": _SAID,
        "--parts": "parts are Parquet where all of the data is, else JSON lines",
        "--retry-errors": "the same command grades again what could not be graded",
    },
    "regrade": {"--graders": "name the file after the run"},
    "run": {"--label": "it is --name"},
    "report": {"--full": "it is --json --all"},
    "list": {"--jsonl": "it is --out"},
    "demo": {"--directory": "name it alone: assay demo DIR"},
    "runs promote": {"--as": "it is --name"},
    "calibrate": {
        "--list": "it is `assay calibrate cards`",
        "--show": "it is `assay calibrate cards CARD`",
        "--labels-from-store": "it is so where no LABELS are named",
        "--out": "write what --json prints",
    },
    "calibrate label": {"--field": "it is --label", "--export": "it is --out"},
    "fake": {
        "--script": "name the file alone: assay fake FILE",
        "--answers": "name the file alone: assay fake --judge FILE",
        "--record": "assay's own recording is the cache: ASSAY_CACHE=replay",
        "--solver": "it is so where no script is named",
    },
    "import": {"--sha256": "it is --source NAME==VERSION#sha256=HEX"},
    "graders show": {"--version": "name it KEY@N"},
    "graders diff": {"--to": "name it KEY@N"},
    "graders list": {"--query": "it is --search"},
    "graders export": {"--into": "it is --out"},
    "serve": {
        "--allow-host": _SET.format("hosts"),
        "--proxy": _SET.format("limits.proxies"),
        "--endpoint-secret": _SET.format("endpoint_secrets.VARIABLE"),
        "--allow-internal-endpoints": "it is --set allow_internal_endpoints=true",
        "--allow-custom-code": "it is --set allow_custom_code=true",
        "--max-connections": _SET.format("limits.connections"),
        "--job-slots": _SET.format("job_slots"),
        "--max-waiting": _SET.format("max_waiting"),
        "--grace": _SET.format("limits.grace_seconds"),
        "--audit-log": _SET.format("audit_log"),
        "--quiet": "it is --set quiet=true",
    },
    "serve env": {
        "--log": _SET.format("log"),
        "--max-sessions": _SET.format("sessions"),
        "--max-starts": _SET.format("starts"),
        "--grading-timeout": _SET.format("grading"),
        "--parked-timeout": _SET.format("parked"),
        "--hud": "it is --set hud=true",
        "--with-parent": "it is --set with_parent=true",
        "--dial": _SET.format("dial"),
    },
    "serve grader": {
        "--name": _SET.format("name"),
        "--range": "it is --set score_range=[LOW,HIGH]",
        "--max-batch": _SET.format("max_batch"),
        "--on-error": _SET.format("on_error"),
    },
}
_MOVED["graders update"] = _MOVED["graders create"]
_EVERYWHERE = {
    "--judge-cache": _CACHE,
    "--html": "the run is stored: assay report latest --html FILE",
    "--format": "a file's name and text say it; standard input is JSON lines, CSV or TSV",
    "--into": "it is --out",
    "--offset": "--after goes on from a place that a list named",
}


def meant_by(command: str, option: str) -> str:
    """What says now what an option of a command said; empty where it had no such option."""
    return _MOVED.get(command, {}).get(option) or _EVERYWHERE.get(option, "")
