"""What the commands of a case start in Python, and what of a submission may not stand in for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Container, Iterator, Sequence
from pathlib import Path, PurePosixPath

from assay.errors import GraderError, ProvisionError
from assay.graders.spec import GraderSpec
from assay.types.submission import Workspace

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
_LOOK = 'for one; do command -v "$one" >/dev/null || echo "$one"; done'
_SHELL_OWN = frozenset(
    {
        *("test", "[", "echo", "printf", "true", "false", ":", "cd", "pwd", "exit", "return"),
        *("set", "unset", "export", "readonly", "exec", "trap", "umask", "ulimit", "wait", "kill"),
        *("read", "shift", "local", "command", "break", "continue", "getopts", "times", "time"),
    }
)
_RUNNERS = frozenset({"python", "python3", "pytest", "py.test", "node"})
"""What the kinds that run tests bring themselves, or say themselves that it is missing."""
_TEST_KINDS = frozenset({"tests", "pytest", "swebench"})
_PYTHON_TOOLS = {
    **{name: name for name in ("pytest", "nose2", "tox", "nox", "coverage", "behave", "mypy")},
    **{name: name for name in ("ruff", "flake8", "pylint", "black", "hypothesis", "pyright")},
    "py.test": "pytest",
}
"""Programs, and modules of the same name, by the package that has them."""
_TOOLS = re.compile(rf"\b(python[\d.]*)\s+-m\s+({'|'.join(_PYTHON_TOOLS)})(?![\w.-])")


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
    from assay.graders.testing.runners import PYTEST_PARTS, STARTS_PYTEST, has_module

    text = "\n".join(lines)
    named = {*_RUN.findall(text), *_IMPORTED.findall(text)}
    modules = {*sys.stdlib_module_names, *(name for name in named if has_module(workspace, name))}
    if STARTS_PYTEST.search(text):  # it is there, or the case would not have begun
        modules.update(PYTEST_PARTS)
    found = (place for form in _DIRECTORIES for place in form.findall(text))
    places = {str(PurePosixPath(place)) for text in found for place in text.split(":") if place}
    tops = {""} | {f"{place}/" for place in places if ".." not in place and place[0] not in "./"}
    for top in sorted(tops):
        inside = (path.removeprefix(top) for path in entries if path.startswith(top))
        taken = {path.partition("/")[0].partition(".")[0] for path in inside}
        yield from (f"{top}{module}" for module in modules - taken)


async def require_programs(
    graders: Sequence[GraderSpec],
    workspace: Workspace,
    *,
    case: str,
    given: Container[str] | None = None,
) -> None:
    """Refuse a case whose commands need what their sandbox lacks, before anybody works on it.

    That is a program on the PATH, or a tool that Python is to run as a module. What a submission
    can bring itself is left to it.

    Args:
        graders: The case's.
        workspace: Where its commands will run.
        case: Its id.
        given: The files that an agent starts from; by default what is in the workspace. What an
            agent left must not decide: whoever deletes a tool would not be graded.

    Raises:
        ProvisionError: If something is not there. No submission could have passed.
        SandboxError: If the sandbox failed.
    """
    from assay.graders.testing.commands import programs_of
    from assay.graders.testing.runners import equipped, has_module, has_program

    def is_given(name: str) -> bool:
        return Path(workspace.path, name).exists() if given is None else name in given

    for spec in graders:
        line = spec.options.get("cmd")
        if spec.type in _TEST_KINDS:
            _require_pytest(spec, str(line or "pytest"), workspace, case=case)
        if not isinstance(line, str) or spec.type not in ("command", "tests", "pytest"):
            continue
        place = equipped(line, workspace)
        sure = _SHELL_OWN if spec.type == "command" else _SHELL_OWN | _RUNNERS
        if await _cannot_report(spec, place):
            raise ProvisionError(
                f"case {case!r}: {spec.label}: the image lacks what packs reports: GNU find, head "
                "and tar",
                hint="container: {setup: [apk add findutils coreutils tar]}, or apt-get install",
            )
        doubtful = [name for name in programs_of(line) if name not in sure]
        doubtful = [name for name in doubtful if has_program(place, name) is False]
        if missing := await _missing(_LOOK, doubtful, place):
            raise _lacking(case, spec, line, missing, place)
        if spec.type != "command" or "PATH" in line or has_program(place, "python3") is None:
            continue  # the runner has a Python of its own, or who knows which it is
        for python, tool in _TOOLS.findall(line):
            brought = any(is_given(name) for name in (tool, f"{tool}.py"))
            look = f"cd /tmp && {python} -c 'import {tool}' || echo {tool}"
            if brought or has_module(place, tool):
                continue
            if await _missing(look, [tool], place):
                raise _lacking(case, spec, line, tool, place)


async def _cannot_report(spec: GraderSpec, place: Workspace) -> bool:
    """Whether a grader reads reports that the image of its case has no programs to hand out."""
    from assay.graders.testing.reports import PACKS
    from assay.graders.tests import TestsGrader

    if place.image is None or not issubclass(spec.kind.grader, TestsGrader):
        return False
    implied = TestsGrader.implied(spec.options)
    if not spec.options.get("junit_xml") and not (implied and implied.junit_xml):
        return False
    return bool(await _missing(PACKS, ["packed"], place))


def _require_pytest(spec: GraderSpec, line: str, workspace: Workspace, *, case: str) -> None:
    """Refuse tests for pytest where there is none: an agent that was paid cannot be graded."""
    from assay.graders.testing.commands import read_command
    from assay.graders.testing.runners import find_python

    if read_command(line).runner != "pytest":
        return
    try:
        find_python(workspace, pytest=True)
    except GraderError as error:
        said = f"case {case!r}: {spec.label}: {error.message}"
        raise ProvisionError(said, hint=error.hint) from error


def _lacking(case: str, spec: GraderSpec, line: str, name: str, place: Workspace) -> ProvisionError:
    if place.image is not None:
        hint = "install it in the image: container: {setup: [...]}, or take another image"
    elif name in _PYTHON_TOOLS:
        hint = f"add it: environment: requirements: [{_PYTHON_TOOLS[name]}]"
        if spec.type == "command" and name in ("pytest", "py.test"):
            hint += "; or let the kind pytest run the tests"
    else:
        hint = (
            "name what the sandbox has (it shows /usr, /bin and the case's environment), or give "
            "the case one that has it: environment: ..."
        )
    return ProvisionError(
        f"case {case!r}: {spec.label}: {line!r} needs {name}, which its environment does not have",
        hint=hint,
    )


async def _missing(look: str, names: Sequence[str], workspace: Workspace) -> str:
    """The first of the names that a shell in the sandbox does not find; empty if it finds all."""
    if not names:
        return ""
    from assay.sandbox import Limits, run_command

    result = await run_command(
        ["/bin/sh", "-c", look, "sh", *names],
        workspace=workspace,
        limits=Limits(wall_seconds=_PROBE_SECONDS),
    )
    said = result.stdout.split() if result.status == "exited" else []
    return next((name for name in names if name in said), "")


def _lines(graders: Sequence[GraderSpec]) -> Iterator[str]:
    for spec in graders:
        line = spec.options.get("cmd")
        if spec.type == "command" and isinstance(line, str):
            yield line
