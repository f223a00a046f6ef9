"""Files that are packed by gzip or zstd, read as what they hold; none fills memory or disk."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from assay.errors import InputError

_UNPACKED_FREE = 256 << 20
_UNPACKED_MOST = 200
"""So many times its own size a packed file may grow, once it has grown by `_UNPACKED_FREE`: text
of rows grows ten times, what was made to fill a disk a thousand times."""

_ZSTD = (".zst", ".zstd")


def unpacked(handle: io.BufferedReader, magic: bytes, name: str) -> tuple[io.BufferedReader, str]:
    """What a file holds, and what that would be called."""
    if magic[:2] == b"\x1f\x8b":
        import gzip

        unzipped = cast("BinaryIO", gzip.GzipFile(fileobj=handle))
        return io.BufferedReader(_Unpacked(unzipped.read, handle, name)), _without(name, ".gz")
    if magic == b"\x28\xb5\x2f\xfd":
        frames = _Unpacked(_Zstd(handle).read, handle, name)
        return io.BufferedReader(frames), _without(name, *_ZSTD)
    return handle, name


def name_inside(name: str) -> str:
    """What a file would be called if it were not packed."""
    return _without(name, ".gz", *_ZSTD)


def _without(name: str, *endings: str) -> str:
    for ending in endings:
        name = name.removesuffix(ending)
    return name


class _Zstd:
    """Reads frames of zstd; a stream reader of the library would take half a frame for a whole."""

    _INPUT = 1_024  # of the most hostile input, that is 32 MiB at once

    def __init__(self, handle: BinaryIO) -> None:
        import zstandard

        self._handle = handle
        self._unpacker = zstandard.ZstdDecompressor()
        self._frame = self._unpacker.decompressobj()
        self._begun = False
        self._left = b""
        self._ready = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._ready:
            packed = self._left or self._handle.read(self._INPUT)
            self._left = b""
            if not packed:
                if self._begun:
                    raise EOFError("it ends in the middle")
                return b""
            self._begun = True
            self._ready = memoryview(self._frame.decompress(packed))
            if self._frame.eof:
                self._left = self._frame.unused_data
                self._frame, self._begun = self._unpacker.decompressobj(), False
        found, self._ready = self._ready[:size], self._ready[size:]
        return bytes(found)


class _Unpacked(io.RawIOBase):
    """What a packed file holds, as far as that is no attack on memory or disk."""

    def __init__(self, read: Callable[[int], bytes], packed: BinaryIO, name: str) -> None:
        self._read, self._packed, self._name = read, packed, name
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        room = cast("memoryview", buffer)
        try:
            found = self._read(len(room))
        except Exception as error:
            if type(error).__name__ == "ZstdError" or isinstance(
                error, OSError | EOFError | zlib.error
            ):
                raise InputError(f"{self._name} cannot be unpacked: {error}") from error
            raise
        room[: len(found)] = found
        self._size += len(found)
        if self._size > _UNPACKED_FREE and self._size > _UNPACKED_MOST * self._packed.tell():
            raise InputError(
                f"{self._name} grows to more than {_UNPACKED_MOST} times its size when unpacked",
                hint="if that is intended, unpack it first",
            )
        return len(found)
