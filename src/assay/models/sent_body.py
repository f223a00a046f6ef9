"""`SentBody`: a request's body that says when it begins to go out.

From then on a server may have it, and work on it, and be paid for it. It stands apart from
`transport` because its base class is aiohttp's, which is loaded when a model is first asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp.payload import BytesPayload

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

__all__ = ["SentBody"]


class SentBody(BytesPayload):
    """Bytes, and who wants to know that they are sent."""

    def __init__(self, body: bytes, sent: Callable[[], None]) -> None:
        super().__init__(body)
        self._sent = sent

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Tell, and write."""
        self._sent()
        await super().write_with_length(writer, content_length)
