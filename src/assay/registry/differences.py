"""What changed between two versions, as a unified diff of their files."""

from __future__ import annotations

from collections.abc import Iterable

from assay.registry.files import definition_files
from assay.store.catalog_records import GraderVersion

__all__ = ["differences"]


def differences(older: GraderVersion, newer: GraderVersion) -> str:
    """The diff; empty where they are the same."""
    return "".join(_lines(older, newer))


def _lines(older: GraderVersion, newer: GraderVersion) -> Iterable[str]:
    import difflib

    old, new = definition_files(older), definition_files(newer)
    for name in sorted({*old, *new}, reverse=True):
        lines = difflib.unified_diff(
            old.get(name, "").splitlines(keepends=True),
            new.get(name, "").splitlines(keepends=True),
            f"{name}@{older.number}",
            f"{name}@{newer.number}",
        )
        for line in lines:
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
