"""Rows and results as people look at them, two jobs compared, and what runs came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.errors import ConflictError, NotFoundError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service import data, environments, graders, results, rows, site
from assay.service.operation import LOCAL, Desk, ask
from assay.store.datasets import Datasets
from assay.store.database import Database
from assay.store.jobs import JobRecord, Jobs
from assay.store.records import CellRecord
from assay.store.runs import Store
from assay.store.scores import ScoreRecord
from assay.registry.policy import Permissions
from tests.definitions import *
