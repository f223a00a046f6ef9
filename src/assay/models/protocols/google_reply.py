"""Google's generateContent: whole replies, and the parts that they share with requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from assay.models.conversation import (
    Call,
    Conversation,
    Image,
    Part,
    Reply,
    Result,
    Stop,
    Text,
    Thought,
    Tokens,
    Turn,
    Unknown,
)
from assay.models.messages import Usage
from assay.models.protocols.codec import Protocol
from assay.models.protocols.tokens import logprobs_of
from assay.models.protocols.translating import as_function_call, call_as_asked
from assay.models.wire import count, items, mapping, name, text
from assay.scoring.json_safe import Json

NAME: Protocol = "google"

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


def parts_of(block: Mapping[str, Json]) -> Iterable[Part]:
    """What one part of a message says; its seal comes first."""
    sealed = text(block.get("thoughtSignature"))
    said = block.get("text")
    if block.get("thought") is True:
        yield Thought(text(said), sealed, protocol=NAME)
        return
    if sealed:
        yield Thought("", sealed, "" if said == "" else _BEHIND, NAME)
    if isinstance(said, str):
        if said:
            yield Text(text(said))
    elif call := mapping(block.get("functionCall")):
        given = call.get("args")
        arguments = json.dumps({} if given is None else given)
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
    written = text(said) if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    more = (part for one in items(answer.get("parts")) for part in parts_of(mapping(one)))
    return Result(
        text(answer.get("id")),
        (
            *([Text(text(written))] if written else []),
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
    return Unknown(NAME, block)


def blocks_of(
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
            is_ours = part.protocol in ("", NAME)
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
            return dict(part.data) if part.protocol == NAME else {}


def _id(known: str) -> dict[str, Json]:
    return {"id": known} if known else {}


def _image(url: str) -> dict[str, Json]:
    kind, comma, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and comma:
        return {"inlineData": {"mimeType": kind, "data": data}}
    return {"fileData": {"mimeType": "image/*", "fileUri": url}}


def read_reply(body: Json) -> Reply | None:
    """Read a whole reply; None if it is none. Of several in one, the first counts."""
    reply = mapping(body)
    candidates = items(reply.get("candidates"))
    candidate = mapping(candidates[0]) if candidates else {}
    blocked = text(mapping(reply.get("promptFeedback")).get("blockReason"))
    reason = text(candidate.get("finishReason"))
    if not blocked and not (reason or candidate.get("content")):
        return None
    blocks = items(mapping(candidate.get("content")).get("parts"))
    found = [part for one in blocks for part in parts_of(mapping(one)) if one]
    of_reply = text(reply.get("responseId"))
    turn = Turn("assistant", tuple(_named(part, of_reply, at) for at, part in enumerate(found)))
    stop: Stop = "refusal" if blocked else _STOPS.get(reason, "stop")
    told = text(candidate.get("finishMessage")) or blocked or reason
    return Reply(
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


def with_ids(body: Mapping[str, Json], reply: Reply) -> dict[str, Json] | None:
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
        is_call = any(isinstance(one, Call) for one in parts_of(part))
        parts.append({**part, "functionCall": {**said, "id": calls.pop(0).id}} if is_call else part)
    if parts == items(content.get("parts")):
        return None
    named: Json = {**candidate, "content": {**content, "parts": parts}}
    return {**body, "candidates": [named, *candidates[1:]]}


def _usage(told: Mapping[str, Json]) -> Usage:
    read, found = count(told.get("promptTokenCount")), count(told.get("toolUsePromptTokenCount"))
    wrote, thought = count(told.get("candidatesTokenCount")), count(told.get("thoughtsTokenCount"))
    return Usage(
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


def write_reply(reply: Reply, asked: Conversation) -> dict[str, Json]:
    """Write a whole reply to a request."""
    parts = tuple(
        as_function_call(call_as_asked(part, asked)) if isinstance(part, Call) else part
        for part in reply.turn.parts
    )
    if reply.refusal and not reply.turn.text:
        parts = (*parts, Text(reply.refusal))
    blocks = blocks_of(parts, {}, is_reply=True)
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
