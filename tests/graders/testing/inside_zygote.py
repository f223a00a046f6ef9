"""A Python that has imported pytest, and forks for each run of boot.py that it is asked for.

It is started as the runners are, with ``-s -S``, runs nothing of a solution itself, and hands on to
a child none of its descriptors. What is imported is what boot.py imports before the workspace is on
the path; the files beside boot.py, which are compiled once, are imported anew in every child.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import py_compile
import runpy
import site
import sys
from typing import Any, NoReturn


def main() -> None:
    """Answer each line, which asks for a run, with the exit status of the run."""
    path = [entry for entry in sys.path if os.path.realpath(entry) != os.path.dirname(__file__)]  # noqa: PTH120 - as boot.py has it
    sys.path[:] = path
    _warm_up()
    sys.path[:] = path
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(asked)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _warm_up() -> None:
    gc.disable()
    site.main()
    config = importlib.import_module("_pytest.config")
    importlib.import_module("pytest")
    for name in config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    for name in ("ctypes", "difflib", "doctest", "hmac", "pprint", "pytest", "unittest.mock"):
        importlib.import_module(name)
    for name in ("sitecustomize", "usercustomize"):
        sys.modules.pop(name, None)
    inside, sys.pycache_prefix = sys.argv[1:]
    for place, _, names in os.walk(inside):
        for name in names:
            if name.endswith(".py"):
                py_compile.compile(f"{place}/{name}")


def _run(asked: dict[str, Any]) -> NoReturn:
    for descriptor, name in enumerate((os.devnull, asked["out"], asked["out"])):
        opened = os.open(name, os.O_RDWR | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    boot, *arguments = asked["command"]
    sys.path.insert(0, boot.rpartition(os.sep)[0])
    sys.argv[:] = [boot, *arguments]
    gc.enable()
    try:
        runpy.run_path(boot, run_name="__main__")
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
