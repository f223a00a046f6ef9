"""The providers that are known by name: where they are, and which variables hold their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.models.reference import check_base_url

__all__ = ["MODEL_KEY", "MODEL_URL", "PROVIDER_TABLE", "Protocol", "Provider", "read_gateway"]

Protocol: TypeAlias = Literal["openai", "anthropic"]

MODEL_KEY, MODEL_URL = "ASSAY_MODEL_KEY", "ASSAY_MODEL_URL"
"""Variables: a key for references that are URLs, and the address that it is for."""


@dataclass(frozen=True, slots=True)
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
