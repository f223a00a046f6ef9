"""From a finished run to what the store keeps of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, reaches
from assay.store.decisions import HELD
from assay.store.records import (
    ABOUT,
    GROUP,
    MIN_COVERAGE,
    NOT_GRADED,
    RATES,
    UNCLAMPED,
    CellRecord,
    CellStatus,
    RunRecord,
)
from assay.store.runs import Store, new_run_id
from assay.types.codec import to_json
from assay.types.run import Run
from assay.version import __version__

if TYPE_CHECKING:
    from assay.tasks.blocks import Expect
    from assay.tasks.rows import Row

ROW_HARNESS = "recorded"
"""What did the work that a dataset's rows hold, as reports name it."""

_ANSWER_KEPT = 2_000
_PRECISION = 1e-9


def start_run(
    store: Store,
    *,
    config: Mapping[str, Json],
    digests: Mapping[str, str],
    planned: int,
    label: str = "",
    holding: Callable[[str], object] = lambda _: None,
) -> RunRecord:
    """Record that a run begins now; before anybody sees it, its id is given to `holding`."""
    now = datetime.now(UTC)
    run = RunRecord(
        id=new_run_id(now),
        created_at=now.isoformat(timespec="seconds"),
        label=label,
        config=config,
        digests=digests,
        planned=planned,
        assay=__version__,
    )
    holding(run.id)
    store.create_run(run)
    return run


def record_of(
    run: Run,
    *,
    run_id: str,
    case: str,
    expect: Expect,
    version: str = "",
    file: str = "",
    metadata: Mapping[str, Json] | None = None,
) -> CellRecord:
    """The narrow row of a run.

    A template may give any number; a cell has what of it lies in [0, 1], and notes the other.
    It passes if its reward reaches the threshold, give or take 1e-9 of rounding, its assurance
    is at least the one that is needed, and as much of the weight was graded as is needed.
    """
    result = run.grade.result
    status = status_of(result)
    given = run.reward if status == "graded" else None
    reward = None if given is None else min(1.0, max(0.0, given))
    assurance = result.assurance if status == "graded" else None
    answer = run.trace.content or ""
    notes = _notes(run) | uncovered(result)
    if expect.min_coverage is not None:
        notes[MIN_COVERAGE] = expect.min_coverage
    if about := _about(metadata or {}):
        notes[ABOUT] = about
    if rates := expect.rates:
        notes[RATES] = dict[str, Json](rates)
    if given != reward:
        notes[UNCLAMPED] = given
    cell = CellRecord(
        run_id=run_id,
        case=case,
        harness=run.harness,
        model=run.model,
        trial=run.trial,
        status=status,
        reward=reward,
        threshold=expect.pass_threshold,
        assurance=assurance,
        min_assurance=expect.min_assurance,
        error=(run.grade.content or run.trace.error or "not graded") if status == "error" else "",
        flags=result.flags,
        seconds=run.seconds,
        cost_usd=run.cost_usd,
        tokens=run.tokens,
        digest=graded_by(version) if version else "",
        subscores=tuple(node.to_dict() for node in run.grade.subscores),
        content="; ".join(text for text in (run.grade.content, run.trace.error) if text),
        notes=notes,
        answer=shortened(answer),
        file=file,
    )
    if reward is None:
        return cell
    is_sound = reaches(assurance, expect.min_assurance) and cell.is_covered
    return replace(cell, passed=reaches_threshold(reward, expect.pass_threshold) and is_sound)


_MOST_FIELDS = 20
_LONGEST_FIELD = 100


def _about(metadata: Mapping[str, Json]) -> dict[str, Json]:
    """What of a case's metadata its cells may be told apart by: short values, and no solution."""
    short = {
        name: value
        for name, value in metadata.items()
        if name != "solution"
        and all(map(_is_short, value if isinstance(value, list) else [value]))
        and (not isinstance(value, list) or len(value) <= _MOST_FIELDS)
    }
    return dict(list(short.items())[:_MOST_FIELDS])


def _is_short(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_FIELD
    return isinstance(value, bool | int | float)


def status_of(result: EvaluationResult) -> CellStatus:
    """What became of a grading: there is a reward, there is none to be had, or nobody knows it."""
    if result.isError:
        return "error"
    return "skipped" if result.reward is None else "graded"


def reaches_threshold(reward: float, threshold: float) -> bool:
    """Whether a reward is enough, give or take 1e-9 of rounding."""
    return reward >= threshold - _PRECISION


def row_record(
    row: Row,
    result: EvaluationResult,
    *,
    run_id: str,
    threshold: float,
    digest: str,
    seconds: float,
) -> CellRecord:
    """The narrow row of a dataset's row that was graded; it passes as in `record_of`."""
    reward, status = result.reward, status_of(result)
    answer = row.submission.answer or ""
    content = result.content or ""
    noted: dict[str, Json] = {} if row.label is None else {"label": row.label}
    if row.group:
        noted[GROUP] = row.group
    return CellRecord(
        run_id=run_id,
        case=row.id,
        harness=ROW_HARNESS,
        status=status,
        reward=reward,
        passed=None if reward is None else reaches_threshold(reward, threshold),
        threshold=threshold,
        assurance=result.assurance,
        error=(content or "not graded") if status == "error" else "",
        flags=result.flags,
        seconds=seconds,
        digest=digest,
        subscores=tuple(node.to_dict() for node in result.subscores or ()),
        content=content,
        notes=uncovered(result) | noted,
        answer=shortened(answer),
        file=row.file,
    )


def shortened(answer: str) -> str:
    """An answer as its narrow row has it."""
    return answer if len(answer) <= _ANSWER_KEPT else f"{answer[:_ANSWER_KEPT]}..."


def _notes(run: Run) -> dict[str, Json]:
    """What of the submission was left out, its image, and the reward that is held back, if any."""
    noted = run.metadata.get("submission")
    found = noted if isinstance(noted, dict) else {}
    kept = {name: found[name] for name in ("dropped", "restored") if found.get(name)}
    if "image" in run.metadata:
        kept["image"] = run.metadata["image"]
    return {**kept, **{name: run.grade.info[name] for name in (HELD,) if name in run.grade.info}}


def uncovered(result: EvaluationResult) -> dict[str, Json]:
    """What of the weight was skipped, where there is a reward all the same."""
    share, graders = result.not_graded
    if result.reward is None or not graders:
        return {}
    return {NOT_GRADED: {"share": share, "graders": dict(graders)}}


def graders_digest(graders: Sequence[GraderSpec]) -> str:
    """A digest of declared graders and of the assay that runs them."""
    declared = json.dumps([to_json(spec) for spec in graders], sort_keys=True)
    return graded_by(declared)


def digest_with_files(graders: Sequence[GraderSpec]) -> str:
    """The same, and a digest of the files that they name."""
    made_of = hashlib.sha256("\n".join(map(grader_digest, graders)).encode()).hexdigest()[:16]
    return f"{graders_digest(graders)} {made_of}"


def graded_by(declared: str) -> str:
    """A digest of what graded a cell: what was declared, and the assay that read it."""
    return hashlib.sha256(f"{__version__}\n{declared}".encode()).hexdigest()[:16]
