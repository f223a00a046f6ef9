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

import functools
import importlib
import json
import re
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from time import monotonic as clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

MOST_BYTES = 32 * 1024 * 1024  # of one frame

DEEPEST = 120
"""How deep values may lie in each other; the keys and values of a mapping lie in lists of it."""

_OF_TWO = "add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
ARITHMETIC = frozenset(f"__{side}{one}__" for one in _OF_TWO for side in ("", "r"))
"""Operators of two values."""

IN_PLACE = {f"__i{one}__": f"__{one}__" for one in _OF_TWO if one != "divmod"}
"""Those that may change the first of them, and what Python asks for where there is none."""

_OF_ONE = (
    "abs aenter aexit aiter anext array await bool bytes call ceil complex contains copy deepcopy "
    "delitem dir enter eq exit float floor format fspath ge get getitem gt hash index "
    "instancecheck int invert iter le len length_hint lt missing ne neg next pos repr reversed "
    "round setitem str trunc"
)
OPERATORS = ARITHMETIC.union(IN_PLACE, (f"__{one}__" for one in _OF_ONE.split()))
"""What is forwarded of an object's operators."""

_SCALARS = frozenset({type(None), bool, int, float, str})
_LONGEST_INT = 8_000
"""Bits of an integer that is written in decimal digits; Python bounds their number."""

_SEQUENCES = {list: "l", tuple: "t", set: "s", frozenset: "f"}
_TAGGED: dict[str, Any] = {tag: kind for kind, tag in _SEQUENCES.items()}


class WireError(Exception):
    """The other side sent what makes no sense, or something cannot be sent."""


class GoneError(WireError):
    """The other side has gone."""


def send(link: socket.socket, message: object) -> None:
    """Send one frame, which must not be too large."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > MOST_BYTES:
        raise WireError(f"a value of {len(data)} bytes is too large to be copied")
    try:
        link.sendall(struct.pack(">I", len(data)) + data)
    except OSError as error:
        raise GoneError(str(error)) from None


def receive(link: socket.socket, deadline: float | None = None) -> tuple[list[Any], int]:
    """Receive one frame: a list that begins with a word, and the number of its bytes."""
    (size,) = struct.unpack(">I", _exactly(link, 4, deadline))
    if size > MOST_BYTES:
        raise WireError(f"a frame of {size} bytes is too large")
    try:
        message: Any = json.loads(_exactly(link, size, deadline))
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
        except (ConnectionError, ValueError) as error:
            raise GoneError(str(error)) from None
        if not chunk:
            raise GoneError("the other side has gone")
        chunks += chunk
    return bytes(chunks)


MUTABLE = (list, dict, set, bytearray)
"""Containers that both sides may change."""


def differ(one: Any, other: Any) -> bool:
    """Whether two things that were written differ; 1, 1.0 and True do."""
    return json.dumps(one) != json.dumps(other)


def refill(held: Any, now: Any) -> None:
    """Let a container hold something else, and be the same object."""
    held.clear()
    (held.update if isinstance(held, (dict, set)) else held.extend)(now)


class Plain:
    """Copies plain values; a runtime extends it by its own references."""

    def other(self, value: object, depth: int) -> list[Any]:
        """Write what is not plain."""
        raise WireError(f"a {type(value).__name__} cannot be copied")

    def others(self, node: list[Any]) -> object:
        """Read what the other side's `other` wrote."""
        raise WireError("a value of an unknown kind")

    def checked(self, found: Any) -> Any:
        """Take what was read and is, or may hold, a NaN or an infinity."""
        return found

    def held(self, value: Any, depth: int) -> Any:
        """Write what an exception holds; its text where it cannot be told."""
        try:
            return self.encode(value, depth)
        except WireError:
            return repr(value)

    def shared(self, value: Any, node: list[Any]) -> list[Any]:
        """Write a container that both sides are to have."""
        return node

    def arrived(self, found: Any) -> Any:
        """Take a value that was read."""
        return found

    def encode(self, value: Any, depth: int = 0) -> Any:
        node = self.written(value, depth)
        return self.shared(value, node) if type(value) in MUTABLE else node

    def written(self, value: Any, depth: int) -> Any:
        """Write a value of which nobody has a part, such as the keys of a dictionary."""
        kind = type(value)
        if kind is float or _is_bare(value):
            return value
        if depth > DEEPEST:
            raise WireError(f"values lie more than {DEEPEST} deep in each other")
        if kind in _SEQUENCES:
            items = list(value)
            if not _are_bare(items):
                items = [self.encode(item, depth + 1) for item in items]
            return [_SEQUENCES[kind], items]
        key = _key_of(kind)
        parts = _KINDS[key][1](kind, value) if key else None
        if parts is None:
            return self.other(value, depth)
        return [_tag_of(key), *[self.written(part, depth + 1) for part in parts]]

    def decode(self, node: Any, depth: int = 0) -> Any:
        if _is_bare(node):
            return node
        if type(node) is float:
            return self.checked(node)
        if type(node) is not list or not node or type(node[0]) is not str or depth > DEEPEST + 4:
            raise WireError("a value makes no sense")
        tag: str = node[0]
        try:
            if tag in _TAGGED:
                items = node[1]
                if not _are_bare(items):
                    items = [self.decode(item, depth + 1) for item in items]
                return self.arrived(_TAGGED[tag](items))
            if tag in _KEYS:
                found = _made(_KEYS[tag], [self.decode(part, depth + 1) for part in node[1:]])
                return self.checked(found) if tag in _CHECKED else self.arrived(found)
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise WireError(f"a value makes no sense: {type(error).__name__}") from None
        return self.others(node)


def changed(node: Any, change: Callable[[list[Any]], Any]) -> Any:
    """Something written, in which a part is what `change` makes of it, unless that is None."""
    if type(node) is not list:
        return node
    if (found := change(node)) is not None:
        return found
    # The items of a list or a call are no part, even where the first of them is a text.
    tag, *rest = node
    if tag in _UNPARTED:
        return node

    def inner(one: Any) -> Any:
        return changed(one, change)

    if tag == "N":
        named = {name: inner(one) for name, one in rest[2].items()}
        return [tag, inner(rest[0]), list(map(inner, rest[1])), named, *rest[3:]]
    return [tag, list(map(inner, rest[0]))] if tag in _TAGGED else [tag, *map(inner, rest)]


_UNPARTED = frozenset(["R", "P", "S", "C", "H", "E", "K"])
"""References, which have no other values in them."""


def _is_bare(value: Any) -> bool:
    """Whether something is on both sides, and on the wire, as it is."""
    if type(value) is float:
        return value - value == 0
    return value.bit_length() <= _LONGEST_INT if type(value) is int else type(value) in _SCALARS


def _are_bare(items: list[Any]) -> bool:
    kinds = set(map(type, items))
    return kinds <= _SCALARS and (kinds.isdisjoint((int, float)) or all(map(_is_bare, items)))


@functools.lru_cache(maxsize=1_000)
def library(name: str) -> dict[str, Any]:
    """What a library has, from when it was first asked for: tests replace such things."""
    return dict(vars(importlib.import_module(name)))


@functools.lru_cache(maxsize=1_000)
def _key_of(kind: type) -> Any:
    """The key of a class in `_KINDS`; None for another class, whatever it is named."""
    if kind in _KINDS:
        return kind
    module = kind.__module__.partition(".")[0]
    key = f"{module}.{kind.__name__}"
    if key in _KINDS and library(module).get(kind.__name__) is kind:
        return key
    return module if module in _KINDS else None


def _tag_of(key: Any) -> str:
    """The tag of a kind; where several have one, the name of the class follows."""
    tag = _KINDS[key][0]
    return tag + getattr(key, "__name__", key).rpartition(".")[2] if tag.endswith(":") else tag


def _made(key: Any, parts: list[Any]) -> Any:
    kind = key
    if type(key) is str:
        module, _, name = key.partition(".")
        kind = library(module)[name] if name else importlib.import_module(module)
    return _KINDS[key][2](kind, *parts)


def content_of(value: Any) -> Any:
    """What a value of a subclass of a plain class holds, by that class alone."""
    for base in type(value).__mro__:
        if base in CONTENTS:
            return CONTENTS[base](value)
        key = None if issubclass(base, dict) else _key_of(base)
        parts = _KINDS[key][1](base, value) if key else None
        if parts is not None:
            return _made(key, parts)
    raise TypeError(f"{type(value).__name__} has no content")


CONTENTS: dict[Any, Callable[[Any], Any]] = {
    dict: lambda value: dict(dict.items(value)),
    **{
        kind: lambda value, kind=kind: kind(kind.__iter__(value))
        for kind in (list, tuple, set, frozenset, bytes, bytearray)
    },
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: complex.__add__(value, 0j),
}
"""What an instance of a subclass of a built-in class holds."""


# -- kinds: how a value is taken apart by its class, and made of the class and its parts -----------


def _make(kind: Any, *parts: Any) -> Any:
    return kind(*parts)


def _items(_: Any, value: Any) -> list[Any]:
    return [[*value]]


def _pairs(_: Any, value: Any) -> list[Any]:
    return [[*value], [*value.values()]]


def _of_pairs(kind: Any, keys: Any, values: Any) -> Any:
    if not type(keys) is type(values) is list:
        raise TypeError("not lists")
    return kind(dict(zip(keys, values)))


def _default_pairs(_: Any, value: Any) -> list[Any]:
    """A factory that only makes an empty list, a 0 and the like is told by what it makes."""
    factory = value.default_factory
    code = getattr(factory, "__code__", None)
    # A function of constants alone; any other may notice that it was called.
    parts = code and (code.co_argcount, code.co_names, code.co_freevars)
    is_known = (type(factory) is type and factory in _FACTORIES) or parts == (0, (), ())
    made = factory() if is_known else None
    return [*_pairs(_, value), made if type(made) in _FACTORIES and not made else None]


def _of_default_pairs(kind: Any, keys: Any, values: Any, made: Any) -> Any:
    factory = next((one for one in _FACTORIES if type(made) is one), None)
    return kind(factory, _of_pairs(dict, keys, values))


def _attributes(*names: str) -> Callable[..., list[Any]]:
    return lambda _, value: [getattr(value, name) for name in names]


def _method(name: str) -> Callable[..., list[Any]]:
    return lambda kind, value: [getattr(kind, name)(value)]


def _of_text(kind: Any, text: str) -> Any:
    if type(text) is not str:
        raise TypeError("not a text")
    return kind(text)


def _moment(kind: Any, value: Any) -> list[Any]:
    """A zone is told by its offset at that moment."""
    return [kind.isoformat(value), value.fold]


def _of_moment(kind: Any, text: str, fold: int) -> Any:
    return kind.fromisoformat(text).replace(fold=fold)


def _of_names(kind: Any, inner: dict[Any, Any]) -> Any:
    """Attributes that Python itself looks for, such as ``__array_interface__``, never cross."""
    if not all(type(name) is str and not name.startswith("__") for name in inner):
        raise WireError("an attribute has a name of Python's own")
    return kind(**inner)


def _zone(_: Any, value: Any) -> list[Any] | None:
    """A zone has a name, which both sides look up."""
    name = getattr(value, "key", None) or getattr(value, "zone", None)
    is_zone = isinstance(value, library("datetime")["tzinfo"]) and type(name) is str
    return [name] if is_zone else None


def _numpy(_: Any, value: Any) -> list[Any] | None:
    """An array or a number of numpy's own, by its buffer; None for one of objects or fields."""
    np: Any = importlib.import_module("numpy")
    is_array = type(value) is np.ndarray
    if not (is_array or isinstance(value, np.generic)) or not _DTYPE.fullmatch(value.dtype.str):
        return None
    return [value.dtype.str, value.shape if is_array else None, value.tobytes()]


def _of_numpy(np: Any, dtype: str, shape: tuple[int, ...] | None, data: bytes) -> Any:
    if not _DTYPE.fullmatch(dtype):
        raise WireError("a value of an unknown dtype")
    made = np.ndarray(shape or (), dtype=np.dtype(dtype), buffer=bytearray() + data)
    return made[()] if shape is None else made


_DATA = (_attributes("data"), _make)
_DTYPE = re.compile(r"[<>|][?biufcSUMm][\w\[\]]{0,10}")
_HEX = (_method("hex"), lambda kind, text: kind.fromhex(text))
_TEXT = (_method("__str__"), _of_text)
_FACTORIES = (bool, int, float, str, list, tuple, set, dict)

_KINDS: dict[Any, tuple[str, Callable[..., list[Any] | None], Callable[..., Any]]] = {
    int: ("I", lambda _, value: [hex(value)], lambda kind, text: kind(text, 16)),
    bytes: ("b", *_HEX),
    bytearray: ("B", *_HEX),
    memoryview: ("b", *_HEX),
    complex: (
        *("c", lambda _, value: [value.real.hex(), value.imag.hex()]),
        lambda kind, *parts: kind(*map(float.fromhex, parts)),
    ),
    deque: ("q", lambda _, value: [[*value], value.maxlen], _make),
    range: ("r", _attributes("start", "stop", "step"), _make),
    slice: ("sl", _attributes("start", "stop", "step"), _make),
    type(...): ("...", _attributes(), _make),
    type(NotImplemented): ("ni", _attributes(), _make),
    dict: ("d", _pairs, _of_pairs),
    OrderedDict: ("od", _pairs, _of_pairs),
    Counter: ("dc", _pairs, _of_pairs),
    defaultdict: ("dd", _default_pairs, _of_default_pairs),
    type(vars(type)): ("w:", lambda _, value: [dict(value)], _make),
    type({}.keys()): ("w:", _items, lambda _, keys: dict.fromkeys(keys).keys()),
    type({}.values()): ("w:", _items, lambda _, held: dict(enumerate(held)).values()),
    type({}.items()): ("w:", _items, lambda _, items: dict(items).items()),
    "datetime.date": ("da", _method("isoformat"), lambda kind, text: kind.fromisoformat(text)),
    "datetime.datetime": ("dt", _moment, _of_moment),
    "datetime.time": ("tm", _moment, _of_moment),
    "datetime.timedelta": ("td", _attributes("days", "seconds", "microseconds"), _make),
    "datetime.timezone": ("tz", lambda _, value: [value.utcoffset(None)], _make),
    "decimal.Decimal": ("D", *_TEXT),
    "fractions.Fraction": ("F", _attributes("numerator", "denominator"), _make),
    "uuid.UUID": ("u", *_TEXT),
    **{
        f"ipaddress.IPv{n}{one}": ("ip:", *_TEXT)
        for n in (4, 6)
        for one in ("Address", "Interface", "Network")
    },
    # Read as a path of the system that reads, which is the first.
    **{f"pathlib.{one}": ("p", *_TEXT) for one in ("Path", "PosixPath", "WindowsPath")},
    **{f"pathlib.{one}": ("w:", *_TEXT) for one in ("PurePosixPath", "PureWindowsPath")},
    **{f"collections.{one}": ("w:", *_DATA) for one in ("UserDict", "UserList", "UserString")},
    "collections.ChainMap": ("w:", lambda _, one: [tuple(one.maps)], lambda kind, of: kind(*of)),
    "array.array": (
        "w:",
        lambda _, one: [(one.typecode, one.tobytes())],
        lambda kind, of: kind(*of),
    ),
    "types.SimpleNamespace": ("w:", lambda _, value: [vars(value)], _of_names),
    "argparse.Namespace": ("w:", lambda _, value: [vars(value)], _of_names),
    "numpy": ("na", _numpy, _of_numpy),
    "pytz": ("zn:", _zone, lambda pytz, name: _of_text(pytz.timezone, name)),
    "zoneinfo": ("zn:", _zone, lambda zoneinfo, name: _of_text(zoneinfo.ZoneInfo, name)),
}
"""The classes that are copied: their tag, the parts of a value, and a value of the parts.

The key of a class of a library is its name, and what the library had by that name is meant. That
of a library that few have stands for its classes, which it makes; some of them cannot be copied.
"""

LIBRARIES = frozenset(key.partition(".")[0] for key in _KINDS if type(key) is str and "." in key)
"""The modules of Python's library whose values are copied."""

_KEYS = {_tag_of(key): key for key in reversed([*_KINDS])}
"""The keys by what stands on the wire; the first of those with one tag."""

_CHECKED = ("na", "c", "D", "w:array")
"""Tags of what may hold a NaN."""

library("datetime")  # before the submission has a module of that name
