"""The system-call filter of sandboxed commands, assembled in plain Python.

Namespaces decide what a command can *see*; this filter takes away the calls through which a command
could reach the kernel's own machinery: new namespaces (the way to most kernel bugs), mounts,
tracing, eBPF, keyrings, io_uring. It is a deny list: a test suite may use everything else.

The program is classic BPF (``struct sock_filter``) over ``struct seccomp_data``, as bubblewrap's
``--seccomp`` reads it. x86_64 and aarch64, both little-endian.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from functools import lru_cache

from assay.errors import SandboxUnavailableError

__all__ = [
    "ALLOW",
    "NAMESPACE_FLAGS",
    "Numbers",
    "among",
    "any_bit",
    "argument",
    "at_least",
    "command_filter",
    "deny",
    "equal",
    "masked",
    "prologue",
    "when",
]

#: A call's number on x86_64 and on aarch64; None where the architecture has no such call.
Numbers = tuple[int | None, int | None]

# BPF opcodes: load a word, jump if equal, if at least, if any bit is set; mask; return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_FARTHEST = 200  # a jump holds one byte
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

#: CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
NAMESPACE_FLAGS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x60000000


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


ALLOW = _op(_RETURN, _ALLOW)
_KILL = _op(_RETURN, _KILL_PROCESS)


def prologue(machine: str = "", *, x32: int = 0) -> tuple[int, list[bytes]]:
    """How every filter begins: the right architecture, then the call's number is loaded.

    Calls by the 32-bit entry have other numbers for the same calls: they kill the process.

    Raises:
        SandboxUnavailableError: The processor is neither.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailableError(
            f"no system-call filter for the processor {machine!r}",
            hint=f"run on {' or '.join(_ARCHITECTURES)}",
        )
    arch, column = _ARCHITECTURES[machine]
    code = [_op(_LOAD, _ARCH_AT), _op(_EQUAL, arch, 1, 0), _KILL, _op(_LOAD, _NUMBER_AT)]
    if machine == "x86_64":
        code.append(at_least(_X32_BIT, deny(x32) if x32 else _KILL))
    return column, code


def argument(index: int) -> bytes:
    """Load the low word of an argument (flags, modes and families are 32 bits wide)."""
    return _op(_LOAD, _ARGUMENTS_AT + 8 * index)


def deny(number: int) -> bytes:
    """Answer with an error, without making the call."""
    return _op(_RETURN, _ERRNO | number)


def when(number: int | None, *body: bytes) -> bytes:
    """Run ``body`` for one system call; it must end in a verdict."""
    return b"" if number is None else equal(number, *body)


def equal(value: int, *body: bytes) -> bytes:
    """Run ``body`` if the loaded word is ``value``."""
    code = b"".join(body)
    return _op(_EQUAL, value, 0, len(code) // 8) + code


def at_least(value: int, *body: bytes) -> bytes:
    """Run ``body`` if the loaded word is ``value`` or more."""
    code = b"".join(body)
    return _op(_AT_LEAST, value, 0, len(code) // 8) + code


def among(values: Sequence[int], *body: bytes) -> bytes:
    """Run ``body``, which must end in a verdict, if the loaded word is one of ``values``."""
    code = b"".join(body)
    program: list[bytes] = []
    for start in range(0, len(values), _FARTHEST):
        group = values[start : start + _FARTHEST]
        last = len(group) - 1
        program += [_op(_EQUAL, value, last - at) for at, value in enumerate(group[:-1])]
        program += [_op(_EQUAL, group[last], 0, len(code) // 8), code]
    return b"".join(program)


def any_bit(mask: int, *body: bytes) -> bytes:
    """Run ``body`` if the loaded word has any bit of ``mask``."""
    code = b"".join(body)
    return _op(_ANY_BIT, mask, 0, len(code) // 8) + code


def masked(mask: int) -> bytes:
    """Keep only the bits of ``mask`` of the loaded word."""
    return _op(_MASK, mask)


_Numbers = dict[str, Numbers]

_FORBIDDEN: _Numbers = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # kernel machinery with a history of holes
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    # the machine itself
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
}

# Answered with "no such call", so that a C library takes its older way. `clone3` and `openat2` pass
# their flags in memory, where a filter cannot look. The others hold memory that no process maps,
# so that neither an rlimit nor the memory watch would see it.
_UNKNOWN: _Numbers = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
}

# Calls that set a file's mode, and which argument holds it. In a workspace that is kept, a
# set-user-ID file would belong to the user who runs assay and outlive the sandbox.
_MODE_ARGUMENT: dict[str, tuple[Numbers, int]] = {
    "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
    "creat": ((85, None), 1),
    "mknod": ((133, None), 1),
    "mknodat": ((259, 33), 2),
}
# Opening has a mode only where it may create: (numbers, flags argument, mode argument).
_OPENING: dict[str, tuple[Numbers, int, int]] = {
    "open": ((2, None), 1, 2),
    "openat": ((257, 56), 2, 3),
}
_SET_ID_BITS = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE

_CLONE = (56, 220)
_IOCTL = (16, 29)
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into the caller's terminal
_SOCKET = (41, 198)
# UNIX, INET, INET6, NETLINK (getifaddrs). Others are not bounded by a network namespace (VSOCK
# reaches a virtual machine's host) or are rarely audited kernel code.
_SOCKET_FAMILIES = (1, 2, 10, 16)


@lru_cache(maxsize=2)
def command_filter(machine: str = "") -> bytes:
    """The compiled filter.

    Raises:
        SandboxUnavailableError: The processor is neither.
    """
    column, program = prologue(machine, x32=errno.ENOSYS)
    program += [
        when(_CLONE[column], argument(0), any_bit(NAMESPACE_FLAGS, deny(errno.EPERM)), ALLOW),
        when(
            _IOCTL[column],
            argument(1),
            *(equal(request, deny(errno.EPERM)) for request in _TERMINAL_INJECTION),
            ALLOW,
        ),
        when(
            _SOCKET[column], argument(0), among(_SOCKET_FAMILIES, ALLOW), deny(errno.EAFNOSUPPORT)
        ),
    ]
    program += [
        when(numbers[column], argument(mode), any_bit(_SET_ID_BITS, deny(errno.EPERM)), ALLOW)
        for numbers, mode in _MODE_ARGUMENT.values()
    ]
    program += [
        when(
            numbers[column],
            argument(flags),
            any_bit(_CREATES, argument(mode), any_bit(_SET_ID_BITS, deny(errno.EPERM)), ALLOW),
            ALLOW,
        )
        for numbers, flags, mode in _OPENING.values()
    ]
    program += [when(numbers[column], deny(errno.EPERM)) for numbers in _FORBIDDEN.values()]
    program += [when(numbers[column], deny(errno.ENOSYS)) for numbers in _UNKNOWN.values()]
    program.append(ALLOW)
    return b"".join(program)
