"""Find the processes of a command by a mark in its arguments; which run, and what is open here."""

from __future__ import annotations

import secrets
from pathlib import Path

__all__ = ["is_running", "living", "marker", "open_below", "status"]


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


def is_running(pid: int | str) -> bool:
    """Whether there is such a process that has not ended, also where nobody has reaped it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def status(pid: str) -> str:
    """What the kernel says of a process: its command line, its state, its parents, its signals."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        return f"{words}\n{Path(f'/proc/{pid}/status').read_text()}"
    except OSError as error:
        return str(error)


def open_below(directory: Path) -> list[str]:
    """The files below a directory that this process holds open, whatever other tests hold."""
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = descriptor.readlink()
        except OSError:
            continue
        if target.is_relative_to(directory):
            found.append(str(target))
    return sorted(found)
