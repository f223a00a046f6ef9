"""The database and the artifacts: what was run, how it ended, and what was left behind.

What reads or writes a database raises `StoreError` where that cannot be done. A project, grader,
dataset, job, trace, card or key that is not there is a `NotFoundError`, which names the nearest; a
run that is not there, a text, key, number or definition that cannot be one, and a page that has not
1 to 1,000 entries are an `InputError`; a key that is taken, or a version that is not the newest, is
a `ConflictError`; a change of what is locked is a `LockedError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.store.catalog import Catalog, GraderRecord, GraderVersion
    from assay.store.database import Database
    from assay.store.datasets import DatasetRecord, DatasetRow, Datasets
    from assay.store.exported import export_run, import_run
    from assay.store.jobs import JobRecord, Jobs, JobStatus
    from assay.store.kept_files import delete_run
    from assay.store.projects import ApiKeys, KeyRecord, KeyRole, ProjectRecord, Projects
    from assay.store.records import CellKey, CellRecord, CellStatus, RunRecord
    from assay.store.replies import Replies
    from assay.store.restore import restore_snapshot
    from assay.store.runs import Store, new_run_id
    from assay.store.scores import ScoreRecord, Scores, ScoreSource
    from assay.store.snapshots import Dropped, Snapshot, SnapshotLimits, take_snapshot
    from assay.store.traces import TraceLimits, TraceRecord, Traces

__all__ = [
    "ApiKeys",
    "Catalog",
    "CellKey",
    "CellRecord",
    "CellStatus",
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
    "TraceLimits",
    "TraceRecord",
    "Traces",
    "delete_run",
    "export_run",
    "import_run",
    "new_run_id",
    "restore_snapshot",
    "take_snapshot",
]

_HOMES = {
    "ApiKeys": ".projects",
    "Catalog": ".catalog",
    "CellKey": ".records",
    "CellRecord": ".records",
    "CellStatus": ".records",
    "Database": ".database",
    "DatasetRecord": ".datasets",
    "DatasetRow": ".datasets",
    "Datasets": ".datasets",
    "Dropped": ".snapshots",
    "GraderRecord": ".catalog",
    "GraderVersion": ".catalog",
    "JobRecord": ".jobs",
    "JobStatus": ".jobs",
    "Jobs": ".jobs",
    "KeyRecord": ".projects",
    "KeyRole": ".projects",
    "ProjectRecord": ".projects",
    "Projects": ".projects",
    "Replies": ".replies",
    "RunRecord": ".records",
    "ScoreRecord": ".scores",
    "ScoreSource": ".scores",
    "Scores": ".scores",
    "Snapshot": ".snapshots",
    "SnapshotLimits": ".snapshots",
    "Store": ".runs",
    "TraceLimits": ".traces",
    "TraceRecord": ".traces",
    "Traces": ".traces",
    "delete_run": ".kept_files",
    "export_run": ".exported",
    "import_run": ".exported",
    "new_run_id": ".runs",
    "restore_snapshot": ".restore",
    "take_snapshot": ".snapshots",
}

__getattr__ = names_on_demand(__name__, _HOMES)
