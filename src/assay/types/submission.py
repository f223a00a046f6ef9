"""`Submission`: what is graded, and what stands beside it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias, cast

from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.types.thread import StringThread
from assay.types.trace import Trace

SUBMISSION_PARTS = ("answer", "question", "expected", "workspace", "trace", "thread", "metadata")
"""Names that a grader may use as parameters to be given that part of the submission."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH in a container whose image says none."""

Part: TypeAlias = "Json | Workspace | Trace | StringThread"


@frozen(kw_only=True)
class UnpackedImage:
    """A container image, unpacked: the file system that commands run in instead of this machine's.

    Attributes:
        digest: Of the image's configuration, ``sha256:...``, which names its layers: the same
            digest is the same file system.
        root: Directory on this machine that holds its files. Nothing that runs ever changes it.
        env: Its variables.
        user: Ids that commands see themselves run as, user and group. They have no power.
        home: The home directory of that user.
        workdir: A path inside that leads to the workspace too; empty for none.
        python: Path inside of the Python that tests run in; empty where there is none.
        modules: Names of the modules that are installed for it, beside Python's own.
    """

    digest: str
    root: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: tuple[int, int] = (0, 0)
    home: str = "/root"
    workdir: str = ""
    python: str = ""
    modules: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The PATH of commands in it."""
        return self.env.get("PATH", DEFAULT_PATH)


@frozen(kw_only=True)
class Workspace:
    """A directory an agent works in, and what commands in it need.

    While an agent works there is one tree. While its work is graded there are three: the grading
    tree (``path``), what the agent left (``submitted``) and what it started from (``source``).

    Attributes:
        path: The directory on this machine. While grading: the source with the permitted changes,
            in which commands and tests run.
        env: Variables for commands that run in it.
        mounts: Directories outside it that commands may read, as (source, target) pairs.
        image: The image whose file system they run in; None for this machine's own programs.
        submitted: While grading: the tree as the agent left it, to be read and never run; None
            where it is the same as ``path``.
        source: While grading: the pristine tree that the agent started from; None where unknown.
        changes: While grading: paths below ``path`` whose content is the agent's: added, changed or
            removed, as far as the case permits it; None where unknown.
        left_out: While grading: paths that the agent added or changed and the case does not permit;
            in ``submitted`` only.
    """

    path: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[tuple[str, str], ...] = ()
    image: UnpackedImage | None = None
    submitted: str | None = None
    source: str | None = None
    changes: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()


@frozen(kw_only=True)
class Submission:
    """The parts of a piece of work; any of them may be missing.

    Attributes:
        answer: The final text.
        thread: The conversation.
        workspace: The directory that was left.
        trace: What was done.
        question: What was asked.
        expected: The reference answer, in whatever form the graders understand.
        metadata: Anything that belongs to the sample.
    """

    answer: str | None = None
    thread: StringThread | None = None
    workspace: Workspace | None = None
    trace: Trace | None = None
    question: str | None = None
    expected: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @classmethod
    def of(cls, parts: Mapping[str, object]) -> Submission:
        """One of those of some parts that are told by word alone: no workspace and no trace."""
        answer, question, expected, thread, metadata = (
            cast("Any", parts.get(name))
            for name in ("answer", "question", "expected", "thread", "metadata")
        )
        return cls(
            answer=answer,
            question=question,
            expected=expected,
            thread=thread,
            metadata=metadata or {},
        )

    def part(self, name: str) -> Part:
        """A part by the name that a grader asks for it with; None where there is none.

        It is a copy, so that no grader can change what the next one sees.
        """
        value: Part = getattr(self, name)
        if value is None or type(value) is str:
            return value
        if name == "metadata":
            return copy.deepcopy(dict(self.metadata)) if self.metadata else None
        if isinstance(value, list | dict):
            return copy.deepcopy(value)
        if isinstance(value, Trace):
            return replace(value, steps=[*value.steps])
        if isinstance(value, StringThread):
            return StringThread(value.turns, value.metadata, value.pictures)
        return value

    def parts(self) -> dict[str, Part]:
        """Copies of the parts that are there, by the name a grader asks for them."""
        found = {name: self.part(name) for name in SUBMISSION_PARTS}
        return {name: part for name, part in found.items() if part is not None}
