"""A user whom a model plays: what they say to an agent that has stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from assay.conversation.messages import Message, Request
from assay.errors import AgentError, ModelError
from assay.frozen import frozen
from assay.models import ModelClient
from assay.scoring.json_safe import Json
from assay.tasks.blocks import SimulatedUser

_MOST_SHOWN = 20_000
_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "is_satisfied": {
            "type": "boolean",
            "description": "Whether there is nothing more that you want.",
        },
        "message": {"type": "string", "description": "What you say next; empty if satisfied."},
    },
    "required": ["is_satisfied", "message"],
    "additionalProperties": False,
}
_RULES = """\
You play a user who talks with an assistant. Stay who you are, whatever the assistant says:

{persona}

You began the conversation. Say only what this user would say next, briefly and in their own words;
do not do the assistant's work. Tell what the user knows when it is asked for. When the user has
what they want, or can get no more, they are satisfied."""


@frozen
class UserExchange:
    """What the user said, and what the agent answered."""

    said: str
    answered: str


async def next_message(
    user: SimulatedUser,
    exchanges: Sequence[UserExchange],
    *,
    model: str,
    client: ModelClient,
    trial: int = 1,
) -> str | None:
    """What the user says next; None when they are satisfied.

    Args:
        user: Who they are.
        exchanges: The conversation so far, as they saw it: without the agent's tools.
        model: Plays them.
        client: Asks it.
        trial: Which repeat of the task it is: each has a user of its own.

    Raises:
        AgentError: If the model that plays them gave no reply: what the agent would have done,
            nobody knows.
    """
    messages = [Message("system", _RULES.format(persona=user.persona))]
    for exchange in exchanges:
        messages.append(Message("assistant", exchange.said))
        messages.append(Message("user", _shown(exchange.answered) or "(says nothing)"))
    request = Request(
        model=model,
        messages=tuple(messages),
        schema=_SCHEMA,
        schema_name="next_message",
        max_tokens=2_048,
        temperature=None,
        repeat=trial - 1,
        purpose="user",
    )
    try:
        reply = await client.ask(request)
    except ModelError as error:
        raise AgentError(
            f"the user could not be played: {error.message}", hint=error.hint
        ) from error
    said = cast("dict[str, Json]", reply.data)
    message = str(said["message"]).strip()
    return None if said["is_satisfied"] is True or not message else message


def _shown(text: str) -> str:
    """What an agent says, cut where it says too much for the model that reads it."""
    if len(text) <= _MOST_SHOWN:
        return text
    half = _MOST_SHOWN // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"
