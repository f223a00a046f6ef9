"""Find, join or start the Ray cluster that an engine names.

``ray`` is the cluster that this machine is part of: the one that ``RAY_ADDRESS`` names, else the
one that ``ray start`` has joined here, else one of this machine alone, for as long as it is needed.
``ray://HOST:PORT`` names a cluster by the address that ``ray start`` takes. A driver is part of its
cluster: its machine has joined, if with no cores to give.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import socket
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from assay.cores import allowed
from assay.errors import InputError
from assay.eval.cluster.actors import cores, ray
from assay.eval.cluster.ray_parts import require_head
from assay.scratch import scratch

_LEAST_ROOM = 16
_LEAVE_SECONDS = 15.0
_LOCAL_STORE_BYTES = 200 << 20
_PREFIX = "assay-ray-"
_LONGEST_PLACE = 30
"""Characters of a directory in which Ray's sockets still fit the 107 bytes of their paths."""
_ADDRESS = re.compile(r"(?:ray://)?(\[[0-9a-fA-F:]+\]|[^\s/:@]+):([0-9]{1,5})")


class Cluster:
    """A Ray cluster that this process is connected to.

    Args:
        engine: What names it now and later; ``ray`` for one of this machine alone.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine

    @property
    def cores(self) -> int:
        """How many it has now."""
        return cores()

    @property
    def room(self) -> int:
        """For how many actors there should be work: machines may join."""
        return max(_LEAST_ROOM, 2 * self.cores)


def engine_address(engine: str) -> str | None:
    """The address in ``ray://HOST:PORT``, as ``HOST:PORT``; None for ``ray`` alone.

    Raises:
        InputError: It is neither.
    """
    if engine == "ray":
        return None
    found = _ADDRESS.fullmatch(engine)
    if found is None or not engine.startswith("ray://") or not 0 < int(found[2]) < 1 << 16:
        raise InputError(
            f"{engine!r} is no engine",
            hint="local, ray, or ray://HOST:PORT with the address that `ray start` takes",
        )
    return f"{found[1]}:{found[2]}"


@contextmanager
def connected(engine: str) -> Generator[Cluster]:
    """Be connected to the cluster that an engine names, until the block ends.

    A connection that this process has already is used and left alone. A process must not join a
    cluster with tokens after one without, or the reverse: Ray keeps what held for the first, and
    all workers would die.

    Args:
        engine: ``ray`` or ``ray://HOST:PORT``.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: No cluster is there, or it cannot be joined from here.
    """
    address = engine_address(engine)
    library = ray()
    if library.is_initialized():
        yield Cluster(engine)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or _address_here()
    with ExitStack() as stack:
        begin = partial(library.init, log_to_driver=False, logging_level=logging.ERROR)
        if address is not None:
            require_head(address)
        place = "" if address else stack.enter_context(scratch(_PREFIX, _base()))
        stack.callback(_leave, library)
        try:
            if address is None:
                begin(
                    address="local",
                    num_cpus=len(allowed()),
                    object_store_memory=_LOCAL_STORE_BYTES,
                    include_dashboard=False,
                    _temp_dir=str(place),
                )
            else:
                begin(address=address)
        except Exception as error:  # the boundary: Ray raises whatever it comes upon
            raise _not_joined(address, error) from error
        yield Cluster("ray" if address is None else f"ray://{address}")


def _leave(library: Any) -> None:  # noqa: ANN401 - its own types are not complete
    """Leave the cluster; for a head that hangs Ray would wait for ever, now and at the end."""
    if not library.is_initialized():
        library.shutdown()  # what it has begun
        return
    try:
        require_head(library.get_runtime_context().gcs_address)
    except InputError:
        leaving = Thread(target=library.shutdown, daemon=True)
        leaving.start()
        leaving.join(_LEAVE_SECONDS)
        if leaving.is_alive():
            atexit.unregister(library.shutdown)
            atexit.register(_end_process)
    else:
        library.shutdown()


def _end_process() -> None:
    """End at once, as what cannot grade ends: Ray's own threads would crash it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(3)


def _address_here() -> str | None:
    """The address of the cluster that this machine is part of; None where it is of none."""
    given = os.environ.get("RAY_ADDRESS", "")
    if given and given not in ("auto", "local"):
        if _ADDRESS.fullmatch(given) is None:
            raise InputError(
                f"RAY_ADDRESS is {given!r}", hint="HOST:PORT, the address that `ray start` takes"
            )
        return given.removeprefix("ray://")
    if given == "local":
        return None
    base = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()  # where Ray notes it
    noted = Path(base, "ray", "ray_current_cluster")
    try:
        with open(noted, "rb", opener=_at_once) as file:
            said, owner = file.read(1_024) or b"", os.fstat(file.fileno()).st_uid
        found = said.decode("utf-8").strip()
    except (OSError, ValueError):  # none
        return None
    is_ours = owner in (0, os.getuid())
    try:
        require_head(found)
    except InputError as error:
        if not is_ours or _is_here(found):  # it has ended without saying so
            return None
        raise InputError(
            f"this machine has joined the cluster at {found}, which does not answer: "
            f"{error.message}",
            hint="`ray stop` here forgets it; `--engine local` needs none",
        ) from error
    if not is_ours:  # anybody may write there, and workers can do as they like
        raise InputError(
            f"the Ray cluster {found}, noted in {noted}, belongs to another user of this machine",
            hint=f"to use it all the same: --engine ray://{found}",
        )
    return found


def _is_here(address: str) -> bool:
    """Whether an address, or what was taken for one, is of this machine."""
    found = _ADDRESS.fullmatch(address)
    host = found[1].strip("[]") if found else ""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        return False
    return True


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: where anybody may write, a file may be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _not_joined(address: str | None, error: Exception) -> InputError:
    where = "no Ray cluster can be started here" if address is None else f"cannot join {address}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    what = " ".join(lines)[:600] or type(error).__name__
    hint = "docs/datasets.md"
    if address is not None:
        hint = (
            f"has this machine joined? `ray start --address={address} --num-cpus=0`; "
            "and has it the cluster's token, where that asks for one?"
        )
    return InputError(f"{where}: {what}", hint=hint)


def _base() -> str:
    """Where a cluster of this machine alone has its directory, in which it makes sockets."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _LONGEST_PLACE else "/tmp"  # noqa: S108 - as above
