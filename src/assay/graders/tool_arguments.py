"""Arguments of tool calls, compared with those that are expected or banned: the one place for it.

What is expected is the author's, and bounded by `check_arguments`. What a call says is data of an
adversary: it is read no deeper than what is expected goes, or without recursion, and all
comparisons of a trace together may read so much and no more.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal, Protocol, TypeAlias

from assay.errors import InputError, Location, nearest
from assay.scoring.json_safe import Json
from assay.text.compare import exact_match, match_of
from assay.text.normal_form import as_text, compose, fold
from assay.text.pattern import compile_pattern
from assay.text.structure import equal_json, expected_json
from assay.types.codec import Within, check_fields

ArgumentMode: TypeAlias = Literal["exact", "subset", "superset", "ignore"]

_MOST_READ = 20_000_000
"""How much the comparisons of one trace may read: a character is 1, a comparison as much as 8."""
_COMPARISON = 8
_MOST_TOLD = 3
_UNREAD = "_"
"""The name under which recordings keep arguments that are no mapping, or broken JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRule:
    """How one argument is compared.

    Attributes:
        tolerance: Greatest accepted difference between two numbers.
        text: Whether texts must be the same, or say the same as ``exact_match`` reads them: case,
            articles, white space and punctuation do not count.
        pattern: RE2 that is found in the text; it stands instead of a value in ``args``.
        any_of: Values of which any is right; they stand instead of one in ``args``.
        optional: A call may leave it out.
        ignore: Any value is right, and so is none.
    """

    tolerance: Annotated[float, Within()] = 0.0
    text: Literal["exact", "normalized"] = "exact"
    pattern: str | None = None
    any_of: list[Json] | None = None
    optional: bool = False
    ignore: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.pattern is not None:
            if self.any_of is not None:
                raise InputError("pattern and any_of both say what is right", hint="write one")
            try:
                compile_pattern(self.pattern)
            except InputError as error:
                where = Location(field="pattern")
                raise InputError(error.message, location=where, hint=error.hint) from error
        if self.any_of is not None:
            if not self.any_of:
                raise InputError("any_of is empty, so that no value is right")
            expected_json(self.any_of)

    @property
    def decides(self) -> bool:
        """Whether it says by itself which values are right."""
        return self.ignore or self.pattern is not None or self.any_of is not None


class WantedCall(Protocol):
    """The arguments that a matcher of tools means."""

    @property
    def args(self) -> Mapping[str, Json] | None:
        """The values, by name."""
        ...

    @property
    def args_mode(self) -> ArgumentMode:
        """Which names a call must and may have."""
        ...

    @property
    def args_rules(self) -> Mapping[str, ArgumentRule]:
        """How single ones are compared."""
        ...


def looks_at_arguments(wanted: WantedCall) -> bool:
    """Whether a matcher asks for arguments at all."""
    return wanted.args_mode != "ignore" and (wanted.args is not None or bool(wanted.args_rules))


def check_arguments(wanted: WantedCall) -> None:
    """Refuse what an author cannot mean.

    Raises:
        InputError: With the field.
    """
    args = wanted.args or {}
    if wanted.args is None and not wanted.args_rules and wanted.args_mode != "exact":
        where = Location(field="args_mode")
        raise InputError(f"{wanted.args_mode!r} compares nothing without args", location=where)
    try:
        expected_json(dict(args))
    except InputError as error:
        raise InputError(error.message, location=Location(field="args")) from error
    for name, rule in wanted.args_rules.items():
        where = Location(field=f"args_rules.{name}")
        if name not in args and not rule.decides:
            hint = nearest(name, list(args)) if args else "write pattern, any_of or ignore"
            raise InputError(f"{name!r} has no value in args", location=where, hint=hint)
        if name in args and rule.decides and not rule.ignore:
            raise InputError(f"args says already what {name!r} must be", location=where)
        values = rule.any_of or [args.get(name)]
        if rule.tolerance and not rule.ignore and not any(map(_may_be_near, values)):
            said = f"a tolerance is of numbers, and {name!r} must be {_expected(rule, values)}"
            raise InputError(said, location=where)


def _may_be_near(value: Json) -> bool:
    """Whether a tolerance means anything: of a number, or of one that is inside."""
    return isinstance(value, dict | list | int | float) and not isinstance(value, bool)


class ArgumentMatching:
    """Compares the arguments of the calls of one trace.

    Where there is more to read than `_MOST_READ`, what is left fits no demand and every ban.
    """

    def __init__(self) -> None:
        self._left = _MOST_READ
        self._known: dict[int, tuple[WantedCall, _Fields]] = {}

    def fits(self, wanted: WantedCall, given: Mapping[str, Json]) -> bool:
        """Whether the arguments of a call are what is demanded."""
        return not looks_at_arguments(wanted) or not any(self._wrong(wanted, given))

    def faults(self, wanted: WantedCall, given: Mapping[str, Json]) -> list[str]:
        """Why the arguments of a call are not what is demanded: the first reasons."""
        fields, told = self._fields_of(wanted), list[str]()
        for (name,) in islice(self._wrong(wanted, given), _MOST_TOLD):
            if name not in fields:
                told.append(f"{_shown(name)} is not expected")
            elif name not in given:
                told.append(f"{name} is missing")
            else:
                right = "more than is compared" if self._left < 0 else _expected(*fields[name])
                told.append(f"{name} is {_shown(given[name])} instead of {right}")
        return told

    def _wrong(self, wanted: WantedCall, given: Mapping[str, Json]) -> Iterator[tuple[str]]:
        """The names of what is wrong."""
        fields = self._fields_of(wanted)
        if wanted.args_mode != "superset":
            yield from ((name,) for name in given if name not in fields)
        for name, (rule, values) in fields.items():
            if rule.ignore:
                continue
            if name in given:
                if self._is_spent(_COMPARISON) or not self._is_right(rule, values, given[name]):
                    yield (name,)
            elif wanted.args_mode != "subset" and not rule.optional:
                yield (name,)

    def _fields_of(self, wanted: WantedCall) -> _Fields:
        """What `_fields` says, found once: many calls are compared with one matcher."""
        if (known := self._known.get(id(wanted))) is None:
            known = self._known[id(wanted)] = (wanted, _fields(wanted))
        return known[1]

    def may_be(self, wanted: WantedCall, given: Mapping[str, Json]) -> bool:
        """Whether the arguments of a call may be what a ban means, whatever else it has.

        Any text or number inside of an argument counts, and texts by what they say.
        """
        if not looks_at_arguments(wanted) or list(given) == [_UNREAD]:
            return True
        for name, (rule, values) in self._fields_of(wanted).items():
            if rule.ignore or (rule.optional and name not in given):
                continue
            if name not in given or not self._may_hold(rule, values, given[name]):
                return False
        return True

    def _is_spent(self, cost: int) -> bool:
        self._left -= cost
        return self._left < 0

    def _is_right(self, rule: ArgumentRule, values: list[Json], given: Json) -> bool:
        if rule.pattern is not None:
            if not isinstance(given, str) or self._is_spent(len(given)):
                return False
            return _is_found(rule.pattern, given)
        same = operator.eq if rule.text == "exact" else self._says_the_same
        return any(equal_json(given, value, rule.tolerance, same) for value in values)

    def _says_the_same(self, given: str, value: str) -> bool:
        return not self._is_spent(len(given)) and exact_match(given, value) == 1.0

    def _may_hold(self, rule: ArgumentRule, values: list[Json], given: Json) -> bool:
        """Whether a value, or any that is part of it, may be one of those that are banned."""
        waiting: list[Json] = [given]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict | list):
                waiting.extend(one.values() if isinstance(one, dict) else one)
                text = ""
            else:
                text = as_text(one)
            if self._is_spent(_COMPARISON + len(text)):
                return True
            if rule.pattern is None:
                forms = (equal_json(one, v, rule.tolerance, self._says_the_same) for v in values)
                if any(forms) or (text and any(exact_match(text, as_text(v)) for v in values)):
                    return True
            elif text and any(_is_found(rule.pattern, t) for t in (text, _folded(text))):
                return True
        return False


_PLAIN = ArgumentRule()
_Fields: TypeAlias = dict[str, tuple[ArgumentRule, list[Json]]]


def _fields(wanted: WantedCall) -> _Fields:
    """For each argument that is named its rule, and the values that are right."""
    fields = {name: (_PLAIN, [value]) for name, value in (wanted.args or {}).items()}
    for name, rule in wanted.args_rules.items():
        given = fields[name][1] if name in fields else []
        fields[name] = (rule, given if rule.any_of is None else rule.any_of)
    return fields


def _is_found(pattern: str, text: str) -> bool:
    return match_of(pattern, text, full=False, ignore_case=False) is not None


def _folded(text: str) -> str:
    return fold(compose(text, "NFKC"))


def _shown(value: Json) -> str:
    """A value of a call in few words: it may be of any size and depth."""
    if isinstance(value, dict | list):
        return "another object" if isinstance(value, dict) else "another list"
    if isinstance(value, str):
        return repr(value[:60])
    return as_text(value)[:60] if value is not None else "null"


def _expected(rule: ArgumentRule, values: list[Json]) -> str:
    if rule.pattern is not None:
        return f"a text with {rule.pattern:.60}"
    return " or ".join(json.dumps(value)[:60] for value in values[:_MOST_TOLD])
