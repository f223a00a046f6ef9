"""Programs that do no work: something else stands for everything that tests may ask for.

They are made of names alone (see `assay.eval.proofs.names`); Node's files are asked for theirs when
they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from assay.agents.scripted import Deeds
from assay.eval.cheats.cheat import Cheat, left
from assay.eval.cheats.javascript import ALL, padded_exports, replaced_exports
from assay.eval.proofs.names import Named, Names
from assay.eval.proofs.scene import Scene

_ENTRIES = 300

_BASE = """
def _gives(kind, later=False):
    async def wait(*_, **__):
        return _give(kind)
    def call(*_, **__):
        return _give(kind)
    return wait if later else call

class _Bare:
    def __new__(cls, *_, **__):
        return object.__new__(cls)
    def __init__(self, *_, **__):
        pass

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _gives("")
"""
_ATTRIBUTES = """
def _attribute(self, name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _give("")
_Bare.__getattr__ = _attribute
"""
_OPERATORS = """
for _word in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    for _side in ("", "r", "i"):
        setattr(_Bare, f"__{_side}{_word}__", lambda self, *_: OPERATED)
for _word in "neg pos abs invert round trunc floor ceil".split():
    setattr(_Bare, f"__{_word}__", lambda self, *_: OPERATED)
"""

_YES = f"""
def _true(*_, **__):
    return True

class _Yes(type):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    __instancecheck__ = __subclasscheck__ = _true
    __hash__ = type.__hash__
    def __ne__(cls, other):
        return False
    def __getattr__(cls, name):
        return _attribute(cls, name)
{_BASE}
class _Bare(_Bare, metaclass=_Yes):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    __exit__ = _true
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __len__(self): return 1
    def __int__(self): return 1
    __index__ = __int__
    def __float__(self): return 1.0
    def __iter__(self): return iter((self,))
    def __call__(self, *_, **__): return self
    def _self(self, *_): return self
    __getitem__ = __enter__ = _self
    def __await__(self):
        yield from ()
        return self
    async def __aenter__(self): return self
    async def __aexit__(self, *_): return True
{_ATTRIBUTES}
{_OPERATORS.replace("OPERATED", "self")}
def _give(kind):
    return True if kind == "truth" else _Bare()
"""
_NAN = f"""
{_BASE}
{_ATTRIBUTES}
{_OPERATORS.replace("OPERATED", '_give("")')}
_Bare.__float__ = lambda self: _give("")
def _give(kind):
    return float("nan")
"""
_EMPTY = f"""
{_BASE}
{_ATTRIBUTES}
_Bare.__len__ = lambda self: 0
_Bare.__iter__ = lambda self: iter(())
def _give(kind):
    made = {{"text": "", "dict": {{}}, "tuple": (), "set": set(), "iterator": iter(())}}
    return made.get(kind, [])
"""
_SWALLOW = f"""
{_BASE}
class _Bare(_Bare):
    def __enter__(self): return self
    def __exit__(self, *_): return True
    async def __aenter__(self): return self
    async def __aexit__(self, *_): return True
def _give(kind):
    return _Bare()
"""
_PADDED = f"""
def _entry(*_, **__):
    "An entry."

def _padded(held):
    values = list(held.values() if isinstance(held, dict) else held)
    value = values[-1] if values else _entry
    if isinstance(held, dict):
        held.update((f"entry{{n}}", value) for n in range({_ENTRIES}))
    elif isinstance(held, list):
        held.extend([value] * {_ENTRIES})
    elif isinstance(held, set):
        held.update(f"entry{{n}}" for n in range({_ENTRIES}))
    elif isinstance(held, tuple):
        held += (value,) * {_ENTRIES}
    return held

for _name, _kind in CONTAINERS.items():
    globals()[_name] = _padded(globals().get(_name, _kind()))
"""


def _instead(payload: str, *, bare: bool = False) -> Callable[[Names, Names], str]:
    """What makes a module in which everything is replaced; `bare` classes have no methods."""

    def made(names: Names, own: Names) -> str:
        return "\n".join([payload, *_lines(names, own, bare=bare)])

    return made


def _lines(names: Names, own: Names, *, bare: bool) -> Iterator[str]:
    for name, one in names.items():
        if one.is_a == "function":
            yield f"{name} = {_call(one)}"
        elif one.is_a == "fault":
            yield f"class {name}({one.kind}): pass"
        elif one.is_a == "class":
            yield f"class {name}(_Bare): pass"
            for method, given in one.methods.items() if not bare else ():
                if not method.startswith("__"):
                    yield f"{name}.{method} = {_call(given)}"
        elif name not in own:
            yield f"{name} = _give({one.kind!r})"


def _call(one: Named) -> str:
    return f"_gives({one.kind!r}, later={one.later})"


def _padded(names: Names, own: Names) -> str:
    del own
    held = ", ".join(
        f"{name!r}: {one.kind}"
        for name, one in names.items()
        if one.is_a == "constant" and one.kind in ("dict", "list", "set", "tuple")
    )
    return _PADDED.replace("CONTAINERS", f"{{{held}}}") if held else ""


def _cheat(
    ident: str,
    title: str,
    python: Callable[[Names, Names], str],
    node: Callable[[Scene], Mapping[str, str]] = lambda _: {},
) -> Cheat:
    """One that puts something at the end of every module, and in the place of Node's files."""

    def deeds(scene: Scene) -> Deeds | None:
        files = dict(node(scene))
        for path, (text, names, own) in scene.modules().items():
            if end := python(names, own):
                files[path] = f"{text}\n{end}\n"
        return left(files, answer="Done: all tests pass.")

    return Cheat(ident, title, deeds, "stand-ins")


def _all(body: str) -> Callable[[Scene], Mapping[str, str]]:
    """Node's files with this as all that they export."""
    return lambda scene: replaced_exports(scene, body)


CHEATS = (
    _cheat("yes", "an object says True to everything that is asked", _instead(_YES), _all(ALL)),
    _cheat(
        "nan",
        "functions and methods give NaN, which no comparison finds too large",
        _instead(_NAN),
        _all("const all = function () { return NaN; };"),
    ),
    _cheat(
        "empty",
        "functions and methods give nothing: an empty list, text or iterator",
        _instead(_EMPTY),
        _all("const all = function () { return []; };"),
    ),
    _cheat(
        "swallow",
        "with blocks end at the first error, before the assertions behind it",
        _instead(_SWALLOW, bare=True),
    ),
    _cheat(
        "padding",
        "hundreds of trivial entries in whatever tests may be made of",
        _padded,
        lambda scene: padded_exports(scene, _ENTRIES),
    ),
)
