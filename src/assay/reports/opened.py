"""A cell, opened: what was asked, answered and done, what it left, and why it has its score.

What everything that shows a cell is made of: the terminal and JUnit lay it out, `cell_view` makes
of it the records that the page, the HTML file and JSON have. A cell's narrow row is enough; with
the store at hand comes what is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from assay.errors import AssayError
from assay.frozen import frozen
from assay.reports.explain import nodes
from assay.reports.pictures import in_turn, pictures_of
from assay.reports.plain import one_line, shorten
from assay.reports.trajectory import Moment, moments
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.types.picture import MOST_BYTES, Picture
from assay.types.run import Run
from assay.types.submission import Submission

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


@frozen(kw_only=True)
class KeptFiles:
    """What was kept beside a cell, as it was.

    Attributes:
        prompt: What was asked.
        answer: The final answer.
        expected: What a row says the answer should be.
        trace_id: By which its spans are found where they were exported to.
        moments: What was said and done, in order.
        pictures: Those of the conversation and of tools, each with whose it is.
        row: A row of a dataset, to explain its comparisons by; None for the run of an agent.
        source: Digest of the workspace that the agent was given; empty where there was none.
        snapshot: Digest of the workspace that it left.
    """

    prompt: str = ""
    answer: str = ""
    expected: str = ""
    trace_id: str = ""
    moments: tuple[Moment, ...] = ()
    pictures: tuple[tuple[str, Picture], ...] = ()
    row: Submission | None = None
    source: str = ""
    snapshot: str = ""


@lru_cache(maxsize=4)
def read_kept(body: bytes, home: str) -> KeptFiles:
    """Read what a store keeps beside a cell, packed; the last few are remembered.

    A trajectory is read in parts, each of which would else take all of it to pieces again.

    ``home``: The store's directory, for pictures of rows.

    Raises:
        AssayError: If it is damaged.
    """
    from assay.store.records import Packer
    from assay.store.row_pictures import put_back

    detail = put_back(home, Packer().unpack(body, "what was kept of the cell"))
    row = detail.get("row")
    if isinstance(row, dict):
        return _kept_row(row)
    run = Run.from_dict(detail)
    source, left = (str(run.metadata.get(name) or "") for name in ("source", "snapshot"))
    return KeptFiles(
        prompt=run.prompt_text,
        answer=run.trace.content or "",
        trace_id=run.trace_id or "",
        moments=tuple(moments(run.trace, run.prompt_text, whole=True)),
        pictures=tuple(pictures_of(None, run.trace)),
        source=source,
        snapshot=left,
    )


def _kept_row(data: Mapping[str, Json]) -> KeptFiles:
    from assay.tasks.rows import read_row

    submission = read_row(data).submission
    thread, asked = submission.thread, submission.question or ""
    is_talk = "messages" in data or "input" in data  # else question and answer are all of it
    said = (
        [Moment(turn.role, in_turn(thread, place)) for place, turn in enumerate(thread.messages())]
        if thread and is_talk
        else []
    )
    trace = submission.trace
    done = list(moments(trace, asked, whole=True)) if trace is not None else []
    below = [
        one if one.parent is None else replace(one, parent=one.parent + len(said)) for one in done
    ]
    expected = data.get("expected")
    return KeptFiles(
        prompt="" if said else asked,
        answer=submission.answer or "",
        expected=expected if isinstance(expected, str) else "",
        moments=(*said, *(below if said else done)),
        pictures=tuple(pictures_of(thread, trace)),
        row=submission,
    )


def scores_of(cell: CellRecord, kept: KeptFiles) -> tuple[SubScore, ...]:
    """The score tree; a row's comparisons are explained now, when somebody looks."""
    if kept.row is None:
        return nodes(cell)
    from assay.graders.apply import explained

    return tuple(explained(node, kept.row) for node in nodes(cell))


@frozen(kw_only=True)
class Opened:
    """A cell with everything that is known of it.

    Attributes:
        cell: Its narrow row.
        kept: What was kept beside it.
        changes: What became of the files of its workspace.
        notes: What could not be shown, and why.
    """

    cell: CellRecord
    kept: KeptFiles
    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, cell: CellRecord) -> Opened:
        """What a narrow row alone tells."""
        return cls(cell=cell, kept=KeptFiles(answer=cell.answer))

    @property
    def scores(self) -> tuple[SubScore, ...]:
        """The score tree; comparisons with what they read and how they decided."""
        return scores_of(self.cell, self.kept)

    @property
    def steps(self) -> list[Moment]:
        """What was said and done, but for what says nothing new beside the answer."""
        return [one for one in self.kept.moments if one.label not in ("answered", "replied")]


Opener: TypeAlias = "Callable[[CellRecord], Opened]"
"""Opens a cell: `Opened.of`, or `open_cell` with a store."""


def open_cell(store: Store, cell: CellRecord) -> Opened:
    """Open a cell with what the store keeps of it.

    What is missing or damaged is said in the notes: a report of the rest is worth having.
    """
    kept, notes = kept_of(store, cell)
    changes, missing = changes_of(store.home, kept)
    return Opened(cell=cell, kept=kept, changes=changes, notes=(*notes, *missing))


def kept_of(store: Store, cell: CellRecord) -> tuple[KeptFiles, tuple[str, ...]]:
    """What was kept beside a cell, and what of it cannot be read."""
    try:
        kept = read_kept(store.packed(cell.run_id, cell.key), store.home)
        left = tuple(_judged_files(store.home, cell))
        return replace(kept, pictures=(*kept.pictures, *left)) if left else kept, ()
    except AssayError as error:
        why = f"only the result itself could be read: {one_line(str(error), 300)}"
        return KeptFiles(answer=cell.answer), (why,)


def _judged_files(home: str, cell: CellRecord) -> Iterator[tuple[str, Picture]]:
    """Pictures among the files of a workspace that judges were shown, as its snapshot has them."""
    from assay.store.blobs import Blobs

    told = [node.metadata.get("images") for node in nodes(cell) if node.metadata]
    named = {
        str(one["digest"]): str(one["file"])
        for images in told
        for one in (images if isinstance(images, list) else ())
        if isinstance(one, dict) and "file" in one
    }
    for digest, file in named.items():
        with Blobs(Path(home, "blobs")) as blobs, suppress(AssayError):  # freed, or damaged
            yield f"the file {file}", Picture(blobs.get(digest, most=MOST_BYTES))


# --- What became of the files --------------------------------------------------------------------


def changes_of(home: str, kept: KeptFiles) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
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
