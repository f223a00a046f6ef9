"""Source distributions: found as pip would, proven by their hash, and never run."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.errors import SourceError
from assay.tasks import packages
from assay.tasks.packages import IndexSettings, fetch_sdist, links_of, read_settings
from tests.written_files import write_files


def sdist(name: str = "pkg-1.0", **files: str) -> bytes:
    """A source distribution whose set-up would be noticed if it ran."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for file, text in {"setup.py": "raise SystemExit('executed')", **files}.items():
            info = tarfile.TarInfo(f"{name}/{file}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()


@dataclass
class Index:
    """A package index on the loopback."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    needs: str = ""
    url: str = ""

    def settings(self) -> IndexSettings:
        return IndexSettings(indexes=(f"{self.url}/simple",), timeout_s=20.0)

    def fetch(self, sha: str | None, cache: Path, wanted: str = "pkg==1.0") -> Path:
        return Path(fetch_sdist(wanted, sha, str(cache), self.settings()))

    def html(self, project: str, *hrefs: str) -> None:
        anchors = "".join(f'<a href="{href}">{href}</a>\n' for href in hrefs)
        page = f"<!DOCTYPE html><html><body>{anchors}</body></html>".encode()
        self.pages[f"/simple/{project}/"] = ("text/html; charset=utf-8", page)

    def json(self, project: str, *files: dict[str, object]) -> None:
        page = json.dumps({"meta": {"api-version": "1.0"}, "name": project, "files": files})
        self.pages[f"/simple/{project}/"] = ("application/vnd.pypi.simple.v1+json", page.encode())

    def file(self, path: str, content: bytes) -> str:
        self.pages[path] = ("application/octet-stream", content)
        return hashlib.sha256(content).hexdigest()

    def serve(self, content: bytes) -> str:
        """The archive of pkg 1.0; its SHA-256."""
        self.html("pkg", "/files/pkg-1.0.tar.gz")
        return self.file("/files/pkg-1.0.tar.gz", content)


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sign = self.headers.get("Authorization", "")
            served.asked.append((self.path, sign))
            if served.needs and sign != served.needs:
                self.send_error(401)
                return
            kind, content = served.pages.get(self.path, ("", b""))
            if kind == "redirect":
                self.send_response(302)
                self.send_header("Location", content.decode())
            elif kind:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
            else:
                self.send_response(404)
                content = b""
            self.end_headers()
            if kind != "redirect":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield served
        server.shutdown()


def test_a_pinned_archive_is_found_in_html_and_kept(index: Index, tmp_path: Path) -> None:
    content = sdist()
    sha = index.file("/files/pkg-1.0.tar.gz", content)
    index.html(
        "pkg",
        "../../files/pkg-0.9.tar.gz",
        "../../files/pkg-1.0-py3-none-any.whl",
        f"../../files/pkg-1.0.tar.gz#sha256={sha}",
    )
    archive = index.fetch(sha, tmp_path, "Pkg==1.0")
    assert archive.read_bytes() == content
    index.pages.clear()
    asked = len(index.asked)
    assert index.fetch(sha.upper(), tmp_path, "pkg == 1.0") == archive
    assert len(index.asked) == asked, "what is kept needs no network"


def test_a_pinned_archive_is_found_in_json(index: Index, tmp_path: Path) -> None:
    sha = index.file("/f/a_b.c-1.0.zip", b"zip")
    other = index.file("/f/a_b.c-1.0.tar.gz", b"tar")
    tar_file, zip_file = "/f/a_b.c-1.0.tar.gz", "/f/a_b.c-1.0.zip"
    index.json(
        "a-b-c",
        {"filename": "a_b.c-1.0.tar.gz", "url": tar_file, "hashes": {"sha256": other}},
        {"filename": "a_b.c-1.0.zip", "url": index.url + zip_file, "hashes": {"sha256": sha}},
    )
    archive = index.fetch(sha, tmp_path, "A-B-C==1.0")
    assert archive.name == "a_b.c-1.0.zip", "the file with the pinned hash is chosen"


def test_without_its_hash_an_archive_is_refused_and_what_to_pin_is_said(
    index: Index, tmp_path: Path
) -> None:
    sha, pinned = index.serve(sdist()), "a" * 64
    with pytest.raises(SourceError, match=f"pin it: sha256: {sha}"):
        index.fetch(None, tmp_path)
    for href in ("/files/pkg-1.0.tar.gz", f"/files/pkg-1.0.tar.gz#sha256={pinned}"):
        index.html("pkg", href)
        with pytest.raises(SourceError) as caught:
            index.fetch(pinned, tmp_path)
        assert sha in str(caught.value)
        assert pinned in str(caught.value)


def test_a_damaged_kept_archive_is_fetched_anew(index: Index, tmp_path: Path) -> None:
    content = sdist()
    sha = index.serve(content)
    archive = index.fetch(sha, tmp_path)
    archive.write_bytes(b"tampered")
    again = index.fetch(sha, tmp_path)
    assert again.read_bytes() == content


@pytest.mark.parametrize(
    ("filename", "requirement", "fits"),
    [
        ("pkg-1.0.tar.gz", "pkg==1.0", True),
        ("a-b-1.0.tar.gz", "A.B==1.0", True),
        ("pkg-1.0-1.tar.gz", "pkg==1.0-1", True),
        ("pkg-1.0.1.tar.gz", "pkg==1.0", False),
        ("pkg-extra-1.0.tar.gz", "pkg==1.0", False),
        ("pkg-1.0.tar.gz.asc", "pkg==1.0", False),
        ("pkg-1.0-py3-none-any.whl", "pkg==1.0", False),
    ],
)
def test_only_the_version_s_own_archive_fits(
    filename: str, requirement: str, *, fits: bool, tmp_path: Path
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / filename).write_bytes(b"x")
    settings = IndexSettings(indexes=(), find_links=(str(links),))
    sha = hashlib.sha256(b"x").hexdigest()
    if fits:
        archive = fetch_sdist(requirement, sha, str(tmp_path / "c"), settings)
        assert Path(archive).name == filename
    else:
        with pytest.raises(SourceError, match="no source distribution of"):
            fetch_sdist(requirement, sha, str(tmp_path / "c"), settings)


def test_an_index_without_the_project_is_passed_over_and_one_may_be_a_directory(
    index: Index, tmp_path: Path
) -> None:
    files = {"pkg-1.0.tar.gz": b"x", "index.html": '<a href="pkg-1.0.tar.gz">x</a>'}
    write_files(tmp_path / "simple/pkg", files)
    sha, nowhere = hashlib.sha256(b"x").hexdigest(), (tmp_path / "none").as_uri()
    places = (f"{index.url}/other", nowhere, (tmp_path / "simple").as_uri())
    settings = IndexSettings(indexes=places, find_links=(str(tmp_path / "none"),))
    assert Path(fetch_sdist("pkg==1.0", sha, str(tmp_path / "c"), settings)).read_bytes() == b"x"


def test_a_name_with_a_path_in_it_cannot_leave_the_cache(index: Index, tmp_path: Path) -> None:
    sha = index.file("/f", b"x")
    index.json("pkg", {"filename": "../../../pkg-1.0.tar.gz", "url": "/f", "hashes": {}})
    with pytest.raises(SourceError, match="no source distribution"):
        index.fetch(sha, tmp_path / "a" / "b" / "c")
    assert not list(tmp_path.rglob("*.tar.gz"))


def test_a_page_from_the_network_cannot_name_files_of_this_machine(
    index: Index, tmp_path: Path
) -> None:
    (tmp_path / "pkg-1.0.tar.gz").write_bytes(b"secret")
    index.html("pkg", (tmp_path / "pkg-1.0.tar.gz").as_uri())
    assert not list(links_of("pkg", index.settings()))
    index.html("pkg", "/moved/pkg-1.0.tar.gz")
    index.pages["/moved/pkg-1.0.tar.gz"] = (
        "redirect",
        (tmp_path / "pkg-1.0.tar.gz").as_uri().encode(),
    )
    with pytest.raises(SourceError):
        index.fetch(None, tmp_path / "c")


def test_passwords_go_to_the_index_alone_and_into_no_message(index: Index, tmp_path: Path) -> None:
    sign = "Basic " + base64.b64encode(b"me:hunter2").decode()
    host = index.url.removeprefix("http://")
    settings = IndexSettings(indexes=(f"http://me:hunter2@{host}/simple",), timeout_s=20.0)
    index.needs = sign
    sha = index.file("/f/pkg-1.0.tar.gz", b"x")
    index.html("pkg", "/f/pkg-1.0.tar.gz")
    fetch_sdist("pkg==1.0", sha, str(tmp_path), settings)
    assert index.asked[-1] == ("/f/pkg-1.0.tar.gz", sign)
    index.needs = ""
    index.html("pkg", f"http://localhost:{host.partition(':')[2]}/f/pkg-1.0.tar.gz")
    with pytest.raises(SourceError) as caught:
        fetch_sdist("pkg==1.0", "b" * 64, str(tmp_path), settings)
    assert index.asked[-1] == ("/f/pkg-1.0.tar.gz", "")
    assert "hunter2" not in str(caught.value)
    index.pages["/simple/pkg/"] = (
        "redirect",
        f"http://localhost:{host.partition(':')[2]}/r".encode(),
    )
    with pytest.raises(SourceError):
        fetch_sdist("pkg==1.0", "b" * 64, str(tmp_path), settings)
    assert index.asked[-1] == ("/r", "")


def test_too_large_an_archive_is_not_kept(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "MAX_ARCHIVE_BYTES", 1000)
    sha = index.serve(b"x" * 2000)
    with pytest.raises(SourceError, match="is larger than"):
        index.fetch(sha, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


BROKEN: dict[str, Callable[[Index], None]] = {
    "server error": lambda i: i.pages.update({"/simple/pkg/": ("redirect", b"/simple/pkg/")}),
    "no json": lambda i: i.pages.update(
        {"/simple/pkg/": ("application/vnd.pypi.simple.v1+json", b"{")}
    ),
    "json of another shape": lambda i: i.pages.update(
        {"/simple/pkg/": ("application/json", b'{"files": [1, {"url": 2}]}')}
    ),
    "not there": lambda i: None,
    "unauthorised": lambda i: setattr(i, "needs", "Basic x"),
    "file not there": lambda i: i.html("pkg", "/f/pkg-1.0.tar.gz"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_index_is_an_error_of_the_source(name: str, index: Index, tmp_path: Path) -> None:
    BROKEN[name](index)
    with pytest.raises(SourceError):
        index.fetch("a" * 64, tmp_path)


def test_an_unreachable_index_says_what_to_look_at(tmp_path: Path) -> None:
    settings = IndexSettings(indexes=("http://127.0.0.1:9/simple",), timeout_s=5.0)
    with pytest.raises(SourceError, match="is the network up") as caught:
        fetch_sdist("pkg==1.0", "a" * 64, str(tmp_path), settings)
    assert "http://127.0.0.1:9/simple/pkg/" in str(caught.value)


def test_two_processes_may_fetch_the_same_archive(index: Index, tmp_path: Path) -> None:
    sha = index.serve(b"x" * 3_000_000)
    code = (
        "import sys; from assay.tasks.packages import fetch_sdist; "
        "from assay.tasks.packages import IndexSettings; "
        "fetch_sdist('pkg==1.0', sys.argv[1], sys.argv[2], IndexSettings(indexes=(sys.argv[3],)))"
    )
    arguments = [sha, str(tmp_path), f"{index.url}/simple"]
    running = [subprocess.Popen([sys.executable, "-c", code, *arguments]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [file.stat().st_size for file in files] == [3_000_000]


def test_the_settings_of_pip_are_read_variables_before_files_and_then_those_of_uv(
    tmp_path: Path,
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://file/simple\nextra-index-url =\n  https://one/s\n"
        "  https://two/s\ncert = /c.pem\n[install]\nfind-links = /wheels\n"
    )
    environ = {"PIP_CONFIG_FILE": str(config), "HOME": str(tmp_path)}
    settings = read_settings(environ)
    assert settings.indexes == ("https://file/simple", "https://one/s", "https://two/s")
    assert settings.find_links[-1:] == ("/wheels",)
    assert settings.cert == "/c.pem"
    own = read_settings({**environ, "PIP_INDEX_URL": "https://v/s", "PIP_EXTRA_INDEX_URL": ""})
    assert own.indexes == ("https://v/s",)
    assert read_settings({**environ, "PIP_NO_INDEX": "1"}).indexes == ()
    none = {"PIP_CONFIG_FILE": "/dev/null"}
    assert read_settings(none).indexes == (packages.DEFAULT_INDEX,)
    uv = {
        "UV_DEFAULT_INDEX": "https://uv/simple",
        "UV_INDEX": "corp=https://corp/simple https://more/simple",
    }
    places = ("https://uv/simple", "https://corp/simple", "https://more/simple")
    assert read_settings({**none, **uv}).indexes == places, "where pip has none"


@pytest.mark.slow
def test_a_real_source_distribution(tmp_path: Path) -> None:
    """The configured index of this machine; skipped where it cannot be reached."""
    with pytest.raises(SourceError) as caught:
        fetch_sdist("iniconfig==2.0.0", None, str(tmp_path))
    if "pin it: sha256: " not in caught.value.hint:
        pytest.skip(f"no index: {caught.value}")
    sha = caught.value.hint.rpartition(" ")[2]
    assert sha == "2d91e135bf72d31a410b17c16da610a82cb55f6b0477d1a902134b24a455b8b3"
    assert fetch_sdist("iniconfig==2.0.0", sha, str(tmp_path)).endswith("iniconfig-2.0.0.tar.gz")
