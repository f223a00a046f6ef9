"""The database and the artifacts: what was run, how it ended, and what was left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.store.api_keys import ApiKeys
    from assay.store.catalog import Catalog
    from assay.store.catalog_records import (
        DatasetRecord,
        DatasetRow,
        GraderRecord,
        GraderVersion,
        JobRecord,
        JobStatus,
        KeyRecord,
        KeyRole,
        ProjectRecord,
        ScoreRecord,
        ScoreSource,
    )
    from assay.store.database import Database
    from assay.store.datasets import Datasets
    from assay.store.jobs import Jobs
    from assay.store.projects import Projects
    from assay.store.records import CellKey, CellRecord, CellStatus, Counts, RunRecord
    from assay.store.replies import Replies
    from assay.store.restore import restore_snapshot
    from assay.store.runs import Store, new_run_id
    from assay.store.scores import Scores
    from assay.store.snapshots import Dropped, Snapshot, SnapshotLimits, take_snapshot

__all__ = [
    "ApiKeys",
    "Catalog",
    "CellKey",
    "CellRecord",
    "CellStatus",
    "Counts",
    "Database",
    "DatasetRecord",
    "DatasetRow",
    "Datasets",
    "Dropped",
    "GraderRecord",
    "GraderVersion",
    "JobRecord",
    "JobStatus",
    "Jobs",
    "KeyRecord",
    "KeyRole",
    "ProjectRecord",
    "Projects",
    "Replies",
    "RunRecord",
    "ScoreRecord",
    "ScoreSource",
    "Scores",
    "Snapshot",
    "SnapshotLimits",
    "Store",
    "new_run_id",
    "restore_snapshot",
    "take_snapshot",
]

_HOMES = {
    "ApiKeys": ".api_keys",
    "Catalog": ".catalog",
    "CellKey": ".records",
    "CellRecord": ".records",
    "CellStatus": ".records",
    "Counts": ".records",
    "Database": ".database",
    "DatasetRecord": ".catalog_records",
    "DatasetRow": ".catalog_records",
    "Datasets": ".datasets",
    "Dropped": ".snapshots",
    "GraderRecord": ".catalog_records",
    "GraderVersion": ".catalog_records",
    "JobRecord": ".catalog_records",
    "JobStatus": ".catalog_records",
    "Jobs": ".jobs",
    "KeyRecord": ".catalog_records",
    "KeyRole": ".catalog_records",
    "ProjectRecord": ".catalog_records",
    "Projects": ".projects",
    "Replies": ".replies",
    "RunRecord": ".records",
    "ScoreRecord": ".catalog_records",
    "ScoreSource": ".catalog_records",
    "Scores": ".scores",
    "Snapshot": ".snapshots",
    "SnapshotLimits": ".snapshots",
    "Store": ".runs",
    "new_run_id": ".runs",
    "restore_snapshot": ".restore",
    "take_snapshot": ".snapshots",
}

__getattr__ = names_on_demand(__name__, _HOMES)
