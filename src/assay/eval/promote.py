"""Make the work of a stored cell a recording of its case, so that it is played again for nothing.

What is written is what the agent left: its answer, its whole trace, and the files that it changed
in the workspace. Some of it was written by somebody who wants reward: links that lead out of the
workspace are left out, and no path leaves the recording.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from assay.agents.replay import answer_of, recordings_of
from assay.errors import InputError
from assay.eval.workspaces.case_session import Kept
from assay.scoring.json_safe import Json
from assay.scratch import remove
from assay.shown import command
from assay.store.kept_files import source_of
from assay.store.records import CellRecord
from assay.store.restore import read_snapshot, restore_entries
from assay.store.runs import Store, listed
from assay.store.snapshots import Dropped
from assay.tasks.case import load_case
from assay.types.run import Run


@dataclass(frozen=True, slots=True)
class Promoted:
    """A recording that was written.

    Attributes:
        directory: Where.
        files: Files and links that it lays over the workspace.
        deleted: Paths that it deletes from it.
        left_out: What could not be recorded, and why.
    """

    directory: str
    files: int
    deleted: int
    left_out: tuple[Dropped, ...]


def cell_of(
    store: Store,
    run_id: str,
    case: str,
    *,
    harness: str | None = None,
    model: str | None = None,
    trial: int | None = None,
) -> CellRecord:
    """The one cell of a case that has these coordinates.

    Raises:
        InputError: If there is none, or several; names them.
    """
    found = store.cells_of_case(run_id, case, harness=harness, model=model, trial=trial)
    if len(found) > 1:
        raise InputError(
            f"several cells of case {case!r} in run {run_id}",
            hint=f"say which with --harness, --model and --trial: {listed(found)}",
        )
    return found[0]


def promote(store: Store, cell: CellRecord, name: str, *, force: bool = False) -> Promoted:
    """Write the work of a cell to ``recordings/NAME`` of its case.

    Args:
        store: Where the cell is kept.
        cell: The cell.
        name: The recording's name, which is the model that `replay` is asked for.
        force: Replace a recording of that name.

    Raises:
        InputError: If the case is gone, nothing was kept of the cell, or the recording is there.
        StoreError: If something that was kept is missing or damaged.
    """
    detail = store.detail(cell.run_id, cell.key)
    if not source_of(detail):
        raise InputError(
            f"nothing was kept of case {cell.case!r} that could be a recording",
            hint="it takes a cell of a case, no task of Python and no row, whose agent finished",
        )
    run = Run.from_dict(detail)
    kept, case = Kept.of(run), load_case(cell.file)
    if case.id != cell.case:
        raise InputError(f"{cell.file} is now case {case.id!r}, not {cell.case!r}")
    root = Path(case.root, "recordings")
    target = _target(root, name, force=force)
    before, after = read_snapshot(store.home, kept.source), read_snapshot(store.home, kept.snapshot)
    changed, gone = _changes(before, after)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}")
    try:
        beside.mkdir()
        _write_words(beside, run)
        left_out: tuple[Dropped, ...] = ()
        if changed:
            left_out = restore_entries(store.home, changed, str(beside / "files"))
        writable, odd = _writable(gone)
        if writable:
            (beside / "deleted.txt").write_text("".join(f"{p}\n" for p in writable), "utf-8")
        if target.exists():
            remove(target)
        beside.rename(target)
    except OSError as error:
        raise InputError(f"cannot write {str(target)!r}: {error.strerror}") from error
    finally:
        remove(beside)
    files = sum(_is_laid_over(entry) for entry in changed.values()) - len(left_out)
    return Promoted(str(target), files, len(writable), (*left_out, *odd))


def play_command(cell: CellRecord, name: str) -> str:
    """The command that plays a recording of a cell's case."""
    file = Path(cell.file)
    case = str(file.parent if file.name == "case.yaml" else cell.file)
    return command("assay", "run", case, "--harness", "replay", "--model", name)


def _target(root: Path, name: str, *, force: bool) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or "/".join(parts) != name or any(part.startswith(".") for part in parts):
        raise InputError(
            f"{name!r} cannot name a recording", hint="a name such as good, or vendor/model"
        )
    if any(not part.isprintable() for part in parts):
        raise InputError(f"{name!r} cannot name a recording: it has characters that are not seen")
    target = root.joinpath(*parts)
    for known in recordings_of(str(root)).values():
        if known in target.parents:
            raise InputError(f"{known} is a recording: there cannot be one inside it")
    if os.path.lexists(target) and not force:
        raise InputError(f"there is already a recording {target}", hint="--force replaces it")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} is not a directory")
    if force and target not in recordings_of(str(root)).values() and target.exists():
        raise InputError(f"{target} is not a recording", hint="recordings may be inside it")
    return target


def _write_words(place: Path, run: Run) -> None:
    """The answer, and all that the trace says; the answer's file is for people to read."""
    (place / "trace.json").write_text(json.dumps(run.trace.to_dict(), indent=1) + "\n", "ascii")
    answer = place / "answer.txt"
    if run.trace.content is not None:
        answer.write_text(f"{run.trace.content}\n", "utf-8", "replace", "")
        if answer_of(answer) != run.trace.content:
            answer.unlink()  # its line ends would not come back: the trace has it as it was


def _changes(
    before: Mapping[str, Json], after: Mapping[str, Json]
) -> tuple[dict[str, Json], list[str]]:
    """What was added or changed, with the directories above it, and what is gone."""
    changed = {path: entry for path, entry in after.items() if before.get(path) != entry}
    for path in list(changed):
        for above in PurePosixPath(path).parents:
            if (parent := str(above)) != ".":
                changed[parent] = after[parent]
    # What a file or a link took the place of goes when that is laid over it.
    gone = sorted(p for p in before if p not in after and _is_directory_above(after, p))
    return changed, gone


def _is_directory_above(tree: Mapping[str, Json], path: str) -> bool:
    parent = str(PurePosixPath(path).parent)
    entry = tree.get(parent)
    return parent == "." or (isinstance(entry, dict) and entry.get("type") == "directory")


def _is_laid_over(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") != "directory"


def _writable(paths: list[str]) -> tuple[list[str], list[Dropped]]:
    """The paths that a line of ``deleted.txt`` can hold, and the others."""
    fine = [path for path in paths if path == path.strip() and path.isprintable()]
    why = "its name cannot stand in deleted.txt, so that it stays"
    return fine, [Dropped(path, why) for path in paths if path not in fine]
