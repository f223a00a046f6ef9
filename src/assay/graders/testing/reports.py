"""Get report files out of a sandbox whose file system dies with the command.

The command is wrapped: files that match before it are removed, so that no report is older than the
run; what it leaves running is killed; and what matches then is packed into one file of ours.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from assay.errors import GraderError, InputError
from assay.graders.testing.attempt import Plan, TestCommand, attempt
from assay.graders.testing.authors import read_authors
from assay.graders.testing.channel import Channel
from assay.graders.testing.expected import LEFT_OUT, answer_given, note
from assay.graders.testing.foreign import Foreknown
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.graders.testing.private import conclude
from assay.sandbox import CommandResult, Mount

__all__ = ["PACKED", "check_globs", "read_packed", "run_reported", "wrapped"]

PACKED = "/opt/assay/reports"
"""Where the sandbox shows the file that the reports are packed into."""

_MOST_FILES = 100
_MOST_BYTES = 16 * 1024 * 1024
_MOST_OPTIONAL = 3
_TOOLS = ("find", "head", "tar")
_TOOLS_AT = "/usr/local/bin:/usr/bin:/bin"
_WRAPPER = f"""
line=$1
shift
(PATH={_TOOLS_AT}
    find . '(' -type f -o -type l ')' '(' "$@" ')' -exec rm -f -- '{{}}' +)
/bin/sh -c "$line"
status=$?
kill -KILL -1 2>/dev/null
(PATH={_TOOLS_AT}
    cd /workspace && find . -type f -size -{_MOST_BYTES // 512 + 1} '(' "$@" ')' -print0 |
    head -z -n {_MOST_FILES} | tar -cf {PACKED} --no-recursion --null -T -) 2>/dev/null
exit $status
"""


def check_globs(globs: Sequence[str]) -> None:
    """Refuse globs that do not stay inside the workspace.

    Raises:
        InputError: Naming the glob.
    """
    for glob in globs:
        steps = glob.removeprefix("/workspace/").split("/")
        if not glob or ".." in steps or steps[0] == "" or "\0" in glob or "\n" in glob:
            raise InputError(
                f"junit_xml {glob!r} is not a glob inside the workspace",
                hint="write it like build/reports/**/*.xml",
            )
        if glob.count("**") > _MOST_OPTIONAL:
            raise InputError(f"junit_xml {glob!r} has more than {_MOST_OPTIONAL} **")


def wrapped(line: str, globs: Sequence[str]) -> list[str]:
    """The words that run a shell line and pack the files it leaves for some globs.

    Raises:
        InputError: For a glob that does not stay inside the workspace.
        GraderError: If this machine, whose programs the sandbox shows, has nothing to pack with.
    """
    import shutil

    check_globs(globs)
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_TOOLS_AT) is None]
    if missing:
        raise GraderError(f"JUnit reports need {', '.join(missing)}", hint="install them")
    words: list[str] = []
    for glob in globs:
        for pattern in _patterns(glob):
            words += ["-o", "-regex", pattern]
    return ["/bin/sh", "-c", _WRAPPER, "sh", line, *words[1:]]


def read_packed(path: str) -> dict[str, bytes]:
    """The packed files by path in the workspace; none if nothing readable was packed."""
    import tarfile

    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    with suppress(tarfile.TarError, OSError, EOFError, ValueError), tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.type != tarfile.REGTYPE or member.size > left or len(found) == _MOST_FILES:
                continue
            left -= member.size
            content = tar.extractfile(member)
            if content is not None:
                found[member.name.removeprefix("./")] = content.read()
    return found


def _patterns(glob: str) -> list[str]:
    """A glob as regular expressions that every ``find`` reads alike, over paths from ``./``."""
    rest = glob.removeprefix("/workspace/").removeprefix("./")
    found = ["[.]/"]
    while rest:
        if rest.startswith("**/"):
            rest = rest[3:]
            found = [*found, *(f"{one}.*/" for one in found)]
            continue
        if rest.startswith("**"):
            piece, rest = ".*", rest[2:]
        elif bracket := re.match(r"\[[!^]?\]?[^\]/]*\]", rest):
            inside = bracket.group()
            piece, rest = inside.replace("[!", "[^", 1), rest[len(inside) :]
        else:
            sign, rest = rest[0], rest[1:]
            piece = {"*": "[^/]*", "?": "[^/]"}.get(sign, _literal(sign))
        found = [one + piece for one in found]
    return found


def _literal(sign: str) -> str:
    if sign in "^\\":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".+$[]" else sign


_CONSOLE_BYTES = 8 * 1024 * 1024
"""How much of a console is read: verbose runners print a line or more for each test."""


async def run_reported(plan: Plan, foreknown: Foreknown) -> TestRun:
    """Run the command once and read its report.

    Where it turns out to start a runner that reports to us, that report prevails.

    Raises:
        InputError: For a report that is declared wrongly.
        GraderError: If what is needed to read reports is not installed.
    """
    command = plan.command
    if not command.junit_xml:
        channel, result = await attempt(plan, output_bytes=_CONSOLE_BYTES)
        return await _judge(plan, foreknown, channel, result, {})
    with tempfile.TemporaryDirectory(prefix="assay-reports-") as directory:
        packed = Path(directory, "reports.tar")
        packed.touch()
        channel, result = await attempt(
            plan,
            argv=wrapped(command.cmd, command.junit_xml),
            mounts=[Mount(source=str(packed), target=PACKED, writable=True)],
        )
        return await _judge(plan, foreknown, channel, result, read_packed(str(packed)))


async def _judge(
    plan: Plan,
    foreknown: Foreknown,
    channel: Channel,
    result: CommandResult,
    reports: dict[str, bytes],
) -> TestRun:
    if channel.connected:
        return await conclude(plan, channel, result, {})
    outcomes, tampered = foreknown.sift(_outcomes(plan.command, result, reports))
    notes: tuple[str, ...] = ()
    if plan.command.ids:
        outcomes = answer_given(plan.command.ids, outcomes)
        expected = {*plan.command.ids}
    else:
        authors = read_authors(
            foreknown.hidden,
            plan.workspace,
            console=plan.command.format,
            junit=bool(plan.command.junit_xml),
        )
        spared = authors.left_out(outcomes)
        heard = {name: one for name, one in outcomes.items() if name not in spared}
        counted = authors.count(heard, canaries=bool(foreknown.planted) and not tampered)
        expected = {*counted.ids, *counted.missing}
        notes = (*note(sorted(spared), LEFT_OUT), *counted.notes)
    if foreknown.planted and plan.invocation.exact and result.exit_code == 0:
        tampered = tampered or "a failed canary ended in success"
    why = _incomplete(plan, result, reports)
    passed = any(one.outcome == "passed" for one in outcomes.values())
    if tampered == "canary missing" and not passed and result.exit_code != 0:
        # What does not compile runs no canary either, and claims nothing.
        tampered, why = "", why or f"no test was run (exit status {result.exit_code})"
    why = why or tampered
    if not why and not foreknown.planted:
        why = _contradiction(plan, result, outcomes)
    return TestRun(
        outcomes=outcomes,
        expected=tuple(sorted(expected)),
        complete=not why,
        why=why,
        flags=(tampered,) if tampered and why == tampered else (),
        channel="junit" if plan.command.junit_xml else "console",
        result=result,
        notes=notes,
    )


def _outcomes(
    command: TestCommand, result: CommandResult, reports: dict[str, bytes]
) -> dict[str, TestOutcome]:
    from assay.graders.testing.console import read_console
    from assay.graders.testing.junit import read_junit

    if command.junit_xml:
        return read_junit(reports)
    return read_console(command.format or "", f"{result.stdout}\n{result.stderr}")


def _incomplete(plan: Plan, result: CommandResult, reports: dict[str, bytes]) -> str:
    if result.status == "timed_out":
        return f"the tests did not end within {plan.command.timeout_s:g} s"
    if result.status == "output_limit":
        return "the tests printed more than is read"
    if result.exit_code is not None and result.exit_code < 0:
        return f"the command was ended by signal {-result.exit_code}"
    if result.truncated and not plan.command.junit_xml:
        return f"the tests printed more than the {_CONSOLE_BYTES} bytes that are read"
    if plan.command.junit_xml and not reports:
        return f"the command wrote no report to {', '.join(plan.command.junit_xml)}"
    return ""


def _contradiction(plan: Plan, result: CommandResult, outcomes: dict[str, TestOutcome]) -> str:
    """Where the exit status and the report do not go together."""
    bad = any(one.outcome in ("failed", "error") for one in outcomes.values())
    if not bad and result.exit_code != 0:
        return f"no test is reported as failed, but the command ended with {result.exit_code}"
    if bad and result.exit_code == 0 and plan.invocation.exact:
        return "the command ended with success, but its report has failures"
    return ""
