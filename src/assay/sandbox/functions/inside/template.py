"""The process that has the program loaded, and is forked for each call or batch.

It belongs to the program as soon as that is loaded, so nobody relies on it: it never sees a
payload, it holds no descriptor but its own ends of the pipes, and the supervisor can do without it.
Every fork of it starts from the same memory.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import resource
import sys
import time
from _struct import unpack, unpack_from
from _thread import _count as count_threads  # pyright: ignore[reportPrivateUsage] - `threading` is dear
from itertools import starmap

from assay.sandbox.functions.inside.confine import limit
from assay.sandbox.functions.inside.evaluate import (
    ERROR,
    NEEDS_LOOP,
    OK,
    Loaded,
    LoadError,
    evaluate,
    light_loop,
    load,
    packed,
)
from assay.sandbox.functions.inside.wire import BIRTH, DEATH, MAKE_LOOP, ORDER, REPLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from assay.sandbox.functions.inside.confine import Confinement
    from assay.sandbox.functions.inside.evaluate import Loop
    from assay.sandbox.functions.inside.wire import Pipes

# Modules of Python that do more than define things when they are imported.
_NOT_IMPORTED = ("antigravity", "idlelib", "test", "this", "turtledemo")
_CHUNK = 1 << 16
_LOADED_SEGMENT, _MAY_WRITE, _LARGE_SEGMENT, _PAGE = 1, 2, 1 << 18, resource.getpagesize()
_NORMAL, _DONT_NEED = 0, 4
_POOL, _SPARE_BYTES = 1 << 14, 1 << 17
_DESCRIPTORS = 64  # as many as `confine` allows
# What a program replaces in `os` must not change our course.
_read, _write, _close, _exit = os.read, os.write, os.close, os._exit
_close_range = os.closerange
_getpid, _pipe, _fork, _waitpid = os.getpid, os.pipe, os.fork, os.waitpid
_unwatched = [sys.settrace, sys.setprofile]
if sys.version_info >= (3, 12):
    _unregister = sys.monitoring.register_callback
    _events = [event for event in vars(sys.monitoring.events).values() if event]
    _callbacks_of = [(tool, event, None) for tool in range(6) for event in _events]
_cpu, _callbacks = time.thread_time, gc.callbacks
_unpack_order, _ORDER_BYTES, _pack_reply = ORDER.unpack, ORDER.size, REPLY.pack


class StandBy:
    """A program on stand-by."""

    def __init__(
        self, pipes: Pipes, confinement: Confinement, parts: list[bytes], keep: int
    ) -> None:
        self._orders, self._payloads = pipes.orders[0], pipes.payloads[0]
        self._births, self._deaths = pipes.births[1], pipes.deaths[1]
        self._replies = pipes.replies[1]
        self._confinement = confinement
        self._parts = parts
        self._pid = os.getpid()
        self._tape = Tape(keep)
        self._program: Loaded | None = None

    def run(self, memory: int, processes: int) -> NoReturn:
        """Load the program, say so, then fork for each order until there are no more."""
        try:
            self._confinement.ignore_signals()
            if not self._confinement.namespaced:
                self._confinement.die_with_parent(self._confinement.pid)
            limit(resource.RLIMIT_AS, memory)
            if self._confinement.limit_processes:
                limit(resource.RLIMIT_NPROC, processes)
            self._get_ready()
            self._confinement.ignore_signals()
            _stop_watching()
            _write(self._replies, packed(OK, 0.0, ""))
            self._fork_for_orders()
        except LoadError as error:
            message, line = error.args
            _write(self._replies, packed(ERROR, line, message))
        finally:
            while True:
                _exit(0)

    def _get_ready(self) -> None:
        _warm_up()
        if self._confinement.namespaced:
            self._program = load(self._parts)
        else:
            self._rehearse()
        self._close_others()
        if random := sys.modules.get("random"):
            random.seed(0)
        gc.collect()
        gc.freeze()
        self._filling = _fill_pools()
        _inherit_code(self._confinement.libc)
        _warm_up()
        self._confinement.libc.malloc_trim(_SPARE_BYTES)

    def _fork_for_orders(self) -> None:
        """Have one fork ready at any time: it waits for its payload, and is told when it may be."""
        orders, births, deaths = self._orders, self._births, self._deaths
        birth, death = BIRTH.pack, DEATH.pack
        libc = self._confinement.libc
        # glibc's other fork skips what there is to do for other threads; we have none then.
        raw_fork, raw_wait = getattr(libc, "_Fork", libc.fork), libc.waitpid
        waitpid, fork = _waitpid, _fork
        program = self._program or self._loaded_confined
        payloads, replies, loop = self._payloads, self._replies, None
        while order := _read(orders, 1):
            if order == MAKE_LOOP and loop is None:
                loop = light_loop()
                gc.freeze()
            # Nor is there anything to do for Python's own.
            pid = fork() if count_threads() else raw_fork()
            if pid == 0:
                try:
                    _close(orders)
                    _close(births)
                    _close(deaths)
                    if count := _make_call(payloads, replies, program, loop):
                        self._make_series(count)
                except LoadError as error:  # it was loaded before
                    _write(replies, packed(ERROR, 0.0, f"it cannot be loaded: {error.args[0]}"))
                finally:
                    while True:
                        _exit(0)
            _write(births, birth(pid))
            if pid > 0:
                # No name for how it ended: the next call would find it in our frame.
                _write(deaths, death(waitpid(pid, 0)[1], raw_wait(-1, None, 1) != -1))

    def _close_others(self) -> None:
        """Close what the program has opened: by a pipe, say, one call would tell the next."""
        own = (self._orders, self._payloads, self._births, self._deaths, self._replies)
        first = 3
        for fd in sorted(own):
            _close_range(first, fd)
            first = fd + 1
        _close_range(first, _DESCRIPTORS)

    def _close_template_ends(self) -> None:
        for fd in (self._orders, self._births, self._deaths):
            _close(fd)

    def _make_series(self, count: int) -> None:
        """In a fork: all calls of a batch, each with a reply; no fork of its own makes them."""
        own = _getpid()
        program = self._program or self._loaded_confined()
        tape = self._tape
        tape.install()
        loop, before = None, 0.0
        with open(self._payloads, "rb", buffering=_CHUNK, closefd=False) as payloads:
            for _ in range(count):
                payload = payloads.read(int.from_bytes(payloads.read(4), "little"))
                if loop is not None:
                    loop = light_loop()  # what a call leaves in its loop does not run in the next
                status, score, message = evaluate(program, payload, loop)
                if status == NEEDS_LOOP:
                    tape.take()
                    loop = light_loop()
                    status, score, message = evaluate(program, payload, loop)
                if _getpid() != own:
                    return
                used = _cpu()
                reply = packed(status, score, message, cpu=used - before, output=tape.take())
                before = used
                while reply:
                    reply = reply[_write(self._replies, reply) :]

    def _loaded_confined(self) -> Loaded:
        """Load the program in a fork.

        Without a pid namespace the template itself must run nothing of it, because it may start
        processes and send signals.
        """
        self._confinement.confine_call(self._pid)
        return load(self._parts)

    def _rehearse(self) -> None:
        """See in a fork whether the program can be loaded; import here what it imports there."""
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                # Nor may it say in our place that the program is loaded.
                self._close_template_ends()
                for fd in (here, self._payloads, self._replies):
                    _close(fd)
                _write(there, self._imported())
            except LoadError as error:
                message, line = error.args
                _write(there, packed(ERROR, line, message))
            finally:
                while True:
                    _exit(0)
        os.close(there)
        names = b""
        while chunk := os.read(here, _CHUNK):
            names += chunk
        os.close(here)
        os.waitpid(pid, 0)
        if names[:1] != b"\n":
            if names[:1] == bytes([ERROR]):  # whatever else it says, it is not a success
                _write(self._replies, names[:_CHUNK])
            _exit(0)
        for name in names.decode("utf-8", "replace").split("\n"):
            top, *others = name.split(".")
            if top in _NOT_IMPORTED or "__main__" in others or top not in sys.stdlib_module_names:
                continue
            try:
                __import__(name)
            except BaseException:  # noqa: S112 - the names are the program's; speed is all it is
                continue

    def _imported(self) -> bytes:
        before = set(sys.modules)
        self._loaded_confined()
        names = [n for n in sys.modules if n not in before]  # `_asyncio` before `asyncio` is a bug
        return "\n".join(["", *names]).encode("utf-8", "replace")[:_CHUNK]


def _stop_watching() -> None:
    """Let nothing of the program run here any more: it could tell one call of another's end."""
    for stop in _unwatched:
        stop(None)
    if sys.version_info >= (3, 12):
        # At one stroke: bytecode in between would be told to those that are still there.
        list(starmap(_unregister, _callbacks_of))
    _callbacks.clear()


def _make_call(
    payloads: int, replies: int, program: Loaded | Callable[[], Loaded], loop: Loop | None
) -> int:
    """In a fork: wait for a payload and make the one call."""
    own = _getpid()
    count, size, under_loop = _unpack_order(_read(payloads, _ORDER_BYTES))
    if count != 1:
        return count
    loaded = program if isinstance(program, Loaded) else program()
    payload = _read(payloads, size)
    while len(payload) < size:
        payload += _read(payloads, size - len(payload))
    status, score, message = evaluate(loaded, payload, loop if under_loop else None)
    if _getpid() == own:  # what the call has forked comes by here, too
        if message:
            _write(replies, packed(status, score, message, cpu=_cpu()))
        else:
            _write(replies, _pack_reply(status, score, _cpu(), 0, 0))
    return 0


def _warm_up() -> None:
    """Make calls of our own until the interpreter has settled.

    It adapts its bytecode while it runs and sorts its free memory. Whatever it does here it does
    not do again in each fork.
    """

    async def function(_: object) -> float:
        return 0.5

    payload = b'{"messages": [{"role": "user", "content": "%s"}], "n": [1, 0.5]}' % (b"x" * 1000)
    program = Loaded(function, None)
    here, there = _pipe()
    for _ in range(64):
        _write(there, ORDER.pack(1, len(payload), 0) + payload)
        _make_call(here, there, program, None)
        _read(here, _CHUNK)
    _close(here)
    _close(there)


def _fill_pools() -> list[object]:
    """Use up what is free in the pools of Python's allocator, but for the beginning of new ones.

    A fork that makes an object writes to the head of its pool and to where the object is, two pages
    that are one where the pool has just been begun.
    """
    filling: list[object] = []
    for size in range(32, 513, 16):
        for number in range(1000):
            block = bytes(size - 33) if size > 32 else (1 << 29) + number
            filling.append(block)
            if id(block) % _POOL < 512:
                break
    return filling


def _inherit_code(libc: ctypes.PyDLL) -> None:
    """Have forks begin with the page table of the interpreter's code, too.

    The kernel leaves file mappings out, unless something was written to them: each fork would then
    look up each page that it runs again. So a byte of each is written, with what it was. What only
    the start has used is left out, because each page costs a fork something.
    """
    entry = libc._handle  # noqa: SLF001 - the list of what is loaded, by the dynamic linker's ABI
    while entry:
        base, name, _, entry = unpack("<4Q", ctypes.string_at(entry, 32))
        is_kernels = name and b"/" not in ctypes.string_at(name)
        # It fails where nothing is mapped: not everything begins where it is counted from.
        is_mapped = libc.madvise(ctypes.c_void_p(base), ctypes.c_size_t(_PAGE), _NORMAL) == 0
        if base and not is_kernels and is_mapped and ctypes.string_at(base, 4) == b"\x7fELF":
            _inherit_segments(libc, base)


def _inherit_segments(libc: ctypes.PyDLL, base: int) -> None:
    (table,) = unpack("<Q", ctypes.string_at(base + 32, 8))
    size, count = unpack("<2H", ctypes.string_at(base + 54, 4))
    for number in range(count):
        header = ctypes.string_at(base + table + number * size, size)
        kind, rights, _, start, _, _, length = unpack_from("<2I5Q", header)
        if kind != _LOADED_SEGMENT or rights & _MAY_WRITE or length < _LARGE_SEGMENT:
            continue
        begin = base + start & -_PAGE
        area = ctypes.c_void_p(begin), ctypes.c_size_t(base + start + length - begin)
        # Of the kernel's rights, two are numbered the other way round.
        real = rights >> 2 | rights & 2 | (rights & 1) << 2
        if libc.mprotect(*area, real | _MAY_WRITE) == 0:
            ctypes.memmove(begin, begin, 1)
            libc.mprotect(*area, real)
            libc.madvise(*area, _DONT_NEED)


class Tape(io.RawIOBase):
    """A stream that remembers its first bytes."""

    name = "<tape>"

    def __init__(self, keep: int) -> None:
        super().__init__()
        self._keep = keep
        self._kept = bytearray()
        self._text = io.TextIOWrapper(
            self, encoding="utf-8", errors="backslashreplace", write_through=True
        )

    def writable(self) -> bool:
        """It is."""
        return True

    def write(  # pyright: ignore[reportIncompatibleMethodOverride] - `Buffer` is new in 3.12
        self, data: bytes | bytearray | memoryview, /
    ) -> int:
        """Take everything, keep what there is room for."""
        view = memoryview(data)
        room = self._keep - len(self._kept)
        if room > 0:
            self._kept += view[:room]
        return len(view)

    def take(self) -> bytes:
        """What was written since the last time."""
        if not self._kept:
            return b""
        kept, self._kept = bytes(self._kept), bytearray()
        return kept

    def install(self) -> None:
        """Let Python's standard streams write here."""
        sys.stdout = sys.stderr = self._text
