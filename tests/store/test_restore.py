"""Putting snapshots back: exactly, inside the target, and suspicious of the store itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, cast

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.store import Dropped, restore_snapshot, take_snapshot
from tests.each import each

_EMPTY = hashlib.sha256(b"").hexdigest()


def _round_trip(tmp_path: Path) -> tuple[Path, tuple[Dropped, ...]]:
    """Take a snapshot of ``work`` and restore it."""
    snapshot = take_snapshot(str(tmp_path / "home"), str(tmp_path / "work"))
    assert snapshot.dropped == ()
    target = tmp_path / "target"
    return target, restore_snapshot(str(tmp_path / "home"), snapshot.digest, str(target))


def _tree(root: Path) -> dict[str, tuple[object, ...]]:
    """What is in a directory, read without any of the code under test."""
    return {
        str(path.relative_to(root)): ("directory",)
        if path.is_dir()
        else ("file", path.stat().st_mode & 0o7777, path.read_bytes())
        for path in root.rglob("*")
    }


_BYTES = st.one_of(
    st.sampled_from([b"a", b"b", b"A", b"a.b", b"-", b"a b", b"\n", b"\xff", b"\xed\xa0\x80"]),
    st.binary(min_size=1, max_size=12),
).filter(lambda name: name not in (b".", b"..") and b"/" not in name and b"\0" not in name)
_NAMES = _BYTES.map(os.fsdecode)  # a name is any bytes
_FILES = st.tuples(
    st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o666]),
    st.one_of(st.binary(max_size=40), st.sampled_from([1 << 20, (1 << 20) + 1]).map(bytes)),
)
_TREES = st.recursive(
    st.dictionaries(_NAMES, _FILES, max_size=4),
    lambda inner: st.dictionaries(_NAMES, _FILES | inner, max_size=4),
    max_leaves=8,
)
_TARGETS = st.lists(st.sampled_from(["a", "b", "..", ".", "", "a.b"]), min_size=1, max_size=6).map(
    "/".join
)


def _make(root: Path, tree: Mapping[str, Any]) -> None:
    root.mkdir()
    for name, entry in tree.items():
        if isinstance(entry, dict):
            _make(root / name, cast("dict[str, Any]", entry))
        else:
            mode, content = entry
            (root / name).write_bytes(content)
            (root / name).chmod(mode)


@given(tree=_TREES)
def test_any_tree_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, tree: Mapping[str, Any]
) -> None:
    tmp_path = tmp_path_factory.mktemp("tree")
    _make(tmp_path / "work", tree)
    target, dropped = _round_trip(tmp_path)
    assert dropped == ()
    assert _tree(target) == _tree(tmp_path / "work")
    again = take_snapshot(str(tmp_path / "home"), str(target))
    assert again.digest == take_snapshot(str(tmp_path / "home"), str(tmp_path / "work")).digest


@settings(max_examples=3 * settings().max_examples)
@given(
    links=st.dictionaries(
        st.tuples(st.sampled_from(["", "d", "d/e"]), st.sampled_from(["a", "b", "a.b"])),
        _TARGETS,
        max_size=6,
    )
)
def test_no_restored_link_leads_outside(
    tmp_path_factory: pytest.TempPathFactory, links: dict[tuple[str, str], str]
) -> None:
    """The kernel is the judge of where each link leads, through all the others."""
    tmp_path = tmp_path_factory.mktemp("links")
    work = tmp_path / "work"
    (work / "d" / "e").mkdir(parents=True)
    for (directory, name), to in links.items():
        (work / directory / name).symlink_to(to or ".")
    target, dropped = _round_trip(tmp_path)
    made = [path for path in target.rglob("*") if path.is_symlink()]
    for path in made:
        resolved = Path(os.path.realpath(path))
        assert resolved == target or target in resolved.parents, (path, path.readlink())
    assert len(made) + len(dropped) == len(links)


@pytest.mark.parametrize(
    ("links", "refused"),
    [
        ({"l": "file"}, set[str]()),
        ({"l": "missing"}, set[str]()),
        ({"d/l": "../file"}, set[str]()),
        ({"l": "."}, set[str]()),
        ({"l": "d/../d/./../file"}, set[str]()),
        ({"m": "file", "l": "m"}, set[str]()),
        ({"l": "/etc/passwd"}, {"l"}),
        ({"l": "//file"}, {"l"}),
        ({"l": ".."}, {"l"}),
        ({"l": "../target/file"}, {"l"}),
        ({"d/l": "../../x"}, {"d/l"}),
        # Inside as text, outside as walked: d/up is the root, and its parent is not.
        ({"d/up": "..", "l": "d/up/../x"}, {"l"}),
        ({"out": "/etc", "l": "out/passwd"}, {"out", "l"}),
        ({"a": "b", "b": "/etc"}, {"a", "b"}),
        ({"missing-then-up": "nothing/../../x"}, {"missing-then-up"}),
    ],
)
def test_only_links_that_stay_inside_are_made(
    tmp_path: Path, links: dict[str, str], refused: set[str]
) -> None:
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "file").write_text("mine")
    for name, to in links.items():
        (work / name).symlink_to(to)
    target, dropped = _round_trip(tmp_path)
    assert {entry.path for entry in dropped} == refused
    assert all("leads out" in entry.why for entry in dropped)
    for name, to in links.items():
        assert (target / name).is_symlink() == (name not in refused)
        if name not in refused:
            assert str(os.readlink(target / name)) == to  # noqa: PTH115 - a Path drops its dots


def test_honest_links_that_name_the_workspace_of_the_sandbox_stay_inside(tmp_path: Path) -> None:
    """It is somewhere else on this machine."""
    (tmp_path / "work/d").mkdir(parents=True)
    (tmp_path / "work/file").write_text("mine")
    links = {"l": "/workspace/file", "d/l": "/workspace//file", "d/all": "/workspace"}
    out = {"o": "/workspace/../file", "d/o": "/workspaces/file", "n": "/", "m": "//workspace/file"}
    for name, to in {**links, **out}.items():
        (tmp_path / "work" / name).symlink_to(to)
    target, dropped = _round_trip(tmp_path)
    assert {entry.path for entry in dropped} == {*out}
    found = [os.readlink(target / name) for name in links]  # noqa: PTH115 - as it is
    assert found == ["file", "../file", "../."]
    assert (target / "d/l").read_text() == (target / "d/all/l").read_text() == "mine"


def test_links_in_circles_are_not_made(tmp_path: Path, work: Path) -> None:
    for name, to in (("a", "b"), ("b", "a"), ("self", "self")):
        (work / name).symlink_to(to)
    _, dropped = _round_trip(tmp_path)
    assert dropped == tuple(Dropped(name, "it leads in circles") for name in ("a", "b", "self"))


@pytest.mark.slow
def test_links_made_to_be_slow_to_check_are_given_up(tmp_path: Path, work: Path) -> None:
    (work / "d").mkdir()
    for number in range(3_000):
        (work / f"{number:04}").symlink_to("d/../" * 60 + f"{number + 1:04}")
    _, dropped = _round_trip(tmp_path)
    assert dropped[0] == Dropped("0000", "it leads in circles")  # more than 40 links in a row
    assert dropped[-1] == Dropped("2999", "there are too many links to check")


@pytest.fixture
def honest(home: str, work: Path) -> str:
    """The digest of a snapshot of one file."""
    (work / "a").write_bytes(b"honest")
    return take_snapshot(home, str(work)).digest


def test_the_target_is_made_or_empty(tmp_path: Path, home: str, honest: str) -> None:
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "new" / "deep"):
        restore_snapshot(home, honest, str(target))
        assert (target / "a").read_text() == "honest"
        with pytest.raises(InputError, match="is not empty"):
            restore_snapshot(home, honest, str(target))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "file").write_text("mine")
    for name in ("link", "file"):
        with pytest.raises(StoreError, match="could not be read or written"):
            restore_snapshot(home, honest, str(tmp_path / name))


@each("digest", ["", "../../etc/passwd", "0" * 63, "G" * 64, "0" * 64 + "\n"])
def test_what_is_no_digest_is_never_a_path(home: str, tmp_path: Path, digest: str) -> None:
    with pytest.raises(StoreError, match="is not the digest of an artifact"):
        restore_snapshot(home, digest, str(tmp_path / "target"))
    with pytest.raises(StoreError, match="No such file"):
        restore_snapshot(home, "0" * 64, str(tmp_path / "target"))


def _blob_of(home: str, content: bytes, folder: str = "blobs") -> Path:
    digest = hashlib.sha256(content).hexdigest()
    return Path(home, folder, digest[:2], digest[2:])


@each(
    "forged, why",
    [
        (zstandard.compress(b"FORGED"), "not what its name says"),
        (zstandard.compress(b"x" * 10_000_000), "larger than was recorded"),
        (zstandard.compress(b"x"), "not what its name says"),
        (b"no zstd at all", "is damaged"),
        (b"", "not what its name says"),
        (None, "No such file"),
    ],
)
def test_a_tampered_file_is_not_restored(
    home: str, tmp_path: Path, honest: str, forged: bytes | None, why: str
) -> None:
    blob = _blob_of(home, b"honest")
    blob.unlink(missing_ok=True)
    if forged is not None:
        blob.write_bytes(forged)
    target = Path(mkdtemp(dir=tmp_path))
    with pytest.raises(StoreError, match=why):
        restore_snapshot(home, honest, str(target))


def test_a_file_that_is_a_link_in_the_store_is_not_followed(
    home: str, tmp_path: Path, honest: str
) -> None:
    blob = _blob_of(home, b"honest")
    blob.rename(tmp_path / "elsewhere")
    blob.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="could not be read"):
        restore_snapshot(home, honest, str(tmp_path / "target"))


def _forge(home: str, content: bytes) -> str:
    """Put a manifest into the store that no snapshot has written; its digest is right."""
    empty = _blob_of(home, b"")
    place = _blob_of(home, content, "snapshots")
    for path, body in ((empty, b""), (place, content)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress(body))
    return hashlib.sha256(content).hexdigest()


_FILE: dict[str, Json] = {"type": "file", "mode": 0o644, "size": 0, "sha256": _EMPTY}
_LINK: dict[str, Json] = {"type": "link", "target": "/tmp"}
_DIRECTORY: dict[str, Json] = {"type": "directory"}


@each(
    "manifest",
    [
        {"../a": _FILE},
        {"..": _DIRECTORY, "../a": _FILE},
        {"d": _DIRECTORY, "d/../../a": _FILE},
        {"/tmp/a": _FILE},
        {"": _FILE},
        {".": _DIRECTORY},
        {"d": _DIRECTORY, "d//a": _FILE},
        {"d": _DIRECTORY, "d/": _FILE},
        {"a\0b": _FILE},
        {"\ud800": _FILE},
        {"d/a": _FILE},
        {"d": _FILE, "d/a": _FILE},
        {"d": _LINK, "d/a": _FILE},
        {"a": {**_FILE, "mode": 0o4755}},
        {"a": {**_FILE, "mode": -1}},
        {"a": {**_FILE, "size": -1}},
        {"a": {**_FILE, "size": "0"}},
        {"a": {**_FILE, "owner": "root"}},
        {"a": {**_LINK, "target": ""}},
        {"a": {**_LINK, "target": "b\0c"}},
        {"a": {**_LINK, "target": "\ud800"}},
        {"a": {**_LINK, "extra": 1}},
        {"a": {**_DIRECTORY, "mode": 0}},
        {"a": {"type": "device"}},
        {"a": {}},
        {"a": None},
        # No mapping of names.
        b"[]",
        b"null",
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"a": {"type": "directory"}, "a": {"type": "directory"}}',
        b'{"a": {"type": "link", "type": "directory"}}',
    ],
)
def test_a_manifest_that_no_snapshot_writes_is_refused(
    home: str, tmp_path: Path, manifest: dict[str, Json] | bytes
) -> None:
    written = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with pytest.raises(StoreError, match="tampered with"):
        restore_snapshot(home, _forge(home, written), str(tmp_path / "target"))
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "a").exists()


def test_a_manifest_exchanged_for_another_or_that_lies_about_a_size_is_refused(
    home: str, tmp_path: Path
) -> None:
    good = _forge(home, json.dumps({"a": _FILE}).encode())
    bad = _forge(home, json.dumps({"b": _FILE}).encode())
    path = Path(home, "snapshots")
    (path / bad[:2] / bad[2:]).rename(path / good[:2] / good[2:])
    with pytest.raises(StoreError, match="not what its name says"):
        restore_snapshot(home, good, str(tmp_path / "target"))
    lying = _forge(home, json.dumps({"a": {**_FILE, "size": 5}}).encode())
    with pytest.raises(StoreError, match="smaller than was recorded"):
        restore_snapshot(home, lying, str(tmp_path / "target"))


def test_names_that_the_file_system_takes_for_one_are_not_written_over(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that ignores case: the second of two names finds the first's file."""
    digest = _forge(home, json.dumps({"README": _FILE, "readme": _FILE}).encode())
    opened = os.open

    def fold(path: str | bytes | Path, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        return opened(b"readme" if path == b"README" else path, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", fold)
    with pytest.raises(StoreError, match="File exists"):
        restore_snapshot(home, digest, str(tmp_path / "target"))
