"""The harness ``replay``: plays a recording that is kept with the case.

A recording is a directory ``recordings/<model>/`` with any of:

* ``files/``: laid over the workspace;
* ``deleted.txt``: paths to delete from it, one per line;
* ``run.sh``: run in the agent's sandbox with the workspace as its directory;
* ``answer.txt``: the final answer;
* ``trace.jsonl``: one step of the trace per line, or a transcript of another agent, which is
  recognised by its content;
* ``transcript.json``: such a transcript that is one document;
* ``trace.json``: a whole trace as assay keeps it, which `assay runs promote` writes.

Without a trace it is known what was done: nothing was asked of a model, and no tool was called.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from assay.agents.transcripts import MOST_BYTES
from assay.errors import AgentError, AgentTimeoutError, InputError, nearest
from assay.graders.usage import USAGE, RunUsage, totals_of
from assay.sandbox.host import make_directory_inside, open_inside, remove_inside
from assay.scoring.strict_json import read_json
from assay.types.codec import from_json
from assay.types.run import Run
from assay.types.trace import AgentStep, Step, ToolCall, ToolStep, Trace, tool_kind

_WHOLE = "trace.json"
_TRACES = ("trace.jsonl", "transcript.json", _WHOLE)
_PARTS = frozenset({"files", "deleted.txt", "run.sh", "answer.txt", *_TRACES})


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
            run.trace.content = answer_of(answer)
        await asyncio.to_thread(_record_trace, recording, run)
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

    async def _run_script(self, script: Path, run: Run) -> None:
        from assay.sandbox import Limits, Mount, run_command

        assert run.workspace is not None
        result = await run_command(
            ["/bin/sh", "/run/recording.sh"],
            workspace=run.workspace,
            changes="keep",
            mounts=[Mount(source=str(script), target="/run/recording.sh")],
            limits=Limits(wall_seconds=self.timeout_s),
        )
        run.trace.extra["run.sh"] = {
            "exit_code": result.exit_code,
            "stdout": result.stdout[-4000:],
            "stderr": result.stderr[-4000:],
        }
        if result.status == "timed_out":
            raise AgentTimeoutError(f"run.sh worked longer than {self.timeout_s:g} s")


def answer_of(file: Path) -> str:
    """The answer in a recording's ``answer.txt``."""
    return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")


def recordings_of(directory: str) -> dict[str, Path]:
    """The recordings in a directory, by model name; ``/`` in a name is a sub-directory."""
    root = Path(directory)
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else []:
        inside = path.relative_to(root)
        if path.is_dir() and not any(parent in found.values() for parent in path.parents):
            names = {entry.name for entry in path.iterdir()}
            if not names or names & _PARTS:
                found[inside.as_posix()] = path
    return found


def _record_trace(recording: Path, run: Run) -> None:
    """Record what was recorded, and what it used."""
    files = [recording / name for name in _TRACES if (recording / name).is_file()]
    if len(files) > 1:
        names = " and ".join(file.name for file in files)
        raise AgentError(f"{recording} has both {names}", hint="keep one")
    if not files:
        if run.trace.content is not None:
            run.record(AgentStep(content=run.trace.content, done=True))
        run.trace.extra[USAGE] = RunUsage(tokens=0, cost_usd=0.0).to_dict()
    else:
        _read_trace(files[0], run)
    if run.trace.content is None:
        run.trace.content = run.trace.final(
            lambda step: step.content if isinstance(step, AgentStep) else None
        )
    totals = totals_of(run.trace)
    run.tokens, run.cost_usd = totals.tokens, totals.cost_usd


def _read_trace(file: Path, run: Run) -> None:
    if file.stat().st_size > MOST_BYTES:
        raise AgentError(f"{file} has more than {MOST_BYTES} bytes")
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.name == _WHOLE:
        begun, run.trace = run.trace, _whole(text, file)
        run.trace.trace_id = begun.trace_id
        if begun.content is not None:
            run.trace.content = begun.content
        return
    from assay.agents.transcripts import detect, read_transcript

    if file.suffix != ".json" and detect(text) is None:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                run.record(_step(line, f"{file}:{number}"))
        return
    try:
        found = read_transcript(text)
    except InputError as error:
        raise AgentError(f"{file}: {error}") from error
    run.trace.steps.extend(found.trace.steps)
    run.trace.stop_reason, run.trace.status = found.trace.stop_reason, found.trace.status
    run.trace.extra |= found.trace.extra
    if run.trace.content is None:
        run.trace.content = found.trace.content


def _whole(text: str, file: Path) -> Trace:
    try:
        trace = from_json(Trace, read_json(text, nan=True))
    except (ValueError, InputError, RecursionError) as error:
        raise AgentError(f"{file}: not a trace: {error}") from error
    return replace(trace, steps=trace.work)  # what a runner put around it is put there again


def _step(line: str, where: str) -> Step:
    try:
        data = read_json(line, nan=True)
        trace = from_json(Trace, {"steps": [data]})
    except (ValueError, InputError, RecursionError) as error:
        raise AgentError(f"{where}: not a step of a trace: {error}") from error
    step = trace.steps[0]
    if isinstance(step, AgentStep):
        return replace(step, tool_calls=tuple(_with_kind(call) for call in step.tool_calls))
    return replace(step, call=_with_kind(step.call)) if isinstance(step, ToolStep) else step


def _with_kind(call: ToolCall) -> ToolCall:
    return call if call.kind is not None else replace(call, kind=tool_kind(call.name))


def _lay_over(files: Path, workspace: Path) -> None:
    """Copy files over the workspace; directories keep the workspace's own permissions.

    A recording may lie on a read-only file system: a workspace made read-only by it would turn
    good work into a 0. A link in the workspace is never followed.
    """
    root = str(workspace)
    for source in sorted(files.rglob("*")) if files.is_dir() else []:
        relative = source.relative_to(files).as_posix()
        if source.is_dir() and not source.is_symlink():
            try:
                make_directory_inside(root, relative)
            except OSError:  # a file or a link stands there
                remove_inside(root, relative)
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
