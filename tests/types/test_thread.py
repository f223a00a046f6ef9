"""Conversations: a value that no method and no grader can change behind another's back."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.scoring import Json
from assay.types import StringThread, StringTurn, thread
from tests.children import printed
from tests.each import each

TALK = StringThread([("system", "be brief"), ("user", "2+2?"), ("assistant", "4")])


def test_a_conversation_is_built_turn_by_turn() -> None:
    thread = (
        StringThread().system("be brief").user("2+2?").tool("calc: 4").document("maths").user("ok?")
    )
    roles = [turn.role for turn in thread]
    assert roles == ["system", "user", "tool", "document", "user"]
    assert len(thread) == 5
    assert thread.assistant("4").completion() == "4"
    assert thread.completion() is None
    assert thread.documents() == ["maths"]
    assert thread.last_content() == "ok?"  # of any role
    with pytest.raises(InputError, match="empty"):
        StringThread().last_content()


@each(
    ("turns", "completion", "messages", "last_user"),
    [
        ([], None, 0, None),
        ([("user", "a")], None, 1, "a"),
        ([("assistant", "b")], "b", 0, None),
        ([("user", "a"), ("assistant", "b"), ("assistant", "c")], "c", 2, "a"),
        ([("user", "a"), ("assistant", "b"), ("user", "c")], None, 3, "c"),
        ([("user", "a"), ("assistant", "")], "", 1, "a"),
    ],
)
def test_views(
    turns: list[tuple[str, str]], completion: str | None, messages: int, last_user: str | None
) -> None:
    thread = StringThread(turns)
    assert thread.completion() == completion
    assert thread.messages() == [StringTurn(*turn) for turn in turns[:messages]]
    assert thread.get_turns() == turns
    assert thread.last_user_turn() == last_user


@each("turn", [["user", "a"], ("user",), ("user", 1), (None, "a"), "ab"])
def test_a_turn_is_a_pair_of_texts(turn: object) -> None:
    with pytest.raises(InputError, match="turn 1 must be"):
        StringThread([("user", "a"), cast("tuple[str, str]", turn)])


def test_values_are_equal_hashable_and_picklable() -> None:
    again = StringThread(TALK.turns)
    assert again == TALK
    assert hash(again) == hash(TALK)
    assert StringThread(TALK.turns, {"a": 1}) != TALK
    assert pickle.loads(pickle.dumps(TALK)) == TALK
    assert copy.deepcopy(TALK) == TALK
    assert pickle.loads(pickle.dumps(TALK.turns[0])) == StringTurn("system", "be brief")
    assert TALK.turns != TALK
    assert repr(TALK) == "StringThread(3 turns, metadata=[])"


def test_a_thread_cannot_be_changed_through_what_it_was_made_from() -> None:
    metadata: dict[str, Json] = {"tags": ["a"]}
    thread = StringThread([("user", "a")], metadata)
    longer = thread.assistant("b")
    metadata["tags"] = []
    cast("list[Json]", longer.metadata["tags"]).append("mine")
    cast("list[Json]", cast("dict[str, Json]", thread.to_dict()["metadata"])["tags"]).clear()
    assert thread.metadata == {"tags": ["a"]}
    assert len(thread) == 1
    kept = {"a"}  # what is no JSON is copied, too
    made = StringThread([], cast("dict[str, Json]", {"set": kept, "pair": (kept,)}))
    cast("set[str]", made.metadata["set"]).add("b")
    assert kept == {"a"}
    with pytest.raises(AttributeError):
        thread.turns = ()
    with pytest.raises(AttributeError):
        del thread.metadata


def test_a_turn_is_a_pair_with_names() -> None:
    turn = TALK.turns[1]
    assert turn == ("user", "2+2?") == (turn.role, turn.content)
    assert repr(turn) == "StringTurn(role='user', content='2+2?')"


def test_a_thread_reads_like_its_dictionary() -> None:
    made = StringThread([("user", "a"), ("assistant", "b")], {"k": 1})
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert made["messages"] == messages
    assert made["metadata"] == {"k": 1}
    assert made.get("messages") == messages
    assert (made.get("expected"), made.get("expected", "x")) == (None, "x")
    assert "metadata" in made
    assert "expected" not in made
    assert ("user", "a") in made
    assert made[-1] == ("assistant", "b")
    with pytest.raises(KeyError, match="answer"):
        made["answer"]


async def test_fragments_go_out_and_come_in() -> None:
    made = StringThread([("user", "a")], {"k": 1}).tool("42", call_id="c1")
    fragments = made.get_fragments()
    assert fragments == [
        ("user", [{"type": "text", "text": "a"}]),
        ("tool", [{"type": "tool_response", "content": "42", "call_id": None}]),
    ]
    assert made.last_turn_fragments() == fragments[1][1]
    assert StringThread().last_turn_fragments() == []
    read = cast("list[tuple[str, list[dict[str, Json]]]]", fragments)
    assert await StringThread.from_fragments(read, {"k": 1}) == made
    assert await StringThread.from_dataset(read, {"k": 1}) == made
    assert await StringThread.from_dataset([("user", "a"), ("tool", "42")], {"k": 1}) == made
    assert await StringThread.from_dataset(cast("list[Json]", made["messages"]), {"k": 1}) == made
    for wrong in ("ab", ("user",), (1, "a"), ("user", 1)):
        with pytest.raises(InputError, match="turn 0"):
            await StringThread.from_fragments(cast("list[tuple[str, str]]", [wrong]))


def test_what_is_no_threads_json_is_refused() -> None:
    for wrong in ("{", "[]", "[" * 100_000):
        with pytest.raises(InputError, match="a thread's JSON"):
            StringThread.from_json(wrong)


_ALONE = """
import sys
before = set(sys.modules)
names = {"__name__": "thread"}
exec(compile(sys.stdin.read(), "thread.py", "exec"), names)
assert set(sys.modules) - before <= {"__future__"}, set(sys.modules) - before
made = names["StringThread"].from_dict({"messages": [{"role": "user", "content": "a"}]})
assert made.assistant("b").completion() == "b"
try:
    names["StringThread"]([1])
except ValueError as error:
    print(error)
"""


def test_the_file_stands_by_itself_and_imports_nothing() -> None:
    source = Path(thread.__file__).read_text("utf-8")
    said = printed([sys.executable, "-I", "-S", "-c", _ALONE], stdin=source)
    assert "turn 0 must be a (role, content) pair" in said


TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant", "x"]), st.text()), max_size=4)


@given(TURNS, st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=3))
def test_a_thread_survives_its_json(
    turns: list[tuple[str, str]], metadata: dict[str, Json]
) -> None:
    thread = StringThread(turns, metadata)
    assert StringThread.from_dict(json.loads(json.dumps(thread.to_dict()))) == thread
    assert StringThread.from_json(thread.to_json()) == thread


def test_chat_messages_are_read_and_a_completion_beside_them() -> None:
    parts: list[Json] = [{"type": "text", "text": "look"}, {"type": "image_url"}, "there"]
    said: Json = {"role": "assistant", "content": None, "tool_calls": []}
    thread = StringThread.from_messages([{"role": "user", "content": parts}, said])
    assert thread.turns == (("user", "look\nthere"), ("assistant", ""))
    row: dict[str, Json] = {"messages": [{"role": "user", "content": "a"}], "completion": "b"}
    assert StringThread.from_dict(row).completion() == "b"


@each(
    ("data", "why"),
    [
        ({}, "needs 'messages'"),
        ({"messages": "hi"}, "needs 'messages'"),
        ({"messages": ["hi"]}, r"messages\[0\] needs a 'role'"),
        ({"messages": [{"role": "user", "content": 1}]}, r"messages\[0\].content must be text"),
    ],
)
def test_malformed_messages_are_refused(data: dict[str, Json], why: str) -> None:
    with pytest.raises(InputError, match=why):
        StringThread.from_dict(data)
