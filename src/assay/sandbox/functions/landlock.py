"""Start a function worker where there are no namespaces: isolated by Landlock and a filter.

Docker's default profile forbids every namespace, and that is where trainers run. Landlock needs no
permission of anybody. It is weaker than bubblewrap:

* whether a file of the host exists, its size and its times can be seen, though not its contents;
* a call may start threads, but no processes;
* as an ordinary user, the limit on threads leaves more room, because it counts all of the user's.

Signals are kept in only from Landlock's sixth version on (Linux 6.12). Before, a worker with the
user's own id is refused.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from assay.errors import SandboxError, SandboxUnavailableError
from assay.sandbox.functions.inside.landlock import version
from assay.sandbox.functions.launch import (
    INSIDE,
    VARIABLES,
    Launched,
    Mode,
    interpreter,
    spare_id,
)

__all__ = ["LOSSES", "check_landlock", "launch_landlock"]

LOSSES = "the existence and size of the host's files can be seen, and calls start no processes"
"""What this tier lacks, in a few words."""

_SIGNALS_SINCE = 6
_CAP_SETGID, _CAP_SETUID = 6, 7
_ROOM = 512  # processes and threads above those that an ordinary user has
_SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64")
_DATA = ("/etc/ld.so.cache", "/usr/share/zoneinfo", "/dev/urandom", "/dev/random")
_DEVICES = ("/dev/null", "/dev/zero")


def check_landlock() -> str:
    """Whether this machine can isolate by Landlock.

    Returns:
        What was found.

    Raises:
        SandboxUnavailableError: It cannot; the hint is the mend.
    """
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


def launch_landlock() -> Launched:
    """Start a worker under Landlock. It still has to load a program.

    Raises:
        SandboxUnavailableError: This machine cannot isolate by Landlock.
        SandboxError: It could not be started.
    """
    check_landlock()
    is_root = os.geteuid() == 0
    ours, theirs = socket.socketpair()
    plan = _plan(spare_id() if is_root else 0)
    mode = Mode(namespaced=False, limit_processes=is_root)
    python, _ = interpreter()
    words = [python, "-I", "-S", "-B", str(INSIDE / "landlock.py"), plan]
    try:
        process = subprocess.Popen(
            [*words, *mode.command(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(theirs.fileno(),),
            env=dict(VARIABLES),
            cwd="/",
            start_new_session=True,
        )
    except BaseException as error:
        ours.close()
        if isinstance(error, OSError):
            raise SandboxError(f"cannot start a worker: {error}") from error
        raise
    finally:
        theirs.close()
    return Launched(process, ours, "landlock")


def _plan(uid: int) -> str:
    python, prefix = interpreter()
    module = os.path.realpath(os.__file__)
    library = os.path.dirname(module)  # noqa: PTH120 - of a real path
    libraries = [library, f"{prefix}/lib", f"{prefix}/{sys.platlibdir}"]
    return json.dumps(
        {
            "parent": os.getpid(),
            "uid": uid,
            "readable": [*_SYSTEM, *_DATA, python, *libraries, str(INSIDE)],
            "needed": [python, module, str(INSIDE / "worker.py")],
            "devices": _DEVICES,
            "room": _ROOM,
        }
    )


@lru_cache(maxsize=1)
def _may_change_user() -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return bool(mask >> _CAP_SETGID & 1 and mask >> _CAP_SETUID & 1)
    return False
