"""The pools that all parts of this process share, by program; and a pool for a single look."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from assay.sandbox.functions.pool import FunctionPool
from assay.sandbox.functions.program import (
    FunctionLimits,
    Isolation,
    LoadReport,
    Program,
    TierChoice,
)
from assay.sandbox.functions.session import LoadFailedError

__all__ = ["load_once", "owned_by", "pool_for"]

_MOST = 32
_Key = tuple[str, str, Isolation, FunctionLimits, TierChoice]

_owner: ContextVar[str] = ContextVar("assay_function_owner", default="")
_lock = threading.Lock()
_pools: OrderedDict[_Key, FunctionPool] = OrderedDict()


@contextmanager
def owned_by(owner: str) -> Generator[None]:
    """Within it, pools are those of an owner, such as a project.

    It holds for the current task or thread, and for what is started from it.

    Args:
        owner: Any name; empty for nobody in particular.
    """
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


def pool_for(
    program: Program,
    *,
    isolation: Isolation = "call",
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
    owner: str = "",
) -> FunctionPool:
    """The pool that everybody in this process shares for a program, or everybody of one owner.

    Two owners of the same program have a pool each: no worker that has seen the one's payloads
    gets the other's.

    It need not be closed: of the least recently used ones beyond 32, those that have nothing to do
    end their workers, and start new ones when they are called again.

    Args:
        program: What is called.
        isolation: As for `FunctionPool`.
        limits: Likewise.
        tier: Likewise.
        owner: Whose it is; empty for that of `owned_by`.
    """
    key: _Key = (owner or _owner.get(), program.digest, isolation, limits or FunctionLimits(), tier)
    with _lock:
        pool = _pools.get(key)
        if pool is None:
            pool = FunctionPool(program, isolation=isolation, limits=limits, tier=tier)
            _pools[key] = pool
        _pools.move_to_end(key)
        old = list(_pools.items())[:-_MOST]
    for other, unused in old:
        if unused.rest():
            with _lock:
                _pools.pop(other, None)
    return pool


async def load_once(
    program: Program,
    payloads: Sequence[bytes] = (),
    *,
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
) -> LoadReport:
    """Load a program on a worker of its own, and make a few calls to see what it does.

    Args:
        program: What is loaded.
        payloads: JSON, one for each call.
        limits: As for a pool.
        tier: Likewise.

    Raises:
        SandboxUnavailableError: No tier works on this machine.
        SandboxError: The worker broke down.
    """
    pool = FunctionPool(program, workers=1, limits=limits, tier=tier)
    try:
        await pool.start()
        outcomes = await pool.call_many(payloads)
        return LoadReport(outcomes=outcomes, tier=pool.tier)
    except LoadFailedError as error:
        return LoadReport(error=error.message, line=error.line, tier=pool.tier)
    finally:
        await pool.close()
