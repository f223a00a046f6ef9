"""`EndpointSettings`: where an endpoint is, how it is spoken to, and how much it may take."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.errors import InputError
from assay.graders.endpoints.guard import check_url, is_loopback_url

__all__ = ["Auth", "EndpointSettings", "Protocol"]

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

    Raises:
        InputError: For a value that makes no sense; the message begins with the field.
    """

    url: str
    protocol: Protocol = "assay"
    auth: Auth | None = None
    secret_env: str = ""
    timeout_seconds: float = 60.0
    retries: int = 3
    batch: int = 32
    parallel: int = 4
    allow_internal: bool = False
    range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_url(self.url, allow_internal=self.allow_internal)
        low, high = self.range
        # Their distance must be a number, too: scores are divided by it.
        if not (math.isfinite(low) and math.isfinite(high - low) and low < high):
            raise InputError(f"range must be two numbers, the lower one first, got [{low}, {high}]")
        if not (0 < self.timeout_seconds <= 3_600):
            raise InputError("timeout_seconds must be above 0 and at most 3600")
        for name, value, most in (
            ("retries", self.retries, 10),
            ("batch", self.batch, 4_096),
            ("parallel", self.parallel, 64),
        ):
            least = 0 if name == "retries" else 1
            if not least <= value <= most:
                raise InputError(f"{name} must be from {least} to {most}, got {value}")
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
