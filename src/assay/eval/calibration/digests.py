"""The digest of several graders whose scores are combined; of one it is the grader's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from assay.graders.digest import framed

__all__ = ["parts_digest"]


def parts_digest(parts: Iterable[tuple[str, float, bool]]) -> str:
    """Name a combination of graders.

    Returns:
        16 hexadecimal digits, or the one grader's digest where there is only one: alone, neither
        weight nor gate changes what passes.
    """
    known = sorted(parts)
    if len(known) == 1:
        return known[0][0]
    whole = hashlib.sha256(b"assay combination 1\0")
    for digest, weight, gate in known:
        whole.update(framed(digest.encode(), f"{weight!r} {gate}".encode()))
    return whole.hexdigest()[:16]
