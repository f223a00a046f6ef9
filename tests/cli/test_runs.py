"""`assay runs`: what was run is found again, taken elsewhere and thrown away."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from assay.cli.options import require_yes
from assay.errors import ConflictError, InputError
from assay.eval.matrix import launch
from assay.eval.planning import MatrixRequest
from assay.eval.regrade import plan_regrade
from assay.store import kept_files
from assay.store.kept_files import at_work, delete_run, run_state
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.types.codec import from_json
from assay.version import __version__
from tests.command_line import assay, echo_case, result, write_case
from tests.each import each
from tests.written_files import write_files, write_rows

CASE = """
    id: {name}
    task: {{prompt: Solve it.}}
    source: {{path: source}}
    matrix: {{harnesses: [replay], models: [good, bad]}}
    graders:
      - {{type: files, patterns: ["x = 2"]}}
"""


def write_suite(root: Path, name: str = "kit", *, own: str = "") -> None:
    """A case with a source and two recordings; `own` is in the work of the second."""
    case = write_case(root, CASE.format(name=name), name)
    files = {
        "source/kit.py": "x = 1\n",
        "source/notes.txt": "same\n" * 100,
        "recordings/good/files/kit.py": "x = 2\n",
        "recordings/bad/files/kit.py": f"x = 3  # {own}\n",
    }
    write_files(case, files)


def found(done: Any) -> dict[str, Any]:
    assert done.returncode in (0, 1), done.stderr
    return result(done)


def ids(root: Path, *words: str) -> list[str]:
    return [run["id"] for run in found(assay("runs", *words, "--json", cwd=root))["items"]]


def rewards(done: Any) -> dict[str, float]:
    return {cell["model"]: cell["reward"] for cell in found(done)["cells"]}


def files_kept(root: Path) -> set[str]:
    home = root / ".assay"
    rooms = ("blobs", "snapshots", "sources")
    return {
        str(file.relative_to(home))
        for room in rooms
        for file in (home / room).rglob("*")
        if file.is_file()
    }


def test_a_run_of_the_directory_one_is_in_has_its_name(tmp_path: Path) -> None:
    echo_case(tmp_path)
    here = tmp_path / "evals"
    assert assay("run", ".", cwd=here).returncode == 0
    assert [run["suite"] for run in found(assay("runs", "--json", cwd=here))["items"]] == ["evals"]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Four stored runs, each of another suite, label and end."""
    ends = {"a": ("graded", 1.0), "b": ("graded", 0.0), "c": ("error", None), "d": ("graded", 1.0)}
    with Store.open(str(tmp_path / ".assay")) as store:
        for number, (name, (status, reward)) in enumerate(ends.items()):
            request = {"paths": [f"evals/{name}"]}
            run = RunRecord(
                id=f"2026112{number}-{name}",
                created_at=f"2026-11-2{number}T09:00:00+00:00",
                label=f"night-{name}",
                config={"kind": "matrix", "request": cast("Any", request)},
                planned=1,
            )
            store.create_run(run)
            cell = CellRecord(
                run_id=run.id,
                case="k",
                status=cast("Any", status),
                reward=reward,
                passed=None if reward is None else reward == 1.0,
            )
            store.add_cell(cell, {})
            if name != "d":
                store.finish_run(run.id)
    return tmp_path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as files; do not write there."""
    root = tmp_path_factory.mktemp("exported")
    write_suite(root)
    assay("run", "evals", cwd=root)
    assay("runs", "export", "latest", "--out", "out", cwd=root)
    return root / "out"


def test_runs_are_listed_newest_first_with_how_they_ended_and_shown_as_a_report(
    listed: Path,
) -> None:
    lines = assay("runs", cwd=listed).stdout.splitlines()
    names = [line.split()[0] for line in lines[1:]]
    assert names == ["20261123-d", "20261122-c", "20261121-b", "20261120-a"]
    assert "unfinished" in lines[1]
    assert lines[2].rstrip().endswith("errors      0 passed, 1 error")
    shown = assay("runs", "show", "night-b", cwd=listed)
    assert (shown.returncode, shown.stdout) == (1, assay("report", "night-b", cwd=listed).stdout)


def test_a_run_says_which_assay_began_it(tmp_path: Path) -> None:
    echo_case(tmp_path)
    for label in ("old", "new"):
        ran = assay("run", "evals", "--name", label, cwd=tmp_path)
        assert f"assay {__version__}" not in ran.stdout
    with Store.open(str(tmp_path / ".assay")) as store, store.database.writing():
        store.database.change("UPDATE run SET assay = '0.0.9' WHERE label = 'old'")
    assert " · assay 0.0.9" in assay("runs", "show", "old", cwd=tmp_path).stdout
    shown = found(assay("runs", "show", "old", "--json", cwd=tmp_path))
    assert shown["run"]["assay"] == "0.0.9"
    listed = found(assay("runs", "--json", cwd=tmp_path))["items"]
    assert [run["assay"] for run in listed] == [__version__, "0.0.9"]
    compared = assay("compare", "old", "new", cwd=tmp_path)
    assert f"assay: 0.0.9 → {__version__}" in compared.stdout
    assay("runs", "export", "old", "--out", "out", cwd=tmp_path)
    assay("runs", "delete", "old", "--yes", cwd=tmp_path)
    assay("runs", "import", "out", cwd=tmp_path)
    again = found(assay("runs", "--search", "old", "--json", cwd=tmp_path))["items"]
    assert again[0]["assay"] == "0.0.9"


@each(
    ("words", "names"),
    [
        (("--limit", "2"), "dc"),
        (("--search", "evals/b"), "b"),
        (("--search", "night-c"), "c"),
        (("--status", "failed"), "b"),
        (("--status", "passed"), "a"),
        (("--status", "errors"), "c"),
        (("--status", "unfinished"), "d"),
        (("--since", "2026-11-22"), "dc"),
        (("list", "--since", "2026-11-20T10:00:00+00:00", "--limit", "1"), "d"),
        (("--search", "nope"), ""),
    ],
)
def test_runs_are_found_by_what_is_known_of_them(
    listed: Path, words: tuple[str, ...], names: str
) -> None:
    assert [one[-1] for one in ids(listed, *words)] == list(names)


def test_an_unknown_run_names_the_newest_few_and_not_the_oldest(listed: Path) -> None:
    done = assay("run", "--resume", "nope", cwd=listed)
    assert done.returncode == 2
    assert "the newest: 20261123-d, 20261122-c, 20261121-b; `assay runs` lists them" in done.stderr


def test_an_export_can_be_read_and_imported_and_graded_again(tmp_path: Path) -> None:
    write_suite(tmp_path)
    before = rewards(assay("run", "evals", "--json", cwd=tmp_path))
    done = assay("runs", "export", "latest", "--out", "out", "--json", cwd=tmp_path)
    run = found(done)["run"]
    lines = (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()
    cells = [json.loads(line)["cell"] for line in lines]
    assert {cell["model"]: cell["reward"] for cell in cells} == before == {"good": 1.0, "bad": 0.0}
    digest = next(json.loads(line)["snapshot"] for line in lines if '"model": "bad"' in line)
    manifest = json.loads((tmp_path / "out" / "snapshots" / f"{digest}.json").read_text("utf-8"))
    file = tmp_path / "out" / "files" / manifest["kit.py"]["sha256"]
    assert file.read_text("utf-8").startswith("x = 3")

    taken = assay("runs", "import", "out", cwd=tmp_path)
    assert (taken.returncode, f"there is already a run {run}" in taken.stderr) == (3, True)
    assay("runs", "delete", run, "--yes", cwd=tmp_path)
    assert files_kept(tmp_path) == set()
    assert found(assay("runs", "import", "out", "--json", cwd=tmp_path)) == {"run": run}
    assert rewards(assay("report", run, "--json", cwd=tmp_path)) == before
    assert rewards(assay("regrade", run, "--json", cwd=tmp_path)) == before


def test_a_malformed_export_is_refused_and_leaves_no_run(exported: Path, tmp_path: Path) -> None:
    for file, old, new, says in (
        ("run.json", "assay run 1", "assay run 9", "not an exported run"),
        ("run.json", '"id": "', '"id": "../', "is not the id of a run"),
        ("results.jsonl", '"reward": 1.0', '"reward": "1.0"', ": cell.reward: expected a number"),
        ("results.jsonl", '"reward": 1.0', '"reward": 7.0', "refused what was to be stored"),
        ("results.jsonl", '"run_id": "', '"run_id": "x', "not a result of run"),
        ("files/*", "x = ", "forged", "is not what its name says"),
    ):
        shutil.copytree(exported, tmp_path / "out")
        for place in (tmp_path / "out").glob(file):
            place.write_text(place.read_text("utf-8").replace(old, new), "utf-8")
        done = assay("runs", "import", "out", cwd=tmp_path)
        assert done.returncode in (2, 3), says
        assert says in done.stderr, done.stderr
        assert ids(tmp_path) == []
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("field", ["source", "snapshot"])
def test_deleting_a_forged_import_removes_nothing_outside_the_store(
    exported: Path, tmp_path: Path, field: str
) -> None:
    shutil.copytree(exported, tmp_path / "out", ignore=shutil.ignore_patterns("snapshots"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    results = tmp_path / "out" / "results.jsonl"
    lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    forged = {"source": str(tmp_path / "mine"), "snapshot": f"..{tmp_path}/mine"}[field]
    for line in lines:
        place = line["detail"]["metadata"] if field == "source" else line
        assert len(place[field]) == 64
        place[field] = forged
    write_rows(results, lines)
    taken = assay("runs", "import", "out", cwd=tmp_path)
    if field == "snapshot":
        assert (taken.returncode, "is not a digest" in taken.stderr) == (2, True)
    else:  # rows have sources of their own
        assert taken.returncode == 0
        assert assay("runs", "delete", "latest", "--yes", cwd=tmp_path).returncode == 0

    run = RunRecord(id="x", created_at="2026-11-21T09:00:00+00:00", label="", config={}, planned=1)
    with Store.open(str(tmp_path / ".assay")) as store:  # as an earlier version would have taken it
        store.create_run(run)
        for line in lines:
            cell = from_json(CellRecord, {**line["cell"], "run_id": "x"})
            store.add_cell(cell, line["detail"], line["snapshot"])
        store.finish_run("x")
        delete_run(store, "x")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_what_another_run_needs_outlives_a_deletion(tmp_path: Path) -> None:
    write_suite(tmp_path, own="first")
    assay("run", "evals", "--name", "first", cwd=tmp_path)
    alone = files_kept(tmp_path)
    write_suite(tmp_path, own="second")
    before = rewards(assay("run", "evals", "--name", "second", "--json", cwd=tmp_path))
    both = files_kept(tmp_path)
    done = found(assay("runs", "delete", "first", "--yes", "--json", cwd=tmp_path))
    assert done["files"] == 2  # the second recording's file, and its workspace's manifest
    (noted,) = found(assay("server", "list", "audit", "--json", cwd=tmp_path))["items"]
    assert (noted["operation"], noted["what"]["run"]) == ("delete_run", done["deleted"][0])
    assert both - files_kept(tmp_path) == {f for f in alone if f not in files_kept(tmp_path)}
    assert rewards(assay("regrade", "second", "--json", cwd=tmp_path)) == before
    before_it_is_deleted = files_kept(tmp_path)
    assay("runs", "delete", "second", "--yes", "--keep-files", cwd=tmp_path)
    assert (files_kept(tmp_path), ids(tmp_path)) == (before_it_is_deleted, [])


@pytest.mark.parametrize(("said", "is_gone"), [("y\n", True), ("no\n", False), ("", False)])
def test_at_a_terminal_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    is_gone: bool,  # noqa: FBT001
) -> None:
    terminal = io.StringIO(said)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    with contextlib.nullcontext() if is_gone else pytest.raises(InputError, match="nothing was"):
        require_yes("Delete it?", yes=False)


def test_a_run_that_may_be_at_work_is_not_deleted(listed: Path) -> None:
    with at_work(str(listed / ".assay")):
        done = assay("runs", "delete", "20261123-d", "--yes", cwd=listed)
        kept = assay("runs", "delete", "20261123-d", "--yes", "--keep-files", cwd=listed)
        other = assay("runs", "delete", "20261120-a", "--yes", cwd=listed)
        freed = assay("runs", "delete", "20261120-a", "--yes", "--keep-files", cwd=listed)
    assert (done.returncode, "it may be this one" in done.stderr) == (2, True)
    assert kept.returncode == 2
    assert (other.returncode, "--keep-files" in other.stderr) == (2, True)
    assert freed.returncode == 0
    with (listed / ".assay" / "20261123-d.lock").open("wb") as file:  # its rows are being graded
        fcntl.flock(file, fcntl.LOCK_EX)
        done = assay("runs", "delete", "20261123-d", "--yes", cwd=listed)
    assert (done.returncode, "is at work" in done.stderr) == (2, True)
    assert assay("runs", "delete", "20261123-d", "--yes", cwd=listed).returncode == 0


@pytest.mark.parametrize("again", [False, True])
def test_a_run_under_way_keeps_the_files_of_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    again: bool,  # noqa: FBT001
) -> None:
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    home = str(tmp_path / ".assay")
    assay("run", "evals", "--name", "first", cwd=tmp_path)
    refused: list[str] = []

    def on_cell(_: CellRecord) -> None:
        with Store.open(home) as other, pytest.raises(ConflictError) as error:
            delete_run(other, other.run("first").id)
        refused.append(error.value.message)

    with Store.open(home) as store:
        request = MatrixRequest(paths=("evals",))
        ready = plan_regrade("first", store) if again else launch(request, store)
        asyncio.run(ready.go(store, workers=1, on_cell=on_cell))
        assert len(refused) == 2
        delete_run(store, store.run("first").id)


def test_a_run_is_deleted_while_somebody_looks_whether_it_is_at_work(
    listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = kept_files.is_held
    with contextlib.ExitStack() as looking, Store.open(str(listed / ".assay")) as store:
        file = looking.enter_context((listed / ".assay" / "at-work.lock").open("ab"))
        fcntl.flock(file, fcntl.LOCK_EX)

        def ends_to_look(path: Path, *, shared: bool = False) -> bool:
            if shared:
                looking.close()
            return ask(path, shared=shared)

        monkeypatch.setattr(kept_files, "is_held", ends_to_look)
        delete_run(store, "20261123-d")


def test_a_run_ends_while_somebody_is_at_work_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    finish, states = Store.finish_run, list[str]()

    def look(store: Store, run: str) -> None:
        states.append(run_state(store, store.run(run)))
        finish(store, run)

    monkeypatch.setattr(Store, "finish_run", look)
    with Store.open(str(tmp_path / ".assay")) as store:
        asyncio.run(launch(MatrixRequest(paths=("evals",)), store).go(store, workers=1))
    assert states == ["running"], "interrupted, it would be gone on with"


def test_a_damaged_store_deletes_nothing(tmp_path: Path) -> None:
    write_suite(tmp_path)
    assay("run", "evals", "--name", "first", cwd=tmp_path)
    write_suite(tmp_path, own="other")
    assay("run", "evals", cwd=tmp_path)
    for manifest in (tmp_path / ".assay" / "snapshots").rglob("*"):
        if manifest.is_file():
            manifest.write_bytes(b"damaged")
    done = assay("runs", "delete", "first", "--yes", cwd=tmp_path)
    assert (done.returncode, "damaged" in done.stderr) == (3, True)
    assert len(ids(tmp_path)) == 2
