"""Small pictures, made as they are needed."""

from __future__ import annotations

import base64
import struct
import zlib

RED = b"\xff\0\0"


def chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    width: int = 2, height: int = 2, colour: bytes = b"\xff\0\0", *, more: bytes = b""
) -> bytes:
    """A PNG of one colour; of one that is said to be huge, only the header is so."""
    rows = (b"\0" + colour * min(width, 64)) * min(height, 64)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + more
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def jpeg(width: int = 3, height: int = 5) -> bytes:
    """As much of a JPEG as its header and its end."""
    exif = b"\xff\xe1" + struct.pack(">H", 6) + b"\xff\xd8\xff\xd9"  # a thumbnail, with its end
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\x01\x01\0\0\x3f\0" + b"\x12\x34"
    return b"\xff\xd8" + exif + frame + scan + b"\xff\xd9"


def webp(width: int = 7, height: int = 9) -> bytes:
    """The header of a lossless WebP."""
    bits = (width - 1) | (height - 1) << 14
    body = b"VP8L" + struct.pack("<I", 10) + b"\x2f" + struct.pack("<I", bits) + b"\0" * 5
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def url(data: bytes, kind: str = "image/png") -> str:
    """A data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def colours_in(shown: str) -> list[bytes]:
    """The colours of squares side by side, of 64 pixels each, in a data URL of a PNG of ours."""
    data = base64.b64decode(shown.partition(",")[2])
    width = int.from_bytes(data[16:20], "big")
    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    row = zlib.decompress(data[at + 4 : at + 4 + size])[1 : 1 + 3 * width]
    return [row[place : place + 3] for place in range(0, len(row), 3 * 64)]
