"""Asking a gateway as the clients of a protocol do, and reading its journal back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp

from assay.conversation.protocols import Protocol, codec_of
from assay.conversation.turns import AssistantTurn, Conversation
from assay.gateway import Gateway
from assay.gateway.journal import readable_entries
from assay.gateway.trace import Recorded, recorded

__all__ = ["RefusedError", "ask", "read_journal"]

_PATHS: dict[Protocol, str] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/x:generateContent",
}
_KEYS: dict[Protocol, str] = {"anthropic": "x-api-key", "google": "x-goog-api-key"}


class RefusedError(Exception):
    """What a gateway says instead of a reply."""

    def __init__(self, status: int, told: Any) -> None:
        super().__init__(f"{status} {json.dumps(told)}")
        self.status = status
        self.told = told["error"]


async def ask(
    gateway: Gateway, protocol: Protocol, asked: Conversation, *, token: str = ""
) -> AssistantTurn:
    """One request as the clients of a protocol send it, and its reply."""
    token = token or gateway.token
    codec, path = codec_of(protocol), _PATHS[protocol]
    if asked.is_streamed:
        path = path.replace(":generate", ":streamGenerate")
    key = {_KEYS[protocol]: token} if protocol in _KEYS else {}
    headers = key or {"Authorization": f"Bearer {token}"}
    url, body = gateway.anthropic_url + path, codec.write_request(asked)
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=body, headers=headers) as response,
    ):
        if response.status != 200:
            raise RefusedError(response.status, await response.json())
        if not asked.is_streamed:
            reply = codec.read_reply(await response.json())
        else:
            assert response.content_type == "text/event-stream"
            stream = codec.read_stream()
            stream.feed(await response.read())
            reply = codec.read_reply(stream.body())
    assert reply is not None
    return reply


def read_journal(file: str | Path) -> Recorded:
    """What a whole journal tells."""
    entries, broken = readable_entries(file)
    assert not broken, broken
    return recorded(entries)
