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
from pathlib import Path
from typing import Literal

from assay.errors import SandboxUnavailableError

#: Numbers of calls by their names; None where the processor has no such call.
Numbers = dict[str, int | None]

# BPF opcodes: load a word, jump if equal, if at least, if any bit is set; mask; return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_FARTHEST = 200  # a jump holds one byte
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Read now: later, this process may be another user.
_TABLE = Path(__file__).with_name("syscalls.txt").read_text("ascii")
# A word that is none of these would leave a call as if nothing were said of it.
_WORDS = {
    "commands": (".", "eperm", "enosys", "rule"),
    "functions": (".", "allow", "worker", "enosys", "rule"),
}

#: CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
NAMESPACE_FLAGS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x60000000


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


ALLOW = _op(_RETURN, _ALLOW)
_KILL = _op(_RETURN, _KILL_PROCESS)


def calls(whose: Literal["commands", "functions"], machine: str = "") -> dict[str, Numbers]:
    """What a filter says of the calls in ``syscalls.txt``: for each word, the numbers by name."""
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailableError(
            f"no system-call filter for the processor {machine!r}",
            hint=f"run on {' or '.join(_ARCHITECTURES)}",
        )
    column = 1 + [*_ARCHITECTURES].index(machine)
    found: dict[str, Numbers] = {word: {} for word in _WORDS[whose]}
    for line in _TABLE.splitlines():
        if line and not line.startswith("#"):
            fields = line.split()
            number, word = fields[column], fields[3 + [*_WORDS].index(whose)]
            found[word][fields[0]] = None if number == "-" else int(number)
    return found


def prologue(machine: str = "", *, x32: int = 0) -> list[bytes]:
    """How every filter begins: the right architecture, then the call's number is loaded.

    Calls by the 32-bit entry have other numbers for the same calls: they kill the process.
    """
    machine = machine or os.uname().machine
    arch = _ARCHITECTURES[machine]
    code = [_op(_LOAD, _ARCH_AT), _op(_EQUAL, arch, 1, 0), _KILL, _op(_LOAD, _NUMBER_AT)]
    if machine == "x86_64":
        code.append(at_least(_X32_BIT, deny(x32) if x32 else _KILL))
    return code


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


# Calls that set a file's mode, and which argument holds it. In a workspace that is kept, a
# set-user-ID file would belong to the user who runs assay and outlive the sandbox.
_MODE_ARGUMENT = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
}
# Opening has a mode only where it may create: flags argument, mode argument.
_OPENING = {"open": (1, 2), "openat": (2, 3)}
_SET_ID_BITS = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into the caller's terminal
# UNIX, INET, INET6, NETLINK (getifaddrs). Others are not bounded by a network namespace (VSOCK
# reaches a virtual machine's host) or are rarely audited kernel code.
_SOCKET_FAMILIES = (1, 2, 10, 16)


@lru_cache(maxsize=2)
def command_filter(machine: str = "") -> bytes:
    """The compiled filter."""
    said, program = calls("commands", machine), prologue(machine, x32=errno.ENOSYS)
    rule = said["rule"]
    program += [
        when(rule["clone"], argument(0), any_bit(NAMESPACE_FLAGS, deny(errno.EPERM)), ALLOW),
        when(
            rule["ioctl"],
            argument(1),
            *(equal(request, deny(errno.EPERM)) for request in _TERMINAL_INJECTION),
            ALLOW,
        ),
        when(rule["socket"], argument(0), among(_SOCKET_FAMILIES, ALLOW), deny(errno.EAFNOSUPPORT)),
    ]
    set_id = any_bit(_SET_ID_BITS, deny(errno.EPERM))
    program += [
        when(rule[name], argument(mode), set_id, ALLOW) for name, mode in _MODE_ARGUMENT.items()
    ]
    program += [
        when(rule[name], argument(flags), any_bit(_CREATES, argument(mode), set_id, ALLOW), ALLOW)
        for name, (flags, mode) in _OPENING.items()
    ]
    program += [when(number, deny(errno.EPERM)) for number in said["eperm"].values()]
    program += [when(number, deny(errno.ENOSYS)) for number in said["enosys"].values()]
    program.append(ALLOW)
    return b"".join(program)
