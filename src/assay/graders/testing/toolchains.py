"""Find the toolchain that a test command needs, and what of it the sandbox must be shown.

The sandbox shows the system's own directories. A toolchain elsewhere (rustup's, an unpacked Go, a
version manager's Node) is found on this process's own PATH and shown read only below
``/opt/toolchains``: the toolchain itself, and nothing else of anybody's home.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = ["TOOLCHAINS", "Toolchain", "tools_for"]

TOOLCHAINS = "/opt/toolchains"
"""Where the sandbox shows toolchains."""

_SHOWN = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_ASK_SECONDS = 30.0
_SHARED = (".local", "local", "opt", "homebrew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What a command needs beside the system's own programs.

    Attributes:
        path_entries: Directories to put on PATH, behind our own shims and before the system's.
        mounts: What must be shown for them, as (source, target) pairs; read only.
        env: Variables: caches that can be written, and no attempts at the network.
        missing: Programs that the command names and that are not installed.
    """

    path_entries: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A language's tools: its main program, what else needs it, where its root is, variables."""

    program: str
    users: tuple[str, ...]
    root: Callable[[str], Path]
    env: Mapping[str, str]


def _ask(*argv: str) -> Path:
    """A path that a program prints about itself; the program's own place if it does not."""
    try:
        told = subprocess.run(
            argv, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True, cwd="/"
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError, ValueError):
        told = ""
    return Path(os.path.realpath(told or Path(os.path.realpath(argv[0])).parent.parent))


def _above(program: str) -> Path:
    return Path(os.path.realpath(program)).parent.parent


_KINDS: Mapping[str, _Kind] = {
    "rust": _Kind(
        "rustc",
        ("cargo", "cargo-nextest"),
        # rustup's own programs only choose a toolchain, by settings in the user's home.
        lambda program: _ask(program, "--print", "sysroot"),
        {"CARGO_HOME": "/tmp/cargo", "CARGO_NET_OFFLINE": "true"},  # noqa: S108 - in the sandbox
    ),
    "go": _Kind(
        "go",
        ("gotestsum",),
        lambda program: _ask(program, "env", "GOROOT"),
        {
            "GOCACHE": "/tmp/go-build",  # noqa: S108 - in the sandbox
            "GOPATH": "/tmp/go",  # noqa: S108 - in the sandbox
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
        },
    ),
    "node": _Kind(
        "node",
        ("npm", "npx", "yarn", "pnpm", "jest", "vitest", "mocha"),
        _above,
        {"npm_config_cache": "/tmp/npm", "npm_config_update_notifier": "false"},  # noqa: S108 - in the sandbox
    ),
    "java": _Kind("java", ("javac", "mvn", "mvnw", "gradle", "gradlew"), _above, {}),
    "maven": _Kind("mvn", (), _above, {}),
    "gradle": _Kind("gradle", (), _above, {"GRADLE_USER_HOME": "/tmp/gradle"}),  # noqa: S108 - in the sandbox
}
_WORD = re.compile(r"[\w./-]+")


def tools_for(cmd: str) -> Toolchain:
    """What the programs that a shell line names need.

    A line that only names a builder (``make test``) names no program: nothing is added for it.

    Args:
        cmd: The shell line.
    """
    named = {word.rpartition("/")[2] for word in _WORD.findall(cmd)}
    entries: list[str] = []
    mounts: list[tuple[str, str]] = []
    env: dict[str, str] = {}
    missing: list[str] = []
    for kind, one in _KINDS.items():
        if not named & {one.program, *one.users}:
            continue
        env |= one.env
        program = shutil.which(one.program)
        if program is None:
            missing.append(one.program)
            continue
        source, target, entry = _found(kind, program)
        if source:
            mounts.append((source, target))
            entries.append(entry)
        if kind == "node" and source:
            env["ASSAY_NODE"] = f"{entry}/node"
    return Toolchain(
        path_entries=tuple(entries), mounts=tuple(mounts), env=env, missing=tuple(missing)
    )


@cache
def _found(kind: str, program: str) -> tuple[str, str, str]:
    """Source, target and PATH entry of a toolchain; empty if the sandbox shows it.

    Kept by the program's place: to ask one where its root is may take a process.
    """
    one = _KINDS[kind]
    if _is_shown(program) and _is_shown(os.path.realpath(program)):
        return "", "", ""
    root = one.root(program)
    if _is_shown(str(root)):
        return "", "", ""
    target = f"{TOOLCHAINS}/{kind}"
    inner = Path("bin", one.program)
    if not os.access(root / inner, os.X_OK):
        # A program on its own, with nothing around it that would be its own.
        return os.path.realpath(program), f"{target}/bin/{one.program}", f"{target}/bin"
    if _is_anybodys(root):
        return str(root / inner), f"{target}/{inner}", f"{target}/bin"
    return str(root), target, f"{target}/bin"


def _is_shown(path: str) -> bool:
    return any(Path(path).is_relative_to(place) for place in _SHOWN)


def _is_anybodys(root: Path) -> bool:
    """Whether a directory holds more than one toolchain, such as a home or ``~/.local``."""
    home = Path(os.path.realpath(Path.home()))
    return home.is_relative_to(root) or root.name in _SHARED or len(root.parts) < 3
