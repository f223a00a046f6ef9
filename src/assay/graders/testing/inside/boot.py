"""Runs pytest or unittest so that what comes of the tests is told to the host, not to a console.

``python boot.py pytest ARGUMENTS...`` stands for ``python -m pytest ARGUMENTS...``, and likewise
for unittest; ``python boot.py run PROGRAM...`` takes the socket for a program that cannot. It runs
under whatever Python (3.8 or later) the tests need. Everything of ours, and the runner, is imported
before the workspace is on the path.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - no pathlib yet
_PACKAGE = "assay.graders.testing.inside"
_NO_CHANNEL = 70


def main() -> NoReturn:
    """Take the brief, run the tests, say what came of them, and leave at once."""
    if sys.argv[1] == "run":
        _become(sys.argv[2:])
    gc.disable()  # importing makes a great many objects, and no garbage
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != _HERE]
    sys.dont_write_bytecode = True
    _make_importable()
    from assay.graders.testing.inside import channel_client

    runner, arguments = sys.argv[1], sys.argv[2:]
    taken = _take_variables()
    try:
        brief, send = channel_client.connect(taken["channel"])
    except channel_client.RefusedError:
        return _run_unreported(runner, arguments)
    except OSError as error:
        sys.stderr.write(f"the tests cannot report to {taken['channel']}: {error}\n")
        return os._exit(_NO_CHANNEL)
    _be_private()
    if sys.flags.no_site:
        _find_packages()
    from assay.graders.testing.inside.session import Settings

    if runner == "unittest":
        from assay.graders.testing.inside.unittest_runner import run
    else:
        from assay.graders.testing.inside.pytest_runner import run
    if brief.get("apart") is None:
        _forget_parts()
    gc.freeze()  # what was imported stays to the end
    gc.enable()
    return run(arguments, brief, send, Settings(taken["root"], _entries(taken)))


def _make_importable() -> None:
    """Give the files beside this one the name of a package, whether or not assay is installed."""
    name = ""
    for step in _PACKAGE.split("."):
        name = f"{name}.{step}".lstrip(".")
        package = ModuleType(name)
        package.__path__ = [_HERE] if name == _PACKAGE else []
        sys.modules[name] = package
    sys.meta_path.insert(0, cast("MetaPathFinder", _Finder))


class _Finder:
    """Finds the files beside this one as the modules of a package."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a part of ours; None for any other module."""
        del path, target
        if not name.startswith(f"{_PACKAGE}."):
            return None
        place = os.path.join(_HERE, *name[len(_PACKAGE) + 1 :].split("."))  # noqa: PTH118 - no pathlib yet
        inner = os.path.join(place, "__init__.py")  # noqa: PTH118
        if os.path.isfile(inner):  # noqa: PTH113
            return spec_from_file_location(name, inner, submodule_search_locations=[place])
        return spec_from_file_location(name, f"{place}.py")


def _find_packages() -> None:
    """Let the installed packages in, but nothing of the workspace that they name as a hook."""
    import site

    hooks = dict.fromkeys(("sitecustomize", "usercustomize"))
    sys.modules.update(cast("dict[str, ModuleType]", hooks))
    site.main()
    for name in hooks:
        sys.modules.pop(name, None)


def _forget_parts() -> None:
    """Take our modules out of ``sys.modules``: the workspace may have a package of our name."""
    for name in list(sys.modules):
        if f"{_PACKAGE}.".startswith(f"{name}.") or name.startswith(f"{_PACKAGE}."):
            del sys.modules[name]
    sys.meta_path.remove(cast("MetaPathFinder", _Finder))


def _take_variables() -> dict[str, str]:
    """Read our variables once, and leave none that tells of us to the tests and their children."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("ASSAY_")}
    python_path = taken.get("ASSAY_PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    if python_path:
        os.environ["PYTHONPATH"] = python_path
    # Our shims go; the Python that they stand in front of takes their place.
    real = sys.executable.rpartition(os.sep)[0]
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    shims = os.path.join(_HERE, "bin")  # noqa: PTH118 - no pathlib yet
    kept = [place for place in places if os.path.realpath(place) != shims and place != real]
    os.environ["PATH"] = os.pathsep.join([real, *kept])
    return {
        "channel": taken.get("ASSAY_CHANNEL", "/opt/assay/channel"),
        "root": os.path.realpath(taken.get("ASSAY_WORKSPACE", "/workspace")),
        "path": python_path,
        "script": taken.get("ASSAY_SCRIPT", ""),
    }


def _entries(taken: dict[str, str]) -> list[str]:
    """What goes in front of ``sys.path``: the working directory, then PYTHONPATH."""
    entries = [os.path.realpath(entry) for entry in taken["path"].split(os.pathsep) if entry]
    return entries if taken["script"] else [os.path.realpath(""), *entries]


def _run_unreported(runner: str, arguments: list[str]) -> NoReturn:
    """Become the plain runner: another process of this command reports."""
    os.execv(sys.executable, [sys.executable, "-m", runner, *arguments])  # noqa: S606 - no shell


def _become(program: list[str]) -> NoReturn:
    """Take what the channel hands down, a listening socket, and become the program that uses it.

    Node can use an inherited descriptor, but cannot receive one. The line that comes with it stays
    in the channel, for whoever reads it next.
    """
    import socket

    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        channel.connect("/opt/assay/channel")
        _, beside, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_PEEK)
    except OSError:
        beside = []
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            link = int.from_bytes(data[:4], sys.byteorder)
            os.set_inheritable(link, True)
            os.environ["ASSAY_LINK"] = str(link)
    os.set_inheritable(channel.fileno(), True)
    os.environ["ASSAY_CHANNEL"] = str(channel.fileno())
    os.execv(program[0], program)  # noqa: S606 - no shell


def _be_private() -> None:
    """Keep other processes of the sandbox out of this one's memory, where that is possible."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        return


if __name__ == "__main__":
    main()
