"""What the store keeps: runs, and the cells of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance

__all__ = ["CellKey", "CellRecord", "CellStatus", "Counts", "RunRecord"]

CellStatus = Literal["graded", "error", "skipped"]

CellKey: TypeAlias = tuple[str, str, str, int]
"""Case, harness, model and trial: what makes a cell unique in its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One launch: what was asked for, so that it can be resumed and explained.

    Attributes:
        id: Sortable and unique, such as ``20261121-090830-ab12``.
        created_at: ISO 8601, UTC.
        label: The user's own name for it.
        config: Everything that decides what is run, as plain JSON.
        digests: Case id to the digest of the case as it was when the run started.
        finished: Whether every planned cell was stored.
        planned: Number of cells the launch consists of.
    """

    id: str
    created_at: str
    label: str = ""
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    finished: bool = False
    planned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """The result of one cell (case, harness, model, trial), or of one graded dataset row.

    Attributes:
        run_id: The run it belongs to.
        case: Case id, task slug, or row id.
        harness: What did the work.
        model: The model it was asked to use; empty where there is none.
        trial: 1-based repeat.
        status: ``graded``, ``error`` (could not be graded) or ``skipped`` (nothing applied).
        reward: In [0, 1] where graded, else None.
        passed: Whether the reward reached the threshold, and the assurance its minimum; None
            unless graded.
        threshold: The reward needed to pass.
        assurance: How far the reward can be trusted; None where nothing says.
        min_assurance: The assurance needed to pass, if one is.
        error: Why it could not be graded; empty otherwise.
        flags: Signs of tampering.
        seconds: Wall time of agent and grading.
        cost_usd: Price of the agent's model calls; None is unknown.
        tokens: Tokens the agent used; None is unknown.
        digest: Digest of what graded it: case, graders and assay's version.
        subscores: The score tree as plain JSON (see `SubScore.to_dict`).
        content: One line that explains the reward, if there is one.
        answer: The final answer, shortened.
        file: The case file or dataset row it came from, for people.
        notes: What was done to the submission before it was graded: ``dropped`` and ``restored``
            list the changes that were left out, and why; ``held`` has the reward that waits for a
            person's decision, ``review`` that decision.
    """

    run_id: str
    case: str
    harness: str = ""
    model: str = ""
    trial: int = 1
    status: CellStatus
    reward: float | None = None
    passed: bool | None = None
    threshold: float = 1.0
    assurance: Assurance | None = None
    min_assurance: Assurance | None = None
    error: str = ""
    flags: tuple[str, ...] = ()
    seconds: float = 0.0
    cost_usd: float | None = None
    tokens: int | None = None
    digest: str = ""
    subscores: tuple[Mapping[str, Json], ...] = ()
    content: str = ""
    answer: str = ""
    file: str = ""
    notes: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def key(self) -> CellKey:
        """What makes the cell unique in its run: the coordinates themselves, never joined text."""
        return (self.case, self.harness, self.model, self.trial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How the cells of a run ended so far; each cell counts once, by its newest result.

    Attributes:
        passed: Graded, and the reward reached the threshold.
        failed: Graded, and it did not.
        errors: Could not be graded; run again when the run is resumed.
        skipped: Nothing applied.
    """

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """Cells that have a result."""
        return self.passed + self.failed + self.errors + self.skipped
