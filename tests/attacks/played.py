"""Scenes are written to disk, run by the real command, and looked up by name.

All agents of a suite are recordings for the harness ``replay``, played in one run: starting the
command costs more than grading a cell.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from assay.scoring.json_safe import Json
from tests.attacks.scenes import MARK, Agent, Files, Scene
from tests.command_line import COMMAND, cells_of, environment, result
from tests.processes import living
from tests.written_files import write_files

__all__ = ["Cells", "check", "play", "require_control", "write"]

_LONGEST_RUN = 900.0
"""Seconds that a run of scenes may take on a busy machine."""


def write(scene: Scene, evals: Path) -> None:
    """Write the case of a scene, and the recordings of its agents, below a directory."""
    case = evals / scene.name
    _write(case / "source", {".keep": "", **scene.given})
    _write(case, scene.hidden)
    graders: list[dict[str, Json]] = [dict(grader) for grader in scene.graders]
    if scene.isolation:
        apart = [one for one in graders if one["type"] in ("pytest", "tests", "swebench")]
        for one in apart:
            one["isolation"] = scene.isolation
    honest = [agent.name for agent in scene.agents if agent.is_honest]
    models = [agent.name for agent in scene.agents]
    told: dict[str, Json] = {
        "id": scene.name,
        "task": {"prompt": "Finish the work."},
        "source": {"path": "source"},
        "matrix": {"harnesses": [scene.harness], "models": [*models]},
        "graders": [*graders],
        **scene.more,
    }
    if any(one.get("isolation") == "process" for one in graders):
        told["selftest"] = {"reference": honest[0]}
    (case / "case.yaml").write_text(json.dumps(told), "utf-8")
    if scene.harnesses:
        declared = json.dumps(scene.harnesses).replace("CASE", str(case))
        (case / "harnesses.yaml").write_text(declared, "utf-8")
    for agent in scene.agents:
        _record(agent, case / "recordings" / agent.name)


def _write(root: Path, files: Files) -> None:
    write_files(root, files)
    for name in files:
        if (root / name).read_bytes().startswith(b"#!"):
            (root / name).chmod(0o755)


def _record(agent: Agent, recording: Path) -> None:
    _write(recording / "files", agent.files)
    for name, target in agent.links.items():
        place = recording / "files" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    parts: dict[str, str] = {}
    if agent.script:
        parts["run.sh"] = agent.script
    if agent.answer:
        parts["answer.txt"] = agent.answer
    if agent.trace:
        parts["trace.jsonl"] = "".join(json.dumps(line) + "\n" for line in agent.trace)
    recording.mkdir(parents=True, exist_ok=True)
    _write(recording, parts)


@dataclass(frozen=True, slots=True)
class Cells:
    """What came of a run, and what it left on the machine.

    Attributes:
        found: The cells by case and agent.
        processes: What still ran when the command had ended.
        scratch: What still lay where temporary files are made.
        trees: Grading trees that were not removed.
    """

    found: Mapping[tuple[str, str], Mapping[str, Json]]
    processes: Sequence[str]
    scratch: Sequence[str]
    trees: Sequence[str]

    def assert_clean(self) -> None:
        """Nothing of any agent lives on or lies about."""
        assert (self.processes, self.scratch, self.trees) == ([], [], [])


@contextmanager
def play(
    scenes: Sequence[Scene], *, workers: int = 2, env: Mapping[str, str] | None = None
) -> Generator[Cells]:
    """Run every agent of some scenes."""
    root = Path(tempfile.mkdtemp(prefix="exploits-"))
    scratch = Path(tempfile.mkdtemp(prefix="exp-"))  # short: sockets are made in it
    try:
        for scene in scenes:
            write(scene, root / "evals")
        done = subprocess.run(
            [*COMMAND, "run", "evals", "--json", "--workers", str(workers)],
            cwd=root,
            env={**environment(root), "TMPDIR": str(scratch), **(env or {})},
            capture_output=True,
            text=True,
            timeout=_LONGEST_RUN,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        cells = cells_of(result(done))
        trees = root / ".assay" / "cache" / "grading"
        yield Cells(
            {(str(cell["case"]), str(cell["model"])): cell for cell in cells},
            sorted({*living(MARK), *_at_work_in(root), *_at_work_in(scratch)}),
            sorted(path.name for path in scratch.iterdir()),
            sorted(path.name for path in trees.iterdir()) if trees.is_dir() else [],
        )
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)


def _at_work_in(directory: Path) -> list[str]:
    """Ids of the processes that a directory is part of: named, mounted, or worked in."""
    wanted = str(directory).encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "cmdline").read_bytes() + (process / "mountinfo").read_bytes()
            seen += os.fsencode((process / "cwd").readlink())
        except OSError:
            continue
        if wanted in seen:
            found.append(process.name)
    return found


def require_control(scenes: Sequence[Scene]) -> None:
    """Each scene has honest work in it, and every agent a name of its own."""
    for scene in scenes:
        assert any(agent.is_honest for agent in scene.agents), f"{scene.name} has no control"
        assert len({agent.name for agent in scene.agents}) == len(scene.agents)


def check(cells: Cells, case: str, agent: Agent) -> None:
    """An agent got what its work is worth. A cheat is graded: it cannot exclude itself."""
    cell = cells.found[case, agent.name]
    assert cell["status"] == "graded", cell["error"]
    reward, told = cell["reward"], {key: cell[key] for key in ("flags", "subscores", "notes")}
    assert isinstance(reward, float)
    if agent.is_honest:
        assert round(reward, 6) == round(agent.worth, 6), told
        assert cell["passed"] is (agent.worth == 1.0)
        # The audit speaks of what code does: honest code, too, starts threads and prints reports.
        flags = cast("list[str]", cell["flags"])
        assert [flag for flag in flags if not flag.startswith("audit: ")] == []
        return
    assert reward <= agent.worth + 1e-9, told
    assert cell["passed"] is False
    if agent.flag:
        assert agent.flag in str(cell["flags"]), told
