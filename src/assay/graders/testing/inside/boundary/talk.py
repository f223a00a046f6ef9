"""The judge's talk with the host: what is asked of it and of its forks, and what it asks."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary import aliasing, contract, mirrors
from assay.graders.testing.inside.boundary.judge_state import (
    Doing,
    HostDiedError,
    barred,
    doors,
    fail,
    state,
)
from assay.graders.testing.inside.boundary.wire import GoneError, Plain, WireError, receive, send

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

_MOST_OUTPUT = 8 * 1024 * 1024
_MOST_BYTES = 1024 * 1024 * 1024
LOOKS = ("get", "names", "base", "items", "kind", "signature", "fork")
"""Requests that change nothing in the host."""


class Talk(Plain):
    """The talk with the host of one fresh import of the submission."""

    def __init__(self) -> None:
        self.number = next(_sessions)
        self.dead = ""  # why there is nobody to talk to any more
        self.doing = Doing()
        self.changes = 0  # counts what may have changed in the host
        self.acts = 0  # counts what was asked of it and not only looked at
        self._forks, self._threads = itertools.count(), itertools.count()
        self._raised_in: dict[int, int] = {}
        self._told: dict[str, Any] = {}
        self._output, self._bytes = _MOST_OUTPUT, _MOST_BYTES
        try:
            send(doors.control, ["fork", self.number])
            self.doing.link = self._link = doors.wait("session", self.number)
            self._door = doors.wait("door", self.number)
        except GoneError:
            raise fail(HostDiedError("the process of the solution did not start")) from None

    def given(self, value: Any, trails: Sequence[str]) -> Any:
        with self.doing.but(giving=trails, gives=True):
            return self.encode(value)

    def patch(self, module: str, path: list[str], name: str, value: object) -> None:
        given = self.given(value, ["patch"])
        self.request("set", ["P", module, path], name, given, "patch")

    def request(self, op: str, *parts: Any, trails: list[str] | None = None) -> Any:
        """Ask the host, serve it until it answers, and give back what it said, still encoded."""
        return self.asked(op, parts, trails or ["?"])[0]

    def asked(self, op: str, parts: tuple[Any, ...], trails: list[str]) -> list[Any]:
        """What the host says, and how it has changed what it was lent."""
        if self.dead:
            raise fail(HostDiedError(self.dead))
        if op not in LOOKS:
            self.acts += 1
            state.lend_files()
        self.changes += 1
        mine = self.changes
        try:
            if self.doing.link is None:  # another thread
                thread = next(self._threads)
                send(self._door, ["thread", thread])
                self.doing.link = doors.wait("thread", self.number, thread)
            # No test came to what is read on the way.
            with self.doing.but(asking=trails, reading=None):
                if news := self._news():
                    state.answered.clear()
                message = self._exchange(self.doing.link, [op, news, *parts])
                self.changes += 1
                if message[0] == "ok":
                    return message[1:]
                error = self._raised(message[1], mine)
        except TimeoutError:
            error = self.died(f"the solution did not answer within {state.seconds:g} s")
        except GoneError:
            error = self.died("the process of the solution ended")
        except (WireError, IndexError) as why:
            error = self.died(f"the process of the solution sent what makes no sense: {why}")
        except OSError as why:
            error = self.died(f"the connection to the solution broke: {why}")
        if isinstance(error, (StopIteration, StopAsyncIteration)) and op != "await":
            # Among the items of `map` or `zip` it would end a test before it has compared any.
            contract.require("stops", trails, "the submission", "an iteration ends")
        raise error

    def question(self, op: str, *parts: Any) -> Any:
        """Ask a fork of the host, which then is no more; None if it raises or does not answer."""
        return next(self.questions([(op, *parts)]))

    def questions(self, asked: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Ask each question of a fork of its own.

        The host does not know what its forks are asked, and none knows of the others.
        """
        numbers = [next(self._forks) for _ in asked]
        self.request("fork", numbers)
        links: list[socket.socket] = []
        try:
            links += [doors.wait("fork", self.number, one) for one in numbers]
            for link, (op, *parts) in zip(links, asked):
                try:
                    with self.doing.but(fork=link):
                        message = self._exchange(link, [op, {}, *parts])
                    yield message[1] if message[0] == "ok" and len(message) > 1 else None
                except (TimeoutError, WireError, OSError):
                    yield None
        except GoneError:
            raise self.died("the process of the solution did not fork") from None
        finally:
            for link in links:
                link.close()

    def _exchange(self, link: socket.socket, message: list[Any]) -> list[Any]:
        """Send a request, and serve the host until it answers."""
        deadline = time.monotonic() + state.seconds
        send(link, message)
        while (left := deadline - time.monotonic()) > 0:
            link.settimeout(left)
            answer, size = receive(link, deadline)
            self._bytes -= size
            if min(self._bytes, self._output) < 0:
                raise WireError("it has sent more than is read")
            if answer[0] in ("ok", "raise"):
                return answer
            self.answer(link, answer)
        raise TimeoutError

    def died(self, why: str) -> BaseException:
        self.end(why)
        return fail(HostDiedError(self.dead))

    def end(self, why: str) -> None:
        self.dead = self.dead or why
        for link in (self._link, self._door, self.doing.link or self._link):
            link.close()

    def _raised(self, node: Any, mine: int) -> BaseException:
        error = self.decode(node)
        if not isinstance(error, BaseException):
            raise WireError("an exception makes no sense")
        if isinstance(error, state.never):
            return barred(f"the solution raised {type(error).__name__}")
        if error in state.failures and self._raised_in.get(id(error), -1) >= mine:
            state.failures.remove(error)  # it comes back to the call in which it was raised
        return error.with_traceback(None)

    def _news(self) -> dict[str, Any]:
        """What has changed around the tests since the host was told."""
        environ = {name: one for name, one in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        try:
            place = os.getcwd()
        except OSError:
            place = ""
        path = [entry or place for entry in sys.path if state.is_ours(entry or place)]
        # What the submission changed of its own environment stays as it is.
        told = {"cwd": place, "path": path, "shares": aliasing.shares()}
        now = {**told, **{f"${name}": one for name, one in environ.items()}}
        before, self._told = self._told, now
        names = [one for one in {*before, *now} if before.get(one) != now.get(one)]
        return {one: now.get(one) for one in names}

    def answer(self, link: socket.socket, message: list[Any]) -> None:
        """Do what the host asks while it works for us: write its output, call a handle."""
        kind, *parts = message
        show = _SHOWN.get((kind, *map(type, parts)))
        if kind == "ask":
            send(link, self._reply(*parts))
        elif kind not in ("out", "log"):
            raise WireError("a message of an unknown kind")
        elif show is not None and self.doing.fork is None:
            self._output -= len(parts[-1])
            show(self, *parts)

    def _reply(self, *question: Any) -> list[Any]:
        try:
            return ["ok", self.given(self.grant(*question), self.doing.asking)]
        except WireError:
            raise
        except BaseException as error:
            if isinstance(error, state.failing) and error not in state.failures:
                fail(error)  # what the host makes of it does not matter
                self._raised_in[id(error)] = self.changes
            return ["raise", self.given(error, self.doing.asking)]

    def grant(self, op: str, *parts: Any) -> Any:
        """Do what the host asks for."""
        raise WireError(f"nobody does {op!r} with {len(parts)} parts")


def _log(
    talk: Any,
    name: str,
    level: int,
    is_chosen: object,
    raised: list[Any],
    more: dict[str, Any],
    text: str,
) -> None:
    import logging

    logger = logging.getLogger(name)
    # What has passed a level of the submission's own has passed, unless the test has set another.
    if (logger.level or not is_chosen) and not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(name, level, "the solution", 0, text, (), None)
    if raised:
        kind, said, trace = raised
        cls = talk.reference(kind)
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise WireError("a class makes no sense")
        record.exc_info = (cls, mirrors.made_error(cls, [str(said)]), None)
        record.exc_text = str(trace)
    for field, node in more.items():
        if field in ("funcName", "module") or field not in vars(record):
            vars(record)[field] = _PLAIN.decode(node)
    logger.handle(record)


_PLAIN = Plain()  # fields of a record are values: no reference in them is read
_SHOWN: dict[Any, Callable[..., object]] = {
    ("out", int, str): lambda _, at, text: (sys.stdout if at == 1 else sys.stderr).write(text),
    ("log", str, int, bool, list, dict, str): _log,
}
"""What the host says without asking, by the types of its parts."""

_sessions = itertools.count(1)
