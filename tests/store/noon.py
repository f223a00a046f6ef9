"""The time that it always is in the databases of these tests."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["NOON"]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
