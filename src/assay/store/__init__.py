"""The database and the artifacts: what was run, how it ended, and what was left behind."""

from assay.store.database import Store, new_run_id
from assay.store.records import CellKey, CellRecord, CellStatus, Counts, RunRecord
from assay.store.restore import restore_snapshot
from assay.store.snapshots import Dropped, Snapshot, SnapshotLimits, take_snapshot

__all__ = [
    "CellKey",
    "CellRecord",
    "CellStatus",
    "Counts",
    "Dropped",
    "RunRecord",
    "Snapshot",
    "SnapshotLimits",
    "Store",
    "new_run_id",
    "restore_snapshot",
    "take_snapshot",
]
