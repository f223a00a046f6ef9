"""Assemble system-call filters in plain Python.

A filter is a program of classic BPF (``struct sock_filter``, 8 bytes each) over ``struct
seccomp_data``: the number of the call, the architecture, six arguments. It ends in a verdict. Two
filters are made of these parts: what a sandboxed command may *not* call (`assay.sandbox.seccomp`)
and the little that a function may call (`assay.sandbox.functions.filters`).

x86_64 and aarch64, both little-endian.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from assay.errors import SandboxUnavailableError

__all__ = [
    "ALLOW",
    "NAMESPACE_FLAGS",
    "Numbers",
    "among",
    "any_bit",
    "argument",
    "at_least",
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

    Args:
        machine: ``x86_64`` or ``aarch64``; empty for this machine.
        x32: The error for calls of x86_64's x32 interface; 0 to kill the process.

    Returns:
        Which of `Numbers` holds here, and the code.

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
