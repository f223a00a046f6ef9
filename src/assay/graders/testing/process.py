"""Two sandboxes for one run of tests: the judge with the tests, the host with the submission.

The judge's tree is the pristine source with the hidden files over it, and holds nothing of the
submission. The host's tree is the grading tree, and holds no hidden file. They meet at one socket:
the host can only connect to it, and the judge is handed the listening end over its channel. A
directory for temporary files is shown to both; in it the judge follows no link.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from assay.errors import GraderError
from assay.graders.testing.runners import INSIDE
from assay.sandbox import Limits, Mount, run_command
from assay.scoring.json_safe import Json

__all__ = ["LINK", "SHARED", "Host", "host_of", "judge_brief"]

LINK = "/opt/assay/link"
"""Where the host's sandbox shows the socket of the judge."""

SHARED = "/tmp/shared"  # noqa: S108 - a mount point inside of the sandboxes
"""Where both show the directory for temporary files."""

_HOST = f"{INSIDE}/boundary/host.py"
_NODE_HOSTS = f"{INSIDE}/boundary/hosts.cjs"
_LONGEST_CALL = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A running host of the submission.

    Attributes:
        listener: The socket to which it connects, for the judge.
        mount: The shared directory, as the judge sees it.
    """

    listener: socket.socket
    mount: Mount


def judge_brief(
    hidden: list[str], *, allow: list[str], fresh: str, timeout_s: float
) -> dict[str, Json]:
    """What a judge is told beside the brief of every runner."""
    return {
        "hidden": [*hidden],
        "allow": [*allow],
        "fresh": fresh,
        "shared": [f"{SHARED}/"],
        "seconds": min(_LONGEST_CALL, timeout_s / 2),
    }


@asynccontextmanager
async def host_of(
    workspace: str, *, node: bool, env: Mapping[str, str], mounts: list[Mount], seconds: float
) -> AsyncGenerator[Host]:
    """Run the host of a submission beside a judge.

    On leaving, every process of it is dead and its files are gone.

    Raises:
        GraderError: If the host could not even start.
    """
    with tempfile.TemporaryDirectory(prefix="assay-", ignore_cleanup_errors=True) as home:
        shared, place = Path(home, "shared"), Path(home, "link")
        shared.mkdir()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listener:
            listener.bind(str(place))
            place.chmod(0o666)
            listener.listen(64)
            around = [*mounts]
            around.append(Mount(source=str(place), target=LINK))
            around.append(Mount(source=str(shared), target=SHARED, writable=True))
            running = asyncio.create_task(
                run_command(
                    ["node", _NODE_HOSTS] if node else [env["ASSAY_PYTHON"], "-s", _HOST],
                    workspace=workspace,
                    env=_without_ours(env),
                    mounts=around,
                    limits=Limits(wall_seconds=seconds),
                )
            )
            view = Mount(source=str(shared), target=SHARED, writable=True, links=False)
            try:
                yield Host(listener=listener, mount=view)
                if running.done() and running.exception() is not None:
                    raise GraderError(f"the submission's host did not start: {running.exception()}")
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await running


def _without_ours(env: Mapping[str, str]) -> dict[str, str]:
    """The variables for the submission: it reports to nobody."""
    path = [part for part in env.get("PATH", "").split(":") if not part.startswith(INSIDE)]
    kept = {name: text for name, text in env.items() if not name.startswith("ASSAY_")}
    python = str(Path(env["ASSAY_PYTHON"]).parent)
    return {**kept, "PATH": ":".join([python, *path]), "TMPDIR": SHARED, "ASSAY_LINK": LINK}
