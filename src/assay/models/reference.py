"""`ModelRef`: which model is meant, as one line of text says it.

A reference is ``provider:NAME``, an URL with the model's name behind ``#``, a bare name of a known
family (``claude-...``, ``gpt-...``, ``gemini-...``), or a name that the settings file or
`register_model` gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.errors import InputError, nearest

__all__ = ["PROVIDERS", "ModelRef", "parse_reference"]

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


@dataclass(frozen=True, slots=True)
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
    raise InputError(f"{text!r} is no model reference", hint=hint)


_FORMS = "such as anthropic:NAME, openai:NAME, google:NAME or http://127.0.0.1:8000/v1#NAME"


def check_base_url(url: str, protocol: str) -> str:
    """A base URL without what is added to it: the route, and a slash at its end.

    Raises:
        InputError: If it is no plain URL of a host: the message tells no password in it.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        port = parts.port  # raises if it is none
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
        raise InputError(f"{told!r} names no model: {name!r} is no model's name", hint=_FORMS)
    return name
