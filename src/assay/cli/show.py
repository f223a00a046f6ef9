"""``assay report``."""

from __future__ import annotations

from assay.cli.conclude import conclude
from assay.cli.options import Outputs, check_targets, state_home
from assay.store.runs import Store

__all__ = ["show_run"]


def show_run(ref: str, *, everything: bool, outputs: Outputs) -> int:
    """Report a stored run.

    Returns:
        The exit status of its verdict.

    Raises:
        InputError: For an unknown run.
    """
    check_targets((outputs.junit, outputs.html), inputs=())
    with Store.open(state_home()) as store:
        shown = None if everything else 5
        return conclude(store, store.run(ref).id, outputs, shown=shown)
