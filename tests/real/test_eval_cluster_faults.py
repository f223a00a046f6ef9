"""`assay grade --engine ray` that is interrupted, and whose cluster loses its head."""

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
import time
from pathlib import Path
from assay.graders import Grader

class Slow(Grader):
    @classmethod
    def compute_score(cls, answer):
        if Path(__file__).with_name("slow").exists():
            time.sleep(0.02)
        return float(len(answer) % 2)
"""


def test_what_was_interrupted_or_lost_its_cluster_is_gone_on_with_to_the_same_bytes(
    tmp_path: Path, alone_with_ray: None
) -> None:
    rows = [{"id": str(n), "answer": "x" * (n % 7)} for n in range(2_000)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "slow.py").write_text(_SLOW)
    (tmp_path / "g.yaml").write_text("- type: python:./slow.py:Slow\n")
    words = ["grade", "rows.jsonl", "g.yaml", "--shard-rows", "20", "--out"]

    def parts(directory: str) -> dict[str, bytes]:
        found = (tmp_path / directory / "parts").glob("[0-9]*")
        return {one.name: one.read_bytes() for one in found}

    assert assay(*words, "here/", cwd=tmp_path).returncode == 1
    (tmp_path / "slow").touch()
    with raylets(1) as found, Children() as children:

        def begin(more: int) -> subprocess.Popen[str]:
            begun = children.start(
                [*COMMAND, *words, "there/", "--engine", f"ray://{found.address}"],
                cwd=tmp_path,
                env={**environment(tmp_path), "RAY_AUTH_MODE": "disabled"},
            )
            least = len(parts("there")) + more
            until(lambda: len(parts("there")) >= least)
            return begun

        interrupted = begin(2)
        interrupted.send_signal(signal.SIGINT)
        _, said = interrupted.communicate()
        assert interrupted.returncode == 130, said
        assert "of 100 parts are in there/: the same command goes on with the rest" in said
        lost = begin(2)
        found.head_node.kill_gcs_server(check_alive=False)
        _, said = lost.communicate()
        assert lost.returncode == 3, said
        assert "the cluster was lost: its head, at" in said
        assert "when the cluster is back, the same command resumes" in said
    left = parts("there")
    assert 4 <= len(left) < 100
    assert not list((tmp_path / "there" / "parts").glob(".*"))
    (tmp_path / "slow").unlink()
    assert assay(*words, "there/", cwd=tmp_path).returncode == 1
    assert parts("there") == parts("here")
