"""Unpacking and copying what nobody trusts: every entry stays inside, or nothing is kept."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from assay.errors import SourceError
from assay.tasks import archives
from assay.tasks.archives import copy_tree, outward_links, unpack
from tests.written_files import write_files

Entry = tuple[str, bytes | None, dict[str, object]]


def tar(path: Path, *entries: Entry) -> str:
    """A tar archive; an entry is a name, its content (None: none) and what else to set."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content, more in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content or b"")
            for key, value in more.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content or b""))
    return str(path)


def entry(name: str, content: bytes = b"") -> Entry:
    return (name, content, {})


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Entry:
    return (name, None, {"type": kind, "linkname": target})


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An empty directory, from which two steps up lead to that of the test."""
    place = tmp_path / "in" / "t"
    place.mkdir(parents=True)
    return place


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_source_distribution_is_unpacked_without_its_outer_directory(
    tmp_path: Path, target: Path
) -> None:
    archive = tar(
        tmp_path / "x-1.tar.gz",
        ("x-1", None, {"type": tarfile.DIRTYPE}),
        ("x-1/x-1/a.py", b"a", {"mode": 0o6777}),
        ("x-1/setup.py", b"s", {"mode": 0o600}),
        link("x-1/alias", "x-1/a.py"),
    )
    unpack(archive, str(target))
    assert names(target) == ["alias", "setup.py", "x-1", "x-1/a.py"]
    assert (target / "alias").read_bytes() == b"a"
    mode = (target / "x-1" / "a.py").stat().st_mode
    assert not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH)
    assert mode & stat.S_IXUSR
    assert not (target / "setup.py").stat().st_mode & stat.S_IXUSR


def test_a_zip_is_unpacked_too(tmp_path: Path, target: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x-1/a.py", "a")
        archive.writestr("x-1/b/", "")
    unpack(str(tmp_path / "x.zip"), str(target))
    assert names(target) == ["a.py", "b"]


ATTACKS: dict[str, tuple[Entry, ...]] = {
    "parent": (("../evil", b"x", {}),),
    "parent inside": (("a/../../evil", b"x", {}),),
    "absolute": (("/tmp/evil", b"x", {}),),
    "backslash": (("..\\evil", b"x", {}),),
    "git directory": (("a/.git/hooks/post-checkout", b"x", {}),),
    "git directory in capitals": (("a/.GIT/config", b"x", {}),),
    "link out": (link("a", "../../etc"),),
    "absolute link": (link("a", "/etc/passwd"),),
    "file through a link": (link("a", "../.."), ("a/evil", b"x", {})),
    "link through a link": (
        ("x/y/z/f", b"", {}),
        link("x/y/z/up", "../../.."),
        link("out", "x/y/z/up/../e"),
    ),
    "hard link": (("a", b"x", {}), link("b", "a", tarfile.LNKTYPE)),
    "hard link out": (link("b", "../../evil", tarfile.LNKTYPE),),
    "device": (("a", None, {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),),
    "pipe": (("a", None, {"type": tarfile.FIFOTYPE}),),
    "twice": (("a", b"x", {}), ("a", b"y", {})),
    "file becomes directory": (("a", b"x", {}), ("a/b", b"y", {})),
    "link in place of a file": (("a", b"x", {}), link("a", "b")),
}


@pytest.mark.parametrize("name", list(ATTACKS))
def test_an_archive_cannot_reach_outside(name: str, tmp_path: Path, target: Path) -> None:
    archive = tar(tmp_path / "evil.tar.gz", ("ok", b"", {}), *ATTACKS[name])
    with pytest.raises(SourceError):
        unpack(archive, str(target))
    assert not [path for path in tmp_path.rglob("evil") if not path.is_relative_to(target)]


def test_a_zip_cannot_reach_outside(tmp_path: Path) -> None:
    for name, mode in (("../evil", 0), ("/tmp/evil", 0), ("link", stat.S_IFLNK | 0o777)):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "/etc/passwd")
        target = tmp_path / f"t{mode}{len(name)}"
        target.mkdir()
        with pytest.raises(SourceError):
            unpack(str(tmp_path / "x.zip"), str(target))


def test_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TREE_BYTES", 1_000_000)
    monkeypatch.setattr(archives, "MAX_FILES", 50)
    big = tar(tmp_path / "big.tar.gz", ("a", b"\0" * 900_000, {}), ("b", b"\0" * 200_000, {}))
    many = tar(tmp_path / "many.tar.gz", *[entry(f"f{n}") for n in range(60)])
    with zipfile.ZipFile(tmp_path / "big.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"\0" * 2_000_000)
    for number, bomb in enumerate((big, many, str(tmp_path / "big.zip"))):
        target = tmp_path / f"t{number}"
        target.mkdir()
        with pytest.raises(SourceError, match="holds more than"):
            unpack(bomb, str(target))


def test_a_damaged_archive_is_an_error_of_the_source(tmp_path: Path, target: Path) -> None:
    whole = Path(tar(tmp_path / "whole.tar.gz", ("a", os.urandom(100_000), {}))).read_bytes()
    for name in ("x.tar.gz", "x.zip", "x.tar.xz", "x.tar.bz2"):
        for content in (b"", b"\x1f\x8b junk", b"PK\x03\x04 junk", whole[:50_000]):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(SourceError, match="cannot unpack"):
                unpack(str(tmp_path / name), str(target))


def test_a_copy_keeps_links_and_leaves_history_and_caches(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "s"
    left = (".git/objects/solution", "a/.git", "a/__pycache__/b.pyc")
    write_files(source, dict.fromkeys((*left, "a/b.py", ".env", "run.sh"), "x"))
    (source / "run.sh").chmod(0o4755)
    (source / "link").symlink_to("a/b.py")
    (source / "dangling").symlink_to("not/there")
    copy_tree(str(source), str(target))
    assert names(target) == [".env", "a", "a/b.py", "dangling", "link", "run.sh"]
    assert (target / "link").readlink() == Path("a/b.py")
    assert stat.S_IMODE((target / "run.sh").stat().st_mode) == 0o755


def test_a_copy_refuses_links_that_lead_out_and_special_files(tmp_path: Path) -> None:
    source = tmp_path / "s"
    (source / "a").mkdir(parents=True)
    # The tree is renamed when it is complete, and copied for each cell: no path into it is inside.
    for to in ("/etc/passwd", "../secret", "a/../../secret", source / "a"):
        (source / "link").symlink_to(to)
        assert outward_links(str(source)) == ["link"]
        target = tempfile.mkdtemp(dir=tmp_path)
        with pytest.raises(SourceError, match="a link that leads out of it: link"):
            copy_tree(str(source), target)
        (source / "link").unlink()
    os.mkfifo(source / "pipe")
    with pytest.raises(SourceError, match="neither a file nor a directory"):
        copy_tree(str(source), tempfile.mkdtemp(dir=tmp_path))
