"""The filters of function workers: by a small BPF machine on both processors, and by the kernel."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from assay.errors import SandboxUnavailableError
from assay.sandbox.functions import filters
from assay.sandbox.functions.filters import worker_filters
from assay.sandbox.seccomp import calls
from tests.bpf_machine import ALLOW, ARM, KILL, MACHINES, X86, judge, refused

DENIED, UNKNOWN = refused(errno.EPERM), refused(errno.ENOSYS)
THREAD, FORK, NEW_USER = 0x003D0F00, 0x01200011, 0x10000000
Stage = Literal["namespaced", "worker", "call"]
STAGES: tuple[Stage, ...] = ("namespaced", "worker", "call")
Pair = tuple[int | None, int | None]
COLUMN = {X86: 0, ARM: 1}


def program(stage: Stage, machine: str) -> bytes:
    if stage == "namespaced":
        return worker_filters("bwrap", machine)[0]
    return worker_filters("landlock", machine)[stage == "call"]


# What must never get through, anywhere: numbers on x86_64 and aarch64.
FORBIDDEN: dict[str, Pair] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmmsg": (307, 269),
    "setsockopt": (54, 208),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsmount": (432, 432),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "personality": (135, 92),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "mlockall": (151, 230),
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    "setuid": (105, 146),
    "setresuid": (117, 147),
    "setgroups": (116, 159),
    "capset": (126, 91),
    "sethostname": (170, 161),
    "clock_settime": (227, 112),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "flock": (73, 32),
    # what changes files; Landlock knows nothing of the first ones
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "getxattr": (191, 8),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "fallocate": (285, 47),
    "rename": (82, None),
    "renameat2": (316, 276),
    "mkdirat": (258, 34),
    "unlinkat": (263, 35),
    "linkat": (265, 37),
    "symlinkat": (266, 36),
    "mknodat": (259, 33),
    "creat": (85, None),
    "copy_file_range": (326, 285),
}
OF_PROCESSES: dict[str, Pair] = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "pidfd_open": (434, 434),
    "fork": (57, None),
    "vfork": (58, None),
}
NO_SUCH_CALL: dict[str, Pair] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "io_uring_setup": (425, 425),
    "seccomp": (317, 277),
    "landlock_restrict_self": (446, 446),
    "statmount": (457, 457),
    "of next year": (700, 700),
}


def numbers(table: dict[str, Pair], machine: str) -> dict[str, int]:
    found = {name: pair[COLUMN[machine]] for name, pair in table.items()}
    return {name: number for name, number in found.items() if number is not None}


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
    for name, number in numbers(NO_SUCH_CALL, machine).items():
        assert judge(code, machine, number) == UNKNOWN, name


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
@pytest.mark.parametrize("stage", STAGES)
def test_every_jump_stays_within(stage: Stage, machine: str) -> None:
    code = program(stage, machine)
    count = len(code) // 8
    assert len(code) % 8 == 0
    assert count <= 4096
    for at in range(count):
        opcode, if_true, if_false = code[8 * at], code[8 * at + 2], code[8 * at + 3]
        if opcode in (0x15, 0x35, 0x45):
            assert at + 1 + max(if_true, if_false) < count


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
@pytest.mark.parametrize("case", ARGUMENTS, ids=[case[0] for case in ARGUMENTS])
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


def test_unknown_processor() -> None:
    with pytest.raises(SandboxUnavailableError, match="s390x"):
        worker_filters("bwrap", "s390x")


def definitions() -> Iterator[tuple[str, int]]:
    for line in Path(HEADER).read_text().splitlines():
        match line.split():
            case ["#define", name, number] if name.startswith("__NR_"):
                yield name.removeprefix("__NR_"), int(number)
            case _:
                continue


HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"


@pytest.mark.skipif(not Path(HEADER).exists(), reason="no kernel headers")
def test_numbers_are_the_kernels() -> None:
    known = dict(definitions())
    named = numbers(FORBIDDEN, X86), numbers(OF_PROCESSES, X86)
    tables: list[Mapping[str, int | None]] = [*named, *calls("functions", X86).values()]
    for table in tables:
        for name, number in table.items():
            assert number is None or known.get(name, number) == number, name


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
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    shut = errno.EPERM if tier == "landlock" else 0
    assert found.pop("kill") == shut
    assert found.pop("fork") == shut
    assert found.pop("new call") == errno.ENOSYS
    assert set(found.values()) == {errno.EPERM}, found
    after = victim.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)
    assert victim.read_text() == "mine"


@pytest.mark.sandbox
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is x86_64's")
def test_x32_kills_a_real_process() -> None:
    (code,) = worker_filters("bwrap")
    inside = str(Path(filters.__file__).parent / "inside")
    source = (
        f"import ctypes, sys; sys.path.insert(0, {inside!r}); from confine import install;"
        f"install(bytes.fromhex({code.hex()!r})); ctypes.CDLL(None).syscall(0x40000000 + 39)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", source], check=False)
    assert done.returncode == -31  # SIGSYS


def test_install_says_what_the_kernel_said() -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(Path(filters.__file__).parent / 'inside')!r});"
        "from confine import install; install(b'')"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, check=False
    )
    assert os.strerror(errno.EINVAL) in done.stderr
