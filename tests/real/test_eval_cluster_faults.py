"""`assay grade --engine ray` that is killed, interrupted, and whose cluster loses its head."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.children import Children, until
from tests.command_line import COMMAND, assay, environment
from tests.ray_cluster import raylets
from tests.written_files import write_rows

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.filterwarnings("ignore")]

_SLOW = """
import os, time
from pathlib import Path
from assay.graders import Grader

class Slow(Grader):
    @classmethod
    def compute_score(cls, answer):
        with Path(__file__).with_name("log").open("a") as log:
            log.write(f"{os.getpid()}\\n")
        if Path(__file__).with_name("slow").exists():
            time.sleep(0.04)
        return float(len(answer) % 2)
"""

_IMPATIENT = "import assay.eval.cluster.ray_parts as parts; parts._HEAD_SECONDS = 6.0; "
"""Has a driver give up its head sooner: Ray keeps a core busy while it looks for one."""


def test_what_was_killed_interrupted_or_lost_its_cluster_is_gone_on_with_to_the_same_bytes(
    tmp_path: Path, alone_with_ray: None
) -> None:
    rows = [{"id": str(n), "answer": "x" * (n % 7)} for n in range(1_000)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "slow.py").write_text(_SLOW)
    (tmp_path / "g.yaml").write_text("- type: python:./slow.py:Slow\n")
    words = ["grade", "rows.jsonl", "g.yaml", "--shard-rows", "20", "--out"]

    def parts(directory: str) -> dict[str, bytes]:
        found = (tmp_path / directory / "parts").glob("[0-9]*")
        return {one.name: one.read_bytes() for one in found}

    assert assay(*words, "here/", cwd=tmp_path).returncode == 1
    (tmp_path / "slow").touch()
    (tmp_path / "log").unlink()
    with raylets(1) as found, Children() as children:

        def begin(more: int, first: str = "") -> subprocess.Popen[str]:
            command = [*COMMAND[:-1], first + COMMAND[-1]]
            begun = children.start(
                [*command, *words, "there/", "--engine", f"ray://{found.address}"],
                cwd=tmp_path,
                env={**environment(tmp_path), "RAY_AUTH_MODE": "disabled"},
            )
            least = len(parts("there")) + more
            until(lambda: len(parts("there")) >= least, every=0.05)
            return begun

        killed = begin(2)
        killed.kill()
        killed.wait()
        pids = {int(pid) for pid in (tmp_path / "log").read_text("utf-8").split()}
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        left = len(parts("there"))
        interrupted = begin(2)
        interrupted.send_signal(signal.SIGINT)
        _, said = interrupted.communicate()
        assert interrupted.returncode == 130, said
        assert f"{left} of 50 parts are there" in said
        assert "of 50 parts are in there/: the same command goes on with the rest" in said
        lost = begin(2, _IMPATIENT)
        found.head_node.kill_gcs_server(check_alive=False)
        _, said = lost.communicate()
        assert lost.returncode == 3, said
        assert "the cluster was lost: its head, at" in said
        assert "when the cluster is back, the same command resumes" in said
    assert 6 <= len(parts("there")) < 50
    assert not list((tmp_path / "there" / "parts").glob(".*"))
    (tmp_path / "slow").unlink()
    assert assay(*words, "there/", cwd=tmp_path).returncode == 1
    assert parts("there") == parts("here")
