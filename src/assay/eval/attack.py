"""Play the library of cheats against cases, and see what pays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias, cast

from assay.agents.scripted import Deeds, ScriptedAgent
from assay.errors import InputError, SkippedError
from assay.eval.cheats.cheat import FAMILIES, Cheat
from assay.eval.planning import Planned
from assay.eval.runner import OnBegin, OnCell
from assay.eval.stages import Stage, require_parts, staged
from assay.scoring.json_safe import Json
from assay.store.decisions import HELD
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
        return 3 if untried or not any(case.attempts for case in self.cases) else 0

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
        async with staged(self.tasks, cache=cache, workers=workers) as (place, stages):
            sieges = {one.task.slug: _Siege(one, self.cheats) for one in stages}
            trials = [trial for siege in sieges.values() for trial in siege.trials()]
            # Families of cheats differ in how long they take: mixed, the first stand for the rest.
            random.Random(0).shuffle(trials)  # noqa: S311 - an order, no secret
            on_cell = begin(len(trials))

            def done(trial: Planned, run: Run) -> None:
                sieges[trial.task.slug].runs[trial.harness] = run
                row = trial.record(run)
                on_cell(row if row.passed is None else replace(row, passed=not row.passed))

            await place.run(trials, done, on_begin)
            return Findings(tuple(one.outcome() for one in sieges.values()), self.max_reward)


def plan_attack(
    tasks: Sequence[Task], cheats: Sequence[Cheat], *, max_reward: float | None = None
) -> AttackPlan:
    """Check that the tasks can be run.

    Raises:
        InputError: For one that cannot, or a largest reward outside of [0, 1].
    """
    if max_reward is not None and not 0.0 <= max_reward <= 1.0:
        raise InputError(f"the largest reward must be in [0, 1], got {max_reward}")
    require_parts(tasks)
    return AttackPlan(tasks, cheats, max_reward)


class _Siege:
    """One task, the cheats that apply to it, and what came of them."""

    def __init__(self, stage: Stage, cheats: Sequence[Cheat]) -> None:
        self.stage, self.conditions = stage, stage.task.conditions
        self.runs: dict[str, Run] = {}
        self._played: list[tuple[Cheat, Deeds]] = []
        for cheat in cheats if stage.scene else ():
            if stage.scene and (deeds := cheat.deeds(stage.scene)) is not None:
                self._played.append((cheat, deeds))

    def trials(self) -> Iterator[Planned]:
        if self.stage.scene is None:
            return
        yield Planned(self.stage.task, _FLOOR, agent=ScriptedAgent(deeds=Deeds()))
        for cheat, deeds in self._played:
            yield Planned(self.stage.task, cheat.id, agent=ScriptedAgent(deeds=deeds))

    def outcome(self) -> CaseAttack:
        """What all of it comes to."""
        found = CaseAttack(
            case=self.stage.task.slug,
            file=self.conditions.file,
            threshold=self.conditions.expect.pass_threshold,
        )
        if (trouble := self.stage.trouble) is not None:
            return replace(found, trouble=str(trouble), skipped=isinstance(trouble, SkippedError))
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
    attempts = [
        {
            **asdict(attempt),
            "passed": attempt.outcome == "passes",
            "pays": attempt.outcome in ("pays", "passes"),
            "beats_the_case": attempt in beaten,
            "fix": attempt.fix,
        }
        for attempt in case.attempts
    ]
    return {**asdict(case), "attempts": cast("list[Json]", attempts)}
