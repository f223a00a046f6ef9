"""Files of a directory, written from a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["write_files"]


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a directory, with the folders that they need."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root
