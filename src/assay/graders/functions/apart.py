"""Somebody's source, read in the sandbox by a module of ours."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.errors import SandboxError
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.sandbox.functions import Program
    from assay.sandbox.functions.program import TierChoice

_SECONDS = 120.0
_HERE = Path(__file__).parents[1]
_EXAMINER = """\
import json

from assay.graders.{0} import examine


def grade(source):
    print(json.dumps(examine(source)))
    return 1.0
"""


async def examined_apart(
    source: str, *modules: str, tier: TierChoice = "auto"
) -> dict[str, Json] | str:
    """What ``examine`` of the first of some modules of graders says of a source.

    As text, why it could not be read within bounds. Modules are named from ``assay.graders`` on.

    Raises:
        SandboxError: If the sandbox failed, which no source can cause.
    """
    from assay.sandbox.functions import FunctionLimits, pool_for

    # A parser does not sleep: its CPU time is bounded, and a busy machine is waited for.
    pool = pool_for(_program(modules), limits=FunctionLimits(wall_seconds=_SECONDS), tier=tier)
    outcome = await pool.call(json.dumps(source).encode())
    if outcome.status == "ok":
        return cast("dict[str, Json]", json.loads(outcome.output))
    if outcome.status in ("sandbox_error", "error", "bad_return", "wall_timeout", "late"):
        raise SandboxError(f"a source could not be checked: {outcome.message}")
    return outcome.message or outcome.status


@lru_cache(maxsize=4)
def _program(modules: tuple[str, ...]) -> Program:
    from assay.sandbox.functions import Program

    files = {name: _HERE.joinpath(*name.split(".")).with_suffix(".py") for name in modules}
    return Program(
        source=_EXAMINER.format(modules[0]),
        modules={f"assay.graders.{name}": file.read_text("utf-8") for name, file in files.items()},
    )
