"""Give up everything that a worker has no use for, for good and for all it will ever start."""

from __future__ import annotations

import ctypes
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from assay.sandbox.functions.inside.wire import Line

_MIB = 1024 * 1024
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SUBREAPER = 1, 4, 36
_SIGKILL, _IGNORE = 9, 1
# HUP, INT, QUIT, USR1, USR2, ALRM, TERM: in process 1 the default action means "ignored".
_SIGNALS = (1, 2, 3, 10, 12, 14, 15)
_SIGCHLD = 17  # a host that ignores it hands that on, and the kernel keeps no dead child for us
_MOST_SIGNALS = 65
_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_FSIZE, 16 * _MIB),
    (resource.RLIMIT_CPU, 900),  # of one process: a backstop, should nobody be left to kill it
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 64),
    (resource.RLIMIT_STACK, 8 * _MIB),
)


class Confinement:
    """What the worker keeps of its set-up.

    ``namespaced``: Whether it is process 1 of a pid namespace, so that it may kill whatever a call
    leaves behind. If not, calls may not start processes.
    ``limit_processes``: Whether a limit on processes would count only this sandbox's.
    """

    def __init__(
        self, libc: ctypes.PyDLL, call_filter: bytes, *, namespaced: bool, limit_processes: bool
    ) -> None:
        self.libc = libc
        self.pid = os.getpid()
        self.namespaced = namespaced
        self.limit_processes = limit_processes
        self._call_filter = call_filter

    def die_with_parent(self, parent: int) -> None:
        """Have the kernel kill this process when its parent ends; or end, if it has ended."""
        self.libc.prctl(_SET_DEATH_SIGNAL, _SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    def ignore_signals(self) -> None:
        """In the template, which unlike process 1 could be ended by them: a call may send any.

        Nor may the program handle one there: it would learn of one call's end before the next.
        """
        for number in range(1, _MOST_SIGNALS):
            self.libc.signal(number, ctypes.c_void_p(_IGNORE if number in _SIGNALS else 0))

    def confine_call(self, template: int) -> None:
        """In the process of a call, where there is no pid namespace: no forks, no signals."""
        self.die_with_parent(template)
        install(self._call_filter)


def confine(line: Line, *, namespaced: bool, uid: int, limit_processes: bool) -> Confinement:
    """Confine this process."""
    libc = ctypes.PyDLL(None, use_errno=True)
    for number in (*_SIGNALS, _SIGCHLD):
        libc.signal(number, None)
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    # After the change of user, which clears it.
    libc.prctl(_SET_DEATH_SIGNAL, _SIGKILL, 0, 0, 0)
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    for kind, most in _LIMITS:
        limit(kind, most)
    _, filters = line.fields()
    install(filters[0])
    return Confinement(libc, filters[-1], namespaced=namespaced, limit_processes=limit_processes)


def limit(kind: int, most: int) -> None:
    """Lower a limit for good; one that is lower already stays."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


_SET_SECCOMP, _FILTER = 22, 2
_SET_NO_NEW_PRIVS = 38

# Not CDLL: it would release the interpreter lock, which a forked child has no use for.
_libc = ctypes.PyDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install(program: bytes) -> None:
    """Install a filter; those already there stay, and the strictest answer holds."""
    _prctl(_SET_NO_NEW_PRIVS, 1, None)
    _prctl(_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(program) // 8, program)))


def _prctl(option: int, value: int, pointer: object) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), pointer, None, None):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
