"""Listening sockets: who can reach an address, and how a port is opened."""

from __future__ import annotations

import ipaddress
import socket

from assay.errors import InputError


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open the port.

    Raises:
        InputError: If it cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Without its protocol asyncio would not know that it may send small replies at once.
        opened = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise InputError(f"cannot listen on {host!r}: {error}") from error
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except (OSError, OverflowError) as error:
        opened.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}", hint="choose another port, or 0"
        ) from error
    return opened
