"""Commands on what is stored: each asks for an operation of `assay.service`, and shows its reply.

What a command takes follows from the operation's parameters. Only what the table of operations
cannot know is said of a command: see `Verb` and `assay.cli.stored`. What commands do is in
`assay.cli.verbs`.
"""

from __future__ import annotations

import inspect
import re
import typing
from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from inspect import Parameter
from typing import Any, TypeAlias

from assay.cli.options import (
    AddAction,
    actions,
    add_db,
    add_json,
    explain,
    moment,
    positive,
    whole,
)
from assay.errors import InputError
from assay.frozen import frozen
from assay.reports.page import TextPage
from assay.service.operation import Input, Operation

Item: TypeAlias = "Mapping[str, Any]"
Column: TypeAlias = "str | Callable[[Item], str]"
"""The field of an item that a column shows, with points to those within; or what it says of one."""

Reply: TypeAlias = Any
"""What an operation returns; which one it is stands in a table, where no type checker sees it."""

BEFORE = "before"
"""The parameter that is a time, which people may also give as how long ago it was."""
_SAID = {"name": "for people"}
"""What parameters are of which their operation says nothing."""


@frozen
class Verb:
    """A command that asks for an operation.

    Attributes:
        asks: The operation's name.
        columns: Of a list: fields, each perhaps behind a heading of its own and ``=``.
        about: What it does, where that is not what the operation says of itself.
        says: Shows the reply; by default its fields.
        lines: What an export writes, a line of JSON for each.
        part: The field of each item that an export writes.
        first: Of a deletion: the operation that shows what goes, asked for all before any goes.
        question: What is asked before a deletion, behind the names; nothing by default.
        instead: An option, and the operation that is asked where the option is given.
        keeps: The operation that shows what stays as it is where no option speaks of it.
        one: What is listed instead where one of the things is named.
        without: Parameters that no option speaks of.
        names: What options are called that are not called as their parameter.
        defaults: Of parameters that must be given over HTTP.
        numbered: The parameter that the N of ``KEY@N`` stands for.
        since: The field that ``--since`` looks at, of a list that has the newest first.
        only: The word for how an item stands, for ``--status``, with all such words.
    """

    asks: str
    columns: str = ""
    about: str = ""
    says: Callable[[TextPage, Any, Namespace], None] | None = None
    lines: str = ""
    part: str = ""
    first: str = ""
    question: str = ""
    instead: tuple[str, str] = ("", "")
    keeps: str = ""
    one: Verb | None = None
    without: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    numbered: str = ""
    since: str = ""
    only: tuple[Callable[[Item], str], tuple[str, ...]] | None = None


@frozen(kw_only=True)
class Noun:
    """What the commands on one sort of stored things have in common.

    Attributes:
        file: The file of its operations, below `assay.service`.
        more: What else there is to know.
        examples: For the help.
        verbs: Its commands.
        in_project: Whether each project has its own.
        exits: What the exit statuses of its commands mean.
        empty: What is said where there are none; by default that the project has none.
    """

    file: str
    more: str
    examples: str = ""
    verbs: Mapping[str, Verb]
    in_project: bool = True
    exits: str = "0 done, 2 bad input, 3 the store could not be used"
    empty: str = ""


def operation_of(noun: str, name: str) -> Operation[..., Any]:
    """An operation on a noun."""
    return getattr(import_module(f"assay.service.{noun_of(noun).file}"), name)


def is_verb(given: Namespace) -> bool:
    """Whether an action of a command is one of those of its noun."""
    return given.action in noun_of(given.noun).verbs


def noun_of(noun: str) -> Noun:
    """The noun that a command is about."""
    from assay.cli.stored import NOUNS

    return NOUNS[noun]


def verb_of(given: Namespace) -> Verb:
    """What the command that was given asks for."""
    verb = noun_of(given.noun).verbs[given.action]
    return (
        verb.one
        if verb.one and getattr(given, operation_of(given.noun, verb.one.asks).places[0].name)
        else verb
    )


def add_verbs(parser: ArgumentParser, noun: str) -> AddAction:
    """Add the commands below a noun; what adds others, which are written by hand."""
    found = noun_of(noun)
    explain(parser, f"{found.more}\n\nexit status: {found.exits}", found.examples)
    parser.set_defaults(noun=noun)
    action = actions(parser, lambda added: _add_common(found, added))
    for name, verb in found.verbs.items():
        about = verb.about or inspect.getdoc(operation_of(noun, verb.asks).function) or ""
        first, _, more = about.partition("\n")
        summary = first[:1].lower() + first[1:].rstrip(".")
        added = action(name, summary, more.strip(), _examples(found.examples, noun, name))
        for called, how in _inputs(noun, verb):
            added.add_argument(called, **how)
    return action


def _examples(examples: str, *words: str) -> str:
    """The examples that begin with ``assay`` and some words."""
    begin = " ".join(("assay", *words))
    chosen = [line for line in examples.splitlines() if f"{line.strip()} ".startswith(f"{begin} ")]
    return "\n".join(chosen)


def _add_common(noun: Noun, parser: ArgumentParser) -> None:
    add_db(parser, "the project; `default` by default" if noun.in_project else "")
    add_json(parser)


def add_server(parser: ArgumentParser) -> None:
    """Add what is done with the things that servers store: one action for all sorts of them."""
    from assay.cli.stored import DEEDS, NOUNS, OF_SERVER, SERVER, SERVER_EXAMPLES

    explain(parser, SERVER, SERVER_EXAMPLES)
    action = actions(parser, lambda added: _add_common(NOUNS["datasets"], added))
    for deed, about in DEEDS.items():
        things = [noun for noun in OF_SERVER if deed in NOUNS[noun].verbs]
        said = f"THING is one of: {', '.join(things)}."
        _add_deed(action(deed, about, said, _examples(SERVER_EXAMPLES, "server", deed)), things)


def _add_deed(parser: ArgumentParser, things: Sequence[str]) -> None:
    """Add what is taken of any of some things; which of them takes an option is in its help."""
    parser.add_argument("noun", type=_plural, choices=things, metavar="THING", help="what")
    deed = parser.prog.rpartition(" ")[2]
    taken: dict[str, dict[str, Any]] = {}
    named: set[str] = set()
    of: dict[str, list[str]] = {}
    for noun in things:
        for called, how in _inputs(noun, noun_of(noun).verbs[deed]):
            if not called.startswith("-"):
                named.add(called)
            elif called != "--project":  # which all of them have
                of.setdefault(called, []).append(noun)
                taken[called] = how
    if named:
        most = "*" if deed == "delete" else 1
        parser.add_argument("names", nargs=most, metavar="NAME", help="its id, key or name")
    for called, how in taken.items():
        whose = f" (of {', '.join(of[called])})" if of[called] != list(things) else ""
        said = f"{how['help']}{whose}"
        how |= {"default": SUPPRESS, "help": said}
        how.pop("required", None)
        parser.add_argument(called, **how)
    parser.set_defaults(of=of, project=None, names=[])


def _plural(text: str) -> str:
    """A sort of things, which people may also name as one of them."""
    from assay.cli.stored import OF_SERVER

    return f"{text}s" if f"{text}s" in OF_SERVER else text


def _inputs(noun: str, verb: Verb) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the operation takes, and what only the command line knows, as argparse has them."""
    option, other = verb.instead
    if verb.keeps:
        yield "project", {"metavar": "KEY", "help": "the project"}
    inputs = {one.name: one for one in operation_of(noun, verb.asks).places}
    more = {one.name: one for one in operation_of(noun, other).places} if other else {}
    for one in {**more, **inputs}.values():
        if one.place == "path" and verb.first:  # by any name by which it can be shown
            shown = operation_of(noun, verb.first).places[0]
            how = "*" if other else "+"
            yield one.name, {"nargs": how, "metavar": shown.sent_as.upper(), "help": _help(shown)}
        elif one.place == "path":
            at = "[@N]" if verb.numbered else ""
            yield one.name, {"metavar": one.sent_as.upper() + at, "help": _help(one)}
        elif not (verb.lines or one.name in verb.without or one.name in ("whole", "offset")):
            yield _input(verb, one)
    if option == "project":
        yield "--project", {"default": "", "metavar": "KEY", "help": "only of this project"}
    if verb.one:
        named = operation_of(noun, verb.one.asks).places[0]
        yield named.name, {"nargs": "?", "metavar": named.sent_as.upper(), "help": verb.one.about}
    if verb.since:
        when = "only newer ones: 2026-11-21, 12h, 7d, 4w"
        yield "--since", {"type": moment, "metavar": "WHEN", "help": when}
    if verb.only:
        yield "--status", {"choices": verb.only[1], "help": "only those that ended so"}
    if verb.lines:
        yield "--out", {"metavar": "FILE", "help": "standard output by default"}
    if verb.question:
        yield "--yes", {"action": "store_true", "help": "do not ask"}


def _input(verb: Verb, one: Input) -> tuple[str, dict[str, Any]]:
    default = verb.defaults.get(one.name, one.default)
    if default is Parameter.empty and one.name != BEFORE:
        return one.name, {"metavar": one.name.upper(), "help": _help(one)}
    called = verb.names.get(one.name, one.spec.alias or one.name).replace("_", "-")
    kinds = typing.get_args(one.annotation) or (one.annotation,)
    words = [word for kind in kinds for word in (typing.get_args(kind) or (kind,))]
    more: dict[str, Any] = {"default": default, "help": _help(one, default)}
    if one.name == BEFORE:
        when = "only older ones: 2026-11-21, 12h, 7d, 4w"
        more = {"type": moment, "required": not verb.instead[1], "metavar": "WHEN", "help": when}
    elif one.name == "days":
        more |= {"type": _days, "metavar": "WHEN", "help": "in 90d, 4w; never by default"}
    elif verb.keeps:
        said = "a number, or none; as it is by default"
        more = {"type": _limit, "default": SUPPRESS, "metavar": "N", "help": said}
    elif bool in kinds and default is True and called != one.name:
        more = {"action": "store_false", "help": f"{called} it"}
    elif bool in kinds:
        more["action"] = BooleanOptionalAction if default is True else "store_true"
    elif all(isinstance(word, str) for word in words if word is not type(None)):
        more["choices"] = [word for word in words if isinstance(word, str)]
    elif int in kinds:
        kind = whole if one.spec.ge == 0 else positive
        more |= {"type": kind, "metavar": "N"}
    else:
        more["metavar"] = "TEXT"
    return f"--{called}", {**more, "dest": one.name}


def _limit(text: str) -> int | None:
    return None if text == "none" else positive(text)


def _days(text: str) -> int:
    """How many days a span has."""
    span = re.fullmatch(r"([1-9][0-9]{0,3})([dw])", text)
    if not span:
        raise ArgumentTypeError(f"{text!r} is no time such as 90d or 4w")
    return int(span[1]) * {"d": 1, "w": 7}[span[2]]


def _help(one: Input, default: object = None) -> str:
    said = one.spec.description.rstrip(".") or _SAID.get(one.name, "")
    parts = [said[:1].lower() + said[1:]] if said else []
    parts += [f"{default} by default"] if default and not isinstance(default, bool | type) else []
    return "; ".join(parts).replace("%", "%%")


def run(given: Namespace) -> int:
    """Run one of the commands on what is stored."""
    from assay.cli import verbs  # help needs none of it

    return verbs.run(given)


def run_server(given: Namespace) -> int:
    """Run what is done with a sort of things, when nothing was given that is not of them.

    Raises:
        InputError: For an option or a name that is of other things.
    """
    own = dict(_inputs(given.noun, verb_of(given)))
    has_project = noun_of(given.noun).in_project or "--project" in own
    if given.project is not None and not has_project:
        raise InputError(f"--project says nothing of {given.noun}", hint="leave it out")
    given.project = given.project or own.get("--project", {}).get("default", "default")
    for called, things in given.of.items():
        dest = _dest(called, own.get(called, {}))
        if called not in own and hasattr(given, dest):
            raise InputError(f"{called} is of {', '.join(things)}, not of {given.noun}")
    _take_names(given, {called: how for called, how in own.items() if called[0] != "-"})
    for called, how in own.items():
        default = how.get("default", False if how.get("action") == "store_true" else None)
        if default is not SUPPRESS and not hasattr(given, _dest(called, how)):
            setattr(given, _dest(called, how), default)
    return run(given)


def _dest(called: str, how: Mapping[str, Any]) -> str:
    return how.get("dest") or called.removeprefix("--").replace("-", "_")


def _take_names(given: Namespace, own: Mapping[str, Mapping[str, Any]]) -> None:
    """Take the names that were given as what the operation calls them."""
    names: list[str] = given.names
    if not own and names:
        raise InputError(f"{given.noun} have no names", hint="say which by options")
    for called, how in own.items():
        nargs = how.get("nargs", 1)
        if nargs == "+" and not names:
            raise InputError(f"say which {given.noun}", hint="their keys or ids")
        if nargs == 1 and len(names) != 1:
            raise InputError(f"{given.action} takes one of {given.noun}, got {len(names)}")
        setattr(given, called, names[0] if nargs == 1 else names)
