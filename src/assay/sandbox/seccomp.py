"""The system-call filter of sandboxed commands, assembled in plain Python.

Namespaces decide what a command can *see*; this filter takes away the calls through which a command
could reach the kernel's own machinery: new namespaces (the way to most kernel bugs), mounts,
tracing, eBPF, keyrings, io_uring. It is a deny list: a test suite may use everything else.

The program is classic BPF (``struct sock_filter``) over ``struct seccomp_data``, as bubblewrap's
``--seccomp`` reads it. x86_64 and aarch64, both little-endian.
"""

from __future__ import annotations

import errno
from functools import lru_cache

from assay.sandbox.bpf import (
    ALLOW,
    NAMESPACE_FLAGS,
    Numbers,
    among,
    any_bit,
    argument,
    deny,
    equal,
    prologue,
    when,
)

__all__ = ["command_filter"]

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

    Args:
        machine: ``x86_64`` or ``aarch64``; empty for this machine.

    Returns:
        The BPF program, 8 bytes per instruction.

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
