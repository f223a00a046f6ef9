"""`EndpointSettings`: where an endpoint is, how it is spoken to, and how much it may take.

Who is calling is shown by a bearer token, or an HMAC-SHA256 signature over time and body. The
signed text is ``timestamp.body``: the Unix time in whole seconds as decimal digits, a dot, the
bytes of the body. It goes into two headers, `TIMESTAMP` and `SIGNATURE` (``v1=`` and 64
hexadecimal digits). A signature is good for `WINDOW_SECONDS` before and after its time, and never
shows the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from assay.errors import GraderError, InputError
from assay.graders.endpoints.guard import check_url, is_loopback_url
from assay.types.codec import Within, check_fields

Protocol: TypeAlias = Literal["assay", "adaptive", "openrlhf", "nemo_gym"]
Auth: TypeAlias = Literal["bearer", "hmac", "none"]

_VARIABLE = re.compile(r"ASSAY_SECRET_[A-Z0-9_]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """One endpoint, and how it is called.

    Attributes:
        url: Its base URL; the protocol's route is added unless the URL ends with it already.
        protocol: The wire form it speaks.
        auth: ``bearer``, ``hmac`` or ``none``; None is ``bearer`` where there is a secret.
        secret_env: Name of the environment variable that holds the secret, such as
            ``ASSAY_SECRET_REWARDS``.
        timeout_seconds: One deadline for a batch, over all its tries.
        retries: Further tries after the first.
        batch: Items in one request.
        parallel: Requests at once.
        allow_internal: Whether loopback and private addresses may be called.
        range: Lowest and highest score that it gives; outside is an error of the item.
    """

    url: str
    protocol: Protocol = "assay"
    auth: Auth | None = None
    secret_env: str = ""
    timeout_seconds: Annotated[float, Within(0, 3_600, above=True)] = 60.0
    retries: Annotated[int, Within(0, 10)] = 3
    batch: Annotated[int, Within(1, 4_096)] = 32
    parallel: Annotated[int, Within(1, 64)] = 4
    allow_internal: bool = False
    range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_fields(self)
        check_url(self.url, allow_internal=self.allow_internal)
        low, high = self.range
        # Their distance must be a number, too: scores are divided by it.
        if not (math.isfinite(low) and math.isfinite(high - low) and low < high):
            raise InputError(f"range must be two numbers, the lower one first, got [{low}, {high}]")
        self._check_auth()

    def _check_auth(self) -> None:
        if self.secret_env and not _VARIABLE.fullmatch(self.secret_env):
            # A declaration of someone else's chooses the variable and where it is sent to: any
            # other secret of the environment would be theirs for the asking. It is not quoted:
            # whoever writes the secret itself here should not find it in a log.
            raise InputError(
                "secret_env must name a variable that begins with ASSAY_SECRET_",
                hint="capital letters, digits and _; the secret itself stays in the environment",
            )
        if self.auth in ("bearer", "hmac") and not self.secret_env:
            raise InputError(
                f"auth {self.auth!r} needs a secret",
                hint="name its environment variable with secret_env",
            )
        if self.auth == "none" and self.secret_env:
            raise InputError("secret_env is given, but auth is 'none'", hint="bearer or hmac")
        in_clear = self.url.lower().startswith("http://") and not is_loopback_url(self.url)
        if self.scheme == "bearer" and in_clear:
            raise InputError(
                "auth 'bearer' would send the secret over http, where others can read it",
                hint="use https, or auth: hmac, which never sends the secret itself",
            )

    @property
    def scheme(self) -> Auth:
        """How requests are authenticated."""
        return self.auth or ("bearer" if self.secret_env else "none")


TIMESTAMP = "X-Assay-Timestamp"
SIGNATURE = "X-Assay-Signature"
WINDOW_SECONDS = 300

_TIME = re.compile(r"[0-9]{1,12}")


def read_secret(variable: str) -> str:
    """The secret in an environment variable, without white space around it."""
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
    """The headers that authenticate a request."""
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
