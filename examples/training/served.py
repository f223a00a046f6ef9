"""A grader served by `assay serve grader` for as long as an example runs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(*words: str) -> Iterator[str]:
    """Serve it at a free port; gives where."""
    command = [sys.executable, "-m", "assay", "serve", "grader", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("serving "))
            yield line.split(" at ")[1].split()[0]
        finally:
            process.terminate()


GRADERS = str(Path(__file__).with_name("graders.yaml"))
