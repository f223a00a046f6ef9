"""What a function that nobody trusts may ask of the kernel.

An allow list: whatever is not named here is refused, and so is what the kernel learns next year. A
function computes; it reads Python's own library, and that is all. Namespaces, or Landlock, already
keep it from what it should not see; the filter keeps it from most of the kernel.

The programs are compiled here, on the host, and only installed in the worker
(`assay.sandbox.functions.inside.confine`).

Under bubblewrap one program does. Under Landlock, without a pid namespace, a process that the
function starts, or signals, would be the host's. There the process of each call adds a second
program: no forks, no signals. The first one still has both, because the worker needs them: **it
must run nothing of the function itself.**
"""

from __future__ import annotations

import errno
from functools import lru_cache
from typing import Literal

from assay.sandbox.seccomp import (
    ALLOW,
    NAMESPACE_FLAGS,
    Numbers,
    among,
    any_bit,
    argument,
    at_least,
    calls,
    deny,
    equal,
    masked,
    prologue,
    when,
)

# From here on, numbers are the same everywhere, and unknown to this table.
_NEWER = 451

_CLONE_THREAD = 0x00010000
# A process whose parent is not who made it: nobody would wait for it.
_CLONE_PARENT = 0x00008000

# Opening for reading may still truncate, and Landlock before its third version does not mind.
_OPENING = {"open": 1, "openat": 2}
_ACCESS_MODE, _TRUNCATE = 0o3, 0o1000

# A pair of AF_UNIX sockets, of streams only: to a datagram socket each message can name another
# address, also that of a socket of the host.
_UNIX, _STREAM, _TYPES = 1, 1, 0xF

# PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_SET_VMA
_PRCTL_OPTIONS = (15, 16, 3, 23, 0x53564D41)
# PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS: how a call's process ties itself down.
_TYING_DOWN = (1, 22, 38)

# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# Duplicate, flags of a descriptor, read those of a file, size of a pipe. Not F_SETOWN and F_SETSIG,
# with which a descriptor sends any signal to any process of the user.
_FCNTL_COMMANDS = (0, 1, 2, 3, 1030, 1032)
# A file's flags outlive the call that sets them. O_NONBLOCK the supervisor takes back; the others
# here (access mode, O_LARGEFILE of either processor) cannot be changed.
_SET_FILE_FLAGS = 4
_FILE_FLAGS = 0o4000 | 0o3 | 0o100000 | 0o400000

# Memory that outlives a fork would be how one call tells the next.
_SHARED = 1  # also a bit of MAP_SHARED_VALIDATE


@lru_cache(maxsize=4)
def worker_filters(tier: Literal["bwrap", "landlock"], machine: str = "") -> tuple[bytes, ...]:
    """The compiled filters of a worker."""
    if tier == "bwrap":
        return (_program(machine, processes=True),)
    worker = _program(machine, processes=True, options=_TYING_DOWN)
    return worker, _program(machine, processes=False)


def _program(machine: str, *, processes: bool, options: tuple[int, ...] = ()) -> bytes:
    said, program = calls("functions", machine), prologue(machine)
    rule, allowed = said["rule"], {**said["allow"], **(said["worker"] if processes else {})}
    clone = (
        (any_bit(NAMESPACE_FLAGS | _CLONE_PARENT, deny(errno.EPERM)), ALLOW)
        if processes
        else (
            masked(NAMESPACE_FLAGS | _CLONE_PARENT | _CLONE_THREAD),
            equal(_CLONE_THREAD, ALLOW),
            deny(errno.EPERM),
        )
    )
    program += [
        among(_known(allowed), ALLOW),
        when(rule["clone"], argument(0), *clone),
        *(
            when(
                rule[name],
                argument(flags),
                masked(_ACCESS_MODE | _TRUNCATE),
                equal(_TRUNCATE, deny(errno.EPERM)),
                ALLOW,
            )
            for name, flags in _OPENING.items()
        ),
        when(
            rule["socketpair"],
            argument(0),
            equal(_UNIX, argument(1), masked(_TYPES), equal(_STREAM, ALLOW)),
            deny(errno.EPERM),
        ),
        _one_of(rule["prctl"], 0, (*_PRCTL_OPTIONS, *options), errno.EPERM),
        _one_of(rule["ioctl"], 1, _IOCTL_REQUESTS, errno.ENOTTY),
        when(
            rule["fcntl"],
            argument(1),
            among(_FCNTL_COMMANDS, ALLOW),
            equal(
                _SET_FILE_FLAGS,
                argument(2),
                any_bit(~_FILE_FLAGS & 0xFFFFFFFF, deny(errno.EPERM)),
                ALLOW,
            ),
            deny(errno.EPERM),
        ),
        when(rule["mmap"], argument(3), any_bit(_SHARED, deny(errno.EPERM)), ALLOW),
        _one_of(rule["prlimit64"], 0, (0,), errno.EPERM),
        among(_known(said["enosys"]), deny(errno.ENOSYS)),
        at_least(_NEWER, deny(errno.ENOSYS)),
        deny(errno.EPERM),
    ]
    return b"".join(program)


def _one_of(call: int | None, index: int, values: tuple[int, ...], otherwise: int) -> bytes:
    return when(call, argument(index), among(values, ALLOW), deny(otherwise))


def _known(named: Numbers) -> list[int]:
    return sorted(number for number in named.values() if number is not None)
