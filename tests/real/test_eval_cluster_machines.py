"""`assay grade --engine ray` on machines that share no network, processes, home or `/tmp`.

Each is a set of namespaces. They are joined by a bridge in one more, so that nothing of them is
left when their first processes have ended.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from tests.children import Children
from tests.command_line import COMMAND, environment
from tests.ray_cluster import MEMORY

_NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child"]
_BRIDGE = ["ip", "link", "add", "between", "type", "bridge"]


def _may_make_machines() -> bool:
    if not all(shutil.which(program) for program in ("unshare", "nsenter", "ip")):
        return False
    tried = [*_NAMESPACES, "--mount-proc", *_BRIDGE]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not _may_make_machines(), reason="may not make network namespaces"),
]

ROWS = [{"id": str(n), "answer": "x" * (n % 7)} for n in range(400)]
GRADE = """
import time
async def grade(thread):
    time.sleep(0.03)
    return float(len(thread.completion()) % 2)
"""


class Machines:
    """Machines on one network.

    Args:
        place: The directory that each machine has for itself under this name.
        children: Starts their first processes.
    """

    def __init__(self, place: Path, children: Children) -> None:
        self._place = place
        self._children = children
        self._first: dict[int, int] = {}
        self._between = self._begun("true")
        self._in(self._between, "--net", *_BRIDGE)
        self._in(self._between, "--net", "ip", "link", "set", "between", "up")
        self._environment = {
            **environment(place),
            "HOME": str(place),
            "TMPDIR": str(place),
            "RAY_TMPDIR": str(place),
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_health_check_period_ms": "500",  # a machine that is away is given up in seconds
            "RAY_health_check_timeout_ms": "1000",
            "RAY_health_check_failure_threshold": "4",
        }

    def add(self, number: int, cores: int) -> None:
        """A machine that starts Ray; the first is the head."""
        own = self._place.with_name(f"{self._place.name}-{number}")
        own.mkdir()
        first = self._first[number] = self._begun(
            f"mount --bind {own} {self._place} && mount -t tmpfs none /dev/shm && ip link set lo up"
        )
        link = ["ip", "link", "add", f"to{number}", "type", "veth", "peer", "name", "eth0"]
        self._in(self._between, "--net", *link, "netns", str(first))
        for words in (["master", "between"], ["up"]):
            self._in(self._between, "--net", "ip", "link", "set", f"to{number}", *words)
        self._in(first, "--net", "ip", "addr", "add", f"10.9.0.{number}/24", "dev", "eth0")
        self._in(first, "--net", "ip", "link", "set", "eth0", "up")
        role = ["--address=10.9.0.1:6379"]
        if number == 1:
            role = ["--head", "--port=6379", "--include-dashboard=false", "--no-monitor"]
        options = [f"--num-cpus={cores}", f"--object-store-memory={MEMORY}"]
        options.append("--include-log-monitor=false")
        ray = str(Path(COMMAND[0]).with_name("ray"))
        self._in(
            first, "--all", ray, "start", *role, f"--node-ip-address=10.9.0.{number}", *options
        )

    def begin(self, number: int, *words: str) -> subprocess.Popen[str]:
        """Begin a command of assay on a machine, in its own directory."""
        entered = ["nsenter", "--target", str(self._first[number]), "--all"]
        moved = ["sh", "-c", 'cd "$0" && exec "$@"', str(self._place)]
        return self._children.start([*entered, *moved, *COMMAND, *words], env=self._environment)

    def files(self, number: int) -> Path:
        """The machine's own directory, from outside."""
        return self._place.with_name(f"{self._place.name}-{number}")

    def cut(self, number: int) -> None:
        """Pull out its cable."""
        self._in(self._between, "--net", "ip", "link", "set", f"to{number}", "down")

    def _begun(self, prepares: str) -> int:
        """The first process of new namespaces, once they are as they should be."""
        line = f"{prepares} && echo ready && exec sleep 600"
        begun = self._children.start([*_NAMESPACES, "--mount-proc", "sh", "-c", line])
        assert begun.stdout is not None
        assert begun.stdout.readline() == "ready\n"
        return int(Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text())

    def _in(self, first: int, which: str, *words: str) -> None:
        entered = ["nsenter", "--target", str(first), which, *words]
        env = self._environment if which == "--all" else None
        done = subprocess.run(entered, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def machines(alone_with_ray: None) -> Generator[Machines]:
    place = Path(tempfile.mkdtemp(prefix="r-"))  # short: sockets are made in it
    try:
        with Children() as children:
            found = Machines(place, children)
            for number in (1, 2):
                found.add(number, cores=1)
            yield found
    finally:
        for one in place.parent.glob(f"{place.name}*"):
            shutil.rmtree(one, ignore_errors=True)


def test_what_a_machine_that_is_cut_off_was_at_is_graded_on_another(machines: Machines) -> None:
    files = {
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
        "g.yaml": "- {type: function, file: grade.py}\n",
        "grade.py": GRADE,
    }
    for name, text in files.items():
        (machines.files(1) / name).write_text(text)
    words = ["grade", "rows.jsonl", "g.yaml", "--engine", "ray"]
    graded = machines.begin(1, *words)
    assert graded.stderr is not None
    while " of 400 rows" not in (line := graded.stderr.readline()):
        assert line, "it ended early"
    machines.cut(2)
    _, said = graded.communicate(timeout=120)
    assert graded.returncode == 1, said
    report = machines.begin(1, "report", "--json")
    told, _ = report.communicate(timeout=60)
    cells = cast("list[dict[str, object]]", json.loads(told)["cells"])
    assert {cell["case"]: cell["reward"] for cell in cells} == {
        row["id"]: float(len(row["answer"]) % 2) for row in ROWS
    }
    assert len(cells) == len(ROWS)
