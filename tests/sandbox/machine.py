"""What sandboxed commands need of the machine that runs the tests."""

from __future__ import annotations

import pytest

from assay.sandbox import probe

__all__ = ["has_namespaces", "needs_namespaces"]


def has_namespaces() -> bool:
    """Not "any tier": a sandbox that lets a command out must fail here, not be passed over."""
    return all(check.ok for check in probe().checks[:2])


needs_namespaces = pytest.mark.skipif(
    not has_namespaces(), reason="no bubblewrap or no user namespaces on this machine"
)
