"""References of models: what they mean, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.models import (
    ModelEntry,
    ModelRef,
    ModelSettings,
    family_of,
    parse_reference,
    unconfigured,
)
from tests.each import each


@each(
    "text, expected",
    [
        ("anthropic:claude-haiku-4-5", ModelRef("anthropic", "claude-haiku-4-5")),
        ("openai:gpt-5.5", ModelRef("openai", "gpt-5.5")),
        ("google:gemini-3-flash", ModelRef("google", "gemini-3-flash")),
        ("claude-haiku-4-5", ModelRef("anthropic", "claude-haiku-4-5")),
        ("gpt-5", ModelRef("openai", "gpt-5")),
        ("chatgpt-4o-latest", ModelRef("openai", "chatgpt-4o-latest")),
        ("o3", ModelRef("openai", "o3")),
        ("o4-mini", ModelRef("openai", "o4-mini")),
        ("gemini-3-pro", ModelRef("google", "gemini-3-pro")),
        ("openai:ft:gpt-5:org:x", ModelRef("openai", "ft:gpt-5:org:x")),
        ("http://127.0.0.1:8000/v1#qwen", ModelRef("openai", "qwen", "http://127.0.0.1:8000/v1")),
        ("https://h/v1/#Qwen/Q-8B", ModelRef("openai", "Qwen/Q-8B", "https://h/v1")),
        ("https://h/v1/chat/completions#m", ModelRef("openai", "m", "https://h/v1")),
        ("http://[::1]:8/v1#m", ModelRef("openai", "m", "http://[::1]:8/v1")),
        ("anthropic+http://h:1#c", ModelRef("anthropic", "c", "http://h:1")),
        ("anthropic+https://h/v1/messages#c", ModelRef("anthropic", "c", "https://h")),
        ("http://h/v1#llama3:8b", ModelRef("openai", "llama3:8b", "http://h/v1")),
        ("my-judge", ModelRef("", "my-judge")),
        ("o3x", ModelRef("", "o3x")),
    ],
)
def test_a_reference_names_a_model(text: str, expected: ModelRef) -> None:
    assert parse_reference(text) == expected


@each(
    "text",
    [
        *("", "openai:", "mistral:large", "http://127.0.0.1:8000/v1", "http://h/v1#", "http://#m"),
        *("http://h:99999/v1#m", "http://h/v1?key=1#m", "ftp://h/v1#m", "file:///etc/passwd#m"),
        *("http://h/v1#a b", "openai:gpt 5", "a judge", "gpt-5\n", "http://h/v1#m#n", "x" * 600),
        *("http://me:hunter2@h/v1#m", "http://me:hunter2@h/v1"),
    ],
)
def test_what_names_no_model_is_refused_and_no_password_repeated(text: str) -> None:
    with pytest.raises(InputError) as failure:
        parse_reference(text)
    assert "hunter2" not in str(failure.value)


def test_a_wrong_provider_is_told_which_was_meant() -> None:
    with pytest.raises(InputError, match="did you mean 'anthropic'"):
        parse_reference("antropic:claude-haiku-4-5")


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InputError:
        return
    assert parse_reference(str(reference)) == reference


@each(
    "reference, family",
    [
        ("claude-haiku-4-5", "anthropic"),
        ("anthropic:claude-opus-4-7", "anthropic"),
        ("openai:gpt-5", "openai"),
        ("o3-mini", "openai"),
        ("openai:something-new", "openai"),
        ("google:gemini-3-flash", "google"),
        ("http://h/v1#google/gemma-3-27b-it", "google"),
        ("http://h/v1#Qwen/Qwen3-8B", "qwen"),
        ("http://openai.example/v1#mystery", ""),
        ("http://h/v1#meta-llama/Llama-3.3-70B-Instruct", "meta"),
        ("http://h/v1#deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek"),
        ("openrouter/anthropic/claude-sonnet-5", "anthropic"),
        ("http://h/v1#mistralai/Mixtral-8x7B", "mistral"),
        ("http://h/v1#gpt-oss-120b", "openai"),
        ("http://h/v1#nvidia/Llama-3.1-Nemotron-70B", "meta"),
        ("http://h/v1#video3", ""),
        ("", ""),
    ],
)
def test_a_family_is_told_by_the_name(reference: str, family: str) -> None:
    assert family_of(reference) == family


@each(
    "name, said",
    [
        ("fjj", "did you mean 'fj'? Else name it"),
        ("clade-haiku-4-5", "did you mean 'claude-haiku-4-5'? Else name it"),
        ("nothing-like-it-at-all", "(name it in the file"),
    ],
)
def test_the_nearest_name_is_told(name: str, said: str) -> None:
    settings = ModelSettings(endpoints={"fj": ModelEntry(base_url="http://127.0.0.1:9/v1")})
    assert said in unconfigured(name, settings)
