"""Answers of a declared type, and the tool by which a model gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from assay.agents.tools import AgentTool, Arguments, ToolOutcome, ToolRefusalError
from assay.conversation.turns import Tool
from assay.scoring.json_safe import Json
from assay.types.typed import problem_of, type_adapter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SUBMIT = "submit"
"""What the tool is called."""


class TypedAnswer:
    """An answer that has to have a type; a tool can be called in every protocol.

    Args:
        returns: The type.

    Raises:
        InputError: For a type that cannot be told to a model.
    """

    def __init__(self, returns: object) -> None:
        self._adapter: TypeAdapter[object] = type_adapter(returns, what="returns")
        schema = cast("dict[str, Json]", self._adapter.json_schema())
        # The arguments of a tool are an object, whatever the answer is.
        self._is_object = schema.get("type") == "object"
        if not self._is_object:
            schema = _as_argument(schema)
        self.tool = AgentTool(
            declared=Tool(
                name=SUBMIT, description="Give your answer: it ends the work.", schema=schema
            ),
            use=self._submit,
        )
        self._given: str | None = None

    def take(self) -> str | None:
        """The answer as JSON, if one was given since it was last taken."""
        given, self._given = self._given, None
        return given

    def read(self, text: str) -> None:
        """Take an answer that was said instead of submitted, if it is one."""
        try:
            self._adapter.validate_json(text.strip())
        except ValueError:
            return
        self._given = text.strip()

    async def _submit(self, given: Arguments) -> ToolOutcome:
        import pydantic

        answer: Json = dict(given) if self._is_object else given["answer"]
        text = json.dumps(answer, ensure_ascii=False)
        try:
            self._adapter.validate_json(text)
        except pydantic.ValidationError as error:
            raise ToolRefusalError(f"it was not accepted: {problem_of(error)}") from error
        self._given = text
        return ToolOutcome.said("accepted")


def _as_argument(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema of an object that holds what has the schema under ``answer``."""
    definitions: Json = schema.pop("$defs", {})
    properties: dict[str, Json] = {"answer": schema}
    required: list[Json] = ["answer"]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "$defs": definitions,
    }
