"""Calls to the kernel that Python has no function for.

Part of the supervisor, which must start fast: only cheap modules are imported.
"""

from __future__ import annotations

import ctypes
import errno
import os

NEW_MOUNTS, NEW_USERS, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
NEW_PIDS, SAME_PARENT = 0x20000000, 0x8000
SIGKILL = 9  # importing `signal` costs 5 ms
MANY_IDS = 2**31
"""bubblewrap takes no id from here on."""

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR, _PIDFD_SEND_SIGNAL = 428, 429, 442, 424
_CLONE_TREE, _RECURSIVE, _CLOEXEC = 1, 0x8000, 0o2000000
_AT_CWD, _EMPTY_PATH, _MOVE_FROM_FD, _IDMAP = -100, 0x1000, 4, 0x00100000
_NOSUID, _NODEV, _NOEXEC, _NO_LINKS = 2, 4, 8, 0x00200000
_SET_DEATH_SIGNAL = 1
_FIRST_PIDS = "pid:[4026531836]"
_CAP_SYS_ADMIN = 21
_SET_INTERFACE_FLAGS, _UP, _INTERFACE_BYTES = 0x8914, 1, 40

_CLONE = {"x86_64": 56, "aarch64": 220}
_SET_MASK = 2
_SIGCHLD = 17

_libc = ctypes.PyDLL(None, use_errno=True)  # keeps the lock of the interpreter in a fork


def _check(returned: int, what: str) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return returned


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Attach a file system."""
    words = [word.encode() for word in (source, target, kind)]
    returned = _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None)
    _check(returned, f"mount {kind}")


def open_tree(path: str, *, recursive: bool) -> int:
    """A detached copy of the mount at ``path``, as a descriptor."""
    flags = _CLONE_TREE | _CLOEXEC | (_RECURSIVE if recursive else 0)
    return _check(_libc.syscall(_OPEN_TREE, _AT_CWD, os.fsencode(path), flags), "open_tree")


def move_tree(tree: int, target: str) -> None:
    """Attach a detached mount at ``target``."""
    arguments = (tree, b"", _AT_CWD, target.encode(), _MOVE_FROM_FD)
    _check(_libc.syscall(_MOVE_MOUNT, *arguments), "move_mount")


def set_owner_map(tree: int, namespace: int) -> None:
    """Show the files of a detached mount under the ids that a user namespace maps them to."""
    _set_attributes(tree, _IDMAP, namespace)


def refuse_links(tree: int) -> None:
    """Follow no symbolic link in a detached mount, nor devices and set-id files."""
    _set_attributes(tree, _NO_LINKS | _NOSUID | _NODEV, 0)


def _set_attributes(tree: int, flags: int, namespace: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, namespace)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    arguments = (tree, b"", _EMPTY_PATH, ctypes.byref(attributes), size)
    _check(_libc.syscall(_MOUNT_SETATTR, *arguments), "mount_setattr")


def unshare(flags: int) -> None:
    """Leave namespaces; in `os` only from Python 3.12 on."""
    _check(_libc.unshare(flags), "unshare")


def raise_loopback(socket: int) -> None:
    """Bring up the loopback of this process's network, which starts without one that works."""
    request = b"lo".ljust(16, b"\0") + _UP.to_bytes(2, "little")
    request = ctypes.create_string_buffer(request, _INTERFACE_BYTES)
    _check(_libc.ioctl(socket, ctypes.c_ulong(_SET_INTERFACE_FLAGS), request), "raise lo")


def user_namespace(uid_map: str, gid_map: str) -> int:
    """A new user namespace with these maps, as a descriptor; nobody lives in it."""
    child = fork(NEW_USERS)
    if child == 0:
        _libc.prctl(_SET_DEATH_SIGNAL, SIGKILL, 0, 0, 0)  # whoever made it may be killed meanwhile
        while True:
            _libc.pause()
    try:
        write_text(f"/proc/{child}/uid_map", uid_map)
        write_text(f"/proc/{child}/gid_map", gid_map)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)


def fork(flags: int = 0) -> int:
    """A bare fork, which skips what Python does around one: the child soon is another program."""
    return _check(_libc.syscall(_CLONE[os.uname().machine], flags | _SIGCHLD, 0, 0, 0, 0), "clone")


def sees_kernel_threads() -> bool:
    """Whether this is the pid namespace that a machine begins with: 2 is one of its threads."""
    return os.readlink("/proc/self/ns/pid") == _FIRST_PIDS  # noqa: PTH115 - cheaper


def mount_own_proc() -> None:
    """Show this process and its children alone the processes of their own pid namespace in /proc.

    Where that is not allowed, as where a container hides parts of it, all is left as it was.
    """
    try:
        unshare(NEW_MOUNTS)
        mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except OSError:
        return


def die_with_parent(parent: int, own: int) -> bool:
    """Have the kernel kill this process when its parent ends; False if it has ended already.

    ``parent``: The parent's process id; in a new pid namespace `os.getppid` tells nothing.
    """
    _libc.prctl(_SET_DEATH_SIGNAL, SIGKILL, 0, 0, 0)
    return int(os.read(own, 4096).rpartition(b")")[2].split()[1]) == parent


def default_signals() -> None:
    """Undo what assay's own caller ignores or holds back, which a new program would inherit."""
    for number in range(1, 65):
        _libc.signal(number, None)
    none = ctypes.create_string_buffer(128)
    _libc.sigprocmask(_SET_MASK, none, None)


def send_kill(pidfd: int) -> None:
    """Kill by descriptor, which no other process can ever take over; one that has ended is left."""
    returned = _libc.syscall(_PIDFD_SEND_SIGNAL, pidfd, SIGKILL, None, 0)
    if returned < 0 and ctypes.get_errno() != errno.ESRCH:
        _check(returned, "pidfd_send_signal")


def is_admin() -> bool:
    """Whether this process is root and may mount."""
    return os.geteuid() == 0 and may(_CAP_SYS_ADMIN)


def may(capability: int) -> bool:
    """Whether this process has a capability at this moment."""
    words = read_bytes("/proc/self/status").split()
    return bool(int(words[words.index(b"CapEff:") + 1], 16) >> capability & 1)


def counts_per_namespace() -> bool:
    """Whether a limit on processes counts within a user namespace: from Linux 5.14 on."""
    release = os.uname().release.split(".")
    return (int(release[0]), int(release[1])) >= (5, 14)


def id_range(kind: str) -> tuple[int, int]:
    """The first id and the size of the largest range that this user namespace has, below 2**31."""
    lines = read_bytes(f"/proc/self/{kind}_map").decode().splitlines()
    extents = [[int(word) for word in line.split()] for line in lines]
    first, _, count = max(extents, key=lambda extent: extent[2])
    return first, min(count, MANY_IDS - first)


def read_bytes(path: str) -> bytes:
    """A file in /proc, whole: of a long one the kernel gives a page at a time."""
    fd, content = os.open(path, os.O_RDONLY), b""
    try:
        while chunk := os.read(fd, 65_536):
            content += chunk
    finally:
        os.close(fd)
    return content


def write_text(path: str, text: str) -> None:
    """Write to a file in /proc, in one write."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
