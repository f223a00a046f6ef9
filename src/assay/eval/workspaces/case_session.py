"""Begin a case: lay out its workspace, and grade what the agent leaves there.

Two trees. The agent works in one. When it has ended, that is snapshotted, and the *grading tree* is
built beside it: the pristine source with the changes that the case permits. Graders run there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from assay.errors import InputError, SourceError, StoreError
from assay.eval.workspaces import grading_tree
from assay.eval.workspaces.commands import require_programs, stand_ins
from assay.eval.workspaces.suspicion import audited
from assay.frozen import frozen
from assay.graders.apply import grade_submission
from assay.graders.digest import files_of, grader_digest
from assay.graders.spec import GraderSpec
from assay.graders.tree import is_small
from assay.sandbox import let_us_in
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.scratch import remove, scratch_beside, to_end
from assay.store.restore import read_snapshot, restore_snapshot
from assay.store.snapshots import Dropped, take_snapshot
from assay.store.sources import KeptSource, keep_source, source_tree
from assay.tasks.case import Case
from assay.tasks.permitted import Rules
from assay.tasks.task import Guest, Session
from assay.types.run import OfferedTool, Prompt, Run
from assay.types.submission import Submission, Workspace

T = TypeVar("T")
Keep: TypeAlias = "Mapping[int, SubScore]"
"""Scores of an earlier grading that are taken over, by the place of their grader."""


@frozen
class Kept:
    """What was kept of a workspace: enough to grade it again.

    Attributes:
        snapshot: Digest of what the agent left.
        source: Digest of what it started from.
        image: Id of the image that it was made in; empty for none.
    """

    snapshot: str
    source: str
    image: str = ""

    @classmethod
    def of(cls, run: Run) -> Kept:
        """What was kept of a run's workspace."""
        return cls(*(str(run.metadata.get(n) or "") for n in ("snapshot", "source", "image")))


@asynccontextmanager
async def case_session(
    case: Case,
    guest: Guest | None = None,
    cache: str | None = None,
    home: str | None = None,
) -> AsyncGenerator[Session]:
    """A case in a directory of its own, which goes when the session ends.

    Args:
        case: The case.
        guest: Who asks and grades instead of the case.
        cache: Directory for fetched sources and built environments, shared by all cells; a
            private one by default.
        home: The store's directory, to keep a snapshot of what the agent leaves; by default one
            that goes with the session.

    Raises:
        SourceError: If the source or the hidden files cannot be had.
        ProvisionError: If the environment or the set-up fails, or if a command of the case needs
            a program that its sandbox does not have.
    """
    async with _scratch() as scratch:
        home = home or str(scratch / "store")
        cache = cache or str(scratch / "cache")
        case = await _with_fixtures(await _settled(case, cache), scratch, cache)
        workspace = await _laid_out(case, scratch / "workspace", cache)
        source: KeptSource | None = None
        if guest is not None:
            await guest.begin(workspace)
        if guest is not None or not _is_empty(case):
            source = await to_end(keep_source, home, workspace.path)
        await require_programs(case.graders, workspace, case=case.id)
        yield CaseSession(case, workspace, home, source, guest=guest)


def _is_empty(case: Case) -> bool:
    return case.source is case.environment is case.setup is case.image is None


async def _laid_out(case: Case, directory: Path, cache: str) -> Workspace:
    """The workspace that an agent finds."""
    if _is_empty(case):
        directory.mkdir()
        return Workspace(path=str(directory))
    from assay.eval.workspaces.provision import lay_out

    return await lay_out(case, directory, cache)


@asynccontextmanager
async def kept_session(
    case: Case,
    kept: Kept,
    *,
    cache: str,
    home: str,
    keep: Keep | None = None,
    guest: Guest | None = None,
) -> AsyncGenerator[Session]:
    """A case whose workspace is what was kept of one: to be graded, not to be worked in.

    A guest begins in a workspace as an agent would find it, and grades what was kept.

    Raises:
        StoreError: If something that was kept is missing or damaged.
        SourceError: If the hidden files cannot be had.
        ProvisionError: If the environment fails, or a command needs a program that is not there.
    """
    from assay.eval.workspaces.provision import provision

    async with _scratch() as scratch:
        case = await _with_fixtures(await _settled(case, cache), scratch, cache)
        if case.image is not None and kept.image:  # the very one: its name may mean another now
            from assay.eval.workspaces.images import pinned

            case = await to_end(pinned, case, cache, kept.image)
        if guest is not None:
            await guest.begin(await _laid_out(case, scratch / "begun", cache))
        workspace = Workspace(path=str(scratch / "workspace"))
        if case.environment is not None or case.image is not None:
            laid_out = str(scratch / "laid-out")
            if case.environment is not None:
                pristine = await to_end(source_tree, home, kept.source)
                await to_end(shutil.copytree, pristine, laid_out, symlinks=True)
            provided = await provision(case, Workspace(path=laid_out), cache)
            workspace = replace(provided, path=workspace.path)
        await to_end(
            lambda: restore_snapshot(home, kept.snapshot, workspace.path, source=kept.source)
        )
        entries = await to_end(read_snapshot, home, kept.source)
        await require_programs(case.graders, workspace, case=case.id, given=entries)
        source = KeptSource(kept.source, entries, {})
        yield CaseSession(
            case, workspace, home, source, snapshot=kept.snapshot, keep=keep, guest=guest
        )


def lay_out_kept(home: str, kept: Kept, target: str) -> tuple[str, ...]:
    """Copy what was kept of a workspace into a new directory, for people. Blocks.

    Returns:
        What could not be put there, and why.

    Raises:
        InputError: If something is there already.
        StoreError: If something that was kept is missing or damaged, or the copy cannot be made.
    """
    if Path(target).exists():
        raise InputError(f"{target} is there already", hint="remove it, or give another --out")
    beside = _new_directory(f"{home}/cache/grading", "look-")
    try:
        # Restored files are links to the source's copy, where nobody may write: so a copy of them.
        tree = f"{beside}/workspace"
        left_out = restore_snapshot(home, kept.snapshot, tree, source=kept.source)
        try:
            shutil.copytree(tree, target, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise StoreError(f"cannot lay out {target}: {error}") from error
    finally:
        remove(beside)
    return tuple(f"{one.path}: {one.why}" for one in left_out)


_UNKNOWN = (GraderSpec(type="command", options={"cmd": "python3 -m pytest"}),)
"""What a guest may run in the grading tree: nobody knows, so what Python would take for its own
modules or pytest's is not taken from the agent."""


class CaseSession:
    """A case whose workspace is ready."""

    def __init__(
        self,
        case: Case,
        workspace: Workspace,
        home: str,
        source: KeptSource | None = None,
        *,
        snapshot: str = "",
        keep: Keep | None = None,
        guest: Guest | None = None,
    ) -> None:
        self.prompt: Prompt = prompt_of(case) if guest is None else guest.prompt
        self.workspace: Workspace | None = workspace
        self.tools: Mapping[str, OfferedTool] = {} if guest is None else guest.tools
        self.notes: dict[str, Json] = {}
        if workspace.image is not None:
            self.notes["image"] = workspace.image.digest
        self._case = case
        self._workspace = workspace
        self._home = home
        self._source = source
        self._snapshot = snapshot
        self._keep_scores = keep
        self._guest = guest
        self._left_out: list[Dropped] = []
        self._oracle = _oracle(case)

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Keep a snapshot of the workspace, build the grading tree, run the case's graders.

        Raises:
            SourceError: If the hidden files changed since the agent started.
            StoreError: If the snapshot cannot be kept.
        """
        if _oracle(self._case) != self._oracle:
            raise SourceError(
                f"the hidden files of case {self._case.id!r} changed while its agent worked",
                hint="run the cell again, and let nothing write there meanwhile",
            )
        complete = replace(
            submission,
            answer=submission.answer or ("" if self._guest is None else None),
            expected=self._case.expected,
            metadata=self._case.metadata,
        )
        let_us_in(self._workspace.path)
        chosen = await _blocking(self._workspace.path, self._choose)
        is_guest = self._guest is not None
        if is_guest or any("workspace" in spec.kind.parameters for spec in self._case.graders):
            result = await self._grade_tree(complete, chosen)
        else:
            result = await self._score(complete)
        self.notes["submission"] = chosen.notes(tuple(self._left_out))
        if chosen.flags:
            result = replace(result, info={**result.info, "flags": list[Json](chosen.flags)})
        return result

    def _choose(self) -> grading_tree.GradingPlan:
        """Snapshot what the agent left, and decide what of it is graded. Blocks."""
        home = self._home
        if self._source is None:
            self._source = keep_source(home, None)
        digest, entries = self._source.digest, self._source.entries
        if self._snapshot:
            left = read_snapshot(home, self._snapshot)
        else:
            kept = take_snapshot(home, self._workspace.path, known=self._source.known)
            self._snapshot, left = kept.digest, kept.entries
            self._left_out += kept.dropped
        asked_for = grading_tree.asked_for(home, digest, entries)
        judging = self._case.graders if self._guest is None else _UNKNOWN
        modules = stand_ins(judging, entries, self._workspace)
        rules = Rules(self._case.submission, asked_for=asked_for, stand_ins=modules, source=entries)
        chosen = grading_tree.plan(entries, left, rules)
        self.notes["snapshot"] = self._snapshot
        self.notes["source"] = digest
        return chosen

    async def _score(self, submission: Submission) -> EvaluationResult:
        if self._guest is not None:
            return await self._guest.grade(submission)
        return await grade_submission(self._case.graders, submission, keep=self._keep_scores)

    async def _grade_tree(
        self, submission: Submission, chosen: grading_tree.GradingPlan
    ) -> EvaluationResult:
        assert self._source is not None
        home, source, path = self._home, self._source, self._workspace.path
        # In the store's own directory: on the same file system as the copy it shares files with.
        directory = _new_directory(f"{home}/cache/grading", "tree-")
        try:
            target = f"{directory}/workspace"
            shared = source.digest if source.entries else ""
            self._left_out += await _blocking(
                path, lambda: grading_tree.build(home, chosen, shared, target)
            )
            graded = replace(
                self._workspace,
                path=target,
                submitted=path,
                source=source_tree(home, source.digest),
                changes=chosen.changes,
                left_out=tuple(one.path for one in (*chosen.dropped, *chosen.restored)),
            )
            complete = replace(submission, workspace=graded)
            result = await self._score(complete)
            policy = self._case.submission.on_suspicion
            return await audited(self._case.graders, complete, result, policy, self._case.expect)
        finally:
            await _remove(directory)


def has_tests(case: Case) -> bool:
    """Whether a grader of a case runs tests, whose isolation is to be settled."""
    return any(spec.kind.grader.separable(spec.options) is not None for spec in case.graders)


def _oracle(case: Case) -> list[str]:
    """Digests of the graders that rest on files, which somebody could change."""
    return [grader_digest(spec) for spec in case.graders if files_of(spec)]


async def _settled(case: Case, cache: str) -> Case:
    """The case with its tests' isolation resolved: before the agent starts, out of its reach."""
    if not has_tests(case):
        return case
    from assay.eval.proofs.isolation import settled

    return await to_end(settled, case, cache)


async def _with_fixtures(case: Case, scratch: Path, cache: str) -> Case:
    """The case with its hidden files fetched: before the agent starts, out of its reach."""
    if case.fixtures is None:
        return case
    from assay.tasks.sources import fetch_fixtures

    directory = str(scratch / "hidden")
    await to_end(fetch_fixtures, case, directory, cache)
    try:
        return case.with_fixtures(directory)
    except InputError as error:
        raise SourceError(f"the fixtures of case {case.id!r}: {error}") from error


def prompt_of(case: Case) -> str:
    """The prompt as one text: system prompt, prompt, and the instruction files."""
    task = case.task
    parts = [task.system_prompt] if task.system_prompt else []
    parts.append(task.prompt)
    for file in case.instruction_files:
        path = Path(file)
        parts.append(f"## {path.name}\n\n{path.read_text(encoding='utf-8')}")
    return "\n\n".join(parts)


def _new_directory(place: str, prefix: str) -> str:
    try:
        return tempfile.mkdtemp(dir=place, prefix=prefix)
    except FileNotFoundError:
        Path(place).mkdir(parents=True, exist_ok=True)
        return tempfile.mkdtemp(dir=place, prefix=prefix)


@asynccontextmanager
async def _scratch() -> AsyncGenerator[Path]:
    # A killed run's is removed by the next one. Those of older versions, "assay-cell-", which may
    # be running and lock none, have another name.
    async with scratch_beside("assay-cells-") as scratch:
        try:
            yield scratch
        finally:
            await _remove(str(scratch))


async def _remove(scratch: str) -> None:
    """Remove a cell's directory, also one that an agent made hard to remove."""
    try:
        await _blocking(scratch, lambda: shutil.rmtree(scratch))
    except (OSError, RecursionError):
        from assay.sandbox import remove_tree

        await remove_tree(scratch)


async def _blocking(directory: str, work: Callable[[], T]) -> T:
    """Do something to a directory: in a thread, unless it is so small that a thread costs more."""
    return work() if is_small(directory) else await to_end(work)
