"""Apply a unified diff that nobody trusts to a tree of our own."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from assay.errors import InputError, SourceError

__all__ = ["Change", "apply_patch"]

_SECONDS = 120.0
_ENV = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What a patch did to a tree.

    Attributes:
        written: Paths that it added or changed, sorted.
        deleted: Paths that it removed, sorted.
    """

    written: tuple[str, ...]
    deleted: tuple[str, ...]


def apply_patch(patch: str, tree: str, *, what: str) -> Change:
    """Apply a patch with ``git apply``, outside of any repository: no hook or filter can run.

    Args:
        patch: A unified diff whose paths begin with ``a/`` and ``b/``.
        tree: Directory to change; where the patch does not fit it is left as it was.
        what: How to name the patch in a message.

    Raises:
        InputError: If it does not fit, leads out of the tree, or makes a link or a submodule.
        SourceError: If there is no git.
    """
    before = _contents(tree)
    with tempfile.TemporaryDirectory(prefix="assay-patch-") as scratch:
        file = Path(scratch, "patch")
        # Rows often lack the last line feed, without which git calls the patch corrupt.
        text = patch if patch.endswith("\n") else f"{patch}\n"
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        _git_apply(str(file), tree, what)
    after = _contents(tree)
    written = [path for path, content in after.items() if before.get(path) != content]
    for path in written:
        if not stat.S_ISREG(Path(tree, path).lstat().st_mode):
            raise InputError(
                f"{what} makes {path!r} a link or another special file",
                hint="only regular files can be part of a case",
            )
    return Change(tuple(sorted(written)), tuple(sorted(before.keys() - after.keys())))


def _git_apply(file: str, tree: str, what: str) -> None:
    root = str(Path(tree).resolve())
    env = {
        **_ENV,
        "PATH": os.environ.get("PATH", os.defpath),
        # Inside somebody's repository, git would take paths as relative to its root.
        "GIT_CEILING_DIRECTORIES": str(Path(root).parent),
    }
    argv = ["git", "-c", "core.symlinks=true", "apply", "--whitespace=nowarn", "-p1", file]
    try:
        done = subprocess.run(
            argv, cwd=root, env=env, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise SourceError("git is not installed", hint="install git") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{what} takes more than {_SECONDS:.0f} s to apply") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise InputError(
            f"{what} cannot be applied: {_printable(said[-500:])}",
            hint="is the source the one that the patch was made for?",
        )


def _contents(tree: str) -> dict[str, str]:
    """Every path of a tree that is no directory, with a digest of what it is."""
    found: dict[str, str] = {}
    for folder, directories, files in os.walk(tree):
        links = [name for name in directories if Path(folder, name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder, name)
            found[path.relative_to(tree).as_posix()] = _digest(path)
    return found


def _digest(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return "special"
    with path.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    return f"{bool(status.st_mode & 0o100)} {content}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
