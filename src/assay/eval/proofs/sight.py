"""Whether right work stands where whoever works can read it before they begin.

Looked for word for word, whatever stands before the lines: in the prompt and in the files of the
workspace. Of work that changes files, all that it adds has to be there; what is as short as any
chance text says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from assay.eval.proofs.proof import Sight
from assay.eval.proofs.scene import Scene

_LEAST = 40
"""Characters without space of a text that does not stand somewhere by chance."""
_MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class RightWork:
    """What right work left.

    Attributes:
        answer: The answer.
        files: The files that it wrote or changed, by path.
        is_long: Whether more can be read while it is done: it takes steps, or has tools.
    """

    answer: str
    files: Mapping[str, bytes]
    is_long: bool


def in_sight(scene: Scene, work: RightWork) -> Sight | None:
    """Where work stands that can be read before it is done; None where it is too short to tell."""
    added = [text for path, new in work.files.items() for text in _added(scene.tree.get(path), new)]
    parts = [text for text in added or [_plain(work.answer)] if _length(text) >= _LEAST]
    if not parts:
        return None
    readable = {path: _plain(content.decode("utf-8", "replace")) for path, content in _all(scene)}
    places = [path for path, text in readable.items() if any(part in text for part in parts)]
    if not all(any(part in text for text in readable.values()) for part in parts):
        places = []
    return Sight(places=tuple(places), looked=len(readable) - 1, unseen=_unseen(scene, work))


def _unseen(scene: Scene, work: RightWork) -> str:
    if scene.case is not None and scene.case.image is not None:
        return "the files of the image outside of the workspace"
    if scene.history:
        return "the history of the repository"
    return "what is answered to its steps" if work.is_long else ""


def _all(scene: Scene) -> Iterator[tuple[str, bytes]]:
    yield "the prompt", scene.prompt.encode()
    yield from scene.tree.items()


def _added(before: bytes | None, after: bytes) -> Iterator[str]:
    """The runs of lines that a file has and had not, without what stands before each line."""
    new = _plain(after.decode("utf-8", "replace")).split("\n")
    old = _plain((before or b"").decode("utf-8", "replace")).split("\n")
    if before is None or max(len(new), len(old)) > _MOST_LINES:
        yield "\n".join(new)
        return
    for what, _, _, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what in ("insert", "replace"):
            yield "\n".join(new[begin:end])


def _plain(text: str) -> str:
    """A text whose lines begin with what they say: in a patch, a quote or a comment they do not."""
    return "\n".join(
        said for line in text.splitlines() if (said := line.lstrip(" \t+>#/").rstrip())
    )


def _length(text: str) -> int:
    return len("".join(text.split()))
