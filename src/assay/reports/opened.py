"""A cell, opened: what was asked, answered and done, what it left, and why it has its score.

The one model of a cell that the table, the HTML page, JSON and JUnit show. A cell's narrow row is
enough to make one; with the store at hand comes what is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from assay.errors import AssayError
from assay.frozen import frozen
from assay.reports.explain import in_words, nodes
from assay.reports.outcome import outcome, reward_of, trouble
from assay.reports.plain import one_line, shorten
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.types.run import Run
from assay.types.trace import PROMPT, ActionStep, AgentStep, AnyStep, ToolStep, Trace

__all__ = [
    "FileChange",
    "Moment",
    "Opened",
    "Opener",
    "cell_dict",
    "open_cell",
]

_MOST_MOMENTS = 400
_MOST_CHARACTERS = 20_000
_MOST_FILES = 60
_LARGEST_FILE = 256 * 1024
_EFFORT = 4_000_000
_MOST_DIFF = 200_000


@frozen
class Moment:
    """One thing that was said or done.

    Attributes:
        label: Who did what, such as ``called bash``.
        text: What was said, given or answered.
        is_error: Whether something went wrong.
    """

    label: str
    text: str
    is_error: bool = False

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return {"label": self.label, "text": self.text, "is_error": self.is_error}


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
        detail = store.detail(cell.run_id, cell.key)
        row = detail.get("row")
        return _row(cell, row) if isinstance(row, dict) else _run(store.home, cell, detail)
    except AssayError as error:
        narrow = Opened.of(cell)
        why = f"only the result itself could be read: {one_line(str(error), 300)}"
        return Opened(cell=cell, scores=narrow.scores, answer=cell.answer, notes=(why,))


def _row(cell: CellRecord, data: Mapping[str, Json]) -> Opened:
    """A row of a dataset; its comparisons are explained now, when somebody looks."""
    from assay.graders.apply import explained
    from assay.tasks.rows import read_row

    submission = read_row(data).submission
    thread = submission.thread
    said = [Moment(turn.role, turn.content) for turn in thread.messages()] if thread else []
    done = (
        list(_steps(submission.trace, submission.question or ""))
        if submission.trace is not None
        else []
    )
    return Opened(
        cell=cell,
        scores=tuple(explained(node, submission) for node in nodes(cell)),
        prompt="" if said else _text(submission.question or ""),
        answer=submission.answer or "",
        steps=tuple([*said, *done][-_MOST_MOMENTS:]),
    )


def _run(home: str, cell: CellRecord, detail: Mapping[str, Json]) -> Opened:
    run = Run.from_dict(detail)
    left, source = (str(run.metadata.get(name) or "") for name in ("snapshot", "source"))
    notes: list[str] = []
    changes: list[FileChange] = []
    if left and source:
        try:
            changes = list(_changes(home, source, left, notes))
        except (AssayError, OSError) as error:
            notes.append(f"the workspace that was kept cannot be read: {one_line(str(error), 300)}")
    steps = list(_steps(run.trace, run.prompt_text))
    if len(steps) > _MOST_MOMENTS:
        notes.append(f"{len(steps) - _MOST_MOMENTS:,} steps in the middle are not shown")
        steps = [*steps[: _MOST_MOMENTS // 2], *steps[-_MOST_MOMENTS // 2 :]]
    return Opened(
        cell=cell,
        scores=nodes(cell),
        prompt=_text(run.prompt_text),
        answer=run.trace.content or "",
        trace_id=run.trace_id or "",
        steps=tuple(steps),
        changes=tuple(changes),
        notes=tuple(notes),
    )


# --- What was done -------------------------------------------------------------------------------


_STOPPED: Mapping[str | None, str] = {
    "max_steps": "it had no more replies",
    "length": "it had no more room: its context, a reply or its tokens were used up",
    "timeout": "it had no more time",
    "malformed_tool_call": "what it called could not be called, again and again",
}


def _steps(trace: Trace, prompt: str) -> Iterator[Moment]:
    from assay.graders.usage import walk

    steps = [step for _, step in walk(trace)]
    done = {step.call.id for step in steps if isinstance(step, ToolStep) and step.call.id}
    for step in steps:
        yield from _told(step, prompt)
        yield from _step(step, trace.content, done)
    if why := _STOPPED.get(trace.stop_reason):
        yield Moment("stopped", why)
    code, said = trace.extra.get("exit_code"), trace.extra.get("stderr")
    if isinstance(said, str) and said.strip():
        ended = f", which ended with {code}" if code not in (0, None) else ""
        yield Moment(f"standard error of the agent{ended}", _text(said), bool(ended))
    script = trace.extra.get("run.sh")
    if isinstance(script, dict) and any(script.values()):  # it failed, or printed something
        told = {name: value for name, value in script.items() if value}
        yield Moment("ran run.sh", _text("\n".join(in_words(told))), "exit_code" in told)


def _told(step: AnyStep, prompt: str) -> Iterator[Moment]:
    """What an agent was told besides the prompt: by its own system prompt, by a user's turns."""
    if step.extra.get(PROMPT) is True:
        return
    for message in step.messages:
        said = message.get("content") if isinstance(message, dict) else message
        text = said if isinstance(said, str) else "\n".join(in_words(said))
        if text.strip() and text.strip() not in prompt:
            role = str(message.get("role") or "") if isinstance(message, dict) else ""
            yield Moment(f"told by the {one_line(role or step.source, 20)}", _text(text))


def _step(step: AnyStep, answer: str | None, done: set[str]) -> Iterator[Moment]:
    if isinstance(step, AgentStep):
        if step.reasoning:
            yield Moment("thought", _text(step.reasoning))
        if step.content and step.content.strip() != (answer or "").strip():
            yield Moment("said", _text(step.content))
        for call in step.tool_calls:
            if call.id not in done:  # else the step of the tool says it, and what came of it
                yield Moment(f"asked for {one_line(call.name, 60)}", _value(dict(call.arguments)))
    elif isinstance(step, ToolStep):
        did = "was denied" if step.permission == "denied" else "called"
        name = one_line(step.call.name, 60)
        yield Moment(f"{did} {name}", _value(dict(step.call.arguments)), did != "called")
        if step.result is not None:
            how = "failed with" if step.result.is_error else "got"
            yield Moment(how, _value(step.result.content), step.result.is_error)
    elif isinstance(step, ActionStep):
        yield Moment("acted", _text(step.action))
        if step.observation:
            yield Moment("observed", _value(step.observation))
    if step.error:
        yield Moment("error", _text(step.error), is_error=True)
        if isinstance(trace := step.extra.get("traceback"), str):
            yield Moment("traceback", _text(trace), is_error=True)


def _value(value: Json | dict[str, Json]) -> str:
    return _text(value if isinstance(value, str) else "\n".join(in_words(value)))


def _text(text: str) -> str:
    return shorten(text, _MOST_CHARACTERS)


# --- What became of the files --------------------------------------------------------------------


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
