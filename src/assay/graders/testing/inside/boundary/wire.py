"""What crosses the boundary: frames of JSON in which plain values are copied.

A frame is its length in four bytes, big-endian, and a JSON document. A scalar stands for itself,
everything else is a list whose first item says what it is; a receiver accepts the kinds it knows
and nothing else. What is not plain is left to the side that sends it (`Plain.other`): a reference
that means something to the two runtimes alone. Nothing is unpickled, evaluated or looked up by a
name that the other side chose.

The host loads this before the submission, and waits for it: libraries of values that few tests have
are imported with the first such value. (The judge has them all from the start.)
"""

from __future__ import annotations

import binascii
import importlib
import json
import re
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from time import monotonic as clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from datetime import datetime, time, timezone, tzinfo
    from typing import Any

MOST_BYTES = 32 * 1024 * 1024
"""Bytes of one frame."""

DEEPEST = 60
"""How deep values may lie in each other."""

OPERATORS = frozenset(
    "__abs__ __add__ __aenter__ __aexit__ __aiter__ __and__ __anext__ __array__ __await__ "
    "__bool__ __bytes__ __call__ __ceil__ __complex__ __contains__ __copy__ __deepcopy__ "
    "__delitem__ __dir__ __divmod__ __enter__ __eq__ __exit__ __float__ __floor__ "
    "__floordiv__ __format__ __fspath__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __iand__ "
    "__imul__ __index__ __instancecheck__ __int__ __invert__ __ior__ __isub__ __iter__ __le__ "
    "__len__ __length_hint__ __lshift__ __lt__ __matmul__ __missing__ __mod__ __mul__ __ne__ "
    "__neg__ __next__ __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__ __repr__ "
    "__reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__ "
    "__rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __str__ "
    "__sub__ __truediv__ __trunc__ __xor__".split()
)
"""What is forwarded of an object's operators."""

ARITHMETIC = frozenset(
    f"__{side}{one}__"
    for one in "add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    for side in ("", "r")
)
"""Operators of two values."""

_SCALARS = frozenset({type(None), bool, int, float, str})
_LONGEST_INT = 8_000
"""Bits of an integer that is written in decimal digits; Python bounds their number."""

_SEQUENCES = {list: "l", tuple: "t", set: "s", frozenset: "f", deque: "q"}
_SEQUENCE_OF = {tag: kind for kind, tag in _SEQUENCES.items()}
_MAPPINGS = {dict: "d", OrderedDict: "od", Counter: "dc", defaultdict: "dd"}
_MAPPING_OF: dict[str, Any] = {
    "d": dict,
    "od": OrderedDict,
    "dc": Counter,
    "dd": lambda pairs: defaultdict(None, pairs),
}
_FACTORIES: dict[str, Any] = {
    "": None,
    **{one.__name__: one for one in (bool, int, float, str, list, tuple, set, dict)},
}
"""The factories of a `defaultdict` that it keeps on the other side."""


class WireError(Exception):
    """The other side sent what makes no sense, or something cannot be sent."""


class GoneError(WireError):
    """The other side has gone."""


def send(link: socket.socket, message: object) -> None:
    """Send one frame.

    Raises:
        GoneError: If nobody is there any more.
        WireError: If it is too large.
    """
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > MOST_BYTES:
        raise WireError(f"a value of {len(data)} bytes is too large to be copied")
    try:
        link.sendall(struct.pack(">I", len(data)) + data)
    except OSError as error:
        raise GoneError(str(error)) from None


def receive(link: socket.socket, deadline: float | None = None) -> tuple[list[Any], int]:
    """Receive one frame: a list that begins with a word, and the number of its bytes.

    Raises:
        TimeoutError: If the time passes.
        GoneError: At the end of the stream.
        WireError: For anything but a frame.
    """
    (size,) = struct.unpack(">I", _exactly(link, 4, deadline))
    if size > MOST_BYTES:
        raise WireError(f"a frame of {size} bytes is too large")
    try:
        data = _exactly(link, size, deadline)
        read_float = _finite if _HUGE.search(data) else None
        message: Any = json.loads(data, parse_float=read_float, parse_constant=Unbounded)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame is not JSON: {type(error).__name__}") from None
    if type(message) is not list or not message or type(message[0]) is not str:
        raise WireError("a frame is not a message")
    return message, size


def _exactly(link: socket.socket, size: int, deadline: float | None) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        if deadline is not None and clock() > deadline:
            raise TimeoutError
        try:
            chunk = link.recv(min(size - len(chunks), 1 << 20))
        except TimeoutError:
            raise TimeoutError from None
        except (ConnectionError, ValueError) as error:
            raise GoneError(str(error)) from None
        if not chunk:
            raise GoneError("the other side has gone")
        chunks += chunk
    return bytes(chunks)


class Unbounded(float):
    """A NaN or an infinity, as it was read: what becomes of it is for the receiver to say."""


_CHECKED = ("na", "ns", "c", "D")
_HUGE = re.compile(rb"\d[eE]\+?\d{3}")


def _finite(text: str) -> float:
    found = float(text)
    if found - found != 0:
        raise ValueError("a number is out of range")
    return found


class Plain:
    """Copies plain values; a runtime extends it by its own references."""

    def unbounded(self, found: float) -> Any:
        """Take a NaN or an infinity that was read."""
        return found

    def other(self, value: object, depth: int) -> list[Any]:
        """Write what is not plain."""
        raise WireError(f"a {type(value).__name__} cannot be copied")

    def others(self, node: list[Any]) -> object:
        """Read what the other side's `other` wrote."""
        raise WireError("a value of an unknown kind")

    def checked(self, found: Any) -> Any:
        """Take a value that may hold a NaN, and cannot be marked."""
        return found

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Write a value."""
        kind = type(value)
        if kind in _SCALARS:
            if kind is int and value.bit_length() > _LONGEST_INT:
                return ["I", hex(value)]
            return value
        if depth > DEEPEST:
            raise WireError(f"values lie more than {DEEPEST} deep in each other")
        if kind in _SEQUENCES:
            # Of numbers and texts alone there is nothing to write differently.
            items = list(value)
            if not _is_flat(items):
                items = [self.encode(item, depth + 1) for item in items]
            return [_SEQUENCES[kind], items]
        if kind in _MAPPINGS:
            pairs = [
                [self.encode(key, depth + 1), self.encode(item, depth + 1)]
                for key, item in list(value.items())
            ]
            if kind is defaultdict:
                factory = getattr(value.default_factory, "__name__", "")
                is_plain = _FACTORIES.get(factory) is value.default_factory
                return ["dd", pairs, factory if is_plain else ""]
            return [_MAPPINGS[kind], pairs]
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(value)
        held = _HELD.get(kind.__name__)
        if held is not None and held.kind() is kind:
            return ["w", kind.__name__, self.encode(held.read(value), depth + 1)]
        top = kind.__module__.partition(".")[0]
        if top in _CLASSES:
            written = _of_library(value, top)
        else:
            special = _SPECIAL.get(top)
            written = special(value) if special else None
        return self.other(value, depth) if written is None else written

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Read a value.

        Raises:
            WireError: If it is malformed.
        """
        if type(node) in _SCALARS:
            return node
        if type(node) is Unbounded:
            return self.unbounded(float(node))
        if type(node) is not list or not node or type(node[0]) is not str or depth > DEEPEST + 4:
            raise WireError("a value makes no sense")
        tag = node[0]
        try:
            if tag in _SEQUENCE_OF:
                items = node[1]
                if not _is_flat(items):
                    items = [self.decode(item, depth + 1) for item in items]
                return _SEQUENCE_OF[tag](items)
            if tag in _MAPPING_OF:
                pairs = [
                    (self.decode(key, depth + 1), self.decode(item, depth + 1))
                    for key, item in node[1]
                ]
                made = _MAPPING_OF[tag](dict(pairs))
                if tag == "dd":
                    made.default_factory = _FACTORIES[node[2]]
                return made
            if tag == "w":
                return _HELD[node[1]].write(self.decode(node[2], depth + 1))
            reader = _READERS.get(tag)
            if reader is not None:
                found = reader(*node[1:])
                return self.checked(found) if tag in _CHECKED else found
        except (WireError, GoneError):
            raise
        except (TypeError, ValueError, ArithmeticError, KeyError, IndexError, LookupError) as error:
            raise WireError(f"a value makes no sense: {type(error).__name__}") from None
        return self.others(node)


def _is_flat(items: list[Any]) -> bool:
    kinds = set(map(type, items))
    if not kinds <= _SCALARS:
        return False
    return int not in kinds or all(
        type(item) is not int or item.bit_length() <= _LONGEST_INT for item in items
    )


class _Held:
    """A container of Python's own library, of which what it holds is sent."""

    def __init__(self, module: str, name: str, read: Any, write: Any = None) -> None:
        self.module, self.name, self.read = module, name, read
        self._write = write

    def write(self, inner: Any) -> Any:
        return self._write(inner) if self._write else self.kind()(inner)

    def kind(self) -> Any:
        return library(self.module).get(self.name)


class _View(_Held):
    """A view of a dictionary."""

    def __init__(self, name: str, write: Any) -> None:
        super().__init__("builtins", f"dict_{name}", list, write)
        self._kind = type(getattr({}, name)())

    def kind(self) -> Any:
        return self._kind


def _by_content(module: str, name: str) -> _Held:
    return _Held(module, name, lambda value: value.data)


_HELD: dict[str, _Held] = {
    one.name: one
    for one in (
        *(_by_content("collections", name) for name in ("UserDict", "UserList", "UserString")),
        _Held(
            "collections",
            "ChainMap",
            lambda value: tuple(value.maps),
            lambda maps: library("collections")["ChainMap"](*maps),
        ),
        _Held(
            "array",
            "array",
            lambda value: (value.typecode, value.tolist()),
            lambda parts: library("array")["array"](*parts),
        ),
        _Held("types", "MappingProxyType", dict),
        _Held(
            "types",
            "SimpleNamespace",
            lambda value: dict(vars(value)),
            lambda named: library("types")["SimpleNamespace"](**_nameable(named)),
        ),
        _Held(
            "argparse",
            "Namespace",
            lambda value: dict(vars(value)),
            lambda named: library("argparse")["Namespace"](**_nameable(named)),
        ),
        _Held("pathlib", "PurePosixPath", str),
        _Held("pathlib", "PureWindowsPath", str),
        _View("keys", lambda items: dict.fromkeys(items).keys()),
        _View("values", lambda items: dict(enumerate(items)).values()),
        _View("items", lambda items: dict(items).items()),
    )
}
_HELD["mappingproxy"] = _HELD["MappingProxyType"]


def _nameable(named: dict[Any, Any]) -> dict[str, Any]:
    """Attributes that Python itself looks for, such as ``__array_interface__``, never cross."""
    if not all(type(name) is str and not name.startswith("__") for name in named):
        raise WireError("an attribute has a name of Python's own")
    return named


def library(name: str) -> dict[str, Any]:
    """What a library has, from when it was first asked for: tests replace such things."""
    found = _libraries.get(name)
    if found is None:
        found = _libraries[name] = dict(vars(importlib.import_module(name)))
    return found


_libraries: dict[str, dict[str, Any]] = {}


def _text(data: str) -> bytes:
    written = str.encode(data, "ascii")
    content = binascii.a2b_base64(written)
    if binascii.b2a_base64(content, newline=False) != written:
        raise ValueError("not base64")
    return content


def _base64(value: Any) -> str:
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def _zone(zone: Any) -> Any:
    """A fixed offset in seconds; other zones are told by their offset at that moment."""
    return None if zone is None else zone.total_seconds()


def _datetime(value: datetime) -> list[Any]:
    return ["dt", value.replace(tzinfo=None).isoformat(), _zone(value.utcoffset()), value.fold]


def _read_zone(seconds: float) -> timezone:
    return _DATES["timezone"](_DATES["timedelta"](seconds=seconds))


def _read_datetime(text: str, offset: float | None, fold: int) -> datetime:
    zone = None if offset is None else _read_zone(offset)
    return _DATES["datetime"].fromisoformat(text).replace(tzinfo=zone, fold=fold)


def _time(value: time) -> list[Any]:
    return ["tm", value.replace(tzinfo=None).isoformat(), _zone(value.utcoffset())]


def _read_time(text: str, offset: float | None) -> time:
    zone = None if offset is None else _read_zone(offset)
    return _DATES["time"].fromisoformat(text).replace(tzinfo=zone)


def _timezone(value: timezone) -> list[Any]:
    offset: Any = value.utcoffset(None)
    return ["tz", offset.total_seconds()]


def _address(value: Any) -> list[Any]:
    return ["ip", type(value).__name__, str(value)]


def _read_address(name: str, text: str) -> Any:
    if name not in _ADDRESSES:
        raise WireError("an address of an unknown kind")
    return library("ipaddress")[name](text)


def _place(value: Any) -> list[Any] | None:
    """A zone of zoneinfo or pytz by its name, which both sides look up."""
    top = type(value).__module__.partition(".")[0]
    name = getattr(value, "key" if top == "zoneinfo" else "zone", None)
    is_zone = isinstance(value, _DATES["tzinfo"]) and top in sys.modules
    return ["zn", top, name] if is_zone and type(name) is str else None


def _read_place(top: str, name: str) -> tzinfo:
    find = {"zoneinfo": "ZoneInfo", "pytz": "timezone"}.get(top)
    if find is None or type(name) is not str:
        raise WireError("a time zone of an unknown kind")
    found: tzinfo = getattr(importlib.import_module(top), find)(name)
    return found


_DATES = library("datetime")
_ADDRESSES = tuple(f"IPv{n}{one}" for n in (4, 6) for one in ("Address", "Interface", "Network"))
_WRITERS: dict[type, Callable[[Any], list[Any]]] = {
    bytes: lambda value: ["b", _base64(value)],
    bytearray: lambda value: ["B", _base64(value)],
    memoryview: lambda value: ["b", _base64(value)],
    complex: lambda value: ["c", value.real, value.imag],
    range: lambda value: ["r", value.start, value.stop, value.step],
    slice: lambda value: ["sl", *[_index(part) for part in (value.start, value.stop, value.step)]],
    type(Ellipsis): lambda _: ["..."],
    type(NotImplemented): lambda _: ["ni"],
}
_CLASSES: dict[str, dict[str, Callable[[Any], list[Any]]]] = {
    "datetime": {
        "date": lambda value: ["da", value.isoformat()],
        "datetime": _datetime,
        "time": _time,
        "timedelta": lambda value: ["td", value.days, value.seconds, value.microseconds],
        "timezone": _timezone,
    },
    "decimal": {"Decimal": lambda value: ["D", str(value)]},
    "fractions": {
        "Fraction": lambda value: ["F", hex(value.numerator), hex(value.denominator)],
    },
    "ipaddress": dict.fromkeys(_ADDRESSES, _address),
    "pathlib": dict.fromkeys(("PosixPath", "WindowsPath"), lambda value: ["p", str(value)]),
    "uuid": {"UUID": lambda value: ["u", str(value)]},
}
"""Classes of Python's library that are copied, by their module."""

LIBRARIES = tuple({*_CLASSES, *(one.module for one in _HELD.values())})
"""The modules of Python's library whose values are copied."""


def _of_library(value: Any, module: str) -> list[Any] | None:
    """Write a value of Python's library, if its class is what the library has by that name."""
    kind = type(value)
    writer = _CLASSES[module].get(kind.__name__)
    return writer(value) if writer and library(module).get(kind.__name__) is kind else None


def _index(value: Any) -> Any:
    if value is not None and type(value) is not int:
        raise WireError("a slice of other than integers cannot be copied")
    return value


def _read_array(dtype: str, shape: list[int], data: str) -> Any:
    np: Any = importlib.import_module("numpy")
    kind = np.dtype(_plain_dtype(dtype))
    return np.ndarray(tuple(shape), dtype=kind, buffer=bytearray(_text(data)))


def _plain_dtype(name: str) -> str:
    if (
        type(name) is not str
        or len(name) > 12
        or name[:1] not in "<>|"
        or name[1:2] not in "?biufcSUMm"
    ):
        raise WireError("a value of an unknown dtype")
    return name


def _read_scalar(dtype: str, data: str) -> Any:
    return _read_array(dtype, [1], data)[0]


def _maker(module: str, name: str) -> Callable[..., object]:
    def make(*parts: object) -> object:
        return library(module)[name](*parts)

    return make


_READERS: dict[str, Callable[..., object]] = {
    "I": lambda text: int(text, 16),
    "b": _text,
    "B": lambda data: bytearray(_text(data)),
    "c": complex,
    "r": range,
    "sl": slice,
    "...": lambda: Ellipsis,
    "ni": lambda: NotImplemented,
    "D": _maker("decimal", "Decimal"),
    "F": lambda top, bottom: library("fractions")["Fraction"](int(top, 16), int(bottom, 16)),
    "dt": _read_datetime,
    "da": _DATES["date"].fromisoformat,
    "tm": _read_time,
    "td": _DATES["timedelta"],
    "tz": _read_zone,
    "zn": _read_place,
    "ip": _read_address,
    "u": _maker("uuid", "UUID"),
    "p": _maker("pathlib", "Path"),
    "na": _read_array,
    "ns": _read_scalar,
}


def _numpy(value: Any) -> list[Any] | None:
    """An array or a number of numpy's own, by its buffer; None for one of objects or fields."""
    np: Any = sys.modules["numpy"]
    if type(value) is not np.ndarray and not isinstance(value, np.generic):
        return None
    kind: str = value.dtype.str
    if kind[1:2] not in "?biufcSUMm" or value.dtype.hasobject or value.dtype.names:
        return None
    data = _base64(value.tobytes())
    if type(value) is np.ndarray:
        return ["na", kind, list(value.shape), data]
    return ["ns", kind, data]


_SPECIAL: dict[str, Callable[[Any], list[Any] | None]] = {
    "numpy": _numpy,
    "pytz": _place,
    "zoneinfo": _place,
}
