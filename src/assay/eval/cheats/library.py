"""All cheats, in the order in which they are played."""

from __future__ import annotations

from collections.abc import Sequence

from assay.errors import InputError, nearest
from assay.eval.cheats import (
    answers,
    artefacts,
    background,
    c_sources,
    forged_reports,
    in_process,
    javascript,
    resources,
    runner_config,
    stand_ins,
    surroundings,
    test_edits,
    traces,
)
from assay.eval.cheats.cheat import Cheat

LIBRARY: tuple[Cheat, ...] = (
    *answers.CHEATS,
    *artefacts.CHEATS,
    *runner_config.CHEATS,
    *test_edits.CHEATS,
    *stand_ins.CHEATS,
    *in_process.CHEATS,
    *javascript.CHEATS,
    *c_sources.CHEATS,
    *forged_reports.CHEATS,
    *background.CHEATS,
    *surroundings.CHEATS,
    *resources.CHEATS,
    *traces.CHEATS,
)


def select_cheats(ids: Sequence[str]) -> tuple[Cheat, ...]:
    """The cheats of these ids or families, in the library's order; all where none is given.

    Raises:
        InputError: For an unknown id, with the nearest one.
    """
    known = [*(cheat.id for cheat in LIBRARY), *dict.fromkeys(cheat.family for cheat in LIBRARY)]
    for wanted in ids:
        if wanted not in known:
            raise InputError(f"no cheat {wanted!r}", hint=nearest(wanted, known))
    return tuple(c for c in LIBRARY if not ids or c.id in ids or c.family in ids)
