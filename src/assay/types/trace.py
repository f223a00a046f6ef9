"""`Trace`: the trajectory of one rollout, and the unit of training data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ClassVar, Literal, TypeVar, cast

from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.types.codec import from_json, to_json

Source = Literal["user", "agent", "tool", "task", "subagent", "system"]
ToolKind = Literal["read", "write", "execute", "search", "fetch", "other"]

_KINDS: Mapping[ToolKind, str] = {
    "read": "read notebookread readfile viewfile openfile cat view readmanyfiles "
    "readfiles readtextfile getfilecontents fsread",
    "write": "write edit multiedit notebookedit writefile writetofile createfile editfile "
    "applypatch patch replace strreplace strreplaceeditor insertcontent deletefile applydiff "
    "strreplacebasededittool replaceinfile replacestringinfile inserteditintofile searchreplace "
    "editblock editnotebook fswrite savefile movefile renamefile createdirectory",
    "execute": "shell exec execute executebash executecommand execcommand runcommand "
    "runshellcommand runterminalcmd terminal python ipython executepython runpython "
    "executeipythoncell localshell localshellcall "
    "runinterminal executecode runcode codeexecution codeinterpreter pythonrepl containerexec",
    "search": "glob grep ls search searchfiles searchfilecontent codebasesearch filesearch "
    "grepsearch find findfiles listdir listdirectory listfiles ripgrep "
    "globfilesearch findfile searchfile searchdir searchcode semanticsearch directorytree",
    "fetch": "fetch httprequest browse browser openurl curl googlewebsearch fetchurl "
    "fetchwebpage urlfetch readurlcontent searchweb googlesearch tavilysearch bravewebsearch",
}
_BY_NAME: Mapping[str, ToolKind] = {
    name: kind for kind, names in _KINDS.items() for name in names.split()
}
_PUNCTUATION = re.compile(r"[^a-z0-9]")


def tool_kind(name: str) -> ToolKind:
    """The kind of work that a tool of this name does, as far as names tell; else ``other``."""
    plain = _PUNCTUATION.sub("", name.lower())
    if plain.startswith("bash"):
        return "execute"
    if plain.startswith("web"):
        return "fetch"
    return _BY_NAME.get(plain, "other")


@frozen(kw_only=True)
class Citation:
    """A citation, the same for every provider; an annotation, not an input of grading.

    Attributes:
        type: Kind of citation.
        text: The cited text.
        source: Where it is from, such as a URL.
        title: Title of the source.
        start_index: First character in the reply that it supports.
        end_index: One past the last such character.
    """

    type: str = "citation"
    text: str = ""
    source: str = ""
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


@frozen(kw_only=True)
class Usage:
    """What a model call used; None is unknown, which is never the same as 0.

    Attributes:
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        cached_tokens: Tokens read from a cache, a part of ``prompt_tokens``.
        cost_usd: Price in US dollars.
        llm_call_count: Number of calls summed here.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    llm_call_count: int | None = None


@frozen(kw_only=True)
class TokenSample:
    """Token-level data of a trainable backend.

    Attributes:
        prompt_token_ids: Ids that were read.
        output_token_ids: Ids that were sampled.
        output_logprobs: Natural log-probability of each sampled id.
    """

    prompt_token_ids: tuple[int, ...] = ()
    output_token_ids: tuple[int, ...] = ()
    output_logprobs: tuple[float, ...] = ()


@frozen(kw_only=True)
class ToolCall:
    """A request to run a tool.

    Attributes:
        name: The tool, in the harness's normal naming.
        arguments: Its arguments.
        id: Joins call and result.
        kind: What sort of work it is, the same for every harness.
        raw_name: The tool's name as the harness wrote it, where different.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = ""
    kind: ToolKind | None = None
    raw_name: str | None = None


@frozen(kw_only=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        content: Its output: text, or content blocks.
        is_error: Whether the tool failed.
        id: The call's id.
    """

    content: Json = None
    is_error: bool = False
    id: str = ""


@frozen(kw_only=True)
class TaskCall:
    """A life-cycle call of the task itself.

    Attributes:
        phase: ``setup`` or ``evaluate``.
        name: The template.
        arguments: What it was called with.
        result: What came back.
    """

    phase: Literal["setup", "evaluate"]
    name: str = ""
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    result: Json = None


@frozen(kw_only=True)
class Step:
    """The skeleton that every step shares.

    Attributes:
        step_id: 1-based number, given when the step is recorded.
        source: Who acted.
        messages: Prompt messages, for a step that shows the prompt.
        task_call: The life-cycle call, for a step of the task.
        error: What went wrong in this step.
        started_at: ISO 8601, UTC.
        ended_at: ISO 8601, UTC.
        extra: Anything a harness wants to keep.
    """

    TAG: ClassVar[str] = "step"

    step_id: int = 0
    source: Source = "system"
    messages: tuple[Json, ...] = ()
    task_call: TaskCall | None = None
    error: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @staticmethod
    def of_error(error: str, traceback: str = "") -> Step:
        """A step of the system: what ended the work, and the traceback that is known of it."""
        return Step(error=error, extra={"traceback": traceback} if traceback else {})


@frozen(kw_only=True)
class AgentStep(Step):
    """The model's turn.

    Attributes:
        content: What it said.
        reasoning: What it thought, where the backend shows it.
        tool_calls: Tools it asked for.
        done: Whether it considers the work finished.
        finish_reason: The backend's reason for stopping.
        refusal: Its refusal, if it refused.
        citations: Citations in ``content``.
        model: The model that answered.
        usage: What the turn used.
        sample: Token-level data when the backend is trainable.
    """

    TAG: ClassVar[str] = "agent"

    source: Source = "agent"
    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    done: bool = False
    finish_reason: str | None = None
    refusal: str | None = None
    citations: tuple[Citation, ...] | None = None
    model: str | None = None
    usage: Usage | None = None
    sample: TokenSample | None = None


@frozen(kw_only=True)
class ToolStep(Step):
    """One tool round trip.

    Attributes:
        call: What was asked.
        result: What came back; None if the call never finished.
        permission: How a permission request for it ended, if there was one.
    """

    TAG: ClassVar[str] = "tool"

    source: Source = "tool"
    call: ToolCall
    result: ToolResult | None = None
    permission: Literal["allowed", "denied"] | None = None


@frozen(kw_only=True)
class SubagentStep(Step):
    """A nested rollout, embedded whole.

    Attributes:
        subagent: Its trace.
        name: What the agent calls it.
    """

    TAG: ClassVar[str] = "subagent"

    source: Source = "subagent"
    subagent: Trace
    name: str = ""


@frozen(kw_only=True)
class ActionStep(Step):
    """An action in a task of several, and what was observed of it.

    Attributes:
        action: What the agent did.
        observation: What it was shown: text, or content blocks; None if that never came.
        reward: What the task says that this one action was worth. It is no part of the grade.
        done: Whether the task took no action after it.
        info: What the task says beside it.
    """

    TAG: ClassVar[str] = "action"

    source: Source = "task"
    action: str
    observation: Json = None
    reward: float | None = None
    done: bool = False
    info: Mapping[str, Json] = field(default_factory=dict[str, Json])


AnyStep = Step | AgentStep | ToolStep | SubagentStep | ActionStep


TraceStatus = Literal["completed", "error", "cancelled"]
StopReason = Literal["done", "max_steps", "length", "timeout", "malformed_tool_call"]

R = TypeVar("R")
S = TypeVar("S", bound=Step)


PROMPT = "prompt"
"""Marks, among a step's ``extra``, the step in which the runner shows the prompt."""

TOLD_BY = "told_by"
"""Likewise, in a step of the user's: who wrote it, ``turns`` (the task) or ``user`` (a model that
plays them). No agent can: what its transcript tells of a user has no such mark."""


def _is_around(step: AnyStep) -> bool:
    """Whether the runner recorded it around the work; nothing that an agent did is one."""
    is_bare = type(step) is Step
    return is_bare and (step.task_call is not None or step.extra.get(PROMPT) is True)


def as_turns(steps: Iterable[AnyStep]) -> Iterator[AnyStep]:
    """Steps with every action as turns of a conversation: what was said, and what was shown.

    An action that a reply of the model was is not said twice.
    """
    is_said = False
    for step in steps:
        if isinstance(step, AgentStep):
            is_said = True
        elif isinstance(step, ActionStep):
            if not is_said:
                yield AgentStep(
                    step_id=step.step_id,
                    content=step.action,
                    started_at=step.started_at,
                    ended_at=step.started_at or step.ended_at,
                )
            is_said = False
            shown: tuple[Json, ...] = ({"role": "user", "content": step.observation},)
            yield Step(
                step_id=step.step_id,
                source="user",
                messages=shown if step.observation else (),
                error=step.error,
                ended_at=step.ended_at,
                extra=step.extra,
            )
            continue
        yield step


def last_words(steps: Iterable[AnyStep]) -> str | None:
    """What an agent said in the end; None where it said nothing.

    What it said before the last message of its user is no answer to that, and what stands before a
    turn in which it neither speaks nor calls a tool was not its last word.
    """
    said: str | None = None
    for step in steps:
        if isinstance(step, AgentStep):
            goes_on = step.tool_calls or step.reasoning
            said = step.content or step.refusal or (said if goes_on else None)
        elif step.source == "user":
            said = None
    return said


@dataclass(slots=True, kw_only=True)
class Trace:
    """An ordered collection of steps plus the run's summary.

    It grows while an agent works, and only the run that owns it appends.

    Attributes:
        steps: The trajectory, oldest first.
        status: How the run ended; None while it is running.
        stop_reason: Why the agent stopped, where known.
        content: The final answer, which is what is graded.
        extra: Anything a harness wants to keep.
        trace_id: Keys the trajectory.
    """

    steps: list[Step | AgentStep | ToolStep | SubagentStep | ActionStep] = field(
        default_factory=list[AnyStep]
    )
    status: TraceStatus | None = None
    stop_reason: StopReason | None = None
    content: str | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])
    trace_id: str | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[AnyStep]:
        return iter(self.steps)

    def record(self, step: S) -> S:
        """Append a step, numbered from 1 and stamped with its end.

        Returns:
            The step as it was stored.
        """
        ended = step.ended_at or datetime.now(UTC).isoformat(timespec="milliseconds")
        numbered = replace(step, step_id=len(self.steps) + 1, ended_at=ended)
        self.steps.append(cast("AnyStep", numbered))
        return numbered

    def final(self, get: Callable[[AnyStep], R | None]) -> R | None:
        """The newest non-None answer of ``get`` over the steps, or None."""
        return next((found for s in reversed(self.steps) if (found := get(s)) is not None), None)

    def collect(self, get: Callable[[AnyStep], R | None]) -> list[R]:
        """Every non-None answer of ``get``, in step order."""
        return [found for step in self.steps if (found := get(step)) is not None]

    def conversation(self, prompt: str) -> list[tuple[str, str]]:
        """What user and agent said, by role; nothing where the user only gave the prompt."""
        turns, is_talk = [("user", prompt)], False
        for step in self.work:
            if isinstance(step, AgentStep):
                turns += [("assistant", step.content)] if step.content else []
            elif TOLD_BY in step.extra:
                told = (one.get("content") for one in step.messages if isinstance(one, dict))
                turns += [("user", text) for text in told if isinstance(text, str)]
                is_talk = True
        return turns if is_talk else []

    @property
    def work(self) -> list[AnyStep]:
        """The steps without those that the runner records around them: set-up, prompt, grade."""
        return [step for step in self.steps if not _is_around(step)]

    @property
    def error(self) -> str | None:
        """The newest error of any step."""
        return self.final(lambda step: step.error)

    @property
    def is_error(self) -> bool:
        """Whether the run ended in an error."""
        return self.status == "error"

    @property
    def is_truncated(self) -> bool:
        """Whether the agent was stopped before it was done."""
        return self.stop_reason in ("max_steps", "length", "timeout")

    def to_dict(self) -> dict[str, Json]:
        """The trace as plain JSON, losslessly."""
        return cast("dict[str, Json]", to_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Trace:
        """Read back what `to_dict` wrote.

        Raises:
            ShapeError: With every problem found.
        """
        return from_json(cls, dict(data))
