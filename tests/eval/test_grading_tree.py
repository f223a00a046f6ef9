"""The grading tree: the source with the permitted changes, whatever the agent left."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from assay.errors import SourceError, StoreError
from assay.eval.workspaces import grading_tree
from assay.scoring.json_safe import Json
from assay.store.restore import restore_snapshot
from assay.store.snapshots import take_snapshot
from assay.store.sources import keep_source, source_tree
from assay.tasks.permitted import Rules, SubmissionSpec
from tests.written_files import write_files


class Trees:
    """An agent's tree that was laid out from a source, and what grading makes of it."""

    def __init__(self, directory: Path, files: dict[str, str]) -> None:
        self.home = str(directory / "store")
        self.left = directory / "left"
        self.graded = directory / "graded"
        self.left.mkdir()
        write_files(self.left, files)
        for path in self.left.rglob("*"):  # laid out long ago: a fresh file is read again
            os.utime(path, (1, 1))
        self.source = keep_source(self.home, str(self.left))

    def grade(self, spec: SubmissionSpec | None = None) -> dict[str, list[str]]:
        """Build the grading tree; what was dropped and restored, path by path."""
        kept = take_snapshot(self.home, str(self.left), known=self.source.known)
        chosen = grading_tree.plan(self.source.entries, kept.entries, Rules(spec))
        shutil.rmtree(self.graded, ignore_errors=True)
        links = grading_tree.build(self.home, chosen, self.source.digest, str(self.graded))
        return {
            "dropped": [item.path for item in (*chosen.dropped, *links, *kept.dropped)],
            "restored": [item.path for item in chosen.restored],
            "changes": list(chosen.changes),
            "flags": list(chosen.flags),
        }

    def files(self) -> dict[str, str]:
        """What stands in the grading tree."""
        return {
            str(path.relative_to(self.graded)): path.read_text()
            for path in sorted(self.graded.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(
        tmp_path,
        {
            "kit.py": "stub",
            "gone.py": "x",
            "conftest.py": "ours",
            "tests/test_kit.py": "ours",
            "pkg/__init__.py": "",
        },
    )


def test_changes_are_graded_and_protected_paths_are_the_sources(trees: Trees) -> None:
    write_files(
        trees.left,
        {
            "kit.py": "solved",
            "new/mod.py": "new",
            "conftest.py": "theirs",
            "tests/test_kit.py": "pass",
            "tests/test_mine.py": "mine",
            "pytest.ini": "[pytest]",
        },
    )
    (trees.left / "gone.py").unlink()
    found = trees.grade()
    assert trees.files() == {
        "kit.py": "solved",
        "new/mod.py": "new",
        "conftest.py": "ours",
        "tests/test_kit.py": "ours",
        "pkg/__init__.py": "",
    }
    assert found["dropped"] == ["pytest.ini", "tests/test_mine.py"]
    assert found["restored"] == ["conftest.py", "tests/test_kit.py"]
    assert "gone.py" in found["changes"]
    assert found["flags"] == []


@pytest.mark.parametrize("trap", ["nothing", "file", "link", "link to itself", "directory"])
def test_nothing_stands_where_a_test_belongs(trees: Trees, trap: str) -> None:
    """inject_dir_trap: the place of a test is taken by something else."""
    shutil.rmtree(trees.left / "tests")
    place = trees.left / "tests"
    if trap == "nothing":
        (trees.left / "conftest.py").unlink()
        assert trees.grade()["restored"] == ["conftest.py", "tests", "tests/test_kit.py"]
    elif trap == "file":
        place.write_text("in the way")
    elif trap == "link":
        place.symlink_to("pkg")
    elif trap == "link to itself":
        place.symlink_to("tests")
    else:
        (place / "test_kit.py").mkdir(parents=True)
        (place / "test_kit.py" / "conftest.py").write_text("evil")
    trees.grade()
    assert trees.files()["tests/test_kit.py"] == "ours"
    assert not (trees.graded / "tests").is_symlink()
    assert "evil" not in trees.files().values()


def test_a_directory_that_became_a_link_gives_way_to_what_is_protected_in_it(
    tmp_path: Path,
) -> None:
    """swap_parent_directory: the parent of a protected file leads elsewhere."""
    trees = Trees(tmp_path, {"pkg/conftest.py": "ours", "pkg/a.py": "a", "other/conftest.py": "o"})
    shutil.rmtree(trees.left / "pkg")
    (trees.left / "pkg").symlink_to("other")
    found = trees.grade()
    assert trees.files()["pkg/conftest.py"] == "ours"
    assert "pkg" in found["dropped"]


def test_what_may_not_be_graded_is_dropped_and_the_rest_is_kept(trees: Trees) -> None:
    """Links that lead out, special files, paths too long; start-up hooks are flagged."""
    (trees.left / "passwd").symlink_to("/etc/passwd")
    (trees.left / "up").symlink_to("../../etc")
    (trees.left / "alias.py").symlink_to("kit.py")
    os.link(trees.left / "conftest.py", trees.left / "same.py")
    os.mkfifo(trees.left / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(trees.left)
        try:
            server.bind("socket.py")
        finally:
            os.chdir(here)
    odd, deep = os.fsdecode(b"odd-\xff.py"), "/".join(["d" * 200] * 6)  # no UTF-8; too long
    hooks = {"sitecustomize.py": "x", "deep/evil.pth": "import os"}
    write_files(trees.left, {odd: "odd", deep: "deep", **hooks})
    found = trees.grade()
    assert {"passwd", "up", "pipe.py", "socket.py"} <= set(found["dropped"])
    assert any(path.startswith("ddd") for path in found["dropped"])
    assert (trees.graded / "alias.py").readlink() == Path("kit.py")
    assert not (trees.graded / "passwd").is_symlink()
    assert (trees.files()["same.py"], trees.files()[odd]) == ("ours", "odd")
    assert found["flags"] == [
        "planted a start-up hook: deep/evil.pth",
        "planted a start-up hook: sitecustomize.py",
    ]
    assert "sitecustomize.py" not in trees.files()


def test_attack_files_stand_where_a_makefile_would_make_or_include_them(tmp_path: Path) -> None:
    makefiles = {
        "Makefile": "include rules.in\n-include local\n$(addprefix out/,$(SAID)): | obj\n\tsay\n",
        "rules.in": "SAID += a.txt\nSAID += b.txt # of them\nobj:\n\tmkdir -p $@\n",
        "sub/Makefile": "OUT = ../top.txt\n$(OUT) $(CURDIR)/low.txt kit.c: /x ../../y\n\tsay\n",
        "sub/kit.c": "stub",
    }
    trees = Trees(tmp_path, makefiles)
    made = ["out/a.txt", "out/b.txt", "sub/low.txt", "top.txt", "local"]
    free = ["of", "them", "obj/honest.txt", "out/honest.txt", "low.txt", "sub/kit.c"]
    write_files(trees.left, dict.fromkeys([*made, *free, "rules.in"], "theirs"))
    source = trees.source
    asked_for = grading_tree.asked_for(trees.home, source.digest, source.entries)
    left = take_snapshot(trees.home, str(trees.left), known=source.known).entries
    chosen = grading_tree.plan(source.entries, left, Rules(asked_for=asked_for))
    assert sorted(made) == [one.path for one in chosen.dropped]
    assert [one.path for one in chosen.restored] == ["rules.in"]
    assert {one.why for one in chosen.dropped} == {"what the makefile makes or includes"}
    assert sorted(chosen.changes) == sorted(free)


def test_a_case_may_let_tests_be_changed(trees: Trees) -> None:
    write_files(trees.left, {"tests/test_kit.py": "theirs", "big.log": "x"})
    trees.grade(SubmissionSpec(include=("tests",), exclude=("*.log",)))
    assert trees.files()["tests/test_kit.py"] == "theirs"
    assert "big.log" not in trees.files()


def test_the_agents_tree_and_the_kept_source_are_never_written_and_both_are_restored(
    trees: Trees, tmp_path: Path
) -> None:
    back = tmp_path / "back"
    write_files(trees.left, {"kit.py": "solved"})
    kept = take_snapshot(trees.home, str(trees.left), known=trees.source.known)
    restore_snapshot(trees.home, kept.digest, str(back), source=trees.source.digest)
    assert [(back / name).read_text() for name in ("kit.py", "conftest.py")] == ["solved", "ours"]
    trees.grade()
    (trees.graded / "conftest.py").unlink()
    (trees.graded / "kit.py").write_text("graders may write here")
    assert (trees.left / "kit.py").read_text() == "solved"
    assert (trees.left / "conftest.py").read_text() == "ours"
    assert Path(source_tree(trees.home, trees.source.digest), "kit.py").read_text() == "stub"


def test_a_change_that_keeps_size_and_time_is_seen_and_a_mode_is_part_of_the_work(
    trees: Trees,
) -> None:
    """backdated_write: same length, and the old times put back."""
    place = trees.left / "kit.py"
    before = place.stat()
    place.chmod(0o755)
    assert trees.grade()["changes"] == []
    assert (trees.graded / "kit.py").stat().st_mode & 0o777 == 0o755
    source = Path(source_tree(trees.home, trees.source.digest), "kit.py")
    assert source.stat().st_mode & 0o111 == 0
    place.write_text("evil")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert trees.grade()["changes"] == ["kit.py"]
    assert trees.files()["kit.py"] == "evil"


def test_touching_a_protected_test_does_not_make_it_the_agents_own(trees: Trees) -> None:
    test = trees.left / "tests" / "test_kit.py"
    for touch in (lambda: test.chmod(0o755), lambda: test.write_text("# mine now"), test.unlink):
        touch()
        assert trees.grade()["changes"] == []
        assert trees.files()["tests/test_kit.py"] == "ours"


def test_a_source_that_is_damaged_or_has_a_pipe_in_it_is_an_error_not_a_score(
    trees: Trees, tmp_path: Path
) -> None:
    archive = next(Path(trees.home, "sources").glob("*.zst"))
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(StoreError, match="damaged"):
        source_tree(trees.home, trees.source.digest)
    (tmp_path / "tree").mkdir()
    os.mkfifo(tmp_path / "tree" / "pipe")
    with pytest.raises(SourceError, match=r"pipe: it is a named pipe"):
        keep_source(str(tmp_path / "store"), str(tmp_path / "tree"))


def test_lines_about_what_was_left_out_are_bounded() -> None:
    left: dict[str, Json] = {
        f"tests/t{n}.py": {"type": "file", "mode": 420, "size": 0, "sha256": "0" * 64}
        for n in range(500)
    }
    notes = grading_tree.plan({}, left, Rules()).notes(())
    dropped = notes["dropped"]
    assert isinstance(dropped, list)
    assert len(dropped) == 201
    assert dropped[-1] == "... and 300 more"
