"""What the failures of a PostgreSQL server mean to people."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import cast

from assay.errors import StoreError

__all__ = ["LostError", "fault", "is_lost", "no_connection"]

_AGAIN = "try again"
_MEANINGS = {  # by SQLSTATE, else by its class
    "22": ("refused what was to be stored", ""),
    "23": ("refused what was to be stored", ""),
    "25006": ("is read-only", "choose a server and a role that may write"),
    "28": ("refuses the user or the password", "check both; PGPASSWORD can hold the password"),
    "3D000": ("does not exist", "create it first, in the encoding UTF8"),
    "40": ("was changed by others at the same moment", _AGAIN),
    "42501": ("may not be used so by that role", "GRANT it the right, or choose another role"),
    "42P01": ("has lost a table", "restore a backup, or choose another database"),
    "53100": ("cannot grow: the server's disk is full", "free some space, then resume the run"),
    "53200": ("has no memory left", _AGAIN),
    "53300": ("has no connection left", "end some clients, or raise max_connections"),
    "54": ("cannot hold a value that large", "shorten the trace or the answer"),
    "55P03": ("is locked by another process", "end the process that holds it, then resume"),
    "57014": ("did not answer in time", "see what the server is busy with, then resume"),
    "57P03": ("is starting or stopping", "try again in a moment"),
}
_ENDED = ("08", "25P03", "57P")


class LostError(StoreError):
    """A connection was lost."""


def is_lost(error: Exception) -> bool:
    """Whether a connection is of no use after an error.

    What the server reports of a statement leaves it usable; anything else may have cut an answer in
    two, and the next one would be taken for the rest of it.
    """
    code, severity, _ = _report(error)
    return not code or severity in ("FATAL", "PANIC") or code.startswith(_ENDED)


def fault(place: str, error: Exception) -> StoreError:
    """What to raise for an error of the driver, the network or the server in a statement."""
    code, _, message = _report(error)
    if is_lost(error):
        return LostError(
            f"the connection to the store {place} was lost: {message or _reason(error)}",
            hint="see that the server runs, then resume; nothing is half-written",
        )
    what, hint = _meaning(code)
    return StoreError(f"the store {place} {what}: {message}", hint=hint)


def no_connection(place: str, error: Exception, *, has_password: bool) -> StoreError:
    """What to raise for an error while connecting."""
    code, _, message = _report(error)
    if code:
        what, hint = _meaning(code)
        return StoreError(f"the store {place} {what}: {message}", hint=hint)
    if not has_password and (isinstance(error, AttributeError) or "password" in str(error)):
        return StoreError(
            f"the store {place} asks for a password",
            hint="set PGPASSWORD, or put it into the address",
        )
    hint = "see that the server runs, and that host and port are right"
    if isinstance(_root(error), ssl.SSLError):
        hint = "check sslmode and sslrootcert"
    return StoreError(f"the store {place} cannot be reached: {_reason(error)}", hint=hint)


def _meaning(code: str) -> tuple[str, str]:
    return _MEANINGS.get(code) or _MEANINGS.get(code[:2]) or ("failed", "")


def _report(error: Exception) -> tuple[str, str, str]:
    """SQLSTATE, severity and text of what the server said, or empty texts.

    The driver may have failed once more while it closed the connection, so what led to an error is
    looked at, too.
    """
    for cause in _causes(error):
        said: object = cause.args[0] if cause.args else None
        if isinstance(said, dict):
            fields = cast("dict[str, str]", said)
            text = " ".join(fields[name] for name in ("M", "D") if name in fields)
            return fields.get("C", ""), fields.get("V", ""), " ".join(text.split())
    return "", "", ""


def _reason(error: Exception) -> str:
    root = _root(error)
    if isinstance(root, TimeoutError):
        return "no answer in time"
    if isinstance(root, socket.gaierror | OSError):
        return root.strerror or str(root)
    name = type(root).__name__
    return str(root) if name == "InterfaceError" else f"no answer of a PostgreSQL server ({name})"


def _root(error: Exception) -> BaseException:
    *_, last = _causes(error)
    return last


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
