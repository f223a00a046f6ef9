"""A template's generator at work: its prompt, the actions that it takes, its reward."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from assay.environment.answer import parse_answer
from assay.environment.one_task import OneTask
from assay.environment.state import new_session
from assay.environment.tools import SessionTool
from assay.errors import AgentEndedError, AgentError, ScoreError, TaskEndedError, TemplateError
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json, json_safe
from assay.scoring.results import EvaluationResult, SubScore, finite_number
from assay.types.codec import to_json
from assay.types.run import Observation, OfferedTool, Prompt
from assay.types.submission import Submission, Workspace
from assay.types.typed import type_adapter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from assay.environment.template import Template


class TemplateSession:
    """A template's generator, suspended where it waits for an answer or for the next action."""

    def __init__(self, template: Template[...], generator: AsyncGenerator[object, object]) -> None:
        self.prompt: Prompt = None
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {}
        self._template = template
        self._generator = generator
        self._adapter: TypeAdapter[object] | None = None
        if template.returns is not None:
            self._adapter = type_adapter(template.returns, what=f"{template.id} returns")
        self._context, self._scope = new_session(template.workspace)
        self._task = OneTask(generator, self._context)
        self._is_graded = False
        turn = asyncio.Lock()
        self.tools: Mapping[str, OfferedTool] = {
            name: SessionTool(tool, self._context, turn, lambda: self._is_graded)
            for name, tool in template.tools.items()
        }
        self._actions = 0
        self._newest: str | None = None
        self._seen: Observation | None = None  # after the newest action; None where it is the last
        self._is_over = False  # the template takes no more actions
        self._has_ended = False  # the agent takes none
        self._waits = True  # the generator waits for an action; False when it goes on by itself
        self._reward: object = None
        self._is_rewarded = False
        self._result: EvaluationResult | None = None
        self._failure: BaseException | None = None

    @property
    def max_steps(self) -> int:
        """Most actions that the template takes."""
        return self._template.max_steps or 1

    async def begin(self, workspace: Workspace | None = None) -> None:
        """Run the generator to its first yield."""
        self._scope.workspace = self.workspace = workspace
        self.prompt = await self._task.do(self._begin)

    async def step(self, action: str) -> Observation:
        """Send an action in, and take what the template shows."""
        if not isinstance(cast("object", action), str):
            kind = type(action).__name__
            raise AgentError(f"an action must be text, got {kind}", hint="str(...) it")
        return await self._task.do(partial(self._step, str.__str__(action)))

    async def grade(self, submission: Submission) -> EvaluationResult:
        """Take the reward, for which the template first gets what it waits for.

        An answer that is not the newest action is one more action. A template that waits for
        another is then told that none comes: at its yield, `AgentEndedError` is raised, and it may
        yield a reward. Where it does not, work that was not finished is worth 0.
        """
        self._is_graded = True
        self._scope.workspace = submission.workspace
        return await self._task.do(partial(self._grade, submission.answer))

    async def close(self) -> None:
        """Close the generator; what it is at is cancelled."""
        await self._task.close()

    async def _begin(self) -> Prompt:
        name = self._template.id
        try:
            return _prompt(await anext(self._generator), name)
        except StopAsyncIteration:
            raise TemplateError(f"template {name!r} ended without yielding a prompt") from None

    async def _step(self, action: str) -> Observation:
        if self._is_over or self._has_ended or self._failure is not None:
            raise TaskEndedError(
                f"the task takes no more actions after {_actions(self._actions)}",
                hint="stop when an observation is `done`",
            )
        await self._act(action)
        return self._seen or Observation(done=True)

    async def _act(self, action: str | None) -> None:
        """Send in an action, and take what is yielded: what it comes to, or the reward."""
        self._actions += 1
        self._newest = action
        try:
            yielded = await self._yielded(self._read(action))
            self._seen = self._observed(yielded) if isinstance(yielded, Observation) else None
        except BaseException as error:
            self._failure = error  # an agent that goes on regardless is not graded either
            raise
        if self._seen is None:
            self._reward, self._is_rewarded = yielded, True
        self._is_over = self._seen is None or self._seen.done
        self._waits = isinstance(yielded, Observation) and not yielded.done

    async def _yielded(self, sent: object) -> object:
        try:
            return await self._generator.asend(sent)
        except StopAsyncIteration:
            raise TemplateError(
                f"template {self._template.id!r} ended without a second yield",
                hint="yield the reward",
            ) from None

    def _observed(self, yielded: Observation) -> Observation:
        """What was yielded, as the agent and the trace take it."""
        template = self._template
        if template.max_steps is None:
            raise TemplateError(
                f"template {template.id!r} yielded an observation and takes no steps",
                hint="say how many it takes: @env.template(max_steps=20)",
            )
        content = yielded.content if isinstance(yielded.content, str) else _blocks(yielded.content)
        if content is None:
            raise TemplateError(
                f"template {template.id!r} yielded an observation that cannot be shown",
                hint="its content is text, or a list of content blocks",
            )
        is_last = yielded.done or self._actions >= self.max_steps
        info = {str(key): json_safe(item) for key, item in yielded.info.items()}
        return Observation(content, yielded.reward, is_last, info)

    async def _grade(self, answer: str | None) -> EvaluationResult:
        self._has_ended = True
        if self._result is None:
            self._result = await self._take_reward(answer)
        return self._result

    async def _take_reward(self, answer: str | None) -> EvaluationResult:
        if self._failure is not None:
            raise self._failure
        is_new = not self._actions or answer not in (None, self._newest)
        if is_new and not self._is_over:
            await self._act(answer)
        name = self._template.id
        if not self._is_rewarded:
            if not self._waits:
                self._reward = await self._yielded(None)
            elif not await self._tell_end():
                return self._unfinished()
            self._is_rewarded = True
        if isinstance(self._reward, str) and self._template.max_steps is not None:
            raise TemplateError(
                f"template {name!r} yielded a text after its prompt",
                hint="what is shown is an Observation(...), and what is yielded last a number",
            )
        result = _result(self._reward, name)
        try:
            await anext(self._generator)
        except StopAsyncIteration:
            return result
        raise TemplateError(f"template {name!r} yielded a third time", hint="yield exactly twice")

    async def _tell_end(self) -> bool:
        """Tell the generator that no action comes; whether it yields a reward nevertheless."""
        try:
            yielded = await self._generator.athrow(AgentEndedError("no more actions come"))
        except StopAsyncIteration:
            return False
        except (AgentEndedError, BaseExceptionGroup) as error:
            if not _says_only_the_end(error):
                raise
            return False
        self._reward = yielded
        return not isinstance(yielded, Observation)

    def _unfinished(self) -> EvaluationResult:
        took = _actions(self._actions)
        why = (
            f"the task was not finished after {took}, the most that it takes"
            if self._is_over
            else f"the agent ended after {took}, and the task was not finished"
        )
        return EvaluationResult(reward=0.0, done=False, content=why, info={"unfinished": True})

    def _read(self, answer: str | None) -> object:
        if self._adapter is None:
            return "" if answer is None else answer
        return parse_answer(answer, self._adapter, plain_text=self._template.returns is str)


def _actions(number: int) -> str:
    return f"{number} action{'' if number == 1 else 's'}"


def _says_only_the_end(error: BaseException) -> bool:
    """Whether nothing else went wrong: a task group hands errors on in groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(
            map(_says_only_the_end, cast("BaseExceptionGroup[BaseException]", error).exceptions)
        )
    return isinstance(error, AgentEndedError)


def _blocks(content: object) -> list[Json] | None:
    if not isinstance(content, list):
        return None
    blocks = [to_json(block) for block in cast("list[object]", content)]
    return blocks if all(isinstance(block, dict) for block in blocks) else None


def _prompt(value: object, name: str) -> Prompt:
    if isinstance(value, Mapping) and "prompt" in value:
        value = cast("Mapping[str, object]", value)["prompt"]
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        messages = [to_json(message) for message in cast("list[object]", value)]
        if all(isinstance(message, str | dict) for message in messages):
            return messages
    raise TemplateError(
        f"template {name!r} yielded {type(cast('object', value)).__name__} as its prompt",
        hint="yield text, or a list of chat messages",
    )


def _result(value: object, name: str) -> EvaluationResult:
    """Turn what a template yields second into a result."""
    where = f"template {name!r}"
    if isinstance(value, EvaluationResult):
        return value
    if isinstance(value, Grade):
        return value.result
    if isinstance(value, SubScore):
        raise TemplateError(
            f"{where} yielded a SubScore", hint="yield its .value, or await combine(subscore)"
        )
    try:
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, object]", value)
            return EvaluationResult.from_dict({k: _plain(v) for k, v in entries.items()})
        reward = finite_number(value, what="its reward")
    except ScoreError as error:
        raise TemplateError(f"{where}: {error.message}", hint=error.hint) from error
    return EvaluationResult(reward=reward)


def _plain(value: object) -> Json:
    if isinstance(value, float):
        return value  # NaN must be refused as a reward, not turned into text
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [i.to_dict() if isinstance(i, SubScore) else json_safe(i) for i in items]
    return json_safe(value)
