"""The filters of function workers: by a small BPF machine on both processors, and by the kernel."""

from __future__ import annotations

import errno
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from assay.sandbox.functions import filters
from assay.sandbox.functions.filters import worker_filters
from assay.sandbox.seccomp import calls
from tests.children import printed
from tests.each import each
from tests.sandbox.bpf_machine import ALLOW, ARM, KILL, MACHINES, X86, judge, refused

DENIED, UNKNOWN = refused(errno.EPERM), refused(errno.ENOSYS)
THREAD, FORK, NEW_USER = 0x003D0F00, 0x01200011, 0x10000000
Stage = Literal["namespaced", "worker", "call"]
STAGES: tuple[Stage, ...] = ("namespaced", "worker", "call")


def program(stage: Stage, machine: str) -> bytes:
    if stage == "namespaced":
        return worker_filters("bwrap", machine)[0]
    return worker_filters("landlock", machine)[stage == "call"]


# What must never get through, anywhere; the last three lines change files, of which Landlock does
# not know all.
FORBIDDEN = """
socket connect bind listen accept accept4 sendmmsg setsockopt execve execveat
ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd pidfd_send_signal
rt_sigqueueinfo rt_tgsigqueueinfo keyctl add_key request_key bpf perf_event_open userfaultfd
io_uring_enter io_uring_register io_setup mount umount2 pivot_root chroot move_mount open_tree
fsmount unshare setns init_module finit_module kexec_load reboot name_to_handle_at
open_by_handle_at syslog personality memfd_create memfd_secret shmget semget msgget mq_open
mlockall vmsplice splice tee setuid setresuid setgroups capset sethostname clock_settime
sched_setaffinity sched_setscheduler setpriority ioprio_set inotify_init1 fanotify_init flock
chmod fchmod fchmodat chown fchown lchown fchownat utime utimes utimensat futimesat
setxattr fsetxattr removexattr getxattr truncate ftruncate fallocate
rename renameat2 mkdirat unlinkat linkat symlinkat mknodat creat copy_file_range
"""
OF_PROCESSES = "kill tkill tgkill pidfd_open fork vfork"
NO_SUCH_CALL = "clone3 openat2 io_uring_setup seccomp landlock_restrict_self"
STATMOUNT, OF_NEXT_YEAR = 457, 700
HEADERS = {
    X86: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    ARM: Path("/usr/include/asm-generic/unistd.h"),
}


@cache
def kernels_numbers(machine: str) -> Mapping[str, int]:
    """The number of every call by its name."""
    if not HEADERS[machine].exists():
        pytest.skip("no kernel headers; apt-get install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    return {name: int(number) for name, number in found}


def numbers(names: str, machine: str) -> dict[str, int]:
    """Of those that the processor has."""
    known = kernels_numbers(machine)
    if HEADERS[X86].exists():  # which has every call; others are without the older ones
        assert {*names.split()} <= {*kernels_numbers(X86), *known}
    return {name: known[name] for name in names.split() if name in known}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("stage", STAGES)
def test_whatever_is_denied_is_denied(stage: Stage, machine: str) -> None:
    code = program(stage, machine)
    through = {
        name: verdict
        for name, number in numbers(FORBIDDEN, machine).items()
        for arguments in ((), (1, 1, 1, 1, 1, 1), (2**64 - 1,) * 6)
        if (verdict := judge(code, machine, number, *arguments)) != DENIED
    }
    assert through == {}
    for number in (*numbers(NO_SUCH_CALL, machine).values(), STATMOUNT, OF_NEXT_YEAR):
        assert judge(code, machine, number) == UNKNOWN, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("stage", STAGES)
def test_only_the_named_numbers_get_through(stage: Stage, machine: str) -> None:
    """Every number there is, on every path: an interpreter that runs off its end would raise."""
    code = program(stage, machine)
    said = {word: set(named.values()) for word, named in calls("functions", machine).items()}
    allowed = (said["allow"] | (said["worker"] if stage != "call" else set[int | None]())) - {None}
    with_conditions = said["rule"]
    for number in range(1024):
        verdict = judge(code, machine, number)
        if number in allowed:
            assert verdict == ALLOW, number
        elif number not in with_conditions:
            assert verdict in (DENIED, UNKNOWN), number
    assert not allowed & set(numbers(FORBIDDEN, machine).values())


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_of_a_landlock_worker_reaches_no_process(machine: str) -> None:
    for name, number in numbers(OF_PROCESSES, machine).items():
        assert judge(program("call", machine), machine, number) == DENIED, name
        assert judge(program("worker", machine), machine, number) == ALLOW, name
        assert judge(program("namespaced", machine), machine, number) == ALLOW, name


CLONE = {X86: 56, ARM: 220}
PRCTL = {X86: 157, ARM: 167}
FCNTL = {X86: 72, ARM: 25}
MMAP = {X86: 9, ARM: 222}
IOCTL = {X86: 16, ARM: 29}
OPENAT = {X86: 257, ARM: 56}
PAIR = {X86: 53, ARM: 199}
PRLIMIT = {X86: 302, ARM: 261}
NO_TERMINAL = refused(errno.ENOTTY)
ARGUMENTS = [
    # call, arguments, verdict of the namespaced worker, the Landlock worker, its calls
    ("thread", CLONE, (THREAD,), ALLOW, ALLOW, ALLOW),
    ("fork by clone", CLONE, (FORK,), ALLOW, ALLOW, DENIED),
    ("vfork by clone", CLONE, (0x4111,), ALLOW, ALLOW, DENIED),
    ("clone without flags", CLONE, (0,), ALLOW, ALLOW, DENIED),
    ("new user namespace", CLONE, (NEW_USER | 17,), DENIED, DENIED, DENIED),
    ("thread in a new namespace", CLONE, (THREAD | NEW_USER,), DENIED, DENIED, DENIED),
    ("new net, high bits", CLONE, (1 << 40 | 0x40000000,), DENIED, DENIED, DENIED),
    ("thread in the high bits", CLONE, (0x10000 << 32 | 17,), ALLOW, ALLOW, DENIED),
    ("PR_SET_NAME", PRCTL, (15,), ALLOW, ALLOW, ALLOW),
    ("PR_SET_PDEATHSIG", PRCTL, (1, 0), DENIED, ALLOW, DENIED),
    ("PR_SET_SECCOMP", PRCTL, (22, 2), DENIED, ALLOW, DENIED),
    ("PR_SET_DUMPABLE", PRCTL, (4, 1), DENIED, DENIED, DENIED),
    ("PR_SET_CHILD_SUBREAPER", PRCTL, (36, 0), DENIED, DENIED, DENIED),
    ("PR_CAP_AMBIENT", PRCTL, (47, 2), DENIED, DENIED, DENIED),
    ("PR_SET_PTRACER", PRCTL, (0x59616D61,), DENIED, DENIED, DENIED),
    ("F_DUPFD_CLOEXEC", FCNTL, (3, 1030), ALLOW, ALLOW, ALLOW),
    ("F_SETFL O_NONBLOCK", FCNTL, (3, 4, 0o104002), ALLOW, ALLOW, ALLOW),
    ("F_SETFL O_APPEND", FCNTL, (3, 4, 0o2001), DENIED, DENIED, DENIED),
    ("F_SETFL O_ASYNC", FCNTL, (3, 4, 0o20001), DENIED, DENIED, DENIED),
    ("F_SETFL O_DIRECT", FCNTL, (3, 4, 0o40001), DENIED, DENIED, DENIED),
    ("F_SETFL O_DIRECT of ARM", FCNTL, (3, 4, 0o200001), DENIED, DENIED, DENIED),
    ("F_SETFL O_NOATIME", FCNTL, (3, 4, 0o1000000), DENIED, DENIED, DENIED),
    ("memory of its own", MMAP, (0, 1, 3, 0x22), ALLOW, ALLOW, ALLOW),
    ("shared memory", MMAP, (0, 1, 3, 0x21), DENIED, DENIED, DENIED),
    ("shared memory, validated", MMAP, (0, 1, 3, 0x03), DENIED, DENIED, DENIED),
    ("F_SETOWN: signals by descriptor", FCNTL, (3, 8), DENIED, DENIED, DENIED),
    ("F_SETSIG", FCNTL, (3, 10), DENIED, DENIED, DENIED),
    ("F_SETOWN_EX", FCNTL, (3, 15), DENIED, DENIED, DENIED),
    ("F_SETLEASE", FCNTL, (3, 1024), DENIED, DENIED, DENIED),
    ("F_NOTIFY", FCNTL, (3, 1026), DENIED, DENIED, DENIED),
    ("F_SETPIPE_SZ: kernel memory", FCNTL, (3, 1031), DENIED, DENIED, DENIED),
    ("TCGETS", IOCTL, (0, 0x5401), ALLOW, ALLOW, ALLOW),
    ("TIOCSTI", IOCTL, (0, 0x5412), NO_TERMINAL, NO_TERMINAL, NO_TERMINAL),
    ("FIOASYNC", IOCTL, (0, 0x5452), NO_TERMINAL, NO_TERMINAL, NO_TERMINAL),
    ("FIOSETOWN", IOCTL, (0, 0x8901), NO_TERMINAL, NO_TERMINAL, NO_TERMINAL),
    ("open to read", OPENAT, (0, 0, 0o2000000), ALLOW, ALLOW, ALLOW),
    ("open /dev/null to write", OPENAT, (0, 0, 0o1101), ALLOW, ALLOW, ALLOW),
    ("open to read, truncating", OPENAT, (0, 0, 0o1000), DENIED, DENIED, DENIED),
    ("pair of streams", PAIR, (1, 0o2000001), ALLOW, ALLOW, ALLOW),
    ("pair of datagrams", PAIR, (1, 2), DENIED, DENIED, DENIED),
    ("pair of packets", PAIR, (1, 5), DENIED, DENIED, DENIED),
    ("pair of another family", PAIR, (30, 1), DENIED, DENIED, DENIED),
    ("own limits", PRLIMIT, (0,), ALLOW, ALLOW, ALLOW),
    ("limits of another", PRLIMIT, (1,), DENIED, DENIED, DENIED),
]


@pytest.mark.parametrize("machine", MACHINES)
@each("case", ARGUMENTS)
def test_arguments(
    case: tuple[str, dict[str, int], tuple[int, ...], int, int, int], machine: str
) -> None:
    _, call, arguments, *verdicts = case
    found = [judge(program(stage, machine), machine, call[machine], *arguments) for stage in STAGES]
    assert found == verdicts


@pytest.mark.parametrize("stage", STAGES)
def test_the_other_doors_kill(stage: Stage) -> None:
    for number in (0, 11, 59, 120):
        assert judge(program(stage, X86), X86, number, arch=0x40000003) == KILL  # i386
        assert judge(program(stage, ARM), ARM, number, arch=0x40000028) == KILL  # 32-bit ARM
        assert judge(program(stage, X86), X86, 0x40000000 | number) == KILL  # x32
    assert judge(program(stage, X86), X86, 0xFFFFFFFF) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("whose", ["functions", "commands"])
def test_numbers_are_the_kernels(whose: Literal["functions", "commands"], machine: str) -> None:
    known = kernels_numbers(machine)
    for table in calls(whose, machine).values():
        for name, number in table.items():
            assert number == known.get(name, number), name


WORK = """
import asyncio, ctypes, json, os, re, socket, sys, threading
sys.path.insert(0, {inside!r})
from confine import install
def refused(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno
    return 0
def raw(*words):
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if libc.syscall(*words) < 0 else 0
install(bytes.fromhex({first!r}))
pid = os.fork()
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
if {second!r}:
    install(bytes.fromhex({second!r}))
async def later():
    await asyncio.sleep(0)
    return await asyncio.to_thread(len, "abc")
assert asyncio.run(later()) == 3
left, right = socket.socketpair()
left.send(b"x")
assert right.recv(1) == b"x"
with open(os.devnull, "w") as null:
    print("gone", file=null)
print(json.dumps({{
    "socket": refused(socket.socket),
    "datagrams": refused(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    "exec": refused(lambda: os.execv("/bin/true", ["true"])),
    "kill": refused(lambda: os.kill(os.getpid(), 0)),
    "fork": refused(lambda: os.fork() or os._exit(0)),
    "chmod": refused(lambda: os.chmod({victim!r}, 0o777)),
    "utime": refused(lambda: os.utime({victim!r}, (0, 0))),
    "write": refused(lambda: os.truncate({victim!r}, 0)),
    "empty": refused(lambda: os.open({victim!r}, os.O_RDONLY | os.O_TRUNC)),
    "ptrace": refused(lambda: (_ for _ in ()).throw(OSError(raw(101, 0, 0, 0, 0), ""))),
    "new call": raw(999),
}}))
"""


@pytest.mark.sandbox
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
@pytest.mark.parametrize("tier", ["bwrap", "landlock"])
def test_a_real_process(tier: Literal["bwrap", "landlock"], tmp_path: Path) -> None:
    """Python keeps working, asyncio and threads included; the host stays as it was."""
    import json

    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o644)
    before = victim.stat()
    first, *rest = [code.hex() for code in worker_filters(tier)]
    inside = str(Path(filters.__file__).parent / "inside")
    source = WORK.format(inside=inside, first=first, second="".join(rest), victim=str(victim))
    found = json.loads(printed([sys.executable, "-S", "-c", source]).splitlines()[-1])
    shut = errno.EPERM if tier == "landlock" else 0
    assert found.pop("kill") == shut
    assert found.pop("fork") == shut
    assert found.pop("new call") == errno.ENOSYS
    assert set(found.values()) == {errno.EPERM}, found
    after = victim.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert victim.read_text() == "mine"


def test_install_says_what_the_kernel_said() -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(Path(filters.__file__).parent / 'inside')!r});"
        "from confine import install; install(b'')"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, check=False
    )
    assert os.strerror(errno.EINVAL) in done.stderr
