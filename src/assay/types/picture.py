"""`Picture`: a PNG, JPEG or WebP in a conversation, known by its bytes and never by its name.

What a picture says of itself is looked at as far as its header: which kind it is, how large, and
whether it ends. Nothing is decoded here, nothing fetched, and a kind that can hold a script (SVG)
is none of the three.

This file is also loaded beside `assay.types.thread` in the sandbox; hence it imports nothing when
it is loaded.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.scoring.json_safe import Json

MOST_BYTES = 5 << 20
"""Most bytes of one picture, as the strictest of the large providers takes them."""
MOST_PIXELS = 64_000_000
"""Most pixels of one, by its header: a few bytes can stand for gigabytes of them."""
MOST_PICTURES = 20
MOST_TOGETHER = 10 << 20
"""Most pictures of a row, and most bytes of all."""

PICTURE_PARTS = ("image_url", "image", "input_image")
"""Types of parts of a message that hold a picture, as the protocols of models call them."""

_KINDS = "PNG, JPEG or WebP"
_GIVE = "give a data URL, data:image/png;base64,..., or in a file of rows a path beside that file"
_CHUNK_HEAD = 12
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_START_OF_SCAN = 0xDA


class Picture:
    """A picture.

    Attributes:
        data: Its bytes, as they came.
        media_type: ``image/png``, ``image/jpeg`` or ``image/webp``, by its bytes.
        width: In pixels, as its header says.
        height: Likewise.
    """

    __slots__ = ("_digest", "data", "height", "media_type", "width")

    data: bytes
    media_type: str
    width: int
    height: int

    def __init__(self, data: bytes, declared: str = "") -> None:
        """Take the bytes of a picture.

        Args:
            data: They.
            declared: The media type that they are said to have; "" where nothing is said.

        Raises:
            InputError: If it is no picture of the three kinds, not whole, too large, or another
                kind than is said.
        """
        if len(data) > MOST_BYTES:
            raise _too_large(f"{len(data):,}")
        kind, width, height = _looked_at(data)
        said = declared.strip().lower().replace("image/jpg", "image/jpeg")
        if said and said != kind:
            raise wrong(f"it is said to be {declared:.60} and is {kind}", f"write {kind}")
        if width < 1 or height < 1:
            raise wrong("its header says that it has no pixels")
        if width * height > MOST_PIXELS:
            raise wrong(
                f"its header says {width:,} x {height:,} pixels; at most {MOST_PIXELS:,} are shown",
                "make it smaller",
            )
        self.data, self.media_type, self.width, self.height = data, kind, width, height
        self._digest = ""

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, in hexadecimal."""
        if not self._digest:
            import hashlib

            self._digest = hashlib.sha256(self.data).hexdigest()
        return self._digest

    @property
    def url(self) -> str:
        """It as a data URL."""
        from binascii import b2a_base64

        return f"data:{self.media_type};base64,{b2a_base64(self.data, newline=False).decode()}"

    @property
    def part(self) -> dict[str, Json]:
        """It as a part of a message, in the form of chat completions."""
        return {"type": "image_url", "image_url": {"url": self.url}}

    @property
    def told(self) -> dict[str, Json]:
        """What is said of it wherever it is not shown."""
        return {
            "digest": self.digest,
            "media_type": self.media_type,
            "width": self.width,
            "height": self.height,
            "bytes": len(self.data),
        }

    def __repr__(self) -> str:
        return f"Picture({self.media_type}, {self.width} x {self.height}, {self.digest[:12]})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __reduce__(self) -> tuple[object, ...]:
        return Picture, (self.data,)

    @classmethod
    def of_url(cls, url: str) -> Picture:
        """The picture that a data URL holds; nothing is fetched, and no file read.

        Raises:
            InputError: For any other URL, and what `Picture` raises.
        """
        if url[:5].lower() != "data:":
            raise _no_data(url)
        head, comma, body = url[5:].partition(",")
        declared, *more = head.split(";")
        if not comma or "base64" not in [one.strip().lower() for one in more]:
            raise wrong("a picture's data URL has to be base64", "data:image/png;base64,...")
        if declared.strip().lower().startswith("image/svg"):
            raise _svg()
        if len(body) > (MOST_BYTES + 2) // 3 * 4:
            raise _too_large(f"more than {MOST_BYTES:,}")
        from binascii import Error, a2b_base64

        try:
            data = a2b_base64(body, strict_mode=True)
        except (Error, ValueError) as error:
            raise wrong(f"its base64 is broken: {error}") from None
        return cls(data, declared)

    @classmethod
    def of_value(cls, value: object) -> Picture | None:
        """The picture that Python holds: bytes, or one of Pillow's; None for anything else.

        Raises:
            InputError: As `Picture` does.
        """
        if isinstance(value, bytes | bytearray):
            return cls(bytes(value))
        if not (callable(save := getattr(value, "save", None)) and hasattr(value, "getbands")):
            return None
        from io import BytesIO

        file = BytesIO()
        save(file, "PNG")
        return cls(file.getvalue())


def url_of(part: dict[str, object]) -> str | None:
    """Where a part of a message says that its picture is; None for a mere place of one.

    Raises:
        InputError: For a part that says it in no way that is known.
    """
    for name in ("image_url", "image", "url", "source", "path"):
        given = part.get(name)
        if isinstance(given, str):
            return given
        if _is_dict(given):
            if isinstance(given.get("data"), str):  # Anthropic's
                return f"data:{given.get('media_type')};base64,{given['data']}"
            for inner in ("url", "bytes", "path"):  # that of Parquet files is "bytes"
                if isinstance(found := given.get(inner), str):
                    return found
        if given is not None:
            raise wrong("the part says in no known way where its picture is", _GIVE)
    if part.get("file_id") is not None:
        raise wrong("it is a file at a provider, which nobody else can read", _GIVE)
    return None


def require_few(pictures: Iterable[Picture]) -> None:
    """See that a conversation has no more pictures than it may.

    Raises:
        InputError: If it has.
    """
    sizes = [len(one.data) for one in pictures]
    if len(sizes) > MOST_PICTURES:
        raise wrong(f"there are {len(sizes):,} pictures; at most {MOST_PICTURES} may be in a row")
    if sum(sizes) > MOST_TOGETHER:
        most = f"at most {MOST_TOGETHER:,} may be in a row"
        raise wrong(f"its pictures have {sum(sizes):,} bytes; {most}", "make them smaller")


def wrong(message: str, hint: str = "") -> ValueError:
    """An error about a picture: ours, or Python's own in the sandbox, where there is no other."""
    try:
        from assay.errors import InputError
    except ImportError:
        return ValueError(message)
    return InputError(message, hint=hint)


def _too_large(size: str) -> ValueError:
    return wrong(f"it has {size} bytes; at most {MOST_BYTES:,} are taken", "make it smaller")


def _svg() -> ValueError:
    hint = "save it as PNG: an SVG can hold scripts and load other files"
    return wrong("it is an SVG, which is a document and no picture", hint)


def _no_data(url: str) -> ValueError:
    if url[:8].lower().startswith(("http://", "https://")):
        return wrong(
            f"{url:.80} is elsewhere, and nothing is fetched to be graded",
            f"download it; then {_GIVE}",
        )
    return wrong(f"{url:.80} is no data URL", _GIVE)


def _is_dict(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


if TYPE_CHECKING:
    from typing import TypeGuard


def _looked_at(data: bytes) -> tuple[str, int, int]:
    """Kind, width and height."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return ("image/png", *_png(data))
    if data[:3] == b"\xff\xd8\xff":
        return ("image/jpeg", *_jpeg(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ("image/webp", *_webp(data))
    if not data:
        raise wrong("it is empty")
    start = data[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<svg", b"<?xml", b"<!doctype svg")) or b"<svg" in start:
        raise _svg()
    raise wrong(f"it is no {_KINDS}: it begins with {data[:8]!r}", f"save it as {_KINDS}")


def _truncated(kind: str) -> ValueError:
    return wrong(f"it begins as a {kind} and does not end as one: it is cut off or damaged")


def _animated() -> ValueError:
    return wrong("it is animated, of which everybody may see another frame", "give one frame")


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        raise _truncated("PNG")
    at = 8
    while (kind := data[at + 4 : at + 8]) != b"IEND":
        if kind == b"acTL":
            raise _animated()
        at += _CHUNK_HEAD + int.from_bytes(data[at : at + 4], "big")
        if at + _CHUNK_HEAD > len(data):
            raise _truncated("PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _jpeg(data: bytes) -> tuple[int, int]:
    at, size = 2, None
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker == _START_OF_SCAN:
            break
        if marker in _SOF and size is None and at + 9 <= len(data):
            size = (
                int.from_bytes(data[at + 7 : at + 9], "big"),
                int.from_bytes(data[at + 5 : at + 7], "big"),
            )
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    # A thumbnail in its notes has an end of its own; that of the picture is behind its beginning.
    if size is None or data.find(b"\xff\xd9", at) < 0:
        raise _truncated("JPEG")
    return size


def _webp(data: bytes) -> tuple[int, int]:
    kind, body = data[12:16], data[20:30]
    if len(data) < int.from_bytes(data[4:8], "little") + 8 or len(body) < 10:
        raise _truncated("WebP")
    if kind == b"VP8X":
        if body[0] & 0x02:
            raise _animated()
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(body[at : at + 2], "little") for at in (6, 8))
        return width & 0x3FFF, height & 0x3FFF
    raise _truncated("WebP")
