"""What all bodies have in common: no unknown fields, no silent conversions."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, StringConstraints

__all__ = [
    "Body",
    "Definition",
    "Key",
    "Kind",
    "Name",
    "ProblemShown",
    "Row",
    "Shown",
    "Text",
    "Version",
]


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """What the server answers; checked against real answers by the tests, not on every reply."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


def _whole(value: object) -> object:
    """1.0 is a whole number in JSON, whoever writes it so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


KEY_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Key: TypeAlias = Annotated[str, StringConstraints(pattern=KEY_PATTERN)]
"""Names a project, a grader or a dataset."""

Name: TypeAlias = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]
ItemId: TypeAlias = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
Kind: TypeAlias = Annotated[str, StringConstraints(max_length=50)]
Version: TypeAlias = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=2**31 - 1)]
Definition: TypeAlias = dict[str, JsonValue]


class Message(BaseModel):
    """One turn of a conversation; other fields are passed over, as chat APIs add their own."""

    model_config = ConfigDict(strict=True)

    role: str = Field(examples=["user"])
    content: JsonValue = Field(
        default=None, description="Text, null, or a list of parts.", examples=["What is 2 + 2?"]
    )


class Row(Body):
    """One recorded answer: what is graded, and what it is graded against.

    It is data: other fields belong to its metadata.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "anyOf": [
                {"required": ["answer"]},
                {"required": ["messages"]},
                {"required": ["input"], "properties": {"input": {"type": "array"}}},
            ],
            "examples": [
                {"id": "1", "question": "What is 2 + 2?", "answer": "4", "expected": "4"},
                {
                    "messages": [
                        {"role": "user", "content": "What is 2 + 2?"},
                        {"role": "assistant", "content": "4"},
                    ],
                    "metadata": {"level": 1},
                },
                {"answer": "4", "item": {"expected": "4"}, "split": "test"},
            ],
        },
    )

    id: ItemId | int | None = Field(
        default=None, description="By which the result is told apart; its place by default."
    )
    answer: str | None = Field(default=None, description="The final text.")
    messages: list[Message] | None = Field(
        default=None, description="The conversation; it may end with the assistant's answer."
    )
    completion: str | None = Field(
        default=None, description="The assistant's answer to `messages`, if they lack it."
    )
    question: str | None = Field(
        default=None, description="What was asked; the last user turn by default."
    )
    expected: JsonValue = Field(default=None, description="The reference answer.")
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="Anything that belongs to the sample."
    )


class FaultShown(Shown):
    """One thing that is wrong."""

    field: str = Field(examples=["items[3].answer"])
    message: str
    hint: str


class ProblemShown(BaseModel):
    """A refusal or a failure (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:assay:problem:the-request-cannot-be-carried-out",
                    "title": "The request cannot be carried out",
                    "status": 422,
                    "detail": "verzion: unknown field (did you mean 'version'?)",
                    "instance": "/api/v1/projects/default/graders/exact/grade",
                    "errors": [
                        {
                            "field": "verzion",
                            "message": "unknown field",
                            "hint": "did you mean 'version'?",
                        }
                    ],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FaultShown]
