"""Whether an answer names the colour of the picture that stands with it: read from its bytes, without a model."""

import zlib

NAMES = ("red", "green", "blue")


def colour(data):
    """The strongest colour of the first pixel of a PNG with 8 bits for each of red, green and blue."""
    at, pixels = 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind == b"IDAT":
            pixels += data[at + 8 : at + 8 + size]
        at += 12 + size
    # One row begins with its filter; of the first row, whichever it is, the first pixel is as it is.
    first = zlib.decompressobj().decompress(pixels, 4)[1:]
    return NAMES[max(range(3), key=lambda place: first[place])]


async def grade(thread: StringThread) -> float:
    shown = {colour(picture.data) for picture in thread.images()}
    said = {name for name in NAMES if name in (thread.completion() or "").lower()}
    return float(bool(shown) and said == shown)
