"""A worker: a process in which templates run, asked by the front that started it.

``python -m assay.environment.channel.worker SOCKET MEMORY FRONT FILE NAME``. It runs the author's
code and knows of no client: of a task that has begun it knows a number, which the front gave it.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar, cast

from assay.environment.channel.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MOST_BYTES,
    TcpWire,
    decode,
    encode,
    failure,
    success,
)
from assay.environment.environment import Environment
from assay.environment.tools import told_tool
from assay.errors import (
    AssayError,
    ChannelError,
    InputError,
    TaskEndedError,
    TemplateError,
    nearest,
    reason_in,
    shown,
)
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json
from assay.tasks.task import Session, Work, find_workspace_tools
from assay.types.run import OfferedTool, Offering, Stepping
from assay.types.submission import Submission

T = TypeVar("T")

MOST_INSIDE = 8 * MOST_BYTES
"""Of one frame between front and worker: text can be longer in another encoding."""
MOST_BEGINS = 1024
"""Of which it is known when they began; older ones have to be noted before."""
_BEGINS_BYTES = MOST_BEGINS * 2 * 8
_PARENT_DEATH = 1
"""PR_SET_PDEATHSIG, of `prctl(2)`."""
_CUT = "cut: the evidence was larger than a frame"
_UNSENDABLE = "cut: the evidence held a number that JSON cannot, or was too deep"
_CUT_OBSERVATION = "cut: it was larger than a frame"
_MOST_SHOWN = 1_000_000


def environment_in(file: str, name: str = "") -> Environment:
    """The environment that a Python file declares; the file is run."""
    from assay.graders.kinds import load_file

    if not Path(file).is_file():
        raise InputError(f"there is no file {file}")
    given, file = file, shown(file)
    try:
        module = load_file(given)
    except (Exception, SystemExit) as error:  # whatever somebody's own file does
        raise InputError(f"{file} cannot be loaded: {reason_in(error)}") from error
    found = {
        variable: value
        for variable, value in cast("dict[str, object]", vars(module)).items()
        if isinstance(value, Environment)
    }
    distinct = {id(env): env for env in found.values()}
    if not distinct:
        raise InputError(f"{file} has no environment", hint="make one: env = Environment('name')")
    if not name:
        if len(distinct) == 1:
            return _with_templates(next(iter(distinct.values())), file)
        names = ", ".join(sorted(found))
        raise InputError(f"{file} has several environments", hint=f"name one: {file}:NAME, {names}")
    chosen = found.get(name) or next((e for e in distinct.values() if e.name == name), None)
    if chosen is None:
        known = sorted({*found, *(env.name for env in distinct.values())})
        raise InputError(f"{file} has no environment {name!r}", hint=nearest(name, known))
    return _with_templates(chosen, file)


def _with_templates(environment: Environment, file: str) -> Environment:
    if not environment.templates:
        raise InputError(
            f"{file}: the environment {environment.name!r} has no template to be served",
            hint="make one: @env.template()",
        )
    return environment


class _Begun:
    """A task that has begun.

    What it is asked goes through an inbox, so that one asyncio task alone runs its generator, from
    the first line to the last.
    """

    def __init__(self, work: Work, name: str) -> None:
        self._inbox: asyncio.Queue[tuple[str, Mapping[str, Json], asyncio.Future[Json]]] = (
            asyncio.Queue()
        )
        self._work = work
        self._name = name
        self._asked: set[asyncio.Future[Json]] = set()
        self.prompt: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())
        self._task.add_done_callback(self._ended)

    def ask(self, what: str, params: Mapping[str, Json]) -> asyncio.Future[Json]:
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked.add(answered)
        answered.add_done_callback(self._asked.discard)
        if self._task.done():
            self._ended(self._task)
        else:
            self._inbox.put_nowait((what, params, answered))
        return answered

    def _ended(self, _: object) -> None:
        for answered in list(self._asked):
            _fail(answered, ChannelError("the task has ended", code=INVALID_REQUEST))

    async def end(self) -> None:
        """End it, and wait until it has."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _live(self) -> None:
        try:
            async with self._work.open() as session:
                tools = _tools(session, has_network=getattr(self._work, "network", False) is True)
                opening = _sendable(_opening(session, tools), f"the prompt of {self._name!r}")
                _settle(self.prompt, opening)
                while True:
                    what, params, answered = await self._inbox.get()
                    try:
                        _settle(answered, await _do(session, tools, what, params))
                    except Exception as error:  # of the author: told to whoever asked
                        _fail(answered, error)
                    if what == "grade":
                        return
        except Exception as error:  # likewise
            _fail(self.prompt, error)
        except asyncio.CancelledError:
            _fail(self.prompt, ChannelError("the task was ended", code=INVALID_REQUEST))
        except (SystemExit, KeyboardInterrupt) as error:
            _fail(self.prompt, TemplateError(f"the task tried to end its process: {error!r}"))


def _opening(session: Session, tools: Mapping[str, OfferedTool]) -> dict[str, Json]:
    said: dict[str, Json] = {"prompt": session.prompt}
    if (stepping := _stepping(session)) and stepping.max_steps > 1:
        said["max_steps"] = stepping.max_steps
    own = _own_tools(session)
    if tools:
        said["tools"] = [
            {**told_tool(tool), **({} if tool.name in own else {"workspace": True})}
            for tool in tools.values()
        ]
    return said


def _settle(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # seen, also where nobody asks any more


async def _do(
    session: Session, tools: Mapping[str, OfferedTool], what: str, params: Mapping[str, Json]
) -> Json:
    if what == "step":
        return await _step(session, str(params["action"]))
    if what == "call":
        return await _call(tools, str(params["name"]), cast("dict[str, Json]", params["arguments"]))
    answer = params.get("answer")
    submission = Submission(answer=answer if isinstance(answer, str) else None)
    try:
        result = await session.grade(submission)
    except SystemExit as error:
        raise TemplateError(f"the grader tried to end its process: {error!r}") from error
    return _fitting(Grade.from_result(result).to_dict())


async def _step(session: Session, action: str) -> Json:
    stepping = _stepping(session)
    if stepping is None:
        raise TaskEndedError("the task takes no actions")
    seen = await stepping.step(action)
    shown: dict[str, Json] = {
        "observation": seen.content,
        "done": seen.done,
        "reward": seen.reward,
        "info": dict(seen.info),
    }
    if _fits(shown):
        return shown
    # An action at which too much is shown must not cost the task its grade.
    said = seen.content[:_MOST_SHOWN] if isinstance(seen.content, str) else ""
    return {**shown, "observation": f"{said}\n[{_CUT_OBSERVATION}]", "info": {}}


async def _call(tools: Mapping[str, OfferedTool], name: str, arguments: dict[str, Json]) -> Json:
    tool = tools.get(name)
    if tool is None:
        raise TaskEndedError(f"the task offers no tool {name!r}")
    result = await tool(arguments)
    found: dict[str, Json] = {"content": result.content, "is_error": result.is_error}
    if _fits(found):
        return found
    return {"content": f"error: what {name!r} gave is larger than a frame", "is_error": True}


def _tools(session: Session, *, has_network: bool) -> Mapping[str, OfferedTool]:
    """What the agent may call: tools of the environment, and those over a workspace."""
    own = _own_tools(session)
    if session.workspace is None:
        return own
    over = find_workspace_tools()(session.workspace, network=has_network)
    if twice := sorted(own.keys() & over.keys()):
        raise TemplateError(
            f"the environment has a tool {twice[0]!r}, and there is one over its workspace",
            hint="give it another name",
        )
    return {**own, **over}


def _own_tools(session: Session) -> Mapping[str, OfferedTool]:
    return cast("Offering", session).tools if hasattr(session, "tools") else {}


def _stepping(session: Session) -> Stepping | None:
    return cast("Stepping", session) if hasattr(session, "step") else None


def _fitting(grade: dict[str, Json]) -> Json:
    """A grade that fits in a frame: what cuts evidence must not cost the score it belongs to."""
    if _fits(grade):
        return grade
    size = _size(grade)
    content = grade.get("content")
    cut: dict[str, Json] = {
        **grade,
        "info": {"cut": _CUT if size else _UNSENDABLE},
        "content": content[:10_000] if isinstance(content, str) else None,
        "subscores": _without_evidence(grade.get("subscores")),
    }
    return cut if _fits(cut) else {**cut, "subscores": None}


def _without_evidence(nodes: Json) -> Json:
    if not isinstance(nodes, list):
        return None
    return [
        {
            **node,
            "metadata": {"cut": _CUT},
            "reason": str(node.get("reason"))[:1000],
            "children": _without_evidence(node.get("children")),
        }
        for node in nodes
        if isinstance(node, dict)
    ]


_Promised = asyncio.Future[Json] | asyncio.Future[None]


class Begins:
    """When a worker began what it was asked: memory that it shares with the front.

    A frame could say so, too, but would cost a quick task more than all else that it does here.
    What is asked is numbered, and begins in this order.
    """

    def __init__(self, descriptor: int) -> None:
        self._slots = memoryview(mmap.mmap(descriptor, _BEGINS_BYTES)).cast("d")

    @staticmethod
    @contextmanager
    def shared() -> Generator[int]:
        """New memory: the descriptor of a file without a name, which every sandbox allows."""
        with TemporaryFile(buffering=0) as memory:
            memory.truncate(_BEGINS_BYTES)
            yield memory.fileno()

    def note(self, number: int) -> None:
        """It begins now."""
        place = number % MOST_BEGINS * 2
        self._slots[place + 1] = time.monotonic()
        self._slots[place] = number

    def when(self, number: int) -> float | None:
        """When it began, or a later number in its place; None if it has not."""
        place = number % MOST_BEGINS * 2
        return self._slots[place + 1] if self._slots[place] >= number else None


class _Worker:
    def __init__(self, environment: Environment, wire: TcpWire, begins: Begins) -> None:
        self._environment = environment
        self._wire = wire
        self._begins = begins
        self._begun: dict[int, _Begun] = {}
        self._busy: set[object] = set()

    async def serve(self) -> None:
        while (data := await self._wire.receive(MOST_INSIDE, 3600.0)) is not None:
            self._take(decode(data, bounded=False))
        for begun in list(self._begun.values()):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(begun.end(), 5)
        await self._environment.stop()

    def _take(self, frame: Mapping[str, Json]) -> None:
        number = cast("int", frame["id"])
        self._begins.note(number)
        try:
            params = cast("dict[str, Json]", frame["params"])
            asked = self._call(str(frame["method"]), params)
        except Exception as error:  # the author's, told to whoever asked
            self._send(_refused(number, error))
            return
        if isinstance(asked, asyncio.Future):
            self._busy.add(asked)
            asked.add_done_callback(partial(self._answer, number))
        else:
            self._send(encode(success(number, {"value": asked})))

    def _answer(self, number: int, asked: _Promised) -> None:
        self._busy.discard(asked)
        try:
            data = encode(success(number, {"value": asked.result()}))
        except Exception as error:  # likewise
            data = _refused(number, error)
        self._send(data)

    def _send(self, data: bytes) -> None:
        if not self._wire.offer(data):
            sending = asyncio.create_task(self._wire.send(data))
            self._busy.add(sending)
            sending.add_done_callback(self._busy.discard)

    def _call(self, method: str, params: Mapping[str, Json]) -> Json | _Promised:
        if method == "ping":
            return None
        task = cast("int", params["task"])
        if method == "start":
            return self._start(task, params)
        if method == "end":
            begun = self._begun.pop(task, None)
            return asyncio.create_task(begun.end()) if begun else None
        begun = self._begun.get(task)
        if begun is None:
            raise ChannelError("no such task here", code=INVALID_REQUEST)
        if method == "grade":
            del self._begun[task]
        return begun.ask(method, params)

    def _start(self, task: int, params: Mapping[str, Json]) -> asyncio.Future[Json]:
        args = cast("dict[str, Json]", params["args"])
        made = self._environment.task(str(params["id"]), **args)
        begun = self._begun[task] = _Begun(cast("Work", made.work), made.id)

        def prompted(prompt: asyncio.Future[Json]) -> None:
            if prompt.exception() and self._begun.get(task) is begun:
                del self._begun[task]

        begun.prompt.add_done_callback(prompted)
        return begun.prompt


def _refused(number: int, error: Exception) -> bytes:
    if not isinstance(error, AssayError):
        traceback.print_exception(error, file=sys.stderr)
    return encode(failure(number, _told(error)))


def _sendable(value: dict[str, Json], what: str) -> dict[str, Json]:
    """What can be sent."""
    size = _size(value)
    if size is None:
        raise TemplateError(f"{what} holds a number that JSON cannot, or is too deep")
    if size > MOST_BYTES // 2:
        raise TemplateError(f"{what} is larger than a frame")
    return value


def _fits(value: Mapping[str, Json]) -> bool:
    size = _size(value)
    return size is not None and size <= MOST_BYTES // 2


def _size(value: Mapping[str, Json]) -> int | None:
    """How many bytes it has as a frame; None for one that no client takes."""
    try:
        data = encode({"result": dict(value)})
        if len(data) <= MOST_BYTES // 2:
            decode(data)
        return len(data)
    except (ValueError, RecursionError, ChannelError):
        return None


def _told(error: Exception) -> AssayError:
    """An exception as a peer is told: what it was and what it said."""
    if isinstance(error, InputError):
        return ChannelError(error.message, code=INVALID_PARAMS, kind="InputError", hint=error.hint)
    if isinstance(error, AssayError):
        return error
    try:
        said = str(error)
    except Exception:  # it is somebody's own class
        said = ""
    return ChannelError(said or type(error).__name__, kind=type(error).__name__)


async def _run(descriptor: int, begins: Begins, file: str, name: str) -> None:
    held = socket.socket(fileno=descriptor)
    reader, writer = await asyncio.open_connection(sock=held)
    wire = TcpWire(reader, writer)
    try:
        environment = environment_in(file, name)
    except AssayError as error:
        await wire.send(encode(failure(0, _told(error))))
        return
    await wire.send(encode(success(0, {"value": environment.manifest()})))
    await _Worker(environment, wire, begins).serve()


def main() -> None:
    """Serve the front whose descriptor the command line names, until it hangs up."""
    parent = os.getppid()
    descriptor, memory, front = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    file, name = sys.argv[4:]
    # Code that blocks would not see that the front is gone.
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if parent != front:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells the front
    os.set_inheritable(descriptor, False)  # whoever has it can say what was graded
    begins = Begins(memory)
    os.close(memory)
    asyncio.run(_run(descriptor, begins, file, name))


if __name__ == "__main__":
    main()
