"""Run a program as Docker would, as far as the kernel's permissions go.

``python docker_emulation.py FILTER UID COMMAND...``: under Docker's default system-call profile and
with its fourteen capabilities, or as an ordinary user with none. Namespaces, mounts and tracing by
the profile's rules; `landlock_*` and `seccomp` are allowed there, as in the real one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

__all__ = ["interpreter", "profile", "run_as_docker"]

# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW,
# SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
HERE = Path(__file__)
_TABLE = HERE.parents[2] / "src" / "assay" / "sandbox" / "syscalls.txt"
"""The numbers of system calls, of x86_64 and of aarch64."""

# Not in the profile, or only for capabilities beyond the fourteen.
NOT_PERMITTED = """
mount umount2 pivot_root unshare setns fsopen fsmount fsconfig fspick move_mount open_tree
mount_setattr open_by_handle_at bpf perf_event_open keyctl add_key request_key userfaultfd
io_uring_setup io_uring_enter io_uring_register kcmp pidfd_getfd process_madvise fanotify_init
lookup_dcookie quotactl sethostname setdomainname syslog acct settimeofday clock_settime reboot
swapon swapoff init_module finit_module delete_module kexec_load mbind set_mempolicy move_pages
vhangup
"""
CLONE, CLONE3 = (56, 220), (435, 435)
NAMESPACES = 0x7E020000


@lru_cache(maxsize=2)
def profile(machine: str = "") -> bytes:
    """Docker's default profile, compiled."""
    from assay.sandbox.seccomp import ALLOW, any_bit, argument, deny, prologue, when

    rows = [line.split() for line in _TABLE.read_text("ascii").splitlines() if line[:1].isalpha()]
    numbers = {name: of_machines for name, *of_machines in rows}
    column, program = int((machine or os.uname().machine) == "aarch64"), prologue(machine)
    program += [
        when(CLONE[column], argument(0), any_bit(NAMESPACES, deny(errno.EPERM)), ALLOW),
        when(CLONE3[column], deny(errno.ENOSYS)),
        *(when(int(numbers[name][column]), deny(errno.EPERM)) for name in NOT_PERMITTED.split()),
        ALLOW,
    ]
    return b"".join(program)


def interpreter(uid: int) -> str | None:
    """A Python that this user may run, and that is new enough for assay; None if there is none."""
    from tests.sandbox.ordinary_user import surroundings

    if uid in (0, os.getuid()):
        return sys.executable
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        test = [candidate, "-c", "import sys, assay.errors; sys.exit(sys.version_info < (3, 11))"]
        try:
            done = subprocess.run(
                test, env=surroundings(), check=False, capture_output=True, user=uid, group=uid
            )
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


def run_as_docker(
    script: str, *, uid: int, stdin: str = "", timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a Python script in the emulation.

    Args:
        script: Its source.
        uid: 0 for a container's root; this process must be root for any but its own.
        stdin: What it reads.
        timeout: Seconds after which it is killed.
    """
    from tests.sandbox.ordinary_user import surroundings

    python = interpreter(uid)
    assert python
    # The emulation itself runs in our own interpreter: it starts as root.
    words = [sys.executable, "-I", "-S", str(HERE), profile().hex(), str(uid)]
    process = subprocess.Popen(
        [*words, python, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(),
        cwd="/",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\nkilled after {timeout} s"
    return subprocess.CompletedProcess([script], process.returncode, out, err)


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def main() -> None:
    """Give up what Docker gives up, then become the command."""
    code, uid, command = bytes.fromhex(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)

    def prctl(*words: object) -> None:
        if libc.prctl(*words) < 0:
            raise OSError(ctypes.get_errno(), f"prctl {words[0]}")

    zero = ctypes.c_ulong(0)
    is_root = os.geteuid() == 0
    if not is_root:
        prctl(38, ctypes.c_ulong(1), zero, zero, zero)
    # Root needs no PR_SET_NO_NEW_PRIVS for a filter, and Docker does not set it either.
    prctl(22, ctypes.c_ulong(2), ctypes.byref(_Program(len(code) // 8, code)), zero, zero)
    if is_root:
        for number in range(64):
            if number not in CAPABILITIES:
                libc.prctl(24, ctypes.c_ulong(number), zero, zero, zero)  # from the bounding set
        if uid:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        else:
            mask = sum(1 << number for number in CAPABILITIES)
            header = struct.pack("<Ii", 0x20080522, 0)
            sets = struct.pack("<6I", mask, mask, mask, 0, 0, 0)
            if libc.capset(header, sets):
                raise OSError(ctypes.get_errno(), "capset")
    os.execve(command[0], command, dict(os.environ))


if __name__ == "__main__":
    main()
