"""Google's generateContent: requests, whole replies and errors.

Model and streaming are said by the path of a request; `addressed` in
`assay.conversation.protocols.codec` puts them into its body.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols.codec import Codec, Protocol
from assay.conversation.protocols.google_stream import GoogleStream, write_stream
from assay.conversation.protocols.shapes import ProtocolError, checked, object_of
from assay.conversation.protocols.translating import (
    TurnBuilder,
    as_function,
    as_function_call,
    call_as_asked,
    data_of,
    flag,
    given_only,
    logprobs_of,
    number,
    own_body,
    texts,
    whole,
)
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Part,
    Result,
    Stop,
    Text,
    Thought,
    Tokens,
    Tool,
    Turn,
    Unknown,
)
from assay.conversation.wire import count, items, mapping, name, text, written
from assay.scoring.json_safe import Json

_NAME: Protocol = "google"
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
_OPAQUE = frozenset(
    {"args", "response", "parameters", "parametersJsonSchema", "responseSchema"}
    | {"responseJsonSchema"}
)
"""Fields whose inside is another's, not the protocol's."""
_REASONS: Mapping[Stop, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool": "STOP",
    "refusal": "SAFETY",
}
_STOPS: Mapping[str, Stop] = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "refusal"
    ),
    **dict.fromkeys(
        ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"), "refusal"
    ),
}
_BEHIND = "behind"
"""In place of the id of a seal that stands on the part behind it."""
_OUTPUTS = ("output", "result", "error")
"""What a response that is one text is called; the last one tells that the tool failed."""


def _camel(word: str) -> str:
    return _SNAKE.sub(lambda match: match[1].upper(), word)


def _named_alike(value: Json, where: str = "") -> Json:
    """A body, its fields by their usual names: servers take ``max_output_tokens``, too.

    Raises:
        ProtocolError: If an object has a field under both of its names.
    """
    if isinstance(value, list):
        return [_named_alike(one, f"{where}[{at}]") for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    found: dict[str, Json] = {}
    for given, one in value.items():
        key = _camel(given)
        place = f"{where}.{key}" if where else key
        found[key] = one if key in _OPAQUE else _named_alike(one, place)
    if len(found) < len(value):
        message = f"A field of {where or 'the request'} is given by both of its names."
        raise ProtocolError(400, message, parameter=where)
    return found


def read_request(body: Json) -> Conversation:
    """Read a request.

    Raises:
        ProtocolError: If it is none.
    """
    named = mapping(_named_alike(object_of(body)))
    if isinstance(alone := named.get("contents"), dict):
        named["contents"] = [alone]  # servers take one that stands alone, too
    given = checked(_NAME, named)
    if given.get("cachedContent") is not None:
        message = "Invalid 'cachedContent': what was said before is not held here; send it."
        raise ProtocolError(400, message, parameter="cachedContent")
    config = mapping(given.get(_CONFIG))
    if (whole(config.get("candidateCount")) or 1) > 1:
        # A conversation goes on from one reply: what stood in others would be nowhere.
        message = "Invalid 'candidateCount': replies are given one at a time here."
        raise ProtocolError(400, message, parameter=f"{_CONFIG}.candidateCount")
    choice, allowed = _choice(given)
    effort = text(mapping(config.get("thinkingConfig")).get("thinkingLevel")).lower()
    is_json = config.get("responseMimeType") == _JSON
    plain = mapping(config.get("responseJsonSchema"))
    schema = plain or _plain_schema(mapping(config.get("responseSchema")))
    return Conversation(
        model=text(given["model"]).removeprefix("models/"),
        turns=_turns(given),
        tools=tuple(
            tool for tool in _tools(given) if not allowed or tool.own or tool.name in allowed
        ),
        choice=choice,
        max_tokens=whole(config.get("maxOutputTokens")),
        temperature=number(config.get("temperature")),
        top_p=number(config.get("topP")),
        seed=whole(config.get("seed")),
        effort=effort if effort in _EFFORTS else None,
        stop=texts(config.get("stopSequences")),
        schema=(schema or None) if is_json else None,
        wants_logprobs=flag(config.get("responseLogprobs")) or False,
        is_streamed=flag(given.get("stream")) or False,
    )


def read_count(body: Mapping[str, Json]) -> Conversation:
    """Read what the tokens are to be counted of.

    Raises:
        ProtocolError: If it is no request.
    """
    whole_body = mapping(_named_alike(dict(body))).get("generateContentRequest")
    return read_request({**body, **({} if whole_body is None else object_of(whole_body))})


def _turns(given: Mapping[str, Json]) -> tuple[Turn, ...]:
    turns = TurnBuilder()
    if system := _content(mapping(given.get("systemInstruction"))):
        turns.add("system", [part for part, _ in system])
    calls = _Calls()
    for content in map(mapping, items(given["contents"])):
        found = _content(content)
        if content.get("role") == "model":
            turns.add("assistant", calls.made(part for part, _ in found))
            continue
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
        for result, tool in results:
            call = self._taken(self._by_id.get(result.id))
            if call is None and result.id and last.get(result.id) == result:
                continue  # Gemini CLI says it twice where it goes on with a session
            call = call or self._taken(self._by_name.get(tool))
            known = result.id or f"{tool}:0" if call is None else call.id
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


def _content(content: Mapping[str, Json]) -> list[tuple[Part, str]]:
    """Parts, each with the name of the tool whose result it is."""
    return [
        (part, text(mapping(block.get("functionResponse")).get("name")))
        for block in map(mapping, items(content.get("parts")))
        for part in _parts_of(block)
    ]


def _tools(given: Mapping[str, Json]) -> list[Tool]:
    tools: list[Tool] = []
    for tool in map(mapping, items(given.get("tools"))):
        for function in map(mapping, items(tool.get("functionDeclarations"))):
            plain = mapping(function.get("parametersJsonSchema"))
            schema = plain or _plain_schema(mapping(function.get("parameters")))
            described = text(function.get("description"))
            tools.append(Tool(name=text(function["name"]), description=described, schema=schema))
        own = (kind for kind in tool if kind != "functionDeclarations")
        tools += [Tool(name=kind, own={kind: tool[kind], "protocol": _NAME}) for kind in own]
    return tools


def _choice(given: Mapping[str, Json]) -> tuple[str, frozenset[str]]:
    """What has to be called, and what may be; the latter is empty for anything."""
    calling = mapping(mapping(given.get("toolConfig")).get("functionCallingConfig"))
    mode = (text(calling.get("mode")) or "AUTO").removeprefix("MODE_").upper()
    if mode not in (*_MODES, "UNSPECIFIED"):
        message = f"Invalid value: '{mode:.80}'. Supported values are: {', '.join(_MODES)}."
        place = "toolConfig.functionCallingConfig.mode"
        raise ProtocolError(400, message, parameter=place, code="invalid_value")
    names = texts(calling.get("allowedFunctionNames"))
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
    if system := _blocks_of([part for part in standing if isinstance(part, Text)], names):
        body["systemInstruction"] = {"parts": list[Json](system)}
    contents: list[Json] = []
    for turn in asked.turns:
        names |= {call.id: call.name for call in turn.calls}
        blocks = _blocks_of(turn.parts, names) if turn.speaker != "system" else []
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
        if (own := own_body(tool, _NAME)) is not None:
            found += [own] if own else []
            declared = [] if own else declared
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
    config = mapping(_named_alike(mapping(body.get(name))))
    return {**body, name: {**config, "maxOutputTokens": most}}


def _parts_of(block: Mapping[str, Json]) -> Iterable[Part]:
    """What one part of a message says; its seal comes first."""
    sealed = text(block.get("thoughtSignature"))
    said = block.get("text")
    if block.get("thought") is True:
        yield Thought(text(said), sealed, protocol=_NAME)
        return
    if sealed:
        yield Thought("", sealed, "" if said == "" else _BEHIND, _NAME)
    if isinstance(said, str):
        if said:
            yield Text(text(said))
    elif call := mapping(block.get("functionCall")):
        given = call.get("args")
        arguments = written({} if given is None else given)
        yield Call(text(call.get("id")), text(call.get("name")), arguments)
    elif answer := mapping(block.get("functionResponse")):
        yield _result(answer)
    else:
        yield _data(block)


def _result(answer: Mapping[str, Json]) -> Result:
    """A tool's response; one without an id is told by its name."""
    told = mapping(answer.get("response"))
    key = next(iter(told)) if len(told) == 1 else ""
    said = told.get(key) if key in _OUTPUTS else told
    output = "null" if said is None else written(said)
    more = (part for one in items(answer.get("parts")) for part in _parts_of(mapping(one)))
    return Result(
        text(answer.get("id")),
        (
            *([Text(output)] if output else []),
            *(part for part in more if isinstance(part, Image | Unknown)),
        ),
        key == "error",
    )


def _data(block: Mapping[str, Json]) -> Part:
    inline, file = mapping(block.get("inlineData")), mapping(block.get("fileData"))
    kind = text((inline or file).get("mimeType"))
    if kind.startswith("image/"):
        if inline:
            return Image(f"data:{kind};base64,{text(inline.get('data'))}")
        return Image(text(file.get("fileUri")))
    return Unknown(_NAME, block)


def _blocks_of(
    parts: Sequence[Part], names: Mapping[str, str], *, is_reply: bool = False
) -> list[dict[str, Json]]:
    """Parts as a message has them; what only another protocol knows is left out.

    Args:
        parts: They.
        names: Tools, by the ids of their calls.
        is_reply: Whether they go to who asked: thoughts of any protocol are shown there.
    """
    found: list[dict[str, Json]] = []
    sealed = ""
    for part in parts:
        if isinstance(part, Thought):
            is_ours = part.protocol in ("", _NAME)
            seal = part.sealed if is_ours else ""
            if part.id == _BEHIND and is_ours:
                sealed = seal
            elif part.text and (is_ours or is_reply):
                thought: dict[str, Json] = {"text": part.text, "thought": True}
                found.append(thought | _signature(seal))
            elif seal and not part.text:
                found.append({"text": "", **_signature(seal)})
            continue
        if block := _block(part, names):
            found.append(block | _signature(sealed))
        sealed = ""
    return found


def _signature(sealed: str) -> dict[str, Json]:
    return {"thoughtSignature": sealed} if sealed else {}


def _block(
    part: Text | Call | Result | Image | Unknown, names: Mapping[str, str]
) -> dict[str, Json]:
    match part:
        case Text():
            return {"text": part.text} if part.text else {}
        case Image():
            return _image(part.url)
        case Call():
            call = as_function_call(part)
            given = call.given
            # There is no other place for what is no object.
            args: Json = {"INVALID_JSON": call.arguments} if given is None else given
            return {"functionCall": {**_id(call.id), "name": call.name, "args": args}}
        case Result():
            answer: dict[str, Json] = {
                **_id(part.id),
                "name": names.get(part.id) or part.id,
                "response": {"error" if part.is_error else "output": part.text},
            }
            others = (_block(one, names) for one in part.content if not isinstance(one, Text))
            if more := list[Json](one for one in others if one):
                answer["parts"] = more
            return {"functionResponse": answer}
        case Unknown():
            return dict(part.data) if part.protocol == _NAME else {}


def _id(known: str) -> dict[str, Json]:
    return {"id": known} if known else {}


def _image(url: str) -> dict[str, Json]:
    if (held := data_of(url)) is not None:
        return {"inlineData": {"mimeType": held[0], "data": held[1]}}
    return {"fileData": {"mimeType": "image/*", "fileUri": url}}


def read_reply(body: Json) -> AssistantTurn | None:
    """Read a whole reply; None if it is none. Of several in one, the first counts."""
    reply = mapping(body)
    candidates = items(reply.get("candidates"))
    candidate = mapping(candidates[0]) if candidates else {}
    blocked = text(mapping(reply.get("promptFeedback")).get("blockReason"))
    reason = text(candidate.get("finishReason"))
    if not blocked and not (reason or candidate.get("content")):
        return None
    blocks = items(mapping(candidate.get("content")).get("parts"))
    found = [part for one in blocks for part in _parts_of(mapping(one)) if one]
    of_reply = text(reply.get("responseId"))
    turn = Turn("assistant", tuple(_named(part, of_reply, at) for at, part in enumerate(found)))
    stop: Stop = "refusal" if blocked else _STOPS.get(reason, "stop")
    told = text(candidate.get("finishMessage")) or blocked or reason
    return AssistantTurn(
        turn=turn,
        stop="tool" if turn.calls and stop == "stop" else stop,
        model=name(reply.get("modelVersion")),
        usage=_usage(mapping(reply.get("usageMetadata"))),
        id=name(reply.get("responseId")),
        refusal=(turn.text or told) if stop == "refusal" else "",
        tokens=_tokens(candidate),
        stopped=name(reason or blocked),
    )


def _named(part: Part, reply: str, at: int) -> Part:
    """A part of a reply; a call to which its server gave no id gets one."""
    if not isinstance(part, Call) or part.id:
        return part
    return Call(f"{part.name}:{reply}:{at}", part.name, part.arguments)


def with_ids(body: Mapping[str, Json], reply: AssistantTurn) -> dict[str, Json] | None:
    """A reply whose calls have the ids that they were read with; None if they have them already.

    Who was given none makes up its own, and could not be seen to tell of the same calls.
    """
    calls = list(reply.turn.calls)
    candidates = items(body.get("candidates"))
    candidate = mapping(candidates[0]) if candidates else {}
    content = mapping(candidate.get("content"))
    parts: list[Json] = []
    for part in map(mapping, items(content.get("parts"))):
        said = mapping(part.get("functionCall"))
        is_call = any(isinstance(one, Call) for one in _parts_of(part))
        parts.append({**part, "functionCall": {**said, "id": calls.pop(0).id}} if is_call else part)
    if parts == items(content.get("parts")):
        return None
    named: Json = {**candidate, "content": {**content, "parts": parts}}
    return {**body, "candidates": [named, *candidates[1:]]}


def _usage(told: Mapping[str, Json]) -> ReplyUsage:
    read, found = count(told.get("promptTokenCount")), count(told.get("toolUsePromptTokenCount"))
    wrote, thought = count(told.get("candidatesTokenCount")), count(told.get("thoughtsTokenCount"))
    return ReplyUsage(
        input_tokens=None if read is None else read + (found or 0),
        cached_tokens=count(told.get("cachedContentTokenCount")),
        output_tokens=None if wrote is None and thought is None else (wrote or 0) + (thought or 0),
        reasoning_tokens=thought,
    )


def _tokens(candidate: Mapping[str, Json]) -> Tokens | None:
    chosen = items(mapping(candidate.get("logprobsResult")).get("chosenCandidates"))
    each = [mapping(one) for one in chosen]
    ids = [count(one.get("tokenId")) for one in each]
    found = Tokens(
        output_ids=() if None in ids else tuple(one for one in ids if one is not None),
        logprobs=logprobs_of([{"logprob": one.get("logProbability")} for one in each]),
    )
    return found if found != Tokens() else None


def write_reply(reply: AssistantTurn, asked: Conversation) -> dict[str, Json]:
    """Write a whole reply to a request."""
    parts = tuple(
        as_function_call(call_as_asked(part, asked)) if isinstance(part, Call) else part
        for part in reply.turn.parts
    )
    if reply.refusal and not reply.turn.text:
        parts = (*parts, Text(reply.refusal))
    blocks = _blocks_of(parts, {}, is_reply=True)
    candidate: dict[str, Json] = {
        "content": {"parts": list[Json](blocks), "role": "model"},
        "finishReason": _REASONS[reply.stop],
        "index": 0,
    }
    if reply.tokens is not None and asked.wants_logprobs:
        candidate["logprobsResult"] = {"chosenCandidates": _chosen(reply.tokens)}
    usage = reply.usage
    thought = usage.reasoning_tokens
    read, wrote = usage.input_tokens or 0, usage.output_tokens or 0
    counted: dict[str, Json] = {
        "promptTokenCount": read,
        "candidatesTokenCount": max(0, wrote - (thought or 0)),
        "totalTokenCount": read + wrote,
    }
    if usage.cached_tokens is not None:
        counted["cachedContentTokenCount"] = usage.cached_tokens
    if thought is not None:
        counted["thoughtsTokenCount"] = thought
    return {
        "candidates": [candidate],
        "usageMetadata": counted,
        "modelVersion": reply.model or asked.model,
        "responseId": reply.id,
    }


def _chosen(tokens: Tokens) -> list[Json]:
    ids = tokens.output_ids if len(tokens.output_ids) == len(tokens.logprobs) else ()
    found: list[Json] = []
    for at, logprob in enumerate(tokens.logprobs):
        known: dict[str, Json] = {"tokenId": ids[at]} if ids else {}
        found.append({**known, "logProbability": logprob})
    return found


def write_error(error: ProtocolError) -> dict[str, Json]:
    """The body of an error."""
    status = _STATUSES.get(error.status, "UNAVAILABLE")
    return {"error": {"code": error.status, "message": error.message, "status": status}}


CODEC = Codec(
    NAME=_NAME,
    PATH="/models/{model}:generateContent",
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    events_of=write_stream,
    stream=GoogleStream,
    write_error=write_error,
)
