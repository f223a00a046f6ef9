"""`Work`: an agent's work as a judge is shown it, and what of it may be quoted as evidence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from assay.graders.judges.gate import emptiness
from assay.graders.judges.prompt import Part, Untrusted, suspicions
from assay.graders.judges.rubric import Material
from assay.graders.judges.workspace_view import NOT_SHOWN, View, diff_view, trace_view
from assay.scoring.json_safe import Json
from assay.types.submission import Workspace
from assay.types.trace import Trace

__all__ = ["Work"]

_MOST_NAMED = 100
_DIFF = (
    f"What changed in the files (nothing of {NOT_SHOWN} is shown); as evidence count only lines "
    "that were added:"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Material):
    """What is judged. Its ``answer`` is what evidence may be quoted from: the work's own parts.

    Attributes:
        said: The final answer.
        diff: What changed in files; None where it is not shown.
        trace: What was done; likewise.
        suspicions: Patterns of attack in any of them; noted, never scored.
        note: A word of ours in place of a trace.
    """

    said: str
    diff: View | None
    trace: View | None
    suspicions: tuple[str, ...]
    note: str = ""

    @classmethod
    async def of(
        cls, answer: str, question: str, *, trace: Trace | None, workspace: Workspace | None
    ) -> Work:
        """Look at work.

        Args:
            answer: What was said in the end.
            question: What was asked for.
            trace: What was done, if it is to be shown.
            workspace: What was left and given, if it is to be shown.

        Raises:
            ModelError: Of the kind ``overflow`` for more than a judge may read.
        """
        diff = None if workspace is None else await asyncio.to_thread(diff_view, workspace)
        done = None if trace is None else await asyncio.to_thread(trace_view, trace)
        views = [view for view in (diff, done) if view is not None]
        own = [text for text in (answer, *(view.own for view in views)) if text]
        found = [name for text in (answer, *(v.text for v in views)) for name in suspicions(text)]
        return cls(
            answer="\n@@\n".join(own),
            question=question,
            said=answer,
            diff=diff,
            trace=done,
            suspicions=tuple(dict.fromkeys(found)),
        )

    def told(self) -> dict[str, Json]:
        """What is kept of it with the score."""
        told: dict[str, Json] = {}
        if self.suspicions:
            told["injection_suspected"] = list(self.suspicions)
        if self.diff is not None and (hidden := self.diff.hidden):
            left_out = [f"and {len(hidden) - _MOST_NAMED:,} more"] if hidden[_MOST_NAMED:] else []
            told["not_shown"] = [*hidden[:_MOST_NAMED], *left_out]
        return told

    def emptiness(self) -> str:
        """Why there is nothing to be judged. What was merely done is no work of its own."""
        why = emptiness(self.said)
        if not why or (self.diff is not None and self.diff.text):
            return ""
        return why if self.diff is None else f"{why}, and no file was changed"

    def with_note_of_trace(self) -> Work:
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
            parts += [_DIFF, Untrusted("diff", self.diff.text)]
            if hidden := self.diff.hidden:
                parts.append(
                    f"Of {len(hidden):,} changed files only the name is shown, as they are no "
                    "text or too large. Nothing is known of what they hold, and it earns nothing."
                )
        elif self.diff is not None:
            parts.append("No file was changed.")
        if self.said.strip():
            parts += ["The final answer, to be graded:", Untrusted("answer", self.said)]
        else:
            parts.append("There is no final answer in words; what was left is to be graded.")
        return parts
