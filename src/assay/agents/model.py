"""`ModelAgent`: a model with tools that works on a task, whatever its provider."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.agents.simulated_user import UserExchange, next_message
from assay.agents.tools import AgentTool, ToolOutcome, answer_call, function_tool, offered_tool
from assay.agents.typed_answer import SUBMIT, TypedAnswer
from assay.agents.workspace_tools import WORKSPACE_TOOLS, WorkspaceTools
from assay.conversation.protocols import ProtocolError, codec_of
from assay.conversation.turns import AssistantTurn, Call, Conversation, Part, Result, Speaker, Turn
from assay.errors import AgentError, AgentTimeoutError, InputError, ModelError, nearest
from assay.frozen import frozen
from assay.gateway import Allowance, Gateway
from assay.gateway.allowance import LimitReachedError
from assay.gateway.record import now
from assay.gateway.trace import agent_step, tool_call
from assay.scoring.json_safe import Json
from assay.tasks.blocks import SimulatedUser
from assay.tasks.task import Task
from assay.types.run import Observation, OfferedTool, Run
from assay.types.trace import (
    TOLD_BY,
    AgentStep,
    Source,
    Step,
    StopReason,
    ToolResult,
    ToolStep,
)

if TYPE_CHECKING:
    from assay.tasks.case import Case
    from assay.tasks.mcp_servers import McpServer

ToolChoice: TypeAlias = "str | Callable[..., object]"

_MOST_REMINDERS = 2
_MOST_MALFORMED = 2
_MOST_CALLS = 64
_AT_ONCE = 8

_IN_WORKSPACE = """\
You work on a task with tools. Your working directory is /workspace: what you leave there is your \
work. Nobody else does it for you. Check what you did."""
_WITH_TOOLS = "You work on a task with tools."
_ALONE = """\
Nobody answers questions. When you are done, say so without calling a tool: that ends the work and \
is your answer."""
_WITH_USER = "A message without a call of a tool goes to the user, who may answer it."
_ACTS = "A message without a call of a tool is your next action; you are then told what came of it."
_SUBMITS = f"Give your answer by calling {SUBMIT}."


@frozen(kw_only=True)
class ModelAgent:
    """Asks a model, does what it calls for, and goes on until the model has nothing more to do.

    It asks through the gateway of its run, where the task was started with a model; so what it does
    is limited and recorded there. Its tools over a workspace run in the sandbox, call by call::

        await task.run(ModelAgent(steps=20), model="anthropic:claude-sonnet-5")

    Attributes:
        model: The model, for runs without one; asked through a gateway of the agent's own.
        system: Standing instructions; None for a few words that go with the tools.
        tools: Names of tools over the workspace, which tasks without one are not offered; and
            Python functions, which run in this process. By default all tools over the workspace.
        mcp: MCP servers whose tools it is offered as well, by name. They run in the sandbox.
        returns: Type of the answer; by default what the task's template declares. It is asked for
            by a tool, where what the type does not allow is refused; the content is its JSON.
        steps: Most replies of the model.
        seconds: Time that all of the work may take; None for no limit of its own.
        tool_seconds: Time that one call of a tool may take.
        max_tokens: Most tokens of a reply; None for the provider's own limit.
        temperature: 0 to 2; None to leave it to the model.
        effort: How much to reason; None to leave it to the model.
        samples: Whether ids and log-probabilities of tokens are asked for, as training needs them.
        parallel: Whether the model may call several tools in one reply. Those that only read are
            then at work at once; the others one after the other, in their order.
        allowance: Limits of a gateway of its own; those of a run's gateway are the run's.
        network: Whether its tools over the workspace may use the network.
        keeps_changes: Whether what a call of these tools changes is there for the next one.
        turns: What the user says after the prompt, each when the model has stopped.
        user: Who answers after these.
        name: What it is called in a run.

    Raises:
        InputError: For an unknown tool, two of one name, or a limit that is not more than 0.
    """

    model: str = ""
    system: str | None = None
    tools: Sequence[ToolChoice] = WORKSPACE_TOOLS
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    returns: object = None
    steps: int = 50
    seconds: float | None = None
    tool_seconds: float = 300.0
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    samples: bool = False
    parallel: bool = True
    allowance: Allowance = field(default_factory=Allowance)
    network: bool = False
    keeps_changes: bool = True
    turns: tuple[str, ...] = ()
    user: SimulatedUser | None = None
    name: str = "agent"

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "tool_seconds", "max_tokens"):
            most = cast("float | None", getattr(self, name))
            if most is not None and not most > 0:
                raise InputError(f"{name} must be more than 0, got {most}")
        for tool in self.tools:
            if isinstance(tool, str) and tool not in WORKSPACE_TOOLS:
                raise InputError(
                    f"there is no tool {tool!r}",
                    hint=f"{nearest(tool, list(WORKSPACE_TOOLS))}; or give a Python function",
                )

    def for_task(self, task: Task) -> ModelAgent:
        """The agent with what a task says of agents: a case, or its template and environment.

        Raises:
            DocumentError: If a case's file of MCP servers is malformed.
        """
        from assay.tasks.case import Case

        if isinstance(task.work, Case):
            return self.for_case(task.work)
        work, network = task.work, self.network or task.conditions.limits.network
        returns = getattr(work, "returns", None) if self.returns is None else self.returns
        mcp = {**getattr(work, "mcp", {}), **self.mcp}
        return replace(self, returns=returns, network=network, mcp=mcp)

    def for_case(self, case: Case) -> ModelAgent:
        """The agent with what a case says of its own: its limits, its turns, its MCP servers.

        Raises:
            DocumentError: If its file of MCP servers is malformed.
        """
        from assay.tasks.mcp_servers import load_mcp_servers

        file = case.artifacts.mcp
        served = {} if file is None else load_mcp_servers(case.resolve(file))
        return replace(
            self,
            seconds=case.limits.agent_timeout_s if self.seconds is None else self.seconds,
            network=self.network or case.limits.network,
            turns=(*self.turns, *case.task.turns),
            user=self.user or case.task.user,
            mcp={**served, **self.mcp},
        )

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If the model could not be asked, or an MCP server did not start.
            AgentTimeoutError: If it worked longer than it may; what it has done by then stays.
        """
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(self._gateway(run))
            limit = asyncio.timeout(self.seconds)
            try:
                async with limit:
                    tools = await stack.enter_async_context(self._offered(run))
                    await _Work(self, run, gateway, tools).go()
            except TimeoutError:
                if limit.expired():
                    raise AgentTimeoutError(
                        f"the agent worked longer than {self.seconds:g} s"
                    ) from None
                raise

    @asynccontextmanager
    async def _gateway(self, run: Run) -> AsyncGenerator[Gateway]:
        """What it asks through: the run's gateway, or one of its own that the run is told of."""
        if isinstance(run.gateway, Gateway):
            if self.model and self.model != run.gateway.model:
                raise AgentError(
                    f"the agent is to ask {self.model!r}, and its run {run.gateway.model!r}",
                    hint="name the model once",
                )
            run.gateway.check()
            yield run.gateway
            return
        if not self.model:
            raise AgentError(
                "nothing says which model the agent is to ask",
                hint="name it: task.run(agent, model=...), or ModelAgent(model=...)",
            )
        async with Gateway(self.model, allowance=self.allowance) as gateway:
            gateway.check()
            run.model = run.model or self.model
            try:
                yield gateway
            except AgentTimeoutError:
                await gateway.find_out()
                gateway.require_answers()
                raise
            finally:
                spent = gateway.spent
                run.tokens = None if spent.unknown else spent.tokens
                run.cost_usd = spent.cost_usd

    @asynccontextmanager
    async def _offered(self, run: Run) -> AsyncGenerator[dict[str, AgentTool]]:
        """The tools of a run, by name, in their order.

        Raises:
            AgentError: If an MCP server does not start.
            InputError: If two tools have one name.
        """
        found: list[AgentTool] = []
        if run.workspace is not None:
            over = WorkspaceTools(
                workspace=run.workspace,
                network=self.network,
                seconds=self.tool_seconds,
                keeps_changes=self.keeps_changes,
            )
            found += [over.tool(name) for name in self.tools if isinstance(name, str)]
        found += [
            function_tool(one, seconds=self.tool_seconds)
            for one in self.tools
            if not isinstance(one, str)
        ]
        found += [
            offered_tool(one, seconds=self.tool_seconds)
            for name, one in run.tools.items()
            if name in self.tools or not _is_of_workspace(one)
        ]
        async with AsyncExitStack() as stack:
            if self.mcp:
                from assay.agents.mcp import served_tools

                taken = [tool.name for tool in found]
                found += await stack.enter_async_context(
                    served_tools(
                        self.mcp,
                        run.workspace,
                        network=self.network,
                        seconds=self.tool_seconds,
                        taken=taken,
                    )
                )
            named = {tool.name: tool for tool in found}
            if len(named) < len(found):
                names = [tool.name for tool in found]
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"the agent has two tools {twice!r}", hint="rename one of them")
            yield named


def _is_of_workspace(tool: OfferedTool) -> bool:
    """Whether a tool of the task is one over a workspace, which is elsewhere then."""
    return getattr(tool, "is_of_workspace", False) is True


class _Work:
    """One run of an agent: what was said so far, and what is left of its limits."""

    def __init__(
        self, agent: ModelAgent, run: Run, gateway: Gateway, tools: Mapping[str, AgentTool]
    ) -> None:
        self._agent = agent
        self._run = run
        self._gateway = gateway
        self._typed = None if agent.returns is None else TypedAnswer(agent.returns)
        self._tools = dict(tools)
        self._system = self._instructions()
        if self._typed is not None:
            self._tools[SUBMIT] = self._typed.tool
        self._turns = [*_opening(self._system), *_prompt(run)]
        self._replies = 0
        self._malformed = 0
        self._exchanges: list[UserExchange] = []
        self._acted: str | None = None  # in a task of several steps
        self._said = ""  # by the model since the user last spoke

    async def go(self) -> None:
        """Work until there is nothing more to do, or no more of it may be done."""
        self._tell_instructions()
        try:
            await self._go()
        finally:
            if self._acted is not None:  # what it said since then is no action
                self._run.trace.content = self._acted

    async def _go(self) -> None:
        trace = self._run.trace
        said = self._run.prompt_text
        scripted = iter(self._agent.turns)
        for number in itertools.count():
            stop = await self._until_it_stops()
            if stop is not None:
                trace.stop_reason = stop
                return
            self._exchanges.append(UserExchange(said, self._said))
            if self._run.max_steps > 1:
                self._acted = self._said
                seen = await self._run.step(self._acted)
                if seen.done:
                    trace.stop_reason = "done"
                    return
                said, self._said = self._see(seen), ""
                continue
            following, by = next(scripted, None), "turns"
            if following is None:
                following, by = await self._answer_of_user(number - len(self._agent.turns)), "user"
            if following is None:
                trace.stop_reason = "done"
                return
            said, self._said = following, ""
            self._tell(said, extra={TOLD_BY: by})

    def _instructions(self) -> str:
        agent = self._agent
        if agent.system is not None:
            return agent.system
        parts: list[str] = []
        acts = self._run.max_steps > 1 and self._typed is None
        if self._tools:
            is_there = any(map(_is_of_workspace, self._run.tools.values()))
            in_workspace = self._run.workspace is not None or is_there
            parts.append(_IN_WORKSPACE if in_workspace else _WITH_TOOLS)
            is_told = agent.user is not None or agent.turns
            parts.append(_ACTS if acts else _WITH_USER if is_told else _ALONE)
        elif acts:
            parts.append(_ACTS)
        parts += [_SUBMITS] if self._typed is not None else []
        return " ".join(parts)

    def _tell_instructions(self) -> None:
        """Record what the model is given beside the task's own prompt: it is training data."""
        if not self._system and not self._tools:
            return
        messages: tuple[Json, ...] = ({"role": "system", "content": self._system},)
        offered: list[Json] = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.schema),
            }
            for tool in self._tools.values()
        ]
        self._run.record(Step(messages=messages if self._system else (), extra={"tools": offered}))

    def _see(self, seen: Observation) -> str:
        """Show the model what came of its action, which the run has recorded; as text."""
        asked: Json = {"role": "user", "content": seen.content or "(nothing)"}
        turns = _prompt(Run(prompt=[asked]))
        self._turns += turns
        return "\n\n".join(turn.text for turn in turns)

    def _tell(self, said: str, *, source: Source = "user", extra: Mapping[str, Json] = {}) -> None:
        """What the model is told now."""
        self._turns.append(Turn.of("user", said))
        messages: tuple[Json, ...] = ({"role": "user", "content": said},)
        self._run.record(Step(source=source, messages=messages, extra=extra))

    async def _answer_of_user(self, number: int) -> str | None:
        """What a played user says after so many messages of theirs; None when they are done."""
        user = self._agent.user
        if user is None or number >= user.most_turns:
            return None
        return await next_message(
            user,
            self._exchanges,
            model=user.model or self._gateway.model,
            client=self._gateway.client,
            trial=self._run.trial,
        )

    async def _until_it_stops(self) -> StopReason | None:
        """Let the model work until it has nothing more to call; why it may not go on, if so."""
        reminders = _MOST_REMINDERS
        while self._replies < self._agent.steps:
            reply = await self._ask()
            if not isinstance(reply, AssistantTurn):
                return reply
            if reply.turn.calls:
                if stop := await self._call(reply):
                    return stop
                if self._takes_answer():
                    return None
            elif reply.stop == "length":
                return "length"
            elif reply.stop == "refusal" or self._takes_answer(reply.turn.text) or not reminders:
                return (
                    None  # where it should be of a type and is not, it is its answer all the same
                )
            else:
                reminders -= 1
                self._tell(_SUBMITS, source="system")
        return "max_steps"

    def _takes_answer(self, said: str | None = None) -> bool:
        """Whether there is an answer: any, unless it has to have a type."""
        if self._typed is None:
            return said is not None
        if said is not None:
            self._typed.read(said)
        answer = self._typed.take()
        if answer is not None:
            self._said = self._run.trace.content = answer
        return answer is not None

    async def _ask(self) -> AssistantTurn | StopReason:
        """The model's next reply, recorded; or why there is none that the agent may be given.

        Raises:
            AgentError: If there is none for another reason.
        """
        agent, run = self._agent, self._run
        self._replies += 1
        asked = Conversation(
            model=self._gateway.model,
            turns=tuple(self._turns),
            tools=tuple(tool.declared for tool in self._tools.values()),
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
            effort=agent.effort,
            is_continued=bool(self._tools),
            wants_logprobs=agent.samples,
            wants_token_ids=agent.samples,
            is_parallel=None if agent.parallel or not self._tools else False,
        )
        started = now()
        try:
            passed, kept = await self._gateway.ask(asked)
        except LimitReachedError as limit:
            run.record(Step(error=limit.message, started_at=started))
            return limit.stop
        except ModelError as error:
            if error.kind == "overflow":
                run.record(Step(error=error.message, started_at=started))
                return "length"
            if error.kind == "refused":
                run.record(AgentStep(refusal=error.message, done=True, started_at=started))
                return "done"
            raise AgentError(
                f"its model gave no reply: {error.message}", hint=error.hint
            ) from error
        turn = _with_ids(passed.reply.turn, self._replies)
        reply = replace(passed.reply, turn=turn)
        run.record(agent_step(replace(kept, reply=reply), started_at=started))
        if turn.parts:  # no provider takes a turn that says nothing
            self._turns.append(turn)
        if said := turn.text or reply.refusal:
            self._said = run.trace.content = said
        elif run.trace.content is None:
            run.trace.content = ""
        return reply

    async def _call(self, reply: AssistantTurn) -> StopReason | None:
        """Do what a reply calls for; why the agent may not go on, if so."""
        calls = reply.turn.calls
        outcomes = await self._outcomes(calls)
        self._turns.append(
            Turn(
                "tool",
                tuple(
                    Result(call.id, outcome.content, is_error=outcome.is_error, kind=call.kind)
                    for call, outcome in zip(calls, outcomes, strict=True)
                ),
            )
        )
        is_any = any(outcome.was_called for outcome in outcomes)
        self._malformed = 0 if is_any else self._malformed + 1
        if self._malformed < _MOST_MALFORMED:
            return None
        return "length" if reply.stop == "length" else "malformed_tool_call"

    async def _outcomes(self, calls: Sequence[Call]) -> list[ToolOutcome]:
        """What each call came to; recorded, those that never ended as well."""
        done: dict[int, tuple[ToolOutcome, str, str]] = {}

        async def do(number: int, call: Call) -> None:
            async with turns:
                started = now()
                if number < _MOST_CALLS:
                    outcome = await answer_call(call, self._tools)
                else:
                    outcome = ToolOutcome.said(f"error: at most {_MOST_CALLS} calls", is_error=True)
                done[number] = (outcome, started, now())

        turns = asyncio.Semaphore(_AT_ONCE)
        try:
            for group in self._groups(calls):
                if len(group) == 1:
                    await do(*group[0])
                    continue
                try:
                    async with asyncio.TaskGroup() as tasks:
                        for number, call in group:
                            tasks.create_task(do(number, call))
                except BaseExceptionGroup as failed:
                    raise failed.exceptions[0] from None
        finally:
            for number, call in enumerate(calls):
                self._record_call(call, done.get(number))
        return [done[number][0] for number in range(len(calls))]

    def _groups(self, calls: Sequence[Call]) -> Iterable[list[tuple[int, Call]]]:
        """Calls that may be at work at once, in order: neighbours that only read."""

        def reads(numbered: tuple[int, Call]) -> int:
            tool = self._tools.get(numbered[1].name)
            return -1 if tool is not None and tool.reads_only else numbered[0]

        return [list(group) for _, group in itertools.groupby(enumerate(calls), reads)]

    def _record_call(self, call: Call, done: tuple[ToolOutcome, str, str] | None) -> None:
        told = tool_call(call)
        if done is None:
            self._run.record(ToolStep(call=told))
            return
        outcome, started, ended = done
        result = ToolResult(content=outcome.to_json(), is_error=outcome.is_error, id=call.id)
        self._run.record(ToolStep(call=told, result=result, started_at=started, ended_at=ended))


def _opening(instructions: str) -> list[Turn]:
    return [Turn.of("system", instructions)] if instructions else []


def _prompt(run: Run) -> list[Turn]:
    """The task's prompt as turns, pictures included."""
    prompt = run.prompt
    if isinstance(prompt, list) and all(isinstance(message, dict) for message in prompt):
        try:
            found = codec_of("chat").read_request({"model": "any", "messages": prompt})
        except ProtocolError:
            pass  # not quite chat messages: their texts
        else:
            return list(found.turns)
    return [Turn.of(_SPEAKERS[one.role], one.content) for one in run.prompt_messages]


_SPEAKERS: Mapping[str, Speaker] = {"system": "system", "assistant": "assistant", "user": "user"}


def _with_ids(turn: Turn, number: int) -> Turn:
    """A turn each of whose calls has an id of its own: some servers give none, or one twice."""
    seen: set[str] = set()
    parts: list[Part] = []
    for place, part in enumerate(turn.parts):
        if isinstance(part, Call):
            own = part.id if part.id and part.id not in seen else f"call_{number}_{place}"
            seen.add(own)
            parts.append(replace(part, id=own))
        else:
            parts.append(part)
    return Turn(turn.speaker, tuple(parts))
