"""Who is calling: a bearer token, or an HMAC-SHA256 signature over time and body.

The signed text is ``timestamp.body``: the Unix time in whole seconds as decimal digits, a dot, the
bytes of the body. It goes into two headers, `TIMESTAMP` and `SIGNATURE` (``v1=`` and 64
hexadecimal digits). A signature is good for `WINDOW_SECONDS` before and after its time, and never
shows the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re

from assay.errors import GraderError

__all__ = [
    "SIGNATURE",
    "TIMESTAMP",
    "WINDOW_SECONDS",
    "auth_headers",
    "read_secret",
    "same_secret",
    "sign",
    "signature_problem",
]

TIMESTAMP = "X-Assay-Timestamp"
SIGNATURE = "X-Assay-Signature"
WINDOW_SECONDS = 300

_TIME = re.compile(r"[0-9]{1,12}")


def read_secret(variable: str) -> str:
    """The secret in an environment variable, without white space around it.

    Raises:
        GraderError: If it is not set, empty, or cannot stand in a header; it is not repeated.
    """
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise GraderError(
            f"the environment variable {variable} holds no secret",
            hint="set it where the grader runs",
        )
    if not (secret.isascii() and secret.isprintable()):
        raise GraderError(f"the secret in {variable} has characters that no header can hold")
    return secret


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a body sent at a time: ``v1=`` and hexadecimal digits."""
    message = timestamp.encode() + b"." + body
    return f"v1={hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()}"


def auth_headers(scheme: str, secret: str, body: bytes, now: float) -> dict[str, str]:
    """The headers that authenticate a request.

    Args:
        scheme: ``bearer``, ``hmac`` or ``none``.
        secret: The secret; unused for ``none``.
        body: What is sent.
        now: Unix time in seconds.
    """
    if scheme == "bearer":
        return {"Authorization": f"Bearer {secret}"}
    if scheme == "hmac":
        timestamp = str(int(now))
        return {TIMESTAMP: timestamp, SIGNATURE: sign(secret, timestamp, body)}
    return {}


def signature_problem(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> str:
    """What is wrong with a signed request; empty if nothing is."""
    if not _TIME.fullmatch(timestamp):
        return f"{TIMESTAMP} must be a Unix time in whole seconds"
    # The signature first: what is wrong with the time is told only to who knows the secret.
    if not same_secret(sign(secret, timestamp, body), signature):
        return "the signature does not fit the time and the body"
    if abs(now - int(timestamp)) > WINDOW_SECONDS:
        return f"the signature is not of the last {WINDOW_SECONDS} seconds; compare the clocks"
    return ""


def same_secret(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how much of them is."""
    digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (one, other))
    return hmac.compare_digest(*digests)
