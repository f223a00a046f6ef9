"""Episodes: the tasks of a served environment in OpenEnv's words. No connection is known here.

Each episode is a session of the ledger with one start, so what holds for the channel holds here: it
has one grade, and there is no second answer.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from assay.environment.channel.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    SESSION_LOST,
    ChannelCall,
)
from assay.environment.channel.sessions import ServedSession
from assay.errors import ChannelError, nearest
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.environment.channel.front import Front, SessionOwner

_MOST_ID = 255
_RESET = ("task", "args", "seed", "episode_id")
_ANSWERS = ("answer", "action")


class ClientEpisodes:
    """What one client does: one episode after the other."""

    def __init__(self, front: Front, client: SessionOwner) -> None:
        self._front = front
        self._client = client
        self._is_busy = False
        self._clear()
        client.session = front.enter(client, "")

    @property
    def session(self) -> ServedSession | None:
        """Where the ledger keeps the episode; None where its time was up."""
        return self._client.session

    async def reset(self, data: Mapping[str, Json]) -> dict[str, Json]:
        """Begin an episode, in place of the one before."""
        async with self._alone():
            row, args = self._asked(data)
            self._front.require_foreign(str(row["id"]))
            before = self.session
            if before is None or before.starts:
                self.end()
                self._client.session = self._front.enter(self._client, "")
            self._clear()
            session = cast("ServedSession", self.session)
            request = ChannelCall(None, "reset", {"id": row["id"], "args": args})
            said = await _result(self._front.start_task(session, request))
            self._id = cast("str | None", data.get("episode_id")) or secrets.token_hex(16)
            self._task, self._is_over = str(row["id"]), False
            self._most = cast("int", said.get("max_steps") or 1)
            return _observed({"content": said["prompt"]}, metadata=self.state())

    async def step(self, action: Mapping[str, Json]) -> dict[str, Json]:
        """Answer, act, or ask for tools, as the action says."""
        kind = action.get("type")
        if kind == "list_tools":
            _require_only(action, (), "list_tools")
            return _observed({"tools": cast("Json", tools_of(self._front.manifest))})
        if kind == "call_tool":
            _require_only(action, ("tool_name", "arguments"), "call_tool")
            return await self.call(action.get("tool_name"), action.get("arguments"))
        if kind is not None:
            raise _invalid(
                f"an action has no type {str(kind)[:80]!r}",
                '{"answer": …}, {"action": …}, or of type list_tools or call_tool',
            )
        _require_only(action, _ANSWERS, "an action")
        given = [name for name in _ANSWERS if name in action]
        if len(given) != 1:
            raise _invalid(
                "an action has an answer or an action, one of them",
                '{"answer": "42"} ends the episode, {"action": "left"} is one of its steps',
            )
        value = action[given[0]]
        text = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
        async with self._alone():
            session = self._begun()
            if given[0] == "answer" or self._most == 1:
                return await self._graded(session, text)
            if text is None:
                raise _invalid("an action is null", 'an agent that ends says {"answer": null}')
            return await self._acted(session, text)

    async def call(self, name: Json, arguments: Json) -> dict[str, Json]:
        """Call a tool of the episode."""
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            raise _invalid("a call has a tool_name, text, and arguments, an object", "")
        known = [str(tool["name"]) for tool in tools_of(self._front.manifest)]
        async with self._alone():
            session = self._begun()
            said: dict[str, Json] = {"tool_name": name, "result": None, "error": None}
            if name not in known:
                there_are = ", ".join(known) or "none"
                message = f"the task offers no tool {name[:80]!r}; there are: {there_are}"
                said["error"] = {"error_type": "tool_not_found", "message": message}
                return _observed(said)
            params: dict[str, Json] = {"name": name, "arguments": arguments or {}}
            try:
                found = await _result(self._front.move(session, ChannelCall(None, "call", params)))
            except ChannelError as error:
                seen = self._failed(session, error, said)
                wrong: Json = {"error_type": "execution_error", "message": error.message}
                return {**seen, "observation": {**said, "error": wrong, "metadata": {}}}
            self._steps += 1
            if found.get("is_error"):
                content = found.get("content")
                message = content if isinstance(content, str) else json.dumps(content)
                said["error"] = {"error_type": "execution_error", "message": message}
            else:
                said["result"] = found.get("content")
            return _observed(said)

    def state(self) -> dict[str, Json]:
        """The state of the episode: never what its task was given, which may hold its answer."""
        return {
            "episode_id": self._id,
            "step_count": self._steps,
            "task": self._task or None,
            "max_steps": self._most,
            "done": self._is_over and self._id is not None,
        }

    def end(self) -> None:
        """End the episode; what was not graded will not be."""
        session, self._client.session = self.session, None
        if session is not None and self._front.is_session(session.id):
            self._front.bye(session)

    def _clear(self) -> None:
        self._id: str | None = None
        self._task = ""
        self._most = 1
        self._steps = 0
        self._is_over = True

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        if self._is_busy:
            raise ChannelError("a call of this episode is still running", code=INVALID_REQUEST)
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def _asked(self, data: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
        """The template that is asked for, and its arguments."""
        _require_only(data, _RESET, "reset")
        row = self._row(data.get("task"))
        args, seed, episode = data.get("args"), data.get("seed"), data.get("episode_id")
        if not isinstance(args, dict | None):
            raise _invalid("'args' must be an object", "")
        if seed is not None and (type(seed) is not int or seed < 0):
            raise _invalid("'seed' must be a whole number, at least 0", "")
        if episode is not None and not (isinstance(episode, str) and len(episode) <= _MOST_ID):
            raise _invalid(f"'episode_id' must be text of at most {_MOST_ID} characters", "")
        properties = cast("dict[str, dict[str, Json]]", row["args"])["properties"]
        takes_seed = seed is not None and "seed" in properties
        return row, {**({"seed": seed} if takes_seed else {}), **(args or {})}

    def _row(self, name: Json) -> dict[str, Json]:
        rows = {str(row["id"]): row for row in _rows(self._front.manifest)}
        if name is None:
            ready = list(rows.values()) if len(rows) == 1 else default_rows(self._front.manifest)
            if len(ready) == 1:
                return ready[0]
            raise _invalid("reset must say which task", f"task=…, of: {', '.join(rows)}")
        if not isinstance(name, str) or name not in rows:
            raise _invalid(f"unknown task: {str(name)[:200]!r}", nearest(str(name), list(rows)))
        return rows[name]

    def _begun(self) -> ServedSession:
        session = self.session
        if session is None:
            raise ChannelError("the episode is gone", code=SESSION_LOST, hint="its time was up")
        if self._id is None:
            raise ChannelError("no episode has begun", code=INVALID_REQUEST, hint="reset")
        if self._is_over:
            raise ChannelError(
                "the episode is done", code=INVALID_REQUEST, kind="TaskEndedError", hint="reset"
            )
        return session

    async def _acted(self, session: ServedSession, action: str) -> dict[str, Json]:
        request = ChannelCall(None, "step", {"action": action})
        try:
            seen = await _result(self._front.move(session, request))
        except ChannelError as error:
            return self._failed(session, error, {"content": ""})
        if seen.get("done"):
            return await self._graded(session, action, seen)
        self._steps += 1
        shown: dict[str, Json] = {"content": seen["observation"]}
        metadata: dict[str, Json] = {"info": info} if (info := seen.get("info")) else {}
        return _observed(shown, reward=seen.get("reward"), metadata=metadata)

    async def _graded(
        self, session: ServedSession, answer: str | None, seen: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        """What comes of the last action: the grade, or why there is none, which is not 0."""
        shown: dict[str, Json] = {"content": "" if seen is None else seen["observation"]}
        request = ChannelCall(None, "grade", {"answer": answer})
        try:
            grade = await _result(self._front.grade_task(session, request))
        except ChannelError as error:
            return self._failed(session, error, shown)
        self._steps += 1
        self._is_over = True
        score, content = grade.get("score"), grade.get("content")
        reward = None if grade.get("isError") else score
        if reward is None:
            shown["error"] = {"type": "ungraded", "message": content or "nothing was graded"}
        metadata: dict[str, Json] = {"grade": grade}
        if seen is not None:
            more = {"info": seen.get("info"), "step_reward": seen.get("reward")}
            metadata.update({key: value for key, value in more.items() if value not in (None, {})})
        return _observed(shown, reward=reward, done=True, metadata=metadata)

    def _failed(
        self, session: ServedSession, error: ChannelError, shown: dict[str, Json]
    ) -> dict[str, Json]:
        """An episode that will have no grade is over, and worth nothing that is a number."""
        if session.attempt is None or session.attempt.fault is None:
            raise error
        self._is_over = True
        wrong: Json = {"type": error.kind, "message": error.message, "hint": error.hint}
        return _observed({**shown, "error": wrong}, done=True)


def tools_of(manifest: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The environment's tools, as an OpenEnv observation has them."""
    rows = cast("list[dict[str, Json]]", manifest.get("tools") or [])
    return [
        {"name": row["name"], "description": row["description"], "input_schema": row["schema"]}
        for row in rows
    ]


def default_rows(manifest: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The templates that need no arguments."""
    return [
        row for row in _rows(manifest) if not cast("dict[str, Json]", row["args"]).get("required")
    ]


def schemas(manifest: Mapping[str, Json]) -> dict[str, Json]:
    """JSON schemas of what is said here."""
    names: list[Json] = [row["id"] for row in _rows(manifest)]
    anything: dict[str, Json] = {"type": "object"}
    content: dict[str, Json] = {"type": ["string", "array"]}
    action: dict[str, Json] = {
        "type": "object",
        "properties": {
            "answer": {"description": "Ends the episode: text, or JSON that stands for it."},
            "action": {"description": "One step of a task that takes several; else the answer."},
            "type": {"enum": ["list_tools", "call_tool"]},
            "tool_name": {"type": "string"},
            "arguments": anything,
            "metadata": anything,
        },
        "additionalProperties": False,
    }
    observation: dict[str, Json] = {
        "type": "object",
        "properties": {
            "content": {**content, "description": "The prompt, or what came of an action."},
            "error": {"description": "Why there is no reward. It is never 0 then."},
            "tools": {"type": "array"},
            "tool_name": {"type": "string"},
            "result": {},
            "metadata": anything,
        },
    }
    state: dict[str, Json] = {
        "type": "object",
        "properties": {
            "episode_id": {"type": ["string", "null"]},
            "step_count": {"type": "integer", "minimum": 0},
            "task": {"enum": [*names, None]},
            "max_steps": {"type": "integer", "minimum": 1},
            "done": {"type": "boolean"},
        },
    }
    return {"action": action, "observation": observation, "state": state}


def _rows(manifest: Mapping[str, Json]) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", manifest["templates"])


def _observed(
    observation: Mapping[str, Json],
    *,
    reward: Json = None,
    done: bool = False,
    metadata: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """An observation as OpenEnv sends it, its metadata in both of the places where it is read."""
    more = dict(metadata or {})
    said: dict[str, Json] = {
        "observation": {**observation, "metadata": more},
        "reward": reward,
        "done": done,
    }
    return {**said, "metadata": more} if more else said


def _require_only(given: Mapping[str, Json], known: tuple[str, ...], what: str) -> None:
    taken = {*known, "type", "metadata"} if what != "reset" else {*known}
    if unknown := [name for name in given if name not in taken]:
        hint = nearest(unknown[0], [*known])
        if what == "reset":
            hint += "; what a task takes goes into args"
        raise _invalid(f"{what} takes no {unknown[0][:80]!r}", hint)


def _invalid(message: str, hint: str) -> ChannelError:
    return ChannelError(message, code=INVALID_PARAMS, kind="InputError", hint=hint)


async def _result(running: asyncio.Task[dict[str, Json]]) -> dict[str, Json]:
    """What a call of the front comes to; it goes on if whoever waits does not."""
    await asyncio.wait({running})
    if running.cancelled():
        raise ChannelError("cancelled", code=INVALID_REQUEST, kind="CancelledError")
    return running.result()
