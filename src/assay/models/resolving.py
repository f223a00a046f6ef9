"""`resolve`: from a model reference to all that is needed to ask the model.

Keys come from the environment only. The key of a provider is sent to that provider's base URL and
to nowhere else: a reference that names another URL, which may come from someone else's file, gets
no key but one that was given for that very URL.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Literal
from urllib.parse import urlsplit

from assay.conversation.capability import Capability
from assay.conversation.messages import Rung
from assay.errors import InputError, ModelError, nearest
from assay.frozen import frozen
from assay.models.reference import (
    MODEL_KEY,
    MODEL_URL,
    PROVIDER_TABLE,
    ModelRef,
    Protocol,
    Provider,
    check_base_url,
    parse_reference,
    read_gateway,
)
from assay.models.settings import ModelEntry, ModelSettings


@frozen(kw_only=True)
class Endpoint:
    """A model, found: all that is needed to ask it.

    Attributes:
        protocol: Whose protocol is spoken.
        base_url: Where, without a slash at its end.
        model: The model's name there.
        name: The reference that led here, for messages.
        key: Sent as the protocol wants it; empty for none. Shown nowhere.
        key_header: Header that carries the key instead of the protocol's own.
        headers: Further headers. Shown nowhere.
        structured: How replies are made to have their shape; empty to find out.
        first_party: Whether it is the provider's own address.
        responses: Whether it speaks OpenAI's responses beside its chat completions.
        first_concurrency: Requests in flight at first.
        max_concurrency: Most of them.
        requests_per_minute: None for no such limit.
        tokens_per_minute: None for no such limit.
        limits_of: The settings entry whose own limits these are; empty for those of the settings.
        missing: What to do before it can be asked; empty if nothing.
    """

    protocol: Protocol
    base_url: str
    model: str
    name: str
    key: str = field(default="", repr=False)
    key_header: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    structured: Rung | Literal[""] = ""
    first_party: bool = False
    responses: bool = False
    first_concurrency: int = 16
    max_concurrency: int = 256
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    limits_of: str = ""
    missing: str = ""


def resolve(reference: str | ModelRef, settings: ModelSettings) -> Endpoint:
    """Find a model that can be asked.

    Args:
        reference: A model reference. A name of the settings file goes before a provider's.
        settings: Where to look.

    Raises:
        InputError: If the reference cannot be read.
        ModelError: ``no_key`` if nobody said how to reach it; names the variable to set.
    """
    found = find(reference, settings)
    if found.missing:
        message = f"there is no key to ask {found.name!r} with"
        raise ModelError(message, kind="no_key", hint=found.missing)
    return found


def find(reference: str | ModelRef, settings: ModelSettings) -> Endpoint:
    """Find a model, whether or not there is a key to ask it with.

    Raises:
        InputError: If the reference cannot be read.
        ModelError: ``no_key`` if it is a name that nobody gave.
    """
    text = str(reference)
    entry = settings.endpoints.get(text)
    if entry is not None:
        return _of_entry(text, entry, settings, limits_of=text)
    ref = parse_reference(reference) if isinstance(reference, str) else reference
    if ref.base_url:
        return _of_url(text, ref, settings)
    if not ref.provider:
        raise ModelError(
            f"the model {text!r} is not configured",
            kind="no_key",
            hint=f"{_meant(text, settings)}name it in the file of ASSAY_MODELS, call "
            "register_model, or write provider:NAME or URL#NAME",
        )
    if settings.gateway:
        protocol, base = read_gateway(settings.gateway)
        key = _secret(settings, settings.gateway_key_env)
        return _endpoint(text, protocol, base, ref.name, settings, key=key)
    provider = PROVIDER_TABLE[ref.provider]
    own = settings.secrets.get(provider.url_variable, "")
    base = check_base_url(own, provider.protocol) if own else provider.base_url
    key = _key_of(provider, settings)
    missing = ""
    if not key and not own:
        missing = f"set {provider.key_variables[0]}"
        missing += f", or {provider.url_variable} for a server that needs none"
    first = base == provider.base_url
    return _endpoint(
        text,
        provider.protocol,
        base,
        ref.name,
        settings,
        key=key,
        first_party=first,
        missing=missing,
    )


def _meant(name: str, settings: ModelSettings) -> str:
    """The nearest name of the settings file, or of a provider's model with a price; "" if none."""
    from assay.models.prices import packaged_models

    said = nearest(name, [*settings.endpoints, *packaged_models()])
    return f"{said} Else " if said.startswith("did you mean") else ""


def _of_entry(name: str, entry: ModelEntry, settings: ModelSettings, *, limits_of: str) -> Endpoint:
    own = PROVIDER_TABLE[entry.protocol]
    base = entry.base_url or own.base_url
    # The provider's key is for its own address only, whatever the entry says.
    is_own = base == own.base_url
    key = (
        _secret(settings, entry.key_env) if entry.key_env or not is_own else _key_of(own, settings)
    )
    missing = ""
    if not key and (entry.key_env or is_own):
        missing = f"set {entry.key_env or own.key_variables[0]}"
    return _endpoint(
        name,
        entry.protocol,
        base,
        entry.model or name,
        settings,
        key=key,
        first_party=is_own,
        entry=entry,
        limits_of=limits_of,
        missing=missing,
    )


def _of_url(text: str, ref: ModelRef, settings: ModelSettings) -> Endpoint:
    protocol: Protocol = "anthropic" if ref.provider == "anthropic" else "openai"
    for named, entry in settings.endpoints.items():
        if entry.base_url == ref.base_url and entry.protocol == protocol:
            found = _of_entry(text, entry, settings, limits_of=named)
            return dataclasses.replace(found, model=ref.name)
    key = _secret(settings, MODEL_KEY)
    if key and not _may_have_model_key(ref.base_url, settings.secrets.get(MODEL_URL, "")):
        key = ""
    return _endpoint(text, protocol, ref.base_url, ref.name, settings, key=key)


def _may_have_model_key(base_url: str, allowed: str) -> bool:
    """Whether a URL that somebody wrote somewhere is where the key for URLs is meant to go."""
    where = urlsplit(base_url)
    if allowed:
        meant = urlsplit(check_base_url(allowed, "openai"))
        return (where.scheme, where.netloc) == (meant.scheme, meant.netloc)
    return where.hostname in ("localhost", "127.0.0.1", "::1")


def _endpoint(
    name: str,
    protocol: Protocol,
    base_url: str,
    model: str,
    settings: ModelSettings,
    *,
    key: str = "",
    first_party: bool = False,
    entry: ModelEntry | None = None,
    limits_of: str = "",
    missing: str = "",
) -> Endpoint:
    entry = entry or ModelEntry()
    own = (entry.max_concurrency, entry.requests_per_minute, entry.tokens_per_minute)
    most = entry.max_concurrency or settings.max_concurrency
    return Endpoint(
        protocol=protocol,
        base_url=base_url,
        model=model,
        name=name,
        key=key,
        key_header=entry.key_header,
        headers=entry.headers,
        structured=entry.structured,
        first_party=first_party,
        responses=entry.responses or base_url == PROVIDER_TABLE["openai"].base_url,
        first_concurrency=min(settings.first_concurrency, most),
        max_concurrency=most,
        requests_per_minute=entry.requests_per_minute or settings.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute or settings.tokens_per_minute,
        limits_of=limits_of if any(own) else "",
        missing=missing,
    )


def _key_of(provider: Provider, settings: ModelSettings) -> str:
    return next((key for name in provider.key_variables if (key := _secret(settings, name))), "")


def _secret(settings: ModelSettings, variable: str) -> str:
    key = settings.secrets.get(variable, "") if variable else ""
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        # Not quoted: it is a key, if a broken one.
        raise InputError(f"{variable} holds blanks or control characters, which no key has")
    return key


_LADDERS: dict[str, tuple[Rung, ...]] = {
    "openai": ("json_schema", "tool", "json_object", "text"),
    "anthropic": ("json_schema", "tool", "text"),
}


def first_capability(endpoint: Endpoint) -> Capability:
    """What is known of a model before it was asked."""
    rungs = _LADDERS[endpoint.protocol]
    capability = Capability(rungs, endpoint.structured or rungs[0])
    if endpoint.protocol == "anthropic":
        capability.refused = frozenset({"seed"})
    elif endpoint.first_party and "api.openai.com" in endpoint.base_url:
        capability.token_field = "max_completion_tokens"  # noqa: S105 - its reasoning models' only
    return capability


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """What identifies us to the endpoint, and the version of the protocol."""
    key, own = endpoint.key, endpoint.key_header
    if endpoint.protocol == "anthropic":
        return {"anthropic-version": "2023-06-01", **({own or "x-api-key": key} if key else {})}
    return {own or "Authorization": key if own else f"Bearer {key}"} if key else {}
