"""Attacks on a door and through it: it leads to the process that opened it, and nowhere else."""

from __future__ import annotations

import _socket
import asyncio
import os
import socket
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from assay.errors import InputError, SandboxError
from assay.sandbox import (
    CommandResult,
    Door,
    Limits,
    kernel,
    run_command,
    run_command_sync,
    supervisor,
)
from tests.children import alone, until
from tests.processes import living, marker
from tests.sandbox.door_servers import PORT, Keeper, behind_a_door
from tests.sandbox.machine import needs_namespaces
from tests.sandbox.ordinary_user import Drive

pytestmark = [pytest.mark.sandbox, needs_namespaces]

# Each attack is Python; these names are there.
PRELUDE = f"""
import ctypes, errno, fcntl, os, socket, struct, sys
PORT = {PORT}

def say(host="127.0.0.1", port=PORT):
    with socket.create_connection((host, port), timeout=20) as door:
        return door.makefile().read()

def fails(call, *words):
    try:
        return f"possible: {{call(*words)}}"
    except OSError as error:
        return errno.errorcode[error.errno]
"""
Attack = Callable[..., tuple[list[str], int]]
REFUSED = "ECONNREFUSED"


@pytest.fixture(params=["self", "ordinary"])
def attack(request: pytest.FixtureRequest) -> Attack:
    """Run Python behind a door: the lines it prints, and how many came to the keeper."""
    drive: Drive | None = None
    if request.param == "ordinary":
        drive = cast("Drive", request.getfixturevalue("drive"))

    def attempt(code: str, **options: object) -> tuple[list[str], int]:
        words = ["/usr/bin/python3", "-c", PRELUDE + textwrap.dedent(code)]
        options.setdefault("limits", Limits(wall_seconds=20))
        options.setdefault("workspace", None)
        if drive is None:
            result, met = behind_a_door(words, **options)  # pyright: ignore[reportArgumentType] - as given
        else:
            result, met = cast("tuple[CommandResult, int]", drive(behind_a_door, words, options))
        assert (result.status, result.exit_code) == ("exited", 0), result.stderr
        return result.stdout.splitlines(), met

    return attempt


def test_who_stands_behind_the_door(attack: Attack) -> None:
    said, met = attack('print(say(), say("::1"), say("localhost"))')
    assert (said, met) == (["hello hello hello"], 3)


def test_a_service_of_the_host_is_not_behind_it(attack: Attack) -> None:
    """reach_the_hosts_loopback: the keeper's process has other sockets, also without an address."""
    name = f"assay-{marker()}"
    with socket.create_server(("127.0.0.1", 0)) as host, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{name}")
        local.listen()
        said, _ = attack(
            f"""
            print(fails(say, "127.0.0.1", {host.getsockname()[1]}))
            print(fails(socket.socket(socket.AF_UNIX).connect, "\\0{name}"))
            print(fails(say, "192.0.2.1", 80))
            print(len(open("/proc/net/dev").readlines()) - 2, say())
            """
        )
    assert said == [REFUSED, REFUSED, "ENETUNREACH", "1 hello"]


def test_the_door_of_another_sandbox_is_not_there(attack: Attack) -> None:
    with Keeper("another's", PORT + 1) as other:
        mark = marker()
        words = ["/bin/sh", "-c", f"sleep {mark}"]
        limits = Limits(wall_seconds=120)
        stop = threading.Event()

        async def hold() -> None:
            task = asyncio.create_task(
                run_command(words, workspace=None, door=other.door, limits=limits)
            )
            await asyncio.to_thread(stop.wait)
            task.cancel()

        thread = threading.Thread(target=lambda: asyncio.run(hold()))
        thread.start()
        try:
            until(lambda: living(mark))
            said, met = attack(f"print(fails(say, '127.0.0.1', {PORT + 1}), say())")
        finally:
            stop.set()
            thread.join()
    assert (said, met, other.met) == ([f"{REFUSED} hello"], 1, 0)


def test_the_listener_is_not_inside(attack: Attack) -> None:
    """steal_the_listener: who has it could answer in the keeper's place."""
    said, _ = attack(
        """
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                try:
                    found.add(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0])
                except OSError:
                    pass
        print("socket" in found, "pipe" in found)
        """
    )
    assert said == ["False True"]


def test_the_port_cannot_be_taken_over(attack: Attack) -> None:
    """bind_the_port: beside the listener, above it, on one device, as one more of a group."""
    said, met = attack(
        """
        options = [(), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,)]
        options.append((socket.SO_REUSEADDR, socket.SO_REUSEPORT))
        places = [(socket.AF_INET, host) for host in ("127.0.0.1", "0.0.0.0", "127.0.0.2")]
        places += [(socket.AF_INET6, host) for host in ("::1", "::", "::ffff:127.0.0.1")]
        for family, host in places:
            for chosen in options:
                for device in (b"", b"lo"):
                    thief = socket.socket(family)
                    if device:
                        thief.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
                    for option in chosen:
                        thief.setsockopt(socket.SOL_SOCKET, option, 1)
                    if family == socket.AF_INET6:
                        thief.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, len(chosen) % 2)
                    if "possible" in fails(thief.bind, (host, PORT)):
                        print(host, chosen, device, fails(thief.listen))
        print(say(), say("::1"))
        """
    )
    assert (said, met) == (["hello hello"], 2)


def test_the_network_behind_it_cannot_be_changed(attack: Attack) -> None:
    """reconfigure_the_network: it was made by somebody with power over it, who is not inside."""
    said, met = attack(
        """
        near = socket.socket()
        print(fails(fcntl.ioctl, near, 0x8914, struct.pack("16sH22x", b"lo", 0)))  # take it down
        address = struct.pack("16sHH4s16x", b"lo", 2, 0, bytes([192, 0, 2, 1]))
        print(fails(fcntl.ioctl, near, 0x8916, address))  # another address
        print(fails(near.setsockopt, socket.SOL_IP, 19, 1))  # IP_TRANSPARENT
        print(fails(near.setsockopt, socket.IPPROTO_TCP, 19, 1))  # TCP_REPAIR
        print(fails(socket.socket, socket.AF_INET, socket.SOCK_RAW, 6))
        print(fails(socket.socket, socket.AF_PACKET, socket.SOCK_RAW))
        # SOCK_DESTROY of the listener, by its own port
        lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
        [listener] = [line for line in lines if line[3] == "0A"]
        family = socket.AF_INET6 if len(listener[1]) > 13 else socket.AF_INET
        order = struct.pack("=BBBxI", family, 6, 0, 1 << 10)
        order += struct.pack("!HH32x", PORT, 0) + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
        diagnosis = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
        diagnosis.send(struct.pack("=IHHII", 16 + len(order), 21, 5, 1, 0) + order)
        print(errno.errorcode[-struct.unpack_from("=i", diagnosis.recv(4096), 16)[0]])
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0), ctypes.get_errno())
        print(say())
        """
    )
    refused = ["EPERM"] * 5 + ["EAFNOSUPPORT", "EPERM", "-1 1", "hello"]
    assert (said, met) == (refused, 1)


def test_a_full_backlog_costs_the_keeper_nothing() -> None:
    """exhaust_the_backlog: whoever has not been let in holds no descriptor of ours."""
    opened: list[socket.socket] = []
    code = PRELUDE + textwrap.dedent(
        """
        guests = []
        for _ in range(3000):
            guests.append(socket.socket())
            guests[-1].setblocking(False)
            guests[-1].connect_ex(("127.0.0.1", PORT))
        print(len(guests))
        """
    )
    before = descriptors()
    result = run_command_sync(
        ["/usr/bin/python3", "-c", code],
        workspace=None,
        door=Door(port=PORT, on_open=opened.append),
        limits=Limits(wall_seconds=60),
    )
    [listener] = opened
    with listener:
        assert (result.stdout, result.exit_code) == ("3000\n", 0)
        assert len(descriptors()) == len(before) + 1


async def test_ten_doors_at_once_each_lead_to_their_own_keeper() -> None:
    keepers = [Keeper(f"keeper {number}") for number in range(10)]
    words = ["/bin/bash", "-c", f"cat < /dev/tcp/127.0.0.1/{PORT}"]
    results = await asyncio.gather(
        *(run_command(words, workspace=None, door=keeper.door) for keeper in keepers)
    )
    assert [result.stdout for result in results] == [f"keeper {n}" for n in range(10)]
    for keeper in keepers:
        with keeper:
            assert keeper.met == 1


def test_a_listener_that_is_held_keeps_nothing_of_the_command() -> None:
    """Nor is it left open here, or to programs that this process starts."""
    run_command_sync(["true"], workspace=None)  # what stays open from then on
    mark = marker()
    opened: list[socket.socket] = []
    before = descriptors()
    line = f"sleep {mark} & exec 3<>/dev/tcp/127.0.0.1/{PORT}; echo came >&3"
    door = Door(port=PORT, on_open=opened.append)
    result = run_command_sync(["/bin/bash", "-c", line], workspace=None, door=door)
    assert (result.status, result.exit_code) == ("exited", 0)
    assert living(mark) == []
    [listener] = opened
    with listener:
        assert not listener.get_inheritable()
        guest, _ = listener.accept()
        with guest:
            assert guest.recv(100) == b"came\n"
            assert guest.recv(100) == b""
    assert descriptors() == before


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_a_supervisor_that_is_killed_takes_the_command_along() -> None:
    """kill_the_supervisor: as a machine without memory does; its keeper lives on."""
    mark = marker()
    run_command_sync(["true"], workspace=None)
    before = set(children())
    with Keeper() as keeper:

        def kill() -> None:
            until(lambda: keeper.met)
            for pid in set(children()) - before:
                os.kill(pid, 9)

        killer = threading.Thread(target=kill)
        killer.start()
        line = f"cat < /dev/tcp/127.0.0.1/{PORT}; exec sleep {mark}"
        with pytest.raises(SandboxError, match="died"):
            run_command_sync(["/bin/bash", "-c", line], workspace=None, door=keeper.door)
        killer.join()
        until(lambda: not living(mark))


def children() -> list[int]:
    return [
        int(pid)
        for thread in Path("/proc/self/task").iterdir()
        for pid in (thread / "children").read_text().split()
    ]


def test_a_keeper_that_fails_ends_the_command() -> None:
    def fail(listener: socket.socket) -> None:
        listener.close()
        raise RuntimeError("no room")

    mark = marker()
    with pytest.raises(RuntimeError, match="no room"):
        run_command_sync(["sleep", mark], workspace=None, door=Door(port=PORT, on_open=fail))
    assert living(mark) == []


def test_a_set_up_that_fails_opens_no_door(planned: Callable[..., None]) -> None:
    opened: list[socket.socket] = []
    planned(trees=[{"source": "/no/such", "name": "x", "mode": "read"}])
    with pytest.raises(SandboxError, match="No such file"):
        run_command_sync(["true"], workspace=None, door=Door(port=PORT, on_open=opened.append))
    assert opened == []


def test_no_descriptor_left_for_a_door_is_an_error() -> None:
    """What came without its descriptor was taken for a verdict."""
    alone(
        """
        import socket
        import pytest
        from assay.errors import SandboxError
        from assay.sandbox import Door, run_command_sync

        real = socket.CMSG_LEN
        socket.CMSG_LEN = lambda length: 0  # the kernel drops what there is no room for
        with pytest.raises(SandboxError, match="too many open files"):
            run_command_sync(["true"], workspace=None, door=Door(port=80, on_open=print))
        socket.CMSG_LEN = real
        assert run_command_sync(["true"], workspace=None).exit_code == 0
        """
    )


def test_doors_that_make_no_sense() -> None:
    for port in (0, -1, 1 << 16):
        with pytest.raises(InputError, match="port"):
            Door(port=port, on_open=print)
    door = Door(port=80, on_open=print)
    with pytest.raises(InputError, match="host's network"):
        run_command_sync(["true"], workspace=None, network=True, door=door)


def test_a_port_of_the_system_is_as_good_as_any(attack: Attack) -> None:
    assert attack("print(say(port=80))", port=80) == (["hello"], 1)


def test_a_machine_without_ipv6_has_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _socket.socket

    def without_ipv6(family: int, kind: int) -> _socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return real(family, kind)

    def nothing(_: int) -> None:
        """It may be done in a network of one's own alone."""

    monkeypatch.setattr(_socket, "socket", without_ipv6)
    monkeypatch.setattr(kernel, "raise_loopback", nothing)
    listener = supervisor._listen(0)
    host, port = listener.getsockname()
    assert host == "127.0.0.1"
    guest = real(socket.AF_INET, socket.SOCK_STREAM)
    guest.connect((host, port))
    guest.close()
    listener.close()
