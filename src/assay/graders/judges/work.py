"""`JudgedWork`: an agent's work as a judge is shown it, what of it may be quoted, and who did it.

A diff and a trace are bounded, and never cut unsaid. Both are material: names and texts are an
agent's, and stand in a fence. A name is one line whatever characters it has. What is too large to
be shown is named with its size; a whole that is too large is an error.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from assay.errors import ModelError
from assay.graders.judges.dialogue import Spoken
from assay.graders.judges.fence import MAX_MATERIAL, Part, Untrusted, suspicions
from assay.graders.judges.gate import Unasked
from assay.graders.judges.rubric import Material
from assay.graders.tree import SKIPPED_DIRECTORIES, read_regular, regular_files
from assay.graders.usage import missing_part, untold_part, walk
from assay.models import family_of
from assay.scoring.json_safe import Json, noted
from assay.types.submission import Workspace
from assay.types.trace import ActionStep, AgentStep, AnyStep, ToolStep, Trace


def judged_model(trace: Trace | None, metadata: Mapping[str, Json] | None) -> str:
    """The model whose work it is, as the trace or the metadata say; "" where neither does."""
    if trace is not None:
        steps = [step for _, step in walk(trace) if isinstance(step, AgentStep)]
        if found := next((step.model for step in reversed(steps) if step.model), None):
            return found
        if isinstance(found := trace.extra.get("model"), str):
            return found
    found = (metadata or {}).get("model")
    return found if isinstance(found, str) else ""


def kin(judges: Sequence[str], judged: str) -> list[str]:
    """The judges that are of the same family as the model whose work they judge."""
    family = family_of(judged) if judged else ""
    return [judge for judge in judges if family and family_of(judge) == family]


NOT_SHOWN = ", ".join(sorted(SKIPPED_DIRECTORIES))
"""Directories of which no file is shown."""

_MAX_FILES = 100_000
_MAX_FILE = 256 * 1024
_PIECE = 2_000
_OWN = ("[said] ", "[called ")
_MOST_NO_TEXT = 0.3
"""Share of characters that are not text from which a file is taken for binary. One such byte is not
enough: whoever wrote the file would choose what the judge is shown of it."""
_EFFORT = 4_000_000
"""Pairs of lines that are compared in all: a text can be made to be slow to compare."""
_LOCK_FILES = frozenset(
    {
        *("Cargo.lock", "Gemfile.lock", "Pipfile.lock", "Podfile.lock", "bun.lock"),
        *("composer.lock", "conda-lock.yml", "deno.lock", "flake.lock", "go.sum"),
        *("gradle.lockfile", "mix.lock", "npm-shrinkwrap.json", "package-lock.json"),
        *("packages.lock.json", "pdm.lock", "pixi.lock", "pnpm-lock.yaml", "poetry.lock"),
        *("pubspec.lock", "pylock.toml", "uv.lock", "yarn.lock"),
    }
)
"""What package managers write. One line of work makes thousands of lines of it, which would be more
than a judge reads."""
_LOCK_LINES = 20_000
"""Characters of changes that are shown of lock files in all; of a longer one name and size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a judge is shown of work."""

    text: str
    # What of it is the work's own, so that it may be quoted as evidence: what was added to files,
    # what the agent said and called. Not what it was given, took out, was answered by a tool, or
    # merely moved.
    own: str = ""
    hidden: tuple[str, ...] = ()


def diff_view(workspace: Workspace) -> View:
    """The unified diff of what was left against what was given.

    Without a source every file is a new one. Links, files that are mostly no text, files of
    more than 256 KiB and lock files that changed much are named only. Of a text, other bytes are
    shown as U+FFFD.
    """
    left = Path(workspace.submitted or workspace.path)
    source = Path(workspace.source) if workspace.source is not None else None
    given = _names(source) if source is not None else set[str]()
    try:
        names = given | _names(left)
    except ModelError as error:  # more than what was given: its own doing
        raise OverlongError(error.message) from None
    effort, shown, size, hidden = _EFFORT, list[list[str]](), 0, list[str]()
    room = _LOCK_LINES
    for name in sorted(names, key=lambda name: (_is_lock(name), name)):  # what was written first
        before = _content(source, name) if source is not None else None
        after = _content(left, name)
        if before == after:
            continue
        lines, effort = file_diff(name, before, after, effort)
        length = sum(map(len, lines)) + len(lines)
        if _text_of(after) is None:
            hidden.append(f"{_line(name)}: {_told(after)}")
        elif _is_lock(name):
            if length > room:
                said = f"{_told(before)}, now {_told(after)}"
                hidden.append(f"{_line(name)}: {said}; a lock file that changed much is not read")
                lines = [*lines[:2], f"[a lock file that changed much: {said}]"]
                length = sum(map(len, lines)) + len(lines)
            else:
                room -= length
        size += length
        if size > MAX_MATERIAL:
            raise _overflow("diff")
        shown.append(lines)
    text = "\n".join(line for lines in shown for line in lines)
    return View(text=text, own=_added(shown), hidden=tuple(hidden))


def _added(diffs: Sequence[Sequence[str]], gone: frozenset[str] = frozenset()) -> str:
    """Lines that were added, with their ``+`` and without; of a block that was moved, nothing.

    ``gone``: Lines that were taken out of other files.
    """
    blocks: list[list[str]] = []
    removed = set(gone)
    for lines in diffs:
        block: list[str] = []
        for line in lines[2:]:  # behind the names of the file
            if line.startswith("+"):
                if not block:
                    blocks.append(block)
                block.append(line[1:])
                continue
            block = []
            if line.startswith("-"):
                removed.add(line[1:].strip())
    new = [block for block in blocks if any(line.strip() not in removed for line in block)]
    # Apart from each other, so that no quote goes from one block into the next.
    marked = ["\n".join(f"+{line}" for line in block) for block in new]
    return "\n@@\n".join([*marked, *("\n".join(block) for block in new)])


def lines_gone(workspace: Workspace) -> frozenset[str]:
    """Lines that were taken out of the files that were given: where they stand now is no work."""
    if workspace.source is None:
        return frozenset()
    given, left = Path(workspace.source), Path(workspace.submitted or workspace.path)
    gone: set[str] = set()
    for name in _names(given):
        before, after = _content(given, name), _content(left, name)
        if before != after:
            gone |= {line.strip() for line in _text_of(before) or ()}
            gone -= {line.strip() for line in _text_of(after) or ()}
    return frozenset(gone)


def own_lines(workspace: Workspace, name: str, gone: frozenset[str]) -> str | None:
    """What of a file that was left is the work's own; None where it has none that can be read.

    ``gone``: As `lines_gone` finds them.
    """
    left, given = Path(workspace.submitted or workspace.path), workspace.source
    after = _content(left, name)
    before = None if given is None else _content(Path(given), name)
    if after is None or _text_of(after) is None or after == before:
        return None
    lines, _ = file_diff(name, before, after, _EFFORT)
    return _added([lines], gone)


def trace_view(trace: Trace) -> View:
    """What was said and done, step by step, each in a line that nothing in it can begin.

    Of each message, argument and result at most 2,000 characters are shown, its beginning and its
    end, and what is left out between them is said.
    """
    lines: list[str] = []
    own: list[str] = []
    size = 0
    for _, step in walk(trace):
        for line in _step(step):
            size += len(line) + 1
            if size > MAX_MATERIAL:
                raise _overflow("trace")
            lines.append(line)
            if line.startswith(_OWN):
                own.append(line)
    if lines and (why := missing_part(trace) or untold_part(trace)):
        lines.append(f"[a part of the trace is missing: {_piece(why)}]")
    return View(text="\n".join(lines), own="\n@@\n".join(own))


class OverlongError(ModelError):
    """Work is more than a judge reads, by its own doing: it is worth 0."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}, and a judge reads all of it or nothing", kind="overflow")


def _overflow(what: str) -> OverlongError:
    return OverlongError(f"the {what} is longer than {MAX_MATERIAL:,} characters")


def _is_lock(name: str) -> bool:
    return name.rpartition("/")[2] in _LOCK_FILES


def _names(root: Path) -> set[str]:
    """Paths of files and links below a directory."""
    found: set[str] = set()
    for name in _entries(root):
        found.add(name)
        if len(found) > _MAX_FILES:
            raise ModelError(
                f"there are more than {_MAX_FILES:,} files to be compared", kind="overflow"
            )
    return found


def _entries(root: Path) -> Iterator[str]:
    for path in regular_files(root):
        yield path.as_posix()
    waiting = [""]
    while waiting:  # the links, which are not regular files
        directory = waiting.pop()
        try:
            with os.scandir(root / directory) as found:
                entries = list(found)
        except OSError:  # not ours to read, or its path is longer than the system takes
            continue
        for entry in entries:
            name = f"{directory}/{entry.name}" if directory else entry.name
            if entry.is_symlink():
                yield name
            elif entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED_DIRECTORIES:
                waiting.append(name)


def _content(root: Path, name: str) -> bytes | str | None:
    """A file's bytes; as text, what stands for them; None where there is no such file."""
    try:
        place = root / name
        if place.is_symlink():
            return f"a link to {_line(os.readlink(place))}"  # noqa: PTH115 - as it is written
    except (OSError, ValueError):
        return "a link that cannot be read"
    found = read_regular(root, name, limit=_MAX_FILE)
    if not isinstance(found, str):
        return found
    if found == "is missing":
        return None
    if found == "is too large":
        return f"a file that is too large to be shown: {place.lstat().st_size:,} bytes"
    return f"a file that {found}"


def file_diff(
    name: str, before: bytes | str | None, after: bytes | str | None, effort: int
) -> tuple[list[str], int]:
    """The lines about one file, two of them its names, and the effort that is left for others.

    ``before``: What it was; as text, what stands for it; None where there was none.
    """
    old, new = _text_of(before), _text_of(after)
    shown = _line(name)
    header = [
        f"--- {'/dev/null' if before is None else f'a/{shown}'}",
        f"+++ {'/dev/null' if after is None else f'b/{shown}'}",
    ]
    if new is None:
        return [*header, f"[{_told(before)}, now {_told(after)}]"], effort
    if old is None:
        header.append(f"[in place of {_told(before)}]")
        old = []
    elif old == new and before and after:
        return [*header, "[only bytes that are not text changed]"], effort
    pairs = len(old) * len(new)
    if pairs <= effort:
        body = list(difflib.unified_diff(old, new, lineterm=""))[2:]
        effort -= pairs
    else:
        whole = f"@@ -1,{len(old)} +1,{len(new)} @@"
        body = [whole, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return [*header, *(part for line in body for part in line.split("\n"))], effort


_UNENDED = "\\ No newline at end of file"
"""As diff says it. It is part of the last line until that is compared."""


def _text_of(content: bytes | str | None) -> list[str] | None:
    """The lines of a text file, as a diff counts them; None where there is no text to be shown."""
    if content is None or content == b"":
        return []
    if isinstance(content, str):
        return None
    text = content.decode("utf-8", "replace")
    strange = text.count("\ufffd") + text.count("\0")
    if strange > _MOST_NO_TEXT * len(text):
        return None
    *lines, rest = text.split("\n")
    return [*lines, f"{rest}\n{_UNENDED}"] if rest else lines


def _told(content: bytes | str | None) -> str:
    if content is None:
        return "no file"
    if isinstance(content, str):
        return content
    return f"a file of {len(content):,} bytes{'' if _text_of(content) is not None else ', binary'}"


def _line(name: str) -> str:
    """A name as one line, quoted where it has characters that are not part of a plain one."""
    return name if name.isprintable() else json.dumps(name)


def _step(step: AnyStep) -> Iterator[str]:
    if isinstance(step, AgentStep):
        if step.reasoning:
            yield f"[thought] {_piece(step.reasoning)}"
        if step.content:
            yield f"[said] {_piece(step.content)}"
        for call in step.tool_calls:
            yield f"[asked for {_line(call.name)}] {_piece(dict(call.arguments))}"
    elif isinstance(step, ToolStep):
        did = "was denied" if step.permission == "denied" else "called"
        yield f"[{did} {_line(step.call.name)}] {_piece(dict(step.call.arguments))}"
        if step.result is not None:
            how = "failed" if step.result.is_error else "result"
            yield f"[{how}] {_piece(step.result.content)}"
    elif isinstance(step, ActionStep):
        yield f"[acted] {_piece(step.action)}"
        if step.observation is not None:
            yield f"[observed] {_piece(step.observation)}"
    if step.error:
        yield f"[error] {_piece(step.error)}"


def _piece(value: Json | dict[str, Json]) -> str:
    text = value if isinstance(value, str) else json.dumps(cast("Json", value), ensure_ascii=False)
    if len(text) > _PIECE:
        half = _PIECE // 2
        left_out = len(text) - 2 * half
        text = f"{text[:half]} [... {left_out:,} characters are not shown ...] {text[-half:]}"
    # Indented, so that nothing in it reads like a step of its own.
    return "\n    ".join(text.splitlines())


_MOST_NAMED = 100
_ABOUT_DIFF = (
    f"What changed in the files (nothing of {NOT_SHOWN} is shown); as evidence count only lines "
    "that were added:"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWork(Material):
    """What is judged. Its ``answer`` is what evidence may be quoted from: the work's own parts."""

    spoken: Spoken
    diff: View | None
    trace: View | None
    # Patterns of attack in any of them; noted, never scored.
    suspicions: tuple[str, ...]
    note: str = ""

    @classmethod
    async def of(
        cls, spoken: Spoken, *, trace: Trace | None, workspace: Workspace | None
    ) -> JudgedWork:
        """Look at work."""
        diff = None if workspace is None else await asyncio.to_thread(diff_view, workspace)
        done = None if trace is None else await asyncio.to_thread(trace_view, trace)
        views = [view for view in (diff, done) if view is not None]
        own = [text for text in (spoken.quotable, *(view.own for view in views)) if text]
        found = [*spoken.found, *(name for view in views for name in suspicions(view.text))]
        return cls(
            answer="\n@@\n".join(own),
            question=spoken.question,
            spoken=spoken,
            diff=diff,
            trace=done,
            suspicions=tuple(dict.fromkeys(found)),
        )

    @property
    def quotable(self) -> str:
        """The work's own parts; a comment in a file is a line of it as any other."""
        return self.answer

    def signs(self) -> tuple[str, ...]:
        """Those that were found when it was looked at."""
        return self.suspicions

    def to_json(self) -> dict[str, Json]:
        """What is kept of it with the score."""
        told = noted(injection_suspected=list(self.suspicions))
        if self.diff is not None and (hidden := self.diff.hidden):
            left_out = [f"and {len(hidden) - _MOST_NAMED:,} more"] if hidden[_MOST_NAMED:] else []
            told["not_shown"] = [*hidden[:_MOST_NAMED], *left_out]
        return told

    def unasked(self) -> Unasked | None:
        """Why nobody is asked about it. What was merely done is no work of its own."""
        views = sum(len(view.text) for view in (self.diff, self.trace) if view is not None)
        own, beside = self.spoken.own + views, self.spoken.beside
        if own + beside > MAX_MATERIAL > 2 * beside:
            why = f"the work makes a prompt of more than {MAX_MATERIAL:,} characters"
            return Unasked(f"{why}, and a judge reads all of it or nothing", is_overlong=True)
        found = self.spoken.unasked()
        if found is None or self.diff is None:
            return found
        return None if self.diff.text else Unasked(f"{found.why}, and no file was changed")

    def with_note_of_trace(self) -> JudgedWork:
        """The same, where a trace was to be shown: its absence is said."""
        is_known = self.trace is not None and self.trace.text
        return self if is_known else replace(self, note="Nothing is known of how it was done.")

    def parts(self) -> list[Part]:
        """The material, what was done before what came of it."""
        parts: list[Part] = []
        if self.question:
            parts += ["What was asked for:", Untrusted("question", self.question)]
        if self.trace is not None and self.trace.text:
            parts += [
                "What was done, step by step; as evidence count only lines of [said] and [called]:",
                Untrusted("trace", self.trace.text),
            ]
        elif self.note:
            parts.append(self.note)
        if self.diff is not None and self.diff.text:
            parts += [_ABOUT_DIFF, Untrusted("diff", self.diff.text)]
            if hidden := self.diff.hidden:
                parts.append(
                    f"Of {len(hidden):,} changed files only the name is shown, as they are no "
                    "text, too large, or lock files of a package manager that changed much. "
                    "Nothing is known of what they hold, and it earns nothing."
                )
        elif self.diff is not None:
            parts.append("No file was changed.")
        if self.spoken.answer.strip():
            parts += self.spoken.said_parts()
        else:
            parts += self.spoken.talk
            parts.append("There is no final answer in words; what was left is to be graded.")
        return parts
