"""How tests are isolated, settled before cases are run: what a user is told and may refuse."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from assay.cli.options import state_home
from assay.errors import InputError
from assay.eval.isolation import CaseLock, Settle, isolated_graders
from assay.reports.plain import one_line
from assay.tasks.case import Case

__all__ = ["isolation_notes", "settling"]

_MOST = 400


def settling(*, workers: int, locked: bool = False) -> Settle:
    """What settles the isolation of the cases of a run.

    Args:
        workers: Cases at once.
        locked: Whether to refuse what no lock file has decided.
    """

    def settle(locks: Sequence[CaseLock]) -> list[Case]:
        open_ = [lock for lock in locks if lock.undecided]
        if locked and open_:
            raise _not_locked(open_[0])
        for lock in open_:
            if lock.stale and not lock.reference:
                _tell(f"warning: {_file(lock)}: {lock.problem}")
        if not any(lock.reference for lock in open_):
            return [lock.resolved() for lock in locks]
        return asyncio.run(_decide(locks, workers))

    return settle


async def _decide(locks: Sequence[CaseLock], workers: int) -> list[Case]:
    from assay.eval.isolation_proof import decide
    from assay.eval.trials import arena

    def tell(case: Case, file: str) -> None:
        modes = "; ".join(map(str, isolated_graders(case)))
        kept = f"written to {os.path.relpath(file)}" if file else "not kept"
        _tell(f"{case.id}: {modes} ({kept})")

    count = sum(1 for lock in locks if lock.undecided and lock.reference)
    _tell(f"playing the reference of {_cases(count)} to learn how its tests can be isolated")
    with redirect_stdout(sys.stderr):
        cache = str(Path(state_home(), "cache"))
        async with arena(cache=cache, workers=workers) as place:
            return await decide(locks, place, tell=tell)


def isolation_notes(case: Case) -> list[str]:
    """What is worth knowing of a case whose isolation nobody decided."""
    lock = CaseLock(case, str(Path(state_home(), "cache")))
    return [lock.problem] if lock.undecided else []


def _not_locked(lock: CaseLock) -> InputError:
    return InputError(
        f"{_file(lock)}: {lock.problem}",
        hint="run assay selftest and keep the lock file with the case; or give the grader "
        "isolation: shared",
    )


def _cases(number: int) -> str:
    return "a case" if number == 1 else f"each of {number} cases"


def _file(lock: CaseLock) -> str:
    return os.path.relpath(lock.case.lock_file)


def _tell(line: str) -> None:
    print(one_line(line, _MOST), file=sys.stderr)
