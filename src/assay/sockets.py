"""Listening sockets: who can reach an address, how a port is opened, and who connects to it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from assay.errors import InputError

_AGAIN_SECONDS = 0.1


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


async def accepted(listener: socket.socket) -> socket.socket:
    """Take the next connection of a socket that does not block; whoever is cancelled took none.

    A connection that `loop.sock_accept` or `loop.create_server` has just taken when they are ended
    is open until it is garbage. One that breaks off is left out; where the process has too much
    open, it waits.
    """
    while True:
        try:
            await _readable(listener)
            connection, _ = listener.accept()
        except OSError:
            await asyncio.sleep(_AGAIN_SECONDS)
            continue
        connection.setblocking(False)
        return connection


async def _readable(listener: socket.socket) -> None:
    loop, is_there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(listener)
