"""A Ray cluster on this machine, of several raylets that can be killed one by one."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

__all__ = ["MEMORY", "raylets", "tokens_as_set"]

MEMORY = 100 << 20


@contextmanager
def raylets(cores: int) -> Generator[Any]:
    """A head with so many cores; nothing of it is left."""
    from ray.cluster_utils import Cluster

    place = tempfile.mkdtemp(prefix="r-")  # short: sockets are made in it
    noted = Path(tempfile.gettempdir(), "ray")  # where Ray notes the cluster
    was_noted = noted.exists()
    noted.mkdir(exist_ok=True)
    head = {"num_cpus": cores, "object_store_memory": MEMORY, "temp_dir": place}
    alone = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        tokens_as_set()
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        if not was_noted:
            stack.callback(shutil.rmtree, noted, ignore_errors=True)
        found = Cluster(initialize_head=True, head_node_args={**head, **alone})
        try:
            yield found
        finally:
            agents = _agents(found)
            found.shutdown()
            for agent in agents:  # which wait for a head that has gone
                with suppress(ProcessLookupError):
                    os.kill(agent, signal.SIGKILL)


def tokens_as_set() -> None:
    """Have whether clusters ask for tokens read anew from ``RAY_AUTH_MODE``.

    Ray keeps what held for the first cluster of a process. In one of the other kind the two sides
    would take each other for strangers: all workers die.
    """
    parts: Any = importlib.import_module("ray._raylet")
    parts.Config.initialize("")
    parts.AuthenticationTokenLoader.instance().reset_cache()


def _agents(found: Any) -> list[int]:
    """What raylets have started."""
    started = [one for node in found.list_all_nodes() for one in node.all_processes["raylet"]]
    tasks = [task for one in started for task in Path(f"/proc/{one.process.pid}/task").glob("*")]
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
