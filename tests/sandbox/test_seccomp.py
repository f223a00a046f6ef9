"""The filter program, run by a small BPF machine here and by the kernel in `test_sandbox_run`."""

from __future__ import annotations

import errno

import pytest

from assay.errors import SandboxUnavailableError
from assay.sandbox.seccomp import calls, command_filter
from tests.each import each
from tests.sandbox.bpf_machine import ALLOW, ARM, KILL, X86, judge, refused

CLONE_NEWUSER, CLONE_THREAD = 0x10000000, 0x00010000


CASES = [
    # name, machine, number, arguments, verdict
    ("read", X86, 0, (), ALLOW),
    ("read", ARM, 63, (), ALLOW),
    ("ptrace", X86, 101, (), refused(errno.EPERM)),
    ("ptrace", ARM, 117, (), refused(errno.EPERM)),
    ("mount", X86, 165, (), refused(errno.EPERM)),
    ("mount", ARM, 40, (), refused(errno.EPERM)),
    ("unshare", X86, 272, (0,), refused(errno.EPERM)),
    ("setns", ARM, 268, (), refused(errno.EPERM)),
    ("bpf", X86, 321, (), refused(errno.EPERM)),
    ("clone3", X86, 435, (), refused(errno.ENOSYS)),
    ("clone3", ARM, 435, (), refused(errno.ENOSYS)),
    ("io_uring_setup", X86, 425, (), refused(errno.ENOSYS)),
    ("openat2", ARM, 437, (), refused(errno.ENOSYS)),
    ("memfd_create", X86, 319, (), refused(errno.ENOSYS)),
    ("fork by clone", X86, 56, (0x1200011,), ALLOW),
    ("thread", ARM, 220, (0x3D0F00 | CLONE_THREAD,), ALLOW),
    ("clone into namespaces", X86, 56, (CLONE_NEWUSER | 17,), refused(errno.EPERM)),
    ("clone into namespaces", ARM, 220, (0x40000000,), refused(errno.EPERM)),
    ("high bits do not hide", X86, 56, (1 << 40 | CLONE_NEWUSER,), refused(errno.EPERM)),
    ("TIOCSTI", X86, 16, (0, 0x5412), refused(errno.EPERM)),
    ("TIOCSTI in disguise", X86, 16, (0, 1 << 32 | 0x5412), refused(errno.EPERM)),
    ("TIOCLINUX", ARM, 29, (0, 0x541C), refused(errno.EPERM)),
    ("TCGETS", X86, 16, (0, 0x5401), ALLOW),
    ("inet socket", X86, 41, (2,), ALLOW),
    ("unix socket", ARM, 198, (1,), ALLOW),
    ("vsock", X86, 41, (40,), refused(errno.EAFNOSUPPORT)),
    ("alg", ARM, 198, (38,), refused(errno.EAFNOSUPPORT)),
    ("chmod", X86, 90, (0, 0o755), ALLOW),
    ("chmod u+s", X86, 90, (0, 0o4755), refused(errno.EPERM)),
    ("fchmodat g+s", ARM, 53, (0, 0, 0o2755), refused(errno.EPERM)),
    ("fchmodat2 u+s", X86, 452, (0, 0, 0o4755), refused(errno.EPERM)),
    ("open to create u+s", X86, 2, (0, 0o101, 0o4755), refused(errno.EPERM)),
    ("openat to create", ARM, 56, (0, 0, 0o101, 0o644), ALLOW),
    ("openat to create u+s", ARM, 56, (0, 0, 0o101, 0o4755), refused(errno.EPERM)),
    ("open, mode is garbage", X86, 2, (0, 0, 0o4755), ALLOW),
    ("unnamed file u+s", X86, 257, (0, 0, 0o20200002, 0o4755), refused(errno.EPERM)),
    ("x32", X86, 0x40000000 | 101, (), refused(errno.ENOSYS)),
]


@each("name, machine, number, arguments, verdict", CASES)
def test_verdicts(
    name: str, machine: str, number: int, arguments: tuple[int, ...], verdict: int
) -> None:
    assert judge(command_filter(machine), machine, number, *arguments) == verdict, name


@pytest.mark.parametrize("machine", [X86, ARM])
def test_the_table_leaves_no_call_to_a_rule_that_nobody_wrote(machine: str) -> None:
    program, all_bits = command_filter(machine), (2**64 - 1,) * 6
    for name, number in calls("commands", machine)["rule"].items():
        if number is not None:
            answers = {judge(program, machine, number, *x) for x in (all_bits, (0, 0x5412))}
            assert answers - {ALLOW}, name


def test_calls_by_the_32_bit_door_kill() -> None:
    assert judge(command_filter(X86), X86, 26, arch=0x40000003) == KILL  # i386, where 26 is ptrace
    assert judge(command_filter(ARM), ARM, 26, arch=0x40000028) == KILL


def test_unknown_processor() -> None:
    with pytest.raises(SandboxUnavailableError, match="riscv64"):
        command_filter("riscv64")
