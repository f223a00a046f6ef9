"""What is said to a model, and what it says: plain data, the same for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from assay.frozen import frozen
from assay.scoring.json_safe import Json

Role: TypeAlias = Literal["system", "user", "assistant"]
Purpose: TypeAlias = Literal["judge", "agent", "user"]
Finish: TypeAlias = Literal["stop", "length", "refusal", "tool"]
Rung: TypeAlias = Literal["json_schema", "tool", "json_object", "text"]
"""How a reply was made to have its shape: the provider's own schema mode, a forced tool call, its
JSON mode, or by asking in words."""


@frozen
class Message:
    """One message.

    Attributes:
        role: Who says it.
        content: Text; or a list of parts in OpenAI's form (``{"type": "text", "text": ...}``,
            ``{"type": "image_url", ...}``).
    """

    role: Role
    content: str | tuple[Mapping[str, Json], ...]


@frozen(kw_only=True)
class Request:
    """One question to a model.

    Attributes:
        model: A model reference; see `assay.models.reference`.
        messages: The conversation; system messages first.
        schema: JSON Schema that the reply has to have; None for free text.
        schema_name: What providers are told it is called: letters, digits, ``_``.
        max_tokens: Most tokens of the reply, its reasoning included.
        temperature: 0 to 2; None to leave it to the model. Models that refuse it are not sent it.
        top_p: Likewise.
        seed: Likewise.
        reasoning_effort: ``low``, ``medium`` ...; None to leave it to the model.
        repeat: Which of several askings of the same question this is, from 0. A part of the
            cache's key, so that repeats are answered apart.
        purpose: For whom it is paid: a ``judge``, the ``agent`` that is graded, or the ``user`` who
            is played to it.
        volatile: Strings in the messages that differ from run to run, such as the names of fences.
            They are not part of the cache's key.
        timeout_seconds: For the reply and all tries together.
    """

    model: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Json] | None = None
    schema_name: str = "verdict"
    max_tokens: int = 4096
    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    repeat: int = 0
    purpose: Purpose = "judge"
    volatile: tuple[str, ...] = ()
    timeout_seconds: float = 180.0


@frozen(kw_only=True)
class ReplyUsage:
    """Tokens of one reply, as its provider counts them; None where it does not say.

    Attributes:
        input_tokens: Read, those from the provider's own cache included.
        cached_tokens: Of them, read from the provider's own cache.
        output_tokens: Written, reasoning included.
        reasoning_tokens: Of them, reasoning.
        stored_tokens: Of those read, kept in the provider's own cache for minutes, where that is
            paid for.
        stored_hour_tokens: Likewise for an hour.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    stored_tokens: int | None = None
    stored_hour_tokens: int | None = None


@frozen
class Attempt:
    """One try that failed.

    Attributes:
        reason: Why, in a word or two.
        status: The HTTP status, or 0.
        waited: Seconds waited after it.
    """

    reason: str
    status: int
    waited: float


@frozen(kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: The reply as it came.
        data: The JSON in it, validated, where a schema was asked for; else None.
        finish: Why it ended.
        model: The model that the provider says answered.
        usage: Tokens.
        fingerprint: The provider's name for its configuration, or "".
        rung: How its shape was asked for.
        attempts: The tries before it that failed.
        seconds: Time it took, waiting included.
        cost_usd: US dollars paid for it; 0.0 for a hit; None where the price is not known.
        is_hit: Whether it came from the cache.
        asked_usd: Of a hit, what it cost when it was asked for; None where the price is not known.
        asked_seconds: Of a hit, the time that it took then.
        dropped: Parameters that the model refuses and was not sent.
        repairs: How often it had to be asked to correct its reply.
        digest: Of the request: the cache's key.
    """

    text: str
    data: Json = None
    finish: Finish = "stop"
    model: str = ""
    usage: ReplyUsage = field(default_factory=ReplyUsage)
    fingerprint: str = ""
    rung: Rung = "text"
    attempts: tuple[Attempt, ...] = ()
    seconds: float = 0.0
    cost_usd: float | None = None
    is_hit: bool = False
    asked_usd: float | None = None
    asked_seconds: float = 0.0
    dropped: tuple[str, ...] = ()
    repairs: int = 0
    digest: str = ""
