"""Get report files out of a sandbox whose file system dies with the command.

The command is wrapped: files that match before it are removed, so that no report is older than the
run; what it leaves running is killed; and what matches then is packed into one file of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from assay.errors import GraderError, InputError

__all__ = ["PACKED", "check_globs", "read_packed", "wrapped"]

PACKED = "/opt/assay/reports"
"""Where the sandbox shows the file that the reports are packed into."""

_MOST_FILES = 100
_MOST_BYTES = 16 * 1024 * 1024
_MOST_OPTIONAL = 3
_TOOLS = ("find", "head", "tar")
_TOOLS_AT = "/usr/local/bin:/usr/bin:/bin"
_WRAPPER = f"""
line=$1
shift
(PATH={_TOOLS_AT}
    find . '(' -type f -o -type l ')' '(' "$@" ')' -exec rm -f -- '{{}}' +)
/bin/sh -c "$line"
status=$?
kill -KILL -1 2>/dev/null
(PATH={_TOOLS_AT}
    cd /workspace && find . -type f -size -{_MOST_BYTES // 512 + 1} '(' "$@" ')' -print0 |
    head -z -n {_MOST_FILES} | tar -cf {PACKED} --no-recursion --null -T -) 2>/dev/null
exit $status
"""


def check_globs(globs: Sequence[str]) -> None:
    """Refuse globs that do not stay inside the workspace.

    Raises:
        InputError: Naming the glob.
    """
    for glob in globs:
        steps = glob.removeprefix("/workspace/").split("/")
        if not glob or ".." in steps or steps[0] == "" or "\0" in glob or "\n" in glob:
            raise InputError(
                f"junit_xml {glob!r} is not a glob inside the workspace",
                hint="write it like build/reports/**/*.xml",
            )
        if glob.count("**") > _MOST_OPTIONAL:
            raise InputError(f"junit_xml {glob!r} has more than {_MOST_OPTIONAL} **")


def wrapped(line: str, globs: Sequence[str]) -> list[str]:
    """The words that run a shell line and pack the files it leaves for some globs.

    Raises:
        InputError: For a glob that does not stay inside the workspace.
        GraderError: If this machine, whose programs the sandbox shows, has nothing to pack with.
    """
    import shutil

    check_globs(globs)
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_TOOLS_AT) is None]
    if missing:
        raise GraderError(f"JUnit reports need {', '.join(missing)}", hint="install them")
    words: list[str] = []
    for glob in globs:
        for pattern in _patterns(glob):
            words += ["-o", "-regex", pattern]
    return ["/bin/sh", "-c", _WRAPPER, "sh", line, *words[1:]]


def read_packed(path: str) -> dict[str, bytes]:
    """The packed files by path in the workspace; none if nothing readable was packed."""
    import tarfile

    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    with suppress(tarfile.TarError, OSError, EOFError, ValueError), tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.type != tarfile.REGTYPE or member.size > left or len(found) == _MOST_FILES:
                continue
            left -= member.size
            content = tar.extractfile(member)
            if content is not None:
                found[member.name.removeprefix("./")] = content.read()
    return found


def _patterns(glob: str) -> list[str]:
    """A glob as regular expressions that every ``find`` reads alike, over paths from ``./``."""
    rest = glob.removeprefix("/workspace/").removeprefix("./")
    found = ["[.]/"]
    while rest:
        if rest.startswith("**/"):
            rest = rest[3:]
            found = [*found, *(f"{one}.*/" for one in found)]
            continue
        if rest.startswith("**"):
            piece, rest = ".*", rest[2:]
        elif bracket := re.match(r"\[[!^]?\]?[^\]/]*\]", rest):
            inside = bracket.group()
            piece, rest = inside.replace("[!", "[^", 1), rest[len(inside) :]
        else:
            sign, rest = rest[0], rest[1:]
            piece = {"*": "[^/]*", "?": "[^/]"}.get(sign, _literal(sign))
        found = [one + piece for one in found]
    return found


def _literal(sign: str) -> str:
    if sign in "^\\":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".+$[]" else sign
