"""What a test command needs in the sandbox: an interpreter, our shims before it, the channel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, lru_cache
from importlib.util import cache_from_source
from pathlib import Path

from assay.errors import GraderError
from assay.frozen import frozen
from assay.graders.testing.commands import Invocation, read_beside
from assay.types.submission import UnpackedImage, Workspace

TOOLCHAINS = "/opt/toolchains"
"""Where the sandbox shows toolchains."""

_SHOWN = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_ASK_SECONDS = 30.0
_SHARED = (".local", "local", "opt", "homebrew")


@frozen(kw_only=True)
class Toolchain:
    """What a command needs beside the system's own programs."""

    path_entries: tuple[str, ...] = ()
    # What must be shown for them, as (source, target) pairs; read only.
    mounts: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()


@frozen
class _Kind:
    """A language's tools: its main program, what else needs it, where its root is, variables."""

    program: str
    users: tuple[str, ...]
    root: Callable[[str], Path]
    env: Mapping[str, str]


def _ask(*argv: str) -> Path:
    """A path that a program prints about itself; the program's own place if it prints none."""
    try:
        told = subprocess.run(
            argv, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True, cwd="/"
        ).stdout.strip()
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"{' '.join(argv)} has not answered within {_ASK_SECONDS:g} s",
            hint="run it by hand once: a toolchain that is still being installed takes long",
        ) from None
    except (OSError, subprocess.SubprocessError, ValueError):
        told = ""
    return Path(os.path.realpath(told or Path(os.path.realpath(argv[0])).parent.parent))


def _above(program: str) -> Path:
    return Path(os.path.realpath(program)).parent.parent


_KINDS: Mapping[str, _Kind] = {
    "rust": _Kind(
        "rustc",
        ("cargo", "cargo-nextest"),
        # rustup's own programs only choose a toolchain, by settings in the user's home.
        lambda program: _ask(program, "--print", "sysroot"),
        {"CARGO_HOME": "/tmp/cargo", "CARGO_NET_OFFLINE": "true"},  # noqa: S108 - in the sandbox
    ),
    "go": _Kind(
        "go",
        ("gotestsum",),
        lambda program: _ask(program, "env", "GOROOT"),
        {
            "GOCACHE": "/tmp/go-build",  # noqa: S108 - in the sandbox
            "GOPATH": "/tmp/go",  # noqa: S108 - in the sandbox
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
        },
    ),
    "node": _Kind(
        "node",
        ("npm", "npx", "yarn", "pnpm", "jest", "vitest", "mocha"),
        _above,
        {"npm_config_cache": "/tmp/npm", "npm_config_update_notifier": "false"},  # noqa: S108 - in the sandbox
    ),
    "java": _Kind("java", ("javac", "mvn", "mvnw", "gradle", "gradlew"), _above, {}),
    "maven": _Kind("mvn", (), _above, {}),
    "gradle": _Kind("gradle", (), _above, {"GRADLE_USER_HOME": "/tmp/gradle"}),  # noqa: S108 - in the sandbox
}
_WORD = re.compile(r"[\w./-]+")
_MAKES = frozenset({"make", "gmake", "just"})


def tools_for(cmd: str) -> Toolchain:
    """What the programs that a shell line names need."""
    named = {word.rpartition("/")[2] for word in _WORD.findall(cmd)}
    entries: list[str] = []
    mounts: list[tuple[str, str]] = []
    env: dict[str, str] = {}
    missing: list[str] = []
    for kind, one in _KINDS.items():
        if not named & {one.program, *one.users}:
            continue
        env |= one.env
        program = shutil.which(one.program)
        if program is None:
            missing.append(one.program)
            continue
        source, target, entry = _found(kind, program)
        if source:
            mounts.append((source, target))
            entries.append(entry)
        if kind == "node" and source:
            env["ASSAY_NODE"] = f"{entry}/node"
    return Toolchain(
        path_entries=tuple(entries), mounts=tuple(mounts), env=env, missing=tuple(missing)
    )


def _with_recipes(cmd: str, workspace: Workspace) -> str:
    """A line with what the makefile or the scripts of the source say that it runs."""
    words = _WORD.findall(cmd)
    files = [word for word in words if word.endswith(".sh")]
    if _MAKES.intersection(words):
        files += ["Makefile", "makefile", "GNUmakefile", "justfile"]
    return "\n".join([cmd, *(read_beside(workspace.source, "", name) for name in files)])


@cache
def _found(kind: str, program: str) -> tuple[str, str, str]:
    """Source, target and PATH entry of a toolchain; empty if the sandbox shows it.

    Kept by the program's place: to ask one where its root is may take a process.
    """
    one = _KINDS[kind]
    if _is_shown(program) and _is_shown(os.path.realpath(program)):
        return "", "", ""
    root = one.root(program)
    if _is_shown(str(root)):
        return "", "", ""
    target = f"{TOOLCHAINS}/{kind}"
    inner = Path("bin", one.program)
    if not os.access(root / inner, os.X_OK):
        # A program on its own, with nothing around it that would be its own.
        return os.path.realpath(program), f"{target}/bin/{one.program}", f"{target}/bin"
    if _is_anybodys(root):
        return str(root / inner), f"{target}/{inner}", f"{target}/bin"
    return str(root), target, f"{target}/bin"


def _is_shown(path: str) -> bool:
    return any(Path(path).is_relative_to(place) for place in _SHOWN)


def _is_anybodys(root: Path) -> bool:
    """Whether a directory holds more than one toolchain, such as a home or ``~/.local``."""
    home = Path(os.path.realpath(Path.home()))
    return home.is_relative_to(root) or root.name in _SHARED or len(root.parts) < 3


STARTS_PYTEST = re.compile(r"\bpy\.?test\b")
"""Found in a line that may run pytest."""

PYTEST_PARTS = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""What ``python3 -m pytest`` imports of those that are no part of Python."""

INSIDE = "/opt/assay/inside"
"""Where the sandbox shows the parts of ours that run inside."""

CHANNEL = "/opt/assay/channel"
"""Where it shows the socket of the channel."""

_PARTS = Path(__file__).parent / "inside"
_PACKAGES = "lib/python3.*/site-packages"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_SYSTEM = "/usr/bin/python3"
_SYSTEM_PACKAGES = (
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/dist-packages",
)


@frozen(kw_only=True)
class Interpreter:
    """A Python for the tests."""

    path: str
    # What must be shown there for it, as (source, target) pairs.
    mounts: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def find_python(workspace: Workspace, *, pytest: bool) -> Interpreter:
    """The Python that ``python3`` means: the case's own, assay's own, or the system's."""
    if workspace.image is not None:
        return _python_of(workspace.image, pytest=pytest)
    venv = workspace.env.get("VIRTUAL_ENV")
    if venv:
        has_pytest = has_module(workspace, "pytest") or has_editable_pytest(workspace)
        if pytest and not has_pytest:
            raise GraderError(
                "the case's environment has no pytest",
                hint="add it: environment: requirements: [pytest]",
            )
        return Interpreter(path=f"{venv}/bin/python")
    own = _own_packages()
    if not pytest or (own / "pytest" / "__init__.py").is_file():
        # Plugins that assay's installation happens to have must not change what a case means.
        env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        place, name = os.path.split(sys.executable)
        if ".." in Path(place).parts:  # as it was started; only where it is, is shown
            place = os.path.realpath(place)
        return Interpreter(path=f"{place}/{name}", mounts=tuple(own_mounts()), env=env)
    if os.access(_SYSTEM, os.X_OK) and _holds(_SYSTEM_PACKAGES, "pytest"):
        return Interpreter(path=_SYSTEM)
    raise GraderError(
        "no Python with pytest is at hand",
        hint="declare it in the case (environment: requirements: [pytest]), or install pytest "
        "beside assay",
    )


def _python_of(image: UnpackedImage, *, pytest: bool) -> Interpreter:
    hint = "install it there (container: {setup: [...]}), or name another: container: {python: ...}"
    if not image.python:
        raise GraderError("the case's image has no Python 3.8 or newer", hint=hint)
    if pytest and "pytest" not in image.modules:
        raise GraderError(f"{image.python} of the case's image has no pytest", hint=hint)
    return Interpreter(path=image.python)


def equipped(cmd: str, workspace: Workspace) -> Workspace:
    """The workspace with what a shell line needs beside the system's own programs.

    Toolchains that it names, and pytest: the case's own; where it declares no environment the
    system's, or else assay's. An image brings everything itself.
    """
    if workspace.image is not None:
        return workspace
    tools = tools_for(_with_recipes(cmd, workspace))
    env: dict[str, str] = {**tools.env, **workspace.env}
    places, mounts = [*tools.path_entries], [*tools.mounts]
    if _lends_pytest(cmd, workspace):
        # Plugins that assay's installation happens to have must not change what a case means.
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        places.insert(0, f"{sys.prefix}/bin")
        mounts += own_mounts()
    if not tools.env and not places:
        return workspace
    if places:
        env["PATH"] = ":".join([*places, env.get("PATH", _PATH)])
    taken = {target for _, target in workspace.mounts}
    added = (pair for pair in mounts if pair[1] not in taken)
    return replace(workspace, env=env, mounts=(*workspace.mounts, *added))


def _lends_pytest(cmd: str, workspace: Workspace) -> bool:
    """Whether a line runs pytest where there would be none without assay's own."""
    if not STARTS_PYTEST.search(cmd) or {"PATH", "VIRTUAL_ENV"} & set(workspace.env):
        return False
    has_own = (_own_packages() / "pytest" / "__init__.py").is_file()
    return has_own and not _holds(_SYSTEM_PACKAGES, "pytest")


def has_program(workspace: Workspace, name: str) -> bool | None:
    """Whether a program is on the PATH of a workspace; None where the submission may bring it.

    What an image has, only a shell in it can tell: False says no more than that it is not known.
    """
    places = _path_in(workspace).split(":")
    if any(place in ("", ".") or place.startswith(("/workspace", "./")) for place in places):
        return None
    if workspace.image is not None:
        return False
    return any(os.access(_on_host(f"{place}/{name}", workspace), os.X_OK) for place in places)


def has_editable_pytest(workspace: Workspace) -> bool:
    """Whether the case is pytest's own repository: its environment has pytest from the workspace.

    Then the runner itself is the submission's, which nothing in one process can prevent.
    """
    packages = _on_host(workspace.env.get("VIRTUAL_ENV", ""), workspace).glob(_PACKAGES)
    return any(
        any(place.glob("pytest-*.dist-info")) and not (place / "pytest").exists()
        for place in packages
    )


def surroundings(
    invocation: Invocation,
    cmd: str,
    workspace: Workspace,
    *,
    channel: str = "",
    apart: bool = False,
) -> Workspace:
    """The workspace with what a command needs that may report over the channel.

    ``channel``: The channel's socket; none by default, for those who show it to the judge alone.
    """
    has_image = workspace.image is not None
    line = f"{_with_recipes(cmd, workspace)} {invocation.program}"
    tools = Toolchain() if has_image else tools_for(line)
    missing = () if has_image else tools_for(invocation.program).missing
    if missing and "PATH" not in workspace.env:
        names = ", ".join(missing)
        raise GraderError(f"{cmd!r} needs {names}, not installed here", hint=f"install {names}")
    env, mounts = {**tools.env, **workspace.env}, dict[str, str]()
    mounts.update({target: source for source, target in (*workspace.mounts, *tools.mounts)})
    is_python = invocation.runner in ("pytest", "unittest")
    can_do_without = workspace.image is not None and not workspace.image.python and not is_python
    if apart or not (can_do_without or invocation.runner == "node"):
        python = find_python(workspace, pytest=invocation.runner == "pytest")
        mounts.update({target: source for source, target in python.mounts})
        env = {**python.env, **env, "ASSAY_PYTHON": python.path}
    places = [f"{INSIDE}/bin", *tools.path_entries, _path_in(workspace)]
    env["PATH"] = ":".join(places)
    _compile_parts()
    mounts[INSIDE] = str(_PARTS)
    if channel:
        mounts[CHANNEL] = channel
    shown = tuple((source, target) for target, source in mounts.items())
    return replace(workspace, env=env, mounts=shown)


def _path_in(workspace: Workspace) -> str:
    """The PATH of commands in a workspace."""
    return workspace.env.get("PATH", workspace.image.path if workspace.image else _PATH)


def _own_packages() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.prefix, "lib", version, "site-packages")


def own_mounts() -> Iterator[tuple[str, str]]:
    """Show assay's own interpreter where it is: its paths are absolute."""
    base = os.path.realpath(sys.base_prefix)
    places = {sys.prefix: os.path.realpath(sys.prefix), base: base, sys.base_prefix: base}
    for target, source in places.items():
        if not Path(target).is_relative_to("/usr"):
            yield source, target


def _on_host(path: str, workspace: Workspace) -> Path:
    """Where a path of the sandbox is on this machine."""
    for source, target in workspace.mounts:
        if Path(path).is_relative_to(target):
            return Path(source, Path(path).relative_to(target))
    return Path(path)


def has_module(workspace: Workspace, name: str) -> bool:
    """Whether the Python of a workspace, or else the system's, has a module installed."""
    if workspace.image is not None:
        return name in workspace.image.modules
    given = workspace.env.get("VIRTUAL_ENV")
    if not given:
        return _holds(_SYSTEM_PACKAGES, name)
    venv = _on_host(given, workspace)
    if _holds((f"{venv}/{_PACKAGES}",), name):
        return True
    try:
        settings = (venv / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = [[part.strip() for part in line.split("=", 1)] for line in settings.splitlines()]
    if ["include-system-site-packages", "true"] not in lines:
        return False
    homes = [Path(line[1]).parent for line in lines if line[0] == "home" and len(line) == 2]
    bases = (f"{home}/lib/python3.*/site-packages" for home in homes)
    return _holds((*_SYSTEM_PACKAGES, *bases), name)


def _holds(packages: Iterable[str], name: str) -> bool:
    forms = (f"{name}/__init__.py", f"{name}.py")
    places = (f"{place.lstrip('/')}/{form}" for place in packages for form in forms)
    return any(any(Path("/").glob(place)) for place in places)


@lru_cache(maxsize=1)
def _compile_parts() -> None:
    """Compile our parts where that was not done, or a Python like ours does it in every sandbox."""
    if sys.dont_write_bytecode:
        return
    for part in _PARTS.rglob("*.py"):
        compiled = Path(cache_from_source(str(part)))
        with suppress(OSError):  # an installation that cannot be written to stays as it is
            if not compiled.exists() or compiled.stat().st_mtime < part.stat().st_mtime:
                import py_compile

                py_compile.compile(str(part), quiet=2)
