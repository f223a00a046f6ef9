"""Prove cases before they are used: right work gets everything, no work and known cheats do not.

For every case, without a model, a key or the network:

* the reference recording scores exactly 1.0;
* floors do not pass: nothing done, files emptied, the prompt echoed, keywords stuffed;
* tests that can be are judged in a process of their own, if the reference passes them there;
* graders that run several times on the same work agree with themselves;
* recordings that are known to be bad do not pass, for the reason that the case names.

A task of a template has no recordings and nothing to empty: its reference is the ``solution`` in
its metadata (an answer, or a list of actions), and its floors are answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from assay.agents.echo import EchoAgent
from assay.agents.replay import recordings_of
from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AssayError, InputError, nearest
from assay.eval.harnesses import agent_for
from assay.eval.proofs.isolation import (
    NotBegunError,
    ReferenceFailsError,
    UnsteadyTestsError,
    isolated_graders,
    reference_of,
)
from assay.eval.proofs.proof import (
    BEGINNING,
    LOADING,
    NO_REFERENCE,
    STEADY,
    CaseProof,
    ProofCheck,
    Sight,
    failed,
    must_fail,
    reference_check,
    repeats_check,
)
from assay.eval.proofs.scene import Scene, read_tree
from assay.eval.proofs.sight import RightWork, in_sight
from assay.eval.proofs.stuffing import stuffed
from assay.eval.proofs.trials import FLOOR, ProofTrial, Runs, TrialPlan, require_parts, untested
from assay.eval.proofs.weights import left_open
from assay.eval.rollout import STARTING
from assay.tasks.blocks import SelfTest
from assay.tasks.case import Case
from assay.tasks.case_files import lock_name
from assay.tasks.task import Agent, Task, solution_of
from assay.types.run import Run

_BAD = ("cheat*", "bad*", "partial*", "wrong*")
_SAID = ("answer-orders", "answer-verdict", "answer-claims")
"""Cheats that are floors where an answer is all that there is."""


def plan_selftest(
    tasks: Sequence[Task],
    *,
    repeats: int | None = None,
    unread: Mapping[str, InputError] | None = None,
) -> TrialPlan:
    """Check what the cases say of their self-test.

    Args:
        tasks: What is proven.
        repeats: Repeats of the graders, instead of what the cases say.
        unread: What is wrong with files of cases that could not be read.

    Raises:
        InputError: For fewer than one repeat; and for a case that cannot be run or names
            recordings that do not exist, if there is no other.
    """
    if repeats is not None and repeats < 1:
        raise InputError(f"repeats must be at least 1, got {repeats}")
    refused = [_refused(Path(file).parent.name, file, e) for file, e in (unread or {}).items()]
    ready: list[Task] = []
    for task in tasks:
        try:
            require_parts([task])
            _reference_of(task)
            _known_bad(task)
        except InputError as error:
            if len(tasks) == 1:
                raise
            refused.append(_refused(task.slug, task.conditions.file, error))
        else:
            ready.append(task)

    def trials(scene: Scene) -> Sequence[ProofTrial]:
        return list(_trials(scene, repeats or _repeats_of(scene.task)))

    return TrialPlan(
        tasks=ready,
        trials=trials,
        left_open=_left_open,
        again=True,
        untried=_untried,
        refused=refused,
    )


def _refused(case: str, file: str, error: InputError) -> CaseProof:
    """What is said of a case whose files are wrong: of a whole set, the others are proven."""
    check = ProofCheck(name=LOADING, verdict="error", said=str(error))
    return CaseProof(case=case, file=file, threshold=1.0, checks=(check,))


def _untried(task: Task, why: AssayError) -> ProofCheck:
    """What is said of a task of which nothing could be tried."""
    found = why.__cause__ if isinstance(why.__cause__, AssayError) else why
    if isinstance(why, ReferenceFailsError):
        fix = "correct the reference if it is wrong, else its tests"
        return failed(f"reference {_reference_of(task)}", found.message, fix)
    if isinstance(why, NotBegunError):
        said = found.message.rpartition(f"[{STARTING}] ")[2]
        return ProofCheck(name=BEGINNING, verdict="error", said=said)
    if isinstance(why, UnsteadyTestsError):
        return failed("repeats on reference", found.message, STEADY)
    return untested(why)


def _trials(scene: Scene, repeats: int) -> Iterator[ProofTrial]:
    task, case = scene.task, scene.case
    expect, reference = task.conditions.expect, _reference_of(task)
    name = f"reference {reference}"
    watched = _Watched(agent_for("replay", task, None) if case is not None else _Solver(task))
    if reference:
        yield ProofTrial(
            name=name,
            rule=lambda runs: _right(task, reference_check(name, runs[name], expect.min_assurance)),
            agent=watched,
            model=reference,
            times=repeats,
            is_right=True,
            sight=lambda: watched.sight(scene),
        )
    elif case is not None:
        fix = "record right work as recordings/reference, or name it in selftest.reference"
        missing = failed(NO_REFERENCE, "there is no reference recording", fix)
        yield ProofTrial(name=NO_REFERENCE, rule=lambda _: missing, times=0)

    def floor(
        name: str, agent: Agent, reason: str = "", *, model: str = "", times: int = 1
    ) -> ProofTrial:
        def rule(runs: Runs) -> ProofCheck:
            return must_fail(name, runs[name][0], expect.pass_threshold, reason)

        return ProofTrial(name=name, rule=rule, agent=agent, model=model, times=times)

    yield floor(FLOOR, ScriptedAgent(deeds=Deeds()), times=repeats)
    if case is not None:
        yield floor("floor emptied", watched.emptied)
    yield floor("floor echo", EchoAgent())
    yield floor("floor keywords", ScriptedAgent(deeds=stuffed(scene)))
    if case is None:
        from assay.eval.cheats import select_cheats

        for cheat in select_cheats(_SAID):
            deeds = cheat.deeds(scene) or Deeds()
            yield floor(f"floor {cheat.id}", ScriptedAgent(deeds=deeds))
    for bad, reason in _known_bad(task).items():
        yield floor(f"bad {bad}", agent_for("replay", task, None), reason, model=bad)
    if reference:
        yield _repeats("reference", name)
    yield _repeats("no-op", FLOOR)


def _repeats(short: str, name: str) -> ProofTrial:
    title = f"repeats on {short}"
    return ProofTrial(name=title, rule=lambda runs: repeats_check(title, runs[name]), times=0)


def _right(task: Task, check: ProofCheck) -> ProofCheck:
    """A check of right work, with what else may be in its way."""
    case = task.work
    graders = isolated_graders(case) if isinstance(case, Case) else ()
    if not check.fix or not any(one.isolation == "process" for one in graders):
        return check
    lock = lock_name(task.conditions.file)
    return replace(check, fix=f"{check.fix}; or remove {lock}, to decide its isolation anew")


def _left_open(task: Task, runs: Runs) -> Iterator[str]:
    if isinstance(task.work, Case):
        yield from left_open(task.work, {name: of[0] for name, of in runs.items()})
    elif not _reference_of(task):
        yield (
            "nothing shows that right work gets full marks: a known-good answer goes into "
            "the task's metadata, as solution"
        )


def _repeats_of(task: Task) -> int:
    case = task.work
    return case.selftest.repeats if isinstance(case, Case) else SelfTest().repeats


def _reference_of(task: Task) -> str:
    """What the known-good work of a task is called; empty where there is none."""
    if isinstance(task.work, Case):
        return reference_of(task.work)
    return "solution" if solution_of(task) is not None else ""


def _known_bad(task: Task) -> dict[str, str]:
    """Recordings that must not pass, each with the reason that the case names, if it names one."""
    case = task.work
    if not isinstance(case, Case):
        return {}
    found = recordings_of(str(Path(case.root, "recordings")))
    for name in case.selftest.bad:
        if name not in found:
            raise InputError(
                f"case {case.id!r}: selftest.bad names {name!r}, but there is no such recording",
                hint=nearest(name, sorted(found)),
            )
        if name == case.selftest.reference:
            raise InputError(f"case {case.id!r}: {name!r} is both its reference and known bad")
    if case.selftest.bad:
        return dict(case.selftest.bad)
    return {name: "" for name in found if any(fnmatch(name.lower(), sign) for sign in _BAD)}


class _Solver:
    """Gives the solution of a task; of one that takes several actions it may be their list."""

    def __init__(self, task: Task) -> None:
        self._actions = task.metadata.get("solution")
        self._answer = solution_of(task)

    async def __call__(self, run: Run) -> None:
        if run.max_steps < 2 or not isinstance(self._actions, list):
            run.trace.content = self._answer
            return
        for action in self._actions:
            if (await run.step(str(action))).done:
                break


class _Watched:
    """An agent of which it is noted what it touches."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.touched: set[str] = set()
        self._done: RightWork | None = None

    async def __call__(self, run: Run) -> None:
        place = run.workspace.path if run.workspace else None
        before = read_tree(place) if place else {}
        await self.agent(run)
        after = read_tree(place) if place else {}
        changed = {path for path in after if before.get(path) != after[path]}
        self.touched |= changed | (set(before) - set(after))
        files = {path: after[path] for path in sorted(changed)}
        self._done = RightWork(
            run.trace.content or "", files, is_long=run.max_steps > 1 or bool(run.tools)
        )

    def sight(self, scene: Scene) -> Sight | None:
        """Where what it did stands that whoever works can read."""
        return None if self._done is None else in_sight(scene, self._done)

    async def emptied(self, run: Run) -> None:
        """Empty all that it touched, and say nothing."""
        files = dict.fromkeys(sorted(self.touched), b"")
        await ScriptedAgent(deeds=Deeds(files=files, answer=""))(run)
