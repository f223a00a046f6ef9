"""A conversation with a model that uses tools: one form, whichever protocol says it.

Judges ask single questions (`assay.conversation.messages`); agents hold conversations. What a
protocol says is read into this form and written from it by `assay.conversation.protocols`, for
callers and for servers alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal, TypeAlias

from assay.conversation.messages import ReplyUsage
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

Speaker: TypeAlias = Literal["system", "user", "assistant", "tool"]
Stop: TypeAlias = Literal["stop", "length", "tool", "refusal"]
"""Why a reply ended: its turn was over, there was no room for more (in its tokens or in the
context), it calls tools, or it was refused."""


@frozen
class Text:
    """Something said.

    Attributes:
        text: It.
        citations: What it rests on, as the provider writes it.
    """

    TAG: ClassVar[str] = "text"

    text: str
    citations: tuple[Json, ...] = ()


@frozen
class Thought:
    """Something thought, as far as the provider shows it.

    Attributes:
        text: It, or its summary; empty where it is hidden.
        sealed: What the provider wants back unchanged: a signature, or the thought encrypted.
        id: The provider's name for it, where it has one.
        protocol: In whose form it came: in a request it goes back to no other, where its seal
            would be broken. "" for one that was never sent.
    """

    TAG: ClassVar[str] = "thought"

    text: str
    sealed: str = ""
    id: str = ""
    protocol: str = ""


@frozen
class Call:
    """A tool that the model wants to be run.

    Attributes:
        id: Joins call and result.
        name: The tool.
        arguments: JSON as the model wrote it, which need not be valid; for a `Tool` whose `kind`
            is ``custom`` a text of any form.
        kind: As in `Tool`.
    """

    TAG: ClassVar[str] = "call"

    id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"

    @property
    def given(self) -> dict[str, Json] | None:
        """The arguments; None where they are not a JSON object."""
        try:
            found = decode_json(self.arguments or "{}")
        except NotJsonError:
            return None
        return found if isinstance(found, dict) else None


@frozen
class Result:
    """What a tool answered.

    Attributes:
        id: The call's.
        content: Its output: texts and images, and what only its own protocol knows.
        is_error: Whether it failed.
        kind: As in `Tool`.
    """

    TAG: ClassVar[str] = "result"

    id: str
    content: tuple[Text | Image | Unknown, ...] = ()
    is_error: bool = False
    kind: Literal["function", "custom"] = "function"

    @property
    def text(self) -> str:
        """Its texts, joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


@frozen
class Image:
    """A picture: its URL, which may be a ``data:`` URL that holds it."""

    TAG: ClassVar[str] = "image"

    url: str


@frozen
class Unknown:
    """A part that only its own protocol knows: passed on there, and left out of any other.

    Attributes:
        protocol: Whose it is.
        data: It.
    """

    TAG: ClassVar[str] = "unknown"

    protocol: str
    data: Mapping[str, Json]


Part: TypeAlias = "Text | Thought | Call | Result | Image | Unknown"


@frozen
class Turn:
    """What one side says at a time.

    Attributes:
        speaker: Who. Results of tools are a turn of ``tool``, whatever the protocol calls it.
        parts: What, in order.
    """

    speaker: Speaker
    parts: tuple[Part, ...]

    @staticmethod
    def of(speaker: Speaker, text: str) -> Turn:
        """A turn that is one text."""
        return Turn(speaker, (Text(text),))

    @property
    def text(self) -> str:
        """Its texts, joined; without thoughts."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thought(self) -> str:
        """Its thoughts, joined by newlines."""
        found = (part.text for part in self.parts if isinstance(part, Thought))
        return "\n".join(text for text in found if text)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tools it calls."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def results(self) -> tuple[Result, ...]:
        """The results it brings."""
        return tuple(part for part in self.parts if isinstance(part, Result))


@frozen(kw_only=True)
class Tool:
    """A tool that the model may call.

    Attributes:
        name: What it is called.
        description: What it does.
        schema: JSON Schema of its arguments; of a custom tool the form of its text, such as
            ``{"type": "grammar", "syntax": "lark", "definition": ...}``.
        kind: ``function``; or ``custom``, whose argument is a text of any form.
        own: The whole declaration where it is a protocol's own, such as a search that the provider
            runs; its key ``protocol`` says whose. Other protocols leave it out.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Json] = field(default_factory=dict[str, Json])
    kind: Literal["function", "custom"] = "function"
    own: Mapping[str, Json] | None = None


@frozen(kw_only=True)
class Conversation:
    """A request: what was said so far, and how to go on.

    Attributes:
        model: The model, as the asker calls it.
        turns: What was said, oldest first; standing instructions are ``system`` turns.
        tools: What may be called.
        choice: ``auto``, ``none``, ``required``, or the name of the tool that must be called.
        max_tokens: Most tokens of the reply; None for the provider's own limit.
        temperature: 0 to 2; None to leave it to the model. Likewise the following.
        top_p: Likewise.
        seed: Likewise.
        effort: How much to reason.
        stop: Texts that end the reply.
        schema: JSON Schema that the reply has to have.
        is_parallel: Whether several tools may be called in one reply; None for the default.
        wants_logprobs: Whether the log-probabilities of the reply's tokens are asked for.
        wants_token_ids: Whether the ids of prompt and reply are asked for, as vLLM gives them.
        wants_usage: Whether a streamed reply tells its tokens; chat completions leave them out
            unless they are asked for.
        is_continued: Whether a next request will begin with this one, which a provider that is told
            so reads again for less. Only Anthropic has to be told.
        is_streamed: Whether the reply is to come piece by piece.
        follows: The id of the reply before it, where its server holds what was said so far, so
            that `turns` are only what is new.
    """

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    effort: str | None = None
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Json] | None = None
    schema_name: str = "reply"
    is_parallel: bool | None = None
    wants_logprobs: bool = False
    wants_token_ids: bool = False
    wants_usage: bool = True
    is_continued: bool = False
    is_streamed: bool = False
    follows: str = ""

    @property
    def system(self) -> str:
        """The standing instructions, joined by blank lines."""
        return "\n\n".join(turn.text for turn in self.turns if turn.speaker == "system")


@frozen(kw_only=True)
class Tokens:
    """A reply token by token, where the server tells.

    Attributes:
        prompt_ids: Ids that were read.
        output_ids: Ids that were sampled.
        logprobs: Natural logarithm of the probability of each sampled token.
    """

    prompt_ids: tuple[int, ...] = ()
    output_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


@frozen(kw_only=True)
class AssistantTurn:
    """What the model said.

    Attributes:
        turn: It.
        stop: Why it ended.
        model: The model that the provider says answered.
        usage: Tokens.
        id: The provider's name for the reply.
        refusal: What it says on refusing.
        tokens: The reply token by token; None where the server does not tell.
        stopped: The provider's own word for why it ended.
    """

    turn: Turn
    stop: Stop = "stop"
    model: str = ""
    usage: ReplyUsage = field(default_factory=ReplyUsage)
    id: str = ""
    refusal: str = ""
    tokens: Tokens | None = None
    stopped: str = ""
