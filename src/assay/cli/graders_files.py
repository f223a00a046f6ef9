"""``assay graders export`` and ``import``."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace

from assay.cli.graders_output import print_imported
from assay.cli.graders_store import opened
from assay.scoring.json_safe import Json

__all__ = ["export_graders", "import_graders"]


def export_graders(given: Namespace) -> int:
    """Write graders as files, and name or remove those of graders that are gone.

    Returns:
        0.

    Raises:
        InputError: For an unknown grader, and a file that cannot be written or removed.
    """
    with opened(given) as registry:
        files = [str(path) for path in registry.export(given.keys or None, given.into)]
        stale = [str(path) for path in registry.stale(given.into, remove=given.prune)]
    removed, left = (stale, []) if given.prune else ([], stale)
    if given.json:
        found: dict[str, Json] = {
            "files": list[Json](files),
            "stale": list[Json](left),
            "removed": list[Json](removed),
        }
        print(json.dumps(found))
        return 0
    for file in files:
        print(f"  {file}")
    for file in removed:
        print(f"  {file} removed")
    if not files:
        print("no graders to export", file=sys.stderr)
    if left:
        names = ", ".join(left)
        print(f"of no grader in the store: {names} (--prune removes them)", file=sys.stderr)
    return 0


def import_graders(given: Namespace) -> int:
    """Store the graders of files.

    Returns:
        0.

    Raises:
        InputError: For what is wrong in the files; nothing is stored then.
    """
    with opened(given, make=True) as registry:
        done = asyncio.run(registry.import_(given.path, update=not given.no_update))
    if given.json:
        rows: list[Json] = [
            {"key": one.record.key, "change": one.change, "version": one.record.latest.number}
            for one in done
        ]
        print(json.dumps({"imported": rows}))
    else:
        print_imported(done)
    return 0
