"""Landlock alone: what its launcher gives up. `test_sandbox_landlock_docker` has whole workers."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.errors import SandboxUnavailableError
from assay.sandbox.functions import launch
from assay.sandbox.functions.inside import landlock as inside
from assay.sandbox.functions.launch import check_landlock
from tests.each import each
from tests.sandbox.docker_emulation import interpreter
from tests.sandbox.ordinary_user import surroundings

USER = 1777
is_root = os.geteuid() == 0
working = pytest.mark.skipif(inside.version() < 6, reason="needs Linux 6.12")
pytestmark = [pytest.mark.sandbox]

LAUNCH = """
import json, subprocess, sys
from assay.sandbox.functions import launch
plan = launch._plan(launch.spare_id() if int(sys.argv[2]) else 0)
python, _ = launch.interpreter()
words = [python, "-I", "-S", str(launch.INSIDE / "landlock.py"), plan]
words += [python, "-u", "-S", "-s", "-P", "-B", "-c", sys.argv[1]]
sys.exit(subprocess.run(words, env=launch.VARIABLES, cwd="/").returncode)
"""


def confined(source: str, *, user: bool = False) -> dict[str, object]:
    """Run Python under Landlock in place of a worker; it must print JSON."""
    uid = USER if user and is_root else os.getuid()
    python = interpreter(uid)
    if python is None:
        pytest.skip("no interpreter that another user may run")
    done = subprocess.run(
        [python, "-B", "-c", LAUNCH, source, str(int(uid == 0))],
        capture_output=True,
        text=True,
        check=False,
        env=surroundings(),
        cwd="/",
        user=uid if is_root else None,
        group=uid if is_root else None,
        extra_groups=[] if is_root else None,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory in which everybody may do everything."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)


TRY = """
import json, os, socket
found = {}
def attempt(name, action):
    try:
        found[name] = repr(action())
    except OSError as error:
        found[name] = type(error).__name__
"""
BOTH = [
    pytest.param(False, id="own-id", marks=pytest.mark.skipif(not is_root, reason="needs root")),
    pytest.param(True, id="user"),
]


@working
@pytest.mark.parametrize("user", BOTH)
def test_nothing_of_the_host_can_be_opened(*, user: bool, shared: Path) -> None:
    secret = shared / "secret"
    secret.write_text("the expected answer")
    secret.chmod(0o666)
    found = confined(
        f"""{TRY}
secret, place = {str(secret)!r}, {str(shared)!r}
attempt("read", lambda: open(secret).read())
attempt("append", lambda: open(secret, "a"))
attempt("list", lambda: os.listdir(place))
attempt("create", lambda: open(place + "/new", "w"))
attempt("remove", lambda: os.unlink(secret))
attempt("rename", lambda: os.rename(secret, secret + "2"))
attempt("link", lambda: os.link(secret, secret + "3"))
attempt("directory", lambda: os.mkdir("/tmp/of-a-function"))
attempt("passwd", lambda: open("/etc/passwd").read())
attempt("proc", lambda: open("/proc/self/status").read())
attempt("environment of the parent", lambda: open(f"/proc/{{os.getppid()}}/environ").read())
attempt("own library", lambda: open(os.__file__, "r+"))
attempt("program", lambda: os.posix_spawn("/bin/ls", ["ls"], {{}}))
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", 9)))
print(json.dumps(found))""",
        user=user,
    )
    assert found.pop("program") == "PermissionError"
    assert set(found.values()) == {"PermissionError"}, found
    assert secret.read_text() == "the expected answer"


@working
@pytest.mark.parametrize("user", BOTH)
def test_what_a_worker_needs_works(*, user: bool) -> None:
    found = confined(
        """
import asyncio, decimal, difflib, json, os, re, statistics, zoneinfo
with open("/dev/null", "w") as null:
    null.write("x")
print(json.dumps({
    "random": len(open("/dev/urandom", "rb").read(4)),
    "environment": sorted(os.environ),
    "directory": os.getcwd(),
    "sum": str(decimal.Decimal("0.1") + decimal.Decimal("0.2")),
}))""",
        user=user,
    )
    assert found.pop("environment") == sorted(launch.VARIABLES)
    assert found == {"random": 4, "directory": "/", "sum": "0.3"}


@working
@pytest.mark.skipif(not is_root, reason="needs root")
def test_root_becomes_somebody_who_owns_nothing() -> None:
    found = confined(
        """
import json, os
ids = {*os.getresuid(), *os.getresgid()}
print(json.dumps({"ids": len(ids), "above": min(ids) > 20_000, "groups": os.getgroups()}))"""
    )
    assert found == {"ids": 1, "above": True, "groups": []}


@working
def test_processes_of_an_ordinary_user_are_bounded() -> None:
    """RLIMIT_NPROC counts all of a user's processes: the limit is a little above what he has."""
    found = confined(
        """
import json, os, resource, signal
pids = []
try:
    while len(pids) < 3000:
        pid = os.fork()
        if not pid:
            signal.pause()
        pids.append(pid)
except BlockingIOError:
    pass
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
print(json.dumps({"forks": len(pids), "hard": soft == hard}))""",
        user=True,
    )
    forks = found["forks"]
    assert isinstance(forks, int)
    assert 256 < forks <= 512 + 64
    assert found["hard"]


@working
def test_the_launcher_does_not_outlive_whom_it_works_for() -> None:
    """A plan from somebody who is not its parent (any more): nothing is started."""
    python, _ = launch.interpreter()
    plan = json.loads(launch._plan(0))
    plan["parent"] = 1
    words = [python, "-I", "-S", str(launch.INSIDE / "landlock.py"), json.dumps(plan)]
    done = subprocess.run(
        [*words, "/bin/echo", "started"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@each("number", range(1, inside.version() + 1))
def test_each_version_gets_rules_that_it_knows(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The rights and scopes of later versions are refused by earlier kernels, and are left out."""
    monkeypatch.setattr(inside, "version", lambda: number)
    plan: inside.Plan = {
        "parent": 0,
        "uid": 0,
        "readable": ["/usr/lib", str(tmp_path), "/no/such/place"],
        "needed": [],
        "devices": ["/dev/null"],
        "room": 0,
    }
    os.close(inside._ruleset(plan))


def as_user() -> int:
    return USER


def as_root() -> int:
    return 0


@each(
    ("number", "user", "capable", "hint"),
    [
        (0, as_user, True, "Linux 5.13"),
        (0, as_root, True, "Linux 5.13"),
        (5, as_user, True, "Linux 6.12"),
        (7, as_root, False, "ordinary user"),
        (5, as_root, True, ""),
        (6, as_user, True, ""),
    ],
)
def test_where_it_is_refused(
    *,
    number: int,
    user: Callable[[], int],
    capable: bool,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before its sixth version it lets signals out: an ordinary user's processes would get them."""
    monkeypatch.setattr(launch, "version", lambda: number)
    monkeypatch.setattr(os, "geteuid", user)
    monkeypatch.setattr(launch, "_may_change_user", lambda: capable)
    if not hint:
        assert check_landlock() == f"version {number}"
        return
    with pytest.raises(SandboxUnavailableError) as caught:
        check_landlock()
    assert hint in caught.value.hint
