"""Files of a directory, written from a table, and files of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["write_files", "write_rows"]


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a directory, with the folders that they need."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def write_rows(file: str | Path, rows: Iterable[object]) -> Path:
    """Write a file with a line of JSON for each row."""
    place = Path(file)
    place.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return place
