"""OpenAI's chat completions and Anthropic's messages: requests read, replies and errors written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from assay.scoring.json_safe import Json
from assay.testing.asked import Asked, Said, WireForm

__all__ = [
    "Ending",
    "WireError",
    "error_body",
    "models_body",
    "read_request",
    "reply_body",
    "tokens_of",
]

Ending: TypeAlias = Literal["stop", "length", "refusal"]
_KEYS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_CHARACTERS_A_TOKEN = 4

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    402: "insufficient_quota",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
    529: "overloaded_error",
}


class WireError(Exception):
    """A request that is refused, as a provider would.

    Attributes:
        status: The HTTP status.
        message: What is wrong.
        code: OpenAI's code, or "".
        parameter: The part of the request that is wrong, or "".
    """

    def __init__(self, status: int, message: str, *, code: str = "", parameter: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.parameter = parameter


def tokens_of(characters: int) -> int:
    """Tokens that a text of this length counts as: one for each four characters begun."""
    return -(-characters // _CHARACTERS_A_TOKEN)


def read_request(
    protocol: WireForm, body: Json, headers: Mapping[str, str], *, index: int
) -> Asked:
    """Read a request.

    Args:
        protocol: Whose wire form it has.
        body: The JSON that was sent.
        headers: With lower-case names.
        index: How many were asked before it.

    Raises:
        WireError: For what the provider would refuse as well.
    """
    if not isinstance(body, dict):
        raise WireError(400, "the body has to be a JSON object")
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise WireError(400, "you must provide a model parameter", parameter="model")
    if not isinstance(messages, list) or not messages:
        raise WireError(400, "messages: at least one message is required", parameter="messages")
    if protocol == "anthropic" and not isinstance(body.get("max_tokens"), int):
        raise WireError(400, "max_tokens: field required", parameter="max_tokens")
    if body.get("stream") is True:
        raise WireError(400, "stream: this fake answers whole replies only", parameter="stream")
    said = [_said(message) for message in messages]
    systems = [one.text for one in said if one.role in ("system", "developer")]
    if protocol == "anthropic" and body.get("system"):
        systems.insert(0, _text(body["system"]))
    temperature = body.get("temperature")
    schema, tool = _wanted(protocol, body)
    return Asked(
        protocol=protocol,
        model=model,
        messages=tuple(one for one in said if one.role not in ("system", "developer")),
        system="\n\n".join(systems),
        schema=schema,
        tool=tool,
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        headers={key: "[hidden]" if key in _KEYS else value for key, value in headers.items()},
        body=body,
        index=index,
    )


def _said(message: Json) -> Said:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise WireError(400, "messages: each needs a role and content", parameter="messages")
    return Said(str(message["role"]), _text(message.get("content")))


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _wanted(protocol: WireForm, body: dict[str, Json]) -> tuple[dict[str, Json] | None, str]:
    """The schema that the reply shall have, and the tool that has to be called."""
    if protocol == "openai":
        form = _child(body, "response_format")
        if form.get("type") == "json_schema":
            return _child(_child(form, "json_schema"), "schema") or None, ""
    else:
        form = _child(_child(body, "output_config"), "format") or _child(body, "output_format")
        if form.get("type") == "json_schema":
            return _child(form, "schema") or None, ""
    return _forced_tool(protocol, body)


def _forced_tool(protocol: WireForm, body: dict[str, Json]) -> tuple[dict[str, Json] | None, str]:
    listed = body.get("tools")
    given = [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
    tools = [_child(tool, "function") for tool in given] if protocol == "openai" else given
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        is_forced, name = choice == "required", None
    else:
        chosen = choice if isinstance(choice, dict) else {}
        is_forced = chosen.get("type") in ("function", "tool", "any")
        named = _child(chosen, "function") if protocol == "openai" else chosen
        name = named.get("name")
    if not is_forced:
        return None, ""
    tool = next((tool for tool in tools if name is None or tool.get("name") == name), None)
    if tool is None:
        raise WireError(400, f"tool_choice: there is no tool {name!r}", parameter="tool_choice")
    key = "parameters" if protocol == "openai" else "input_schema"
    return _child(tool, key) or None, str(tool.get("name", ""))


def _child(parent: Mapping[str, Json], key: str) -> dict[str, Json]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def reply_body(asked: Asked, text: str, *, ending: Ending = "stop") -> dict[str, Json]:
    """Write a reply, as the provider of the request would.

    Args:
        asked: The request: it says the form, whether a tool has to be called, and how many tokens
            there may be. A longer reply is cut and ends by its length.
        text: The reply.
        ending: Why it ends.
    """
    most = _most_tokens(asked.body)
    if ending == "stop" and most and tokens_of(len(text)) > most:
        text, ending = text[: most * _CHARACTERS_A_TOKEN], "length"
    read, written = tokens_of(asked.characters), tokens_of(len(text))
    if asked.protocol == "openai":
        return _openai_reply(asked, text, ending, read, written)
    return _anthropic_reply(asked, text, ending, read, written)


def _most_tokens(body: Mapping[str, Json]) -> int:
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    return most if isinstance(most, int) and most > 0 else 0


def _openai_reply(
    asked: Asked, text: str, ending: Ending, read: int, written: int
) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": None}
    finish = {"stop": "stop", "length": "length", "refusal": "content_filter"}[ending]
    if ending == "refusal":
        message |= {"content": None, "refusal": text}
    elif asked.tool:
        function: Json = {"name": asked.tool, "arguments": text}
        call: Json = {"id": f"call_{asked.index}", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    count = asked.body.get("n")
    many = count if isinstance(count, int) and 1 < count <= 128 else 1
    return {
        "id": f"chatcmpl-{asked.index}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.model,
        "choices": [
            {"index": number, "message": message, "logprobs": None, "finish_reason": finish}
            for number in range(many)
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written * many,
            "total_tokens": read + written * many,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "system_fingerprint": "fp_fake",
    }


def _anthropic_reply(
    asked: Asked, text: str, ending: Ending, read: int, written: int
) -> dict[str, Json]:
    content: Json = {"type": "text", "text": text}
    stop = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[ending]
    if asked.tool and ending == "stop":
        try:
            given = cast("Json", json.loads(text))
        except ValueError:
            given = None
        if isinstance(given, dict):  # what is no object calls no tool
            number = f"toolu_{asked.index}"
            content = {"type": "tool_use", "id": number, "name": asked.tool, "input": given}
            stop = "tool_use"
    return {
        "id": f"msg_{asked.index}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [content],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": read,
            "output_tokens": written,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def error_body(protocol: WireForm, error: WireError) -> dict[str, Json]:
    """Write an error, as this provider would."""
    if protocol == "anthropic":
        kind = _ANTHROPIC_TYPES.get(error.status, "api_error")
        told: Json = {"type": kind, "message": error.message}
        return {"type": "error", "error": told, "request_id": "req_fake"}
    kind = _OPENAI_TYPES.get(error.status, "server_error")
    details: dict[str, Json] = {
        "message": error.message,
        "type": "insufficient_quota" if error.code == "insufficient_quota" else kind,
        "param": error.parameter or None,
        "code": error.code or None,
    }
    return {"error": details}


def models_body(model: str) -> dict[str, Json]:
    """The list of models, in a form that both providers' clients read."""
    entry: Json = {
        "id": model,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "assay",
        "type": "model",
        "display_name": model,
        "created_at": "2023-11-14T22:13:20Z",
    }
    page: dict[str, Json] = {"object": "list", "data": [entry], "has_more": False}
    return {**page, "first_id": model, "last_id": model}
