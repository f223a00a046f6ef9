"""Run a command that nobody trusts."""

from __future__ import annotations

import fcntl
import marshal
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack, cast

from assay.errors import InputError, SandboxError
from assay.sandbox import bubblewrap, kernel
from assay.sandbox.bubblewrap import STAGE, refusal
from assay.sandbox.command import (
    Capture,
    Changes,
    Command,
    CommandOptions,
    CommandResult,
    Door,
    Ending,
    Limits,
    Mount,
    check_command,
    drain,
    follow,
    in_thread,
    our_failure,
    result_of,
)
from assay.sandbox.forkserver import FORK_SERVER
from assay.sandbox.seccomp import command_filter

# A shell inside starts the command, so that "not found" is an exit code of 127 as everywhere and
# not a failure of bubblewrap. It must not add a variable.
_EXEC = 'unset PWD OLDPWD; exec "$@"'
# Those are there, and would set the same variables.
_SHELLS = ("/bin/sh", "/bin/bash")
# Processes of ours that count against the limit: supervisor, bubblewrap twice.
_OWN_PROCESSES = 3
_OPEN_FILES = 4096
_DOOR = b"door"
"""What the supervisor says with a door's socket, before its verdict."""
# How long the supervisor may take for the set-up and the kill together. A copy of a large
# workspace, where overlays are refused, is the slowest part.
_PATIENCE_SECONDS = 120.0
_KILL_SECONDS = 10.0
_VERDICT_BYTES = 65_536
# Death by signal, as bubblewrap reports it. Not 129 and 130, which programs choose themselves
# (git: wrong usage).
_BY_SIGNAL = {128 + number: -number for number in (4, 5, 6, 7, 8, 9, 11, 13, 15, 24, 25, 31)}


class Tree(TypedDict):
    """A file or directory of the host to be shown.

    ``name``: where, below the stage. ``mode``: ``read``; ``write``: changes go to the host;
    ``layer``: changes go to a layer in memory that dies with the command. ``over``: names of trees,
    put down before this one, that are laid over a ``layer``, the first on top. ``links``: whether
    links in it are followed.
    """

    source: str
    name: str
    mode: str
    over: list[str]
    links: bool


class SupervisorPlan(TypedDict):
    """Everything the supervisor needs; only what `marshal` carries.

    ``etc``: what stands in the sandbox's /etc, by name: what the host has there, and the content of
    files. ``seed``: what the layer over an image holds from the start: directories, files, links.
    ``sizes``: bytes and files of the in-memory layer. ``rlimits``: pairs of a resource's number and
    its limit. ``door``: the port at which the command reaches this process, or 0.
    """

    parent: int
    stage: str
    bwrap: str
    arguments: list[str]
    command: list[str]
    etc: tuple[list[str], dict[str, str]]
    seed: tuple[list[str], dict[str, str], dict[str, str]]
    filter: bytes
    trees: list[Tree]
    overlay: bool
    sizes: tuple[int, int]
    rlimits: list[tuple[int, int]]
    wall_seconds: float
    memory_bytes: int
    door: int


class SupervisorVerdict(TypedDict):
    """The supervisor's answer.

    ``word``: ``ended``, ``timed_out``, ``killed``, ``memory`` (all with ``seconds``), or
    ``refused`` with the ``step`` of the set-up, the kernel's ``errno`` and a ``text``. ``code``:
    the exit code where there is one.
    """

    word: str
    code: int | None
    seconds: float
    step: str
    errno: int
    text: str


async def run_command(
    argv: Sequence[str], *, stdin: bytes | None = None, **options: Unpack[CommandOptions]
) -> CommandResult:
    """Run a command in a sandbox, with a workspace as its working directory.

    What the command does is a result, whatever it does. What we cannot do is an exception. When
    this returns, raises or is cancelled, no process of the command is left.

    Args:
        argv: The program and its arguments.
        stdin: What it reads on standard input; None for nothing.
        options: As `Command` has them; ``workspace`` is always said.

    Raises:
        InputError: The arguments make no sense.
        SandboxUnavailableError: This machine cannot isolate the command; the hint says what to do.
        SandboxError: The sandbox broke down.
    """
    command = Command(argv, **options)
    plan = make_plan(command)
    return await in_thread(
        lambda cancel: carry_out(command, plan, stdin=_sealed(stdin), cancel=cancel)
    )


def run_command_sync(
    argv: Sequence[str], *, stdin: bytes | None = None, **options: Unpack[CommandOptions]
) -> CommandResult:
    """Run a command in a sandbox and block until it is done; see `run_command`."""
    command = Command(argv, **options)
    return carry_out(command, make_plan(command), stdin=_sealed(stdin), cancel=None)


def make_plan(command: Command) -> SupervisorPlan:
    """What `carry_out` is to do."""
    workspace, env, mounts = command.workspace, command.env or {}, command.mounts
    network, limits, tier, door = command.network, command.bounds, command.tier, command.door
    if tier not in (None, "bwrap"):
        raise InputError(
            f"no sandbox tier {tier!r}", hint="valid: bwrap; without a sandbox: run_on_host"
        )
    if door and network:
        raise InputError(
            "a command that shares the host's network has no door",
            hint="listen on the host's loopback instead, or leave out network=True",
        )
    image = None
    if workspace is not None and not isinstance(workspace, str):
        place, workspace = workspace, workspace.path
        env, image = {**place.env, **env}, place.image
        shown = (Mount(source=source, target=target) for source, target in place.mounts)
        mounts = [*shown, *mounts]
    check_command(command.argv, {**image.env, **env} if image else env)
    trees = _workspace_trees(workspace, command.changes, command.layers)
    if image is not None:
        trees.append(_tree(_real("the image", image.root), bubblewrap.ROOT, "layer"))
    binds: list[list[str]] = []
    points: dict[str, bool] = {}
    for number, mount in enumerate(mounts):
        if not Path(mount.source).exists():
            raise InputError(f"the mount's source {mount.source!r} does not exist")
        mode = "write" if mount.writable else "read"
        source = _real("the mount's source", mount.source)
        trees.append(_tree(source, f"mount{number}", mode, links=mount.links))
        points[mount.target] = Path(mount.source).is_dir()
        bind = "--bind" if mount.writable else "--ro-bind"
        binds.append([bind, f"{STAGE}/mount{number}", mount.target])
    return {
        "parent": os.getpid(),
        "stage": STAGE,
        "bwrap": bubblewrap.find(),
        "arguments": bubblewrap.view(
            workspace="empty" if workspace is None else "workspace",
            mounts=binds,
            env=env,
            keep_network=network or door is not None,
            image=image,
        ),
        "command": _command(command.argv, limits, own_shells=image is None),
        "etc": bubblewrap.etc(network=network) if image is None else ([], {}),
        "seed": ([], {}, {})
        if image is None
        else bubblewrap.seed(points=points, workdir=image.workdir, network=network),
        "filter": command_filter(),
        "trees": trees,
        "overlay": True,
        "sizes": (limits.workspace_bytes, limits.workspace_files),
        "rlimits": _rlimits(limits),
        "wall_seconds": limits.wall_seconds,
        "memory_bytes": limits.memory_bytes or 0,
        "door": door.port if door else 0,
    }


def _command(argv: Sequence[str], limits: Limits, *, own_shells: bool) -> list[str]:
    """What bubblewrap starts."""
    line = _EXEC
    if limits.cpu_seconds is not None:
        # The soft limit sends a signal that can be read from the exit code.
        soft = max(1, round(limits.cpu_seconds))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        if hard == resource.RLIM_INFINITY or soft < hard:
            line = f"ulimit -S -t {soft}; ulimit -H -t {soft + 1}; {line}"
    elif own_shells and argv[0] in _SHELLS and os.access(argv[0], os.X_OK):
        return [*argv]
    return ["/bin/sh", "-c", line, "sh", *argv]


def _workspace_trees(workspace: str | None, changes: Changes, layers: Sequence[str]) -> list[Tree]:
    if workspace is None:
        if layers:
            raise InputError("layers need a workspace to be laid over")
        return []
    if layers and changes == "keep":
        raise InputError("a workspace whose changes are kept takes no layers")
    for directory in (workspace, *layers):
        if not Path(directory).is_dir():
            what = "layer" if directory in layers else "workspace"
            raise InputError(f"the {what} {directory!r} is not a directory")
    names = [f"layer{number}" for number in range(len(layers))]
    places = [_real("the workspace", directory) for directory in (*layers, workspace)]
    trees = [_tree(place, name, "read") for name, place in zip(names, places[:-1], strict=True)]
    mode = "write" if changes == "keep" else "layer"
    return [*trees, _tree(places[-1], "workspace", mode, over=names)]


def _tree(
    source: str, name: str, mode: str, *, over: Sequence[str] = (), links: bool = True
) -> Tree:
    return {"source": source, "name": name, "mode": mode, "over": [*over], "links": links}


def _real(what: str, path: str) -> str:
    try:
        return os.path.realpath(path)
    except FileNotFoundError:  # a relative one, and our own working directory is gone
        raise InputError(
            f"{what} {path!r} is relative to a working directory that was deleted"
        ) from None


def _rlimits(limits: Limits) -> list[tuple[int, int]]:
    processes = limits.processes + _OWN_PROCESSES
    if os.getuid() != 0 and not kernel.counts_per_namespace():
        # Older kernels count all of the user's processes, not only the sandbox's.
        processes = max(processes, 4096)
    return [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NPROC, processes),
    ]


def carry_out(
    command: Command,
    plan: SupervisorPlan,
    *,
    stdin: int | None,
    cancel: int | None,
    talk: Callable[[int, Capture], object] | None = None,
) -> CommandResult:
    """Run a command to its end, and block until then.

    ``talk``: Gets the command's standard output, which then is nobody else's and has to be closed
    there, and what is captured of its standard error. None to capture both.
    """
    limits, door = command.bounds, command.door
    out, err = Capture(limits.output_bytes), Capture(limits.output_bytes)
    with FORK_SERVER.fork([tree["source"] for tree in plan["trees"]], stdin) as supervisor:
        _send(supervisor.leash, marshal.dumps({**plan}))
        captures = {supervisor.stdout: out, supervisor.stderr: err}
        if talk is not None:
            del captures[supervisor.stdout]
            with our_failure("cannot read what a command prints"):
                copy = os.dup(supervisor.stdout)
            talk(copy, err)
        deadline = time.monotonic() + limits.wall_seconds + _PATIENCE_SECONDS
        until = partial(follow, captures, deadline=deadline, limits=limits, cancel=cancel)
        reply, ending = b"", "done"
        if door and (ending := until(done=supervisor.verdict.fileno())) == "done":
            reply = _hand_over(supervisor.verdict, door)
        if ending == "done":
            ending = until(done=supervisor.ended)
        if ending != "done":
            with suppress(BrokenPipeError):
                os.write(supervisor.leash, b"x")
            poll = select.poll()  # `select` takes no number above 1023
            poll.register(supervisor.ended, select.POLLIN)
            if not poll.poll(_KILL_SECONDS * 1000) or ending == "deadline":
                raise SandboxError("the supervisor of a sandboxed command did not answer")
        drain(captures)
        supervisor.verdict.setblocking(False)
        with suppress(BlockingIOError):
            # A door that was never handed over, because the end came first, goes with its message.
            while reply in (b"", _DOOR):
                reply = supervisor.verdict.recv(_VERDICT_BYTES)
                if not reply:
                    break
    return _judge(reply, ending, out, err)


def _hand_over(verdict: socket.socket, door: Door) -> bytes:
    """Give the door's owner its socket. The verdict, if that came instead."""
    # Not `socket.recv_fds`: it forgets its flags, and other programs would inherit the listener.
    space, close = socket.CMSG_LEN(4), socket.MSG_CMSG_CLOEXEC
    said, passed, flags, _ = verdict.recvmsg(_VERDICT_BYTES, space, close)
    if flags & socket.MSG_CTRUNC:
        raise SandboxError("cannot take over the door of a command: too many open files")
    for _, _, listener in passed:
        door.on_open(socket.socket(fileno=int.from_bytes(listener, "little")))
    return b"" if passed else said


def _judge(reply: bytes, ending: Ending, out: Capture, err: Capture) -> CommandResult:
    """Turn the supervisor's verdict into a result, or into our failure."""
    if not reply:
        raise SandboxError(f"the supervisor of a sandboxed command died: {err.text().strip()}")
    verdict = cast("SupervisorVerdict", marshal.loads(reply))  # noqa: S302 - written by the supervisor
    word, code = verdict["word"], verdict["code"]
    if word == "refused":
        raise refusal(verdict["step"], verdict["errno"], verdict["text"])
    if word == "ended" and code is None:
        # bubblewrap writes an exit code if and only if it started the command. Without one, nobody
        # but bubblewrap itself can have written to stderr.
        raise refusal("bubblewrap", 0, err.text().strip())
    if ending != "output_limit":  # the supervisor knows better than the clock here
        ending = "deadline" if word == "timed_out" else "done"
    code = None if code is None else _BY_SIGNAL.get(code, code)
    return result_of(ending, code, out, err, seconds=verdict["seconds"], tier="bwrap")


def _send(fd: int, order: bytes) -> None:
    left = memoryview(len(order).to_bytes(8, "little") + order)
    with suppress(BrokenPipeError):  # it has died already, and its silence says so
        while left:
            left = left[os.write(fd, left) :]


def _sealed(content: bytes | None) -> int | None:
    """An unchangeable anonymous file, so that the command can use its input as nothing else."""
    if content is None:
        return None
    with our_failure("cannot hold the input of a command"):
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd
