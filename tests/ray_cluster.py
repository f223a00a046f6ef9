"""A Ray cluster on this machine, of several raylets that can be killed one by one."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

from assay.errors import ModelError
from assay.models import current_client

if TYPE_CHECKING:
    import pytest  # each worker imports what stands above

    from assay.conversation.messages import Request

__all__ = ["MEMORY", "ask_model", "bare", "raylets", "tokens_as_set"]

MEMORY = 100 << 20


@contextmanager
def raylets(cores: int) -> Generator[Any]:
    """A head with so many cores; nothing of it is left."""
    import pytest
    from ray.cluster_utils import Cluster

    place = tempfile.mkdtemp(prefix="r-")  # short: sockets are made in it
    head = {"num_cpus": cores, "object_store_memory": MEMORY, "temp_dir": place}
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        tokens_as_set()
        patch.setattr("ray._private.utils.write_ray_address", Mock())  # notes it for all to see
        bare(patch)
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        found = Cluster(initialize_head=True, head_node_args=head)
        stack.callback(found.shutdown)
        yield found


def bare(patch: pytest.MonkeyPatch) -> None:
    """Have machines start without what looks after Ray's own pages, logs and environments.

    That is a second of CPU for each machine and two for a head, and no test of ours asks for it. A
    raylet ends with its agents, so something stands in for them that ends with the raylet.
    """
    node: Any = importlib.import_module("ray._private.node").Node
    services, parts = "ray._private.services", importlib.import_module("ray._raylet")
    agents = ("dashboard_agent_listen", "metrics_agent", "metrics_export", "runtime_env_agent")
    start = node.start_raylet

    def start_raylet(self: Any, *given: object) -> None:
        for agent in agents:
            parts.persist_port(self.get_session_dir_path(), self.node_id, f"{agent}_port", -1)
        start(self, *given)

    patch.setattr(node, "start_raylet", start_raylet)
    patch.setattr(node, "start_monitor", Mock())
    patch.setattr(node, "start_log_monitor", Mock())
    patch.setattr(f"{services}.start_api_server", Mock(return_value=(None, None)))
    program = f"{services}._build_python_executable_command_memory_profileable"
    patch.setattr(program, Mock(return_value=["sh", "-c", "exec cat"]))


def tokens_as_set() -> None:
    """Have whether clusters ask for tokens read anew from ``RAY_AUTH_MODE``.

    Ray keeps what held for the first cluster of a process. In one of the other kind the two sides
    would take each other for strangers: all workers die.
    """
    parts: Any = importlib.import_module("ray._raylet")
    parts.Config.initialize("")
    parts.AuthenticationTokenLoader.instance().reset_cache()


async def ask_model(asked: Request | None) -> tuple[int, str]:
    """What a worker does: ask a model once, and say in which process, and how that ended."""
    if asked is None:
        return os.getpid(), "nothing asked"
    try:
        await current_client().ask(asked)
    except ModelError as failure:
        return os.getpid(), failure.kind
    return os.getpid(), "answered"
