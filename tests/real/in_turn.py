"""Several scripts in one process of another environment: what they import takes seconds."""

from __future__ import annotations

__all__ = ["IN_TURN", "parts"]

IN_TURN = """\
import gc, os, runpy, sys
gc.set_threshold(100_000, 50, 50)  # libraries make a great many objects, and no garbage
for script in sys.argv[1:]:
    sys.argv = script.split("\\t")
    sys.path[0] = os.path.dirname(sys.argv[0])
    print("==", flush=True)
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""For ``python -c``: runs each argument, a script and its own arguments with tabs between."""


def parts(said: str) -> list[str]:
    """What each of the scripts printed."""
    return said.split("==\n")[1:]
