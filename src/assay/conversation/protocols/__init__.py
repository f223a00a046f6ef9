"""The four protocols in which agents speak with models, each in a file of its own.

Each is read and written from both sides: a request by who serves it and by who sends it on, a reply
likewise, whole and streamed. `codec_of` finds one by its name, `codec_at` by the path of a request.
"""

from __future__ import annotations

from assay.conversation.protocols.codec import (
    Codec,
    Protocol,
    ProtocolError,
    addressed,
    codec_at,
    codec_of,
)

__all__ = ["Codec", "Protocol", "ProtocolError", "addressed", "codec_at", "codec_of"]
