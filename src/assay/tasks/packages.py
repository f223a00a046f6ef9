"""Source distributions of packages: found in an index, fetched, proven to be the pinned ones, kept.

Nothing of them is run.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import html.parser
import os
import re
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from assay.errors import SourceError
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.tasks.archives import ARCHIVES

DEFAULT_INDEX = "https://pypi.org/simple"
"""Where pip and uv look when nothing else is configured."""

_MAX_PAGE = 64 << 20
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where packages are looked for.

    Attributes:
        indexes: URLs of simple indexes, first choice first.
        find_links: Directories or pages with links to files.
        cert: File of certificates to trust, or an empty string for the system's.
        timeout_s: Seconds that a connection may be silent.
    """

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    cert: str = ""
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file of a package.

    Attributes:
        url: Where it is.
        filename: Its name.
        sha256: Its hash as the index has it, or an empty string.
    """

    url: str
    filename: str
    sha256: str = ""


def read_settings(environ: Mapping[str, str] = os.environ) -> IndexSettings:
    """Read how pip, or where pip is not told uv, is set up: variables, then pip's files."""
    options = _pip_files(environ)
    for name in ("index-url", "extra-index-url", "find-links", "no-index", "cert", "timeout"):
        variables = {"timeout": "PIP_DEFAULT_TIMEOUT"}
        variable = variables.get(name, "PIP_" + name.replace("-", "_").upper())
        if variable in environ:
            options[name] = environ[variable]
    first = options.get("index-url") or _uv_value(environ, "UV_DEFAULT_INDEX", "UV_INDEX_URL")
    extra = options.get("extra-index-url") or _uv_value(environ, "UV_INDEX", "UV_EXTRA_INDEX_URL")
    links = options.get("find-links") or environ.get("UV_FIND_LINKS", "").replace(",", " ")
    indexes: list[str] = []
    if options.get("no-index", "").lower() not in ("1", "true", "yes", "on"):
        indexes = [first or DEFAULT_INDEX, *extra.split()]
    timeout = options.get("timeout", "")
    return IndexSettings(
        indexes=tuple(indexes),
        find_links=tuple(links.split()),
        cert=options.get("cert") or environ.get("SSL_CERT_FILE", ""),
        timeout_s=float(timeout) if re.fullmatch(r"[1-9]\d{0,5}", timeout) else 60.0,
    )


def links_of(project: str, settings: IndexSettings) -> Iterator[PackageFile]:
    """Every file that the indexes have of a project, first choice first."""
    for place in settings.find_links:
        yield from _links_at(place, settings, is_index=False)
    name = re.sub(r"[-_.]+", "-", project).lower()
    for index in settings.indexes:
        yield from _links_at(f"{index.rstrip('/')}/{name}/", settings, is_index=True)


def open_url(url: str, settings: IndexSettings) -> tuple[IO[bytes], str, str]:
    """Open an http, https or file URL.

    Returns:
        The open response, the URL that it came from, and its content type.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return _open_file(path / "index.html" if path.is_dir() else path), url, "text/html"
    if parts.scheme not in ("http", "https"):
        raise SourceError(f"{shown_url(url)} is neither http, https nor file")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
    request = urllib.request.Request(bare, headers={"Accept": _ACCEPT, "User-Agent": "assay"})  # noqa: S310
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        token = base64.b64encode(pair.encode()).decode()
        # Unredirected: a redirect elsewhere must not carry the password along.
        request.add_unredirected_header("Authorization", f"Basic {token}")
    trust = ssl.create_default_context(cafile=settings.cert or None)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust))
    try:
        answer = opener.open(request, timeout=settings.timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise FileNotFoundError(shown_url(url)) from error
        raise SourceError(f"{shown_url(url)} answered {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        hint = "is the network up, and is the index of pip set up right?"
        raise SourceError(f"cannot reach {shown_url(url)}: {reason}", hint=hint) from error
    return answer, answer.url, answer.headers.get_content_type()


def shown_url(url: str) -> str:
    """A URL without the name and password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _open_file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _links_at(place: str, settings: IndexSettings, *, is_index: bool) -> Iterator[PackageFile]:
    folder = Path(unquote(urlsplit(place).path) if place.startswith("file:") else place)
    if not is_index and "://" not in place.replace("file://", "") and folder.is_dir():
        yield from (PackageFile(p.absolute().as_uri(), p.name) for p in sorted(folder.iterdir()))
        return
    url = place if "://" in place else folder.absolute().as_uri() + "/" * is_index
    try:
        response, final, kind = open_url(url, settings)
        with closing(response):
            page = response.read(_MAX_PAGE + 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"cannot read {shown_url(url)}: {error}") from error
    if len(page) > _MAX_PAGE:
        raise SourceError(f"{shown_url(url)} is larger than {_MAX_PAGE >> 20} MiB")
    credentials = urlsplit(url).netloc.rpartition("@")[0] if is_index else ""
    for link in _json_links(page, final) if kind.endswith("json") else _html_links(page, final):
        # A page from the network has no business with files of this machine.
        if not link.url.startswith("file:") or url.startswith("file:"):
            yield _with_credentials(link, credentials, url)


def _with_credentials(link: PackageFile, credentials: str, index: str) -> PackageFile:
    """Files on the index's own host are fetched with the name and password of the index."""
    there, host = urlsplit(link.url), urlsplit(index).netloc.rpartition("@")[2]
    same = there.netloc == host and there.scheme == urlsplit(index).scheme
    if not credentials or not same:
        return link
    url = urlunsplit(there._replace(netloc=f"{credentials}@{host}"))
    return PackageFile(url, link.filename, link.sha256)


def _json_links(page: bytes, base: str) -> Iterator[PackageFile]:
    try:
        data = decode_json(page)
    except NotJsonError as error:
        raise SourceError(f"{shown_url(base)} is not JSON: {error}") from error
    files = data.get("files") if isinstance(data, dict) else None
    for file in files if isinstance(files, list) else []:
        if isinstance(file, dict) and isinstance(file.get("url"), str):
            hashes = file.get("hashes")
            known = hashes.get("sha256") if isinstance(hashes, dict) else None
            url = urljoin(base, str(file["url"]))
            yield PackageFile(url, str(file.get("filename")), str(known or "").lower())


def _html_links(page: bytes, base: str) -> Iterator[PackageFile]:
    anchors = _Anchors()
    anchors.feed(page.decode("utf-8", "replace"))
    for href in anchors.found:
        parts = urlsplit(urljoin(anchors.base or base, href))
        known = re.search(r"sha256=([0-9a-fA-F]{64})", parts.fragment)
        name = unquote(parts.path.rpartition("/")[2])
        yield PackageFile(
            urlunsplit(parts._replace(fragment="")), name, known[1].lower() if known else ""
        )


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(href)
        elif tag == "base" and href:
            self.base = href


def _pip_files(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip's configuration files say about indexes; the later of two files wins."""
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return {}
    home = Path(environ.get("HOME", "/nonexistent"))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [Path(p, "pip", "pip.conf") for p in environ.get("XDG_CONFIG_DIRS", "").split(":")]
    files = [
        *[file for file in shared if file.is_absolute()],
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / "Library" / "Application Support" / "pip" / "pip.conf",
        home / ".pip" / "pip.conf",
        config / "pip" / "pip.conf",
        Path(sys.prefix, "pip.conf"),
        *([Path(own)] if own else []),
    ]
    options: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, "utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise SourceError(f"cannot read {file}: {error}") from error
        for section in ("global", "install", "download"):
            if parser.has_section(section):
                options.update(parser.items(section))
    return options


def _uv_value(environ: Mapping[str, str], *names: str) -> str:
    """The first of uv's variables that is set; ``name=URL`` loses its name."""
    values = next((environ[name] for name in names if environ.get(name)), "")
    return " ".join(re.sub(r"^[A-Za-z0-9_-]+=", "", value) for value in values.split())


MAX_ARCHIVE_BYTES = 512 << 20
"""Size of a source distribution."""


def fetch_sdist(
    requirement: str,
    sha256: str | None,
    cache_dir: str,
    settings: IndexSettings | None = None,
) -> str:
    """Fetch a source distribution, or find it among those kept from before."""
    if sha256 is not None and (kept := _kept(sha256.lower(), cache_dir)):
        return kept
    settings = settings or read_settings()
    project, _, version = (part.strip() for part in requirement.partition("=="))
    link = _find(project, version, (sha256 or "").lower(), settings)
    if link is None:
        places = [shown_url(place) for place in (*settings.indexes, *settings.find_links)]
        raise SourceError(
            f"no source distribution of {requirement} in {', '.join(places) or 'any index'}",
            hint="is the version right, and does the package publish an sdist?",
        )
    actual, archive = _download(link, cache_dir, settings)
    if sha256 is None:
        hint = f"if you trust it, pin it: sha256: {actual}"
        raise SourceError(f"{requirement} has no sha256 (found {link.filename})", hint=hint)
    if actual != sha256.lower():
        raise SourceError(
            f"{link.filename} from {shown_url(link.url)} has sha256 {actual}, "
            f"but the case pins {sha256.lower()}",
            hint="do not run it unless you know why it changed",
        )
    return archive


def _find(project: str, version: str, sha256: str, settings: IndexSettings) -> PackageFile | None:
    """The file with the pinned hash as soon as an index tells of it, else the first of all."""
    first: PackageFile | None = None
    for link in links_of(project, settings):
        if not _is_sdist(link.filename, project, version):
            continue
        if sha256 and link.sha256 == sha256:
            return link
        first = first or link
    return first


def _kept(sha256: str, cache_dir: str) -> str:
    folder = Path(cache_dir, "sdists", sha256)
    for archive in sorted(folder.glob("[!.]*")):
        with archive.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == sha256:
                return str(archive)
        archive.unlink(missing_ok=True)  # damaged: fetch it anew
    return ""


def _download(link: PackageFile, cache_dir: str, settings: IndexSettings) -> tuple[str, str]:
    """Fetch a file and keep it under its hash, which appears only when it is whole."""
    folder = Path(cache_dir, "sdists")
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    try:
        response, _, _ = open_url(link.url, settings)
        with closing(response), tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as scratch:
            part = Path(scratch, link.filename)
            with part.open("wb") as stream:
                while block := response.read(1 << 20):
                    size += len(block)
                    if size > MAX_ARCHIVE_BYTES:
                        limit = f"{MAX_ARCHIVE_BYTES >> 20} MiB"
                        raise SourceError(f"{link.filename} is larger than {limit}")
                    digest.update(block)
                    stream.write(block)
            final = folder / digest.hexdigest() / link.filename
            final.parent.mkdir(exist_ok=True)
            part.replace(final)
    except OSError as error:
        raise SourceError(f"cannot fetch {shown_url(link.url)}: {error}") from error
    return digest.hexdigest(), str(final)


def _is_sdist(filename: str, project: str, version: str) -> bool:
    """Whether a file name is that of a source distribution of a version."""
    ending = next((e for e in ARCHIVES if filename.endswith(e)), "")
    stem = filename.removesuffix(ending)
    wanted = (_plain(project), _plain(version))
    # No path fits, because neither a name nor a version that was read from a case holds a slash.
    # Both names and versions may hold hyphens, so every one of them may be the one between.
    return bool(ending) and any(
        (_plain(stem[: match.start()]), _plain(stem[match.end() :])) == wanted
        for match in re.finditer("-", stem)
    )


def _plain(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()
