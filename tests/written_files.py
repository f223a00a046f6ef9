"""Files of a directory, written from a table, files of rows, and commits of what was written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["committed", "write_files", "write_rows"]


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


def committed(place: Path) -> str:
    """Commit all that lies in a directory, into a repository of its own; the id of the commit."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "m")
    said = ""
    for words in (("init", "-q"), ("add", "-A"), who, ("rev-parse", "HEAD")):
        argv = ["git", *words]
        said = subprocess.run(
            argv, cwd=place, env=env, check=True, capture_output=True, text=True
        ).stdout
    return said.strip()
