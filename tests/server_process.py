"""`assay serve` as a real process, which can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

from assay.scoring.json_safe import Json
from tests.command_line import COMMAND, assay, environment

__all__ = ["ServerProcess"]


class ServerProcess:
    """A server on a free port, with its state in a directory; ended by ``with``.

    Args:
        home: Its working directory.
        location: Its database; a directory of its own by default.
        options: Further arguments of `assay serve`.

    Attributes:
        url: Where it listens now; another one after each start.
        link: The one-time link that it printed.
        token: A key for everything.
    """

    def __init__(self, home: Path, location: str | None = None, *options: str) -> None:
        self.home = home
        self._options = options
        self.url = self.link = ""
        self.location = location or str(home / ".assay")
        made = assay(
            "server", "create", "key", "tests", "--role", "admin", "--project", "*", "--json",
            "--db", self.location, cwd=home,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        self.token = str(cast("dict[str, Json]", json.loads(made.stdout))["token"])
        self._process: subprocess.Popen[str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What lets a client in."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def pid(self) -> int:
        """Id of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, port: int = 0) -> None:
        """Start it, and wait until it says where it listens; on a free port unless it is named."""
        with (self.home / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    *COMMAND,
                    "serve",
                    "--port",
                    str(port),
                    "--json",
                    "--db",
                    self.location,
                    *self._options,
                ],
                cwd=self.home,
                env=environment(self.home),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log()
        said = cast("dict[str, str]", json.loads(line))
        self.url, self.link = said["url"], said["login"]

    @property
    def port(self) -> int:
        """Where it listens, or did."""
        return urlsplit(self.url).port or 0

    def kill(self) -> None:
        """End it as a power cut would."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def terminate(self) -> int:
        """Ask it to end; its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        return self._wait()

    def log(self) -> str:
        """What it wrote on standard error."""
        return (self.home / "server.log").read_text("utf-8")

    def _wait(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        code = self._process.wait(timeout=60)
        self._process.stdout.close()
        return code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
