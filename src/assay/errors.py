"""The error model: what can go wrong, whose fault it is, and what the user can do.

One hierarchy. A class says *whose* fault it is, because that decides what the fault may do to a
reward:

* `InputError`: the author's case, grader, dataset or option is wrong. Refused before work starts.
  `NotFoundError`, `ConflictError` and `LockedError` say so of things that are stored.
* `GraderError`: a grader could not give a verdict. The result is an error, never a 0.
* `SandboxError`, `SourceError`, `ProvisionError`, `StoreError`: our machinery failed. Likewise.
* `ModelError`: a language model could not be asked, or its reply cannot be used. Likewise.
* `ChannelError`: a served environment could not be reached, or refused. Likewise.
* `AgentError`, `AgentTimeoutError`: what does the work failed. The partial trace is kept.

What the *submission* causes (a failing test, a command over its time) is not an exception at all:
it is a score of 0 whose metadata says why.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Literal, TypeAlias

from assay.frozen import frozen

__all__ = [
    "AgentEndedError",
    "AgentError",
    "AgentTimeoutError",
    "AssayError",
    "ChannelError",
    "ConflictError",
    "GraderError",
    "GradingTimeoutError",
    "InputError",
    "Location",
    "LockedError",
    "MissingExtraError",
    "ModelError",
    "ModelFault",
    "NotFoundError",
    "ProgramError",
    "ProvisionError",
    "SandboxError",
    "SandboxUnavailableError",
    "ScoreError",
    "SkippedError",
    "SourceError",
    "StoreError",
    "TaskEndedError",
    "TemplateError",
    "is_fault",
    "nearest",
    "reason_of",
    "traceback_of",
]


class AssayError(Exception):
    """Anything assay raises on purpose.

    Attributes:
        message: What happened, and to which case, grader or file.
        hint: What the user can do about it, or an empty string.
        subscore: The error node that stands for a grader when scores are combined, if the error
            is a grader's and it got as far as having a name and a weight.
    """

    subscore: object = None

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Of any subclass, whatever its own arguments are: errors travel between processes.
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(kind: type[AssayError], args: tuple[object, ...]) -> AssayError:
    return kind.__new__(kind, *args)


@frozen
class Location:
    """Where in a user's file something stands.

    Attributes:
        file: Path as the user would type it.
        line: 1-based line, or None where the format has no lines.
        column: 1-based column, or None.
        field: Dotted path of the field, such as ``graders[1].weight``.
    """

    file: str = ""
    line: int | None = None
    column: int | None = None
    field: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.field}" if place and self.field else place or self.field


class InputError(AssayError, ValueError):
    """The user's input is wrong: names the place, what is wrong there and how to fix it.

    Attributes:
        location: Where; empty for input that came from Python.
    """

    def __init__(self, message: str, *, location: Location | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.location = location or Location()

    def __str__(self) -> str:
        place = str(self.location)
        text = super().__str__()
        return f"{place}: {text}" if place else text


class NotFoundError(InputError):
    """Nothing is stored under that name."""


class ConflictError(InputError):
    """What is stored does not allow it: the name is taken, in use, or was changed meanwhile."""


class LockedError(ConflictError):
    """It is locked against changes; unlock it first."""


class ProgramError(InputError):
    """Untrusted code cannot be loaded: it raises, hangs or exits before its function is there."""


class ScoreError(AssayError, ValueError):
    """A number that may not be a score: NaN, infinite, a bool, or out of range."""


class GraderError(AssayError):
    """A grader could not give a verdict; the result is an error, never a 0."""


class GradingTimeoutError(GraderError):
    """Our grading took longer than it may (not the submission's own command)."""


class TemplateError(GraderError):
    """A task template broke its contract: a prompt, observations if any, and a reward."""


class AgentEndedError(AssayError):
    """The agent takes no more actions. Raised in a template, at the yield that waits for one."""


class SandboxError(AssayError):
    """The sandbox failed; nothing is known about the command it was to run."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot isolate untrusted code; the hint says what to install or allow."""


class SourceError(AssayError):
    """A case's source (path, git, package) could not be fetched or is not what was pinned."""


class ProvisionError(AssayError):
    """A case's environment (venv, requirements, set-up commands) could not be built."""


class StoreError(AssayError):
    """The database or the artifact store could not be read or written."""


class DamagedError(StoreError):
    """What the database holds is damaged: no second try helps, a copy that was kept does."""


class SkippedError(AssayError):
    """The task does not apply here; known before the agent starts, and nothing the agent caused."""


class AgentError(AssayError):
    """The agent failed before or while it worked."""


class AgentTimeoutError(AgentError):
    """The agent worked longer than it may."""


class TaskEndedError(AgentError):
    """The task takes no more actions: it is over, or takes none at all."""


ModelFault: TypeAlias = Literal[
    "no_key",
    "rejected",
    "auth",
    "quota",
    "budget",
    "rate_limited",
    "overloaded",
    "unreachable",
    "timeout",
    "overflow",
    "refused",
    "truncated",
    "unreadable",
    "unbelievable",
    "not_recorded",
]
"""What kept a model's reply from being used; see `ModelError`."""


class ModelError(AssayError):
    """A language model could not be asked, or its reply cannot be used. Never a number.

    Attributes:
        kind: ``no_key`` (nobody said how to reach it), ``rejected`` (the request is refused as
            wrong), ``auth``, ``quota`` (paid-for use is used up), ``budget`` (ours is used up),
            ``rate_limited`` and ``overloaded`` (also after all tries), ``unreachable``,
            ``timeout``, ``overflow`` (more text than the model takes), ``refused`` (by the model
            or its content filter), ``truncated``, ``unreadable`` (not what was asked for, also
            after a repair), ``unbelievable`` (well-formed, and refuted by what we can check),
            ``not_recorded`` (replay without a recording).
        status: The HTTP status, or 0.
    """

    def __init__(
        self, message: str, *, kind: ModelFault = "unreadable", status: int = 0, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: ModelFault = kind
        self.status = status


class ChannelError(AssayError):
    """A served environment could not be reached, refused a call, or failed at it. Never a number.

    Attributes:
        code: The error's number in JSON-RPC.
        kind: What went wrong at the other end, such as ``TemplateError``; empty where it is here.
    """

    def __init__(self, message: str, *, code: int = -32000, kind: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.kind = kind


class MissingExtraError(AssayError, ImportError):
    """An optional dependency is not installed.

    Attributes:
        extra: The extra that brings it.
    """

    def __init__(self, feature: str, *, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}'", hint=f"pip install 'assay[{extra}]'"
        )
        self.feature = feature
        self.extra = extra


_OURS = __file__.rpartition("/")[0]
_MOST_TRACEBACK = 6_000


def is_fault(error: BaseException) -> bool:
    """Whether it is a failure of the code that raised it, and not how that code is stopped.

    Packages raise what is no `Exception`, too, such as a panic of Rust's. Ctrl-C comes to the main
    thread alone; elsewhere a KeyboardInterrupt is an error as others are.
    """
    if isinstance(error, Exception | SystemExit):
        return True
    import asyncio
    import threading

    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return False
    is_main = threading.current_thread() is threading.main_thread()
    return not (is_main and isinstance(error, KeyboardInterrupt))


def reason_of(error: BaseException) -> str:
    """What happened, in a line: our own errors say it; of any other, where it came from, too."""
    if isinstance(error, AssayError):
        return str(error)
    place = _place_of(error)
    try:
        said = str(error)
    except Exception as fault:  # it is somebody's own class
        said = f"it cannot be shown ({type(fault).__name__})"
    return f"{type(error).__name__}: {said}{f' ({place})' if place else ''}"


def reason_in(error: BaseException) -> str:
    """What happened in a file of somebody's own: with its line, also where the error is ours."""
    place = _place_of(error) if isinstance(error, AssayError) else ""
    return f"{reason_of(error)} ({place})" if place else reason_of(error)


def shown(file: str) -> str:
    """A file as its user would type it."""
    import os

    here = file
    with suppress(OSError):  # the working directory may be gone
        here = os.path.relpath(file) if file else ""
    return file if here.startswith("..") else here


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception in code that is not ours, from where that code begins.

    Returns:
        At most 6,000 characters, the beginning and the end; "" where only code of ours took part.
    """
    import traceback

    start = error.__traceback__
    while start is not None and not _is_foreign(start.tb_frame.f_code.co_filename):
        start = start.tb_next
    if start is None:
        return ""
    text = "".join(traceback.format_exception(type(error), error, start)).rstrip("\n")
    if len(text) <= _MOST_TRACEBACK:
        return text
    half = _MOST_TRACEBACK // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters cut]\n{text[-half:]}"


def _place_of(error: BaseException) -> str:
    """File, line and function of the innermost code that is somebody's own; "" where none is."""
    place, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if _is_foreign(code.co_filename):
            place = f"{shown(code.co_filename)}:{step.tb_lineno} in {code.co_name}"
        step = step.tb_next
    return place


def _is_foreign(file: str) -> bool:
    """Whether a file is neither ours nor Python's nor an installed package."""
    library = f"{sys.base_prefix}/lib/"
    return not (
        file.startswith((_OURS, library, "<"))
        or "/site-packages/" in file
        or "/dist-packages/" in file
    )


def nearest(name: str, valid: list[str]) -> str:
    """Say which valid name was probably meant.

    Returns:
        ``did you mean 'x'?`` when one is close, else the list of valid names.
    """
    import difflib

    # A stranger's name may be megabytes long, and looking at it takes its time.
    close = difflib.get_close_matches(name[:200], valid, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "valid: " + ", ".join(sorted(valid)) if valid else ""
