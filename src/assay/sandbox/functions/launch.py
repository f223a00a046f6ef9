"""Start the process of a function worker, isolated by bubblewrap.

The worker is process 1 of a pid namespace that holds nothing else: no /proc, nothing that can be
written, no network, no variable of ours. It confines itself further (`inside.confine`) before it
takes a program.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from assay.errors import SandboxError, SandboxUnavailableError
from assay.sandbox import bubblewrap, kernel
from assay.sandbox.functions.inside.landlock import version
from assay.sandbox.processes import descendants

INSIDE = Path(__file__).parent / "inside"
"""The folder with everything that runs inside."""

_SHOWN = "/sandbox"  # where INSIDE stands in the sandbox
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
VARIABLES = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "TZ": "UTC",
    # All symbols are found at the start, not again in each fork that is the first to call one.
    "LD_BIND_NOW": "1",
}
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
_STOP_SECONDS = 2.0
_STRAYS_SECONDS = 0.05
_NAP_SECONDS = 0.0005
_STDERR_BYTES = 4096
_numbers = itertools.count()


@dataclass(slots=True)
class Launched:
    """A started worker, from outside."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    tier: str
    _pid: int = 0
    _pidfd: int = -1
    _asked: bool = False
    # Another thread may stop a worker while its own ends it, and the descriptor's number is taken
    # by the next file at once.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pid(self) -> int:
        """The worker's process id on the host; 0 if it never came to life.

        Blocks until bubblewrap has made it, a few milliseconds after the start.
        """
        self._ask()
        return self._pid

    def _ask(self) -> None:
        """Learn who the worker is, and hold it by a descriptor that no other can take over."""
        with self._lock:
            if self._asked:
                return
            self._asked = True
            self._pid = self.process.pid if self.tier == "landlock" else self._made()
            if self._pid:
                with contextlib.suppress(OSError):
                    self._pidfd = os.pidfd_open(self._pid)

    def _made(self) -> int:
        """What bubblewrap has made.

        It is not asked to say so (``--info-fd``): told to end with us while it speaks, it would
        leave a worker that waits for it for ever.
        """
        deadline = time.monotonic() + _STOP_SECONDS
        while not (made := descendants(self.process.pid)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                return 0
            time.sleep(_NAP_SECONDS)
        return made[0]

    def stop(self) -> None:
        """Kill the worker, from any thread; whoever uses it will notice, and `kill` the rest."""
        if self.tier == "landlock":  # it ends by itself: see `kill`
            with contextlib.suppress(OSError):
                self.control.shutdown(socket.SHUT_RDWR)
            return
        self._ask()
        with self._lock, contextlib.suppress(OSError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the worker and everything in its sandbox; returns when all of it is gone."""
        self._ask()
        with contextlib.suppress(OSError):
            self.control.close()
        if self.tier == "landlock":
            self._end_strays()
        if self._pidfd >= 0:
            # The worker first: bubblewrap then reaps it. The other way round, the dead worker would
            # be left to whoever is process 1 here, which in a container often reaps nobody. And a
            # bubblewrap without privileges may not signal a worker of another user at all.
            with self._lock:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                os.close(self._pidfd)
                self._pidfd = -1
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_SECONDS)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def _end_strays(self) -> None:
        """Kill what the worker has not: without a pid namespace it knows its own forks only.

        All others come to it when their parents die, and it ends when it has reaped them.
        """
        deadline = time.monotonic() + _STOP_SECONDS
        while self._pidfd >= 0 and time.monotonic() < deadline:
            if _readable(self._pidfd, _STRAYS_SECONDS):
                break
            for number in (signal.SIGSTOP, signal.SIGKILL):  # one that runs might still fork
                for pid in descendants(self.process.pid):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
        # It is not reaped yet, so that its id cannot mean another group.
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def complaint(self) -> str:
        """What bubblewrap or the starting worker said last; for a worker that has died."""
        stream = self.process.stderr
        if stream is None or stream.closed:
            return ""
        os.set_blocking(stream.fileno(), False)
        try:
            return os.read(stream.fileno(), _STDERR_BYTES).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def disown(self) -> None:
        """Let go of a worker that belongs to the process we were forked from."""
        self.process.returncode = 0  # nothing of ours to wait for
        self.control.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._asked = True
        if self.process.stderr:
            self.process.stderr.close()


def _readable(fd: int, seconds: float) -> bool:
    poll = select.poll()  # `select` takes no number above 1023
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def launch(tier: str) -> Launched:
    """Start a worker. It still has to load a program."""
    is_landlock = tier == "landlock"
    if is_landlock:
        check_landlock()
    ours, theirs = socket.socketpair()
    control = theirs.fileno()
    try:
        process = subprocess.Popen(
            _landlock_words(control) if is_landlock else _words(control),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(control,),
            env=VARIABLES if is_landlock else {},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for us, not for bubblewrap
        )
    except BaseException as error:
        ours.close()
        if isinstance(error, OSError):
            raise SandboxError(f"cannot start a worker ({tier}): {error}") from error
        raise
    finally:
        theirs.close()
    return Launched(process, ours, tier)


def _words(control: int) -> list[str]:
    """The command line that starts a worker under bubblewrap."""
    is_admin, is_root = kernel.is_admin(), os.geteuid() == 0
    uid = spare_id() if is_root else 0
    counts = is_root or kernel.counts_per_namespace()
    command = _worker(_SHOWN, control, True, uid if is_admin else 0, counts)
    return isolated(command, uid=uid)


def _worker(inside: str, control: int, *mode: int) -> list[str]:
    """The worker's command line; `inside.worker` says what it takes."""
    python, _ = interpreter()
    # -u: what a call prints leaves its process at once, so that there is nothing to flush.
    words = [python, "-u", "-S", "-s", "-P", "-B", f"{inside}/worker.py", str(control)]
    return [*words, *(str(int(flag)) for flag in mode)]


def isolated(command: Sequence[str], *, uid: int) -> list[str]:
    """The command line that runs a command in a sandbox such as workers have."""
    words = [bubblewrap.find()]
    if kernel.is_admin():
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        return [*words, *_view(), *command]
    words += ["--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    if not uid:
        return [*words, *_view(), *command]
    # Root that may not mount (a container's): give up root first, then do as users do.
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SandboxUnavailableError(
            "root without CAP_SYS_ADMIN needs setpriv to start a sandbox",
            hint="apt-get install util-linux, or run as an ordinary user",
        )
    before = [setpriv, "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    return [*before, "--inh-caps=-all", "--", *words, *_view(), *command]


@lru_cache(maxsize=1)
def _view() -> tuple[str, ...]:
    """What the worker sees; the same for all."""
    words = [*_NAMESPACES, "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent"]
    words += ["--new-session", "--hostname", "sandbox", "--clearenv"]
    for name, value in VARIABLES.items():
        words += ["--setenv", name, value]
    shown = [*_shown(), "/usr/share/zoneinfo", "/etc/ld.so.cache"]
    for path in ("/lib", "/lib32", "/lib64"):
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()).lstrip("/"), path]
    made: set[Path] = set()
    for path in map(Path, shown):
        # bubblewrap 0.8 makes missing parents unreadable for anybody but its own user.
        for parent in reversed(path.parents[:-1]):
            if parent not in made:
                words += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        words += ["--ro-bind-try", str(path), str(path)]
    for path in _packages():
        words += ["--tmpfs", path, "--remount-ro", path]
    words += ["--ro-bind", str(INSIDE), _SHOWN, "--perms", "0755", "--dir", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind", device, device]
    words += ["--dir", "/tmp", "--remount-ro", "/", "--chdir", "/tmp", "--"]  # noqa: S108
    return tuple(words)


def _shown() -> list[str]:
    """What a worker needs to run: the interpreter, its library and the system's shared ones."""
    python, prefix = interpreter()
    library = os.path.dirname(os.path.realpath(os.__file__))  # noqa: PTH120 - of a real path
    found = [*_shared_libraries(), python, library]
    platform = f"{prefix}/{sys.platlibdir}/{Path(library).name}"
    found += [platform] if platform != library else []
    if f"{prefix}/".startswith("/usr/"):
        found += sorted(map(str, Path(prefix, "lib").glob("libpython*.so*")))
    else:  # what its modules are linked with may be there, too
        found.append(f"{prefix}/lib")
    return [path for path in dict.fromkeys(found) if Path(path).exists()]


def _shared_libraries() -> list[str]:
    """Folders of shared libraries; where there are such of nothing else, only those."""
    triplet = f"/usr/lib/{getattr(sys.implementation, '_multiarch', '')}"
    if Path(triplet, "libc.so.6").exists():
        return [triplet, *(path for path in ("/usr/lib64", "/lib64") if _is_folder(path))]
    return [path for path in _SYSTEM if _is_folder(path)]


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def _packages() -> list[str]:
    """Folders of installed packages in what is shown."""
    libraries = [path for path in _shown() if Path(path).is_dir()]
    names = ("site-packages", "dist-packages", "python3/dist-packages", "python3*/site-packages")
    found = {str(one) for path in libraries for name in names for one in Path(path).glob(name)}
    return sorted(path for path in found if _is_folder(path))


@lru_cache(maxsize=1)
def interpreter() -> tuple[str, str]:
    """The interpreter for workers and its prefix: ours, but never a virtual environment's."""
    prefix = os.path.realpath(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidate = f"{prefix}/bin/{version}"
    found = candidate if os.access(candidate, os.X_OK) else os.path.realpath(sys.executable)
    return found, prefix


def spare_id() -> int:
    """A user id that owns nothing, and of no other sandbox alive; for root only.

    Each sandbox has its own: RLIMIT_NPROC counts by user, and signals do not cross users.
    """
    first, count = kernel.id_range("uid")
    own = os.getpid() * 1009 + next(_numbers)
    return first + count // 3 + own % max(1, count // 2)


LOSSES = "the existence and size of the host's files can be seen, and calls start no processes"
"""What this tier lacks, in a few words."""

_SIGNALS_SINCE = 6
_CAP_SETGID, _CAP_SETUID = 6, 7
_ROOM = 512  # processes and threads above those that an ordinary user has
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64")
_DATA = ("/etc/ld.so.cache", "/usr/share/zoneinfo", "/dev/urandom", "/dev/random")
_LANDLOCK_DEVICES = ("/dev/null", "/dev/zero")


def check_landlock() -> str:
    """Whether this machine can isolate by Landlock."""
    number = version()
    if number == 0:
        raise SandboxUnavailableError(
            "this kernel has no Landlock",
            hint="Linux 5.13 or newer, with landlock among the modules of the boot option lsm=",
        )
    if os.geteuid() != 0 and number < _SIGNALS_SINCE:
        raise SandboxUnavailableError(
            f"Landlock version {number} does not keep signals in",
            hint="Linux 6.12 or newer; or run as root, which gives each worker a user of its own",
        )
    if os.geteuid() == 0 and not _may_change_user():
        raise SandboxUnavailableError(
            "root without CAP_SETUID and CAP_SETGID cannot give workers a user of their own",
            hint="run as an ordinary user (docker run --user 1000)",
        )
    return f"version {number}"


def _landlock_words(control: int) -> list[str]:
    """The command line that starts a worker under Landlock."""
    is_root = os.geteuid() == 0
    python, _ = interpreter()
    words = [python, "-I", "-S", "-B", str(INSIDE / "landlock.py")]
    command = _worker(str(INSIDE), control, False, 0, is_root)
    return [*words, _plan(spare_id() if is_root else 0), *command]


def _plan(uid: int) -> str:
    python, prefix = interpreter()
    module = os.path.realpath(os.__file__)
    library = os.path.dirname(module)  # noqa: PTH120 - of a real path
    libraries = [library, f"{prefix}/lib", f"{prefix}/{sys.platlibdir}"]
    return json.dumps(
        {
            "parent": os.getpid(),
            "uid": uid,
            "readable": [*_shared_libraries(), *_DATA, python, *libraries, str(INSIDE)],
            "needed": [python, module, str(INSIDE / "worker.py")],
            "devices": _LANDLOCK_DEVICES,
            "room": _ROOM,
        }
    )


@lru_cache(maxsize=1)
def _may_change_user() -> bool:
    return kernel.may(_CAP_SETGID) and kernel.may(_CAP_SETUID)
