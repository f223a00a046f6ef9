"""What the page shows of a cell: records, each a part that is asked for apart."""

from __future__ import annotations

from assay.frozen import frozen
from assay.reports.opened import FileChange
from assay.reports.outcome import Ended
from assay.reports.pictures import CellPictures
from assay.reports.score_view import FoldedText, ScoreNode, TamperSign
from assay.reports.trajectory import MomentKind
from assay.store.decisions import Decision


@frozen(kw_only=True)
class PastResult:
    """A result that the cell has or had; each grading appends one."""

    state: Ended
    reward: float | None
    sentence: str
    digest: str
    decision: Decision | None


@frozen(kw_only=True)
class CellPlace:
    """Where a cell is in its run."""

    case: str
    harness: str
    model: str
    trial: int


@frozen(kw_only=True)
class CellChange:
    """A cell's newest result beside the one before, and what is different in their scores."""

    place: CellPlace
    before: PastResult
    after: PastResult
    reasons: tuple[str, ...]


@frozen(kw_only=True)
class SiblingCell:
    """A cell of the same case: another trial, or another agent."""

    place: CellPlace
    state: Ended
    reward: float | None
    flagged: bool


@frozen(kw_only=True)
class CellCommand:
    """A command about the cell, to be copied."""

    does: str
    command: str


@frozen(kw_only=True)
class CellView:
    """A cell, opened.

    Attributes:
        run: Id of its run.
        label: Label of its run.
        place: Which cell it is.
        state: What became of it.
        reward: In [0, 1]; None where it has none.
        held: The reward that waits for a decision; None where none does.
        threshold: What is needed to pass.
        sentence: How the reward came about, and what follows.
        trouble: Why it could not be graded; empty otherwise.
        content: What its grader says of it, on a line.
        assurance: How far the reward can be trusted; empty where nothing says.
        min_assurance: What its case asks for; empty where it asks for none.
        flags: Signs of tampering, as they were noted.
        signs: The same with file, line and code, where an audit found them.
        cost_usd: Of the agent's model calls; None is unknown.
        tokens: That the agent used; None is unknown.
        seconds: Wall time.
        file: Where the case or the row is.
        digest: Of what graded it.
        left_out: Changes of the submission that were not graded, and why.
        scores: The score tree.
        prompt: What was asked.
        answer: The final answer.
        expected: What a row says that it should be.
        difference: How the answer differs from that, as lines of a diff.
        steps: How many things were said and done.
        has_files: Whether a workspace was kept.
        pictures: How many there are.
        trace_id: By which its spans are found elsewhere.
        notes: What could not be shown, and why.
        seen: What names this result; a decision is about it.
        decision: What somebody decided about it.
        may_be_decided: Whether it is flagged or held, so that somebody may.
        history: Its results, newest first.
        siblings: The cells of its case, itself among them.
        before: The cell before it that failed, is an error or is flagged.
        after: The next such cell.
        number: How many of them there are up to this one.
        of: How many there are.
        commands: What to type for what is shown.
        markdown: The cell as a comment.
    """

    run: str
    label: str
    place: CellPlace
    state: Ended
    reward: float | None
    held: float | None
    threshold: float
    sentence: str
    trouble: FoldedText
    content: str
    assurance: str
    min_assurance: str
    flags: tuple[str, ...]
    signs: tuple[TamperSign, ...]
    cost_usd: float | None
    tokens: int | None
    seconds: float
    file: str
    digest: str
    left_out: tuple[str, ...]
    scores: tuple[ScoreNode, ...]
    prompt: FoldedText
    answer: FoldedText
    expected: FoldedText
    difference: tuple[str, ...]
    steps: int
    has_files: bool
    pictures: int
    trace_id: str
    notes: tuple[str, ...]
    seen: str
    decision: Decision | None
    may_be_decided: bool
    history: tuple[PastResult, ...]
    siblings: tuple[SiblingCell, ...]
    before: CellPlace | None
    after: CellPlace | None
    number: int
    of: int
    commands: tuple[CellCommand, ...]
    markdown: str


@frozen(kw_only=True)
class OutlinedStep:
    """A step without its text; see `StepShown`."""

    kind: MomentKind
    label: str
    is_error: bool
    at: float | None
    seconds: float | None
    tokens: int | None
    cost_usd: float | None
    parent: int | None


@frozen(kw_only=True)
class StepOutline:
    """Every step of a trajectory, without texts.

    Attributes:
        steps: The steps.
        under_way: Whether the agent is still at work, so that there will be more.
    """

    steps: tuple[OutlinedStep, ...]
    under_way: bool = False


@frozen(kw_only=True)
class CellUnderWay:
    """A cell without a result yet, on which an agent works.

    Attributes:
        place: Which cell it is.
        began: When: ISO 8601, UTC.
    """

    place: CellPlace
    began: str


@frozen(kw_only=True)
class CellsUnderWay:
    """What agents work on in a run; the first hundred."""

    cells: tuple[CellUnderWay, ...]


@frozen(kw_only=True)
class StepShown:
    """A thing that was said or done.

    Attributes:
        index: Its place in the trajectory, from 0.
        kind: What sort of thing.
        label: Who did what.
        text: What was said, given or answered.
        is_error: Whether something went wrong.
        at: Seconds since the first step that has a time; None is unknown, here and below.
        seconds: How long it took.
        tokens: Tokens of the reply that it was the first thing of.
        cost_usd: What that reply cost.
        parent: Place of the subagent that did it; None for the agent itself.
    """

    index: int
    kind: MomentKind
    label: str
    text: FoldedText
    is_error: bool
    at: float | None
    seconds: float | None
    tokens: int | None
    cost_usd: float | None
    parent: int | None


@frozen(kw_only=True)
class StepPart:
    """Part of a trajectory, and how many steps all of it has."""

    steps: tuple[StepShown, ...]
    total: int


@frozen(kw_only=True)
class FoundSteps:
    """Places of the steps that have some words, the first thousand, and how many have them."""

    places: tuple[int, ...]
    total: int


@frozen(kw_only=True)
class ChangedFiles:
    """The files that are not as they were given, and what could not be shown."""

    files: tuple[FileChange, ...]
    notes: tuple[str, ...]


@frozen(kw_only=True)
class OpenedCell:
    """A cell with everything that is shown of it.

    Attributes:
        view: The cell.
        outline: Its steps.
        steps: The same with their texts.
        files: What became of its workspace; None where none was kept.
        pictures: Those that there is room for; None where there are none.
    """

    view: CellView
    outline: StepOutline
    steps: StepPart
    files: ChangedFiles | None
    pictures: CellPictures | None = None
