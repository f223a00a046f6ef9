"""Putting a case's source into a directory: complete or not at all."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import yaml

from assay.errors import SourceError
from assay.scoring.json_safe import Json
from assay.tasks.case import Case, load_case
from assay.tasks.sources import fetch_fixtures, materialise
from tests.written_files import committed, write_files


def case_with(folder: Path, **blocks: Json) -> Case:
    data: dict[str, Json] = {
        "id": "c1",
        "task": {"prompt": "x"},
        "matrix": {"harnesses": ["a"], "models": ["m"]},
        "graders": [{"type": "command", "cmd": "x"}],
        **blocks,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case.yaml").write_text(yaml.safe_dump(data))
    return load_case(str(folder))


def repository(directory: Path) -> str:
    """A repository whose last commit is the solution; the id of the one before."""
    bug = committed(write_files(directory, {"sub/a.py": "bug"}))
    committed(write_files(directory, {"sub/a.py": "SOLUTION"}))
    return bug


def files(root: Path) -> list[str]:
    return sorted(
        str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and ".git" not in p.parts
    )


def test_no_source_is_an_empty_directory(tmp_path: Path) -> None:
    materialise(case_with(tmp_path / "c"), str(tmp_path / "deep" / "w"), str(tmp_path / "cache"))
    assert list((tmp_path / "deep" / "w").iterdir()) == []


def test_a_path_is_copied_without_its_history(tmp_path: Path) -> None:
    repository(tmp_path / "c" / "src")
    case = case_with(tmp_path / "c", source={"path": "./src"})
    target = tmp_path / "w"
    target.mkdir()
    materialise(case, str(target), str(tmp_path / "cache"))
    assert files(target) == ["sub/a.py"]
    assert not (target / ".git").exists()
    (target / "sub" / "a.py").write_text("changed by the agent")
    assert (tmp_path / "c" / "src" / "sub" / "a.py").read_text() == "SOLUTION"


@pytest.mark.parametrize("isolation", ["clone", "worktree"])
def test_a_path_may_be_checked_out_instead(isolation: str, tmp_path: Path) -> None:
    repository(tmp_path / "c" / "src")
    (tmp_path / "c" / "src" / "uncommitted").write_text("x")
    case = case_with(tmp_path / "c", source={"path": "./src", "isolation": isolation})
    materialise(case, str(tmp_path / "w"), str(tmp_path / "cache"))
    assert files(tmp_path / "w") == ["sub/a.py"]
    assert (tmp_path / "w" / ".git").is_dir()


@pytest.mark.parametrize("name", ["git", "repo"])
def test_a_git_source_is_its_commit(name: str, tmp_path: Path) -> None:
    bug = repository(tmp_path / "c" / "upstream")
    source: Json = {name: "./upstream", "commit": bug, "subdir": "sub"}
    materialise(case_with(tmp_path / "c", source=source), str(tmp_path / "w"), str(tmp_path / "k"))
    assert files(tmp_path / "w") == ["a.py"]
    assert (tmp_path / "w" / "a.py").read_text() == "bug"
    everything = b"".join(p.read_bytes() for p in (tmp_path / "w").rglob("*") if p.is_file())
    assert str(tmp_path).encode() not in everything, "nothing tells where it came from"


def sdist(folder: Path) -> str:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name in ("pkg-1.0/setup.py", "pkg-1.0/src/pkg.py"):
            text = b"raise SystemExit('executed')"
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    folder.mkdir()
    (folder / "pkg-1.0.tar.gz").write_bytes(stream.getvalue())
    return hashlib.sha256(stream.getvalue()).hexdigest()


def test_a_package_is_unpacked_and_needs_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = sdist(tmp_path / "links")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    cache = str(tmp_path / "cache")
    pinned = case_with(tmp_path / "c", source={"pypi": "pkg==1.0", "sha256": sha})
    materialise(pinned, str(tmp_path / "w"), cache)
    assert files(tmp_path / "w") == ["setup.py", "src/pkg.py"]
    part = case_with(tmp_path / "d", source={"pypi": "pkg==1.0", "sha256": sha, "subdir": "src"})
    materialise(part, str(tmp_path / "v"), cache)
    assert files(tmp_path / "v") == ["pkg.py"]
    unpinned = case_with(tmp_path / "e", source={"pypi": "pkg==1.0"})
    with pytest.raises(SourceError, match=f"source of c1: .* sha256: {sha}"):
        materialise(unpinned, str(tmp_path / "u"), cache)
    assert not (tmp_path / "u").exists()
    nowhere = case_with(tmp_path / "f", source={"pypi": "pkg==1.0", "sha256": sha, "subdir": "no"})
    with pytest.raises(SourceError, match="has no directory 'no'"):
        materialise(nowhere, str(tmp_path / "u"), cache)


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "c" / "src").mkdir(parents=True)
    (tmp_path / "c" / "src" / "a").write_text("x")
    (tmp_path / "c" / "src" / "out").symlink_to("/etc/passwd")
    case = case_with(tmp_path / "c", source={"path": "./src"})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SourceError, match=r"source of c1: .*: out"):
        materialise(case, str(tmp_path / "w"), str(tmp_path / "cache"))
    assert sorted(tmp_path.iterdir()) == before


def test_a_target_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "mine").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for target, message in (("w", "not an empty"), ("link", "not an empty"), ("w/mine", "cannot")):
        with pytest.raises(SourceError, match=message):
            materialise(case_with(tmp_path / "c"), str(tmp_path / target), str(tmp_path / "k"))
    assert (tmp_path / "w" / "mine").read_text() == "x"


def test_fixtures_are_fetched_and_bound(tmp_path: Path) -> None:
    bug = repository(tmp_path / "c" / "hidden-repo")
    fixtures: Json = {"repo": "./hidden-repo", "commit": bug, "subdir": "sub"}
    graders: Json = [{"type": "pytest", "inject": ["a.py"]}]
    case = case_with(tmp_path / "c", fixtures=fixtures, graders=graders)
    fetch_fixtures(case, str(tmp_path / "f"), str(tmp_path / "cache"))
    assert files(tmp_path / "f") == ["a.py"]
    assert not (tmp_path / "f" / ".git").exists()
    bound = case.with_fixtures(str(tmp_path / "f"))
    assert bound.graders[0].options["inject"] == [str(tmp_path / "f" / "a.py")]
    with pytest.raises(SourceError, match="has no fixtures"):
        fetch_fixtures(case_with(tmp_path / "d"), str(tmp_path / "g"), str(tmp_path / "cache"))
    by_id = case_with(tmp_path / "c", id="sub", fixtures={"repo": "./hidden-repo", "commit": bug})
    fetch_fixtures(by_id, str(tmp_path / "h"), str(tmp_path / "cache"))
    assert files(tmp_path / "h") == ["a.py"]
