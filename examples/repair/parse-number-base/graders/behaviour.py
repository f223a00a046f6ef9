"""A grader of one's own: what does the submission's code *do*?

The submission runs in the sandbox, started by a probe. The right answers never go there: the
probe writes down results as plain values, and they are compared here. So it does not help to print
"passed", to end the process, to replace `json` or to return an object that equals everything.
"""

from __future__ import annotations

import json
import secrets

from assay.errors import InputError
from assay.graders import Grader, SubScore
from assay.graders.paths import CasePath
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.scoring.json_safe import Json
from assay.types import Workspace

_PROBE = "/run/probe.py"
# -I and -S: no variable, no sitecustomize, no .pth file and no file of the working directory has a
# say. Compiled files that lie in the workspace are not used, so what runs is what one can read.
_PYTHON = ("python3", "-I", "-S", "-X", "pycache_prefix=/tmp/pycache")


class Behaviour(Grader):
    """The share of inputs for which the submission does the right thing.

    Scored 0: a wrong result, an exception, a crash, an endless loop, no result at all. An error: a
    sandbox that does not work, or checks that are malformed.
    """

    name = "behaviour"

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        probe: CasePath,
        checks: list[dict[str, Json]],
        import_from: str = ".",
        timeout_s: float = 30.0,
    ) -> SubScore:
        """Run the probe and compare.

        Args:
            workspace: What the agent left.
            probe: Script that calls the submission's code; see ``probe.py``.
            checks: What it is called with, and what is right: ``input`` and ``expect``.
            import_from: Directory of the workspace that the submission is imported from.
            timeout_s: Seconds for all inputs together.
        """
        if not checks:
            raise InputError("behaviour needs at least one check")
        word = secrets.token_hex(16)
        order = {
            "word": word,
            "import_from": f"/workspace/{import_from}",
            "inputs": [check["input"] for check in checks],
        }
        result = await run_command(
            [*_PYTHON, _PROBE],
            workspace=workspace.path,
            env=workspace.env,
            mounts=[
                Mount(source=probe, target=_PROBE),
                *(Mount(source=source, target=target) for source, target in workspace.mounts),
            ],
            limits=Limits(wall_seconds=timeout_s),
            stdin=json.dumps(order).encode(),
        )
        said, flags = _results(result.stdout, word, len(checks))
        wrong = [
            f"{json.dumps(check['input'])}\n  expected {json.dumps(check['expect'])}, got {text}"
            for check, text in zip(checks, said, strict=True)
            if text != _expected(check["expect"])
        ]
        right = len(checks) - len(wrong)
        return SubScore(
            name=cls.name,
            value=right / len(checks),
            metadata={
                "right": f"{right} of {len(checks)}",
                "wrong": "\n".join(wrong),
                **_ending(result),
            },
            flags=flags,
        )


def _results(stdout: str, word: str, count: int) -> tuple[list[str], list[str]]:
    """What came back for each input, as text; and signs of tampering."""
    said = ["nothing"] * count
    for line in stdout.split("\n"):
        first, _, rest = line.partition(" ")
        if first != word:
            continue  # whatever else the submission prints
        number, _, text = rest.partition(" ")
        place = int(number) if number.isdecimal() and len(number) < 9 else count
        if place >= count or said[place] != "nothing":
            return ["nothing"] * count, ["something else wrote to the probe's channel"]
        said[place] = _plain(text)
    return said, []


def _plain(text: str) -> str:
    """What a line of the probe says, written in one way only, so that texts can be compared."""
    try:
        match json.loads(text):
            case {"value": value}:
                return _expected(value)
            case {"raised": str(name)} if name.isidentifier():
                return f"the exception {name[:80]}"
            case _:
                return "no result"
    except (ValueError, RecursionError):
        return "no result"


def _expected(value: Json) -> str:
    """A value as text: there 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True)


def _ending(result: CommandResult) -> dict[str, Json]:
    """How the probe ended, where that was not as it should be."""
    if result.status == "exited" and result.exit_code == 0 and not result.stderr:
        return {}
    return {
        "ended": result.status,
        "exit_code": result.exit_code,
        "stderr": result.stderr[-2000:],
    }
