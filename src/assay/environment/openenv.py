"""OpenEnv's servers as environments: an episode there is a task here.

``environment("http://127.0.0.1:8000").task("episode", reset={"seed": 7}).run(agent)``. What goes
wrong there is an error of the run; nothing here makes a number of it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit, urlunsplit

from assay.environment.channel.frames import MOST_BYTES, Wire, decode, encode
from assay.environment.channel.link import Address
from assay.environment.environment import Environment
from assay.errors import AgentEndedError, ChannelError, InputError, ScoreError, TemplateError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, finite_number
from assay.types.run import Observation, Prompt

if TYPE_CHECKING:
    from aiohttp import ClientSession

_REPLY_SECONDS = 600.0
_SCHEMA_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_MOST_SHOWN = 4000
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@frozen
class ServedTurn:
    """One action that the server took."""

    action: Mapping[str, Json]
    observation: Mapping[str, Json]
    reward: float | None
    done: bool


@frozen
class FinishedEpisode:
    """An episode that is over, as a grader is given it."""

    first: Mapping[str, Json]
    turns: tuple[ServedTurn, ...]
    state: Mapping[str, Json]

    @property
    def is_finished(self) -> bool:
        """Whether the server ended it; else the agent did, or ran out of steps."""
        return bool(self.turns) and self.turns[-1].done

    @property
    def rewards(self) -> list[float]:
        """What the server gave, one after the other."""
        return [turn.reward for turn in self.turns if turn.reward is not None]


def environment(
    url: str,
    *,
    name: str = "openenv",
    token: str = "",
    max_steps: int = 100,
    reward: Literal["sum", "last"] = "sum",
    grade: Callable[[FinishedEpisode], object] | None = None,
    prompt: Callable[[Mapping[str, Json]], Prompt] | None = None,
    observation: Callable[[Mapping[str, Json]], str] | None = None,
    action: Callable[[str], Mapping[str, Json]] | None = None,
) -> Environment:
    """An OpenEnv server as an environment.

    Its one template is ``episode(reset={…})``: the arguments of the server's ``reset``.

    ``grade``: Grades an episode, and may be async; returns what a template may yield: a number, a
    result, ``await combine(…)``.
    ``action``: Makes an action of the agent's text; what it refuses with a ValueError is told to
    the agent. By default the text is a JSON object, or the text of the action's only required
    field.
    """
    address, base = _places(url, token)
    if reward not in ("sum", "last"):
        raise InputError(f"reward must be 'sum' or 'last', got {reward!r}")
    env = Environment(name)

    @env.template(max_steps=max_steps, description="An episode.")
    async def episode(reset: dict[str, Any] | None = None) -> AsyncGenerator[object, str]:
        async with _linked(address) as link:
            schema = await link.schema(base)
            field = _text_field(schema)
            first = await link.ask("reset", reset or {})
            if first.done:
                raise TemplateError("the episode was over when it began")
            shown = prompt(first.observation) if prompt else _shown(first.observation)
            if prompt is None and action is None and field is None and schema:
                shown = (
                    f"{shown}\n\nEach action is a JSON object: {json.dumps(schema)[:_MOST_SHOWN]}"
                )
            text = yield shown
            turns: list[ServedTurn] = []
            try:
                while not (turns and turns[-1].done):
                    try:
                        sent = dict(action(text)) if action else _action_of(text, field)
                        seen = await link.ask("step", sent)
                    except (_RefusedError, ValueError) as error:
                        text = yield Observation(f"error: {error}")
                        continue
                    turns.append(seen)
                    told = (observation or _shown)(seen.observation)
                    text = yield Observation(told, seen.reward, seen.done)
            except AgentEndedError:
                if grade is None and not any(turn.reward is not None for turn in turns):
                    raise  # nothing was earned, and nothing was finished
            said = FinishedEpisode(
                first.observation, tuple(turns), await link.state() if grade else {}
            )
            if grade is None:
                yield _worth(said, reward)
            else:
                found = grade(said)
                yield await found if inspect.isawaitable(found) else found

    return env


def _worth(episode: FinishedEpisode, how: Literal["sum", "last"]) -> EvaluationResult:
    """What an episode is worth by the server's own rewards."""
    rewards, is_finished = episode.rewards, episode.is_finished
    if how == "last" and is_finished:
        rewards = [given for given in [episode.turns[-1].reward] if given is not None]
    if not rewards:
        raise ChannelError(
            "the server gave no reward for the episode", hint="environment(url, grade=…)"
        )
    if how == "sum":
        worth, source = sum(rewards), "the sum of the server's rewards"
    elif is_finished:
        worth, source = rewards[-1], "the server's last reward"
    else:  # the one that counts was never given; ending early is not better than the game so far
        worth, source = min(0.0, rewards[-1]), "the server's rewards; the episode was not finished"
    info: dict[str, Json] = {
        "reward_from": source,
        "rewards": cast("list[Json]", rewards),
        "steps": len(episode.turns),
    }
    if not is_finished:
        info["unfinished"] = True
    return EvaluationResult(reward=worth, done=is_finished, content=source, info=info)


def _places(url: str, token: str) -> tuple[Address, str]:
    """Where to speak to it, and where to ask it single things."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"{url!r} is no URL: {error}") from error
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise InputError(f"{url!r} is not where an OpenEnv server is", hint="http://HOST:PORT")
    path = parts.path.rstrip("/")
    place = Address(urlunsplit((scheme, parts.netloc, f"{path}/ws", parts.query, "")), token)
    web = {"ws": "http", "wss": "https"}[scheme]
    return place, urlunsplit((web, parts.netloc, path, "", ""))


class _RefusedError(Exception):
    """The server does not take the action; the episode goes on."""


class _Link:
    """A connection to the server: what is asked is answered, one after the other.

    It is read all the time, so that the server's pings are answered while an agent thinks.
    """

    def __init__(self, address: Address, wire: Wire, session: ClientSession) -> None:
        self._address = address
        self._wire = wire
        self._session = session
        self._inbox: asyncio.Queue[dict[str, Json] | ChannelError] = asyncio.Queue(2)
        self._listening = asyncio.create_task(self._listen())

    async def ask(self, kind: Literal["reset", "step"], data: Mapping[str, Json]) -> ServedTurn:
        """Reset, or step."""
        said = await self._said({"type": kind, "data": dict(data)})
        if said.get("type") == "error":
            wrong = said.get("data")
            told = wrong if isinstance(wrong, dict) else {}
            message, code = str(told.get("message") or "it did not say why"), str(told.get("code"))
            if kind == "step" and code == "VALIDATION_ERROR":
                raise _RefusedError(_refusal(message, told.get("errors"))[:_MOST_SHOWN])
            raise ChannelError(f"{kind}: {message}", kind=code)
        return _seen(said, kind, data)

    async def state(self) -> Mapping[str, Json]:
        """The server's state."""
        said = await self._said({"type": "state"})
        data = said.get("data")
        if said.get("type") != "state" or not isinstance(data, dict):
            raise ChannelError("state: the reply is no state")
        return data

    async def schema(self, base: str) -> Mapping[str, Json]:
        """JSON schema of its actions; empty where it has none."""
        from aiohttp import ClientError

        token = self._address.token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with asyncio.timeout(_SCHEMA_SECONDS):
                async with self._session.get(f"{base}/schema", headers=headers) as response:
                    data = await response.content.read(MOST_BYTES) if response.ok else b"{}"
            action = decode(data).get("action")
        except (ClientError, OSError, TimeoutError, ChannelError):
            return {}
        return action if isinstance(action, dict) else {}

    async def close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._wire.send(encode({"type": "close"}))
        self._listening.cancel()
        await asyncio.wait({self._listening})
        self._wire.close()
        await self._session.close()

    async def _said(self, message: Mapping[str, Json]) -> dict[str, Json]:
        if not self._inbox.empty():
            early = self._inbox.get_nowait()
            if isinstance(early, ChannelError):
                raise early
            raise ChannelError("the server said something that it was not asked")
        if self._listening.done():
            raise self._broken()
        try:
            data = encode(message)
        except ValueError as error:
            raise InputError(f"this cannot be sent: {error}") from error
        await self._wire.send(data)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                said = await self._inbox.get()
        except TimeoutError:
            raise ChannelError(
                f"{message['type']}: no answer in {_REPLY_SECONDS:g} s", kind="TimeoutError"
            ) from None
        if isinstance(said, ChannelError):
            raise said
        return said

    async def _listen(self) -> None:
        fault = self._broken()
        try:
            while (data := await self._wire.receive(4 * MOST_BYTES, _REPLY_SECONDS)) is not None:
                await self._inbox.put(decode(data))
        except ChannelError as error:
            fault = error
        await self._inbox.put(fault)

    def _broken(self) -> ChannelError:
        return ChannelError(f"{self._address.url} hung up", kind="SessionLostError")


@asynccontextmanager
async def _linked(address: Address) -> AsyncGenerator[_Link]:
    try:
        wire, session = await address.dial()
    except (OSError, TimeoutError) as error:
        reason = str(error) or "it does not answer"
        raise ChannelError(f"cannot reach {address.url}: {reason}") from error
    assert session is not None, "a WebSocket has one"
    link = _Link(address, wire, session)
    try:
        yield link
    finally:
        await link.close()


def _seen(said: Mapping[str, Json], kind: str, action: Mapping[str, Json]) -> ServedTurn:
    data = said.get("data")
    if said.get("type") != "observation" or not isinstance(data, dict):
        raise ChannelError(f"{kind}: the reply is no observation")
    observation, reward, done = data.get("observation"), data.get("reward"), data.get("done", False)
    if not isinstance(observation, dict) or not isinstance(done, bool):
        raise ChannelError(f"{kind}: what came is no observation, or does not say `done`")
    if isinstance(reward, bool):  # OpenEnv has those, for won and lost
        reward = float(reward)
    try:
        worth = None if reward is None else finite_number(reward, what="the server's reward")
    except ScoreError as error:
        raise ChannelError(f"{kind}: {error.message}", hint=error.hint) from error
    return ServedTurn(action, observation, worth, done)


def _refusal(message: str, errors: Json) -> str:
    """What is wrong with an action, as pydantic says it."""
    listed = [
        item for item in (errors if isinstance(errors, list) else []) if isinstance(item, dict)
    ]
    parts = [item.get("loc") for item in listed]
    places = [".".join(map(str, part)) if isinstance(part, list) else "" for part in parts]
    said = [
        f"{place}: {item.get('msg')}" for place, item in zip(places, listed, strict=True) if place
    ]
    return "; ".join((message, *said))


def _shown(observation: Mapping[str, Json]) -> str:
    """The only text in an observation, or all of it as JSON."""
    told = {
        key: value
        for key, value in observation.items()
        if key != "metadata" and value is not None and value != ""
    }
    values = list(told.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(told, ensure_ascii=False)


def _text_field(schema: Mapping[str, Json]) -> str | None:
    """The only required field of an action, if it is text."""
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict) or len(required) != 1:
        return None
    field = properties.get(str(required[0]))
    return str(required[0]) if isinstance(field, dict) and field.get("type") == "string" else None


def _action_of(text: str, field: str | None) -> dict[str, Json]:
    """An action as the agent wrote it."""
    if field is not None:
        return {field: text}
    from assay.text import parse_json

    found = parse_json(text)
    if found.error or not isinstance(found.value, dict):
        raise ValueError("an action is a JSON object, and this is none")
    return found.value
