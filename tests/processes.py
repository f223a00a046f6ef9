"""Find the processes of a command by a mark in its arguments."""

from __future__ import annotations

import secrets
from pathlib import Path

__all__ = ["living", "marker"]


def marker() -> str:
    """An argument for `sleep` by which its process can be found."""
    return f"9{secrets.randbelow(10**9):09}"


def living(mark: str) -> list[str]:
    """Ids of the processes that have the mark as an argument."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(path.parent.name)
    return found
