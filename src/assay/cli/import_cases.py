"""``assay import``: other systems' tasks as cases."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import state_home
from assay.errors import InputError

if TYPE_CHECKING:
    from assay.tasks.origin import Source

__all__ = ["import_swebench"]


def import_swebench(
    file: str,
    *,
    instance_id: str | None = None,
    into: str | None = None,
    source: str | None = None,
    sha256: str | None = None,
) -> int:
    """Write one row of SWE-bench's format as a case.

    Args:
        file: One row as JSON, a list of rows, or JSONL.
        instance_id: Which row; needed where there are several.
        into: Directory of the case; ``evals/ID`` by default.
        source: Where the files of the base commit are: a directory, a clone of the repository, its
            URL, or a source distribution as ``name==version``.
        sha256: Hash of the source distribution.

    Returns:
        0 if the case can be run, 1 if something has to be added first.

    Raises:
        InputError: For a malformed row, a source that does not fit, or a directory that is there.
        SourceError: If the source cannot be fetched.
    """
    from assay.interop.swebench import pick_instance, read_instances
    from assay.interop.swebench_case import write_case

    instance = pick_instance(read_instances(file), instance_id, file=file)
    directory = into or str(Path("evals", instance.instance_id))
    written = write_case(
        instance,
        directory,
        source=_source(source, sha256, instance.base_commit),
        cache_dir=str(Path(state_home(), "cache")),
    )
    for name in written.files:
        print(f"  {directory}/{name}")
    for note in written.notes:
        print(f"note: {note}", file=sys.stderr)
    if written.runnable:
        print(f"\nTry:  assay run {shlex.quote(directory)}")
    return 0 if written.runnable else 1


def _source(given: str | None, sha256: str | None, commit: str) -> Source | None:
    from assay.tasks.origin import Source, is_local

    is_package = given is not None and "==" in given and not Path(given).exists()
    if sha256 is not None and not is_package:
        raise InputError("--sha256 is the hash of a source distribution", hint="--source NAME==1.0")
    if given is None:
        return None
    if is_package:
        return Source(pypi=given, sha256=sha256)
    if not is_local(given):
        return Source(git=given, commit=commit)
    path = Path(given)
    if not path.is_dir():
        raise InputError(
            f"there is no directory {given!r}", hint="a directory, a clone, a URL or name==version"
        )
    if (path / ".git").exists() or ((path / "objects").is_dir() and (path / "HEAD").is_file()):
        return Source(git=given, commit=commit)
    return Source(path=given)
