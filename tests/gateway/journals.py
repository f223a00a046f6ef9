"""Journals of gateways, read back."""

from __future__ import annotations

from pathlib import Path

from assay.gateway.journal import readable_entries
from assay.gateway.trace import Recorded, recorded


def read_journal(file: str | Path) -> Recorded:
    """What a whole journal tells."""
    entries, broken = readable_entries(file)
    assert not broken, broken
    return recorded(entries)
