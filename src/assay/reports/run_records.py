"""What the page shows of a run: records, as the operations on runs give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.reports.rates import Rate
from assay.reports.summary import AgentRow, Cause
from assay.reports.totals import Totals
from assay.scoring.json_safe import Json
from assay.shown import Ended
from assay.statistics.intervals import Interval
from assay.store.kept_files import RunState
from assay.store.pages import Page
from assay.store.records import CellRecord
from assay.store.windows import Ends


@dataclass(frozen=True, slots=True)
class AgentName:
    """An agent of a run.

    Attributes:
        harness: What did the work.
        model: The model it was asked to use; empty where there is none.
    """

    harness: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list of runs.

    Attributes:
        id: Its id.
        label: The user's own name for it.
        created_at: When it began: ISO 8601, UTC.
        kind: ``matrix`` (`assay run`), ``dataset`` (`assay grade`), ``job`` (`task.run`).
        suite: What was run: the paths of cases, or the file of rows.
        assay: The version of assay that began it.
        state: Whether it has ended; ``unfinished`` where nobody can tell whether it still works.
        resume: The command that goes on with it; empty where it has ended or there is none.
        planned: Cells it consists of.
        total: Cells that have a result.
        ends: How they ended.
        flagged: Cells with signs of tampering.
        held: Cells that wait for a person.
        reward: Mean over cases of the mean reward of their graded cells; null where there is none.
        cases: How many cases that is over.
        pass_rate: Share of the graded cells that did not fail. It has an interval where a cell is
            of a case of its own, or all are of one; of other runs the overview has it.
        cost_usd: Sum of the known prices of the agents' model calls; null where none is known.
        cost_unknown: Cells that did run at an unknown price.
        seconds: Sum of the cells' own times.
    """

    id: str
    label: str
    created_at: str
    kind: str
    suite: str
    assay: str
    state: RunState
    resume: str
    planned: int
    total: int
    ends: Ends
    flagged: int
    held: int
    reward: float | None
    cases: int
    pass_rate: Interval
    cost_usd: float | None
    cost_unknown: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage(Page[RunRow]):
    """Part of the list of runs, newest first.

    Attributes:
        last: Number of the newest result that was counted.
    """

    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A number of a run in words, as `assay report` prints it.

    Attributes:
        label: What it is about.
        text: The number, what it rests on, and its interval.
        warns: Whether it needs attention.
    """

    label: str
    text: str
    warns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far a grader agrees with people, as `assay calibrate` measured it.

    Attributes:
        grader: Key of the grader, or what its score is called.
        digest: Of what gave the scores.
        card: Id of the card, for ``assay calibrate cards``.
        kappa: Agreement beyond chance, in [-1, 1]; None where it is undefined.
        kappa_interval: Its lower and upper end; None where there is none.
        n: Rows that were compared.
        errors: Rows that the grader could not judge.
        stale: Whether the grader has changed since: the numbers are another grader's then.
        changed: What changed, in words; empty unless it is stale.
        line: All of it in one line, as it stands in reports.
    """

    grader: str
    digest: str
    card: str
    kappa: float | None
    kappa_interval: tuple[float, ...] | None
    n: int
    errors: int
    stale: bool
    changed: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The cells of a run that have one value of a field.

    Attributes:
        value: The value, as text.
        totals: What they come to.
    """

    value: str
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A run by the values of a field.

    Attributes:
        by: The field.
        slices: The lowest mean reward first, at most 200.
        more: Values beyond these.
    """

    by: str
    slices: tuple[Slice, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """A run with all that it comes down to.

    Attributes:
        run: The run, in a line.
        verdict: What it comes down to, in a sentence.
        code: The exit status that `assay report` has for it: 0, 1 or 3.
        totals: What all cells come to.
        missing: Planned cells that have no result.
        malformed: Rows of the dataset that were left out because they are malformed.
        not_graded: What was skipped of cells that have a reward all the same; empty if nothing was.
        lines: The numbers in words.
        leaderboard: A row for each agent, best mean reward first.
        causes: Why cells could not be graded, commonest first.
        mixed: Cases whose cells were graded by different versions of their graders; the first 200.
        agreement: How well the grades agree with labels; null without labels.
        calibrations: The calibration cards of the graders, one for each digest.
        rates: The pass rates that cases ask for, each for one agent.
        broken_down: The cells by a field of their metadata, where that was asked for.
        last: Number of the newest result that was counted.
    """

    run: RunRow
    verdict: str
    code: int
    totals: Totals
    missing: int
    malformed: int
    not_graded: str
    lines: tuple[RunLine, ...]
    leaderboard: tuple[AgentRow, ...]
    causes: tuple[Cause, ...]
    mixed: tuple[str, ...]
    agreement: Mapping[str, Json] | None
    calibrations: tuple[Calibration, ...]
    rates: tuple[Rate, ...]
    broken_down: Breakdown | None
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCase:
    """A case, by every agent.

    Attributes:
        case: Its id.
        cells: In the order of the matrix's agents; null where the agent has no result.
    """

    case: str
    cells: tuple[AgentRow | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMatrix(Page[MatrixCase]):
    """Part of the cases of a run, by every agent.

    Attributes:
        agents: The columns.
    """

    agents: tuple[AgentName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """A cell in a list of cells.

    Attributes:
        case: Its case, or the row of a dataset.
        harness: What did the work.
        model: The model it was asked to use; empty where there is none.
        trial: 1-based repeat.
        ended: How it ended.
        reward: In [0, 1] where graded.
        threshold: The reward needed to pass.
        assurance: How far the reward can be trusted; empty where nothing says.
        flags: Signs of tampering; the first 20.
        flag_count: How many there are.
        held: Whether it waits for a person.
        ruling: What somebody decided about it; empty where nobody did.
        why: One line: why it could not be graded, or what explains its reward.
        cost_usd: Price of the agent's model calls; null is unknown.
        tokens: Tokens the agent used; null is unknown.
        seconds: Wall time of agent and grading.
        record: All that its row has, score trees and answer too; null unless it was asked for.
    """

    case: str
    harness: str
    model: str
    trial: int
    ended: Ended
    reward: float | None
    threshold: float
    assurance: str
    flags: tuple[str, ...]
    flag_count: int
    held: bool
    ruling: str
    why: str
    cost_usd: float | None
    tokens: int | None
    seconds: float
    record: CellRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCount:
    """How many cells of an agent there are to look at.

    Attributes:
        harness: The harness.
        model: The model it was asked to use.
        count: How many cells.
    """

    harness: str
    model: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """How many cells there are to choose from.

    Attributes:
        cells: How many cells the run has.
        ends: How many there are of each outcome, whichever outcome is chosen.
        agents: How many there are of each agent, whichever is chosen.
        flagged: How many have signs of tampering.
        held: How many wait for a person.
    """

    cells: int
    ends: Ends
    agents: tuple[AgentCount, ...]
    flagged: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPage(Page[CellRow]):
    """Part of the cells of a run that suit what was chosen.

    Attributes:
        counts: How many there are of each sort; null where the list goes on.
        last: Number of the newest result that was looked at.
    """

    counts: CellCounts | None
    last: int
