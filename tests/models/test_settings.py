"""How models are reached: the environment, the settings file, and where which key may go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, ModelError
from assay.models import (
    ModelEntry,
    ModelRef,
    ModelSettings,
    family_of,
    parse_reference,
    register_model,
    resolve,
    unconfigured,
)
from tests.each import each

KEYS = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "GEMINI_API_KEY": "sk-g"}


def settings(**environ: str) -> ModelSettings:
    return ModelSettings.from_environment(environ)


def written(folder: Path, text: str) -> str:
    file = folder / "models.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_the_variables_that_the_docs_of_the_settings_name_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    said = re.findall(r"``(ASSAY\w+)``", ModelSettings.from_environment.__doc__ or "")
    assert "ASSAY_MODEL_KEY" in said
    assert [name for name in said if f"`{name}`" not in page] == []


@each(
    "reference, protocol, base_url, key",
    [
        ("claude-haiku-4-5", "anthropic", "https://api.anthropic.com", "sk-a"),
        ("openai:gpt-5", "openai", "https://api.openai.com/v1", "sk-o"),
        ("google:g", "openai", "https://generativelanguage.googleapis.com/v1beta/openai", "sk-g"),
        ("http://127.0.0.1:1/v1#m", "openai", "http://127.0.0.1:1/v1", ""),
        ("anthropic+http://h#m", "anthropic", "http://h", ""),
    ],
)
def test_a_reference_leads_to_an_endpoint(
    reference: str, protocol: str, base_url: str, key: str
) -> None:
    found = resolve(reference, settings(**KEYS))
    assert (found.protocol, found.base_url, found.key) == (protocol, base_url, key)
    assert found.first_party is (key != "")


_OWN = {"ASSAY_MODEL_KEY": "k", "ASSAY_MODEL_URL": "https://h.example/v1"}


@each(
    "environ, url, key",
    [
        # No URL that is named gets a provider's key.
        (KEYS, "https://api.openai.com.evil.example/v1#gpt-5", ""),
        (KEYS, "https://api.openai.com/v1#gpt-5", ""),
        (KEYS, "https://evil.example/v1#gpt-5", ""),
        (KEYS, "anthropic+https://evil.example#claude-haiku-4-5", ""),
        ({"ASSAY_MODEL_KEY": "k"}, "http://127.0.0.1:9/v1#m", "k"),
        ({"ASSAY_MODEL_KEY": "k"}, "http://localhost/v1#m", "k"),
        ({"ASSAY_MODEL_KEY": "k"}, "https://evil.example/v1#m", ""),
        ({"ASSAY_MODEL_KEY": "k"}, "http://127.0.0.1.evil.example/v1#m", ""),
        (_OWN, "https://h.example/v1#m", "k"),
        (_OWN, "http://h.example/v1#m", ""),
        (_OWN, "http://127.0.0.1:9/v1#m", ""),
    ],
)
def test_the_key_for_urls_goes_where_it_is_meant_to(
    environ: dict[str, str], url: str, key: str
) -> None:
    assert resolve(url, settings(**environ)).key == key


def test_a_base_url_makes_a_key_optional_and_gets_the_providers_key() -> None:
    assert resolve("gpt-5", settings(OPENAI_BASE_URL="http://h:1/v1/")).base_url == "http://h:1/v1"
    found = resolve("gpt-5", settings(OPENAI_BASE_URL="http://h:1/v1", OPENAI_API_KEY="k"))
    assert (found.key, found.first_party) == ("k", False)
    found = resolve("claude-x", settings(ANTHROPIC_BASE_URL="http://h:1/v1"))
    assert found.base_url == "http://h:1"


@each(
    "reference, variable",
    [
        ("claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("gpt-5", "OPENAI_API_KEY"),
        ("gemini-3-pro", "GEMINI_API_KEY"),
        ("my-judge", "ASSAY_MODELS"),
    ],
)
def test_a_missing_key_names_its_variable_before_any_run(reference: str, variable: str) -> None:
    with pytest.raises(ModelError) as failure:
        resolve(reference, settings())
    assert failure.value.kind == "no_key"
    assert variable in unconfigured(reference, settings())


def test_what_can_be_asked_is_not_unconfigured() -> None:
    assert unconfigured("gpt-5", settings(**KEYS)) == ""
    assert unconfigured("gpt-5", settings(ASSAY_CACHE="replay")) == ""
    assert unconfigured("http://127.0.0.1:1/v1#m", settings()) == ""
    assert "no model" in unconfigured("mistral:", settings()) or unconfigured("x:", settings())

    async def complete(request: object) -> str:
        return "text"

    register_model("mine-for-settings", complete)
    try:
        assert unconfigured("mine-for-settings", settings()) == ""
    finally:
        register_model("mine-for-settings", None)


def test_a_gateway_takes_the_providers_models_and_no_others() -> None:
    gate = "https://gate.example/v1"
    own = settings(**KEYS, ASSAY_GATEWAY=gate, ASSAY_GATEWAY_KEY="g")
    for reference in ("claude-haiku-4-5", "openai:gpt-5", "google:gemini-3-pro"):
        found = resolve(reference, own)
        assert (found.base_url, found.key, found.protocol) == (gate, "g", "openai")
    assert resolve("http://127.0.0.1:1/v1#m", own).key == ""
    found = resolve("claude-x", settings(ASSAY_GATEWAY="anthropic+https://gate.example"))
    assert (found.protocol, found.base_url) == ("anthropic", "https://gate.example")


FILE = """
cache: readwrite
max_concurrency: 32
endpoints:
  local:
    base_url: http://127.0.0.1:8000/v1
    model: Qwen/Qwen3-8B
    structured: json_object
    requests_per_minute: 60
  azure:
    base_url: https://me.example/openai/v1
    model: gpt-5
    key_env: AZURE_KEY
    key_header: api-key
    headers: {x-team: graders}
  haiku:
    protocol: anthropic
    model: claude-haiku-4-5
  gpt-5:
    base_url: http://127.0.0.1:7/v1
"""


def test_the_settings_file_names_models(tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    own = settings(**KEYS, ASSAY_MODELS=file, AZURE_KEY="az", ASSAY_CACHE="read")
    assert (own.cache, own.max_concurrency) == ("read", 32)
    local = resolve("local", own)
    assert (local.model, local.structured, local.key) == ("Qwen/Qwen3-8B", "json_object", "")
    assert local.requests_per_minute == 60
    azure = resolve("azure", own)
    assert (azure.key, azure.key_header, azure.headers) == ("az", "api-key", {"x-team": "graders"})
    haiku = resolve("haiku", own)
    assert (haiku.base_url, haiku.key) == ("https://api.anthropic.com", "sk-a")
    assert resolve("gpt-5", own).base_url == "http://127.0.0.1:7/v1"  # the file goes before
    assert resolve("https://me.example/openai/v1#other", own).key == "az"
    with pytest.raises(ModelError, match="AZURE_KEY"):
        resolve("azure", settings(ASSAY_MODELS=file))


@each(
    ("text", "place", "problem"),
    [
        ("cash: on", "cash", "unknown field.*cache"),
        ("endpoints: [a]", "endpoints", "mapping"),
        ("endpoints: {a: {base: x}}", r"endpoints.a.base", "unknown field"),
        ("endpoints: {a: {base_url: 7}}", "endpoints.a.base_url", "text"),
        ("endpoints: {a: {protocol: soap}}", "endpoints.a", "protocol"),
        ("endpoints: {a: {structured: yes please}}", "endpoints.a", "structured"),
        ("endpoints: {a: {headers: {'x\\n': y}}}", "endpoints.a", "header"),
        ("endpoints: {'a:b': {}}", "endpoints.a:b", "name"),
        ("secrets: {OPENAI_API_KEY: sk}", "secrets", "not in a file"),
        ("cache: sometimes", "models.yaml: cache", "valid: off, read"),
        ("max_attempts: many", "models.yaml: max_attempts", "expected a whole number"),
        ("max_attempts: 0", "models.yaml: max_attempts", r"must be in \[1, 100\], got 0"),
        ("endpoints: {a: {max_concurrency: 0}}", "models.yaml: endpoints.a.max_c", "must be in"),
        ("a: [", "models.yaml:2", "expected"),
        ("- 1", "models.yaml", "mapping"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(
    tmp_path: Path, text: str, place: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as failure:
        settings(ASSAY_MODELS=written(tmp_path, text))
    assert place in str(failure.value)
    with pytest.raises(InputError, match="cannot be read"):
        settings(ASSAY_MODELS="/does/not/exist.yaml")


@each(
    "values",
    [
        {"cache": "on"},
        {"max_cost_usd": -1.0},
        {"max_cost_usd": float("nan")},
        {"max_cost_usd": True},
        {"max_attempts": 0},
        {"first_concurrency": 0},
        {"requests_per_minute": 0},
        {"breaker_after": "20"},
        {"gateway": "gate.example"},
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(values)) if "gateway" not in values else "URL"):
        ModelSettings(**values)
    with pytest.raises(InputError):
        ModelSettings.from_environment({}, **values)


def test_variables_are_read(tmp_path: Path) -> None:
    own = settings(
        ASSAY_CACHE="replay", ASSAY_CACHE_FILE=str(tmp_path / "c"), ASSAY_MAX_COST_USD=" 2.5 "
    )
    assert (own.cache, own.cache_file, own.max_cost_usd) == ("replay", str(tmp_path / "c"), 2.5)
    with pytest.raises(InputError, match="ASSAY_MAX_COST_USD"):
        settings(ASSAY_MAX_COST_USD="five")
    with pytest.raises(InputError, match="unknown model setting 'cash'"):
        ModelSettings.from_environment({}, cash="on")
    assert ModelSettings.from_environment({"ASSAY_CACHE": "read"}, cache="off").cache == "off"


def test_a_key_is_shown_nowhere() -> None:
    secret = "sk-very-secret"
    own = settings(OPENAI_API_KEY=secret, ASSAY_MODEL_KEY=secret, ASSAY_GATEWAY_KEY=secret)
    endpoint = resolve("gpt-5", own)
    headers = ModelEntry(headers={"x-secret": secret})
    assert endpoint.key == secret
    assert secret not in f"{own!r} {endpoint!r} {headers!r}"
    with pytest.raises(InputError) as failure:
        resolve("gpt-5", settings(OPENAI_API_KEY="sk-very secret"))
    assert "very" not in str(failure.value)


# --- References: what they mean, and what is none ---------------------------------------------


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
    own = ModelSettings(endpoints={"fj": ModelEntry(base_url="http://127.0.0.1:9/v1")})
    assert said in unconfigured(name, own)
