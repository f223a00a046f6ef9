"""Google's generateContent: requests and errors.

Model and streaming are said by the path of a request; `assay.models.protocols.codec.addressed` puts
them into its body.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from assay.models.conversation import (
    Call,
    Conversation,
    Part,
    Result,
    Text,
    Tool,
    Turn,
)
from assay.models.protocols.codec import ProtocolError
from assay.models.protocols.events import event
from assay.models.protocols.fields import (
    list_at,
    missing,
    not_allowed,
    object_at,
    optional_flag,
    optional_integer,
    optional_list,
    optional_number,
    optional_object,
    optional_text,
    optional_word,
    text_in,
    texts_at,
)
from assay.models.protocols.google_reply import (
    NAME,
    blocks_of,
    parts_of,
    read_reply,
    write_reply,
)
from assay.models.protocols.google_stream import read_stream, write_stream
from assay.models.protocols.translating import as_function, given_only
from assay.models.protocols.turns import Turns
from assay.models.wire import text
from assay.scoring.json_safe import Json

__all__ = [
    "NAME",
    "PATH",
    "limited",
    "read_count",
    "read_reply",
    "read_request",
    "read_stream",
    "write_error",
    "write_error_event",
    "write_reply",
    "write_request",
    "write_stream",
]

PATH: str = "/models/{model}:generateContent"

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}
_MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
_EFFORTS = ("minimal", "low", "medium", "high")
_JSON = "application/json"
_SNAKE = re.compile(r"_([a-z0-9])")
_CONFIG = "generationConfig"


def _camel(word: str) -> str:
    return _SNAKE.sub(lambda match: match[1].upper(), word)


def _fields(value: Json, where: str) -> dict[str, Json]:
    """An object, its fields by their usual names: servers take ``max_output_tokens``, too.

    Raises:
        ProtocolError: If it is none, or has a field under both of its names.
    """
    given = object_at(value, where)
    found = {_camel(key): one for key, one in given.items()}
    if len(found) < len(given):
        message = f"A field of {where or 'the request'} is given by both of its names."
        raise ProtocolError(400, message, parameter=where)
    return found


def _inner(parent: Mapping[str, Json], name: str, where: str = "") -> dict[str, Json]:
    """The object of a field, empty where it is not given."""
    place = f"{where}.{name}" if where else name
    return {} if parent.get(name) is None else _fields(parent[name], place)


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none.
    """
    given = _fields(body, "")
    model = text_in(given, "model").removeprefix("models/")
    if not model:
        raise missing("model")
    if given.get("cachedContent") is not None:
        message = "Invalid 'cachedContent': what was said before is not held here; send it."
        raise ProtocolError(400, message, parameter="cachedContent")
    config = _inner(given, _CONFIG)
    if (optional_integer(config, "candidateCount", low=1) or 1) > 1:
        # A conversation goes on from one reply: what stood in others would be nowhere.
        message = "Invalid 'candidateCount': replies are given one at a time here."
        raise ProtocolError(400, message, parameter=f"{_CONFIG}.candidateCount")
    choice, allowed = _choice(given)
    stop = config.get("stopSequences")
    effort = optional_word(_inner(config, "thinkingConfig", _CONFIG), "thinkingLevel")
    return Conversation(
        model=model,
        turns=_turns(given),
        tools=tuple(
            tool for tool in _tools(given) if not allowed or tool.own or tool.name in allowed
        ),
        choice=choice,
        max_tokens=optional_integer(config, "maxOutputTokens", low=1),
        temperature=optional_number(config, "temperature", low=0, high=2),
        top_p=optional_number(config, "topP", low=0, high=1),
        seed=optional_integer(config, "seed", low=-(2**31), high=2**31 - 1),
        effort=effort.lower() if effort and effort.lower() in _EFFORTS else None,
        stop=() if stop is None else texts_at(stop, f"{_CONFIG}.stopSequences"),
        schema=_schema(config),
        wants_logprobs=optional_flag(config, "responseLogprobs") or False,
        is_streamed=optional_flag(given, "stream") or False,
    )


def read_count(body: Mapping[str, Json]) -> Conversation:
    """Read what the tokens are to be counted of.

    Raises:
        ProtocolError: If it is no request.
    """
    whole = _inner(_fields(dict(body), ""), "generateContentRequest")
    return read_request({**body, **whole})


def _schema(config: Mapping[str, Json]) -> dict[str, Json] | None:
    if optional_text(config, "responseMimeType", _CONFIG) != _JSON:
        return None
    plain = optional_object(config, "responseJsonSchema", _CONFIG)
    given = optional_object(config, "responseSchema", _CONFIG)
    return plain or _plain_schema(given) or None


def _turns(given: Mapping[str, Json]) -> tuple[Turn, ...]:
    contents = given.get("contents")
    if contents is None:
        raise missing("contents")
    # Servers take one that stands alone, too.
    listed = [contents] if isinstance(contents, dict) else list_at(contents, "contents")
    if not listed:
        raise ProtocolError(400, "contents: at least one is required", parameter="contents")
    turns = Turns()
    if system := _content(_inner(given, "systemInstruction"), "systemInstruction"):
        turns.add("system", [part for part, _ in system])
    calls = _Calls()
    for at, one in enumerate(listed):
        where = f"contents[{at}]"
        content = _fields(one, where)
        role = optional_text(content, "role", where) or "user"
        found = _content(content, where)
        if role == "model":
            turns.add("assistant", calls.made(part for part, _ in found))
            continue
        if role not in ("user", "function", "tool"):
            raise not_allowed(f"{where}.role", role, ("user", "model"))
        # What the user's message brings of tools is a turn of its own.
        results = [(part, name) for part, name in found if isinstance(part, Result)]
        others = [part for part, _ in found if not isinstance(part, Result)]
        if results:
            turns.add("tool", calls.answered(results))
        if others or not results:
            turns.add("user", others)
    return turns.made()


class _Calls:
    """Calls and their results, joined: ids are optional here, and the names of tools are not."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: dict[int, Call] = {}
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}

    def made(self, parts: Iterable[Part]) -> list[Part]:
        """What the model says, every call with an id."""
        said: list[Part] = []
        self._waiting, self._by_id, self._by_name = {}, {}, {}
        for part in parts:
            if isinstance(part, Call):
                self._count += 1
                call = Call(part.id or f"{part.name}:{self._count}", part.name, part.arguments)
                self._waiting[self._count] = call
                self._by_id.setdefault(call.id, deque()).append(self._count)
                self._by_name.setdefault(call.name, deque()).append(self._count)
                said.append(call)
            else:
                said.append(part)
        return said

    def answered(self, results: Sequence[tuple[Result, str]]) -> list[Part]:
        """Results with the ids of their calls: by their own, else in the order of the calls."""
        last: dict[str, Part] = {}
        joined: list[Part] = []
        for result, name in results:
            call = self._taken(self._by_id.get(result.id))
            if call is None and result.id and last.get(result.id) == result:
                continue  # Gemini CLI says it twice where it goes on with a session
            call = call or self._taken(self._by_name.get(name))
            known = result.id or f"{name}:0" if call is None else call.id
            one = Result(known, result.content, result.is_error)
            last[known] = one
            joined.append(one)
        return joined

    def _taken(self, numbers: deque[int] | None) -> Call | None:
        """The first call of some that has no result yet; from now on it has one."""
        while numbers:
            if call := self._waiting.pop(numbers.popleft(), None):
                return call
        return None


def _content(content: Mapping[str, Json], where: str) -> list[tuple[Part, str]]:
    """Parts, each with the name of the tool whose result it is."""
    place = f"{where}.parts"
    found: list[tuple[Part, str]] = []
    for at, one in enumerate(list_at(content.get("parts") or [], place)):
        block = _part(one, f"{place}[{at}]")
        answer = block.get("functionResponse")
        tool = text(answer.get("name")) if isinstance(answer, dict) else ""
        found += [(part, tool) for part in parts_of(block)]
    return found


def _part(value: Json, where: str) -> dict[str, Json]:
    """A part that is what the protocol says."""
    block = _fields(value, where)
    optional_text(block, "text", where)
    optional_flag(block, "thought", where)
    optional_text(block, "thoughtSignature", where)
    for kind in ("inlineData", "fileData"):
        if (data := block.get(kind)) is not None:
            block[kind] = fields = _fields(data, f"{where}.{kind}")
            optional_text(fields, "mimeType", f"{where}.{kind}")
            text_in(fields, "data" if kind == "inlineData" else "fileUri", f"{where}.{kind}")
    for kind, inner in (("functionCall", "args"), ("functionResponse", "response")):
        if (told := block.get(kind)) is not None:
            place = f"{where}.{kind}"
            block[kind] = fields = _fields(told, place)
            text_in(fields, "name", place)
            optional_text(fields, "id", place)
            optional_object(fields, inner, place)
            more = optional_list(fields, "parts", place)
            if more:
                each = [_part(one, f"{place}.parts[{at}]") for at, one in enumerate(more)]
                fields["parts"] = list[Json](each)
    return block


def _tools(given: Mapping[str, Json]) -> list[Tool]:
    tools: list[Tool] = []
    for at, one in enumerate(optional_list(given, "tools")):
        where = f"tools[{at}]"
        tool = _fields(one, where)
        for number, declared in enumerate(optional_list(tool, "functionDeclarations", where)):
            place = f"{where}.functionDeclarations[{number}]"
            function = _fields(declared, place)
            plain = optional_object(function, "parametersJsonSchema", place)
            schema = plain or _plain_schema(optional_object(function, "parameters", place))
            tools.append(
                Tool(
                    name=text_in(function, "name", place),
                    description=optional_text(function, "description", place) or "",
                    schema=schema,
                )
            )
        own = (kind for kind in tool if kind != "functionDeclarations")
        tools += [Tool(name=kind, own={kind: tool[kind], "protocol": NAME}) for kind in own]
    return tools


def _choice(given: Mapping[str, Json]) -> tuple[str, frozenset[str]]:
    """What has to be called, and what may be; the latter is empty for anything."""
    place = "toolConfig.functionCallingConfig"
    calling = _inner(_inner(given, "toolConfig"), "functionCallingConfig", "toolConfig")
    mode = (optional_word(calling, "mode", place) or "AUTO").removeprefix("MODE_").upper()
    if mode not in (*_MODES, "UNSPECIFIED"):
        raise not_allowed(f"{place}.mode", mode, tuple(_MODES))
    allowed = calling.get("allowedFunctionNames")
    names = () if allowed is None else texts_at(allowed, f"{place}.allowedFunctionNames")
    if mode == "ANY" and len(names) == 1:
        return names[0], frozenset()  # the others stay declared
    return _MODES.get(mode, "auto"), frozenset(names if mode in ("ANY", "VALIDATED") else ())


_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_FORMATS = ("int32", "int64", "float", "double", "enum")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def _plain_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Google's own kind of schema as JSON Schema, from which it differs in its words for types."""
    found: dict[str, Json] = {}
    for given, value in schema.items():
        key = given if given.startswith("$") else _camel(given)
        if key == "type" and isinstance(value, str) and value in _TYPES:
            found[key] = value.lower()
        elif key in _NUMBERS and isinstance(value, str) and value.isdecimal():
            found[key] = int(value[:18])
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _plain_schema(value)
        elif key in ("properties", "$defs", "defs") and isinstance(value, dict):
            found[key] = {
                one: _plain_schema(inner) if isinstance(inner, dict) else inner
                for one, inner in value.items()
            }
        elif key in _LISTS and isinstance(value, list):
            found[key] = [_plain_schema(one) if isinstance(one, dict) else one for one in value]
        elif key not in ("nullable", "propertyOrdering") and value not in _FORMATS:
            found[key] = value
    if schema.get("nullable") is True and isinstance(kind := found.get("type"), str):
        found["type"] = [kind, "null"]
        if isinstance(menu := found.get("enum"), list):
            found["enum"] = [*menu, None]
    return found


def write_request(conversation: Conversation) -> dict[str, Json]:
    """Write a request; what the protocol cannot say is left out."""
    asked = conversation
    names: dict[str, str] = {}
    body: dict[str, Json] = {"model": asked.model}
    standing = [part for turn in asked.turns if turn.speaker == "system" for part in turn.parts]
    if system := blocks_of([part for part in standing if isinstance(part, Text)], names):
        body["systemInstruction"] = {"parts": list[Json](system)}
    contents: list[Json] = []
    for turn in asked.turns:
        names |= {call.id: call.name for call in turn.calls}
        blocks = blocks_of(turn.parts, names) if turn.speaker != "system" else []
        if blocks:  # an empty message is refused
            role = "model" if turn.speaker == "assistant" else "user"
            contents.append({"role": role, "parts": list[Json](blocks)})
    body["contents"] = contents
    if tools := _tools_body(asked.tools):
        body["tools"] = tools
        if asked.choice != "auto":
            body["toolConfig"] = {"functionCallingConfig": _choice_body(asked.choice)}
    config = given_only(
        maxOutputTokens=asked.max_tokens,
        temperature=asked.temperature,
        topP=asked.top_p,
        seed=asked.seed,
        stopSequences=list[Json](asked.stop) or None,
        responseLogprobs=asked.wants_logprobs or None,
    )
    if asked.schema is not None:
        config |= {"responseMimeType": _JSON, "responseJsonSchema": dict(asked.schema)}
    if asked.effort in _EFFORTS:
        config["thinkingConfig"] = {"thinkingLevel": asked.effort.upper()}
    if config:
        body[_CONFIG] = config
    return body | ({"stream": True} if asked.is_streamed else {})


def _tools_body(tools: Sequence[Tool]) -> list[Json]:
    found: list[Json] = []
    declared: list[Json] = []
    for tool in tools:
        if tool.own is not None:
            if tool.own.get("protocol") == NAME:
                found.append({key: tool.own[key] for key in tool.own if key != "protocol"})
                declared = []
            continue
        if not declared:
            found.append({"functionDeclarations": declared})
        function = as_function(tool)
        said: dict[str, Json] = {"name": function.name}
        if function.description:
            said["description"] = function.description
        if function.schema:
            said["parametersJsonSchema"] = dict(function.schema)
        declared.append(said)
    return found


def _choice_body(choice: str) -> dict[str, Json]:
    modes = {"required": "ANY", "none": "NONE"}
    if choice in modes:
        return {"mode": modes[choice]}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def limited(body: Mapping[str, Json], most: int) -> dict[str, Json]:
    """A request that asks for no longer a reply than so many tokens."""
    name = next((key for key in body if _camel(key) == _CONFIG), _CONFIG)
    config = {k: v for k, v in _inner(body, name).items() if k != "maxOutputTokens"}
    return {**body, name: {**config, "maxOutputTokens": most}}


def write_error(error: ProtocolError) -> dict[str, Json]:
    """The body of an error."""
    status = _STATUSES.get(error.status, "UNAVAILABLE")
    return {"error": {"code": error.status, "message": error.message, "status": status}}


def write_error_event(error: ProtocolError) -> bytes:
    """An error as the last event of a stream that had begun."""
    return event(write_error(error))
