"""The harness ``replay``: plays a recording that is kept with the case.

A recording is a directory ``recordings/<model>/`` with any of:

* ``files/``: laid over the workspace;
* ``deleted.txt``: paths to delete from it, one per line;
* ``run.sh``: run in the agent's sandbox with the workspace as its directory;
* ``answer.txt``: the final answer;
* ``trace.jsonl``: one step of the trace per line.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from assay.errors import AgentError, AgentTimeoutError, InputError, nearest
from assay.sandbox.inside import make_directory_inside, open_inside, remove_inside
from assay.scoring.json_safe import Json
from assay.types.codec import from_json
from assay.types.run import Run
from assay.types.steps import AgentStep, Step
from assay.types.trace import Trace

__all__ = ["RecordedAgent", "ReplayAgent", "recordings_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAgent:
    """Plays the recording that is named like the model.

    Attributes:
        directory: The case's ``recordings`` directory.
        timeout_s: Seconds that ``run.sh`` may work.
        name: The harness's name.
    """

    directory: str
    timeout_s: float = 1800.0
    name: str = "replay"

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If there is no such recording, or it is malformed.
            AgentTimeoutError: If ``run.sh`` worked longer than it may.
        """
        recording = self._recording(run.model)
        answer = recording / "answer.txt"
        if answer.is_file():
            run.trace.content = answer.read_text(encoding="utf-8", errors="replace").rstrip("\n")
        self._record_trace(recording / "trace.jsonl", run)
        if run.workspace is not None:
            workspace = Path(run.workspace.path)
            _lay_over(recording / "files", workspace)
            _delete(recording / "deleted.txt", workspace)
            if (recording / "run.sh").is_file():
                await self._run_script(recording / "run.sh", run)

    def _recording(self, model: str) -> Path:
        found = recordings_of(self.directory)
        if model not in found:
            raise AgentError(
                f"no recording {model!r} in {self.directory}", hint=nearest(model, sorted(found))
            )
        return found[model]

    def _record_trace(self, file: Path, run: Run) -> None:
        if not file.is_file():
            if run.trace.content is not None:
                run.record(AgentStep(content=run.trace.content, done=True))
            return
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip():
                run.record(_step(line, f"{file}:{number}"))
        if run.trace.content is None:
            run.trace.content = run.trace.final(
                lambda step: step.content if isinstance(step, AgentStep) else None
            )

    async def _run_script(self, script: Path, run: Run) -> None:
        from assay.sandbox import Limits, Mount, run_command

        assert run.workspace is not None
        workspace = run.workspace
        mounts = [Mount(source=s, target=t) for s, t in workspace.mounts]
        result = await run_command(
            ["/bin/sh", "/run/recording.sh"],
            workspace=workspace.path,
            changes="keep",
            env=workspace.env,
            mounts=[*mounts, Mount(source=str(script), target="/run/recording.sh")],
            limits=Limits(wall_seconds=self.timeout_s),
        )
        run.trace.extra["run.sh"] = {
            "exit_code": result.exit_code,
            "stdout": result.stdout[-4000:],
            "stderr": result.stderr[-4000:],
        }
        if result.status == "timed_out":
            raise AgentTimeoutError(f"run.sh worked longer than {self.timeout_s:g} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAgent:
    """Gives an answer that was recorded before, as dataset rows have them."""

    answer: str | None
    name: str = "recorded"

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If there is no answer. Nobody knows why, so it is not graded as a bad one.
        """
        if self.answer is None:
            raise AgentError("the recorded answer is null", hint='"" is an empty answer')
        run.trace.content = self.answer


def recordings_of(directory: str) -> dict[str, Path]:
    """The recordings in a directory, by model name; ``/`` in a name is a sub-directory."""
    root = Path(directory)
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else []:
        inside = path.relative_to(root)
        if path.is_dir() and not any(parent in found.values() for parent in path.parents):
            names = {entry.name for entry in path.iterdir()}
            if not names or names & {"files", "deleted.txt", "run.sh", "answer.txt", "trace.jsonl"}:
                found[inside.as_posix()] = path
    return found


def _step(line: str, where: str) -> Step:
    try:
        data = cast("Json", json.loads(line))
        trace = from_json(Trace, {"steps": [data]})
    except (ValueError, InputError) as error:
        raise AgentError(f"{where}: not a step of a trace: {error}") from error
    return trace.steps[0]


def _lay_over(files: Path, workspace: Path) -> None:
    """Copy files over the workspace; directories keep the workspace's own permissions.

    A recording may lie on a read-only file system: a workspace made read-only by it would turn
    good work into a 0. A link in the workspace is never followed.
    """
    root = str(workspace)
    for source in sorted(files.rglob("*")) if files.is_dir() else []:
        relative = source.relative_to(files).as_posix()
        if source.is_dir() and not source.is_symlink():
            make_directory_inside(root, relative)
            continue
        remove_inside(root, relative)
        if source.is_symlink():
            (workspace / relative).symlink_to(source.readlink())
            continue
        mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_inside(root, relative, flags, mode), "wb") as target:
            target.write(source.read_bytes())


def _delete(listing: Path, workspace: Path) -> None:
    if not listing.is_file():
        return
    for line in listing.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        try:
            remove_inside(str(workspace), line.strip())
        except OSError as error:
            raise AgentError(f"{listing}: cannot delete {line.strip()!r}: {error}") from error
