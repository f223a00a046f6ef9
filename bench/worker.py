"""Workloads in a process of each package's own, which waits while another has its turn."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from bench.peers import ROOT
from bench.turns import clean_environment
from bench.workloads import Package, Timing, run_workload

__all__ = ["Worker", "serve"]

_START = "import sys; sys.path.append(sys.argv[2]); import bench.worker as w; w.serve(sys.argv[1])"


class Worker:
    """An interpreter that has imported one package, and does rounds of workloads when asked."""

    def __init__(self, python: str, module: str, *, cwd: Path) -> None:
        self._module = module
        # -P: neither the working directory nor the benchmarks' own may hide one of its modules.
        self._process = subprocess.Popen(
            [python, "-P", "-c", _START, module, str(ROOT)],
            cwd=cwd,
            env=clean_environment(cwd),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, workload: str, *, seed: int, count: int) -> Timing:
        """One round of a workload.

        Raises:
            RuntimeError: If the worker died; its own words are on standard error.
        """
        assert self._process.stdin
        assert self._process.stdout
        request = {"workload": workload, "seed": seed, "count": count}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise RuntimeError(f"the worker of {self._module} ended during {workload!r}")
        return Timing(**json.loads(reply))


def serve(module: str) -> None:
    """Do rounds as they are asked for on standard input, until it ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the package prints is no reply
    package = cast("Package", importlib.import_module(module))
    for line in sys.stdin:
        request = json.loads(line)
        timing = run_workload(
            package, request["workload"], seed=request["seed"], count=request["count"]
        )
        replies.write(json.dumps(asdict(timing)) + "\n")
        replies.flush()
