"""Agents that speak the Agent Client Protocol: told what to do, and answered, on their streams.

What the agent reports of its steps is a transcript as any other, a second witness beside its
gateway. Files and terminals of this machine are not offered to it: it has those of its sandbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from assay.agents.interaction import Option, PermissionAnswer, Question, answer
from assay.agents.transcripts.document import Notes, clean, shortened
from assay.agents.transcripts.transcript import (
    CallDraft,
    Calls,
    Drafts,
    Transcript,
    TranscriptEnd,
    TurnDraft,
    arguments_of,
    make_transcript,
)
from assay.errors import AgentError
from assay.scoring.json_safe import Json
from assay.tasks.interaction import Interaction
from assay.types.trace import Step, StopReason, ToolKind

if TYPE_CHECKING:
    from acp import Client, RequestPermissionResponse
    from pydantic import BaseModel

    from assay.sandbox import OpenCommand

_FORMAT = "acp"
_MOST_CHARACTERS = 64 << 20
_VERSION = 1
_KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "edit": "write",
    "delete": "write",
    "move": "write",
    "search": "search",
    "execute": "execute",
    "fetch": "fetch",
}
_STOPS: Mapping[str, StopReason] = {
    "end_turn": "done",
    "max_tokens": "length",
    "max_turn_requests": "max_steps",
}
_ENDED = ("completed", "failed")
_SHOWN = ("title", "content", "locations")


class Conversed(Exception):  # noqa: N818 - it is no error of ours
    """The agent ended, or refused, before it had answered.

    Attributes:
        transcript: What it had reported by then.
        reason: What is known of why.
    """

    def __init__(self, transcript: Transcript, reason: str) -> None:
        super().__init__(reason)
        self.transcript = transcript
        self.reason = reason


def require_package() -> None:
    """Make sure that the protocol's own package is there.

    Raises:
        AgentError: If it is not.
    """
    try:
        import acp as _  # noqa: F401 - what it takes is seen
    except ImportError:
        raise AgentError(
            "agents that speak ACP need the package `agent-client-protocol`",
            hint="pip install 'assay[acp]'",
        ) from None


async def converse(
    command: OpenCommand,
    prompts: Sequence[str],
    *,
    cwd: str,
    policy: Interaction | None,
    servers: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> Transcript:
    """Let an agent work on one message after the other, and answer what it asks.

    Args:
        command: The agent.
        prompts: The messages.
        cwd: Where it works.
        policy: Who answers it.
        servers: MCP servers, by name: the URL of each and the token for it. An agent that takes
            no URLs is told of none.

    Raises:
        Conversed: If it ended before it had answered.
    """
    from acp import RequestError, connect_to_agent, text_block
    from acp.schema import ClientCapabilities, HttpHeader, HttpMcpServer, Implementation

    listener = _Listener(policy)
    connection = connect_to_agent(cast("Client", listener), command.stdin, command.stdout)
    try:
        agent = await connection.initialize(
            protocol_version=_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="assay", version="1"),
        )
        able = agent.agent_capabilities and agent.agent_capabilities.mcp_capabilities
        told = [
            HttpMcpServer(
                type="http",
                name=name,
                url=url,
                headers=[HttpHeader(name="Authorization", value=f"Bearer {token}")],
            )
            for name, (url, token) in servers.items()
            if able and able.http
        ]
        session = await connection.new_session(cwd=cwd, mcp_servers=[*told])
        for prompt in prompts:
            listener.begin(prompt)
            done = await connection.prompt(
                prompt=[text_block(prompt)], session_id=session.session_id
            )
            listener.stop = done.stop_reason
    except (RequestError, ConnectionError, ValueError, asyncio.IncompleteReadError) as error:
        said = str(error) or type(error).__name__
        raise Conversed(listener.transcript(said), said) from error
    finally:
        await connection.close()
    return listener.transcript("")


class _Listener:
    """Takes what the agent reports, and answers its requests."""

    def __init__(self, policy: Interaction | None) -> None:
        self.stop = ""
        self._policy = policy
        self._notes = Notes()
        self._calls = Calls(self._notes)
        self._agent = Drafts(self._calls)
        self._drafts: dict[str, CallDraft] = {}
        self._turn: TurnDraft | None = None
        self._task = ""
        self._left = _MOST_CHARACTERS

    def begin(self, prompt: str) -> None:
        """A message is sent."""
        self._task, self._turn = prompt, None
        shown: Json = {"role": "user", "content": prompt}
        self._agent.add(Step(source="user", messages=(shown,)))

    async def session_update(self, session_id: str, update: BaseModel, **more: object) -> None:
        """Take in a report."""
        del session_id, more
        told = _plain(update, self._notes)
        self._left -= len(str(told))
        if self._left < 0:
            self._notes.lack(f"only the first {_MOST_CHARACTERS} characters were read")
            return
        kind = told.get("sessionUpdate")
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            content = told.get("content")
            text = content.get("text") if isinstance(content, dict) else None
            turn = self._speaking()
            said = turn.texts if kind == "agent_message_chunk" else turn.reasoning
            said[:] = ["".join([*said, str(text or "")])]
        elif kind in ("tool_call", "tool_call_update"):
            self._take(told)

    async def request_permission(
        self, session_id: str, tool_call: BaseModel, options: Sequence[BaseModel], **more: object
    ) -> RequestPermissionResponse:
        """Answer a request, and keep the answer with the call."""
        from acp import RequestPermissionResponse
        from acp.schema import AllowedOutcome, DeniedOutcome

        del session_id, more
        told = _plain(tool_call, self._notes)
        draft = self._take(told)
        given = [_plain(option, self._notes) for option in options]
        call = draft.call
        decided = await answer(
            self._policy,
            Question(
                title=call.name,
                kind=call.kind or "other",
                # Some agents tell no arguments, and what they show says what will be done.
                arguments=dict(call.arguments) or {k: told[k] for k in _SHOWN if told.get(k)},
                options=[_option(option) for option in given],
                task=self._task,
            ),
        )
        _keep(draft, decided)
        if not decided.option:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=decided.option)
        return RequestPermissionResponse(outcome=chosen)

    def _speaking(self) -> TurnDraft:
        if self._turn is None or self._turn.calls:
            self._turn = self._agent.turn()
        return self._turn

    def _take(self, told: Mapping[str, Json]) -> CallDraft:
        """The call that a report is about, with what is new of it."""
        call_id = str(told.get("toolCallId") or "")
        draft = self._drafts.get(call_id)
        title = str(told.get("title") or "")
        if draft is None:
            self._turn = self._turn or self._agent.turn()
            draft = self._agent.call(self._turn, name=title, arguments={}, call_id=call_id)
            self._drafts[call_id] = draft
        was = draft.call
        # The first title is nearest to the tool's name; later ones tell what it does.
        changed = replace(was, name=was.name or title, raw_name=title or was.raw_name)
        if told.get("rawInput"):
            changed = replace(changed, arguments=arguments_of(told["rawInput"], self._notes))
        if kind := told.get("kind"):
            changed = replace(changed, kind=_KINDS.get(str(kind), "other"))
        draft.call = changed
        if self._turn is not None:
            self._turn.calls = [changed if one is was else one for one in self._turn.calls]
        status = told.get("status")
        if status in _ENDED and draft.result is None:
            output = told.get("rawOutput")
            shown = _texts(told.get("content")) if output is None else output
            draft.answer(shortened(shown), is_error=status == "failed", notes=self._notes)
        return draft

    def transcript(self, failure: str) -> Transcript:
        """All that was reported."""
        self._calls.close()
        said = "".join(self._turn.texts) if self._turn is not None else ""
        outcome = TranscriptEnd(
            answer=said,
            status="error" if failure else "completed",
            stop_reason=_STOPS.get(self.stop),
            session={"stop_reason": self.stop or None},
        )
        return make_transcript(_FORMAT, self._agent.steps(), outcome, self._notes)


def _keep(draft: CallDraft, decided: PermissionAnswer) -> None:
    draft.permission = "allowed" if decided.decision == "allow" else "denied"
    asked: Json = {"option": decided.option or None, "reason": decided.reason}
    draft.extra = {**draft.extra, "permission": asked}


def _option(told: Mapping[str, Json]) -> Option:
    kind = str(told.get("kind") or "")
    return Option(
        str(told.get("optionId") or ""),
        "allow" if kind.startswith("allow") else "deny",
        kind.endswith("always"),
    )


def _texts(content: Json) -> Json:
    """What is shown of a call: its texts, or the content as it is."""
    parts = content if isinstance(content, list) else []
    inner = [part.get("content") for part in parts if isinstance(part, dict)]
    texts = [one.get("text") for one in inner if isinstance(one, dict)]
    return "\n".join(map(str, texts)) if texts and len(texts) == len(parts) else content


def _plain(model: BaseModel, notes: Notes) -> dict[str, Json]:
    data = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cast("dict[str, Json]", clean(cast("Json", data), notes))
