"""Confine this process by Landlock, and become a worker: for where there are no namespaces.

Run as ``python landlock.py PLAN COMMAND...`` with `Plan` in JSON. It ends in ``COMMAND``, with the
same process id: no file can be opened but those of the plan, no TCP used, no signal sent to anybody
outside. What Landlock knows nothing of (modes, times and owners of files, UNIX sockets, forks) is
the business of the worker's system-call filter.

Root becomes the plan's user first, who owns nothing. An ordinary user stays who he is, and so do
his processes count against RLIMIT_NPROC: the limit is set to a little more than he has.

Part of a worker, which runs in a bare interpreter: standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Plan(TypedDict):
        """What to give up.

        ``parent``: the process whose end is ours. ``uid``: the user to become, 0 for none.
        ``readable``: files and directories that may be read, those that exist; of ``needed`` each
        must be readable in the end. ``devices``: may be read and written. ``room``: processes above
        those that an ordinary user has already.
        """

        parent: int
        uid: int
        readable: list[str]
        needed: list[str]
        devices: list[str]
        room: int


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION, _PATH_BENEATH = 1, 1
# Rights on files: of the first version, and what later ones added.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FIRST_RIGHTS = (1 << 13) - 1
_REFER, _TRUNCATE, _DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract UNIX sockets, signals
_SET_DEATH_SIGNAL, _SET_KEEP_CAPABILITIES, _SET_NO_NEW_PRIVS = 1, 8, 38
_AMBIENT, _RAISE = 47, 2
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
# With either, a user may read what stands in a directory that is closed to others.
_READ_ANYWHERE = {"CAP_DAC_READ_SEARCH": 2, "CAP_DAC_OVERRIDE": 1}
_SIGKILL = 9
_MOST_PROCESSES = 1 << 22

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's version of Landlock; 0 if there is none."""
    size = ctypes.c_size_t(0)
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, size, _GET_VERSION)))


def main() -> None:
    """Give up everything but the plan, and become the command."""
    plan: Plan = json.loads(sys.argv[1])
    command = sys.argv[2:]
    try:
        rules = _ruleset(plan)
        if plan["uid"]:
            _become(plan["uid"], plan["needed"])
        else:
            _limit_processes(plan["room"])
        _prctl(_SET_NO_NEW_PRIVS, 1)
        _check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
        os.close(rules)
        # Last: a change of user clears it.
        _prctl(_SET_DEATH_SIGNAL, _SIGKILL)
        if os.getppid() != plan["parent"]:
            return
        os.chdir("/")
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"landlock: {error}")


def _ruleset(plan: Plan) -> int:
    """The rules, as a descriptor. Whatever they can forbid and do not allow is forbidden."""
    number = version()
    rights = _FIRST_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE_IOCTL)):
        rights |= right if number >= since else 0
    attributes = struct.pack("<Q", rights)
    attributes += struct.pack("<Q", _TCP) if number >= 4 else b""
    attributes += struct.pack("<Q", _SCOPES) if number >= 6 else b""
    size = ctypes.c_size_t(len(attributes))
    rules = _check(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock_create_ruleset")
    for path in plan["readable"]:
        _allow(rules, path, _EXECUTE | _READ_FILE | _READ_DIR)
    for path in plan["devices"]:
        _allow(rules, path, _READ_FILE | _WRITE_FILE)
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs milliseconds
        rights &= ~_READ_DIR
    rule = struct.pack("<Qi", rights, place)
    added = _libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    os.close(place)
    _check(added, f"landlock_add_rule {path}")


def _become(uid: int, needed: list[str]) -> None:
    """Give up root for good.

    Where root keeps Python in a directory that is closed to others, as a container's root often
    does in /root, one capability stays: to read it all the same. Landlock says what may be read.
    """
    capabilities = _capabilities()
    _prctl(_SET_KEEP_CAPABILITIES, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # `access` judges by the user, without capabilities.
    closed = [path for path in needed if not os.access(path, os.R_OK)]
    kept = 0
    if closed:
        held = [number for number in _READ_ANYWHERE.values() if capabilities >> number & 1]
        if not held:
            raise PermissionError(13, f"no other user may read {closed[0]}")
        kept = held[0]
    _keep_only(1 << kept if closed else 0)
    if closed:
        _prctl(_AMBIENT, _RAISE, kept)


def _capabilities() -> int:
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - pathlib costs milliseconds
        for line in status:
            if line.startswith(b"CapPrm:"):
                return int(line.split()[1], 16)
    return 0


def _keep_only(mask: int) -> None:
    header = struct.pack("<Ii", _CAPABILITY_VERSION, 0)
    data = struct.pack("<6I", mask, mask, mask, 0, 0, 0)
    _check(_libc.syscall(_CAPSET[os.uname().machine], header, data), "capset")


def _limit_processes(room: int) -> None:
    """Allow ``room`` more processes than this user has now.

    How many those are, only the kernel knows: it counts those of other containers too. So it is
    asked, by trying to fork under one limit after the other.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _MOST_PROCESSES if hard == resource.RLIM_INFINITY else hard
    too_few, enough = 0, min(64, most)
    while not _may_fork(enough, hard):
        if enough >= most:
            raise OSError(11, "this user may not start a process")
        too_few, enough = enough, min(enough * 2, most)
    while enough - too_few > 64:
        middle = (too_few + enough) // 2
        if _may_fork(middle, hard):
            enough = middle
        else:
            too_few = middle
    limit = min(enough + room, most)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _may_fork(limit: int, hard: int) -> bool:
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, hard))
    try:
        pid = os.fork()
    except BlockingIOError:
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def _prctl(option: int, value: int, second: int = 0) -> None:
    words = [ctypes.c_ulong(word) for word in (value, second, 0, 0)]
    _check(_libc.prctl(option, *words), f"prctl {option}")


def _check(returned: int, what: str) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return returned


if __name__ == "__main__":
    main()
