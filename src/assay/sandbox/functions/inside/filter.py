"""Install a system-call filter in this process: its own, and all its children's, for good.

The programs are compiled on the host (`assay.sandbox.functions.filters.worker_filters`) and handed
in; nothing here knows a call's number. Part of a worker, which runs in a bare interpreter: standard
library only.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["install"]

_SET_SECCOMP, _FILTER = 22, 2
_SET_NO_NEW_PRIVS = 38

# Not CDLL: it would release the interpreter lock, which a forked child has no use for.
_libc = ctypes.PyDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install(program: bytes) -> None:
    """Install a filter; those already there stay, and the strictest answer holds.

    Args:
        program: The compiled filter, 8 bytes per instruction.

    Raises:
        OSError: The kernel refused.
    """
    _prctl(_SET_NO_NEW_PRIVS, 1, None)
    _prctl(_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(program) // 8, program)))


def _prctl(option: int, value: int, pointer: object) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), pointer, None, None):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
