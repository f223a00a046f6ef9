"""`ModelRef`: which model is meant, as one line of text says it.

A reference is ``provider:NAME``, a URL with the model's name behind ``#``, a bare name of a known
family (``claude-...``, ``gpt-...``, ``gemini-...``), or a name that the settings file or
`register_model` gives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

from assay.conversation.messages import Reply, Request
from assay.errors import InputError, nearest
from assay.frozen import frozen

PROVIDERS = ("anthropic", "openai", "google")
"""Providers that are known by name."""

_BARE = (
    ("anthropic", re.compile(r"claude-")),
    ("openai", re.compile(r"(gpt|chatgpt)-|o[134](-|$)")),
    ("google", re.compile(r"gemini-")),
)
_NAME = re.compile(r"[\w.@+-]+(?:[/:][\w.@+-]+)*", re.ASCII)
_OWN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_URL = re.compile(r"(?:(?P<protocol>anthropic|openai)\+)?(?P<url>https?://[^#]*)#(?P<name>.*)")
_ROUTES = {"openai": ("/chat/completions",), "anthropic": ("/v1/messages", "/messages", "/v1")}
_LONGEST = 500


@frozen
class ModelRef:
    """A model, named.

    Attributes:
        provider: ``anthropic``, ``openai`` or ``google``; with a `base_url`, whose protocol is
            spoken there; empty for a name of the settings file or of `register_model`.
        name: The model's name, as it is told to the provider.
        base_url: Where it is, without a slash at its end; empty for the provider's own address.
    """

    provider: str
    name: str
    base_url: str = ""

    def __str__(self) -> str:
        if not self.base_url:
            return f"{self.provider}:{self.name}" if self.provider else self.name
        prefix = "anthropic+" if self.provider == "anthropic" else ""
        return f"{prefix}{self.base_url}#{self.name}"


def parse_reference(text: str) -> ModelRef:
    """Read a reference.

    Args:
        text: ``anthropic:NAME``, ``openai:NAME``, ``google:NAME``, ``http(s)://host/v1#NAME``
            (OpenAI's protocol), ``anthropic+http(s)://host#NAME`` (Anthropic's), a bare
            ``claude-*``, ``gpt-*``, ``chatgpt-*``, ``o1*``, ``o3*``, ``o4*`` or ``gemini-*``, or a
            name of one's own: letters, digits, ``.``, ``_`` and ``-``.

    Returns:
        What it says. That a name of one's own is known to anyone is seen when it is resolved.

    Raises:
        InputError: If it is none of these.
    """
    if not text or len(text) > _LONGEST or not text.isprintable():
        raise InputError(f"a model reference is one line of text, got {text[:80]!r}", hint=_FORMS)
    if "://" in text:
        return _at_url(text)
    provider, colon, name = text.partition(":")
    if colon and provider in PROVIDERS:
        return ModelRef(provider, _model_name(name, text))
    for known, pattern in _BARE:
        if pattern.match(text):
            return ModelRef(known, _model_name(text, text))
    if _OWN_NAME.fullmatch(text):
        return ModelRef("", text)
    hint = nearest(provider, list(PROVIDERS)) if colon else _FORMS
    raise InputError(f"{text!r} is not a model reference", hint=hint)


_FORMS = "such as anthropic:NAME, openai:NAME, google:NAME or http://127.0.0.1:8000/v1#NAME"


def check_base_url(url: str, protocol: str) -> str:
    """A base URL without what is added to it: the route, and a slash at its end.

    Raises:
        InputError: If it is not a plain URL of a host. The message never shows a password.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        port = parts.port  # raises if it is invalid
    except ValueError:
        usable, parts, port = False, urlsplit(""), None
    if not usable or port == 0 or any(character.isspace() for character in url):
        raise InputError("a model's base URL is http(s)://host[:port]/path", hint=_FORMS)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            f"the base URL of a model at {parts.hostname} has a user, a query or a fragment in it",
            hint="name the variable of its key in the settings file (key_env)",
        )
    base = url.rstrip("/")
    for route in _ROUTES[protocol]:
        base = base.removesuffix(route)
    return base.rstrip("/")


def _at_url(text: str) -> ModelRef:
    match = _URL.fullmatch(text)
    if match is None:
        where = text.partition("@")[2] or text  # no password in a message
        raise InputError(
            f"the reference to {where!r} does not say which model is meant",
            hint="put its name behind '#': http://127.0.0.1:8000/v1#NAME",
        )
    protocol = match["protocol"] or "openai"
    base = check_base_url(match["url"], protocol)
    return ModelRef(protocol, _model_name(match["name"], base), base)


def _model_name(name: str, told: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(f"{told!r} names no model: {name!r} is not a model's name", hint=_FORMS)
    return name


Protocol: TypeAlias = Literal["openai", "anthropic"]

MODEL_KEY, MODEL_URL = "ASSAY_MODEL_KEY", "ASSAY_MODEL_URL"
"""Variables: a key for references that are URLs, and the address that it is for."""


@frozen
class Provider:
    """A provider.

    Attributes:
        protocol: Whose protocol it speaks.
        base_url: Its own address.
        url_variable: Variable that holds another address to use for it.
        key_variables: Variables that may hold its key, the first one first.
    """

    protocol: Protocol
    base_url: str
    url_variable: str
    key_variables: tuple[str, ...]


PROVIDER_TABLE: Mapping[str, Provider] = {
    "anthropic": Provider(
        "anthropic", "https://api.anthropic.com", "ANTHROPIC_BASE_URL", ("ANTHROPIC_API_KEY",)
    ),
    "openai": Provider(
        "openai", "https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",)
    ),
    "google": Provider(
        "openai",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_BASE_URL",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
}


def read_gateway(url: str) -> tuple[Protocol, str]:
    """Protocol and base URL of a gateway, as its setting says them.

    Raises:
        InputError: If it is no URL.
    """
    bare = url.removeprefix("anthropic+")
    protocol: Protocol = "openai" if bare == url else "anthropic"
    return protocol, check_base_url(bare, protocol)


Complete: TypeAlias = Callable[[Request], Awaitable[Reply | str]]
"""Answers a request: with text, or with a `Reply` that also knows its model, usage and cost."""

_REGISTERED: dict[str, Complete] = {}


def register_model(name: str, complete: Complete | None) -> None:
    """Give a model a name that every reference may use, in the whole process.

    The shape that a reply has to have stands in words at the end of the last message; replies are
    validated, repaired, cached and counted as those of any other model. Trying again is the
    function's own matter: what it raises ends the request.

    Args:
        name: Letters, digits, ``.``, ``_`` and ``-``. It goes before a name of the settings file.
        complete: What answers; registered again it replaces the former one, None removes it.

    Raises:
        InputError: If the name is none, or belongs to a provider's models (``gpt-...``).
    """
    reference = parse_reference(name)
    if reference.provider or reference.base_url:
        raise InputError(
            f"{name!r} cannot be registered: it means a model of {reference.provider}",
            hint="choose a name of its own, such as my-judge",
        )
    if complete is None:
        _REGISTERED.pop(name, None)
    else:
        _REGISTERED[name] = complete


def registered(name: str) -> Complete | None:
    """What was registered under a name."""
    return _REGISTERED.get(name)


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
