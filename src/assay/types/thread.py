"""`StringThread`: a conversation as plain text turns, with metadata beside it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from assay.errors import InputError
from assay.scoring.json_safe import Json

__all__ = ["StringThread", "StringTurn"]


class StringTurn(NamedTuple):
    """One turn: who spoke, and the text."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, init=False, repr=False)
class StringThread:
    """A conversation. Immutable: methods that add a turn return a new thread.

    Roles are free text; ``system``, ``user``, ``assistant``, ``tool`` and ``document`` have a
    meaning to graders.

    Attributes:
        turns: The turns, oldest first.
        metadata: Anything that belongs to the sample. Copied deeply when a thread is made or
            extended, so that no grader can change what the next one sees.

    Raises:
        InputError: For a turn that is not a pair of texts.
    """

    turns: tuple[StringTurn, ...]
    metadata: dict[str, Json] = field(compare=True)

    def __init__(
        self,
        turns: Iterable[tuple[str, str]] | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        checked = tuple(_turn(turn, n) for n, turn in enumerate(turns or ()))
        object.__setattr__(self, "turns", checked)
        object.__setattr__(self, "metadata", copy.deepcopy(dict(metadata or {})))

    def __repr__(self) -> str:
        return f"StringThread({len(self.turns)} turns, metadata={sorted(self.metadata)})"

    def __len__(self) -> int:
        return len(self.turns)

    def __iter__(self) -> Iterator[StringTurn]:
        return iter(self.turns)

    def __hash__(self) -> int:
        return hash(self.turns)

    def user(self, content: str) -> StringThread:
        """Add a user turn."""
        return self._with("user", content)

    def assistant(self, content: str) -> StringThread:
        """Add an assistant turn."""
        return self._with("assistant", content)

    def system(self, content: str) -> StringThread:
        """Add a system turn at the end."""
        return self._with("system", content)

    def tool(self, content: str) -> StringThread:
        """Add a tool result; its text is visible like any other turn's."""
        return self._with("tool", content)

    def document(self, content: str) -> StringThread:
        """Add a document that the answer should be based on."""
        return self._with("document", content)

    def completion(self) -> str | None:
        """The text of the last turn if an assistant spoke it, else None."""
        return self.turns[-1].content if self.turns and self.turns[-1].role == "assistant" else None

    def messages(self) -> list[StringTurn]:
        """All turns but a final assistant turn."""
        return list(self.turns[:-1] if self.completion() is not None else self.turns)

    def get_turns(self) -> list[StringTurn]:
        """All turns."""
        return list(self.turns)

    def last_content(self) -> str:
        """The text of the last turn.

        Raises:
            InputError: For an empty thread.
        """
        if not self.turns:
            raise InputError("the thread is empty, so it has no last content")
        return self.turns[-1].content

    def last_user_turn(self) -> str | None:
        """The text of the last user turn, or None."""
        return next((t.content for t in reversed(self.turns) if t.role == "user"), None)

    def documents(self) -> list[str]:
        """The texts of all document turns, wherever they stand."""
        return [t.content for t in self.turns if t.role == "document"]

    def to_dict(self) -> dict[str, Json]:
        """The thread as JSON: ``{"messages": [{"role", "content"}], "metadata": {}}``."""
        messages: list[Json] = [{"role": t.role, "content": t.content} for t in self.turns]
        return {"messages": messages, "metadata": copy.deepcopy(self.metadata)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> StringThread:
        """Read back what `to_dict` wrote, or a dataset row with ``messages`` and ``completion``.

        Raises:
            InputError: For messages that are not a list of ``{"role", "content"}``.
        """
        messages, metadata = data.get("messages"), data.get("metadata")
        if not isinstance(messages, list):
            raise InputError("a thread needs 'messages', a list of {role, content}")
        thread = cls.from_messages(messages, metadata if isinstance(metadata, dict) else None)
        completion = data.get("completion")
        return thread.assistant(completion) if isinstance(completion, str) else thread

    @classmethod
    def from_messages(
        cls, messages: Sequence[Json], metadata: Mapping[str, Json] | None = None
    ) -> StringThread:
        """Read chat messages; content may be text, null, or a list of text parts.

        Raises:
            InputError: For a message without a role, or content of another kind.
        """
        turns: list[tuple[str, str]] = []
        for number, message in enumerate(messages):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise InputError(f"messages[{number}] needs a 'role' and a 'content'")
            turns.append((str(message["role"]), _content_text(message.get("content"), number)))
        return cls(turns, metadata)

    def _with(self, role: str, content: str) -> StringThread:
        return StringThread((*self.turns, (role, content)), self.metadata)


def _turn(turn: object, number: int) -> StringTurn:
    pair = cast("tuple[object, ...]", turn) if isinstance(turn, tuple) else ()
    if len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str):
        return StringTurn(pair[0], pair[1])
    raise InputError(f"turn {number} must be a (role, content) pair of texts, got {turn!r:.80}")


def _content_text(content: Json, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict)]
        return "\n".join(t for t in texts if isinstance(t, str))
    raise InputError(f"messages[{number}].content must be text or a list of parts")
