"""`family_of`: who made a model, by its name; for telling when a judge judges its own kind."""

from __future__ import annotations

import functools
import re

__all__ = ["family_of"]

_FAMILIES = (
    ("anthropic", "claude anthropic"),
    ("openai", "gpt chatgpt davinci codex openai o1 o3 o4"),
    ("google", "gemini gemma palm medgemma google"),
    ("meta", "llama codellama meta"),
    ("mistral", "mistral mistralai mixtral ministral magistral codestral devstral pixtral"),
    ("qwen", "qwen qwq qvq"),
    ("deepseek", "deepseek"),
    ("xai", "grok xai"),
    ("cohere", "command cohere c4ai aya"),
    ("microsoft", "phi wizardlm microsoft"),
    ("zhipu", "glm chatglm zai"),
    ("moonshot", "kimi moonshot moonshotai"),
    ("minimax", "minimax"),
    ("amazon", "nova titan amazon"),
    ("ibm", "granite"),
    ("allenai", "olmo tulu allenai"),
    ("nvidia", "nemotron nvidia"),
    ("01ai", "yi"),
    ("tencent", "hunyuan"),
    ("baidu", "ernie"),
    ("bytedance", "doubao"),
    ("tii", "falcon"),
    ("prometheus", "prometheus"),
    ("selene", "selene"),
)
_FAMILY = {word: family for family, words in _FAMILIES for word in words.split()}
# A word begins where letters begin, and ends where they end: "qwen3", "Llama-3.1", "o3-mini".
_WORD = re.compile(r"(?<![a-z])(o[134](?![a-z0-9])|c4ai|[a-z]+)")


@functools.lru_cache(maxsize=1_024)
def family_of(reference: str) -> str:
    """Who made a model.

    Args:
        reference: A model reference, or a model's name; also inside a path (``org/name``).

    Returns:
        ``anthropic``, ``openai``, ``google``, ``meta``, ``mistral``, ``qwen``, ``deepseek`` ...:
        of the first word in the name that is known, the last part of a path before the rest;
        failing that the provider of ``provider:NAME``; else empty.
    """
    where, mark, name = reference.lower().rpartition("#")
    provider, colon, after = ("", "", name) if mark or "://" in where else name.partition(":")
    if not colon or provider not in ("anthropic", "openai", "google"):
        after = name
    for part in reversed(after.split("/")):
        for match in _WORD.finditer(part):
            if family := _FAMILY.get(match[0], ""):
                return family
    return provider if provider in ("anthropic", "openai", "google") else ""
