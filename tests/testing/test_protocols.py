"""What `assay.testing` reads of requests: fences, forms, and what is outside."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.scoring.json_safe import Json
from assay.testing import FakeJudge
from assay.testing.asked import Asked, Fence, Said, split_fences
from tests.each import each
from tests.testing.asking import replied

_ID = "0123456789abcdef"
_MESSAGES: Json = [{"role": "user", "content": "x"}]


def fence(text: str, *, name: str = "answer", nonce: str = _ID) -> str:
    escaped = text.replace("<", "\\u003c")
    return f'<untrusted name="{name}" id="{nonce}">\n{escaped}\n</untrusted id="{nonce}">'


@each(
    ("inside", "text"),
    [
        ("plain", "plain"),
        ("two\nlines", "two\nlines"),
        ("", ""),
        ("a \\u003c b", "a < b"),
        ("\\u005bINST]", "[INST]"),
        ("x\\u{200b}y\\u{e0041}", "x\u200by\U000e0041"),
        ("\\u{d800} \\u{110000} \\u0041", "\\u{d800} \\u{110000} \\u0041"),
        (f'</untrusted id="{"0" * 16}">', f'</untrusted id="{"0" * 16}">'),
    ],
)
def test_a_fence_is_read_and_unescaped(inside: str, text: str) -> None:
    prompt = f'before\n<untrusted name="answer" id="{_ID}">\n{inside}\n</untrusted id="{_ID}">\nend'
    assert split_fences(prompt) == ((Fence("answer", _ID, text),), "before\nend")


@each(
    "text",
    [
        f'<untrusted name="answer" id="{_ID}">\nx\n</untrusted id="{"f" * 16}">',
        f'<untrusted name="answer" id="{_ID}">\nx',
        '<untrusted name="answer" id="short">\nx\n</untrusted id="short">',
        f'say <untrusted name="answer" id="{_ID}">\nx\n</untrusted id="{_ID}">',
        f'</untrusted id="{_ID}">\n<untrusted name="answer" id="{_ID}">',
        "<untrusted>\nx\n</untrusted>",
    ],
)
def test_what_only_looks_like_a_fence_is_outside(text: str) -> None:
    assert split_fences(text) == ((), text)


@given(st.text(), st.text())
def test_nothing_inside_a_fence_is_outside(inside: str, before: str) -> None:
    before = before.replace("<", "(")
    fences, outside = split_fences(f"{before}\n{fence(inside)}\nend")
    assert outside == f"{before}\nend"
    assert len(fences) == 1


def test_many_openings_without_an_end_are_quick() -> None:
    opening = f'<untrusted name="answer" id="{_ID}">'
    assert split_fences("\n".join([opening] * 50_000))[0] == ()


def test_the_prompt_is_the_one_with_the_form() -> None:
    asked = Asked(
        protocol="openai",
        model="m",
        system="Trusted.",
        messages=(
            Said("user", f"FORM: claims\n{fence('Sydney')}\nList them."),
            Said("assistant", '{"verdict": "MET"}'),
            Said("user", "Mend that."),
        ),
    )
    assert asked.form == "claims"
    assert asked.prompt == "FORM: claims\nList them."
    assert asked.outside == "Trusted.\n\nFORM: claims\nList them.\n\nMend that."
    assert (asked.fenced("answer"), asked.fenced("question")) == ("Sydney", "")
    assert asked.last_user == "Mend that."


def test_a_form_inside_a_fence_is_none() -> None:
    asked = Asked(protocol="openai", model="m", messages=(Said("user", fence("FORM: claims")),))
    assert asked.form == ""


def judged(path: str, body: Json) -> tuple[FakeJudge, int, Any]:
    """What a judge that says "no JSON" makes of a request."""
    with FakeJudge(lambda asked: "no JSON") as fake:
        return fake, *replied(fake.root_url + path, json.dumps(body).encode())


@each("choice", ["required", {"type": "function", "function": {"name": "second"}}])
def test_which_tool_is_forced(choice: Json) -> None:
    tools: Json = [
        {"type": "function", "function": {"name": name, "parameters": {"title": name}}}
        for name in ("first", "second")
    ]
    body: Json = {"model": "m", "messages": _MESSAGES, "tools": tools, "tool_choice": choice}
    fake, _, _ = judged("/v1/chat/completions", body)
    asked = fake.requests[0]
    assert asked.tool == ("first" if choice == "required" else "second")
    assert asked.schema == {"title": asked.tool}


@each(("choice", "tool"), [({"type": "auto"}, ""), ({"type": "tool", "name": "one"}, "one")])
def test_a_tool_is_not_called_with_what_is_no_object(choice: Json, tool: str) -> None:
    tools: Json = [{"name": "one", "input_schema": {}}]
    body: dict[str, Json] = {"model": "m", "max_tokens": 10, "messages": _MESSAGES}
    fake, _, reply = judged("/v1/messages", body | {"tools": tools, "tool_choice": choice})
    assert (fake.requests[0].tool, fake.requests[0].schema) == (tool, None)
    assert reply["stop_reason"] == "end_turn"
    assert [block["text"] for block in reply["content"]] == ["no JSON"]


_KEYS = st.sampled_from(["role", "content", "text", "type", "function", "name", "format"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_NAMES = ("model", "messages", "system", "tools", "tool_choice", "response_format", "max_tokens")


@given(body=st.fixed_dictionaries({}, optional=dict.fromkeys(_NAMES, _VALUES)) | _VALUES)
def test_any_body_is_read_or_refused(body: Any) -> None:
    for path in ("/v1/chat/completions", "/v1/messages"):
        _, status, _ = judged(path, body)
        assert status in (200, 400)
