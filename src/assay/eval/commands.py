"""What the commands of a case start in Python, and what of a submission may not stand in for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from assay.errors import InputError, ProvisionError
from assay.graders.spec import GraderSpec
from assay.types.submission import Workspace

__all__ = ["require_runners", "stand_ins"]

_STARTS_PYTHON = re.compile(
    r"\bpy(?:thon|py|test|\.test)|\b(?:make|gmake|just|tox|nox|task|invoke|ninja|npm)\b"
    r"|\bsh\b|\./|\.sh\b"
)
_RUN = re.compile(r"\bpy(?:thon|py)[\d.]*(?:\s+-\w+)*?\s+-\w*m\s*([A-Za-z_]\w*)")
_IMPORTED = re.compile(r"\b(?:import|from)\s+([A-Za-z_]\w*)")
_DIRECTORIES = (
    re.compile(r"([\w./-]+)/[\w.-]+\.py\b"),
    re.compile(r"\bcd\s+([\w./-]+)"),
    re.compile(r"\bPYTHONPATH=[\"']?([\w./:-]+)"),
)
_PROBE_SECONDS = 60.0


def stand_ins(
    graders: Sequence[GraderSpec], entries: Collection[str], workspace: Workspace
) -> Iterator[str]:
    """Paths, without suffix, where a module would replace Python's own or an installed one.

    Python looks where its program is before it looks at its own modules. So wherever a command
    starts Python, a file ``json.py`` there decides what the command's exit status is.
    """
    lines = [line for line in _lines(graders) if _STARTS_PYTHON.search(line)]
    if not lines:
        return
    from assay.graders.testing.runners import has_module

    text = "\n".join(lines)
    named = {*_RUN.findall(text), *_IMPORTED.findall(text)}
    if re.search(r"\bpy\.?test\b", text):
        named.add("pytest")
    modules = {*sys.stdlib_module_names, *(name for name in named if has_module(workspace, name))}
    found = (place for form in _DIRECTORIES for place in form.findall(text))
    places = {str(PurePosixPath(place)) for text in found for place in text.split(":") if place}
    tops = {""} | {f"{place}/" for place in places if ".." not in place and place[0] not in "./"}
    for top in sorted(tops):
        inside = (path.removeprefix(top) for path in entries if path.startswith(top))
        taken = {path.partition("/")[0].partition(".")[0] for path in inside}
        yield from (f"{top}{module}" for module in modules - taken)


async def require_runners(
    graders: Sequence[GraderSpec], workspace: Workspace, *, case: str
) -> None:
    """Refuse a case whose command runs pytest where there is none, before anybody works on it.

    Raises:
        ProvisionError: If pytest is not there. No submission could have passed.
        SandboxError: If the sandbox failed.
    """
    from assay.graders.testing.commands import read_command
    from assay.graders.testing.runners import has_module
    from assay.sandbox import Limits, Mount, run_command

    for line in _lines(graders):
        try:
            invocation = read_command(line)
        except InputError:  # starts several runners: no less a command
            continue
        if invocation.runner != "pytest" or has_module(workspace, "pytest"):
            continue
        python, module, _ = invocation.program.partition(" -m ")
        look = f"{python} -c 'import pytest'" if module else f"command -v {python}"
        result = await run_command(
            ["/bin/sh", "-c", f"cd './{invocation.cwd}' && {look}"],
            workspace=workspace.path,
            env=workspace.env,
            mounts=[Mount(source=source, target=target) for source, target in workspace.mounts],
            limits=Limits(wall_seconds=_PROBE_SECONDS),
        )
        if result.status == "exited" and result.exit_code != 0:
            raise ProvisionError(
                f"case {case!r}: {line!r} needs pytest, which its environment does not have",
                hint="add it: environment: requirements: [pytest]",
            )


def _lines(graders: Sequence[GraderSpec]) -> Iterator[str]:
    for spec in graders:
        line = spec.options.get("cmd")
        if spec.type == "command" and isinstance(line, str):
            yield line
