"""The tool calls of a trajectory, and matchers that say which of them are meant."""

from __future__ import annotations

import json
import posixpath
import re
import typing
import unicodedata
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from assay.errors import GraderError, InputError
from assay.graders.globs import LIVE, compiled, overlap
from assay.graders.tool_arguments import (
    ArgumentMatching,
    ArgumentMode,
    ArgumentRule,
    check_arguments,
    looks_at_arguments,
)
from assay.graders.tool_effects import (
    Touch,
    as_asked,
    command_line,
    does_nothing,
    ends_run,
    gives_code,
    is_scratch,
    line_of,
    patched,
    paths_of,
    possible_kinds,
    texts_in,
    touches,
    undone_edits,
    works_at,
)
from assay.graders.usage import untold_part, walk
from assay.scoring.json_safe import Json
from assay.types.codec import from_json, to_json
from assay.types.trace import AgentStep, ToolCall, ToolKind, ToolStep, Trace

TOOL_KINDS: tuple[str, ...] = typing.get_args(ToolKind)
"""Every kind of work."""

_WORKSPACE = "/workspace"
_LONGEST_PATH = 4_096
_MOST_WORDS = 1_000_000
_MOST_TOLD_OF = 50
_CWD = re.compile(r"^/proc/(?:self|thread-self|\d+)/cwd(?=/|$)")
_BETWEEN_WORDS = re.compile(r"[\s;|&<>()'\"`=,:]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatcher:
    """Which tool calls are meant; every given field must match.

    Attributes:
        kind: Kind of work.
        name: Tool name.
        raw_name: The harness's own tool name.
        path_glob: Glob over any path in the tool's input, absolute or relative to the workspace;
            ``*`` also matches ``/``.
        args: Arguments by name, each compared as JSON: 1 is 1.0, and not "1".
        args_mode: Whether a call has just these arguments, some of them, these and perhaps
            others, or whether nobody looks at them.
        args_rules: How single arguments are compared, by name.
    """

    kind: ToolKind | None = None
    name: str | None = None
    raw_name: str | None = None
    path_glob: str | None = None
    args: dict[str, Json] | None = None
    args_mode: ArgumentMode = "exact"
    args_rules: dict[str, ArgumentRule] = field(default_factory=dict[str, ArgumentRule])

    def __post_init__(self) -> None:
        if not any((self.kind, self.name, self.raw_name, self.path_glob)):
            raise InputError("a tool matcher needs kind, name, raw_name or path_glob")
        check_arguments(self)

    def __str__(self) -> str:
        given = cast("dict[str, Json]", to_json(self))
        return ", ".join(f"{key}: {_told(said)}" for key, said in given.items() if said != "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCall:
    """One tool call of a trajectory; it is ``open`` if only others have a result."""

    call: ToolCall
    denied: bool = False
    failed: bool = False
    open: bool = False

    @property
    def ran(self) -> bool:
        """Whether it did its work, as far as is known: not every harness records results."""
        return not (self.denied or self.failed or self.open)

    @property
    def kind(self) -> ToolKind:
        """Its kind of work."""
        return self.call.kind or "other"


def as_matcher(data: ToolMatcher | Mapping[str, Json]) -> ToolMatcher:
    """A matcher as a case declares it, or one that is already made."""
    if isinstance(data, ToolMatcher):
        return data
    return from_json(ToolMatcher, dict(data))


def observed_calls(trace: Trace) -> list[ObservedCall]:
    """Every tool call once, in the order in which they were asked for, subagents' included.

    A turn that asks for a call and the step that shows its round trip are one call: joined by id,
    or by name where there is none, each step with one request.
    """
    found: list[ObservedCall] = []
    waiting: dict[tuple[int, str, str], deque[int]] = {}
    for level, step in walk(trace):
        if isinstance(step, AgentStep):
            for call in step.tool_calls:
                waiting.setdefault(_key(level, call), deque()).append(len(found))
                found.append(ObservedCall(call=as_asked(call), open=True))
        elif isinstance(step, ToolStep):
            seen = ObservedCall(
                call=as_asked(step.call),
                denied=step.permission == "denied",
                failed=step.error is not None or (step.result is not None and step.result.is_error),
                open=step.result is None,
            )
            requests = waiting.get(_key(level, step.call))
            if requests:
                found[requests.popleft()] = seen
            else:
                found.append(seen)
    is_told = not all(one.open for one in found)
    return [
        replace(one, open=is_told and not ends_run(one.call)) if one.open else one for one in found
    ]


def _key(level: int, call: ToolCall) -> tuple[int, str, str]:
    return level, call.id, "" if call.id else call.name


class CallMatching:
    """Matches the calls of one trace.

    A demand is read strictly: the call ran, did something, and a path is a whole text of its input.
    A ban is read by what a call may do: any word of a text may be a path, a shell line is read with
    its quotes, variables and globs, and a tool of unknown kind may be of any. Input too long to be
    read through (1,000,000 words in all, `shell_lines.Steps` of a line) counts as banned.

    Where the harness tells no input of calls, only their names are known, and `require_told`
    refuses what rests on more.
    """

    def __init__(self, trace: Trace) -> None:
        session = trace.extra.get("session")
        cwd = session.get("cwd") if isinstance(session, dict) else None
        roots = [_WORKSPACE]
        if isinstance(cwd, str) and cwd.startswith("/") and len(cwd) < _LONGEST_PATH:
            roots.append(posixpath.normpath(cwd))
        self._roots = roots
        self._untold = untold_part(trace)
        self._undone = undone_edits([one.call for one in observed_calls(trace) if one.ran])
        self._arguments = ArgumentMatching()
        self._left = _MOST_WORDS
        self._touched: dict[int, tuple[ToolCall, list[Touch]]] = {}

    def idles(self, observed: ObservedCall) -> bool:
        """Whether a call did nothing that anybody could have asked for."""
        return self._is_empty(observed.call) or is_scratch(observed.call, self._roots)

    def _is_empty(self, call: ToolCall) -> bool:
        return id(call) in self._undone or does_nothing(call)

    def require_told(self, matcher: ToolMatcher, *, is_ban: bool) -> None:
        """Refuse what cannot be judged without the input of calls: it, or what they are not to do.

        It depends on the harness and the matcher alone, never on the calls.
        """
        rests_on_input = matcher.path_glob or looks_at_arguments(matcher)
        if self._untold and (rests_on_input or (is_ban and matcher.kind)):
            raise GraderError(
                f"{matcher}: {self._untold}, and so nothing of the input of calls",
                hint="let the tracer keep contents: for OpenTelemetry's own instrumentations, "
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
            )

    def kinds_of(self, observed: ObservedCall) -> frozenset[str]:
        """The kinds of work that a call may have been."""
        is_told = not self._untold or bool(observed.call.arguments)
        return possible_kinds(observed.call, is_told=is_told)

    def meets(self, matcher: ToolMatcher, observed: ObservedCall) -> bool:
        """Whether a call did what is demanded: it matches, it ran, and it was no empty gesture."""
        kind_fits = matcher.kind is None or matcher.kind == observed.kind
        if not (observed.ran and kind_fits and _is_named(matcher, observed)):
            return False
        if not self._arguments.fits(matcher, observed.call.arguments):
            return False
        glob = matcher.path_glob
        if glob is None:
            return not self.idles(observed)
        if self._is_empty(observed.call):
            return False
        if observed.kind in ("read", "write"):
            return any(self._is_at(text, glob) for text in paths_of(observed.call))
        line = command_line(observed.call.arguments) if observed.kind == "execute" else ""
        return any(
            works_at(text, partial(self._is_at, glob=glob))
            if text and text == line
            else self._is_at(text, glob)
            for text in texts_in(observed.call.arguments)
        )

    def why_not(self, matcher: ToolMatcher, calls: Sequence[ObservedCall]) -> str:
        """Why none of the calls meets a matcher: what is wrong with the one that is nearest."""
        bare = replace(matcher, args=None, args_mode="exact", args_rules={})
        tried = [call for call in calls if self.breaks(bare, call)]
        alike = [call.call.arguments for call in tried if self.meets(bare, call)]
        if alike and looks_at_arguments(matcher):
            found = [self._arguments.faults(matcher, one) for one in alike[:_MOST_TOLD_OF]]
            return "; ".join(min(found, key=len))
        if any(call.denied for call in tried):
            return "only a call that was denied"
        if any(call.failed for call in tried):
            return "only a call that failed"
        if any(call.open for call in tried):
            return "only a call of which no result came"
        idle = any(call.ran and self.idles(call) for call in tried)
        return "only a call that did nothing" if idle else "no such call"

    def breaks(self, matcher: ToolMatcher, observed: ObservedCall) -> bool:
        """Whether a call is what is banned; to have asked for it is enough."""
        arguments = observed.call.arguments
        if not (_is_named(matcher, observed) and self._arguments.may_be(matcher, arguments)):
            return False
        kind, glob = matcher.kind, matcher.path_glob
        kinds = possible_kinds(observed.call)
        if kind is None or kind in kinds:
            if glob is None or self._left < 0:
                return True
            if any(self._may_be_at(word, glob) for word in self._words(observed.call.arguments)):
                return True
        # Of code without a path nobody knows whether it writes or only computes.
        if "execute" not in kinds or (glob is None and gives_code(observed.call)):
            return False
        touched = self._touches(observed.call)
        if kind not in (None, "execute"):
            # Under /tmp a command may write what it likes, unless just that is banned.
            touched = [one for one in touched if kind in one.kinds]
            if glob is None:
                return any(not one.path.startswith("/tmp/") for one in touched)  # noqa: S108
        return glob is not None and any(self._reaches(one, glob) for one in touched)

    def _touches(self, call: ToolCall) -> list[Touch]:
        """What a call's shell line touches; read once, for it may be long."""
        known = self._touched.get(id(call))
        if known is None:
            line = line_of(call)
            self._left -= len(line) // 8
            held = (Touch(path, frozenset({"write"})) for path in patched(line))
            found = list(dict.fromkeys((*touches(line), *held)))
            known = self._touched[id(call)] = (call, found)
        return known[1]

    def _words(self, arguments: Mapping[str, Json]) -> Iterator[str]:
        for text in texts_in(arguments):
            yield text
            yield from patched(text)
            for word in _BETWEEN_WORDS.split(text):
                self._left -= 1
                yield word
                if self._left < 0:
                    return

    def _is_at(self, text: str, glob: str) -> bool:
        if not text or len(text) > _LONGEST_PATH or "\n" in text:
            return False
        pattern = compiled(glob.removeprefix("./"))
        return any(pattern.match(form) for form in self._forms(text.removeprefix("file://")))

    def _may_be_at(self, text: str, glob: str) -> bool:
        """As `_is_at`, whatever the case or the Unicode form."""
        return self._left < 0 or self._is_at(_folded(text), _folded(glob))

    def _reaches(self, touch: Touch, glob: str) -> bool:
        path = _folded(_CWD.sub(".", touch.path))
        if not path or len(path) > _LONGEST_PATH or "\n" in path:
            return False
        banned = _folded(glob.removeprefix("./"))
        is_live = any(live in path for live in LIVE.values())
        if is_live and not touch.kinds and not re.search(r"[^\W_]", path):
            return False  # a bare * behind a program that nobody knows
        for form in self._forms(path.removeprefix("file://")):
            if overlap(form, banned):
                return True
            below = "" if form in (".", *self._roots) else f"{form.rstrip('/')}/"
            if touch.deep and overlap(below, banned, open_end=True):
                return True
        return False

    def _forms(self, path: str) -> Iterator[str]:
        """A path as written, absolute, and relative to the workspace; without ``..`` inside."""
        yield path
        for root in self._roots:
            absolute = "/" + posixpath.normpath(posixpath.join(root, path)).lstrip("/")
            yield absolute
            inside = f"{root.rstrip('/')}/"
            if absolute.startswith(inside):
                yield absolute.removeprefix(inside)


def _told(said: Json) -> str:
    return said if isinstance(said, str) else json.dumps(said)[:200]


def _is_named(matcher: ToolMatcher, observed: ObservedCall) -> bool:
    call = observed.call
    return (matcher.name is None or matcher.name == call.name) and (
        matcher.raw_name is None or matcher.raw_name == (call.raw_name or call.name)
    )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()
