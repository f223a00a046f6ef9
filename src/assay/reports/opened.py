"""A cell, opened: what was asked, answered and done, what it left, and why it has its score.

The one model of a cell that the table, JSON and JUnit show; the page and a report in one file have
`assay.reports.cell_view`. A cell's narrow row is enough to make one; with the store at hand comes
what is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from assay.errors import AssayError
from assay.frozen import frozen
from assay.reports.explain import nodes
from assay.reports.outcome import outcome, reward_of, trouble
from assay.reports.plain import one_line, shorten
from assay.reports.trajectory import Moment, moments
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.types.run import Run
from assay.types.submission import Submission

__all__ = [
    "FileChange",
    "Kept",
    "Opened",
    "Opener",
    "cell_dict",
    "changes_of",
    "open_cell",
    "read_kept",
    "scores_of",
]

_MOST_MOMENTS = 400
_MOST_CHARACTERS = 20_000
_MOST_FILES = 60
_LARGEST_FILE = 256 * 1024
_EFFORT = 4_000_000
_MOST_DIFF = 200_000


@frozen
class FileChange:
    """A file that is not as it was given.

    Attributes:
        path: Where it is in the workspace.
        how: What became of it.
        diff: The lines that changed, as a unified diff; of what is no text, what it is.
    """

    path: str
    how: Literal["added", "changed", "deleted"]
    diff: str

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return {"path": self.path, "how": self.how, "diff": self.diff}


@frozen(kw_only=True)
class Opened:
    """A cell with everything that is known of it.

    Attributes:
        cell: Its narrow row.
        scores: The score tree; comparisons with what they read and how they decided.
        prompt: What was asked.
        answer: The whole final answer.
        trace_id: By which its spans are found where they were exported to.
        steps: What was said and done, in order.
        changes: What became of the files of its workspace.
        notes: What could not be shown, and why.
    """

    cell: CellRecord
    scores: tuple[SubScore, ...] = ()
    prompt: str = ""
    answer: str = ""
    trace_id: str = ""
    steps: tuple[Moment, ...] = ()
    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, cell: CellRecord) -> Opened:
        """What a narrow row alone tells."""
        return cls(cell=cell, scores=nodes(cell), answer=cell.answer)

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON: the cell as reports write it, and what is kept beside it."""
        return {
            **cell_dict(self.cell),
            "subscores": [node.to_dict() for node in self.scores],
            "prompt": self.prompt,
            "answer": self.answer,
            "trace_id": self.trace_id,
            "steps": [moment.to_dict() for moment in self.steps],
            "changes": [change.to_dict() for change in self.changes],
            "not_shown": list(self.notes),
        }


def cell_dict(cell: CellRecord) -> dict[str, Json]:
    """One cell as plain JSON; a graded cell without a usable reward is written as an error."""
    state = outcome(cell)
    graded = state in ("pass", "fail")
    return {
        "case": cell.case,
        "harness": cell.harness,
        "model": cell.model,
        "trial": cell.trial,
        "status": "graded" if graded else state,
        "reward": reward_of(cell) if graded else None,
        "passed": state == "pass" if graded else None,
        "threshold": cell.threshold,
        "assurance": cell.assurance,
        "min_assurance": cell.min_assurance,
        "not_graded": cell.not_graded[0],
        "skipped_graders": dict(cell.not_graded[1]),
        "min_coverage": cell.min_coverage,
        "flags": list(cell.flags),
        "subscores": [dict(part) for part in cell.subscores],
        "error": trouble(cell) if state == "error" else "",
        "content": cell.content,
        "answer": cell.answer,
        "seconds": cell.seconds,
        "cost_usd": cell.cost_usd,
        "tokens": cell.tokens,
        "digest": cell.digest,
        "file": cell.file,
        "notes": dict(cell.notes),
    }


Opener: TypeAlias = "Callable[[CellRecord], Opened]"
"""Opens a cell: `Opened.of`, or `open_cell` with a store."""


def open_cell(store: Store, cell: CellRecord) -> Opened:
    """Open a cell with what the store keeps of it.

    What is missing or damaged is said in the notes: a report of the rest is worth having.
    """
    try:
        return _opened(store, cell, read_kept(store.packed(cell.run_id, cell.key)))
    except AssayError as error:
        narrow = Opened.of(cell)
        why = f"only the result itself could be read: {one_line(str(error), 300)}"
        return Opened(cell=cell, scores=narrow.scores, answer=cell.answer, notes=(why,))


@frozen(kw_only=True)
class Kept:
    """What was kept beside a cell, as it was.

    Attributes:
        prompt: What was asked.
        answer: The final answer.
        expected: What a row says the answer should be.
        trace_id: By which its spans are found where they were exported to.
        moments: What was said and done, in order.
        row: A row of a dataset, to explain its comparisons by; None for the run of an agent.
        source: Digest of the workspace that the agent was given; empty where there was none.
        snapshot: Digest of the workspace that it left.
    """

    prompt: str = ""
    answer: str = ""
    expected: str = ""
    trace_id: str = ""
    moments: tuple[Moment, ...] = ()
    row: Submission | None = None
    source: str = ""
    snapshot: str = ""


@lru_cache(maxsize=4)
def read_kept(body: bytes) -> Kept:
    """Read what a store keeps beside a cell, packed; the last few are remembered.

    A trajectory is read in parts, each of which would else take all of it to pieces again.

    Raises:
        AssayError: If it is damaged.
    """
    from assay.store.records import Packer

    detail = Packer().unpack(body, "what was kept of the cell")
    row = detail.get("row")
    if isinstance(row, dict):
        return _kept_row(row)
    run = Run.from_dict(detail)
    source, left = (str(run.metadata.get(name) or "") for name in ("source", "snapshot"))
    return Kept(
        prompt=run.prompt_text,
        answer=run.trace.content or "",
        trace_id=run.trace_id or "",
        moments=tuple(moments(run.trace, run.prompt_text, whole=True)),
        source=source,
        snapshot=left,
    )


def _kept_row(data: Mapping[str, Json]) -> Kept:
    from assay.tasks.rows import read_row

    submission = read_row(data).submission
    thread, asked = submission.thread, submission.question or ""
    said = [Moment(turn.role, turn.content) for turn in thread.messages()] if thread else []
    trace = submission.trace
    done = list(moments(trace, asked, whole=True)) if trace is not None else []
    below = [
        one if one.parent is None else replace(one, parent=one.parent + len(said)) for one in done
    ]
    expected = data.get("expected")
    return Kept(
        prompt="" if said else asked,
        answer=submission.answer or "",
        expected=expected if isinstance(expected, str) else "",
        moments=(*said, *(below if said else done)),
        row=submission,
    )


def scores_of(cell: CellRecord, kept: Kept) -> tuple[SubScore, ...]:
    """The score tree; a row's comparisons are explained now, when somebody looks."""
    if kept.row is None:
        return nodes(cell)
    from assay.graders.apply import explained

    return tuple(explained(node, kept.row) for node in nodes(cell))


def _opened(store: Store, cell: CellRecord, kept: Kept) -> Opened:
    changes, notes = changes_of(store.home, kept)
    steps = [_shortened(one) for one in kept.moments if one.label not in _ON_THE_PAGE]
    if len(steps) > _MOST_MOMENTS:
        notes = (*notes, f"{len(steps) - _MOST_MOMENTS:,} steps in the middle are not shown")
        steps = [*steps[: _MOST_MOMENTS // 2], *steps[-_MOST_MOMENTS // 2 :]]
    return Opened(
        cell=cell,
        scores=scores_of(cell, kept),
        prompt=shorten(kept.prompt, _MOST_CHARACTERS),
        answer=kept.answer,
        trace_id=kept.trace_id,
        steps=tuple(steps),
        changes=changes,
        notes=notes,
    )


_ON_THE_PAGE = ("answered", "replied")
"""Moments that a report leaves out: it has the answer, and no times."""


def _shortened(moment: Moment) -> Moment:
    if len(moment.text) <= _MOST_CHARACTERS:
        return moment
    return replace(moment, text=shorten(moment.text, _MOST_CHARACTERS))


# --- What became of the files --------------------------------------------------------------------


def changes_of(home: str, kept: Kept) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """What became of the files of the workspace, and what of it could not be shown."""
    notes: list[str] = []
    if not (kept.source and kept.snapshot):
        return (), ()
    try:
        return tuple(_changes(home, kept.source, kept.snapshot, notes)), tuple(notes)
    except (AssayError, OSError) as error:
        notes.append(f"the workspace that was kept cannot be read: {one_line(str(error), 300)}")
        return (), tuple(notes)


def _changes(home: str, source: str, left: str, notes: list[str]) -> Iterator[FileChange]:
    """The files that differ between two kept trees, told apart by their manifests alone."""
    from assay.graders.tree import SKIPPED_DIRECTORIES
    from assay.store.restore import read_snapshot

    before, after = read_snapshot(home, source), read_snapshot(home, left)
    names = [
        name
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name) and not _is_directory(before, after, name)
    ]
    shown = [name for name in names if not SKIPPED_DIRECTORIES.intersection(name.split("/"))]
    if len(shown) > _MOST_FILES:
        notes.append(f"{len(shown) - _MOST_FILES:,} more files changed")
    if len(names) > len(shown):
        notes.append(f"{len(names) - len(shown):,} files of caches and the like changed, too")
    yield from _diffs(home, source, shown[:_MOST_FILES], before, after)


def _is_directory(before: Mapping[str, Json], after: Mapping[str, Json], name: str) -> bool:
    entries = (tree.get(name) for tree in (before, after))
    return all(isinstance(e, dict) and e["type"] == "directory" for e in entries if e is not None)


def _diffs(
    home: str,
    source: str,
    names: Sequence[str],
    before: Mapping[str, Json],
    after: Mapping[str, Json],
) -> Iterator[FileChange]:
    from assay.graders.judges.work import file_diff
    from assay.store.blobs import Blobs
    from assay.store.sources import source_tree

    if not names:
        return
    effort = _EFFORT
    room = _MOST_DIFF
    root = Path(source_tree(home, source)) if before else None
    with Blobs(Path(home, "blobs")) as blobs:
        for name in names:
            old = _content(before.get(name), lambda _, name=name: _of_source(root, name))
            new = _content(after.get(name), lambda sha: blobs.get(sha, most=_LARGEST_FILE))
            lines, effort = file_diff(name, old, new, effort)
            text = shorten("\n".join(lines[2:]), min(room, _MOST_CHARACTERS))
            room = max(200, room - len(text))
            how = "added" if old is None else "deleted" if new is None else "changed"
            yield FileChange(one_line(name, 200), how, text)


def _of_source(root: Path | None, name: str) -> bytes | str:
    from assay.graders.tree import read_regular

    if root is None:
        return "is missing"
    found = read_regular(root, name, limit=_LARGEST_FILE)
    return f"a file that {found}" if isinstance(found, str) else found


def _content(entry: Json, read: Callable[[str], bytes | str]) -> bytes | str | None:
    """What a manifest's entry stands for: bytes of a file, else words; None where there is none."""
    if not isinstance(entry, dict):
        return None
    if entry.get("type") == "link":
        return f"a link to {one_line(str(entry.get('target')), 200)}"
    if entry.get("type") != "file":
        return "a directory"
    size = entry.get("size")
    if not isinstance(size, int) or size > _LARGEST_FILE:
        return f"a file of {size:,} bytes" if isinstance(size, int) else "a file"
    return read(str(entry.get("sha256")))
