"""Stand-ins: what the judge has instead of the submission's functions, classes and objects.

The class of a stand-in is made for one class of the submission and stands for that class, too, so
that ``isinstance``, ``type(x) is kit.Thing`` and subclasses hold. It has the operators that the
other class has. They are forwarded, but for those that decide: see `questions`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from assay.graders.testing.inside.boundary import contract, questions
from assay.graders.testing.inside.boundary.judge_state import (
    Ref,
    StandInType,
    barred,
    forward,
    is_authors,
    ref_of,
    space_of,
    state,
    the_ref,
)
from assay.graders.testing.inside.boundary.wire import ARITHMETIC, MUTABLE, OPERATORS, WireError

IMMUTABLE = (str, bytes, int, float, complex, tuple, frozenset)
_NAMELESS = frozenset(
    "__wrapped__ __code__ __func__ __globals__ __closure__ __test__ __pytest_wrapped__ pytestmark "
    "__tracebackhide__ _mock_methods _spec_class __set_name__ __isabstractmethod__ "
    "__abstractmethods__".split()
)
_NEVER_FORWARDED = ("_pytest", "_assay", "__hypothesis", "__array_", "__pytest")
_LEFT_OUT = frozenset(
    "__eq__ __ne__ __hash__ __bool__ __instancecheck__ __array__ __dir__ __missing__ "
    "__length_hint__".split()
)
"""What is no operator here, or is made for all."""


def is_quiet(name: str) -> bool:
    """Whether nobody asks the host for an attribute: test frameworks look for it everywhere."""
    return name in _NAMELESS or name.startswith(_NEVER_FORWARDED)


class Remote:
    """What is asked of a module of the submission's, a class and an object: its attributes."""

    def __getattr__(self, name: str) -> Any:
        ref = ref_of(self)
        if ref is None or is_quiet(name):
            raise AttributeError(name)
        return ref.home().get(ref, name)

    def __setattr__(self, name: str, value: Any) -> None:
        the_ref(self).home().set(the_ref(self), name, value)

    def __delattr__(self, name: str) -> None:
        the_ref(self).home().delete(the_ref(self), name)

    def __dir__(self) -> list[str]:
        ref = ref_of(self)
        found: Any = ["", []] if ref is None else ref.home().request("names", ref.node())
        return [one for one in found[1] if type(one) is str and not is_quiet(one)]

    @property
    def __signature__(self) -> Any:
        ref = ref_of(self)
        if ref is None or not callable(self):
            raise AttributeError("__signature__")
        talk, kinds = ref.home(), list(type(inspect.Parameter.POSITIONAL_ONLY))
        parameters: list[inspect.Parameter] = []
        for name, kind, default in talk.request("signature", ref.node()):
            has = inspect.Parameter.empty if default is None else talk.decode(default[0])
            parameters.append(inspect.Parameter(str(name), kinds[kind], default=has))
        return inspect.Signature(parameters)


class StandKind(Remote, StandInType):
    """The class of the stand-ins for one class of the submission, and the one for that class."""

    _assay_form: dict[str, Any]
    _assay_base: type | None
    _assay_label: str

    def __new__(
        mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], **named: Any
    ) -> Any:
        if "_assay_kind" in space:
            return super().__new__(mcs, name, bases, space)
        return _subclass(mcs, name, bases, space, named)

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, space)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        found = the_ref(cls).home().construct(cls, arguments, named)
        return _member(cls, found, "()", *arguments)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith(("__", "_assay")):
            type.__setattr__(cls, name, value)
        elif isinstance(value, _Member):  # a patch is taken back
            Remote.__delattr__(cls, name)
            type.__setattr__(cls, name, value)
        else:
            if name in cls.__dict__:
                type.__delattr__(cls, name)
            Remote.__setattr__(cls, name, value)

    @property
    def __test__(cls) -> bool:  # a class of the submission is not a test; one made of it may be
        return bool(type.__getattribute__(cls, "__dict__").get("_assay_tested"))

    def __iter__(cls) -> Iterator[Any]:
        return _iterator(_of_class(cls, "__iter__"))

    def __getitem__(cls, key: Any) -> Any:
        if "__getitem__" not in cls._assay_form["meta"]:
            return the_ref(cls).home().get(the_ref(cls), "__class_getitem__")(key)
        return _member(cls, _of_class(cls, "__getitem__", key), "[]", key)

    def __len__(cls) -> int:
        return _of_class(cls, "__len__")

    def __contains__(cls, item: Any) -> bool:
        return isinstance(item, cls) or any(item == one for one in cls)

    def __bool__(cls) -> bool:
        return True


def _of_class(cls: StandKind, name: str, *arguments: Any) -> Any:
    if name not in cls._assay_form["meta"]:
        raise TypeError(f"{cls.__name__!r} has no {name}")
    return forward(cls, name, *arguments)


def _member(cls: StandKind, found: Any, how: str, *asked: Any) -> Any:
    """What may be a member of an enumeration, of which a name or a value is one more name."""
    talk, trails = the_ref(cls).home(), contract.trails_of(the_ref(cls))
    may_be = not state.learns or cls._assay_form["equal"] == "enum"
    if [*map(type, asked)] in ([str], [int]) and may_be and contract.may("one", trails):
        talk.expect_other(found, f"{trails[0]}{how}{asked[0]!r}")
    return found


_NOTHING = {"meta": [], "operators": [], "methods": [], "own": [], "equal": "identity"}
"""What is known of a class of which nothing was told."""


def _forwarder(name: str) -> Callable[..., Any]:
    def operate(self: Any, *arguments: Any) -> Any:
        return forward(self, name, *arguments)

    return operate


class Stand(Remote, metaclass=StandKind):
    """Stands for an object of the submission's."""

    _assay_kind: Ref | None = None
    _assay_form: dict[str, Any] = _NOTHING
    _assay_base: type | None = None
    _assay_label = "object"

    __eq__: Any = questions.equal
    __hash__: Any = questions.hash_of
    __bool__: Any = questions.truth
    __copy__ = _forwarder("__copy__")

    def __ne__(self, other: object) -> Any:
        found = questions.equal(self, other)
        return not found if type(found) is bool else found

    def __deepcopy__(self, _: object) -> Any:
        return forward(self, "__deepcopy__")

    def __reduce_ex__(self, protocol: object) -> Any:
        raise barred("an object of the submission's cannot be pickled in the judge")


def _repr(self: Any) -> str:
    if contract.may(contract.operator_of("__repr__"), contract.trails_of(the_ref(self))):
        return forward(self, "__repr__")
    return f"<{type(self)._assay_label}>"  # a failure is shown


def _iterator(found: Any) -> Any:
    return found if hasattr(type(found), "__next__") else iter(found)


def _next(self: Any) -> Any:
    ref = the_ref(self)
    talk = ref.home()
    kind, value = talk.operate(ref, "__next__")
    if kind == "end":
        contract.look_at_items(ref)
        raise StopIteration(talk.taken(value, ref, "StopIteration"))
    found = talk.taken(value, ref, "__next__")
    contract.look_at_items(ref, found)
    return found


def _swallows(value: Any, swallowed: Any, error: Any) -> bool:
    """Whether a block ends with an error, as with the reference; never with one of the judge's."""
    if swallowed is not True or error is None or ref_of(error) is None:
        return False
    ref = the_ref(value)
    contract.require("swallows", contract.trails_of(ref), ref.label, "an exception is swallowed")
    return True


@types.coroutine
def _awaited(self: Any, name: str, *arguments: Any) -> Any:
    """What an operator comes to that is awaited, whatever it gives to wait for."""
    ref = the_ref(self)
    node = ref.home().operate(ref, name, *arguments)
    if type(node) is not list or node[0] not in ("o", "co"):
        return (yield from ref.home().taken(node, ref, name).__await__())
    waiting = Ref(ref.home(), node[1])
    contract.mark(waiting, contract.trails_of(ref))
    return (yield from _wait_for(waiting))


async def _async_enter(self: Any) -> Any:
    return await _awaited(self, "__aenter__")


async def _async_next(self: Any) -> Any:
    try:
        found = await _awaited(self, "__anext__")
    except StopAsyncIteration:
        contract.look_at_items(the_ref(self))
        raise
    contract.look_at_items(the_ref(self), found)
    return found


async def _async_leave(self: Any, _: Any, error: Any, __: Any) -> bool:
    return _swallows(self, await _awaited(self, "__aexit__", None, error, None), error)


def _wait_for(ref: Ref) -> Generator[Any, Any, Any]:
    """Wait for the host in a thread, so that the judge's event loop goes on."""
    ask = ref.home().waiting(ref)
    if not where():
        return ask()
    import asyncio

    def wait() -> tuple[Any, BaseException | None]:
        try:
            return ask(), None
        except BaseException as error:
            return None, error

    loop = asyncio.get_running_loop()
    found, error = yield from loop.run_in_executor(None, wait).__await__()
    if error is not None:
        raise error
    return found


def where() -> list[str]:
    """Where the host does something: in its event loop, if one runs here, as callbacks do then."""
    events: Any = sys.modules.get("asyncio.events")
    loop: Any = events._get_running_loop() if events else None
    if loop is None:
        return []
    state.loops = {threading.get_ident(): loop}
    return ["on loop"]


_OPERATORS: dict[str, Any] = {
    **{one: _forwarder(one) for one in OPERATORS - _LEFT_OUT},
    **{one: questions.operator(one) for one in (*ARITHMETIC, *questions.DECIDED)},
    "__call__": lambda self, *given, **named: (
        the_ref(self).home().call(the_ref(self), given, named)
    ),
    "__repr__": _repr,
    "__iter__": lambda self: _iterator(forward(self, "__iter__")),
    "__next__": _next,
    "__exit__": lambda self, _, error, __: _swallows(
        self, forward(self, "__exit__", None, error, None), error
    ),
    "__aexit__": _async_leave,
    "__aenter__": _async_enter,
    "__anext__": _async_next,
    "__await__": lambda self: _wait_for(the_ref(self)),
}


class _Member:
    """A method or property of the submission's class, as an attribute of its stand-in's class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: Any, name: str) -> None:
        self.owner = owner

    def __get__(self, instance: Any, owner: Any) -> Any:
        ref = the_ref(owner if instance is None else instance)
        if instance is not None and type(instance).__dict__.get("_assay_tested"):
            # The class of the tests may have a method of that name: `super()` asks for this one.
            node = ref.home().request("member", the_ref(self.owner).node(), ref.node(), self.name)
            return ref.home().taken(node, ref, self.name)
        return ref.home().get(ref, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        Stand.__setattr__(instance, self.name, value)


class _Shadow(_Member):
    """What some objects have in the place of a method of their built-in type."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None or self.name not in space_of(instance).get("_assay_shadowing", ()):
            return getattr(super(self.owner, owner if instance is None else instance), self.name)
        return super().__get__(instance, owner)


def shadow(held: Any, names: Sequence[str]) -> None:
    """Have an object's own attributes found before the methods of its built-in type."""
    kind = type(held)
    space_of(held)["_assay_shadowing"] = names
    for name in names:
        if _is_public(name) and name not in vars(kind) and hasattr(kind._assay_base, name):
            made = _Shadow(name)
            made.owner = kind
            type.__setattr__(kind, name, made)


class _Doc(_Member):
    """What a class says of itself, and an object, which may have been given another text."""

    def __init__(self, name: str, doc: str | None) -> None:
        super().__init__(name)
        self.doc = doc

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.doc if instance is None else super().__get__(instance, owner)


def stand_kind(ref: Ref, name: str, module: str, bases: list[Any], form: Any) -> StandKind:
    """The class of the stand-ins for a class: the same one when its module is loaded anew."""
    key = (ref.path, repr([form[one] for one in ("operators", "equal", "own", "methods")]))
    made = _kinds.get(key) or _make_kind(ref, name, module, bases, form)
    if ref.path is not None:
        _kinds[key] = made
    type.__setattr__(made, "_assay_kind", ref)
    return made


_kinds: dict[Any, StandKind] = {}


def _make_kind(ref: Ref | None, name: str, module: str, bases: list[Any], form: Any) -> StandKind:
    stands = [base for base in bases if isinstance(base, StandKind)]
    inherited = next((base._assay_base for base in stands if base._assay_base), None)
    base = next((one for one in bases if one in (*IMMUTABLE, *MUTABLE)), inherited)
    own, doc = form["own"], form.get("doc") if type(form.get("doc")) is str else None
    space: dict[str, Any] = {
        "_assay_kind": ref,
        "_assay_form": form,
        "_assay_base": base,
        "_assay_label": f"{module}.{name}",
        "__module__": module,
        "__qualname__": name,
        "__doc__": _Doc("__doc__", doc),
    }
    for one in _OPERATORS.keys() & form["operators"]:
        if not (base in IMMUTABLE and one in vars(base) and one not in own):  # the copy decides
            space[one] = _OPERATORS[one]
    for one in form["methods"]:
        if _is_public(one) or one == "__init__":
            space[one] = _Member(one)
    if base in MUTABLE:  # the items are there, not here
        space.update((one, _Member(one)) for one in vars(base) if not one.startswith("_"))
    family: list[type] = [*stands] or [Stand]
    if base is not None and base is not inherited:
        family.append(base)
    try:
        return StandKind(name.rpartition(".")[2], tuple(family), space)
    except TypeError:  # bases that do not go together: nothing but the object itself is known
        return StandKind(name.rpartition(".")[2], (Stand,), {**space, "_assay_base": None})


def _is_public(name: object) -> bool:
    """Whether the host may say that something of a class or object has such a name."""
    return type(name) is str and name.isidentifier() and not name.startswith(("_", "test"))


@functools.cache
def plain_kind(kind: type) -> StandKind:
    """The class of the stand-ins for what has a built-in class, such as ``map``."""
    operators = [one for one in OPERATORS if any(one in vars(k) for k in kind.__mro__[:-1])]
    form = {**_NOTHING, "operators": operators}
    return _make_kind(None, kind.__qualname__, kind.__module__, [], form)


def _subclass(
    mcs: type, name: str, bases: tuple[type, ...], space: dict[str, Any], named: dict[str, Any]
) -> Any:
    """A class of the tests made of one of the submission's: the host makes one that calls back."""
    ours = [base for base in bases if isinstance(base, StandKind) or is_authors(base)]
    if any(base not in ours and base.__module__ not in ("builtins", "typing") for base in bases):
        raise barred(f"{name} inherits from the submission and from a library at once")
    first = next(base for base in bases if isinstance(base, StandKind))
    talk = the_ref(first).home()
    members: dict[str, Any] = {}
    trails = contract.trails_of(the_ref(first))
    for key, value in space.items():
        if key in ("__qualname__", "__classcell__", "__firstlineno__", "__static_attributes__"):
            continue
        kind, inside = _WRAPPED.get(type(value), ("plain", None))
        members[key] = [kind, talk.given(getattr(value, inside) if inside else value, trails)]
    options = {key: talk.given(value, trails) for key, value in named.items()}
    encoded = [talk.encode(base) for base in bases if base is not object]
    node = talk.request("subclass", name, encoded, members, options)
    if type(node) is not list or node[0] != "k":
        raise WireError("a class makes no sense")
    number, form = node[1:]
    own = {
        "_assay_kind": Ref(talk, number),
        "_assay_form": form,
        "_assay_base": first._assay_base,
        "_assay_label": f"{space.get('__module__')}.{name}",
        "_assay_tested": True,
    }
    made = talk.kinds[number] = type.__new__(mcs, name, bases, {**space, **own})
    return made


_WRAPPED: dict[type, tuple[str, str]] = {
    staticmethod: ("static", "__func__"),
    classmethod: ("class", "__func__"),
    property: ("property", "fget"),
}
BUILTINS: dict[str, type] = {
    name: one for name, one in vars(builtins).items() if isinstance(one, type)
}
