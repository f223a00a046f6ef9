"""Unlucky hosts of the fork server: interrupted, short of descriptors, with habits of their own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import assay.sandbox.run
from assay.errors import SandboxError
from assay.sandbox import kernel, run_command_sync, stage
from assay.sandbox.forkserver import FORK_SERVER
from assay.sandbox.functions.launch import spare_id
from tests.children import alone
from tests.processes import living, marker, status
from tests.sandbox.machine import needs_namespaces

pytestmark = [pytest.mark.sandbox, needs_namespaces]


def test_ctrl_c_while_bubblewrap_sets_up_leaves_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its supervisor killed too early, a command ran on without any limit, for ever."""
    mark = marker()
    moment = 0.0

    def interrupted(*_: object, **__: object) -> None:
        time.sleep(moment)
        raise KeyboardInterrupt

    monkeypatch.setattr(assay.sandbox.run, "follow", interrupted)
    for step in range(24):
        moment = step / 1000
        with pytest.raises(KeyboardInterrupt):
            run_command_sync(["/bin/sh", "-c", 'exec "$@"', "sh", "sleep", mark], workspace=None)
    assert living(mark) == []


def test_a_supervisor_killed_while_bubblewrap_sets_up_leaves_no_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the kernel short of memory, say: the command ran on without any limit, for ever."""
    mark = marker()
    pids: list[int] = []
    moment = 0.0
    ordered = FORK_SERVER._order

    def order(numbers: list[int], passed: list[int]) -> int:
        pids.append(ordered(numbers, passed))
        return pids[-1]

    def killed(*_: object, **__: object) -> str:
        time.sleep(moment)
        os.kill(pids[-1], signal.SIGKILL)
        return "done"

    monkeypatch.setattr(FORK_SERVER, "_order", order)
    monkeypatch.setattr(assay.sandbox.run, "follow", killed)
    for step in range(60):
        moment = step / 4000
        with pytest.raises(SandboxError, match="supervisor of a sandboxed command died"):
            run_command_sync(["/bin/sh", "-c", 'exec "$@"', "sh", "sleep", mark], workspace=None)
    # The kernel kills them, and on a full machine needs a moment; what was missed sleeps for years.
    deadline = time.monotonic() + 60
    while living(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = {pid: status(pid) for pid in living(mark)}
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert left == {}


@pytest.mark.slow
def test_ctrl_c_between_an_order_and_its_answer() -> None:
    """The next command took the answer for its own, and so did each one after it."""
    alone(
        """
        import os, signal, threading
        import pytest
        from assay.sandbox import run_command_sync
        from assay.sandbox.forkserver import FORK_SERVER

        run_command_sync(["true"], workspace=None)
        server = FORK_SERVER._process.pid
        os.kill(server, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            run_command_sync(["true"], workspace=None)
        try:
            os.kill(server, signal.SIGCONT)
        except ProcessLookupError:
            pass
        for word in "one", "two":
            assert run_command_sync(["echo", word], workspace=None).stdout == f"{word}\\n"
        """
    )


def test_descriptors_above_what_select_can_take() -> None:
    """A flood of output was an error of ours then, and no function could be started."""
    alone(
        """
        import os, resource, sys
        from assay.sandbox import Limits, run_command_sync
        from assay.sandbox.functions.program import FunctionLimits, Program
        from assay.sandbox.functions.session import start

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most < 2000:
            sys.exit()
        resource.setrlimit(resource.RLIMIT_NOFILE, (2000, most))
        for _ in range(1100):
            os.open("/dev/null", os.O_RDONLY)
        limits = Limits(output_kill_bytes=1 << 20)
        assert run_command_sync(["yes"], workspace=None, limits=limits).status == "output_limit"
        session = start("bwrap")
        try:
            session.load(Program(source="def grade(p):\\n    return 1.0"), "call", FunctionLimits())
            assert session.run([b"{}"]).outcomes[0].score == 1.0
        finally:
            session.kill()
        """
    )


def test_a_command_that_failed_gives_its_place_back() -> None:
    """After 256 failures, two commands at a time could have one user id."""
    before = set(FORK_SERVER._places)
    with pytest.raises(RuntimeError), FORK_SERVER.fork([], None):
        raise RuntimeError
    assert FORK_SERVER._places == before


def test_a_host_that_closes_all_descriptors() -> None:
    """As daemons do; the numbers then are other files', which must not be closed."""
    alone(
        """
        import os
        from assay.sandbox import run_command_sync

        for _ in range(2):
            run_command_sync(["true"], workspace=None)
            os.closerange(3, 256)
            others = [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]
            assert run_command_sync(["echo", "again"], workspace=None).stdout == "again\\n"
            assert all(os.fstat(other) for other in others)
        """
    )


def test_no_descriptor_left_to_watch_a_supervisor_is_an_error() -> None:
    """It was waited for, while it waited for its plan."""
    alone(
        """
        import errno, os, signal
        import pytest
        from assay.errors import SandboxError
        from assay.sandbox import run_command_sync

        run_command_sync(["true"], workspace=None)
        real = os.pidfd_open

        def refused(*_):
            raise OSError(errno.EMFILE, "Too many open files")

        os.pidfd_open = refused
        signal.alarm(20)
        with pytest.raises(SandboxError):
            run_command_sync(["true"], workspace=None)
        os.pidfd_open = real
        assert run_command_sync(["true"], workspace=None).exit_code == 0
        """
    )


def test_no_descriptors_at_all_is_an_error_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(24, "Too many open files")

    for name, given in ("pipe", None), ("memfd_create", b"input"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refused)
            with pytest.raises(SandboxError, match="Too many open files"):
                run_command_sync(["true"], workspace=None, stdin=given)


@pytest.mark.skipif(not kernel.is_admin(), reason="an ordinary user keeps his id")
@pytest.mark.parametrize("server", [2, 2**22 - 1])
def test_very_many_commands_at_a_time_share_no_id(
    monkeypatch: pytest.MonkeyPatch, server: int
) -> None:
    """Two with one id share a limit on processes: a fork bomb in one was felt by the other."""
    monkeypatch.setattr(os, "getpid", lambda: server)
    assert spare_id() < 2**31
    identity, seen = stage.CommandUser(), set[int]()
    for place in range(1100):
        identity.prepare(place, [])
        monkeypatch.setattr(os, "getpid", lambda place=place: 2**22 - 2 - place)
        identity.settle()
        seen.add(identity.uid)
    assert len(seen) == 1100
    # On a machine that has seen many processes, bubblewrap refused every command of root's.
    assert max(seen) < 2**31


@pytest.mark.skipif(not kernel.is_admin(), reason="an ordinary user has one owner only")
def test_many_owners_and_few_descriptors(tmp_path: Path) -> None:
    """The server filled itself with user namespaces, and its forks had no room for their own."""
    for number in range(40):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        os.chown(workspace, 70000 + number, 70000 + number)
    alone(
        f"""
        import resource
        from assay.sandbox import run_command_sync

        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        for number in range(40):
            place = f"{tmp_path}/{{number}}"
            assert run_command_sync(["cat"], workspace=place, stdin=b"x").stdout == "x"
        """
    )


def test_an_order_that_lost_a_descriptor_is_not_run() -> None:
    """Without its last one, a command would have been run with nothing on its standard input."""
    alone(
        """
        import _socket, os, resource, socket
        from assay.sandbox.supervisor import _order

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(ours, [bytes(4)], [0] * 5)
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 4, free + 4))
        assert _order(_socket.socket(fileno=theirs.detach())) == ([0], [])
        """
    )


def test_a_private_file_below_etc_is_not_copied(tmp_path: Path) -> None:
    """Root's copy would have been everybody's."""
    private = tmp_path / "private"
    private.write_text("secret")
    for mode, copied in (0o640, False), (0o644, True):
        private.chmod(mode)
        made = stage._copy_small(str(private), str(tmp_path / "copy"))
        assert made is copied


def test_user_namespaces_refused_do_not_end_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor says what it was; of a dead server nothing is known."""

    def refused(*_: object) -> int:
        raise OSError(28, "No space left on device")

    identity = stage.CommandUser()
    identity.admin = True
    monkeypatch.setattr(kernel, "user_namespace", refused)
    identity.prepare(0, [(70000, 70000)])


@pytest.mark.slow
@pytest.mark.versions
def test_functions_of_a_host_that_ignores_dead_children() -> None:
    """A worker inherited that, and never learned that a call had ended."""
    alone(
        """
        import signal
        from assay.sandbox.functions.program import FunctionLimits, Program
        from assay.sandbox.functions.session import start

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        session = start("bwrap")
        try:
            source = "import os\\ndef grade(p):\\n    p['die'] and os._exit(3)\\n    return 1.0"
            session.load(Program(source=source), "call", FunctionLimits())
            dead = session.run([b'{"die": 1}', b'{"die": 1}']).outcomes
            assert dead[0].status == "crash", dead
            assert session.run([b'{"die": 0}']).outcomes[0].score == 1.0
        finally:
            session.kill()
        """
    )


def test_a_host_with_a_reaper_of_its_own() -> None:
    """It gets our supervisors too; their ids may be other processes' by then."""
    alone(
        """
        import os, signal
        from assay.sandbox import run_command_sync

        def reap(*_):
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass

        signal.signal(signal.SIGCHLD, reap)
        os.kill = lambda *_: 1 / 0  # by number: never
        for number in range(5):
            words = ["/bin/sh", "-c", f"exit {number}"]
            assert run_command_sync(words, workspace=None).exit_code == number
        """
    )


def test_limits_that_the_host_takes_on_later() -> None:
    """The server kept those of its start, and gave every command more than its host had."""
    alone(
        """
        import resource
        from assay.sandbox import run_command_sync

        def largest():
            line = ["/bin/bash", "-c", "ulimit -H -f"]
            return int(run_command_sync(line, workspace=None).stdout)

        before = largest()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        assert before > 1024 == largest(), (before, largest())
        """
    )


@pytest.mark.skipif(not kernel.is_admin(), reason="only root may mount")
def test_what_the_host_mounts_for_itself_later(tmp_path: Path) -> None:
    """The server stayed in the name space of its start, where the workspace is another."""
    alone(
        f"""
        from pathlib import Path
        from assay.sandbox import kernel, run_command_sync

        run_command_sync(["true"], workspace=None)
        kernel.unshare(kernel.NEW_MOUNTS)
        kernel.mount("none", "/", "none", 0x4000 | 0x40000)
        kernel.mount("kit", {str(tmp_path)!r}, "tmpfs", 0)
        Path({str(tmp_path)!r}, "note").write_text("here")
        assert run_command_sync(["cat", "note"], workspace={str(tmp_path)!r}).stdout == "here"
        """
    )


def test_relative_paths_below_a_directory_that_is_gone(tmp_path: Path) -> None:
    """Was a FileNotFoundError of Python's."""
    alone(
        f"""
        import os
        import pytest
        from assay.errors import InputError
        from assay.sandbox import Mount, run_command_sync

        os.mkdir({str(tmp_path / "gone")!r})
        os.chdir({str(tmp_path / "gone")!r})
        os.rmdir({str(tmp_path / "gone")!r})
        mounts = [Mount(source=".", target="/x")]
        for given in {{"workspace": "."}}, {{"workspace": None, "mounts": mounts}}:
            with pytest.raises(InputError, match="deleted"):
                run_command_sync(["true"], **given)
        """
    )
