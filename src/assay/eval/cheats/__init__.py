"""Our library of cheats: ways to get reward without doing the work, one file per family."""

from assay.eval.cheats.cheat import FAMILIES, Cheat
from assay.eval.cheats.library import LIBRARY, select_cheats

__all__ = ["FAMILIES", "LIBRARY", "Cheat", "select_cheats"]
