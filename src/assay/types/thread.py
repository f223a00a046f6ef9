"""`StringThread`: a conversation as plain text turns, with metadata beside it.

This file is also loaded by itself in the sandbox, beside functions that nobody trusts, so that they
are given the very class that is used outside. Hence it imports nothing when it is loaded: there,
`typing` alone would cost more than the grading of ten answers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self, TypeGuard, overload

    from assay.scoring.json_safe import Json
    from assay.types.picture import Picture

    # What other systems' threads are made of: (role, text or parts).
    Fragments = Sequence[tuple[str, str | Sequence[Mapping[str, Json]]]]


class StringTurn(tuple[str, str]):
    """One turn: who spoke, and the text. Equal to the pair of both."""

    __slots__ = ()
    __match_args__ = ("role", "content")

    def __new__(cls, role: str, content: str) -> Self:
        """Make a turn of who spoke and what was said."""
        return super().__new__(cls, (role, content))

    def __getnewargs__(self) -> tuple[str, str]:
        return self[0], self[1]

    def __repr__(self) -> str:
        return f"StringTurn(role={self[0]!r}, content={self[1]!r})"

    @property
    def role(self) -> str:
        """Who spoke."""
        return self[0]

    @property
    def content(self) -> str:
        """What was said."""
        return self[1]


class StringThread:
    """A conversation. Immutable: methods that add a turn return a new thread.

    Roles are free text; ``system``, ``user``, ``assistant``, ``tool`` and ``document`` have a
    meaning to graders. Texts and pictures are kept; other parts of a message are left out.

    A thread is also read like the dictionary that `to_dict` gives: ``thread["messages"]``,
    ``thread["metadata"]``.

    Attributes:
        turns: The turns, oldest first.
        metadata: Anything that belongs to the sample. Copied deeply when a thread is made or
            extended, so that no grader can change what the next one sees.
        pictures: Pictures, each with the place of its turn, from 0. `images` gives them alone.

    Raises:
        InputError: For a turn that is not a pair of texts.
    """

    __slots__ = ("metadata", "pictures", "turns")
    __match_args__ = ("turns", "metadata")

    turns: tuple[StringTurn, ...]
    metadata: dict[str, Json]
    pictures: tuple[tuple[int, Picture], ...]

    def __init__(
        self,
        turns: Iterable[tuple[str, str]] | None = None,
        metadata: Mapping[str, Json] | None = None,
        pictures: Iterable[tuple[int, Picture]] = (),
    ) -> None:
        checked = tuple([_turn(turn, n) for n, turn in enumerate(turns or ())])
        object.__setattr__(self, "turns", checked)
        object.__setattr__(self, "pictures", tuple(pictures))
        object.__setattr__(self, "metadata", _copied(dict(metadata or {})))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a StringThread cannot be changed: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a StringThread cannot be changed: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.turns, self.metadata, self.pictures)

    def __repr__(self) -> str:
        return f"StringThread({len(self.turns)} turns, metadata={sorted(self.metadata)})"

    def __len__(self) -> int:
        return len(self.turns)

    def __iter__(self) -> Iterator[StringTurn]:
        return iter(self.turns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StringThread):
            return NotImplemented
        return (self.turns, self.metadata, self.pictures) == (
            other.turns,
            other.metadata,
            other.pictures,
        )

    def __hash__(self) -> int:
        return hash(self.turns)

    def __contains__(self, item: object) -> bool:
        return item in _KEYS if isinstance(item, str) else item in self.turns

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: str) -> Json: ...
        @overload
        def __getitem__(self, key: int) -> StringTurn: ...

    def __getitem__(self, key: str | int) -> Json | StringTurn:
        if isinstance(key, int):
            return self.turns[key]
        if key == "messages":
            return _messages(self)
        if key == "metadata":
            return self.metadata
        raise KeyError(key)

    def get(self, key: str, default: Json = None) -> Json:
        """``messages`` or ``metadata``, as from a dictionary; the default for any other key."""
        return self[key] if key in _KEYS else default

    def user(self, content: str) -> StringThread:
        """Add a user turn."""
        return self._with("user", content)

    def assistant(self, content: str) -> StringThread:
        """Add an assistant turn."""
        return self._with("assistant", content)

    def system(self, content: str) -> StringThread:
        """Add a system turn at the end."""
        return self._with("system", content)

    def tool(self, content: str, call_id: str | None = None) -> StringThread:
        """Add a tool result; its text is visible like any other turn's.

        Args:
            content: The result.
            call_id: The call it answers; taken for other systems' sake, and not kept.
        """
        del call_id
        return self._with("tool", content)

    def document(self, content: str) -> StringThread:
        """Add a document that the answer should be based on."""
        return self._with("document", content)

    def completion(self) -> str | None:
        """The text of the last turn if an assistant spoke it, else None."""
        return self.turns[-1][1] if self.turns and self.turns[-1][0] == "assistant" else None

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
            raise _wrong("the thread is empty, so it has no last content")
        return self.turns[-1][1]

    def last_user_turn(self) -> str | None:
        """The text of the last user turn, or None."""
        return next((text for role, text in reversed(self.turns) if role == "user"), None)

    def images(self) -> list[Picture]:
        """The pictures of all turns, in their order.

        Each has ``digest`` (SHA-256), ``media_type``, ``data`` (bytes), ``width`` and ``height``.
        """
        return [picture for _, picture in self.pictures]

    def documents(self) -> list[str]:
        """The texts of all document turns, wherever they stand."""
        return [text for role, text in self.turns if role == "document"]

    def get_fragments(self) -> list[tuple[str, list[Json]]]:
        """All turns as (role, parts), where a part is ``{"type": "text", "text": ...}``.

        A tool turn's part is ``{"type": "tool_response", "content": ..., "call_id": None}``, and a
        picture ``{"type": "image_url", "image_url": {"url": "data:..."}}``.
        """
        return [
            (role, [_fragment(role, text), *_parts(self, place)])
            for place, (role, text) in enumerate(self.turns)
        ]

    def last_turn_fragments(self) -> list[Json]:
        """The parts of the last turn; none for an empty thread."""
        return self.get_fragments()[-1][1] if self.turns else []

    @staticmethod
    async def from_fragments(
        turns: Fragments, metadata: Mapping[str, Json] | None = None
    ) -> StringThread:
        """Make a thread from (role, parts) pairs, as `get_fragments` gives them.

        Raises:
            InputError: For a turn of another kind.
        """
        found: list[tuple[int, Picture]] = []
        pairs = [_fragments_turn(turn, n, found) for n, turn in enumerate(turns)]
        return StringThread(pairs, metadata, _few(found))

    @staticmethod
    async def from_dataset(
        turns: Fragments | Sequence[Json], metadata: Mapping[str, Json] | None = None
    ) -> StringThread:
        """Make a thread from a dataset's turns: chat messages, or (role, text or parts) pairs.

        Raises:
            InputError: For a turn of another kind.
        """
        found: list[tuple[int, Picture]] = []
        pairs = [
            _message_turn(turn, n, found)
            if isinstance(turn, dict)
            else _fragments_turn(turn, n, found)
            for n, turn in enumerate(turns)
        ]
        return StringThread(pairs, metadata, _few(found))

    def to_dict(self) -> dict[str, Json]:
        """The thread as JSON: ``{"messages": [{"role", "content"}], "metadata": {}}``.

        The content of a turn with pictures is a list of parts, as in chat completions.
        """
        return {"messages": _messages(self), "metadata": _copied(self.metadata)}

    def to_json(self) -> str:
        """What `to_dict` gives, as text."""
        import json

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> StringThread:
        """Read back what `to_json` wrote.

        Raises:
            InputError: For text that is not the JSON of a thread.
        """
        import json

        try:
            data: Json = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _wrong(f"a thread's JSON cannot be read: {error}") from error
        if not isinstance(data, dict):
            raise _wrong("a thread's JSON must be an object with 'messages'")
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> StringThread:
        """Read back what `to_dict` wrote, or a dataset row with ``messages`` and ``completion``.

        Raises:
            InputError: For messages that are not a list of ``{"role", "content"}``.
        """
        messages, metadata = data.get("messages"), data.get("metadata")
        if not isinstance(messages, list):
            raise _wrong("a thread needs 'messages', a list of {role, content}")
        found: list[tuple[int, Picture]] = []
        turns = [_message_turn(message, number, found) for number, message in enumerate(messages)]
        completion = data.get("completion")
        if isinstance(completion, str):
            turns.append(("assistant", completion))
        return cls(turns, metadata if isinstance(metadata, dict) else None, _few(found))

    @classmethod
    def from_messages(
        cls, messages: Sequence[Json], metadata: Mapping[str, Json] | None = None
    ) -> StringThread:
        """Read chat messages; content may be text, null, or a list of parts: texts and pictures.

        Raises:
            InputError: For a message without a role, content of another kind, or a part that
                says that it is a picture and holds none.
        """
        found: list[tuple[int, Picture]] = []
        turns = [_message_turn(message, n, found) for n, message in enumerate(messages)]
        return cls(turns, metadata, _few(found))

    def _with(self, role: str, content: str) -> StringThread:
        return StringThread((*self.turns, (role, content)), self.metadata, self.pictures)


_KEYS = ("messages", "metadata")
_SCALARS = (str, int, float, bool)


def _wrong(message: str, cause: ValueError | None = None) -> ValueError:
    try:
        from assay.errors import InputError
    except ImportError:  # in the sandbox, where there is little of ours
        return ValueError(message)
    return InputError(message, hint=getattr(cause, "hint", ""))


def _turn(turn: object, number: int) -> StringTurn:
    if _is_tuple(turn) and len(turn) == 2:
        role, content = turn
        if isinstance(role, str) and isinstance(content, str):
            return turn if type(turn) is StringTurn else _pair(StringTurn, (role, content))
    raise _wrong(f"turn {number} must be a (role, content) pair of texts, got {turn!r:.80}")


def _is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(value, tuple)


_pair = tuple[str, str].__new__


def _message_turn(message: Json, number: int, found: list[tuple[int, Picture]]) -> tuple[str, str]:
    if type(message) is dict:  # as most are
        role, content = message.get("role"), message.get("content")
        if type(role) is str and type(content) is str:
            return role, content
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(role, str):
        raise _wrong(f"messages[{number}] needs a 'role' and a 'content'")
    content = message.get("content")
    return role, _content_text(content, f"messages[{number}].content", number, found)


def _fragments_turn(turn: object, number: int, found: list[tuple[int, Picture]]) -> tuple[str, str]:
    if _is_tuple(turn) and len(turn) == 2 and isinstance(turn[0], str):
        return turn[0], _content_text(turn[1], f"the content of turn {number}", number, found)
    raise _wrong(f"turn {number} must be a (role, parts) pair, got {turn!r:.80}")


def _content_text(content: object, what: str, number: int, found: list[tuple[int, Picture]]) -> str:
    """The words of a message's content; its pictures are added to those that were found."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if _is_list(content):
        from assay.types.picture import PICTURE_PARTS

        for place, part in enumerate(content):
            if _is_dict(part) and part.get("type") in PICTURE_PARTS:
                picture = _picture(part, f"{what}[{place}]")
                found += [] if picture is None else [(number, picture)]
        texts = [_part_text(part) if _is_dict(part) else part for part in content]
        return "\n".join([text for text in texts if isinstance(text, str)])
    raise _wrong(f"{what} must be text or a list of parts")


def _picture(part: dict[str, object], what: str) -> Picture | None:
    """The picture of a part; None where the part is a mere place of one."""
    from assay.types.picture import Picture, url_of

    try:
        url = url_of(part)
        return None if url is None else Picture.of_url(url)
    except ValueError as error:
        raise _wrong(f"{what}: {getattr(error, 'message', error)}", error) from None


def _few(found: list[tuple[int, Picture]]) -> list[tuple[int, Picture]]:
    if found:
        from assay.types.picture import require_few

        require_few(picture for _, picture in found)
    return found


def _part_text(part: dict[str, object]) -> object:
    return part.get("content") if part.get("type") == "tool_response" else part.get("text")


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_dict(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _fragment(role: str, text: str) -> Json:
    if role == "tool":
        return {"type": "tool_response", "content": text, "call_id": None}
    return {"type": "text", "text": text}


def _messages(thread: StringThread) -> list[Json]:
    if not thread.pictures:
        return [{"role": role, "content": text} for role, text in thread.turns]
    made: list[Json] = []
    for place, (role, text) in enumerate(thread.turns):
        shown = _parts(thread, place)
        said: list[Json] = [{"type": "text", "text": text}] if text else []
        made.append({"role": role, "content": [*said, *shown] if shown else text})
    return made


def _parts(thread: StringThread, place: int) -> list[Json]:
    """The pictures of a turn, as parts of a message."""
    return [picture.part for number, picture in thread.pictures if number == place]


if TYPE_CHECKING:

    @overload
    def _copied(value: dict[str, Json]) -> dict[str, Json]: ...
    @overload
    def _copied(value: Json) -> Json: ...


def _copied(value: Json) -> Json:
    """A deep copy; of what is not JSON too, which a thread made by hand may hold."""
    if value is None or type(value) in _SCALARS:
        return value
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    import copy

    return copy.deepcopy(value)
