"""The order form that the host hands to the supervisor of one sandboxed command."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["STAGE", "Plan", "Tree", "Verdict"]

#: Where the supervisor lays out the host's trees, in a mount namespace of its own. The directory
#: only serves as a mount point: nothing is ever written to the host's /tmp.
STAGE = "/tmp"  # noqa: S108


class Tree(TypedDict):
    """A file or directory of the host to be shown.

    ``name``: where, below the stage. ``mode``: ``read``; ``write``: changes go to the host;
    ``layer``: changes go to a layer in memory that dies with the command. ``over``: names of trees,
    put down before this one, that are laid over a ``layer``, the first on top. ``links``: whether
    links in it are followed.
    """

    source: str
    name: str
    mode: str
    over: list[str]
    links: bool


class Plan(TypedDict):
    """Everything the supervisor needs; only what `marshal` carries.

    ``etc``: what stands in the sandbox's /etc, by name: what the host has there, and the content of
    files. ``sizes``: bytes and files of the in-memory layer. ``rlimits``: pairs of a resource's
    number and its limit.
    """

    parent: int
    stage: str
    bwrap: str
    arguments: list[str]
    command: list[str]
    etc: tuple[list[str], dict[str, str]]
    filter: bytes
    trees: list[Tree]
    overlay: bool
    sizes: tuple[int, int]
    rlimits: list[tuple[int, int]]
    wall_seconds: float
    memory_bytes: int


class Verdict(TypedDict):
    """The supervisor's answer.

    ``word``: ``ended``, ``timed_out``, ``killed``, ``memory`` (all with ``seconds``), or
    ``refused`` with the ``step`` of the set-up, the kernel's ``errno`` and a ``text``. ``code``:
    the exit code where there is one.
    """

    word: str
    code: int | None
    seconds: float
    step: str
    errno: int
    text: str
