"""`Access`: who may use an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.endpoint.problems import ProblemError
from assay.errors import GraderError, InputError
from assay.graders.endpoints.settings import (
    SIGNATURE,
    TIMESTAMP,
    read_secret,
    same_secret,
    signature_problem,
)

__all__ = ["Access"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The secrets that open an endpoint; any of them will do, and without any it is open.

    Attributes:
        token: Asked for as ``Authorization: Bearer TOKEN``.
        secret: Requests may be signed with it instead; see `assay.graders.endpoints.settings`.
    """

    token: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, *, token_env: str = "", hmac_env: str = "") -> Access:
        """Take the secrets from environment variables.

        Raises:
            InputError: If a variable is not set: an endpoint is not opened by a typing error.
        """
        try:
            return cls(
                token=read_secret(token_env) if token_env else "",
                secret=read_secret(hmac_env) if hmac_env else "",
            )
        except GraderError as error:
            raise InputError(error.message, hint=error.hint) from None

    @property
    def is_open(self) -> bool:
        """Whether anybody may use the endpoint."""
        return not (self.token or self.secret)

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Turn away who has no credentials, or a wrong token, before anything else is read.

        Raises:
            ProblemError: 401 without credentials, 403 with a wrong token.
        """
        if self.is_open or self._is_signed(headers):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self.token and scheme.lower() == "bearer":
            if not same_secret(given.strip(), self.token):
                raise ProblemError(403, "the token is wrong")
            return
        ways = ["a bearer token"] * bool(self.token) + ["a signature"] * bool(self.secret)
        challenge = {"WWW-Authenticate": "Bearer" if self.token else "Assay-HMAC"}
        raise ProblemError(401, f"{' or '.join(ways)} is needed", headers=challenge)

    def check_body(self, headers: Mapping[str, str], body: bytes, now: float) -> None:
        """Turn away a signed request whose signature is wrong.

        Raises:
            ProblemError: 403, for a wrong or old signature.
        """
        if self._is_signed(headers):
            signature, timestamp = headers.get(SIGNATURE, ""), headers.get(TIMESTAMP, "")
            if wrong := signature_problem(self.secret, timestamp, signature, body, now):
                raise ProblemError(403, wrong)

    def _is_signed(self, headers: Mapping[str, str]) -> bool:
        return bool(self.secret) and SIGNATURE in headers
