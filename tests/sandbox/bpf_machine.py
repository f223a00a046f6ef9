"""A machine for the little of classic BPF that system-call filters are made of."""

from __future__ import annotations

import struct

__all__ = ["ALLOW", "ARM", "AUDIT", "KILL", "MACHINES", "X86", "judge", "refused"]

X86, ARM = "x86_64", "aarch64"
MACHINES = (X86, ARM)
AUDIT = {X86: 0xC000003E, ARM: 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000


def refused(number: int) -> int:
    """The verdict that answers with this error."""
    return 0x00050000 | number


def judge(
    filter_: bytes, machine: str, number: int, *arguments: int, arch: int | None = None
) -> int:
    """Run a filter on one system call; every jump must stay within the program."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch or AUDIT[machine], 0, *words)
    program = list(struct.iter_unpack("<HBBI", filter_))
    assert len(program) <= 4096
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(f"opcode {code:#x}")
