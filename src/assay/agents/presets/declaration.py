"""An agent that people install, and where it is found here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from assay.errors import InputError
from assay.frozen import frozen
from assay.gateway.door import MCP
from assay.gateway.offered import SERVER
from assay.scoring.json_safe import Json
from assay.tasks.blocks import HarnessSpec, TraceFormat

PATH_VARIABLE = "ASSAY_HARNESS_PATH"
"""Directories of programs that are looked through before any other."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""What every sandbox shows."""


@frozen(kw_only=True)
class Preset:
    """A command-line agent: how it is installed, started and continued.

    Attributes:
        name: What it is called in a matrix.
        program: Its program.
        install: The command that installs it.
        licence: Of the agent.
        protocol: In which it asks its model, through the cell's gateway.
        tells: What its own transcript adds to what passes the gateway.
        arguments: Those of its program, filled in as `HarnessSpec.argv` is.
        around: A shell's script in the sandbox that runs it as ``"$@"``.
        resume: Those that continue its work with a further message; none where it cannot.
        native: Patterns of the program that a script of its package starts, below the directory of
            packages: an image may not have what runs the script.
        setup: The command that installs it in a container image, where that is another.
        env: Variables it is started with.
        tools_env: Those that are others where the task offers tools, and tell it of their server.
        acp: Whether it speaks the Agent Client Protocol.
        trace: What it prints.
    """

    name: str
    program: str
    install: str
    licence: str
    protocol: str
    tells: str
    arguments: tuple[str, ...]
    around: str = ""
    resume: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    setup: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    tools_env: Mapping[str, str] = field(default_factory=dict[str, str])
    acp: bool = False
    trace: TraceFormat = "gateway"

    def find(self, near: str = "") -> Installed:
        """Where it is installed: ``ASSAY_HARNESS_PATH``, ``node_modules`` of a project, ``PATH``.

        Args:
            near: A directory of the project.

        Raises:
            InputError: If it is not, with the command that mends that.
        """
        found = next(_found(self.program, near), None)
        if found is None:
            raise InputError(
                f"harness {self.name!r}: its program {self.program!r} is not installed here",
                hint=f"{self.install}; or name its directory in {PATH_VARIABLE}",
            )
        return Installed(preset=self, program=found)

    def for_image(self, near: str = "") -> Iterator[Installed]:
        """Ways that may start it in a container image, the best first: whether one does is unknown.

        Args:
            near: A directory of the project.
        """
        yield Installed(preset=self, program=self.program)  # what the image has of that name
        here = next(_found(self.program, near), None)
        if here is None:
            return
        home = _home(Path(here))
        if home is not None:
            for file in (file for pattern in self.native for file in sorted(home.glob(pattern))):
                if os.uname().machine in str(file.relative_to(home)):
                    yield Installed(preset=self, program=str(file))
        yield Installed(preset=self, program=here)


@frozen(kw_only=True)
class Installed:
    """A preset's program on this machine, or in an image.

    Attributes:
        preset: The preset.
        program: Its program; a bare name is one of an image's own.
    """

    preset: Preset
    program: str

    def harness(self) -> HarnessSpec:
        """It as a harness, with all that its program needs to be seen in the sandbox."""
        start, mounts = started(self.program)
        around, resume = self.preset.around, self.preset.resume
        if around:
            start = ("/bin/sh", "-c", around, self.preset.name, *start)
        return HarnessSpec(
            argv=(*start, *self.preset.arguments),
            resume=(*start, *resume) if resume else (),
            env=self.preset.env,
            tools_env=self.preset.tools_env,
            mounts=mounts,
            gateway=True,
            acp=self.preset.acp,
            trace=None if self.preset.acp else self.preset.trace,
        )


def server_of_tools(
    variable: Callable[[str], str], *, address: str = "url", **more: Json
) -> dict[str, Json]:
    """The MCP servers of a task that offers tools, as most configurations have them, by name.

    Args:
        variable: How the configuration refers to a variable of its program.
        address: What it calls a server's URL.
        more: What else it says of a server.
    """
    url = variable("ANTHROPIC_BASE_URL") + MCP  # of the gateway's, the one without a path
    headers: Json = {"Authorization": f"Bearer {variable('OPENAI_API_KEY')}"}
    return {SERVER: {address: url, "headers": headers, **more}}


def started(program: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How a program is started in a sandbox, and which paths it needs there.

    A sandbox has the system's programs alone: an interpreter that lies elsewhere is named and
    shown, and a package is shown whole, with those that it was installed with.
    """
    file = Path(program)
    if file.name == program:
        return (program,), ()
    home = _home(file)
    shown = file if home is not None and file.is_relative_to(home) else file.resolve()
    interpreter = _interpreter(shown)
    start, needed = [str(shown)], [home or shown]
    if interpreter is not None:
        needed += _around(interpreter)
        if not _is_system(interpreter) or shutil.which(interpreter.name, path=_BASE_PATH) is None:
            start.insert(0, str(interpreter))
    mounts: list[Path] = []
    for path in needed:
        if not _is_system(path) and not any(path.is_relative_to(one) for one in mounts):
            mounts.append(path)
    return tuple(start), tuple(map(str, mounts))


_BASE_PATH = "/usr/local/bin:/usr/bin:/bin"


def _found(program: str, near: str) -> Iterator[str]:
    """The places of a program, the best first."""
    places = [os.environ.get(PATH_VARIABLE, "")]
    if near:
        here = Path(near).resolve()
        places += [str(folder / "node_modules" / ".bin") for folder in (here, *here.parents)]
    for place in [*places, os.environ.get("PATH", os.defpath)]:
        path = shutil.which(program, path=place) if place else None
        if path is not None:
            yield os.path.abspath(path)  # noqa: PTH100 - what a link leads to is for later


def _home(file: Path) -> Path | None:
    """The directory of packages that a program is a part of."""
    for path in (file, file.resolve()):
        if "node_modules" in path.parts:
            return Path(*path.parts[: path.parts.index("node_modules") + 1])
        if (path.parent.parent / "pyvenv.cfg").is_file():
            return path.parent.parent
    return None


def _interpreter(file: Path) -> Path | None:
    """What a script's first line names; None for a program that needs none."""
    with file.open("rb") as opened:
        first = opened.readline(4096)
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words[:1] and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(words[0]) if words else None
        return Path(found) if found else None
    return Path(words[0]) if words else None


def _around(interpreter: Path) -> Sequence[Path]:
    """What an interpreter needs: itself, and Python its library."""
    real = interpreter.resolve()
    return [interpreter, real.parent.parent if real.name.startswith(("python", "pypy")) else real]


def _is_system(path: Path) -> bool:
    return path.is_relative_to("/usr") or str(path).startswith(tuple(f"{one}/" for one in _SYSTEM))
