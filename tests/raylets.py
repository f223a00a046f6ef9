"""A Ray cluster on this machine, of several raylets that can be killed one by one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["MEMORY", "raylets"]

MEMORY = 100 << 20


@contextmanager
def raylets(cores: int, port: int | None = None) -> Generator[Any]:
    """A head with so many cores; nothing of it is left.

    Args:
        cores: Of the head.
        port: Where it listens; a free one by default.
    """
    from ray.cluster_utils import Cluster

    place = tempfile.mkdtemp(prefix="r-")  # short: sockets are made in it
    noted = Path(tempfile.gettempdir(), "ray")  # where Ray notes the cluster
    was_noted = noted.exists()
    noted.mkdir(exist_ok=True)
    head = {"num_cpus": cores, "object_store_memory": MEMORY, "temp_dir": place}
    if port is not None:
        head["port"] = port
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = Cluster(initialize_head=True, head_node_args={**head, "include_dashboard": False})
        try:
            yield found
        finally:
            found.shutdown()
            shutil.rmtree(place, ignore_errors=True)
            if not was_noted:
                shutil.rmtree(noted, ignore_errors=True)
