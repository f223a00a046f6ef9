"""Play the library of cheats against cases, and see what pays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import AssayError, InputError, SkippedError
from assay.eval.cheats.cheat import FAMILIES, Cheat
from assay.eval.isolation_proof import settle
from assay.eval.planning import Planned, require_case_parts
from assay.eval.runner import OnBegin, OnCell
from assay.eval.scene import Scene
from assay.eval.trials import Arena, arena
from assay.eval.work import stop_environments
from assay.scoring.json_safe import Json
from assay.store.decisions import HELD
from assay.tasks.case import Case
from assay.tasks.task import Task
from assay.types.run import Run

__all__ = ["AttackPlan", "Attempt", "CaseAttack", "Findings", "plan_attack"]

Outcome: TypeAlias = Literal["passes", "pays", "escapes", "holds", "not played"]
Begin: TypeAlias = "Callable[[int], OnCell]"

_FLOOR = "no-op"
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One cheat, played against one case.

    Attributes:
        cheat: Its id.
        title: What it does.
        family: Its family.
        outcome: ``passes``; ``pays``: more than doing nothing, but it does not pass; ``escapes``:
            it kept itself from being graded; ``holds``: nothing gained; ``not played``: it could
            not be tried here.
        reward: What it got; None where it was not graded.
        flags: Signs of tampering that graders found.
        paid_by: Graders that gave it more than they gave to doing nothing.
        said: Why there is no reward, or an empty string.
    """

    cheat: str
    title: str
    family: str
    outcome: Outcome
    reward: float | None = None
    flags: tuple[str, ...] = ()
    paid_by: tuple[str, ...] = ()
    said: str = ""

    @property
    def fix(self) -> str:
        """What stops cheats of this family; empty where it holds."""
        return FAMILIES[self.family] if self.outcome in ("passes", "pays") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAttack:
    """What the cheats got of one case.

    Attributes:
        case: Its id.
        file: Its file.
        threshold: Reward that passes.
        floor: What doing nothing gets; None where that could not be graded.
        attempts: One for each cheat that applies.
        trouble: Why the case could not be attacked, or an empty string.
        skipped: Whether that is because the case does not apply on this machine.
    """

    case: str
    file: str
    threshold: float
    floor: float | None = None
    attempts: tuple[Attempt, ...] = ()
    trouble: str = ""
    skipped: bool = False

    def of(self, *outcomes: Outcome) -> list[Attempt]:
        """Attempts with one of these outcomes, the best paid first."""
        found = [attempt for attempt in self.attempts if attempt.outcome in outcomes]
        return sorted(found, key=lambda attempt: -(attempt.reward or 0.0))


@dataclass(frozen=True, slots=True)
class Findings:
    """What the cheats got of every case.

    Attributes:
        cases: One for each case.
        max_reward: The largest reward that a cheat may get; None asks only that none passes.
    """

    cases: tuple[CaseAttack, ...]
    max_reward: float | None = None

    def beaten(self, case: CaseAttack) -> list[Attempt]:
        """Attempts against a case that must not be."""
        return [
            attempt
            for attempt in case.attempts
            if attempt.outcome in ("passes", "escapes")
            or (
                self.max_reward is not None
                and (attempt.reward or 0.0) > self.max_reward + _ROUNDING
            )
        ]

    @property
    def code(self) -> int:
        """Exit code: 0 all hold, 1 a cheat passes, escapes or gets too much, 3 not all tried."""
        if any(self.beaten(case) for case in self.cases):
            return 1
        untried = any((c.trouble and not c.skipped) or c.of("not played") for c in self.cases)
        return 3 if untried or all(case.skipped for case in self.cases) else 0

    def to_dict(self) -> dict[str, Json]:
        """The findings as plain JSON."""
        cases = [_case_dict(case, self.beaten(case)) for case in self.cases]
        return {"holds": self.code == 0, "max_reward": self.max_reward, "cases": list[Json](cases)}


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """An attack that is ready to go.

    Attributes:
        tasks: What is attacked.
        cheats: What is played.
        max_reward: As for `Findings`.
    """

    tasks: Sequence[Task]
    cheats: Sequence[Cheat]
    max_reward: float | None = None

    async def go(
        self,
        *,
        cache: str,
        workers: int,
        begin: Begin,
        on_begin: OnBegin = lambda _: None,
    ) -> Findings:
        """Play every cheat that applies.

        Args:
            cache: Directory of fetched sources and built environments.
            workers: Cheats played at once.
            begin: Called with the number of trials, once it is known. What it returns is called
                with each trial as it finishes; that ``passed`` if the case held.
            on_begin: Called with each trial's key as it begins.
        """
        async with arena(cache=cache, workers=workers) as place:
            try:
                return await self._attack(place, begin, on_begin)
            finally:
                await stop_environments(self.tasks)

    async def _attack(self, place: Arena, begin: Begin, on_begin: OnBegin) -> Findings:
        settled, undecided = await settle(self.tasks, place)
        sieges = [
            await _Siege.lay(task, place, self.cheats, undecided.get(task.slug)) for task in settled
        ]
        trials = [trial for siege in sieges for trial in siege.trials()]
        # Families of cheats differ in how long they take: mixed, the first stand for the rest.
        random.Random(0).shuffle(trials)  # noqa: S311 - an order, no secret
        on_cell = begin(len(trials))
        by_case = {siege.task.slug: siege for siege in sieges}

        def done(trial: Planned, run: Run) -> None:
            by_case[trial.task.slug].runs[trial.harness] = run
            row = trial.record(run)
            on_cell(row if row.passed is None else replace(row, passed=not row.passed))

        await place.run(trials, done, on_begin)
        return Findings(tuple(siege.outcome() for siege in sieges), self.max_reward)


def plan_attack(
    tasks: Sequence[Task], cheats: Sequence[Cheat], *, max_reward: float | None = None
) -> AttackPlan:
    """Check that the tasks can be run.

    Raises:
        InputError: For one that cannot, or a largest reward outside of [0, 1].
    """
    if max_reward is not None and not 0.0 <= max_reward <= 1.0:
        raise InputError(f"the largest reward must be in [0, 1], got {max_reward}")
    for task in tasks:
        if isinstance(task.work, Case):
            require_case_parts(task.work)
    return AttackPlan(tasks, cheats, max_reward)


class _Siege:
    """One task, the cheats that apply to it, and what came of them."""

    def __init__(self, task: Task, scene: Scene | None, cheats: Sequence[Cheat]) -> None:
        self.task = task
        self.conditions = task.conditions
        self.trouble = ""
        self.skipped = False
        self.runs: dict[str, Run] = {}
        self._played: list[tuple[Cheat, Deeds]] = []
        for cheat in cheats if scene else ():
            deeds = cheat.deeds(scene) if scene else None
            if deeds is not None:
                self._played.append((cheat, deeds))

    @classmethod
    async def lay(
        cls, task: Task, place: Arena, cheats: Sequence[Cheat], undecided: AssayError | None = None
    ) -> _Siege:
        try:
            if undecided is not None:
                raise undecided
            return cls(task, await place.scene(task), cheats)
        except AssayError as error:  # the case cannot begin: reported with it, not instead of it
            siege = cls(task, None, ())
            siege.trouble = str(error)
            siege.skipped = isinstance(error, SkippedError)
            return siege

    def trials(self) -> Iterator[Planned]:
        if self.trouble:
            return
        yield Planned(self.task, _FLOOR, agent=ScriptedAgent(deeds=Deeds()))
        for cheat, deeds in self._played:
            yield Planned(self.task, cheat.id, agent=ScriptedAgent(deeds=deeds))

    def outcome(self) -> CaseAttack:
        """What all of it comes to."""
        found = CaseAttack(
            case=self.task.slug,
            file=self.conditions.file,
            threshold=self.conditions.expect.pass_threshold,
            trouble=self.trouble,
            skipped=self.skipped,
        )
        if self.trouble:
            return found
        floor = self.runs[_FLOOR]
        if floor.reward is None:
            why = floor.grade.content or floor.trace.error or "no cause was recorded"
            skipped = not floor.grade.is_error
            said = f"doing nothing could not be graded: {why}"
            return replace(found, trouble=said, skipped=skipped)
        attempts = tuple(
            self._attempt(cheat, self.runs[cheat.id], floor) for cheat, _ in self._played
        )
        return replace(found, floor=floor.reward, attempts=attempts)

    def _attempt(self, cheat: Cheat, run: Run, floor: Run) -> Attempt:
        reward = run.reward
        said = "" if reward is not None else run.grade.content or run.trace.error or "skipped"
        outcome: Outcome = "holds"
        if HELD in run.grade.info:
            outcome = "holds"  # what it would get waits for a person
        elif reward is None:
            outcome = "not played" if said.startswith(("[agent]", "[starting task]")) else "escapes"
        elif reward >= self.conditions.expect.pass_threshold - _ROUNDING:
            outcome = "passes"
        elif reward > (floor.reward or 0.0) + _ROUNDING:
            outcome = "pays"
        return Attempt(
            cheat=cheat.id,
            title=cheat.title,
            family=cheat.family,
            outcome=outcome,
            reward=reward,
            flags=run.grade.result.flags,
            paid_by=tuple(_paid_more(run, floor)),
            said=said,
        )


def _paid_more(run: Run, floor: Run) -> Iterator[str]:
    """Graders that gave a run more credit than they gave to doing nothing."""
    before = {node.name: node.value or 0.0 for node in floor.grade.subscores}
    for node in run.grade.subscores:
        if node.weight > 0 and (node.value or 0.0) > before.get(node.name, 0.0) + _ROUNDING:
            yield node.name


def _case_dict(case: CaseAttack, beaten: Sequence[Attempt]) -> dict[str, Json]:
    names = {attempt.cheat for attempt in beaten}
    attempts: list[Json] = [
        {
            "cheat": attempt.cheat,
            "title": attempt.title,
            "family": attempt.family,
            "outcome": attempt.outcome,
            "reward": attempt.reward,
            "passed": attempt.outcome == "passes",
            "pays": attempt.outcome in ("pays", "passes"),
            "beats_the_case": attempt.cheat in names,
            "flags": list[Json](attempt.flags),
            "paid_by": list[Json](attempt.paid_by),
            "said": attempt.said,
            "fix": attempt.fix,
        }
        for attempt in case.attempts
    ]
    return {
        "case": case.case,
        "file": case.file,
        "threshold": case.threshold,
        "floor": case.floor,
        "trouble": case.trouble,
        "skipped": case.skipped,
        "attempts": attempts,
    }
