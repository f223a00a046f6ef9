"""Run hidden tests over a grading tree and learn, where it can be, from a channel of our own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from assay.errors import GraderError, InputError
from assay.graders.testing.attempt import RunnerPlan, TestCommand, attempt
from assay.graders.testing.channel import RunnerChannel, RunnerReport
from assay.graders.testing.commands import Invocation, read_command
from assay.graders.testing.contract import Contract
from assay.graders.testing.expected import answer_given, expect, split_id, unmade, weigh
from assay.graders.testing.hidden import (
    hidden_files,
    language_of,
    lay_out,
    read_inject,
    source_text,
)
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.graders.testing.prerequisites import require_program, require_start, require_targets
from assay.graders.testing.python_ids import PythonTests, read_python_tests
from assay.sandbox import CommandResult
from assay.types.submission import Workspace

__all__ = ["TestCommand", "conclude", "run_tests"]

_ENDED_WELL = (0, 5)
"""Exit statuses of runs without a failure; by 5 pytest and unittest say that there was no test."""

_MOST_CRASHES = 5
_SHOWN = 3
_LARGEST_SOURCE = 1024 * 1024

_LOADED = {
    "pytest": (".py",),
    "unittest": (".py",),
    "node": (".js", ".cjs", ".mjs"),
    "unknown": (".py", ".js", ".cjs", ".mjs"),
}
"""Suffixes of the sources that a runner loads from its brief."""


async def run_tests(command: TestCommand, workspace: Workspace) -> TestRun:
    """Run the tests.

    A test that ends the process is failed, and the others are run again without it.

    Raises `GraderError`: Something that the submission cannot cause is missing, e.g. pytest.
    """
    run = await _run(command, workspace)
    if not run.expected and (run.channel in ("private", "apart") or run.complete):
        await _require_tests(command, workspace)
    return run


async def _require_tests(command: TestCommand, workspace: Workspace) -> None:
    """Refuse a command that has no tests to run, whatever the submission is."""
    if workspace.source is None and not command.inject:
        return
    with tempfile.TemporaryDirectory(prefix="assay-source-") as nothing:
        pristine = replace(workspace, path=workspace.source or nothing, changes=())
        run = await _run(command, pristine)
    if not run.expected and run.result.exit_code in _ENDED_WELL:
        raise GraderError(
            f"{command.cmd!r} has no test of the author's to run",
            hint="inject a file with tests, or correct the paths and the selection in cmd",
        )


async def _run(command: TestCommand, workspace: Workspace) -> TestRun:
    if not command.timeout_s > 0:
        raise InputError("timeout_s must be more than 0")
    inject = read_inject(command.inject)
    files = hidden_files(inject)
    invocation = read_command(command.cmd, workspace.source or workspace.path)
    if invocation.runner is None and not command.declares:
        raise InputError(
            f"nothing declares how to read the outcomes of {invocation.program!r}",
            hint="declare junit_xml or format",
        )
    told = {dest: source_text(files[dest]) for dest in loaded_sources(files, invocation)}
    deadline = time.monotonic() + command.timeout_s
    plan = partial(
        RunnerPlan,
        command=command,
        workspace=workspace,
        invocation=invocation,
        told=told,
        deadline=deadline,
        hidden=tuple(files),
    )
    if invocation.runner not in (None, "unknown") or not command.declares:
        open_files = hidden_files([entry for entry in inject if entry.on_disk])
        unseen = () if command.isolation == "process" else told.keys() - open_files.keys()
        with lay_out(files, told=unseen) as layer:
            whole = plan(layer=layer)
            run = await run_until_whole(whole)
            await require_program(whole, run.result)
            return run
    from assay.graders.testing.reports import foresee, run_reported

    # A command that may turn out to read its tests from disk must find them there.
    foreknown = foresee(command, invocation, files, workspace)
    with lay_out(files, planted=foreknown.planted) as layer:
        whole = plan(layer=layer)
        run = await run_reported(whole, foreknown)
        await require_program(whole, run.result)
        return run


def loaded_sources(files: Mapping[str, str], invocation: Invocation) -> list[str]:
    """The hidden files that the runner loads from its brief; a script that is run stays a file."""
    suffixes = _LOADED.get(invocation.runner or "", ())
    scripts = {PurePosixPath(name).name for name in invocation.scripts}
    return [
        dest
        for dest in files
        if dest.endswith(suffixes) and PurePosixPath(dest).name not in scripts
    ]


async def run_until_whole(plan: RunnerPlan) -> TestRun:
    """Run the tests; again without a test that ends the process, so that the others are heard."""
    crashed: dict[str, TestOutcome] = {}
    while True:
        channel, result = await attempt(plan, skip=list(crashed))
        heard = channel.heard
        ended = heard.started if result.status == "exited" and heard.exit is None else None
        if ended is None or ended in crashed or len(crashed) == _MOST_CRASHES:
            break
        status = result.exit_code
        message = f"the process ended during this test (exit status {status})"
        crashed[ended] = TestOutcome(id=ended, outcome="failed", message=message)
    heard.outcomes.update(crashed)
    return await conclude(plan, channel, result, crashed)


async def conclude(
    plan: RunnerPlan,
    channel: RunnerChannel,
    result: CommandResult,
    crashed: Mapping[str, TestOutcome],
) -> TestRun:
    """Judge a run from what its runner said."""
    heard, command = channel.heard, plan.command
    require_start(plan, channel, result)
    if _ran_nothing(heard) and not heard.canaries:
        require_targets(plan)
    flags = list(dict.fromkeys(_signs(channel)))
    why = _incomplete(plan, channel, result) or _named(flags)
    if not why and (contradiction := _contradiction(plan.invocation, heard, result, crashed)):
        flags, why = [contradiction], contradiction
    errors = {
        name: TestOutcome(id=name, outcome="error", message=message)
        for name, message in heard.errors.items()
    }
    outcomes = errors | heard.outcomes
    notes: list[str] = []
    contract = command.contract or Contract()
    weights: Mapping[str, float] = {}
    variants: Mapping[str, int] = {}
    skips: tuple[str, ...] = ()
    if command.ids:
        outcomes = answer_given(command.ids, outcomes)
        expected = tuple(sorted({*command.ids}))
    else:
        hidden = _author_tests(plan, heard)
        found = expect(heard, hidden, plan.invocation, changed=plan.workspace.changes or ())
        gone = unmade(found, hidden, contract.variants or ())
        expected = tuple(sorted({*found.ids, *_unheard(plan, heard), *gone}))
        skips = _skipped(expected, outcomes) if contract.learns else contract.skips
        expected = tuple(name for name in expected if name not in skips)
        visible = await asyncio.to_thread(_visible_tests, plan, expected, hidden)
        weighed = weigh(expected, outcomes, hidden, visible, contract.variants)
        weights, variants = weighed.weights, weighed.variants
        expected = tuple(sorted({*expected, *weighed.missing}))
        notes += [*found.notes, *weighed.notes]
    if _is_shuffled(plan, heard) and any(
        one.outcome in ("failed", "error") for one in heard.outcomes.values()
    ):
        notes.append(f"order shuffled (seed {channel.seed}); shuffle: false keeps it")
    if channel.nested:
        notes.append(f"{channel.nested} test runs inside the tests were not reported")
    notes += heard.notes
    notes += [f"{name} ended the process; the others were run again" for name in crashed]
    return TestRun(
        outcomes=outcomes,
        expected=expected,
        why=why,
        flags=tuple(flags),
        channel="apart" if command.isolation == "process" else "private",
        result=result,
        notes=tuple(notes),
        isolation=command.isolation,
        undecided=tuple(dict.fromkeys(heard.undecided)),
        needs={test: tuple(entries) for test, entries in heard.needs.items()},
        skips=skips,
        weights=weights,
        variants=variants if contract.learns else None,
    )


def _skipped(expected: Sequence[str], outcomes: Mapping[str, TestOutcome]) -> tuple[str, ...]:
    """The tests that the reference skips while they run: the author's skips, as it is the author's.

    Where it skips all, that is none.
    """
    found = [name for name in expected if name in outcomes and outcomes[name].outcome == "skipped"]
    return tuple(found) if len(found) < len(expected) else ()


def _is_shuffled(plan: RunnerPlan, heard: RunnerReport) -> bool:
    """Whether the tests ran in an order of ours; those of JavaScript never do."""
    paths = (name.partition("::")[0] for name in heard.collected)
    return plan.command.shuffle and any(path.endswith(".py") for path in paths)


def _unheard(plan: RunnerPlan, heard: RunnerReport) -> tuple[str, ...]:
    """Tests that hidden JavaScript declares and of which nothing was heard."""
    sources = {path: text for path, text in plan.told.items() if not path.endswith(".py")}
    if plan.invocation.runner not in ("node", "unknown") or not sources:
        return ()
    from assay.graders.testing.static_ids import read_static_tests, unheard

    if any(
        word.startswith(("--test-name-pattern", "--test-only")) for word in plan.invocation.args
    ):
        return ()
    names = [name for path, text in sources.items() for name in read_static_tests(path, text).names]
    return unheard(names, {*heard.collected, *heard.outcomes})


def _signs(channel: RunnerChannel) -> list[str]:
    """Signs that the submission tampered with the run."""
    heard = channel.heard
    signs = [*heard.tampering]
    if channel.forged:
        signs.append("forged report")
    if channel.rivals:
        signs.append("second runner")
    name, planted = channel.canary
    for canary, (outcome, message) in heard.canaries.items():
        if outcome == "passed":
            signs.append("canary passed")
        elif outcome not in ("failed", "error") or planted not in message:
            signs.append("canary did not fail as planted")
        elif name not in canary:
            signs.append("unknown canary")
    if heard.exit is not None and not heard.canaries and not _ran_nothing(heard):
        signs.append("canary missing")
    return signs


def _ran_nothing(heard: RunnerReport) -> bool:
    """Whether a runner left without having found anything to run, and says so."""
    return heard.exit not in (0, None) and not heard.collected and not heard.outcomes


def _named(flags: Sequence[str]) -> str:
    more = f" and {len(flags) - _SHOWN} more signs" if len(flags) > _SHOWN else ""
    return f"tampered with: {', '.join(flags[:_SHOWN])}{more}" if flags else ""


def _incomplete(plan: RunnerPlan, channel: RunnerChannel, result: CommandResult) -> str:
    """Why a run did not come to its end; empty if it did."""
    unknown = plan.invocation.runner == "unknown"
    hint = "; or declare junit_xml or format" if unknown else ""
    reasons = {
        f"the tests did not end within {plan.command.timeout_s:g} s": result.status == "timed_out",
        "the tests printed more than is read": result.status == "output_limit",
        f"{channel.forged}: its report is not trusted": bool(channel.forged),
        "a second test runner was started beside the one that reported": channel.rivals > 0,
        f"the command never came to start its test runner{hint}": not channel.connected,
        "the run ended before its tests did": channel.heard.exit is None,
        f"no test was run (exit status {channel.heard.exit})": _ran_nothing(channel.heard)
        and not channel.heard.canaries,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _contradiction(
    invocation: Invocation,
    heard: RunnerReport,
    result: CommandResult,
    crashed: Mapping[str, TestOutcome],
) -> str:
    """Where the exit status and the report do not go together."""
    said, status = heard.exit, result.exit_code
    if status is None or status < 0 or (said == 0) > (status == 0):
        return f"the runner announced exit status {said}, but the command ended with {status}"
    if invocation.exact and said != status:
        return f"the runner announced exit status {said}, but the command ended with {status}"
    bad = any(
        outcome.outcome in ("failed", "error")
        for name, outcome in heard.outcomes.items()
        if name not in crashed
    )
    if said == 0 and (bad or heard.errors):
        return "the runner announced success, but reported failures"
    return ""


def _author_tests(plan: RunnerPlan, heard: RunnerReport) -> dict[str, PythonTests]:
    """The tests of the hidden files, and of the author's own files that could not be loaded."""
    scripts = _author_scripts(plan, heard)
    if plan.invocation.runner == "node":
        return scripts
    sources = {path: text for path, text in plan.told.items() if path.endswith(".py")}
    named = {name.partition("::")[0] for name in heard.errors}
    sources |= _unchanged(plan, {path for path in named - sources.keys() if path.endswith(".py")})
    return {**scripts, **read_python_tests(_with_fixtures(plan, sources))}


def _author_scripts(plan: RunnerPlan, heard: RunnerReport) -> dict[str, PythonTests]:
    """What the author's JavaScript declares, and leaves out; all that is heard of it counts."""
    sources = {path: text for path, text in plan.told.items() if language_of(path)}
    named = {name.partition("::")[0] for name in heard.outcomes}
    sources |= _unchanged(plan, {path for path in named - sources.keys() if language_of(path)})
    if not sources:
        return {}
    from assay.graders.testing.static_ids import read_static_tests

    read = {path: read_static_tests(path, text) for path, text in sources.items()}
    return {
        path: PythonTests(
            open=True,
            possible={*tests.names, *tests.possible, *tests.skipped},
            skips=dict.fromkeys(tests.skipped, True),
        )
        for path, tests in read.items()
    }


def _visible_tests(
    plan: RunnerPlan, ids: Sequence[str], hidden: Mapping[str, PythonTests]
) -> dict[str, PythonTests]:
    """Those of the author's files that are not hidden and in which a test has several variants."""
    places = Counter(split_id(name, hidden) for name in ids)
    paths = {path for (path, _), count in places.items() if count > 1 and path not in hidden}
    if not paths:
        return {}
    return read_python_tests(_with_fixtures(plan, _unchanged(plan, paths)))


def _with_fixtures(plan: RunnerPlan, sources: Mapping[str, str]) -> dict[str, str]:
    """Python files with all in which they may have fixtures; what configures is the source's."""
    beside = {str(up / "conftest.py") for one in sources for up in PurePosixPath(one).parents}
    texts = {path: _pristine(plan.workspace.source, path) for path in beside}
    found = {path: text for path, text in texts.items() if text is not None}
    hidden = {path: text for path, text in plan.told.items() if path.endswith(".py")}
    return {**found, **sources, **hidden}


def _unchanged(plan: RunnerPlan, paths: Iterable[str]) -> dict[str, str]:
    """The text of the author's files that the submission left as they were."""
    changed = plan.workspace.changes or ()
    texts = {path: _pristine(plan.workspace.source, path) for path in {*paths}.difference(changed)}
    return {path: text for path, text in texts.items() if text is not None}


def _pristine(source: str | None, path: str) -> str | None:
    if source is None or ".." in PurePosixPath(path).parts or path.startswith("/"):
        return None
    place = Path(source, path)
    if not place.is_file() or place.stat().st_size > _LARGEST_SOURCE:
        return None
    return source_text(str(place))
