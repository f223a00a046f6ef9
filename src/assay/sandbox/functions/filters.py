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
    deny,
    equal,
    masked,
    prologue,
    when,
)

__all__ = ["worker_filters"]

_ALLOWED: dict[str, Numbers] = {
    # files, for reading: nothing can be written but pipes, socket pairs and /dev/null
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "write": (1, 64),
    "writev": (20, 66),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "close": (3, 57),
    "close_range": (436, 436),
    "lseek": (8, 62),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "sendfile": (40, 71),
    "fadvise64": (221, 223),
    "umask": (95, 166),
    # memory
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "msync": (26, 227),
    "mincore": (27, 232),
    "mlock": (149, 228),
    "munlock": (150, 229),
    # waiting
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "pause": (34, None),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "eventfd": (284, None),
    "eventfd2": (290, 19),
    "pipe": (22, None),
    "pipe2": (293, 59),
    # talking to itself
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "getsockopt": (55, 209),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    # clocks and timers
    "time": (201, None),
    "gettimeofday": (96, 169),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "alarm": (37, None),
    "timer_create": (222, 107),
    "timer_settime": (223, 110),
    "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111),
    "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87),
    "times": (100, 153),
    # receiving signals
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    # who and where it is
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getpgid": (121, 155),
    "getpgrp": (111, None),
    "getsid": (124, 156),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "uname": (63, 160),
    "getcpu": (309, 168),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "setrlimit": (160, 164),
    "getpriority": (140, 141),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_getattr": (315, 275),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "getrandom": (318, 278),
    # threads and ends
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "get_robust_list": (274, 100),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "arch_prctl": (158, None),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "wait4": (61, 260),
    "waitid": (247, 95),
}

# Only where every process that can be reached is the sandbox's own.
_PROCESSES: dict[str, Numbers] = {
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "pidfd_open": (434, 434),
}

# Answered with "no such call", so that a C library takes its older way. `clone3` and `openat2` pass
# their flags in memory, where a filter cannot look.
_UNKNOWN: dict[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "process_madvise": (440, 440),
    "fsopen": (430, 430),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "io_uring_setup": (425, 425),
}
# From here on, numbers are the same everywhere, and unknown to this table.
_NEWER = 451

_CLONE: Numbers = (56, 220)
_CLONE_THREAD = 0x00010000
# A process whose parent is not who made it: nobody would wait for it.
_CLONE_PARENT = 0x00008000

# Opening for reading may still truncate, and Landlock before its third version does not mind.
_OPENING: dict[str, tuple[Numbers, int]] = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
_ACCESS_MODE, _TRUNCATE = 0o3, 0o1000

# A pair of AF_UNIX sockets, of streams only: to a datagram socket each message can name another
# address, also that of a socket of the host.
_SOCKETPAIR: Numbers = (53, 199)
_UNIX, _STREAM, _TYPES = 1, 1, 0xF

# PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_SET_VMA
_PRCTL: Numbers = (157, 167)
_PRCTL_OPTIONS = (15, 16, 3, 23, 0x53564D41)
# PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS: how a call's process ties itself down.
_TYING_DOWN = (1, 22, 38)

# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL: Numbers = (16, 29)
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# Duplicate, flags of a descriptor, read those of a file, size of a pipe. Not F_SETOWN and F_SETSIG,
# with which a descriptor sends any signal to any process of the user.
_FCNTL: Numbers = (72, 25)
_FCNTL_COMMANDS = (0, 1, 2, 3, 1030, 1032)
# A file's flags outlive the call that sets them. O_NONBLOCK the supervisor takes back; the others
# here (access mode, O_LARGEFILE of either processor) cannot be changed.
_SET_FILE_FLAGS = 4
_FILE_FLAGS = 0o4000 | 0o3 | 0o100000 | 0o400000

# Memory that outlives a fork would be how one call tells the next.
_MMAP: Numbers = (9, 222)
_SHARED = 1  # also a bit of MAP_SHARED_VALIDATE

_PRLIMIT: Numbers = (302, 261)


@lru_cache(maxsize=4)
def worker_filters(tier: Literal["bwrap", "landlock"], machine: str = "") -> tuple[bytes, ...]:
    """The compiled filters of a worker.

    Returns:
        First what the worker installs before it reads the function; under Landlock then what the
        process of each call adds before it runs any of it. 8 bytes per instruction.

    Raises:
        SandboxUnavailableError: The processor is neither.
    """
    if tier == "bwrap":
        return (_program(machine, processes=True),)
    worker = _program(machine, processes=True, options=_TYING_DOWN)
    return worker, _program(machine, processes=False)


def _program(machine: str, *, processes: bool, options: tuple[int, ...] = ()) -> bytes:
    column, program = prologue(machine)
    allowed = {**_ALLOWED, **(_PROCESSES if processes else {})}
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
        among(_numbers(allowed, column), ALLOW),
        when(_CLONE[column], argument(0), *clone),
        *(
            when(
                numbers[column],
                argument(flags),
                masked(_ACCESS_MODE | _TRUNCATE),
                equal(_TRUNCATE, deny(errno.EPERM)),
                ALLOW,
            )
            for numbers, flags in _OPENING.values()
        ),
        when(
            _SOCKETPAIR[column],
            argument(0),
            equal(_UNIX, argument(1), masked(_TYPES), equal(_STREAM, ALLOW)),
            deny(errno.EPERM),
        ),
        _one_of(_PRCTL[column], 0, (*_PRCTL_OPTIONS, *options), errno.EPERM),
        _one_of(_IOCTL[column], 1, _IOCTL_REQUESTS, errno.ENOTTY),
        when(
            _FCNTL[column],
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
        when(_MMAP[column], argument(3), any_bit(_SHARED, deny(errno.EPERM)), ALLOW),
        _one_of(_PRLIMIT[column], 0, (0,), errno.EPERM),
        among(_numbers(_UNKNOWN, column), deny(errno.ENOSYS)),
        at_least(_NEWER, deny(errno.ENOSYS)),
        deny(errno.EPERM),
    ]
    return b"".join(program)


def _one_of(call: int | None, index: int, values: tuple[int, ...], otherwise: int) -> bytes:
    return when(call, argument(index), among(values, ALLOW), deny(otherwise))


def _numbers(calls: dict[str, Numbers], column: int) -> list[int]:
    return sorted(number for numbers in calls.values() if (number := numbers[column]) is not None)
