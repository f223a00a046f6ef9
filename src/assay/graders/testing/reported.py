"""Outcomes learnt from what a foreign runner leaves behind: JUnit files, or its console text.

Both are written where the submission can write, so they prove less than the private channel does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from assay.graders.testing.attempt import Plan, TestCommand, attempt
from assay.graders.testing.authors import read_authors
from assay.graders.testing.channel import Channel
from assay.graders.testing.expected import LEFT_OUT, answer_given, note
from assay.graders.testing.foreign import Foreknown
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.graders.testing.private import conclude
from assay.graders.testing.reports import PACKED, read_packed, wrapped
from assay.sandbox import CommandResult, Mount

__all__ = ["run_reported"]

_CONSOLE_BYTES = 8 * 1024 * 1024
"""How much of a console is read: verbose runners print a line or more for each test."""


async def run_reported(plan: Plan, foreknown: Foreknown) -> TestRun:
    """Run the command once and read its report.

    Where it turns out to start a runner that reports to us, that report prevails.

    Args:
        plan: What to run.
        foreknown: What is known of its tests.

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
