"""Hostile commands in the sandbox: real processes, since a fake kernel would prove nothing.

Each attack runs as whoever runs the tests and, where that is root, also as an ordinary user: the
two take different ways through the kernel.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from assay.errors import InputError
from assay.sandbox import CommandResult, Limits, Mount, run_command_sync
from tests.children import alone, printed, until
from tests.each import each
from tests.processes import is_running, living, marker
from tests.sandbox.machine import needs_namespaces
from tests.sandbox.ordinary_user import DRIVER, NOBODY, SETPRIV, Drive, surroundings
from tests.written_files import write_files

pytestmark = [pytest.mark.sandbox, needs_namespaces]

Shell = Callable[..., CommandResult]
only_self = pytest.mark.parametrize("who", ["self"], indirect=True)
"""For what an ordinary user need not try: the same code, or what is out of his reach."""


@pytest.fixture(params=["self", "ordinary"])
def who(request: pytest.FixtureRequest) -> str:
    if request.param == "ordinary":
        request.getfixturevalue("drive")
    return str(request.param)


@pytest.fixture
def workspace(who: str) -> Iterator[Path]:
    # Not tmp_path: nobody but its owner may enter that.
    place = Path(tempfile.mkdtemp(prefix="assay-test-"))
    (place / "kept").write_text("original")
    if who == "ordinary":
        for path in (place / "kept", place):
            os.chown(path, NOBODY, NOBODY)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def bash(who: str, workspace: Path, request: pytest.FixtureRequest) -> Shell:
    """Run a shell line in the sandbox."""
    drive = cast("Drive | None", request.getfixturevalue("drive") if who == "ordinary" else None)

    def run(line: str, **options: object) -> CommandResult:
        words = ["/bin/bash", "-c", line]
        options.setdefault("workspace", str(workspace))
        options.setdefault("limits", Limits(wall_seconds=20))
        if drive is not None:
            return cast("CommandResult", drive(run_command_sync, words, options))
        return run_command_sync(words, **options)  # pyright: ignore[reportArgumentType] - as given

    return run


# --- what an honest command gets -----------------------------------------------------------------


def test_result_of_an_honest_command(bash: Shell) -> None:
    result = bash("echo out; echo err >&2; exit 7")
    assert (result.status, result.exit_code) == ("exited", 7)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert not result.truncated
    assert result.tier == "bwrap"
    assert 0 < result.seconds < 20
    assert bash(r"printf 'a\xff\xfeb'").stdout == "a\ufffd\ufffdb"
    assert bash("yes | head -1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"  # as in any shell


@each(
    "line, code",
    [("true", 0), ("exit 255", 255), ("kill -9 $$", -9), ("kill -TERM $$", -15), ("exit 129", 129)],
)
def test_exit_codes(bash: Shell, line: str, code: int) -> None:
    assert bash(line).exit_code == code


@pytest.mark.skipif(os.getuid() != 0, reason="makes namespaces")
def test_commands_run_in_a_container_whose_second_process_has_ended(who: str) -> None:
    code = (
        "import subprocess; subprocess.run(['true'], check=True)\n"
        "from pathlib import Path; assert not Path('/proc/2').exists()\n"
        "from assay.sandbox import run_command_sync\n"
        "print(run_command_sync(['echo', 'ran'], workspace=None).stdout)"
    )
    words = ["unshare", "--pid", "--fork", "--mount-proc", "/usr/bin/python3", "-c", code]
    if who == "ordinary":
        words[1:1] = ["--user", "--map-current-user"]
        words = [*SETPRIV, *words]
    assert printed(words, env=surroundings(), cwd=Path("/")) == "ran\n\n"


@only_self
@each("word, code", [("no-such-program", 127), ("./kept", 126)])
def test_missing_program_is_the_submissions_fault(workspace: Path, word: str, code: int) -> None:
    assert run_command_sync([word], workspace=str(workspace)).exit_code == code


def test_changes_are_discarded(bash: Shell, workspace: Path) -> None:
    line = "echo more >> kept; mkdir -p a/b; echo x > a/b/c; ln -s /etc/passwd link; cat kept"
    assert bash(line).stdout == "originalmore\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["kept"]
    assert (workspace / "kept").read_text() == "original"


def test_changes_are_kept_and_belong_to_the_owner(bash: Shell, workspace: Path) -> None:
    assert bash("echo more >> kept; mkdir d; echo x > d/new", changes="keep").exit_code == 0
    assert (workspace / "kept").read_text() == "originalmore\n"
    assert (workspace / "d/new").read_text() == "x\n"
    assert (workspace / "d/new").stat().st_uid == workspace.stat().st_uid


@pytest.mark.parametrize("way", ["overlay", "copy"])
def test_a_layer_replaces_whatever_stands_in_its_way(
    workspace: Path, tmp_path: Path, way: str, planned: Callable[..., None]
) -> None:
    """inject_dir_trap: a directory, a link or a file where a hidden file belongs."""
    planned(overlay=way == "overlay")
    files = {"hidden": "hidden", "link/inside": "inside", "sub/new": "new"}
    layer = write_files(tmp_path / "layer", files)
    write_files(workspace, {"hidden/trap": "trap", "sub/old": "old"})
    (workspace / "link").symlink_to("/tmp")
    line = "cat hidden link/inside sub/new sub/old; echo more >> hidden; echo x > sub/new"
    result = run_command_sync(
        ["/bin/sh", "-c", line], workspace=str(workspace), layers=[str(layer)]
    )
    assert (result.stdout, result.exit_code) == ("hiddeninsidenewold", 0)
    assert (layer / "hidden").read_text() == "hidden"
    assert (workspace / "hidden" / "trap").read_text() == "trap"
    assert (workspace / "link").is_symlink()


def test_layers_need_a_workspace_that_is_not_changed(workspace: Path, tmp_path: Path) -> None:
    for options in ({"workspace": None}, {"workspace": str(workspace), "changes": "keep"}):
        with pytest.raises(InputError, match="layers"):
            run_command_sync(["true"], layers=[str(tmp_path)], **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"layer .* is not a directory"):
        run_command_sync(["true"], workspace=str(workspace), layers=[str(tmp_path / "none")])


def test_a_submission_cannot_rewrite_the_shell_that_judges_it(bash: Shell) -> None:
    """rewrite_the_judges_memory: all processes inside share a uid, so /proc is read-only."""
    attack = """import os
with open(f"/proc/{os.getppid()}/mem", "r+b") as memory: memory.write(b"x")"""
    result = bash(f"echo '{attack}' > a.py; python3 a.py; echo still here")
    assert "Read-only file system" in result.stderr
    assert result.stdout == "still here\n"


def test_standard_input(bash: Shell) -> None:
    assert bash("cat; echo end").stdout == "end\n"  # at once: there is none
    assert bash("cat", stdin=b"x" * 200_000).stdout.startswith("xxx")
    assert bash("head -c 3; cat | wc -c", stdin=b"abcde").stdout == "abc2\n"


def test_environment_is_only_what_was_given(bash: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "leaked")
    lines = bash("/usr/bin/env", env={"GIVEN": "a b\nc", "TZ": "CET"}).stdout
    assert "leaked" not in lines
    assert "GIVEN=a b\nc\n" in lines
    names = {line.split("=")[0] for line in lines.splitlines() if "=" in line}
    shells_own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names - shells_own == {"PATH", "HOME", "LANG", "TZ", "GIVEN"}
    assert "PATH=/usr/local/bin:/usr/bin:/bin\n" in lines
    assert "TZ=CET\n" in lines


TOOLS = {
    "python": "python3 -c 'import ssl, sqlite3, getpass; print(getpass.getuser())'",
    "git": "git init -q r && cd r"
    " && git -c user.name=n -c user.email=e commit -q --allow-empty -m m",
    "gcc": "echo 'int main(){return 0;}' > m.c && gcc m.c -o m && ./m",
    "sanitizer": "echo 'int main(){return 0;}' > m.c && gcc -fsanitize=address m.c -o m"
    " && ASAN_OPTIONS=detect_leaks=0 ./m",
    "node": "node -e 'new WebAssembly.Memory({initial: 1}); console.log(1)'",
    "java": "java -version",
    "threads": "python3 -c 'import threading as t; x=t.Thread(target=print); x.start(); x.join()'",
    "shared": "python3 -c 'from multiprocessing import Pool; print(Pool(2).map(abs, [1]))'",
    "terminal": "script -qc true /dev/null",
}


@only_self
@each("tool", TOOLS)
def test_everyday_tools_work(bash: Shell, tool: str) -> None:
    program = {"sanitizer": "gcc", "terminal": "script"}.get(tool, tool)
    if program in ("git", "gcc", "node", "java", "script") and not shutil.which(program):
        pytest.skip("not installed")
    result = bash(TOOLS[tool])
    if tool == "sanitizer" and "libasan" in result.stderr:
        pytest.skip("no libasan")
    assert result.exit_code == 0, result.stderr


@only_self
def test_mounts(bash: Shell, tmp_path: Path) -> None:
    tools, notes = tmp_path / "tools", tmp_path / "notes"
    for place in (tools, notes):
        place.mkdir(mode=0o700)
        (place / "file").write_text(place.name)
    mounts = [
        Mount(source=str(tools), target="/opt/deep/tools"),
        Mount(source=str(notes), target="/notes", writable=True),
        Mount(source=str(tools / "file"), target="/opt/single"),
    ]
    line = """
    cat /opt/deep/tools/file /opt/single /notes/file; echo changed > /notes/file
    echo x > /opt/deep/tools/file && echo written; touch /opt/single && echo written; true
    """
    assert bash(line, mounts=mounts).stdout == "toolstoolsnotes"
    assert (notes / "file").read_text() == "changed\n"
    assert (tools / "file").read_text() == "tools"


@only_self
def test_interpreter_outside_of_usr(bash: Shell) -> None:
    prefix = sys.base_prefix
    mounts = [] if prefix.startswith("/usr") else [Mount(source=prefix, target=prefix)]
    assert (
        bash(f"{os.path.realpath(sys.executable)} -c 'import json'", mounts=mounts).exit_code == 0
    )


@each("target", ["/", "opt", "/workspace/x", "/etc/x", "/opt/../etc", "//proc/1"])
def test_mounts_where_they_may_not_be(target: str) -> None:
    with pytest.raises(InputError, match="mount target"):
        Mount(source="/usr", target=target)


@each(
    "argv, options",
    [
        ([], {}),
        ("true", {}),
        (["a\0b"], {}),
        (["true"], {"env": {"A=B": "c"}}),
        (["true"], {"workspace": "/no/such/place"}),
        (["true"], {"tier": "none"}),
        (["true"], {"mounts": [Mount(source="/no/such/place", target="/x")]}),
    ],
)
def test_impossible_requests(argv: list[str], options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        run_command_sync(argv, **{"workspace": None, **options})  # pyright: ignore[reportArgumentType] - that is the test


# --- what a cheat tries --------------------------------------------------------------------------


def test_host_files_are_out_of_reach(bash: Shell, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    line = f"""
    cat /etc/shadow {tmp_path}/secret; ls /root /home {tmp_path}
    ln -s {tmp_path}/secret link; cat link; cat /proc/1/environ /proc/*/root{tmp_path}/secret
    ls -A $HOME
    """
    result = bash(line)
    assert result.stdout.replace("\0", "") == ""
    assert "s3cret" not in result.stderr


def test_symlink_planted_in_the_workspace(bash: Shell, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "up").symlink_to("../../../../../../etc/shadow")
    for changes in ("discard", "keep"):
        result = bash("cat link up; echo overwritten > link", changes=changes)
        assert result.stdout == ""
    assert (tmp_path / "secret").read_text() == "s3cret"


def test_system_cannot_be_written(bash: Shell) -> None:
    line = """
    for f in /usr/x /etc/x /x /dev/x /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do
        (echo 1 > $f) 2>/dev/null && echo wrote $f
    done; true
    """
    assert bash(line).stdout == ""


def test_network_is_only_a_loopback_of_its_own(bash: Shell) -> None:
    line = """python3 - <<'P'
import socket
far = socket.socket(); far.settimeout(5)
try:
    far.connect(("192.0.2.1", 53))
except OSError as error:
    print(error.strerror)
near = socket.socket(); near.bind(("127.0.0.1", 0)); near.listen()
socket.create_connection(near.getsockname()); socket.create_connection(
    ("localhost", near.getsockname()[1]))
print("localhost works")
P"""
    assert bash(line).stdout == "Network is unreachable\nlocalhost works\n"


def test_network_when_it_is_asked_for(bash: Shell) -> None:
    ours = len(Path("/proc/net/dev").read_text().splitlines())
    assert bash("wc -l < /proc/net/dev", network=True).stdout == f"{ours}\n"


def test_no_power_and_no_identity_of_the_host(bash: Shell) -> None:
    line = (
        "id -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; hostname; ls /proc/self/fd"
    )
    lines = bash(line).stdout.split()
    assert lines[0] == "1000"
    assert lines[1:7] == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert lines[7] == "sandbox"
    assert lines[8:] == ["0", "1", "2", "3"]  # 3: the listing itself


@only_self
@pytest.mark.skipif(os.getuid() != 0, reason="not as root")
def test_root_lends_out_an_id_that_owns_nothing(workspace: Path, who: str) -> None:
    mark = marker()
    with start_driver(who, ["sleep", mark], workspace) as driver:
        until(lambda: living(mark))
        owners = {Path("/proc", pid).stat().st_uid for pid in living(mark)}
        driver.kill()
    assert all(owner > 65536 for owner in owners), owners
    until(lambda: not living(mark))


def test_nested_namespaces_are_refused(bash: Shell) -> None:
    assert bash("unshare -Ur true").exit_code != 0
    assert bash("unshare -m true").exit_code != 0


def test_set_user_id_file_left_in_a_kept_workspace(bash: Shell, workspace: Path) -> None:
    line = """
    cp /bin/bash door; chmod u+s door; chmod 4755 door
    python3 -c 'import os; os.chmod("door", 0o6755)'
    python3 -c 'import os; os.open("door2", os.O_CREAT | os.O_WRONLY, 0o4755)'
    python3 -c 'import os; os.mknod("door3", 0o104755)'
    """
    bash(line, changes="keep")
    assert all(path.stat().st_mode & 0o6000 == 0 for path in workspace.iterdir())


def test_daemons_die_with_the_command_and_one_that_holds_its_output_delays_nothing(
    bash: Shell,
) -> None:
    mark = marker()
    line = f"(setsid sleep {mark} &); nohup sleep {mark} >/dev/null 2>&1 & sleep 0.05; echo done"
    result = bash(line, limits=Limits(wall_seconds=15))
    assert (result.status, result.exit_code, result.stdout) == ("exited", 0, "done\n")
    assert result.seconds < 10
    assert living(mark) == []


@pytest.mark.slow
def test_time_out_keeps_what_was_written(bash: Shell) -> None:
    mark = marker()
    line = f'trap "" TERM INT HUP; echo before; while :; do sleep {mark}; done'
    result = bash(line, limits=Limits(wall_seconds=3))
    assert (result.status, result.exit_code, result.stdout) == ("timed_out", None, "before\n")
    assert living(mark) == []


def test_killing_everything_within_reach(bash: Shell) -> None:
    result = bash("kill -9 -1; kill -9 1; kill -STOP 1; echo alive")
    assert (result.status, result.stdout) == ("exited", "alive\n")


def test_fork_bomb(bash: Shell) -> None:
    mark = marker()
    bomb = f"""exec -a {mark} python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass
' {mark}"""
    began = time.monotonic()
    result = bash(bomb, limits=Limits(wall_seconds=0.5, processes=64))
    assert result.status == "timed_out"
    assert time.monotonic() - began < 30
    assert living(mark) == []


def test_process_limit_is_the_commands_own(bash: Shell) -> None:
    # Forty more than this, had processes of the host's user or of other sandboxes counted.
    line = """python3 -c '
import os, time
made = 0
try:
    for made in range(40):
        if os.fork() == 0: time.sleep(60)
except OSError: pass
print(made)
'"""
    assert 10 <= int(bash(line, limits=Limits(processes=20)).stdout) <= 20
    assert bash(line, limits=Limits(processes=64)).stdout == "39\n"


@pytest.mark.parametrize("workers", [1, 6])
def test_memory_bomb(bash: Shell, workers: int) -> None:
    line = f"""python3 -c '
import os, time
for _ in range({workers} - 1):
    if os.fork() == 0: break
blocks = []
while True: blocks.append(bytearray(32 << 20)); time.sleep(0.02)
'"""
    result = bash(line, limits=Limits(memory_bytes=300 << 20, wall_seconds=15))
    assert (result.status, result.exit_code) == ("exited", -9)


def test_memory_hidden_from_the_watch_is_refused(bash: Shell) -> None:
    line = """python3 -c '
import ctypes, os
try: os.memfd_create("x")
except OSError as error: print(error.strerror)
print(ctypes.CDLL(None).shmget(0, 4096, 0o1600))
'"""
    assert bash(line).stdout == "Function not implemented\n-1\n"


def test_memory_shared_after_a_fork_counts_once(bash: Shell) -> None:
    line = """python3 -c '
import os, time
block = bytearray(os.urandom(1 << 20)) * 120
pids = [os.fork() for _ in range(3)]
time.sleep(0.5)
'"""
    result = bash(line, limits=Limits(memory_bytes=350 << 20, wall_seconds=15))
    assert result.exit_code == 0


def test_endless_output_is_stopped(bash: Shell) -> None:
    result = bash("yes", limits=Limits(output_bytes=1000, output_kill_bytes=1 << 20))
    assert (result.status, result.exit_code, result.truncated) == ("output_limit", None, True)
    assert result.stdout.startswith("y\ny\n")
    assert "bytes cut]" in result.stdout
    assert len(result.stdout) < 1100


@each("place", ["/workspace", "/tmp", "/dev/shm"])
def test_disk_is_bounded(bash: Shell, place: str) -> None:
    line = (
        f"for i in $(seq 20); do head -c 50M /dev/zero > {place}/$i || break; done; du -sm {place}"
    )
    result = bash(line, limits=Limits(workspace_bytes=100 << 20, wall_seconds=20))
    assert int(result.stdout.split()[0]) <= 260
    assert "No space left" in result.stderr


def test_number_of_files_and_the_size_of_one_are_bounded(bash: Shell) -> None:
    line = "for i in $(seq 500); do : > f$i || break; done; ls | wc -l"
    result = bash(line, limits=Limits(workspace_files=100, wall_seconds=20))
    assert int(result.stdout) < 200
    line = "head -c 2M /dev/zero > big"
    result = bash(line, limits=Limits(file_bytes=1 << 20))
    assert result.exit_code in (-25, 128 + 25, 1, 153)


@pytest.mark.slow
@pytest.mark.versions
def test_cpu_time_is_bounded(bash: Shell) -> None:
    result = bash("exec python3 -c 'while True: pass'", limits=Limits(cpu_seconds=1))
    assert result.exit_code == -24


FAKES = [
    "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
    "echo 'bwrap: execvp /bin/sh: No such file or directory' >&2; exit 1",
    "exit 125",
    "for f in 3 4 5 6 7 8 9; do echo '{\"exit-code\": 0}' >&$f; done 2>/dev/null; exit 3",
    "echo '{ \"exit-code\": 0 }'; exit 2",
    "kill -9 $PPID; kill -9 1; exit 4",
]


@each("line", FAKES)
def test_faked_setup_failure_is_a_plain_exit(bash: Shell, line: str) -> None:
    result = bash(line)
    assert result.status == "exited"
    assert result.exit_code == int(line.rsplit(maxsplit=1)[-1])


def start_driver(who: str, words: list[str], workspace: Path) -> subprocess.Popen[bytes]:
    python = [*SETPRIV, "/usr/bin/python3"] if who == "ordinary" else [sys.executable]
    driver = subprocess.Popen(
        [*python, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **surroundings()},
        cwd="/",
    )
    assert driver.stdin
    driver.stdin.write(pickle.dumps((run_command_sync, words, {"workspace": str(workspace)})))
    driver.stdin.close()
    return driver


def test_processes_die_when_assay_is_killed_also_during_the_set_up(
    workspace: Path, who: str
) -> None:
    for number in range(6):
        mark = marker()
        line = f"setsid sleep {mark} & sleep {mark}"
        words = ["sleep", mark] if number else ["/bin/bash", "-c", line]
        with start_driver(who, words, workspace) as driver:
            # As a word of its own: the sleeps, or what is named long before it is started.
            until(lambda mark=mark: living(mark))
            driver.kill()
        until(lambda mark=mark: not living(mark))


def test_no_zombie_is_left_to_a_first_process_that_reaps_nothing() -> None:
    # As in a container: orphans come to this process, which never waits for them.
    code = """
import ctypes, glob
from assay.sandbox import run_command_sync
from assay.sandbox.forkserver import FORK_SERVER
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
run_command_sync(["/bin/sh", "-c", "(setsid sleep 60 &)"], workspace=None)
FORK_SERVER.close()
print([open(path).read() for path in glob.glob("/proc/self/task/*/children")])
"""
    assert alone(code) == "['']\n"


def test_signals_that_the_host_ignores_reach_a_command() -> None:
    """As under ``nohup``, or in a shell script that traps Ctrl-C: a command starts as any other."""
    code = """
import signal
from assay.sandbox import run_command_sync
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
line = "grep -E '^Sig(Ign|Blk)' /proc/self/status; kill -INT $$; sleep 9"
result = run_command_sync(["/bin/sh", "-c", line], workspace=None)
# Two of the C library's own, 32 and 33, are ignored by whatever it has spawned.
print([int(word, 16) % 2**31 for word in result.stdout.split()[1::2]], result.exit_code)
"""
    assert alone(code) == "[0, 0] 130\n"


def test_a_dead_fork_server_is_replaced(bash: Shell) -> None:
    assert bash("true").exit_code == 0
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        if "serve(" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(int(pid), 9)
    assert bash("echo again").stdout == "again\n"


def test_parent_and_child_of_a_fork_have_servers_of_their_own() -> None:
    code = """
import os
from assay.sandbox import run_command_sync
def run():
    return run_command_sync(["/bin/sh", "-c", "echo $PPID"], workspace=None).exit_code
first = run()
pid = os.fork()
if pid == 0:
    os._exit(run())
assert os.waitpid(pid, 0)[1] == 0
print(first, run())
"""
    assert alone(code) == "0 0\n"


def test_a_host_that_ends_or_is_killed_leaves_no_fork_server() -> None:
    code = """
import os, sys
from assay.sandbox import run_command_sync
run_command_sync(["/bin/true"], workspace=None)
print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
{end}
"""
    for end in (
        "",
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "if os.fork(): os.kill(os.getpid(), 9)",
    ):
        words = [sys.executable, "-c", code.replace("{end}", end)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout
            [server] = host.stdout.readline().split()
            host.wait(20)
        until(lambda server=server: not is_running(server))
