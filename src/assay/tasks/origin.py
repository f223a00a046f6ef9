"""Where a case's files come from: the source that the agent starts from, and the fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from assay.frozen import frozen
from assay.tasks.rules import Ruled, inside_problem
from assay.types.codec import Problem


@frozen(kw_only=True)
class Source(Ruled):
    """The pristine source tree that the agent starts from: one of path, git and pypi.

    Attributes:
        path: Directory of the case to copy.
        git: URL or directory of a git repository; needs a commit.
        repo: Older name of git.
        commit: Commit id to check out, 7 to 64 hexadecimal digits; a branch can move.
        pypi: A source distribution, as name==version.
        sha256: Hash of the source distribution.
        subdir: Directory inside the source that becomes the workspace.
        isolation: How the tree is made. auto and copy copy a path without its history; clone and
            worktree check out the commit that a path's repository is at.
    """

    path: str | None = None
    git: str | None = None
    repo: str | None = None
    commit: str | None = None
    pypi: str | None = None
    sha256: str | None = None
    subdir: str | None = None
    isolation: Literal["auto", "copy", "clone", "worktree"] = "auto"

    def _problems(self) -> Iterator[Problem]:
        named = [name for name in ("path", "git", "repo", "pypi") if getattr(self, name)]
        if len(named) != 1:
            given = f"both {' and '.join(named)} are given" if named else "none is given"
            yield Problem((), f"a source needs one of path, git or pypi; {given}")
            return
        yield from (*self._git_problems(), *self._pypi_problems())
        if self.subdir is not None:
            yield from inside_problem(self.subdir, ("subdir",))
            if self.path is not None:
                hint = "put the directory into 'path'"
                yield Problem(("subdir",), "'subdir' does not go with 'path'", hint, at_key=True)
        if self.isolation == "worktree" and self.path is None:
            yield Problem(("isolation",), "worktree needs a path", "use auto")

    @property
    def url(self) -> str | None:
        """The git repository, whichever of its names was used."""
        return self.git if self.git is not None else self.repo

    def _git_problems(self) -> list[Problem]:
        if self.url is None:
            message, hint = "only a git source takes a commit", "remove it, or give 'git'"
            return [Problem(("commit",), message, hint, at_key=True)] if self.commit else []
        name = "git" if self.git is not None else "repo"
        return [*_url_problems(self.url, name), *_commit_problems(self.commit)]

    def _pypi_problems(self) -> Iterator[Problem]:
        if self.pypi is not None and not _REQUIREMENT.fullmatch(self.pypi):
            yield Problem(("pypi",), f"{self.pypi!r} pins no version", "write name==version")
        if self.sha256 is not None and self.pypi is None:
            message = "only a pypi source takes a sha256"
            yield Problem(("sha256",), message, "remove it", at_key=True)
        elif self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            yield Problem(("sha256",), "a sha256 is 64 hexadecimal digits")


@frozen(kw_only=True)
class Fixtures(Ruled):
    """A git repository that hidden test files are taken from instead of the case directory.

    Attributes:
        repo: URL or directory of the repository.
        commit: Commit id, 7 to 64 hexadecimal digits.
        subdir: Directory inside it; the id of the case by default.
    """

    repo: str
    commit: str
    subdir: str | None = None

    def _problems(self) -> Iterator[Problem]:
        yield from (*_url_problems(self.repo, "repo"), *_commit_problems(self.commit))
        if self.subdir is not None:
            yield from inside_problem(self.subdir, ("subdir",))


_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*==\s*[A-Za-z0-9][A-Za-z0-9._+!-]*"
)
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)::?(//)?")
_SCHEMES = ("https", "http", "ssh", "git", "file")


def is_local(url: str) -> bool:
    """Whether a git address is a path on this machine rather than a URL or ``host:path``."""
    return "://" not in url and ":" not in url.partition("/")[0]


def _commit_problems(commit: str | None) -> list[Problem]:
    if commit is None:
        hint = "git ls-remote URL shows the ids"
        return [Problem(("commit",), "a git source needs a commit", hint, at_key=True)]
    if not _COMMIT.fullmatch(commit):
        hint = "pin the commit id: branches and tags can move"
        return [Problem(("commit",), f"{commit!r} is not a commit id", hint)]
    return []


def _url_problems(url: str, name: str) -> list[Problem]:
    scheme = _SCHEME.match(url)
    # `ext::command` and its like make git run a program that the URL names.
    if scheme and (scheme[0].endswith("::") or (scheme[2] and scheme[1] not in _SCHEMES)):
        hint = "use " + ", ".join(_SCHEMES)
        return [Problem((name,), f"git may not use the protocol {scheme[1]!r}", hint)]
    if not url.strip() or url.startswith("-") or not url.isprintable():
        return [Problem((name,), f"{url!r} is not a repository address")]
    return []
