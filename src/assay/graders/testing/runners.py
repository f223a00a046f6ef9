"""What a test command needs in the sandbox: an interpreter, our shims before it, the channel."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path

from assay.errors import GraderError
from assay.graders.testing.commands import Invocation
from assay.graders.testing.toolchains import tools_for
from assay.sandbox import Mount
from assay.types.submission import Workspace

__all__ = [
    "CHANNEL",
    "INSIDE",
    "Interpreter",
    "find_python",
    "has_editable_pytest",
    "has_module",
    "surroundings",
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python for the tests.

    Attributes:
        path: Where it stands in the sandbox.
        mounts: What must be shown there for it, as (source, target) pairs.
        env: Variables it needs.
    """

    path: str
    mounts: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def find_python(workspace: Workspace, *, pytest: bool) -> Interpreter:
    """The Python that ``python3`` means: the case's own, assay's own, or the system's.

    Args:
        workspace: Its ``VIRTUAL_ENV`` is the case's own environment.
        pytest: Whether it must have pytest.

    Raises:
        GraderError: If there is none, saying what to declare.
    """
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
        return Interpreter(path=sys.executable, mounts=tuple(_own_mounts()), env=env)
    if os.access(_SYSTEM, os.X_OK) and _holds(_SYSTEM_PACKAGES, "pytest"):
        return Interpreter(path=_SYSTEM)
    raise GraderError(
        "no Python with pytest is at hand",
        hint="declare it in the case (environment: requirements: [pytest]), or install pytest "
        "beside assay",
    )


def has_editable_pytest(workspace: Workspace) -> bool:
    """Whether the case is pytest's own repository: its environment has pytest from the workspace.

    Then the runner itself is the submission's, which nothing in one process can mend.
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
    channel: str,
    apart: bool = False,
) -> tuple[dict[str, str], list[Mount]]:
    """The variables and mounts of a command that may report over the channel.

    Args:
        invocation: What the command will start, as far as is known.
        cmd: The command.
        workspace: Its own variables and mounts are kept.
        channel: The socket on the host.
        apart: Whether the command is a judge's, which is handed a socket.

    Raises:
        GraderError: If the runner needs something that is not installed.
    """
    tools = tools_for(f"{cmd} {invocation.program}")
    missing = tools_for(invocation.program).missing
    if missing and "PATH" not in workspace.env:
        names = ", ".join(missing)
        raise GraderError(f"{cmd!r} needs {names}, not installed here", hint=f"install {names}")
    env, mounts = {**tools.env, **workspace.env}, dict[str, str]()
    mounts.update({target: source for source, target in (*workspace.mounts, *tools.mounts)})
    if invocation.runner != "node" or apart:
        python = find_python(workspace, pytest=invocation.runner == "pytest")
        mounts.update({target: source for source, target in python.mounts})
        env = {**python.env, **env, "ASSAY_PYTHON": python.path}
    places = [f"{INSIDE}/bin", *tools.path_entries, env.get("PATH", _PATH)]
    env["PATH"] = ":".join(places)
    _compile_parts()
    mounts[INSIDE], mounts[CHANNEL] = str(_PARTS), channel
    return env, [Mount(source=source, target=target) for target, source in mounts.items()]


def _own_packages() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.prefix, "lib", version, "site-packages")


def _own_mounts() -> Iterator[tuple[str, str]]:
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
