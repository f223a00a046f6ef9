"""Container images as file systems: found and built by podman or docker, run by assay's sandbox.

An engine resolves an image's name to its id, pulls and builds; its files are unpacked once per id
into the cache. Whatever runs in them runs in the sandbox that everything else runs in, so that one
set of laws holds for both. See `docs/decisions/0017-container-images.md`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from assay.agents.presets import Installed, started
from assay.errors import InputError, ProvisionError, SandboxError
from assay.frozen import frozen
from assay.sandbox import Limits, Mount, open_inside, run_command_sync
from assay.scoring.json_safe import Json
from assay.tasks.blocks import ContainerSpec
from assay.tasks.case import Case
from assay.types.submission import UnpackedImage, Workspace

ENGINE = "ASSAY_CONTAINERS"
"""Variable that names the engine: podman, docker, or a path of one."""

MOST_BYTES = 64 << 30
"""Bytes of all files of an image."""

MOST_FILES = 4_000_000
"""Its files, directories and links."""

_INSTALL = f"apt-get install podman, or docker; or name one: {ENGINE}=/path/of/podman"
_SECONDS, _LONG_SECONDS = 60.0, 3600.0
_MOST_IDS = 1 << 31
_MOST_SETTINGS = 1 << 20
_NOT_HERE = re.compile(r"no such (?:image|object)|not known|not found", re.IGNORECASE)
_VARIABLE = re.compile(r"[^=\0]+")
_NUMBER = re.compile(r"[0-9]{1,10}")
_USER = re.compile(r"[\w.-]*(?::[\w.-]+)?")
_PATHS = re.compile(r"\s(/\S+)\s+\(0x")
_ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_ARCHIVE, _SCRIPT = "/opt/image.tar", "/opt/unpack_image.py"
_ASKED = """\
import os, pkgutil, sys
if sys.version_info >= (3, 8):
    own = os.path.dirname(os.__file__)
    passed = ("", "/workspace", own, own + "/lib-dynload")
    names = {found.name for found in pkgutil.iter_modules([p for p in sys.path if p not in passed])}
    print("\\n".join([sys.executable, *sorted(names)]))
"""


@frozen
class ContainerEngine:
    """podman or docker, as it is found here.

    Attributes:
        path: The program.
    """

    path: str

    def ask(self, *words: str, seconds: float = _SECONDS) -> str:
        """What it prints.

        Raises:
            ProvisionError: With what it complains about.
        """
        command = " ".join([Path(self.path).name, *words[:3]])
        try:
            done = subprocess.run(
                [self.path, *words],
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ProvisionError(f"{command} took longer than {seconds:g} s") from None
        except OSError as error:
            raise ProvisionError(f"{self.path} cannot be started: {error}", hint=_INSTALL) from None
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            # Not podman's log of its tries.
            said = "\n".join([line for line in lines if not line.startswith("time=")][-3:])[-500:]
            raise ProvisionError(f"{command}: {said or f'exit status {done.returncode}'}")
        return done.stdout.decode("utf-8", "replace").strip()

    def find(self, name: str) -> str:
        """The id of an image that is here, as 64 hexadecimal digits; empty if it is not here.

        Raises:
            ProvisionError: The engine does not work.
        """
        if _ID.fullmatch(name) and Path(self.path).name == "podman":
            name = name.removeprefix("sha256:")
        try:
            told = self.ask("image", "inspect", "--format", "{{.Id}}", "--", name)
        except ProvisionError as error:
            if not _NOT_HERE.search(error.message):
                raise
            return ""
        found = _ID.fullmatch(told)
        if found is None:
            raise ProvisionError(f"{self.path} gives no id of {name!r}: {told[:100]!r}")
        return found[1]

    def workdir(self, name: str) -> str:
        """The working directory that an image which is here names; empty for none.

        Raises:
            ProvisionError: The image is not here.
        """
        return self.ask("image", "inspect", "--format", "{{.Config.WorkingDir}}", "--", name)


def find_engine() -> ContainerEngine:
    """The engine that is named, else podman, else docker.

    Raises:
        ProvisionError: There is none.
    """
    named = os.environ.get(ENGINE)
    for name in [named] if named else ["podman", "docker"]:
        if path := shutil.which(name):
            return ContainerEngine(path)
    what = f"{ENGINE} names {named!r}, which is no program" if named else "no podman and no docker"
    raise ProvisionError(f"images cannot be had: {what}", hint=_INSTALL)


def missing(case: Case) -> str:
    """What keeps a case's image from being used at once; empty for nothing. Pulls nothing."""
    spec = case.image
    if spec is None:
        return ""
    try:
        engine = find_engine()
        if engine.find(spec.image):
            return ""
    except ProvisionError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message
    pull = f"{Path(engine.path).name} pull {spec.image}"
    return f"the image {spec.image!r} is not here: it is pulled at the first run ({pull})"


def pinned(case: Case, cache: str, digest: str = "") -> Case:
    """The case with its image named by its id, and unpacked: a tag may move while agents work.

    Args:
        case: The case.
        cache: Directory that is shared by all cells.
        digest: The id, where it was found before; else it is looked up.

    Raises:
        ProvisionError: The image cannot be had or used.
    """
    if case.image is None:
        return case
    spec = replace(case.image, image=digest, setup=()) if digest else case.image
    image = prepare(spec, cache, case=case.id)
    return replace(case, container=replace(spec, image=image.digest, setup=()))


def prepare(spec: ContainerSpec, cache: str, *, case: str = "") -> UnpackedImage:
    """Find an image, else pull it; run its set-up; unpack it, unless that was done. Blocks.

    Args:
        spec: What the case says.
        cache: Directory that is shared by all cells.
        case: Id of the case, for messages.

    Raises:
        ProvisionError: It cannot be had, is no image for this machine, or is malformed.
    """
    try:
        home = Path(cache, "images")
        home.mkdir(parents=True, exist_ok=True)
        known = _ID.fullmatch(spec.image)
        digits = known[1] if known and not spec.setup and (home / known[1]).is_dir() else ""
        if not digits:
            engine = find_engine()
            digits = _resolve(engine, spec, home)
            _once(home / digits, lambda beside: _unpack(engine, digits, beside))
        used = home / f"{digits}.used"  # see `unpacked`
        if known and used.exists():
            used.touch()
        else:
            used.write_text("" if known else spec.image)
        return _read(home / digits, spec)
    except ProvisionError as error:
        where = f"case {case!r}: " if case else ""
        raise ProvisionError(
            f"{where}image {spec.image!r}: {error.message}", hint=error.hint
        ) from error
    except OSError as error:
        raise ProvisionError(f"image {spec.image!r} cannot be unpacked: {error}") from error


def _resolve(engine: ContainerEngine, spec: ContainerSpec, home: Path) -> str:
    digits = engine.find(spec.image)
    if not digits:
        try:
            engine.ask("pull", "--quiet", "--", spec.image, seconds=_LONG_SECONDS)
        except ProvisionError as error:
            hint = "correct the name, log in to its registry, or load it (podman load, import)"
            raise ProvisionError(error.message, hint=hint) from error
        digits = engine.find(spec.image)
    if not digits:
        raise ProvisionError(f"{engine.path} has pulled it, and does not know it")
    if not spec.setup:
        return digits
    made_of = hashlib.sha256(json.dumps([digits, *spec.setup]).encode()).hexdigest()
    kept = home / f"{made_of}.id"

    def build(beside: Path) -> None:
        user = _settings(engine, digits)["user"] or "0"
        with tempfile.TemporaryDirectory(prefix="assay-setup-") as place:
            # A tag of our own: not every engine starts from a bare id.
            base = f"localhost/assay-base:{digits[:16]}"
            engine.ask("tag", digits, base)
            lines = [f"RUN {json.dumps(['/bin/sh', '-c', line])}\n" for line in spec.setup]
            whole = [f"FROM {base}\n", "USER 0\n", *lines, f"USER {user}\n"]
            Path(place, "Containerfile").write_text("".join(whole))
            beside.write_text(build_image(engine, place, f"{place}/Containerfile"))

    _once(kept, build)
    made = kept.read_text().strip()
    if not (home / made).is_dir() and not engine.find(made):  # removed from both since
        kept.unlink()
        _once(kept, build)
        made = kept.read_text().strip()
    return made


def build_image(engine: ContainerEngine, context: str, file: str, tag: str = "") -> str:
    """Build an image, and return its id.

    Raises:
        ProvisionError: With the end of what the engine says.
    """
    with tempfile.TemporaryDirectory(prefix="assay-iid-") as place:
        words = ["build", "--quiet", "--iidfile", f"{place}/id", *(["--tag", tag] if tag else [])]
        engine.ask(*words, "--file", file, context, seconds=_LONG_SECONDS)
        found = _ID.fullmatch(Path(place, "id").read_text().strip())
    if found is None:
        raise ProvisionError(f"{engine.path} built no image of {file}")
    return found[1]


def _once(target: Path, make: Callable[[Path], None]) -> None:
    """Make a file or directory that is either whole or not there; no two processes make it."""
    if target.exists():
        return
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as beside:
            made = Path(beside, target.name)
            make(made)
            made.rename(target)


def _unpack(engine: ContainerEngine, digits: str, target: Path) -> None:
    """Write an image's files and settings; whatever they are, they were nobody's we trust."""
    settings = _settings(engine, digits)
    target.mkdir()
    root = target / "root"
    root.mkdir(mode=0o755)
    archive = target.parent / "image.tar"
    # A container that is never started: what it would see is what the image holds.
    made = engine.ask("create", "--pull=never", digits, "/bin/true", seconds=_LONG_SECONDS)
    container = made.splitlines()[-1]
    try:
        engine.ask("export", "--output", str(archive), container, seconds=_LONG_SECONDS)
    finally:
        engine.ask("rm", "--force", container)
    unpack_archive(archive, root)
    archive.unlink()
    user, home = _user(str(settings["user"]), root)
    (target / "image.json").write_text(json.dumps({**settings, "user": user, "home": home}))


def _settings(engine: ContainerEngine, digits: str) -> dict[str, Json]:
    """What an image's configuration says, checked: it may be anybody's."""
    told = json.loads(engine.ask("image", "inspect", "--", digits))
    found = cast("dict[str, Json]", told[0])
    size = found.get("Size")
    if isinstance(size, int) and size > MOST_BYTES:
        raise ProvisionError(f"it has {size >> 20} MiB, more than {MOST_BYTES >> 20}")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    if found.get("Os", "linux") != "linux" or found.get("Architecture", machine) != machine:
        what = f"{found.get('Os')}/{found.get('Architecture')}"
        raise ProvisionError(f"it is for {what}, and this machine is linux/{machine}")
    config = found.get("Config")
    config = config if isinstance(config, dict) else {}
    env: dict[str, Json] = {}
    for item in cast("list[Json]", config.get("Env") or []):
        name, _, text = str(item).partition("=")
        if not _VARIABLE.fullmatch(name) or "\0" in text:
            raise ProvisionError(f"its configuration has an impossible variable {item!r:.100}")
        env[name] = text
    user = str(config.get("User") or "")
    if not _USER.fullmatch(user):  # it becomes a line of a build
        raise ProvisionError(f"its user {user!r:.100} is no name")
    return {"env": env, "user": user}


def unpack_archive(archive: Path, root: Path) -> None:
    """Unpack a tar archive of nobody knows whom into a directory, in the sandbox.

    Raises:
        ProvisionError: It is damaged, too large, or leads out of the directory.
    """
    from assay.graders.testing.runners import own_mounts

    shown = {_ARCHIVE: str(archive), _SCRIPT: str(Path(__file__).with_name("unpack_image.py"))}
    shown |= {target: source for source, target in own_mounts()}
    result = run_command_sync(
        [sys.executable, "-I", "-S", _SCRIPT, _ARCHIVE, str(MOST_BYTES), str(MOST_FILES)],
        workspace=str(root),
        changes="keep",
        mounts=[Mount(source=source, target=target) for target, source in shown.items()],
        limits=Limits(wall_seconds=_LONG_SECONDS, file_bytes=MOST_BYTES),
    )
    if result.exit_code != 0:
        said = result.stderr.strip().rpartition("\n")[2][-300:]
        raise ProvisionError(f"its files cannot be unpacked: {said or result.status}")


def _user(named: str, root: Path) -> tuple[tuple[int, int], str]:
    """Who commands in an image run as, and that one's home, by its own list of users."""
    name, _, group = named.partition(":")
    name = name or "0"
    rows = _rows(root, "etc/passwd", 6)
    row = next((row for row in rows if name in (row[0], row[2])), None)
    if row is None and not _NUMBER.fullmatch(name):
        raise ProvisionError(f"its user {name!r} is not in its /etc/passwd")
    uid, gid, home = (row[2], row[3], row[5]) if row else (name, "0", "/")
    if group:
        found = next((one[2] for one in _rows(root, "etc/group", 3) if one[0] == group), group)
        gid = found
    for number in (uid, gid):
        if not _NUMBER.fullmatch(number) or int(number) >= _MOST_IDS:
            raise ProvisionError(
                f"its user {named or 'root'!r} has an impossible id {number!r:.50}"
            )
    return (int(uid), int(gid)), home if home.startswith("/") else "/"


def _rows(root: Path, file: str, least: int) -> list[list[str]]:
    try:
        with os.fdopen(open_inside(str(root), file, os.O_RDONLY), "rb") as stream:
            text = stream.read(_MOST_SETTINGS).decode("utf-8", "replace")
    except OSError:
        return []
    rows = (line.split(":") for line in text.replace("\0", "").splitlines())
    return [row for row in rows if len(row) >= least]


def _read(place: Path, spec: ContainerSpec) -> UnpackedImage:
    """An image that was unpacked, as a case wants it."""
    told = json.loads((place / "image.json").read_text())
    uid, gid = told["user"]
    image = UnpackedImage(
        digest=f"sha256:{place.name}",
        root=str(place / "root"),
        env=told["env"],
        user=(uid, gid),
        home=spec.home or told["home"],
        workdir=spec.workdir,
    )
    asked = hashlib.sha256(spec.python.encode()).hexdigest()[:16]
    kept = place.with_name(f"{place.name}.python-{asked}.json")
    _once(kept, lambda beside: _ask_python(image, spec.python, beside))
    python, *modules = json.loads(kept.read_text())
    if spec.home:
        image = replace(image, env={**image.env, "HOME": spec.home})
    return replace(image, python=python, modules=tuple(modules))


def _ask_python(image: UnpackedImage, python: str, target: Path) -> None:
    """Write down which Python an image has, and what is installed for it."""
    with tempfile.TemporaryDirectory(prefix="assay-nothing-") as nothing:
        try:
            result = run_command_sync(
                ["/bin/sh", "-c", 'exec "$1" -c "$2"', "sh", python, _ASKED],
                workspace=Workspace(path=nothing, image=image),
                limits=Limits(wall_seconds=_SECONDS, output_bytes=_MOST_SETTINGS),
            )
        except SandboxError as error:
            if "execvp" not in error.message:
                raise
            raise ProvisionError(
                "it has no /bin/sh, which commands are started by", hint="use one that has a shell"
            ) from error
    said = result.stdout.splitlines() if result.exit_code == 0 else []
    # What is in the workspace is the submission's, and judges nothing.
    inside = bool(said) and said[0].startswith("/") and not said[0].startswith("/workspace/")
    target.write_text(json.dumps(said if inside else [""]))


_START = (
    'command -v -- "$1" >/dev/null || { echo "there is none" >&2; exit 127; }; exec "$@" --help'
)


def why_it_does_not_start(agent: Installed, image: UnpackedImage) -> str:
    """What keeps an agent that people install from starting in an image; empty for nothing."""
    spec = agent.harness()
    start, _ = started(agent.program)
    with tempfile.TemporaryDirectory(prefix="assay-nothing-") as nothing:
        try:
            result = run_command_sync(
                ["/bin/sh", "-c", _START, "sh", *start],
                workspace=Workspace(path=nothing, image=image, env=spec.env),
                mounts=[Mount(source=path, target=path) for path in spec.mounts],
                limits=Limits(wall_seconds=_SECONDS),
            )
        except (InputError, SandboxError) as error:  # such as a mount where the sandbox has its own
            return error.message
    if result.exit_code == 0:
        return ""
    said = (result.stderr.strip() or result.stdout.strip()).rpartition("\n")[2][-300:]
    said = said.rpartition(f"{agent.program}: ")[2]
    return said or f"exit status {result.exit_code}"


_PROOF = "localhost/assay-doctor"


def prove(engine: ContainerEngine) -> str:
    """Make an image of this machine's shell, unpack it, run a command in it; say how. Blocks.

    Raises:
        ProvisionError: A step failed.
        SandboxError: The command could not be run.
    """
    version = engine.ask("--version").splitlines()[0]
    with tempfile.TemporaryDirectory(prefix="assay-doctor-") as place:
        archive = f"{place}/shell.tar"
        with tarfile.open(archive, "w", dereference=True) as tar:
            listed = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False)
            for path in {"/bin/sh", *_PATHS.findall(listed.stdout)}:
                tar.add(path, path.lstrip("/"))
        digits = engine.ask("import", archive, _PROOF).splitlines()[-1].removeprefix("sha256:")
        try:
            image = prepare(ContainerSpec(image=digits), f"{place}/cache")
            (nothing := Path(place, "workspace")).mkdir()
            result = run_command_sync(
                ["/bin/sh", "-c", "test ! -e /usr/bin/env && echo inside"],
                workspace=Workspace(path=str(nothing), image=image),
                limits=Limits(wall_seconds=_SECONDS),
            )
        finally:
            engine.ask("rmi", "--force", digits)
    if result.stdout != "inside\n":
        raise ProvisionError(f"a command in an image failed: {result.stderr.strip()[-300:]}")
    return f"{version} ({engine.path}); a command in an image took {result.seconds * 1000:.0f} ms"


def copy_workdir(image: UnpackedImage, target: str) -> None:
    """Copy what an image has at the place of the workspace: what an agent starts from. Blocks.

    Raises:
        ProvisionError: There is no such directory.
    """
    place = Path(image.root)
    for step in image.workdir.strip("/").split("/"):
        place /= step
        if place.is_symlink() or not place.is_dir():
            raise ProvisionError(f"the image has no directory {image.workdir}")
    try:
        shutil.copytree(place, target, symlinks=True)
    except (OSError, shutil.Error) as error:
        raise ProvisionError(f"cannot copy {image.workdir} of the image: {error}") from error
