"""Whether the parts of a Ray cluster answer; Ray would wait for them, and end the process."""

from __future__ import annotations

import asyncio
import os
import socket
import time

from assay.errors import GraderError, InputError

_HEAD_SECONDS = 30.0
"""How long the head may be away. After 60 s Ray would end this process."""
_HERE_SECONDS = 3.0
"""The same of what is the cluster's on this machine; Ray would wait for 10 s."""

_CLIENT_PORT = "10001"
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
_SETTINGS = b"\x04"
"""What a client says first, with an empty frame of settings; and the kind of the first reply."""


def require_head(address: str, seconds: float = 10.0) -> None:
    """Refuse an address where nothing answers that Ray could talk to.

    Args:
        address: ``HOST:PORT``.
        seconds: How long it may take to answer.

    Raises:
        InputError: There is nothing, or not that.
    """
    host, _, port = address.rpartition(":")
    if port == _CLIENT_PORT:
        raise InputError(
            f"{address} is an address of Ray's client, which assay does not use",
            hint="give the address that `ray start` takes; its port is 6379 by default",
        )
    reason, cause = "what listens there is not Ray", None
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds) as there:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return
            there.sendall(_HTTP2)
            if there.recv(4)[3:] == _SETTINGS:
                return
    except (OSError, ValueError) as error:
        reason, cause = getattr(error, "strerror", None) or str(error), error
    raise InputError(
        f"there is no Ray cluster at {address}: {reason}",
        hint="`ray status` tells whether one runs, and `ray start --head` starts one",
    ) from cause


class Parts:
    """What a process needs of the cluster that it is connected to.

    Args:
        head: Address of the head.
        here: Address of what belongs to the cluster on this machine.
    """

    def __init__(self, head: str, here: str) -> None:
        self._head, self._here = head, here
        self._head_answered = self._here_answered = time.monotonic()

    async def answer(self) -> bool:
        """Whether all of it is there now.

        Raises:
            GraderError: Some has been away for so long that the cluster has to be left.
        """
        is_head_there, is_here = await asyncio.gather(
            _is_there(self._head), _is_there(self._here, may_be_slow=True)
        )
        now = time.monotonic()
        if is_head_there:
            self._head_answered = now
        elif now - self._head_answered > _HEAD_SECONDS:
            raise _lost(f"its head, at {self._head},", _HEAD_SECONDS)
        if is_here:
            self._here_answered = now
        elif now - self._here_answered > _HERE_SECONDS:
            raise _lost(f"its part on this machine, at {self._here},", _HERE_SECONDS)
        return is_head_there and is_here


async def _is_there(address: str, *, may_be_slow: bool = False) -> bool:
    """Whether a part of the cluster answers; one that may be slow, whether it listens."""
    try:
        await asyncio.to_thread(require_head, address, _HEAD_SECONDS / 3)
    except InputError as error:
        return may_be_slow and not isinstance(error.__cause__, ConnectionRefusedError)
    return True


def _lost(part: str, seconds: float) -> GraderError:
    return GraderError(
        f"the cluster was lost: {part} has not answered for {seconds:.0f} s",
        hint="what was graded is kept; when the cluster is back, the same command resumes, and a "
        "server resumes by itself",
    )
