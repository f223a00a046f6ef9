"""Git sources: one commit, nothing of its future, nothing of the repository's will."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import SourceError
from assay.tasks import repositories
from assay.tasks.repositories import begin_repository, export_commit, head_commit
from tests.written_files import write_files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=ENV, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(directory: Path, message: str, **files: str) -> str:
    write_files(directory, {name.replace("__", "/"): text for name, text in files.items()})
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", message)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with a past, the bug at ``HEAD~1`` and the solution at ``HEAD``."""
    directory = tmp_path / "upstream"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    commit(directory, "past", a="1", sub__b="1")
    commit(directory, "bug", a="bug", sub__b="2")
    git(directory, "branch", "deadbee")
    commit(directory, "SOLUTION", a="SOLUTION", secret="SOLUTION")
    git(directory, "tag", "-a", "v1", "-m", "SOLUTION")
    git(directory, "update-server-info")
    return directory


def bug_of(upstream: Path) -> str:
    return git(upstream, "rev-parse", "HEAD~1")


@pytest.fixture
def daemon(upstream: Path) -> Iterator[str]:
    """A real git server on the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *("git", "daemon", "--reuseaddr", "--export-all", "--verbose"),
            *("--listen=127.0.0.1", f"--port={port}", f"--base-path={upstream.parent}"),
        ],
        env=ENV,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    if "Ready" not in process.stderr.readline():
        process.wait()
        process.stderr.close()
        pytest.skip("git daemon does not start here")
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield f"git://127.0.0.1:{port}/upstream"
    os.killpg(process.pid, 15)
    process.wait()
    process.stderr.close()


@pytest.fixture
def plain_http(upstream: Path) -> Iterator[str]:
    """The repository as plain files over HTTP: a server that cannot give one commit alone."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(upstream))  # type: ignore[arg-type]  # as given

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/.git"
        server.shutdown()


def export(url: str, commit_id: str, tmp_path: Path, *, subdir: str = "", name: str = "t") -> Path:
    target = tmp_path / name
    target.mkdir()
    export_commit(url, commit_id, subdir, str(target), str(tmp_path / "cache"))
    return target


def assert_nothing_of_the_future(workspace: Path) -> None:
    assert git(workspace, "log", "--all", "--reflog", "--format=%s") == "base"
    assert git(workspace, "reflog") == ""
    assert git(workspace, "log", "--format=%at %ct") == "946684800 946684800"
    assert git(workspace, "remote") == ""
    assert git(workspace, "tag") == ""
    assert git(workspace, "stash", "list") == ""
    assert git(workspace, "fsck", "--unreachable", "--no-reflogs", "--lost-found") == ""
    assert git(workspace, "status", "--porcelain") == ""
    assert git(workspace, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    repository = workspace / ".git"
    for leftover in (
        "packed-refs",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "logs",
        "shallow",
        "hooks",
        "objects/info/alternates",
        "COMMIT_EDITMSG",
        "modules",
    ):
        assert not (repository / leftover).exists(), leftover
    kinds = git(workspace, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    assert sum(" commit " in line for line in kinds) == 1
    ids = [line.split()[0] for line in kinds]
    contents = [git(workspace, "cat-file", "-p", object_id) for object_id in ids]
    assert not any("SOLUTION" in content for content in contents)
    assert "upstream" not in (repository / "config").read_text()


@pytest.mark.parametrize("kind", ["path", "file", "bare", "worktree"])
def test_a_local_commit_becomes_a_fresh_repository(
    kind: str, upstream: Path, tmp_path: Path
) -> None:
    url = str(upstream)
    if kind == "file":
        url = f"file://{upstream}"
    if kind == "bare":
        git(tmp_path, "clone", "-q", "--bare", str(upstream), "bare.git")
        url = str(tmp_path / "bare.git")
    if kind == "worktree":
        git(upstream, "worktree", "add", "-q", "--detach", str(tmp_path / "wt"))
        url = str(tmp_path / "wt")
    workspace = export(url, bug_of(upstream), tmp_path)
    assert {p.name for p in workspace.iterdir()} == {"a", "sub"}
    assert (workspace / "a").read_text() == "bug"
    begin_repository(str(workspace))
    assert_nothing_of_the_future(workspace)


@pytest.mark.parametrize("server", ["daemon", "plain_http"])
def test_a_fetched_commit_becomes_a_fresh_repository_and_is_kept(
    server: str, upstream: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(server)
    bug = bug_of(upstream)
    workspace = export(url, bug, tmp_path)
    begin_repository(str(workspace))
    assert (workspace / "a").read_text() == "bug"
    assert_nothing_of_the_future(workspace)
    shutil.rmtree(upstream)
    again = export(url, bug, tmp_path, name="offline")
    assert (again / "a").read_text() == "bug"
    short = export(url, bug[:10], tmp_path, name="short")
    assert (short / "a").read_text() == "bug"
    with pytest.raises(SourceError, match="cannot fetch commit"):
        export(url, "f" * 40, tmp_path, name="gone")


def test_one_commit_is_fetched_alone_and_the_rest_only_for_an_abbreviated_id(
    daemon: str, upstream: Path, tmp_path: Path
) -> None:
    export(daemon, bug_of(upstream), tmp_path)
    (store,) = (tmp_path / "cache" / "git").glob("*.git")
    assert git(store, "log", "--all", "--format=%s") == "bug"
    past = git(upstream, "rev-parse", "HEAD~2")
    assert (export(daemon, past[:12], tmp_path, name="p") / "a").read_text() == "1"
    with pytest.raises(SourceError, match="has no commit deadbee"):  # a branch is called so
        export(daemon, "deadbee", tmp_path, name="b")


def test_two_processes_may_want_the_same_commit(
    daemon: str, upstream: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; from assay.tasks.repositories import export_commit; "
        "export_commit(sys.argv[1], sys.argv[2], '', sys.argv[3], sys.argv[4])"
    )
    running: list[subprocess.Popen[bytes]] = []
    for number in range(3):
        target = tmp_path / f"p{number}"
        target.mkdir()
        arguments = [daemon, bug_of(upstream), str(target), str(tmp_path / "cache")]
        running.append(subprocess.Popen([sys.executable, "-c", code, *arguments]))
    assert [process.wait() for process in running] == [0, 0, 0]
    assert all((tmp_path / f"p{n}" / "a").read_text() == "bug" for n in range(3))


def test_a_subdir_is_all_there_is(upstream: Path, tmp_path: Path) -> None:
    workspace = export(str(upstream), bug_of(upstream), tmp_path, subdir="sub")
    assert [p.name for p in workspace.iterdir()] == ["b"]
    with pytest.raises(SourceError, match="has no directory 'nope'"):
        export(str(upstream), bug_of(upstream), tmp_path, subdir="nope", name="u")
    with pytest.raises(SourceError, match="has no directory 'a'"):
        export(str(upstream), bug_of(upstream), tmp_path, subdir="a", name="v")


def test_the_commit_depends_on_the_files_alone(upstream: Path, tmp_path: Path) -> None:
    ids: list[str] = []
    for name in ("x", "y"):
        workspace = export(str(upstream), bug_of(upstream), tmp_path, name=name)
        begin_repository(str(workspace))
        ids.append(git(workspace, "rev-parse", "HEAD"))
    assert ids[0] == ids[1]


def test_hostile_configuration_hooks_and_filters_are_not_run(
    upstream: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    evil.chmod(0o755)
    attributes = "* filter=evil diff=evil\n*.x filter=lfs\n"
    bug = commit(upstream, "attributes", **{".gitattributes": attributes, "f.x": "pointer"})
    for key in (
        "filter.evil.smudge",
        "filter.evil.clean",
        "core.fsmonitor",
        "core.sshCommand",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
        "core.gitProxy",
        "filter.lfs.smudge",
        "filter.lfs.process",
        "gpg.program",
    ):
        git(upstream, "config", key, str(evil))
    git(upstream, "config", "core.hooksPath", str(tmp_path / "hooks"))
    git(upstream, "config", "remote.origin.promisor", "true")
    git(upstream, "config", "remote.origin.url", f"ext::{evil}")
    git(upstream, "config", "commit.gpgSign", "true")
    for folder in (tmp_path / "hooks", upstream / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in ("post-checkout", "pre-commit", "post-commit", "reference-transaction"):
            shutil.copy(evil, folder / hook)
    mark.unlink(missing_ok=True)
    assert head_commit(str(upstream)) == bug
    workspace = export(str(upstream), bug, tmp_path)
    begin_repository(str(workspace))
    assert (workspace / "f.x").read_text() == "pointer"
    assert not mark.exists()


def test_the_users_own_configuration_is_not_read(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        f'[core]\n\tfsmonitor = "touch {mark}; false"\n\thooksPath = {tmp_path}\n'
        f"[init]\n\ttemplateDir = {tmp_path}\n"
    )
    for hook in ("pre-commit", "post-commit", "reference-transaction"):
        (tmp_path / hook).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (tmp_path / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    workspace = export(str(upstream), bug_of(upstream), tmp_path)
    begin_repository(str(workspace))
    assert not mark.exists()
    assert not (tmp_path / "elsewhere").exists()


def test_links_out_and_submodules_are_left_out(upstream: Path, tmp_path: Path) -> None:
    (upstream / "out").symlink_to("/etc/passwd")
    (upstream / "up").symlink_to("../../x")
    (upstream / "in").symlink_to("a")
    (upstream / "__pycache__").mkdir()
    (upstream / "__pycache__" / "out").symlink_to("/etc/passwd")
    git(upstream, "update-index", "--add", "--cacheinfo", f"160000,{bug_of(upstream)},module")
    (upstream / ".gitmodules").write_text('[submodule "m"]\n\tpath = module\n\turl = ../x\n')
    git(upstream, "add", "out", "up", "in", "-f", "__pycache__", ".gitmodules")
    git(upstream, "commit", "-q", "-m", "links")
    workspace = export(str(upstream), git(upstream, "rev-parse", "HEAD"), tmp_path)
    links = [str(p.relative_to(workspace)) for p in workspace.rglob("*") if p.is_symlink()]
    assert links == ["in"]
    assert not list((workspace / "module").iterdir())
    begin_repository(str(workspace))
    assert git(workspace, "status", "--porcelain") == ""


def test_the_head_of_a_repository_is_found_in_every_form(upstream: Path, tmp_path: Path) -> None:
    head = git(upstream, "rev-parse", "HEAD")
    assert head_commit(str(upstream)) == head
    git(upstream, "pack-refs", "--all")
    assert head_commit(str(upstream)) == head
    git(upstream, "checkout", "-q", "--detach", "HEAD~1")
    assert head_commit(str(upstream)) == git(upstream, "rev-parse", "HEAD")
    git(upstream, "worktree", "add", "-q", "-b", "w", str(tmp_path / "wt"))
    assert head_commit(str(tmp_path / "wt")) == git(upstream, "rev-parse", "HEAD")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="is not a git repository"):
        head_commit(str(tmp_path / "empty"))
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(SourceError, match="has no commit yet"):
        head_commit(str(tmp_path / "empty"))


def test_what_cannot_be_fetched_is_an_error_that_keeps_passwords_to_itself(
    upstream: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="has no commit") as caught:
        export(str(upstream), "f" * 40, tmp_path)
    assert caught.value.hint
    with pytest.raises(SourceError, match="cannot fetch") as caught:
        export("http://user:hunter2@127.0.0.1:9/x.git", "f" * 40, tmp_path, name="u")
    assert "hunter2" not in str(caught.value)
    assert caught.value.hint


def test_a_command_hidden_in_a_url_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for number, url in enumerate((f"ext::touch {mark}", f"--upload-pack=touch {mark}")):
        with pytest.raises(SourceError):
            export(url, "f" * 40, tmp_path, name=f"u{number}")
    assert not mark.exists()


def test_git_that_hangs_is_stopped_with_all_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "FETCH_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(SourceError, match="more than"):
            export(url, "f" * 40, tmp_path)
        connection, _ = silent.accept()
        connection.settimeout(20.0)
        with connection:
            while connection.recv(65536):  # it ends only when the child that fetches is gone
                pass
