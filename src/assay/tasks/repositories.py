"""Check out one commit of a git repository, and nothing else of its history.

A repository is data from anyone: no hook, filter, submodule, file-system monitor or remote helper
of its is run, and no configuration but ours is read. What was fetched once is found again offline.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from assay.errors import SourceError
from assay.tasks.archives import outward_links

FETCH_SECONDS = 1800.0
"""Longest that one git command may take."""

_CONFIG = (
    "advice.detachedHead=false",
    "core.autocrlf=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.logAllRefUpdates=false",
    "core.symlinks=true",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
    "gc.auto=0",
    "init.defaultBranch=main",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
)
# What a fetch needs of the user: proxies, certificates and the keys of ssh.
_KEPT = (
    "PATH",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSH_AUTH_SOCK",
)
_OURS = {
    "GIT_ALLOW_PROTOCOL": "git:http:https:ssh",
    "GIT_ASKPASS": "/bin/false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_AUTHOR_EMAIL": "base@localhost",
    "GIT_AUTHOR_NAME": "base",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_EMAIL": "base@localhost",
    "GIT_COMMITTER_NAME": "base",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "SSH_ASKPASS": "/bin/false",
}


def export_commit(url: str, commit: str, subdir: str, target: str, cache_dir: str) -> None:
    """Write the files of one commit into a directory, without any repository.

    Links that lead out of the tree and submodules are left out.
    """
    with _store(url, commit, cache_dir) as (store, objects, full):
        tree = f"{full}:{subdir.strip('/')}" if subdir.strip("/.") else f"{full}^{{tree}}"
        kind = _git(["cat-file", "-t", tree], git_dir=store, env=objects, check=False)
        if kind.strip() != "tree":
            raise SourceError(f"commit {commit} of {_shown(url)} has no directory {subdir!r}")
        with tempfile.TemporaryDirectory(dir=store) as scratch:
            env = {
                **objects,
                "GIT_INDEX_FILE": str(Path(scratch, "index")),
                "GIT_WORK_TREE": target,
            }
            _git(["read-tree", tree], git_dir=store, env=env, cwd=target)
            write = ["checkout-index", "--all", "--quiet"]
            _git(write, git_dir=store, env=env, cwd=target)
    for link in outward_links(target):
        Path(target, link).unlink()


def begin_repository(directory: str) -> None:
    """Make a directory a new repository whose one commit, ``base``, is what is in it.

    It has no remotes, no reflogs and no objects but those of that commit; the commit's id depends
    on the files alone.
    """
    repository = str(Path(directory, ".git"))
    _git(["init", "--quiet", "--template=", directory])
    there = {"GIT_WORK_TREE": directory}
    _git(["add", "--all", "--force", "."], git_dir=repository, env=there, cwd=directory)
    message = ["--quiet", "--allow-empty", "--no-verify", "--message=base"]
    _git(["commit", *message], git_dir=repository, env=there, cwd=directory)
    Path(repository, "COMMIT_EDITMSG").unlink(missing_ok=True)


def head_commit(directory: str) -> str:
    """The id of the commit that a repository on this machine is at."""
    private, shared = _repository(directory)
    head = _first_line(private / "HEAD")
    name = head.removeprefix("ref: ")
    if name == head and head:
        return head
    found = _first_line(shared / name) if ".." not in name else ""
    if not found:
        packed = shared / "packed-refs"
        lines = packed.read_text("utf-8", "replace").splitlines() if packed.is_file() else []
        found = next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")
    if not found:
        raise SourceError(f"{directory} has no commit yet", hint="use isolation: copy")
    return found


def _repository(directory: str) -> tuple[Path, Path]:
    """The git directories of a working tree or bare repository: its own, and the shared one.

    They are found by hand, because git itself would obey the configuration it finds there.
    """
    private = Path(directory, ".git")
    if private.is_file():
        private = Path(directory, _first_line(private).removeprefix("gitdir: "))
    elif not private.exists():
        private = Path(directory)
    pointer = private / "commondir"
    shared = private / _first_line(pointer) if pointer.is_file() else private
    if not (shared / "objects").is_dir():
        raise SourceError(f"{directory} is not a git repository", hint="use isolation: copy")
    return private, shared


def _first_line(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""


@contextmanager
def _store(url: str, commit: str, cache_dir: str) -> Generator[tuple[str, Mapping[str, str], str]]:
    """Where the objects of a commit are, locked: a bare repository, what it reads too, the id.

    A repository on this machine is read as a heap of objects, so that neither its configuration
    nor its idea of a transport plays a part.
    """
    local = _local_path(url)
    key = hashlib.sha256(b"local" if local else url.encode()).hexdigest()[:32]
    store = Path(cache_dir, "git", f"{key}.git")
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two cells may want the same repository at once
        if not (store / "HEAD").exists():
            shutil.rmtree(store, ignore_errors=True)
            _git(["init", "--quiet", "--bare", "--template=", str(store)])
        objects: dict[str, str] = {}
        if local:
            objects["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(_repository(local)[1] / "objects")
        full = _find(str(store), commit, objects)
        if not full and not local:
            full = _fetch(str(store), url, commit)
        if not full:
            hint = "has it been pushed, and is an abbreviated id long enough?"
            raise SourceError(f"{_shown(url)} has no commit {commit}", hint=hint)
        yield str(store), objects, full


def _local_path(url: str) -> str:
    if url.startswith("file://"):
        return unquote(urlsplit(url).path)
    return url if url.startswith("/") else ""


def _find(store: str, commit: str, objects: Mapping[str, str]) -> str:
    """The full id of a commit that is there, or an empty string."""
    # A branch may be named like an abbreviated id; refs are kept where no such name can win.
    asked = ["rev-parse", "--verify", "--quiet", f"{commit.lower()}^{{commit}}"]
    found = _git(asked, git_dir=store, env=objects, check=False).strip()
    return found if found.startswith(commit.lower()) else ""


def _fetch(store: str, url: str, commit: str) -> str:
    """Fetch a commit alone where the server gives it, else everything that has a name.

    Returns:
        Its full id, or an empty string where the repository has no such commit.
    """
    options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
    full = ""
    if len(commit) in (40, 64):
        name = f"{commit.lower()}:refs/kept/{commit.lower()}"
        _git(["fetch", "--depth=1", *options, "--", url, name], git_dir=store, check=False)
        full = _find(store, commit, {})
    if not full:
        depth = "--unshallow" if Path(store, "shallow").exists() else "--force"
        names = "+refs/*:refs/fetched/*"
        try:
            _git(["fetch", depth, *options, "--", url, names], git_dir=store)
        except SourceError as error:
            raise SourceError(
                f"cannot fetch commit {commit} of {_shown(url)}: {error.message}",
                hint="is the address right, and can this machine reach it and sign in?",
            ) from error
        full = _find(store, commit, {})
    if full:
        _git(["update-ref", f"refs/kept/{full}", full], git_dir=store)
    return full


def _git(
    arguments: list[str],
    *,
    git_dir: str = "",
    cwd: str = "/",
    env: Mapping[str, str] | None = None,
    check: bool = True,
) -> str:
    """Run git with our configuration alone and return what it printed."""
    settings = [part for setting in _CONFIG for part in ("-c", setting)]
    where = [f"--git-dir={git_dir}"] if git_dir else []
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = subprocess.Popen(
            ["git", *settings, *where, *arguments],
            cwd=cwd,
            env={**kept, **_OURS, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise SourceError("git is not installed", hint="install git") from error
    with process:
        try:
            output, errors = process.communicate(timeout=FETCH_SECONDS)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise SourceError(f"git took more than {FETCH_SECONDS:.0f} seconds") from error
            raise
    if process.returncode and check:
        said = errors.decode("utf-8", "replace").strip() or f"exit status {process.returncode}"
        raise SourceError(f"git {arguments[0]}: {_shown(said[-500:])}")
    return output.decode("utf-8", "replace") if not process.returncode else ""


def _shown(text: str) -> str:
    """The text without the passwords that URLs may hold, and without control characters."""
    plain = re.sub(r"://[^/@\s]*@", "://", text)
    return "".join(c if c.isprintable() or c == " " else " " for c in plain)
