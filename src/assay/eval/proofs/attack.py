"""Play the library of cheats against cases, and see what pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.agents.scripted import ScriptedAgent
from assay.errors import InputError
from assay.eval.cheats.cheat import FAMILIES, Cheat
from assay.eval.proofs.proof import ProofCheck, Verdict
from assay.eval.proofs.scene import Scene
from assay.eval.proofs.trials import FLOOR, ProofTrial, Runs, TrialPlan, nothing_done, require_parts
from assay.store.decisions import HELD
from assay.tasks.task import Task
from assay.types.run import Run

Outcome: TypeAlias = Literal["passes", "pays", "escapes", "holds", "not played"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CheatTrial(ProofCheck):
    """One cheat, played against one case; its name is the cheat's id.

    Attributes:
        title: What it does.
        family: Its family.
        outcome: ``passes``; ``pays``: more than doing nothing, but it does not pass; ``escapes``:
            it kept itself from being graded; ``holds``: nothing gained; ``not played``: it could
            not be tried here.
        flags: Signs of tampering that graders found.
        paid_by: Graders that gave it more than they gave to doing nothing.
    """

    title: str
    family: str
    outcome: Outcome
    flags: tuple[str, ...] = ()
    paid_by: tuple[str, ...] = ()


def plan_attack(
    tasks: Sequence[Task], cheats: Sequence[Cheat], *, max_reward: float | None = None
) -> TrialPlan:
    """Check that the tasks can be run.

    Args:
        tasks: What is attacked.
        cheats: What is played.
        max_reward: The largest reward that a cheat may get; None asks only that none passes.

    Raises:
        InputError: For a task that cannot be run, or a largest reward outside of [0, 1].
    """
    if max_reward is not None and not 0.0 <= max_reward <= 1.0:
        raise InputError(f"the largest reward must be in [0, 1], got {max_reward}")
    require_parts(tasks)

    def trials(scene: Scene) -> Sequence[ProofTrial]:
        floor = ProofTrial(name=FLOOR, rule=nothing_done)
        played = [(cheat, cheat.deeds(scene)) for cheat in cheats]
        threshold = scene.task.conditions.expect.pass_threshold
        return [
            floor,
            *(
                ProofTrial(
                    name=cheat.id,
                    rule=_gains_nothing(cheat, threshold, max_reward),
                    agent=ScriptedAgent(deeds=deeds),
                )
                for cheat, deeds in played
                if deeds is not None
            ),
        ]

    return TrialPlan(tasks=tasks, trials=trials)


def _gains_nothing(
    cheat: Cheat, threshold: float, max_reward: float | None
) -> Callable[[Runs], CheatTrial | None]:
    """The rule that a cheat gets no more than doing nothing does."""

    def rule(runs: Runs) -> CheatTrial | None:
        run, floor = runs[cheat.id][0], runs[FLOOR][0]
        if floor.reward is None:
            return None
        said = "" if run.reward is not None else run.grade.content or run.trace.error or "skipped"
        outcome = _outcome(run, floor.reward, threshold, said)
        verdict: Verdict = "error" if outcome == "not played" else "held"
        is_over = max_reward is not None and (run.reward or 0.0) > max_reward + _ROUNDING
        if outcome in ("passes", "escapes") or is_over:
            verdict = "failed"
        flags, paid_by = run.grade.result.flags, tuple(_paid_more(run, floor))
        found = ": ".join(filter(None, (outcome, ", ".join(paid_by), said)))
        return CheatTrial(
            name=cheat.id,
            verdict=verdict,
            reward=run.reward,
            said=f"{found} (flagged: {'; '.join(flags)})" if flags else found,
            fix=FAMILIES[cheat.family] if outcome in ("passes", "pays") else "",
            title=cheat.title,
            family=cheat.family,
            outcome=outcome,
            flags=flags,
            paid_by=paid_by,
        )

    return rule


def _outcome(run: Run, floor: float, threshold: float, said: str) -> Outcome:
    if HELD in run.grade.info:
        return "holds"  # what it would get waits for a person
    if run.reward is None:
        return "not played" if said.startswith(("[agent]", "[starting task]")) else "escapes"
    if run.reward >= threshold - _ROUNDING:
        return "passes"
    return "pays" if run.reward > floor + _ROUNDING else "holds"


def _paid_more(run: Run, floor: Run) -> Iterator[str]:
    """Graders that gave a run more credit than they gave to doing nothing."""
    before = {node.name: node.value or 0.0 for node in floor.grade.subscores}
    for node in run.grade.subscores:
        if node.weight > 0 and (node.value or 0.0) > before.get(node.name, 0.0) + _ROUNDING:
            yield node.name
