"""What decides: equality, order, truth and membership of stand-ins, decided on copies.

Where only code of the submission could decide, the test fails with that reason, unless the case
trusts the class. An author's entry ``module.Class`` trusts it wholly. An entry that the reference
needed, ``asked:module.Class``, lets it answer among questions that nothing honest says yes to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.graders.testing.inside.boundary.judge_state import (
    Kind,
    forward,
    length_of,
    state,
    the_ref,
    undecided,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_UNCHANGED = object()
_FIRST, _MANY, _FEW = 4, 24, 2
_asked: dict[str, int] = {}


def trust(kind: Any) -> str:
    """How far the class of a stand-in is trusted: not, asked or wholly."""
    if kind._assay_label in state.allowed:
        return "wholly"
    return "asked" if f"asked:{kind._assay_label}" in state.allowed else ""


def _is_stand(value: Any) -> bool:
    return isinstance(type(value), Kind)


def _how(value: Any) -> str:
    return type(value)._assay_form["equal"] if _is_stand(value) else ""


def equal(one: Any, other: Any) -> Any:
    """Whether a stand-in equals something."""
    how, theirs = _how(one), _how(other)
    if how == "own":
        return _ask(one, "__eq__", other)
    if theirs == "own":
        return _ask(other, "__eq__", one)
    if how == "fields" and type(one) is type(other):
        return _same_records(one, other)
    if how == "base" or (how == "enum" and one is not other and type(one)._assay_base):
        same = content(one) == (content(other) if _has_content(other) else other)
        for value in (one, other) if same is True else ():
            if _is_stand(value) and not trust(type(value)) and not _holds(value):
                label = type(value)._assay_label
                raise undecided(label, "what a value holds that its own code made of its arguments")
        return same
    if one is not other:
        return NotImplemented
    if how == "identity" and type(one)._assay_kind is not None and not trust(type(one)):
        # That two names mean one object says nothing of what it holds.
        label = type(one)._assay_label
        raise undecided(label, "whether an object equals itself", f"asked:{label}")
    return True


def _holds(value: Any) -> bool:
    """Whether a value of a built-in type's subclass that the test made holds what it was given."""
    made = object.__getattribute__(value, "__dict__").get("_assay_made")
    if made is None or _how(value) == "enum":
        return True
    _, arguments, named = made
    base, held = type(value)._assay_base, content(value)
    if base is tuple:  # a named tuple: field by field
        given = [*zip(held, arguments), *((one, one) for one in named.values())]
        is_whole = len(arguments) <= len(held) and all(one in held for one in named.values())
        if is_whole and all(_is_same(now, then) for now, then in given):
            return True
    try:
        return bool(base(*arguments, **named) == held)
    except (TypeError, ValueError):
        return False


def _has_content(value: Any) -> bool:
    return _is_stand(value) and type(value)._assay_base is not None


def _same_records(one: Any, other: Any) -> bool:
    if _fields(one) != _fields(other):
        return False
    if not trust(type(one)) and _fields(one, compared=False) != _fields(other, compared=False):
        label = type(one)._assay_label
        raise undecided(label, "records that differ in fields which they do not compare")
    return True


def built_of(kind: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
    """The fields of a record whose constructor was written for it; None if that is not known."""
    built = kind._assay_form.get("built")
    if not built or len(arguments) > len(built):
        return None
    names = [str(name) for name, _, _ in built]
    given = dict(zip(names, arguments))
    if given.keys() & named.keys() or not named.keys() <= set(names):
        return None
    given.update(named)
    talk = the_ref(kind).home()
    for name, _, default in built:
        if name not in given:
            if default is None:
                return None
            given[name] = talk.decode(default[0])
    return given


def _fields(value: Any, *, compared: bool = True) -> dict[str, Any]:
    """The fields of a record; they must hold what the test made it of.

    One that the test made, and did nothing else with, was never told to the submission.
    """
    space = object.__getattribute__(value, "__dict__")
    made: tuple[Any, Any, Any] = space.get("_assay_made", (None, (), {}))
    kind, arguments, named = made
    given = None if kind is None else built_of(kind, arguments, named)
    if kind is not None and given is not None and "_assay" not in space:
        return {
            n: given[n]
            for n, is_compared, _ in kind._assay_form["built"]
            if is_compared is compared
        }
    ref = the_ref(value)
    talk = ref.home()
    told = talk.request("fields", ref.node())
    found = {str(name): talk.decode(node) for name, _, node in told}
    if kind is not None and not trust(type(value)):
        held = given is not None and all(
            name in found and _is_same(found[name], one) for name, one in given.items()
        )
        if not held:
            label = type(value)._assay_label
            raise undecided(label, "what a record holds that its own code made of its arguments")
    return {str(name): found[name] for name, is_compared, _ in told if is_compared is compared}


def _is_same(now: Any, given: Any) -> bool:
    if now is given:
        return True
    alike = type(now) is type(given) or isinstance(now, (int, float)) is isinstance(
        given, (int, float)
    )
    return alike and bool(now == given)


def content(value: Any) -> Any:
    """The copy of what an instance of a built-in type's subclass holds."""
    base: Any = type(value)._assay_base
    if base is tuple:
        return tuple.__getitem__(value, slice(None))
    if base in (str, bytes, int, float, complex, frozenset):
        return _plain(base, value)
    ref = the_ref(value)
    talk = ref.home()
    found = talk.decode(talk.request("base", ref.node()))
    return found if type(found) is base else base()


def _plain(base: Any, value: Any) -> Any:
    if base is str:
        return str.__str__(value)
    if base is bytes:
        return bytes.__getitem__(value, slice(None))
    if base is frozenset:
        return frozenset.__or__(value, frozenset())
    if base is complex:
        return complex.__add__(value, 0j)
    return int.__int__(value) if base is int else float.__float__(value)


def _ask(value: Any, name: str, other: Any) -> Any:
    """Ask the submission's own method, if the case trusts its class."""
    label, trusted = type(value)._assay_label, trust(type(value))
    if not trusted:
        what = {"__eq__": "equality", "__contains__": "what it contains"}.get(name, "an order")
        raise undecided(label, what, f"asked:{label}")
    if trusted == "wholly":
        return forward(value, name, other)
    questions = [other]
    if name in ("__eq__", "__contains__"):
        questions += _unlike(value, other)
    order = list(range(len(questions)))
    state.random.shuffle(order)
    answers = {place: forward(value, name, questions[place]) for place in order}
    if answers[0] is True and any(answers[place] is True for place in order if place):
        raise undecided(label, "what says yes to values unlike the expected one, too,")
    return answers[0]


def _unlike(value: Any, other: Any) -> list[Any]:
    """Values that nothing honest takes for `other`, to be asked about among it.

    The first questions of a class are many: one that honestly says yes to some of them, as numbers
    modulo five do, shall be found out by the reference, which then has to trust it wholly, and not
    by chance when a submission is graded.
    """
    label = type(value)._assay_label
    asked = _asked[label] = _asked.get(label, 0) + 1
    rounds = range(_MANY if asked <= _FIRST else _FEW)
    if _is_stand(other) and type(other)._assay_base is None:
        return [one for _ in rounds for one in (*_made_unlike(other), *_made_unlike(value))]
    plain = content(other) if _has_content(other) else other
    return [one for one in (_changed(plain) for _ in rounds) if one is not _UNCHANGED]


def _made_unlike(value: Any) -> list[Any]:
    """An object made as the test made another, but of other values."""
    made = object.__getattribute__(value, "__dict__").get("_assay_made")
    if made is None:
        return []
    kind, arguments, named = made
    values = [_changed(one) for one in arguments]
    options = {name: _changed(one) for name, one in named.items()}
    if all(one is _UNCHANGED for one in (*values, *options.values())):
        return []
    values = [old if new is _UNCHANGED else new for old, new in zip(arguments, values)]
    options = {name: named[name] if new is _UNCHANGED else new for name, new in options.items()}
    ref = the_ref(kind)
    failures = list(state.failures)
    try:
        return [ref.home().call(ref, tuple(values), options)]
    except Exception:
        state.failures[:] = failures
        return []


def _changed(value: Any) -> Any:
    """A value of the same type, so near that it could be the expected one as well."""
    kind, step = type(value), state.random.choice((-3, -2, -1, 1, 2, 3))
    if kind is int:
        return value + step
    if kind is float:
        return value + step * max(1.0, abs(value) / 8)
    if kind is str:
        place = state.random.randrange(len(value) or 1)
        letter = state.random.choice(
            [one for one in "abcdeghknoprst" if one != value[place:][:1].lower()]
        )
        return value[:place] + letter + value[place + 1 :]
    if kind in (list, tuple, set, frozenset):
        items = list(value)
        place = state.random.randrange(len(items) or 1)
        new = _changed(items[place]) if items else _UNCHANGED
        items[place : place + 1] = [*items[place : place + 1], 1] if new is _UNCHANGED else [new]
        return kind(items)
    if kind is dict and value:
        key = state.random.choice(list(value))
        new = _changed(value[key])
        return {**value, f"{key}_": 1} if new is _UNCHANGED else {**value, key: new}
    return value + b"x" if kind is bytes else _UNCHANGED


def ordering(name: str) -> Callable[[Any, Any], Any]:
    """Make the method that compares by an order."""

    def order(self: Any, other: Any) -> Any:
        kind = type(self)
        if kind._assay_base is not None and "__lt__" not in kind._assay_form["own"]:
            theirs = content(other) if _has_content(other) else other
            return getattr(kind._assay_base, name)(content(self), theirs)
        if type(other) is kind and kind._assay_form.get("ordered"):
            mine, theirs = (tuple(_fields(one).values()) for one in (self, other))
            return getattr(tuple, name)(mine, theirs)
        return _ask(self, name, other)

    return order


def arithmetic(name: str) -> Callable[[Any, Any], Any]:
    """Make an operator of two values.

    What arithmetic of the submission gives for a plain value, such as the expected one, would say
    no more than its equality with it.
    """

    def operate(self: Any, other: Any, *rest: Any) -> Any:
        kind = type(self)
        if kind._assay_base is not None and name not in kind._assay_form["own"]:
            theirs = content(other) if _has_content(other) else other
            return getattr(kind._assay_base, name)(content(self), theirs, *rest)
        found = forward(self, name, other, *rest)
        if _is_stand(other) or found is NotImplemented or trust(kind):
            return found
        if not _is_stand(found) or any(one.__module__ == "numpy" for one in kind.__mro__):
            raise undecided_arithmetic(kind)
        object.__getattribute__(found, "__dict__")["_assay_of_plain"] = True
        return found

    return operate


def undecided_arithmetic(kind: Any) -> BaseException:
    """What to raise where a number came of arithmetic with a value of the test."""
    label = kind._assay_label
    return undecided(label, "what arithmetic with a plain value gives", f"asked:{label}")


def contains(self: Any, item: Any) -> Any:
    """Whether a stand-in contains something."""
    kind = type(self)
    if kind._assay_base is not None and "__contains__" not in kind._assay_form["own"]:
        return item in content(self)
    return _ask(self, "__contains__", item)


def truth(value: Any) -> bool:
    """Whether a stand-in is true."""
    kind: Any = type(value)
    form = kind._assay_form
    if "__bool__" in form["own"]:
        if not trust(kind):
            raise undecided(kind._assay_label, "whether it is true")
        return forward(value, "__bool__") is True
    if kind._assay_base is not None and "__len__" not in form["own"]:
        return bool(content(value))
    return "__len__" not in form["operators"] or length_of(value) > 0


def hash_of(value: Any) -> int:
    """The hash that goes with `equal`."""
    kind: Any = type(value)
    form = kind._assay_form
    if "__hash__" not in form["operators"] and form["equal"] in ("own", "fields"):
        raise TypeError(f"unhashable type: {kind.__name__!r}")
    if form["equal"] == "own" or ("__hash__" in form["own"] and form["equal"] != "fields"):
        return hash(forward(value, "__hash__"))
    if form["equal"] == "fields":
        return hash(tuple(_fields(value).values()))
    return object.__hash__(value) if kind._assay_base is None else hash(content(value))


def vacuous_kind() -> Any:
    """The class of the submission's empty arrays: comparing one with values would prove nothing."""
    import sys

    if "numpy" not in _vacuous:
        numpy: Any = sys.modules["numpy"]

        class Empty(numpy.ndarray):
            """An empty array: whatever is asked of all its items is true."""

            compared = False  # whether it came of one and of values

            def _refuse(self, *_: object, **__: object) -> Any:
                if self.compared:
                    raise _vacuous_error()
                return []

            tolist = _refuse

            def __iter__(self) -> Any:
                return iter(self._refuse())

            def dot(self, *_: object, **__: object) -> Any:
                """No product of nothing is looked at."""
                raise _vacuous_error()

            def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
                plain = [numpy.asarray(one) if isinstance(one, Empty) else one for one in inputs]
                named.pop("out", None)
                found = getattr(ufunc, method)(*plain, **named)
                others = any(numpy.size(one) for one in plain)
                vacuous = others or any(getattr(one, "compared", False) for one in inputs)
                is_truth = str(getattr(found, "dtype", "")) == "bool"
                if (is_truth and (vacuous or method == "reduce")) or (
                    vacuous and numpy.size(found)
                ):
                    raise _vacuous_error()
                if not vacuous or not isinstance(found, numpy.ndarray):
                    return found
                found = found.view(Empty)
                found.compared = True
                return found

            def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
                plain = [numpy.asarray(one) if isinstance(one, Empty) else one for one in args]
                if any(getattr(one, "compared", False) for one in args):
                    raise _vacuous_error()
                if func.__name__ in ("all", "allclose", "isclose", "array_equiv") and (
                    len(plain) == 1 or any(numpy.size(one) for one in plain[:2])
                ):
                    raise _vacuous_error()
                return func(*plain, **kwargs)

        _vacuous["numpy"] = Empty
    return _vacuous["numpy"]


_vacuous: dict[str, Any] = {}


def _vacuous_error() -> BaseException:
    return undecided("numpy.ndarray", "a comparison with an empty array", "empty:numpy.ndarray")
