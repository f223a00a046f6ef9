"""The steps of a trajectory: what a model said, which tools it called, what they answered.

`Step` is the shared skeleton; `AgentStep`, `ToolStep` and `SubagentStep` add what their kind
has. Times are ISO 8601 in UTC. In JSON every step has a ``type``: its class's ``TAG``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.types.trace import Trace

__all__ = [
    "AgentStep",
    "AnyStep",
    "Citation",
    "Source",
    "Step",
    "SubagentStep",
    "TaskCall",
    "TokenSample",
    "ToolCall",
    "ToolKind",
    "ToolResult",
    "ToolStep",
    "Usage",
]

Source = Literal["user", "agent", "tool", "task", "subagent", "system"]
ToolKind = Literal["read", "write", "execute", "search", "fetch", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


AnyStep = Step | AgentStep | ToolStep | SubagentStep
