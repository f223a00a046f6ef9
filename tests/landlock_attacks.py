"""Functions that attack a host without namespaces. Each returns 1.0 if it got what it wanted.

All define ``attack(host)``; `driver` runs them in the emulation of Docker. ``host`` has what there
is to get: ``file``, which everybody may write; ``child``, a process of the same user; ``tcp``,
``stream``, ``datagrams`` and ``abstract``, where somebody listens; ``pid``, the host's own.
"""

from __future__ import annotations

__all__ = ["ATTACKS", "AT_LOAD", "FRAME", "TRIES"]

#: Around each attack: a call that is none must score 0.25, whatever the one before it did.
FRAME = """
import os, sys

def tries(*attempts):
    got = []
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except Exception:
            continue
        got.append(number)
    if got:
        print("succeeded:", got)
    return float(bool(got))

{attack}

def grade(payload):
    return float(attack(payload["host"])) if payload["attack"] else 0.25
"""

#: What one attempt succeeds in is enough.
TRIES = {
    "read_files_of_the_host": """
def attack(host):
    return tries(
        lambda: open(host["file"]).read(),
        lambda: open("/etc/passwd").read(),
        lambda: open("/etc/hostname").read(),
        lambda: os.listdir("/"),
        lambda: os.listdir(os.path.dirname(host["file"])),
        lambda: open(f"/proc/{host['pid']}/environ").read(),
        lambda: open(f"/proc/{host['pid']}/mem"),
        lambda: open("/proc/self/mem"),
        lambda: open("/dev/tty"),
        lambda: open("/dev/kmsg"),
    )
""",
    "write_files_of_the_host": """
def attack(host):
    name = host["file"]
    return tries(
        lambda: open(name, "a").write("x"),
        lambda: os.open(name, os.O_RDONLY | os.O_TRUNC),
        lambda: os.truncate(name, 0),
        lambda: os.unlink(name),
        lambda: os.rename(name, name + "2"),
        lambda: os.symlink("/", name + "3"),
        lambda: os.link(name, name + "4"),
        lambda: os.mkdir(name + "5"),
        lambda: os.mkfifo(name + "6"),
        lambda: open("/tmp/of-a-function", "w"),
        lambda: open("/dev/shm/of-a-function", "w"),
        lambda: open(os.__file__, "a"),
    )
""",
    "change_files_without_opening_them": """
def attack(host):
    name = host["file"]
    own = os.open(os.__file__, os.O_RDONLY)
    return tries(
        lambda: os.chmod(name, 0o4777),
        lambda: os.chmod(os.open(name, os.O_PATH), 0o4777),
        lambda: os.fchmod(own, 0o777),
        lambda: os.chown(name, 0, 0),
        lambda: os.fchown(own, os.getuid(), os.getgid()),
        lambda: os.utime(name, (0, 0)),
        lambda: os.utime(name),
        lambda: os.utime(own, (0, 0)),
        lambda: os.setxattr(name, "user.x", b"x"),
        lambda: os.utime("/dev/null"),
    )
""",
    "lock_files_that_others_need": """
import fcntl
def attack(host):
    own = os.open(os.__file__, os.O_RDONLY)
    return tries(
        lambda: fcntl.flock(own, fcntl.LOCK_SH),
        lambda: fcntl.lockf(own, fcntl.LOCK_SH),
        lambda: fcntl.fcntl(own, 1024, 0),
        lambda: fcntl.fcntl(own, 1026, 1),
    )
""",
    "talk_to_the_network": """
import socket
def attack(host):
    return tries(
        lambda: socket.create_connection(("127.0.0.1", host["tcp"]), 1),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        lambda: socket.socket(socket.AF_INET6),
        lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        lambda: socket.socket(40, socket.SOCK_STREAM),
        lambda: socket.socket(socket.AF_UNIX).connect(host["stream"]),
        lambda: socket.socket(socket.AF_UNIX).connect("\\0" + host["abstract"]),
    )
""",
    "datagrams_from_a_pair_to_somebody_else": """
import socket
def send(kind, target):
    left, _ = socket.socketpair(socket.AF_UNIX, kind)
    left.sendto(b"got out", target)
def attack(host):
    return tries(*(
        lambda kind=kind, target=target: send(kind, target)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM)
        for target in (host["datagrams"], "\\0" + host["abstract"], "/dev/log")
    ))
""",
    "signal_processes_of_the_user": """
import signal
def attack(host):
    return tries(*(
        lambda pid=pid, number=number: os.kill(pid, number)
        for pid in (host["child"], host["pid"], os.getppid(), 1, 0, -1)
        for number in (0, signal.SIGSTOP, signal.SIGKILL)
    ), lambda: os.killpg(os.getpgid(host["pid"]), 0),
       lambda: signal.pidfd_send_signal(os.pidfd_open(host["child"]), 9),
       lambda: signal.raise_signal(signal.SIGUSR1))
""",
    "signal_by_descriptor": """
import fcntl, socket, time
def attack(host):
    left, right = socket.socketpair()
    def aim(command, value):
        fcntl.fcntl(left, command, value)
    got = tries(lambda: aim(8, host["child"]), lambda: aim(8, -1), lambda: aim(10, 9))
    try:
        fcntl.fcntl(left, fcntl.F_SETFL, os.O_ASYNC)
        right.send(b"x")
    except OSError:
        pass
    return got
""",
    "start_programs": """
import subprocess
def attack(host):
    return tries(
        lambda: subprocess.run(["/bin/true"]),
        lambda: os.system("true") == 0 or 1 / 0,
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.execv(sys.executable, [sys.executable]),
    )
""",
    "start_processes": """
import ctypes, multiprocessing
libc = ctypes.CDLL(None, use_errno=True)
def raw(*words):
    pid = libc.syscall(*words)
    if pid == 0:
        os._exit(0)
    assert pid > 0
def attack(host):
    return tries(
        lambda: os.fork() or os._exit(0),
        lambda: os.forkpty(),
        lambda: multiprocessing.Process(target=print).start(),
        lambda: raw(56, 17, 0, 0, 0, 0),
        lambda: raw(56, 0x4111, 0, 0, 0, 0),
        lambda: raw(57), lambda: raw(58),
        lambda: raw(435, 0, 0),
    )
""",
    "leave_a_daemon": """
import time
def attack(host):
    def daemon():
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(1)
            os._exit(0)
    return tries(daemon)
""",
    "call_the_kernel_directly": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "ptrace": (101, 16, 1, 0, 0), "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "unshare": (272, 0x10000000), "setns": (308, 0, 0), "mount": (165, 0, 0, 0, 0, 0),
    "chroot": (161, b"/"), "keyctl": (250, 0, -3, 1), "add_key": (248, b"user", b"a", b"b", 1, -3),
    "bpf": (321, 0, 0, 0), "userfaultfd": (323, 1), "io_uring_setup": (425, 8, 0),
    "memfd_create": (319, b"x", 0), "memfd_secret": (447, 0), "shmget": (29, 0, 1 << 20, 0o1600),
    "msgget": (68, 0, 0o1600), "mq_open": (240, b"x", 0o102, 0o600, 0), "pidfd_getfd": (438, 3, 0),
    "inotify_init1": (294, 0), "fanotify_init": (300, 0, 0), "personality": (135, 0x0040000),
    "sched_setaffinity": (203, 0, 8, b"\\1" * 8), "setpriority": (141, 0, 0, 19),
    "PR_SET_PDEATHSIG": (157, 1, 0, 0, 0, 0), "PR_SET_DUMPABLE": (157, 4, 1, 0, 0, 0),
    "PR_SET_CHILD_SUBREAPER": (157, 36, 1, 0, 0, 0), "PR_SET_SECCOMP": (157, 22, 1, 0, 0, 0),
    "getxattr": (191, b"/usr/lib", b"user.x", 0, 0), "capset": (126, 0, 0),
}
def attack(host):
    denied = {1, 38}
    through = []
    for name, words in NUMBERS.items():
        ctypes.set_errno(0)
        if libc.syscall(*words) >= 0 or ctypes.get_errno() not in denied:
            through.append(name)
    if through:
        print(through)
    return float(bool(through))
""",
    "raise_its_own_limits": """
import resource
def attack(host):
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    def lift(kind):
        soft, hard = resource.getrlimit(kind)
        assert hard != resource.RLIM_INFINITY
        resource.setrlimit(kind, (hard + 1, hard + 1))
    kinds = ("AS", "NOFILE", "FSIZE", "CPU", "CORE", "NPROC")
    return tries(*(lambda kind=kind: lift(getattr(resource, "RLIMIT_" + kind)) for kind in kinds),
                 lambda: resource.prlimit(host["child"], resource.RLIMIT_CPU, (1, 1)))
""",
    "find_secrets_of_the_host": """
def attack(host):
    found = [name for name in os.environ if "SECRET" in name]
    for fd in range(3, 64):
        try:
            name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if not name.startswith("pipe:"):  # that for its own reply
            found.append(name)
    print(found)
    return float(bool(found) or len(sys.argv) > 1)
""",
}

#: These are stopped by a limit, or by their end; the calls after them are not concerned.
ATTACKS = {
    **TRIES,
    "fork_bomb": """
def attack(host):
    while True:
        os.fork()
""",
    "thread_flood": """
import threading, time
def attack(host):
    threading.stack_size(32 * 1024)
    count = 0
    try:
        while count < 4000:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    except RuntimeError:
        return 0.0
    return 1.0
""",
    "memory_bomb": """
def attack(host):
    hoard = []
    while True:
        hoard.append(bytes(1 << 28))
""",
    "endless_loop": """
def attack(host):
    while True:
        pass
""",
    "endless_sleep": """
import time
def attack(host):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
""",
    "abort": """
def attack(host):
    os.abort()
""",
    "exit": """
def attack(host):
    os._exit(0)
""",
    "patch_what_the_next_call_uses": """
import json
def attack(host):
    os.write = os.read = os.fork = os._exit = os.kill = json.loads = lambda *a: 1.0
    os.environ["SECRET"] = "x"
    import builtins
    builtins.float = lambda *a: 1.0
    sys.modules["program"].grade = lambda payload: 1.0
    return 0.0
""",
    "forge_replies_everywhere": """
import struct
def attack(host):
    forged = struct.pack("<IB", 64, ord("C")) + bytes(64)
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, False)
            os.write(fd, forged * 20)
        except OSError:
            pass
    return 0.0
""",
}

#: What runs while the program is loaded; ``HOST`` is replaced.
AT_LOAD = {
    "fork_bomb_at_load": """
while True:
    os.fork()
""",
    "daemon_at_load": """
import time
if os.fork() == 0:
    os.setsid()
    time.sleep(120)
""",
    "kill_at_load": """
for pid in (HOST["child"], HOST["pid"], os.getppid()):
    os.kill(pid, 9)
""",
    "chmod_at_load": """
os.chmod(HOST["file"], 0o4777)
""",
    "exit_at_load": """
os._exit(0)
""",
    "signal_by_descriptor_at_load": """
import fcntl
fcntl.fcntl(0, 8, HOST["child"])
""",
}
