"""API keys: made here, shown once, and known to the database by their hash only."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

__all__ = ["NewKey", "hash_secret", "new_key"]


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made.

    Attributes:
        token: What its owner sends; it exists nowhere else.
        prefix: The beginning of the token, by which people tell keys apart.
        hashed: What is stored of it.
    """

    token: str
    prefix: str
    hashed: str


def new_key() -> NewKey:
    """Make a key: ``assay_<8 letters and digits>_<43 letters, digits, - and _>``."""
    prefix = f"assay_{secrets.token_hex(4)}"
    token = f"{prefix}_{secrets.token_urlsafe(32)}"
    return NewKey(token, prefix, hash_secret(token))


def hash_secret(secret: str) -> str:
    """SHA-256 in hex: enough for 256 random bits, which nobody can guess through."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
