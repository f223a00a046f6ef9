"""What both runners share: the witnesses, the way in for the workspace, and the way out."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn, TextIO

from assay.graders.testing.inside.audits import Audits
from assay.graders.testing.inside.channel_client import Brief, send_collected
from assay.graders.testing.inside.hidden_modules import HiddenTests, Stops
from assay.graders.testing.inside.integrity import Integrity
from assay.graders.testing.inside.keeper import keep, report, suspect
from assay.graders.testing.inside.origins import Origins

if TYPE_CHECKING:
    from assay.graders.testing.inside.channel_client import Frame, Send
    from assay.graders.testing.inside.hidden_modules import RewriteAsserts

_FAILED = ("failed", "error")
_PASSED = ("passed", "xpassed")


class Settings:
    """What a run needs to know of its surroundings.

    Args:
        root: The workspace.
        path: Entries that go in front of ``sys.path`` when the workspace is let in.
        parts: Our own modules; they are not to be found in ``sys.modules``.
    """

    __slots__ = ("parts", "path", "root")

    def __init__(self, root: str, path: list[str], parts: list[ModuleType]) -> None:
        self.root = root
        self.path = path
        self.parts = parts


class Session:
    """One run of tests, and what is told of it.

    Attributes:
        root: The workspace.
        hidden: The hidden tests.
        integrity: Whether the runner is still itself.
        seed: Of the order.
        shuffle: Whether there may be one.
        skip: Ids not to run.
    """

    def __init__(
        self,
        brief: Brief,
        send: Send,
        settings: Settings,
        rewrite: RewriteAsserts | None,
        stops: Stops,
    ) -> None:
        self.root = settings.root
        self.seed, self.shuffle, self.skip = brief["seed"], brief["shuffle"], set(brief["skip"])
        sources = {**brief["hidden"]}
        given = {name: text for name, text in brief.get("given", {}).items() if name not in sources}
        brief["hidden"].clear()  # nothing keeps the sources
        self._send = send
        self._path, self._parts = settings.path, settings.parts
        self._exit, self._outs = os._exit, (sys.stdout, sys.stderr)
        self._failed = False
        paths = [f"{self.root}/{name}" for name in (*sources, *given)]
        origins = Origins(self.root, paths)
        self.integrity = Integrity(origins, report)
        self._audits = Audits(origins, self.integrity.is_guarded, report, suspect)
        self.hidden = HiddenTests(
            sources,
            root=self.root,
            origins=origins,
            canary=brief["canary"],
            report=report,
            rewrite=rewrite,
            stops=stops,
            loose=brief.get("loose", []),
            given=given,
        )
        self.finder = self.hidden.finder()
        keep(self)
        sys.meta_path.insert(0, self.finder)

    def open_workspace(self, runner: str, arguments: list[str], guarded: tuple[str, ...]) -> None:
        """Let the workspace in, after remembering what the runner is like without it.

        Args:
            runner: Module that the process pretends to run.
            arguments: Of its command line.
            guarded: Modules to look at whenever a test ends.
        """
        self._send({"event": "ready"})
        packages = tuple(sorted({name.partition(".")[0] for name in guarded}))
        self.integrity.guard(packages, core=guarded)
        for part in self._parts:
            self.integrity.guard_module(part, core=True)
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            os.environ.pop(name, None)
        self._pose_as(f"{runner}.__main__", arguments)
        sys.path[:0] = self._path
        self.hidden.borrowed.hear_conftests(self.hidden.paths, self.root)
        self._audits.freeze()

    def _pose_as(self, name: str, arguments: list[str]) -> None:
        """Look like ``python -m``: children that are spawned import ``__main__`` again."""
        spec = importlib.util.find_spec(name)
        module = ModuleType("__main__")
        module.__spec__ = spec
        module.__file__ = (spec.origin if spec else None) or name
        sys.modules["__main__"] = module
        sys.argv[:] = [module.__file__, *arguments]

    def without_workspace(self) -> list[str]:
        """``sys.path`` less what `open_workspace` put there."""
        return [entry for entry in sys.path if entry not in self._path]

    def relative(self, path: str) -> str:
        """A path as the host names it."""
        return os.path.relpath(os.path.realpath(path), self.root).replace(os.sep, "/")

    def tamper(self, what: str) -> None:
        """Tell of a sign of tampering; it is sent once."""
        self._send({"event": "tamper", "what": what})

    def suspect(self, what: str) -> None:
        """Tell of what is a sign of tampering if the run does not come to its end."""
        self._send({"event": "suspect", "what": what})

    def collected(self, ids: list[str], errors: list[tuple[str, str]]) -> None:
        """Tell what there is to run, and what could not be loaded."""
        self._failed = self._failed or bool(errors)
        send_collected(self._send, ids, errors)

    def start(self, name: str) -> None:
        """Tell that a test starts."""
        self.hidden.forget()
        self._send({"event": "start", "id": name})
        self.hidden.borrowed.check(f"{self.root}/{name.partition('::')[0]}")

    def result(self, name: str, outcome: str, seconds: float, message: str) -> None:
        """Tell what came of a test."""
        self._failed = self._failed or outcome in _FAILED
        frame: Frame = {"event": "result", "id": name, "outcome": outcome}
        self._send({**frame, "seconds": seconds, "message": message})

    def canary(self, name: str, outcome: str, message: str) -> None:
        """Tell what came of a planted test."""
        self._send({"event": "canary", "name": name, "outcome": outcome, "message": message})

    def believe(self, outcome: str, place: tuple[str, str], function: object) -> tuple[str, str]:
        """An outcome, as far as the test's own evidence bears it out.

        Args:
            outcome: What the runner says.
            place: Real path of the test's file, and its dotted name in it.
            function: What the runner called.

        Returns:
            The outcome, and why it is another than the runner's; empty if it is not.
        """
        self.hidden.borrowed.check(place[0])
        if outcome not in _PASSED:
            return outcome, ""
        expected = self.hidden.ledger.of(*place, function)
        if expected is None or self.hidden.watch.saw(expected.indices, clean=expected.clean):
            return outcome, ""
        why = f"a test is said to have passed that did not run to its end: {place[1]}"
        self.tamper(why)
        return "failed", why

    def leave(self, status: int) -> NoReturn:
        """Say the last word and end the process before anything else can run in it."""
        self.integrity.check(full=True)
        self.hidden.borrowed.check()
        status = status or int(self._failed)
        for stream in self._outs:
            _flush(stream)
        self._send({"event": "end", "exit": status})
        self._exit(status)
        raise AssertionError


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):  # the reader has gone
        pass
